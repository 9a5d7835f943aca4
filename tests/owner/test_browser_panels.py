"""The panels beside the text of a post in a real browser, and the caret, which stays where the writer left it."""

import re

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.owner.browser import EDIT, IN_BOTH_BROWSERS, NEW
from tests.service import eventually

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("evening")]
LONG = "\n\n".join(f"Paragraph {number} of a long day." for number in range(200))
FOCUSED = "return document.activeElement.textContent"


def write_long(window):
    window.service.request("PATCH", "/v1/posts/1", {"content": LONG})
    window.open(EDIT)
    window.run("putCaretBefore", "Paragraph 150 ")


@IN_BOTH_BROWSERS
def test_on_a_phone_the_preview_takes_the_place_of_the_text_and_goes_back_to_the_caret(window):
    window.browser.resize(390, 800)
    write_long(window)
    caret = window.browser.execute_script("return document.querySelector('#content').selectionStart")
    window.click("Preview")
    eventually(lambda: window.run("isInPreview", "Paragraph 150 "))
    assert not window.browser.find_element(By.ID, "content").is_displayed()
    window.click("Preview")
    focused = "return [document.activeElement.id, document.activeElement.selectionStart]"
    assert window.browser.execute_script(focused) == ["content", caret]
    window.press("x")
    window.send()
    is_wide = window.browser.execute_script("return innerWidth > 480")  # Windows of Firefox are.
    assert ("not in the post yet" in window.text) == is_wide
    window.click("Settings")
    assert window.browser.find_element(By.ID, "tags").is_displayed()
    assert not window.browser.find_element(By.ID, "content").is_displayed()
    window.service.request("PATCH", "/v1/posts/1", {"status": "draft"})  # Its form has a fourth button.
    window.browser.refresh()
    says = window.browser.find_element(By.CSS_SELECTOR, ".says")
    assert says.text.startswith("Unsaved changes\n1,200 words")
    assert says.size["height"] < 35 or is_wide  # two lines
    window.open()
    assert window.browser.find_element(By.CSS_SELECTOR, ".end").text == "Sign out"


@IN_BOTH_BROWSERS
def test_a_window_that_becomes_narrow_keeps_the_text_and_the_caret(window):
    write_long(window)
    window.press("x")
    for width in (700, 1280, 390):
        window.browser.resize(width, 800)
        eventually(lambda width=width: window.browser.find_element(By.ID, "tags").is_displayed() == (width == 1280))
        window.press("x")
    assert "xxxxParagraph 150 " in window.value("content")
    assert window.run("selected")[1]


@IN_BOTH_BROWSERS
def test_publishing_asks_in_a_dialog_that_returns_the_focus_and_keeps_its_date_only_if_a_button_is_pressed(window):
    window.open(NEW)
    window.fill(title="Bread", content="Rises.")
    window.click("Publish…")
    dialog = window.browser.find_element(By.ID, "publishing")
    assert (dialog.aria_role, dialog.accessible_name) == ("dialog", "Publish")
    assert "Readers will see the text on this page." in dialog.text
    eventually(lambda: window.browser.execute_script(FOCUSED) == "Publish now")
    for leave in (lambda: window.press(Keys.ESCAPE), lambda: window.click("Close")):
        window.click("Tomorrow 8:00")
        leave()
        eventually(lambda: window.browser.execute_script("return document.activeElement.id") == "content")
        window.fill(content=(Keys.CONTROL, Keys.ENTER))
        assert (dialog.is_displayed(), window.titles) == (True, ["Evening"])
        assert "Readers will see the text on this page." in dialog.text
        assert window.browser.execute_script("return post.elements.published_at.value") == ""
    window.click("Tomorrow 8:00")
    dialog.find_element(By.XPATH, ".//button[.='Save draft']").click()
    window.said("Saved, not scheduled")
    assert window.value("published_at").endswith("T08:00")


