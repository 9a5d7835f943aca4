"""Writing in a real browser: nothing typed is lost, and the post is seen as it will read."""

import re

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.service import eventually

pytestmark = pytest.mark.slow


@pytest.fixture
def window(window):
    window.open("/settings/posts/new")
    return window


def asks_before_leaving(window):
    script = "const event = new Event('beforeunload', {cancelable: true}); dispatchEvent(event); return event"
    return window.browser.execute_script(f"{script}.defaultPrevented")


def posts(window):
    return [(each["title"], each["content"]) for each in window.service.request("GET", "/v1/posts")[2]]


def published(window):
    """Open the form of a published post, which does not save itself."""
    window.service.request("POST", "/v1/posts", {"title": "Evening", "content": "One.", "status": "published"})
    window.open("/settings/posts/1/edit")


def test_what_is_typed_is_offered_again_after_a_reload_until_it_is_saved(window):
    published(window)
    assert not asks_before_leaving(window)
    window.fill(content=" A long text.")
    assert asks_before_leaving(window)
    window.browser.refresh()
    assert "that was not saved." in window.text
    assert window.value("content") == "One."
    window.click("Take it")
    assert window.value("content") == "One. A long text."
    window.click("Save")
    assert window.notice.startswith("“Evening” was saved.")
    window.open("/settings/posts/1/edit")
    assert "not saved" not in window.text


def test_a_draft_saves_itself_after_three_seconds_and_goes_on_elsewhere(window):
    window.fill(content="Bread rises.")
    eventually(lambda: posts(window) == [("Bread rises.", "Bread rises.")])
    eventually(lambda: re.search(r"Saved \d", window.text))
    assert window.browser.current_url == f"{window.url}/settings/posts/1/edit"
    assert not asks_before_leaving(window)
    window.fill(title="Bread")
    eventually(lambda: posts(window) == [("Bread", "Bread rises.")])
    laptop = window.browser.current_window_handle
    window.browser.switch_to.new_window("tab")
    window.open("/settings/posts/1/edit")
    window.fill(content=" Slowly.")
    eventually(lambda: posts(window) == [("Bread", "Bread rises. Slowly.")])
    window.browser.switch_to.window(laptop)
    # Nothing was typed over it here: the post is shown as it is now.
    seen = "dispatchEvent(new Event('visibilitychange')); return document.querySelector('#content')?.value"
    eventually(lambda: window.browser.execute_script(seen) == "Bread rises. Slowly.")
    eventually(lambda: window.browser.execute_script("return document.readyState") == "complete")
    window.click("Save")
    assert window.notice.startswith("“Bread” was saved.")


def test_a_draft_is_saved_when_its_page_is_left(window):
    window.fill(title="Bread", content="Rises.")
    window.open("/settings/posts")
    eventually(lambda: posts(window) == [("Bread", "Rises.")])


def test_a_draft_that_is_too_long_to_be_saved_when_its_page_is_left_asks(window):
    script = "document.querySelector('#content').value = 'x'.repeat(arguments[0])"
    for length, asks in ((50_000, False), (60_000, True), (0, False)):
        window.browser.execute_script(script, length)
        assert asks_before_leaving(window) == asks


def test_a_draft_that_was_changed_elsewhere_is_not_saved_over_it_until_both_are_shown(window):
    window.service.request("POST", "/v1/posts", {"title": "Bread", "content": "One."})
    window.open("/settings/posts/1/edit")
    window.service.request("PATCH", "/v1/posts/1", {"content": "Two."})
    window.fill(content=" Mine.")
    eventually(lambda: "The post was changed elsewhere; Save shows both." in window.text)
    assert (posts(window), asks_before_leaving(window)) == ([("Bread", "Two.")], True)
    window.click("Save")
    assert "Not saved: the post was changed elsewhere" in window.text
    window.click("Save")
    assert posts(window) == [("Bread", "One. Mine.")]


def test_a_draft_that_is_created_while_it_saves_itself_is_one_post(window):
    window.fill(title="Bread", content="Rises.")
    window.browser.execute_script("dispatchEvent(new Event('pagehide'))")  # It saves itself now.
    with window.next_page():
        window.browser.execute_script("document.querySelector('.save .primary').click()")
    assert posts(window) == [("Bread", "Rises.")]


