"""The form of a post in a real browser: it saves once, when the writer wants it. Also the panels beside the text."""

import re

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.owner.browser import EDIT, IN_BOTH_BROWSERS, NEW, SLOW
from tests.service import eventually

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("evening")]


@pytest.mark.parametrize("failure", ["away", "proxy", "session", "answer"])
def test_save_stays_on_the_page_while_the_server_does_not_answer(window, failure):
    window.open(EDIT)
    window.fill(content=" Two.")
    if failure == "away":
        window.browser.offline()
    elif failure == "proxy":
        window.run("breakFetch", "<h1>Bad gateway</h1>")
    elif failure == "answer":
        window.run("loseAnswers")
    else:
        window.browser.delete_all_cookies()
    window.browser.find_element(By.XPATH, "//button[.='Update']").click()
    window.said("“Update” did not go through")
    assert (window.value("content"), window.stored()) == ("One. Two.", "One. Two." if failure == "answer" else "One.")
    if failure == "answer":
        window.said("No unsaved changes")
        assert "changed elsewhere" not in window.text
        window.fill(content="!")
    if failure == "session":
        with window.another_tab():
            window.enter()
    window.browser.offline(False)
    window.browser.execute_script("window.fetch = window.real ?? fetch")
    eventually(lambda: "Not saved" not in window.text, 60)  # It continues by itself.
    window.update()
    assert window.stored() == window.value("content")


def test_a_form_that_published_its_post_without_an_answer_shows_the_published_post(window):
    window.service.request("POST", "/v1/posts", {"title": "Bread", "content": "Rises."})
    window.open("/settings/posts/2/edit")
    window.run("loseAnswers")
    window.click("Publish…")
    with window.next_page():
        window.browser.find_element(By.XPATH, "//button[.='Publish now']").click()
    assert window.run("withText", "Update")


def test_the_bar_says_not_saved_only_if_something_is_not_and_until_the_server_is_back(window):
    window.open(EDIT)
    window.fill(content=" Two.")
    window.send()
    window.browser.offline()
    window.come_back()  # It asks for changes elsewhere.
    window.browser.execute_async_script("fetch('/healthz').catch(() => setTimeout(arguments[0], 100))")
    assert "Not saved" not in window.text
    window.browser.find_element(By.XPATH, "//button[.='Update']").click()
    window.said("Not saved: there is no connection.")
    window.browser.offline(False)
    eventually(lambda: "Not saved" not in window.text, 20)


@pytest.mark.parametrize("conditions", [{"is_offline": False}, SLOW])
def test_a_double_click_or_a_key_during_the_request_saves_a_post_only_once(window, conditions):
    window.open(NEW)
    window.browser.offline(**conditions)
    window.fill(title="Bread", content="Rises.")
    ActionChains(window.browser).double_click(window.browser.find_element(By.ID, "save")).perform()
    press = "dispatchEvent(new KeyboardEvent('keydown', { key: 's', ctrlKey: true, cancelable: true }));"
    window.browser.execute_script(press * 2)
    window.said("Saved")
    window.browser.offline(False)
    assert window.titles == ["Bread", "Evening"]
    assert window.service.request("GET", "/v1/posts/2/revisions")[2] == []


def press_while_saving(window, label):
    """Save, and press another button before the server has responded."""
    window.run("holdSaves")
    window.fill(content=(Keys.CONTROL, "s"))
    eventually(lambda: window.browser.execute_script("return window.isHeld"))
    window.fill(content=" Three.")
    if label == "Publish now":
        window.click("Publish…")
    window.browser.find_element(By.XPATH, f"//button[.='{label}']").click()
    window.browser.execute_script("release()")


@IN_BOTH_BROWSERS
def test_a_save_pressed_while_another_goes_on_saves_what_was_typed_since(window):
    window.open(EDIT)
    window.fill(content=" Two.")
    press_while_saving(window, "Update")
    eventually(lambda: window.stored() == "One. Two. Three.", 20)
    window.said("Updated for readers")
    assert len(window.service.request("GET", "/v1/posts/1/revisions")[2]) == 2