@IN_BOTH_BROWSERS
def test_the_preview_beside_the_text_follows_the_scrolling_the_caret_and_what_is_typed(window):
    write_long(window)
    window.click("Preview")
    eventually(lambda: window.run("isInPreview", "Paragraph 150 "))
    for share in (1, 0.6, 0):
        window.browser.execute_script("scrollTo(0, document.documentElement.scrollHeight * arguments[0])", share)
        eventually(lambda: window.run("unevenness") < 130)
    window.press("x")
    eventually(lambda: window.run("isInPreview", "xParagraph 150 ") and window.run("unevenness") < 130)
    window.run("putCaretBefore", "Paragraph 20 ")
    eventually(lambda: window.run("isInPreview", "Paragraph 20 "))
    code = "\n".join(f"let x{number}" for number in range(90))
    for number, text, words in ((10, f"```\n{code}\n```", "let x70"), (100, "![Loaf](http://a.example/b.png)", "Loaf")):
        window.run("putCaretBefore", f"Paragraph {number} ")
        window.browser.execute_script("document.execCommand('insertText', false, arguments[0])", f"{text}\n\n")
        window.run("putCaretBefore", words)
        eventually(lambda words=words: window.run("isInPreview", words))
    window.fill(content="\n\n**Bold** <script>document.title = 'gone'</script>")
    bold = "return document.querySelector('.preview.shown strong')?.parentNode.textContent"
    eventually(lambda: "Bold <script>" in (window.browser.execute_script(bold) or ""))
    window.fill(content=(Keys.CONTROL, Keys.SHIFT, Keys.ENTER))
    assert not window.browser.find_element(By.CSS_SELECTOR, ".preview").is_displayed()


@IN_BOTH_BROWSERS
def test_a_post_opens_at_its_top_and_then_where_the_writer_left_it(window):
    write_long(window)
    window.open(EDIT)
    assert window.browser.execute_script("return [content.selectionEnd, scrollY]") == [0, 0]
    window.run("putCaretBefore", "Paragraph 150 ")
    window.press("x", Keys.PAGE_UP)
    window.send()
    window.open(EDIT)
    window.said("Unsaved changes")
    window.press("y")
    assert "xyParagraph 150 " in window.value("content")
    assert window.run("selected")[1]
    window.click("Discard")
    assert window.browser.execute_script("return scrollY") == 0  # The notice with Undo is in view.
    window.open(NEW)
    window.press("Bread", Keys.ENTER, "Rises")
    window.browser.refresh()
    window.has("Rises")
    window.press(".")
    assert (window.value("title"), window.value("content")) == ("Bread", "Rises.")


def test_a_published_post_can_be_scheduled_in_its_form(window):
    window.browser.resize(1280, 800)
    window.open(EDIT)
    assert window.browser.execute_script("return panel.scrollHeight <= panel.clientHeight")  # Only the page scrolls.
    window.click("Date")
    assert "Readers will see the text on this page." in window.text
    date, typed = window.browser.find_element(By.ID, "published_at"), "arguments[0].dispatchEvent(new Event('input'))"
    before = date.get_property("value")
    window.browser.execute_script(f"arguments[0].value = ''; {typed}", date)
    window.click("Update")
    window.said("Nothing has changed")
    assert date.get_property("value") == before
    window.click("Tomorrow 8:00")
    for effect in window.browser.find_elements(By.CSS_SELECTOR, ".effect"):
        assert re.fullmatch(r"Readers will not see it until \w+ \d+,( \d+,)? 8:00\sAM\.", effect.text)
    assert "Readers will see the text" not in window.text
    window.fill(content=(Keys.CONTROL, "s"))
    eventually(lambda: "This date is in the future: press Schedule" in window.text)
    window.browser.execute_script(f"arguments[0].value = '2099-01-01T08:00'; {typed}", date)
    assert "This date is in the future" not in window.text
    assert not window.run("withText", "Update")
    window.browser.find_element(By.CSS_SELECTOR, ".bar [name=to]").click()
    eventually(lambda: window.service.request("GET", "/v1/posts/1")[2]["status"] == "scheduled")