def test_a_published_post_is_saved_by_its_button_alone(window):
    published(window)
    window.fill(content=" Two.")
    leave = "window.fetch = () => { window.isSent = true; }; dispatchEvent(new Event('pagehide')); return window.isSent"
    assert window.browser.execute_script(leave) is None


def test_buttons_and_keys_mark_what_is_selected_and_are_undone(window):
    def mark(text, start, end, action):
        script = "const c = document.querySelector('#content'); c.value = arguments[0]; c.focus(); "
        window.browser.execute_script(f"{script} c.setSelectionRange({start}, {end})", text)
        if len(action) == 1:
            window.browser.switch_to.active_element.send_keys(Keys.CONTROL, action)
        else:
            tools = window.browser.find_elements(By.CSS_SELECTOR, ".tools button")
            next(each for each in tools if each.text == action).click()
        return window.value("content")

    assert mark("a b c", 2, 3, "Bold") == mark("a b c", 2, 3, "b") == "a **b** c"
    assert mark("a **b** c", 4, 5, "b") == "a b c"
    assert mark("a b c", 2, 3, "Italic") == mark("a b c", 2, 3, "i") == "a *b* c"
    assert mark("a b c", 2, 3, "Link") == mark("a b c", 2, 3, "k") == "a [b](https://) c"
    assert mark("a\nb\nc", 3, 3, "Heading") == "a\n## b\nc"
    assert mark("a\nb\nc", 0, 3, "Quote") == "> a\n> b\nc"
    assert mark("a\nb\nc", 2, 5, "List") == "a\n- b\n- c"
    assert mark("a\nb", 0, 3, "Code") == "```\na\nb\n```"
    assert mark("a b c", 2, 3, "Code") == "a `b` c"
    window.browser.execute_script("document.execCommand('undo')")
    assert window.value("content") == "a b c"


def test_the_buttons_are_one_stop_of_the_tab_key(window):
    window.reach("Bold")
    window.press(Keys.ARROW_RIGHT)
    assert window.browser.switch_to.active_element.text == "Italic"
    window.press(Keys.TAB)
    assert window.browser.switch_to.active_element.get_attribute("id") == "content"


def test_words_and_minutes_are_counted(window):
    window.fill(content="It's 2 o'clock: naïve-looking Привет.")
    eventually(lambda: "5 words, 1 minute to read" in window.text)


def test_a_text_that_is_taken_again_does_not_overwrite_a_change_that_was_made_meanwhile(window):
    post = {"title": "Evening", "content": "One."}
    window.service.request("POST", "/v1/posts", post)
    window.open("/settings/posts/1/edit")
    window.service.request("PATCH", "/v1/posts/1", {"content": "Two."})
    window.fill(title="Night")
    window.browser.refresh()
    window.click("Take it")
    window.click("Save")
    assert "Not saved: the post was changed elsewhere" in window.text
    assert window.value("title") == "EveningNight"
    stored = window.service.request("GET", "/v1/posts/1")[2]
    assert (stored["title"], stored["content"]) == ("Evening", "Two.")


def go_back(window):
    with window.next_page():
        window.browser.back()


def test_back_after_a_post_was_created_leads_to_an_empty_form(window):
    window.fill(title="Bread", content="Rises.")
    window.click("Create")
    go_back(window)
    assert (window.value("title"), window.value("content")) == ("", "")
    assert "not saved" not in window.text


def test_back_after_a_post_was_saved_shows_it_as_it_is_now(window):
    published(window)
    window.fill(content=" Mine.")
    window.click("Save")
    window.service.request("PATCH", "/v1/posts/1", {"content": "Two."})
    go_back(window)
    assert window.value("content") == "Two."


def test_back_to_a_draft_that_saved_itself_shows_it_as_it_is_now(window):
    window.fill(title="Bread", content="Rises.")
    eventually(lambda: posts(window) == [("Bread", "Rises.")])
    eventually(lambda: re.search(r"Saved \d", window.text))
    window.click("Cancel")
    window.service.request("PATCH", "/v1/posts/1", {"content": "Two."})
    go_back(window)
    assert window.value("content") == "Two."


