"""The form of a post in a real browser: it saves once, when the writer wants it."""

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
    fail = {"away": window.browser.offline, "session": window.browser.delete_all_cookies}
    fail |= {
        "proxy": lambda: window.run("breakFetch", "<h1>Bad gateway</h1>"),
        "answer": lambda: window.run("loseAnswers"),
    }
    fail[failure]()
    window.browser.find_element(By.XPATH, "//button[.='Update']").click()
    window.said("Not saved: ")
    assert "did not go through" not in window.text
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
    assert ("“Update” did not go through. Press it again." in window.text) == (failure != "answer")
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
    window.wait(lambda _: "Saved" in window.text or "Nothing has changed" in window.text, 60)  # if a press came later
    window.browser.offline(False)
    assert window.titles == ["Bread", "Evening"]
    assert window.service.request("GET", "/v1/posts/2/revisions")[2] == []


@pytest.mark.parametrize(("path", "number"), [(EDIT, 1), (NEW, 2)])
@IN_BOTH_BROWSERS
def test_each_press_saves_the_text_as_it_was_then_and_what_is_typed_later_stays_unsaved(window, path, number):
    window.open(path)
    if path == NEW:
        window.fill(title="Evening", content="One.")
    window.run("holdAll")
    save = window.browser.find_element(By.ID, "save")
    for text in (" Two.", " Three."):
        window.fill(content=text)
        save.click()
    window.fill(content=" Not yet.", title="!")
    window.browser.execute_script("release()")
    window.said("; later changes are not in the post yet")
    window.said("Kept")
    assert (window.stored(number), window.titles) == ("One. Two. Three.", ["Evening"] * number)
    assert len(window.service.request("GET", f"/v1/posts/{number}/revisions")[2]) == 3 - number
    window.open(f"/settings/posts/{number}/edit")
    assert (window.value("content"), window.value("title")) == ("One. Two. Three. Not yet.", "Evening!")


@IN_BOTH_BROWSERS
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
    window.save()
    window.click("Save draft")
    window.said("Nothing has changed")
    window.press(" and")
    window.said("Changes not in the post yet")
    assert (window.value("content"), window.stored(2)) == ("Rises and slowly.", "Rises slowly.")
    assert len(window.service.request("GET", "/v1/posts/2/revisions")[2]) == 2
    window.click("Post page")
    window.wait(lambda _: "Unsaved changes from" in window.text and "was saved" not in window.text, 20)


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


def test_enter_saves_nothing_a_refused_save_marks_its_field_and_back_shows_the_post_as_it_is(window):
    window.open(EDIT)
    window.fill(content=" Two.", title=Keys.ENTER, tags=Keys.ENTER, slug="日本")
    window.browser.execute_script("window.same = true")
    window.click("Update")
    eventually(lambda: "Must be lower-case letters" in window.text, 20)
    assert window.browser.execute_script("return window.same")
    slug = window.browser.find_element(By.ID, "slug")
    assert slug.get_attribute("aria-invalid") == "true"
    assert (window.value("content"), window.stored()) == ("One. Two.", "One.")
    slug.clear()
    window.update()
    assert (window.stored(), "Must be lower-case" in window.text) == ("One. Two.", False)
    window.click("Post page")
    window.service.request("PATCH", "/v1/posts/1", {"content": "Three."})
    with window.next_page():
        window.browser.back()
    window.has("Three.")


def test_publishing_waits_for_a_paste_into_an_empty_post_and_then_asks_for_its_title(window):
    window.open(NEW)
    window.run("select", 0)
    window.run("holdMarkdown")
    window.run("paste", "bold", "<b>bold</b>")
    window.fill(content=" And more.")
    assert window.value("content") == " And more."
    publish = window.browser.find_element(By.XPATH, "//button[.='Publish now']")
    window.click("Publish…")
    publish.click()
    assert not publish.is_displayed()  # The dialog would cover the bar.
    window.said("Saving once everything is added…")
    window.browser.execute_script("release()")
    eventually(lambda: "A post needs a title" in window.text)
    assert window.browser.switch_to.active_element.get_attribute("id") == "title"
    window.fill(title="Bread")
    window.click("Publish…")
    with window.next_page():
        publish.click()
    assert window.notice.startswith("“Bread” is now published.")
    post = window.service.request("GET", "/v1/posts/2")[2]
    assert (post["status"], post["content"]) == ("published", "**bold** And more.")


def test_a_post_published_while_it_is_edited_is_changed_only_after_a_question(window):
    window.service.request("POST", "/v1/posts", {"title": "Bread", "content": "Rises."})
    window.open("/settings/posts/2/edit")
    window.fill(content=" Half a sen")
    window.send()
    published = {"status": "published", "published_at": "2020-01-02T03:04:05Z"}
    window.service.request("PATCH", "/v1/posts/2", published)
    window.fill(content="t")
    window.send("This post is live now.")
    assert window.browser.find_element(By.CSS_SELECTOR, "header .state.good").text == "published"
    assert window.value("slug") == "bread"
    with window.next_page():
        window.click("Update…")
    assert "Not saved: this post is live now. Press Update to show readers the text below." in window.text
    assert window.stored(2) == "Rises."
    window.fill(content="ence.")
    window.update()
    assert window.stored(2) == "Rises. Half a sentence."
    assert window.browser.current_url.endswith("/settings/posts/2/edit")
    assert window.service.request("GET", "/v1/posts/2")[2].items() >= published.items()


@IN_BOTH_BROWSERS
def test_save_pressed_right_after_a_long_paste_waits_for_it(window):
    lines = [f"<p><b>{number}</b> is a line</p>" for number in range(4000)]
    page = f"<h1>Lines</h1><main><article><div>{''.join(lines)}</div></article></main><footer>End</footer>"
    window.browser.get(f"data:text/html,{page}")
    for key in ("a", "c"):
        window.browser.find_element(By.TAG_NAME, "body").send_keys((Keys.CONTROL, key))
    window.open(EDIT)
    window.run("select", -1)
    window.fill(content=(Keys.CONTROL, "v", "s"))
    window.said("Updated for readers")
    assert window.browser.execute_script("return scrollY + content.scrollTop") > 1000  # The caret is in view.
    pasted = ["One.", "# Lines", *(f"**{number}** is a line" for number in range(4000)), "End"]
    assert window.stored() == "\n\n".join(pasted)
    window.fill(content=(Keys.CONTROL, Keys.HOME))
    window.press("A")
    above = "content.getBoundingClientRect().top - document.querySelector('.tools').getBoundingClientRect().bottom"
    eventually(lambda: window.browser.execute_script(f"return {above}") > -1)  # The tools do not cover the caret.
    window.undo()
    window.undo()
    window.has("One.")
