"""Writing in a real browser: nothing typed is lost, and the post is seen as it will read."""

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.owner.browser import ActionChains
from tests.service import eventually

pytestmark = pytest.mark.slow


@pytest.fixture
def owner(window):
    window.enter()
    window.open("/settings/posts/new")
    return window


def value(owner, name):
    return owner.browser.find_element(By.ID, name).get_property("value")


def asks_before_leaving(owner):
    script = "const event = new Event('beforeunload', {cancelable: true}); dispatchEvent(event); return event"
    return owner.browser.execute_script(f"{script}.defaultPrevented")


def test_what_is_typed_is_offered_again_after_a_reload_until_it_is_saved(owner):
    assert not asks_before_leaving(owner)
    owner.fill("title", "Evening")
    owner.fill("content", "A long text.")
    assert asks_before_leaving(owner)
    owner.browser.refresh()
    assert "that was not saved." in owner.text
    assert value(owner, "content") == ""
    owner.click("Take it")
    assert (value(owner, "title"), value(owner, "content")) == ("Evening", "A long text.")
    owner.click("Create")
    assert owner.notice == "“Evening” was created."
    owner.open("/settings/posts/new")
    assert "not saved" not in owner.text


def test_what_is_typed_can_be_dropped(owner):
    owner.fill("title", "Evening")
    owner.browser.refresh()
    assert "that was not saved." in owner.text
    owner.click("Drop it")
    owner.open("/settings/posts/new")
    assert "not saved" not in owner.text


def test_after_the_end_of_a_session_what_is_typed_is_still_there(owner):
    owner.fill("title", "Evening")
    owner.browser.execute_script("document.querySelector('#content').value = 'x'.repeat(100_000)")
    owner.browser.delete_all_cookies()
    owner.click("Create")
    assert "go back in your browser" in owner.text
    owner.enter()
    owner.open("/settings/posts/new")
    owner.click("Take it")
    assert (value(owner, "title"), len(value(owner, "content"))) == ("Evening", 100_000)
    owner.click("Create")
    assert owner.notice == "“Evening” was created."


def test_after_a_new_session_in_another_tab_one_press_saves(owner):
    owner.fill("title", "Evening")
    owner.fill("content", "Words.")
    tab = owner.browser.current_window_handle
    token = owner.browser.find_element(By.CSS_SELECTOR, "form[action$=new] [name=form_token]")
    before = token.get_property("value")
    owner.browser.delete_all_cookies()
    owner.browser.switch_to.new_window("tab")
    owner.enter()
    owner.browser.switch_to.window(tab)
    owner.browser.execute_script("dispatchEvent(new Event('visibilitychange'))")  # A headless tab is always visible.
    eventually(lambda: token.get_property("value") != before)
    owner.click("Create")
    assert owner.notice == "“Evening” was created."


def test_ctrl_and_s_saves(owner):
    owner.fill("title", "Evening")
    owner.fill("content", "Words.")
    with owner.next_page():
        ActionChains(owner.browser).key_down(Keys.CONTROL).send_keys("s").key_up(Keys.CONTROL).perform()
    assert owner.notice == "“Evening” was created."


def test_the_preview_shows_what_is_typed_and_the_form_stays(owner):
    owner.fill("title", "Evening")
    owner.fill("content", "**Bold** <script>document.title = 'gone'</script>")
    previews = owner.browser.find_element(By.CSS_SELECTOR, "[data-preview]")
    previews.click()
    owner.browser.switch_to.frame(owner.browser.find_element(By.TAG_NAME, "iframe"))
    eventually(lambda: [each.text for each in owner.browser.find_elements(By.TAG_NAME, "strong")] == ["Bold"])
    assert "<script>" in owner.browser.find_element(By.TAG_NAME, "main").text
    owner.browser.switch_to.default_content()
    assert value(owner, "title") == "Evening"
    owner.click("Create")
    assert owner.notice == "“Evening” was created."


def test_tags_are_offered_for_the_last_one(owner):
    owner.service.request("POST", "/v1/posts", {"title": "A", "content": "B", "tags": ["travel", "rain, snow"]})
    owner.open("/settings/posts/new")
    owner.fill("tags", "hills, ")
    options = "return [...document.querySelectorAll('#known-tags option')].map(each => each.value)"
    assert owner.browser.execute_script(options) == ['hills, "rain, snow"', "hills, travel"]
    owner.browser.execute_script("document.querySelector('#tags').value = ''")


def test_dates_are_those_of_the_browsers_zone(owner):
    owner.browser.execute_cdp_cmd("Emulation.setTimezoneOverride", {"timezoneId": "America/New_York"})
    fields = {"title": "A", "content": "B", "status": "published", "published_at": "2026-01-02T03:04:05Z"}
    owner.service.request("POST", "/v1/posts", fields)
    owner.open("/settings/posts/1/edit")
    assert value(owner, "published_at") == "2026-01-01T22:04:05"
    assert "Date of publication (America/New_York)" in owner.text
    owner.fill("title", "B")
    owner.click("Save")
    assert owner.service.request("GET", "/v1/posts/1")[2]["published_at"] == "2026-01-02T03:04:05Z"
    assert "Jan 1, 2026, 10:04" in owner.text
    owner.open("/settings/posts/1/edit")
    owner.click("Tomorrow 8:00")
    assert value(owner, "published_at").endswith("T08:00")
