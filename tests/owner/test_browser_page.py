"""The form of a post as a page to write on: what stands beside the text, publishing, and what is pasted."""

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.owner.browser import EDIT, IN_BOTH_BROWSERS, NEW
from tests.service import eventually

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("evening")]
LONG = "\n\n".join(f"Paragraph {number} of a long day." for number in range(200))
FOCUSED = "return document.activeElement.textContent"
CARET = """
const [area, words] = [document.querySelector("#content"), arguments[0]];
area.focus();
area.setSelectionRange(area.value.indexOf(words), area.value.indexOf(words));
"""
IS_IN_VIEW = """
const block = [...document.querySelectorAll(".preview p")].find((each) => each.textContent.startsWith(arguments[0]));
const { top, bottom } = block?.getBoundingClientRect() ?? { top: -1 };
return top >= 0 && bottom <= innerHeight;
"""
# What is seen in the middle of each control of the form that is in view, if it is not that control
COVERED = """
const controls = [...document.querySelectorAll("main :is(input, textarea, button, .hint)")];
return controls.filter((each) => each.checkVisibility() && each.id !== "content").filter((each) => {
  each.scrollIntoView({ block: "center" });
  const { left, top, width, height } = each.getBoundingClientRect();
  return document.elementFromPoint(left + width / 2, top + height / 2)?.closest(".preview");
}).length;
"""
PASTE = """
const [data, area] = [new DataTransfer(), document.querySelector("#content")];
data.setData("text/html", arguments[0]);
data.setData("text/plain", arguments[1]);
area.focus();
area.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
"""


def write_long(window):
    window.service.request("PATCH", "/v1/posts/1", {"content": LONG})
    window.open(EDIT)
    window.browser.execute_script(CARET, "Paragraph 150 ")


@IN_BOTH_BROWSERS
def test_on_a_phone_the_preview_takes_the_place_of_the_text_and_goes_back_to_the_caret(window):
    window.browser.resize(390, 800)
    write_long(window)
    caret = window.browser.execute_script("return document.querySelector('#content').selectionStart")
    window.click("Preview")
    eventually(lambda: window.browser.execute_script(IS_IN_VIEW, "Paragraph 150 "))
    assert not window.browser.find_element(By.ID, "content").is_displayed()
    window.click("Preview")
    focused = "return [document.activeElement.id, document.activeElement.selectionStart]"
    assert window.browser.execute_script(focused) == ["content", caret]
    window.click("Settings")
    assert window.browser.find_element(By.ID, "tags").is_displayed()
    assert not window.browser.find_element(By.ID, "content").is_displayed()


@IN_BOTH_BROWSERS
def test_beside_a_long_text_the_preview_covers_nothing(window):
    window.browser.resize(1280, 800)
    write_long(window)
    window.click("Preview")
    eventually(lambda: window.browser.execute_script(IS_IN_VIEW, "Paragraph 150 "))
    assert window.browser.execute_script(COVERED) == 0
    assert window.browser.find_element(By.ID, "content").is_displayed()


@IN_BOTH_BROWSERS
def test_publishing_asks_in_a_dialog_that_takes_the_focus_and_returns_it(window):
    window.open(NEW)
    window.fill(title="Bread", content="Rises.")
    window.click("Publish…")
    dialog = window.browser.find_element(By.ID, "publishing")
    assert (dialog.aria_role, dialog.accessible_name) == ("dialog", "Publish")
    eventually(lambda: window.browser.execute_script(FOCUSED) == "Publish now")
    window.press(Keys.ESCAPE)
    eventually(lambda: window.browser.execute_script(FOCUSED) == "Publish…")


def test_a_published_post_can_be_scheduled_in_its_form(window):
    window.open(EDIT)
    window.click("Tomorrow 8:00")
    window.click("Update")
    eventually(lambda: "This date is in the future: choose Schedule" in window.text)
    window.click("Schedule")
    eventually(lambda: window.service.request("GET", "/v1/posts/1")[2]["status"] == "scheduled")


@pytest.mark.parametrize(
    ("html", "text", "markdown"),
    [
        (
            "<p style='mso-list:l0 level1 lfo1'><span style='mso-list:Ignore'>·</span>First <b>item</b></p>"
            "<p style='mso-list:l0 level1 lfo1'><span style='mso-list:Ignore'>·</span>Second item</p>",
            "First item",
            "- First **item**\n- Second item",
        ),
        ('<pre><code class="language-python">print(1)</code></pre>', "print(1)", "```python\nprint(1)\n```"),
    ],
    ids=["Word", "code"],
)
def test_what_is_pasted_becomes_markdown(window, html, text, markdown):
    window.open(NEW)
    window.browser.execute_script(PASTE, html, text)
    window.has(markdown)
    window.browser.execute_script("document.execCommand('undo')")
    assert window.value("content") == ""