@IN_BOTH_BROWSERS
def test_update_saves_the_text_as_it_was_when_pressed_and_keeps_what_is_typed_before_the_server_answers(window):
    window.open(EDIT)
    window.fill(content=" Two.")
    window.run("holdAll")
    window.browser.find_element(By.ID, "save").click()
    window.fill(content=" Not yet.", title="!")
    window.browser.execute_script("release()")
    window.said("Kept")
    assert (window.stored(), window.titles) == ("One. Two.", ["Evening"])
    window.open(EDIT)
    assert (window.value("content"), window.value("title")) == ("One. Two. Not yet.", "Evening!")


def test_publish_pressed_while_the_post_is_being_saved_publishes_what_was_typed_since(window):
    window.open(NEW)
    window.fill(title="Bread", content="Two.")
    with window.next_page():
        press_while_saving(window, "Publish now")
    post = window.service.request("GET", "/v1/posts/2")[2]
    assert (post["status"], post["content"]) == ("published", "Two. Three.")


def test_save_keeps_the_caret_the_undo_and_the_address(window):
    window.open(NEW)
    window.fill(title="Bread", content="Rises slowly.")
    window.run("select", 5)
    window.fill(content=(Keys.CONTROL, "s"))
    window.said("Saved")
    assert window.browser.current_url.endswith("/settings/posts/2/edit")
    assert window.browser.execute_script("return document.querySelector('#content').selectionStart") == 5
    window.press("!")
    window.fill(content=(Keys.CONTROL, "s"))
    eventually(lambda: window.stored(2) == "Rises! slowly.")
    window.undo()
    window.send("Kept")
    window.undo("redo")
    window.send("No unsaved changes")
    window.undo()
    assert window.value("content") == "Rises slowly."
    window.click("Save draft")
    eventually(lambda: window.stored(2) == "Rises slowly.")
    assert len(window.service.request("GET", "/v1/posts/2/revisions")[2]) == 2


def test_back_shows_the_post_as_it_is(window):
    window.open(EDIT)
    window.fill(content=" Mine.")
    window.update()
    window.click("Back to the post")
    window.service.request("PATCH", "/v1/posts/1", {"content": "Two."})
    with window.next_page():
        window.browser.back()
    window.has("Two.")


def test_enter_in_a_line_of_a_published_post_publishes_nothing(window):
    window.open(EDIT)
    window.fill(title=" falls")
    window.press(Keys.ENTER)
    window.send()
    assert window.titles == ["Evening"]


def test_text_that_the_server_refuses_stays_in_the_form_and_in_the_browser(window):
    window.open(EDIT)
    # More than four megabytes. The same size in one-byte characters would take the browser longer to lay out.
    window.browser.execute_script("document.querySelector('#content').value = ('€'.repeat(999) + '\\n').repeat(1400)")
    window.fill(content="y")
    window.send("This text is only in this browser: the server refuses it. Save it to see why.")
    window.browser.refresh()
    eventually(lambda: len(window.value("content")) == 1_400_001)
    window.browser.execute_script("document.querySelector('#content').value = ''")
    window.fill(content="Short.")
    window.send()


def test_a_refused_save_marks_its_field_and_the_form_stays(window):
    window.open(EDIT)
    window.fill(content=" Two.", slug="Not a slug")
    window.browser.execute_script("window.same = true")
    window.click("Update")
    eventually(lambda: "Must be lower-case letters" in window.text, 20)
    assert window.browser.execute_script("return window.same")
    slug = window.browser.find_element(By.ID, "slug")
    assert (slug.get_attribute("aria-invalid"), window.value("content")) == ("true", "One. Two.")
    slug.clear()
    window.update()
    assert (window.stored(), "Must be lower-case" in window.text) == ("One. Two.", False)


def test_save_waits_for_what_is_being_pasted_and_what_is_typed_meanwhile_stays_behind_it(window):
    window.open(EDIT)
    window.fill(content=" ")
    window.run("holdMarkdown")
    window.run("paste", "Some bold words", "<p>Some <b>bold</b> words</p>")
    window.fill(content=" and more.")
    assert window.value("content") == "One.  and more."
    window.click("Update")
    window.browser.execute_script("release()")
    window.said("Updated for readers")
    assert window.stored() == "One. Some **bold** words and more."