def test_what_is_typed_can_be_dropped(window):
    published(window)
    window.fill(title="Night")
    window.browser.refresh()
    assert "that was not saved." in window.text
    window.click("Drop it")
    window.open("/settings/posts/1/edit")
    assert "not saved" not in window.text


def test_after_the_end_of_a_session_what_is_typed_is_still_there(window):
    window.fill(title="Evening")
    window.browser.execute_script("document.querySelector('#content').value = 'x'.repeat(100_000)")
    window.browser.delete_all_cookies()
    window.click("Create")
    assert "go back in your browser" in window.text
    window.enter()
    window.open("/settings/posts/new")
    window.click("Take it")
    assert (window.value("title"), len(window.value("content"))) == ("Evening", 100_000)
    eventually(lambda: posts(window) == [("Evening", "x" * 100_000)])


def test_after_a_new_session_in_another_tab_one_press_saves(window):
    window.fill(title="Evening", content="Words.")
    tab = window.browser.current_window_handle
    token = window.browser.find_element(By.CSS_SELECTOR, "form[action$=new] [name=form_token]")
    before = token.get_property("value")
    window.browser.delete_all_cookies()
    window.browser.switch_to.new_window("tab")
    window.enter()
    window.browser.switch_to.window(tab)
    window.browser.execute_script("dispatchEvent(new Event('visibilitychange'))")  # A headless tab is always visible.
    eventually(lambda: token.get_property("value") != before)
    window.click("Create")
    assert window.notice == "“Evening” was created."


def test_ctrl_and_s_saves(window):
    window.fill(title="Evening", content="Words.")
    with window.next_page():
        window.browser.switch_to.active_element.send_keys(Keys.CONTROL, "s")
    assert window.notice == "“Evening” was created."


def test_the_preview_shows_what_is_typed_and_the_form_stays(window):
    content = "**Bold** <script>document.title = 'gone'</script>"
    window.fill(title="Evening", content=content)
    previews = window.browser.find_element(By.CSS_SELECTOR, "[data-preview]")
    previews.click()
    place = "const { top, bottom } = document.querySelector('iframe').getBoundingClientRect(); return [top, bottom]"
    top, bottom = window.browser.execute_script(place)
    assert 0 <= top < bottom <= window.browser.execute_script("return innerHeight")
    window.browser.switch_to.frame(window.browser.find_element(By.TAG_NAME, "iframe"))
    eventually(lambda: [each.text for each in window.browser.find_elements(By.TAG_NAME, "strong")] == ["Bold"])
    assert "<script>" in window.browser.find_element(By.TAG_NAME, "main").text
    window.browser.switch_to.default_content()
    assert window.value("title") == "Evening"
    eventually(lambda: posts(window) == [("Evening", content)])


def test_tags_are_offered_for_the_last_one(window):
    window.service.request("POST", "/v1/posts", {"title": "A", "content": "B", "tags": ["travel", "rain, snow"]})
    window.open("/settings/posts/new")
    window.fill(tags="hills, ")
    options = "return [...document.querySelectorAll('#known-tags option')].map(each => each.value)"
    assert window.browser.execute_script(options) == ['hills, "rain, snow"', "hills, travel"]
    window.browser.execute_script("document.querySelector('#tags').value = ''")


def test_dates_are_in_the_time_zone_of_the_browser(window):
    window.browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "America/New_York"})
    fields = {"title": "A", "content": "B", "status": "published", "published_at": "2026-01-02T03:04:05Z"}
    window.service.request("POST", "/v1/posts", fields)
    window.open("/settings/posts/1/edit")
    assert window.value("published_at") == "2026-01-01T22:04:05"
    assert "Date of publication (America/New_York)" in window.text
    window.fill(title="B")
    window.click("Save")
    assert window.service.request("GET", "/v1/posts/1")[2]["published_at"] == "2026-01-02T03:04:05Z"
    assert "Jan 1, 2026, 10:04" in window.text
    window.open("/settings/posts/1/edit")
    window.click("Tomorrow 8:00")
    assert window.value("published_at").endswith("T08:00")