def test_publishing_closes_its_dialog_so_that_what_the_bar_says_is_seen(window):
    window.open(NEW)
    window.fill(title="Bread", content="Rises. ")
    window.run("holdMarkdown")
    window.run("paste", "bold", "<b>bold</b>")
    window.click("Publish…")
    publish = window.browser.find_element(By.XPATH, "//button[.='Publish now']")
    publish.click()
    window.said("Saving once everything is added…")
    assert not publish.is_displayed()
    with window.next_page():
        window.browser.execute_script("release()")
    assert window.notice.startswith("“Bread” is published now.")
    post = window.service.request("GET", "/v1/posts/2")[2]
    assert (post["status"], post["content"]) == ("published", "Rises. **bold**")


@IN_BOTH_BROWSERS
def test_save_pressed_right_after_a_long_paste_waits_for_it(window):
    lines = [f"<p><b>{number}</b> is a line</p>" for number in range(4000)]
    window.browser.get(f"data:text/html,{''.join(lines)}")
    for key in ("a", "c"):
        window.browser.find_element(By.TAG_NAME, "body").send_keys((Keys.CONTROL, key))
    window.open(EDIT)
    window.run("select", -1)
    window.fill(content=(Keys.CONTROL, "v", "s"))
    window.said("Updated for readers")
    assert window.browser.execute_script("return scrollY + content.scrollTop") > 1000  # The caret is in view.
    assert window.stored() == "One." + "\n\n".join(f"**{number}** is a line" for number in range(4000))


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
    window.click("Settings")
    assert window.browser.find_element(By.ID, "tags").is_displayed()
    assert not window.browser.find_element(By.ID, "content").is_displayed()


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
def test_publishing_asks_in_a_dialog_that_takes_the_focus_and_returns_it(window):
    window.open(NEW)
    window.fill(title="Bread", content="Rises.")
    window.click("Publish…")
    dialog = window.browser.find_element(By.ID, "publishing")
    assert (dialog.aria_role, dialog.accessible_name) == ("dialog", "Publish")
    assert "Readers will see the text on this page." in dialog.text
    eventually(lambda: window.browser.execute_script(FOCUSED) == "Publish now")
    for leave in (lambda: window.press(Keys.ESCAPE), lambda: window.click("Close")):
        leave()
        eventually(lambda: window.browser.execute_script(FOCUSED) == "Publish…")
        window.click("Publish…")


@IN_BOTH_BROWSERS
def test_the_preview_beside_the_text_follows_the_caret_and_covers_nothing(window):
    write_long(window)
    window.click("Preview")
    eventually(lambda: window.run("isInPreview", "Paragraph 150 "))
    window.run("putCaretBefore", "Paragraph 20 ")
    eventually(lambda: window.run("isInPreview", "Paragraph 20 "))
    code = "\n".join(f"let x{number}" for number in range(90))
    for number, text, words in ((10, f"```\n{code}\n```", "let x70"), (100, "![Loaf](http://a.example/b.png)", "Loaf")):
        window.run("putCaretBefore", f"Paragraph {number} ")
        window.browser.execute_script("document.execCommand('insertText', false, arguments[0])", f"{text}\n\n")
        window.run("putCaretBefore", words)
        eventually(lambda words=words: window.run("isInPreview", words))


@IN_BOTH_BROWSERS
def test_a_post_opens_at_its_top_and_then_where_the_writer_left_it(window):
    write_long(window)
    window.open(EDIT)
    assert window.browser.execute_script("return [content.selectionEnd, scrollY]") == [0, 0]
    window.run("putCaretBefore", "Paragraph 150 ")
    window.press("x", Keys.PAGE_UP)
    window.send()
    window.open(EDIT)
    window.said("Unsaved changes from")
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
    window.open(EDIT)
    window.click("Date")
    assert "Readers will see the text on this page." in window.text
    date = window.browser.find_element(By.ID, "published_at")
    before = date.get_property("value")
    window.browser.execute_script("arguments[0].value = ''; arguments[0].dispatchEvent(new Event('input'))", date)
    window.update()
    assert date.get_property("value") == before
    window.click("Tomorrow 8:00")
    for effect in window.browser.find_elements(By.CSS_SELECTOR, ".effect"):
        assert re.fullmatch(r"Readers will not see it until \w+ \d+,( \d+,)? 8:00\sAM\.", effect.text)
    assert "Readers will see the text" not in window.text
    window.fill(content=(Keys.CONTROL, "s"))
    eventually(lambda: "This date is in the future: press Schedule" in window.text)
    window.browser.execute_script("arguments[0].dispatchEvent(new Event('input', { bubbles: true }))", date)
    assert "This date is in the future" not in window.text
    assert not window.run("withText", "Update")
    window.browser.find_element(By.CSS_SELECTOR, ".bar [name=to]").click()
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
        (
            "<p style='mso-list:l0 level1 lfo1'><![if !supportLists]>"
            "<span style='mso-list:Ignore'>1.</span><![endif]>A</p>"
            "<p style='mso-list:l0 level2 lfo1'><span style='mso-list:Ignore'>o</span>B</p>"
            "<p style='mso-list:l0 level3 lfo1'><span style='mso-list:Ignore'>·</span>C</p>"
            "<p style='mso-list:l0 level2 lfo1'><span style='mso-list:Ignore'>o</span>D</p>"
            "<p style='mso-list:l0 level1 lfo1'><span style='mso-list:Ignore'>2.</span>E</p>"
            "<p style='mso-list:none'>F</p>",
            "A",
            "1. A\n   - B\n     - C\n   - D\n2. E\n\nF",
        ),
        (
            "<html><body>\n<!--StartFragment--><p><b style='mso-bidi-font-weight:normal'>bold</b> and "
            "<span style='mso-bidi-font-weight:bold;mso-bidi-font-style:italic'>plain</span> "
            "<i style='font-weight:400'>slanted</i></p><!--EndFragment-->\n</body></html>",
            "bold and plain slanted",
            "**bold** and plain *slanted*",
        ),
        (
            "<p>May<a style='mso-footnote-id:ftn1' href='#_ftn1' name='_ftnref1' title=''><![if !supportFootnotes]>"
            "<span><span style='font-size:11.0pt'>[1]</span><![endif]></span></a> is cold.</p>"
            "<div style='mso-element:footnote-list'><![if !supportFootnotes]><br clear=all><hr size=1 width='33%'>"
            "<![endif]><div style='mso-element:footnote' id=ftn1><p><a style='mso-footnote-id:ftn1'"
            " href='#_ftnref1' name='_ftn1' title=''><span>[1]</span></a> In the <i>hills</i>.</p></div></div>",
            "May[1] is cold.",
            "May[^1] is cold.\n\n[^1]: In the *hills*.",
        ),
        ("<p class=MsoQuote><b>A</b></p><p>C</p>", "A", "> **A**\n\nC"),
        ('<p><b>A</b><sup><a href="#ftnt1">[1]</a></sup>&nbsp;</p><blockquote>&nbsp;</blockquote>', "A", "**A**"),
        ("<ul><li>&nbsp;</li><li>10&nbsp;km</li></ul>", "10 km", "- 10\u00a0km"),
        ('<pre><code class="language-python">print(1)</code></pre>', "print(1)", "```python\nprint(1)\n```"),
        ('<div class="highlight-source-js"><pre>a</pre></div>', "a", "```js\na\n```"),
        ('<pre class="sh">ls</pre>', "ls", "```sh\nls\n```"),
    ],
    ids=[
        "Word",
        "Word's levels",
        "Word's styles",
        "Word's footnotes",
        "Word's quotes",
        "marks without a note",
        "blank items",
        "code",
        "code at GitHub",
        "code of a single word",
    ],
)
def test_pasted_html_becomes_markdown(window, html, text, markdown):
    window.open(NEW)
    window.run("paste", text, html)
    window.has(markdown)
    window.undo()
    assert window.value("content") == ""
