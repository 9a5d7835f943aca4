"""Typing in a real browser, on bad networks and two devices: nothing is lost, overwritten or misplaced."""

import os
import shutil
import signal
import tempfile
from contextlib import contextmanager

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service as ChromeService
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.owner.browser import Window
from tests.service import eventually

pytestmark = pytest.mark.slow
EDIT, NEW = "/settings/posts/1/edit", "/settings/posts/new"
OFFLINE = {"offline": True, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
FAST, SLOW = OFFLINE | {"offline": False}, OFFLINE | {"offline": False, "latency": 3000}
BAD_GATEWAY = "window.fetch = async () => new Response('<h1>Bad gateway</h1>', { status: 502 })"


@pytest.fixture
def window(window):
    """A window for the owner of a blog with a published post."""
    post = {"title": "Evening", "content": "One.", "status": "published"}
    window.service.request("POST", "/v1/posts", post)
    yield window
    network(window, FAST)


def network(window, conditions):
    window.browser.execute_cdp_cmd("Network.enable", {})
    window.browser.execute_cdp_cmd("Network.emulateNetworkConditions", conditions)


def stored(window):
    return window.service.request("GET", "/v1/posts/1")[2]["content"]


def titles(window):
    return [post["title"] for post in window.service.request("GET", "/v1/posts")[2]]


def said(window, text):
    """Wait until the bar says this."""
    eventually(lambda: text in window.browser.find_element(By.CSS_SELECTOR, ".bar").text, 60)


def has(window, content):
    """Wait until the form has this content."""
    script = "return document.readyState === 'complete' && document.querySelector('#content')?.value"
    eventually(
        lambda: window.browser.execute_script(script) == content, 60
    )  # with a latency of 3 s, also on a busy machine


@contextmanager
def another_tab(window):
    """Another tab or device, which loads a page of its own."""
    first = window.browser.current_window_handle
    window.browser.switch_to.new_window("tab")
    yield
    window.browser.switch_to.window(first)


@contextmanager
def another_device(window):
    """Another device, with its own session and storage: for a browser, this is another site."""
    with another_tab(window):
        window.url = window.url.replace("127.0.0.1", "localhost")
        window.browser.get(window.service.blogapi("login").stdout.strip().replace("127.0.0.1", "localhost"))
        window.click("Open")
        yield
        window.url = window.url.replace("localhost", "127.0.0.1")


def come_back(window):
    """Do what a tab does when it is shown again, because a headless one is always visible."""
    window.browser.execute_script("dispatchEvent(new Event('visibilitychange'))")


@pytest.mark.parametrize("conditions", [FAST, SLOW])
def test_text_typed_just_before_a_reload_survives_it_and_the_post_is_unchanged(window, conditions):
    window.open(EDIT)
    network(window, conditions)
    window.fill(content=" Two.")
    window.browser.refresh()
    has(window, "One. Two.")
    assert stored(window) == "One."
    window.click("Update")
    said(window, "Updated for readers")
    assert stored(window) == "One. Two."


def test_an_unsaved_new_post_can_be_found_by_its_address_and_in_the_list(window):
    window.open(NEW)
    window.fill(title="Bread", content="Rises.")
    window.browser.refresh()
    has(window, "Rises.")
    window.open("/settings/posts")
    assert titles(window) == ["Evening"]
    window.click("Bread")
    window.fill(content=" Slowly.")
    window.click("Save draft")
    said(window, "Saved")
    assert window.service.request("GET", "/v1/posts/2")[2]["content"] == "Rises. Slowly."
    window.open(NEW)
    assert "Not saved yet" not in window.text
    assert window.value("content") == ""


@pytest.mark.parametrize("way", ["Back", "close"])
def test_text_typed_just_before_leaving_the_page_is_kept(window, way):
    with another_tab(window):
        window.open(EDIT)
        window.fill(content=" Two.")
        if way == "close":
            window.browser.close()
        else:
            window.click("Back to the post")
    window.open("/settings/posts")
    eventually(lambda: window.browser.refresh() or "unsaved changes" in window.text)
    window.open(EDIT)
    assert "Unsaved changes from" in window.notice
    assert window.value("content") == "One. Two."
    window.click("Discard")
    assert window.value("content") == "One."
    window.click("Undo")
    assert window.value("content") == "One. Two."


def test_text_typed_without_a_pause_reaches_the_server_meanwhile(window):
    window.open(EDIT)
    content = window.browser.find_element(By.ID, "content")

    def is_there():
        content.send_keys("x")
        return "Kept" in window.browser.find_element(By.ID, "saving").text

    eventually(is_there)


def own_browser(folder):
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for argument in ("headless", "no-sandbox", "disable-gpu", "no-first-run", f"user-data-dir={folder}"):
        options.add_argument(f"--{argument}")
    return webdriver.Chrome(options, ChromeService(shutil.which("chromedriver")))


def test_killing_an_offline_browser_loses_no_more_than_the_last_second(window):
    words = " ".join(f"word{number}" for number in range(60))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        mine = Window(own_browser(folder), window.service)
        mine.enter()
        mine.open(EDIT)
        network(mine, OFFLINE)
        mine.fill(content=f" {words}")
        said(mine, "Not saved: there is no connection.")
        mine.browser.execute_async_script("setTimeout(arguments[0], 1000)")
        os.kill(process_of(mine.browser), signal.SIGKILL)
        mine.browser.service.stop()
        mine = Window(own_browser(folder), window.service)
        mine.enter()
        eventually(lambda: mine.browser.refresh() or "unsaved changes" in mine.text)
        mine.browser.quit()
    window.open(EDIT)
    assert window.value("content") == f"One. {words}"


def process_of(browser):
    """The process of a browser, found through the lock file of its profile."""
    lock = os.path.join(browser.capabilities["chrome"]["userDataDir"], "SingletonLock")
    return int(os.readlink(lock).rpartition("-")[2])


def test_the_text_continues_on_the_phone_and_back_on_the_laptop(window):
    window.open(EDIT)
    window.fill(content=" Laptop.")
    said(window, "Kept")
    with another_tab(window):
        window.open(EDIT)
        window.fill(content=" Phone.")
        said(window, "Kept")
    come_back(window)
    has(window, "One. Laptop. Phone.")


def test_if_two_devices_continue_the_same_text_neither_is_lost(window):
    window.open(EDIT)
    window.fill(content=" Both.")
    said(window, "Kept")
    network(window, OFFLINE)
    window.fill(content=" Laptop.")
    with another_device(window):
        window.open(EDIT)
        window.fill(content=" Phone.")
        said(window, "Kept")
    network(window, FAST)
    said(window, "You also wrote here on Chrome on Linux")
    window.browser.find_element(By.XPATH, "//button[.='Use this text']").click()
    said(window, "Kept")
    window.click("Update")
    said(window, "Updated for readers")
    assert stored(window) == "One. Both. Laptop."
    window.open("/settings/posts/1/history")
    window.click("Evening")
    assert window.value("content") == "One. Both. Phone."


def test_a_duplicated_tab_is_another_form(window):
    window.open(NEW)
    window.fill(title="Bread", content="Rises.")
    said(window, "Kept")
    address = window.browser.current_url
    with another_tab(window):
        window.browser.get(address)
        window.fill(content=" Slowly.")
        said(window, "Kept")
        window.click("Save draft")
        said(window, "Saved")
    come_back(window)
    eventually(lambda: window.browser.current_url.endswith("/settings/posts/2/edit"))
    has(window, "Rises. Slowly.")
    assert titles(window) == ["Bread", "Evening"]


@pytest.mark.parametrize("failure", ["away", "proxy", "session"])
def test_save_stays_on_the_page_while_the_server_does_not_answer(window, failure):
    window.open(EDIT)
    window.fill(content=" Two.")
    if failure == "away":
        network(window, OFFLINE)
    elif failure == "proxy":
        window.browser.execute_script(f"window.real = fetch; {BAD_GATEWAY}")
    else:
        window.browser.delete_all_cookies()
    window.browser.find_element(By.XPATH, "//button[.='Update']").click()
    said(window, "Not saved: ")
    assert (window.value("content"), stored(window)) == ("One. Two.", "One.")
    if failure == "session":
        with another_tab(window):
            window.enter()
    network(window, FAST)
    window.browser.execute_script("window.fetch = window.real ?? fetch")
    said(window, "Kept")  # It continues by itself.
    window.click("Update")
    said(window, "Updated for readers")
    assert stored(window) == "One. Two."


OBSERVE = """
window.texts = [];
for (const each of document.querySelectorAll("#said, .alarms")) {
  const note = () => each.textContent && texts.push(each.textContent);
  new MutationObserver(note).observe(each, { childList: true });
}
window.kept = 0;
const count = ({ target }) => (kept += target.textContent.startsWith("Kept"));
const saving = document.getElementById("saving");
new MutationObserver((changes) => changes.forEach(count)).observe(saving, { childList: true });
"""


def test_kept_and_failed_are_announced_once_each(window):
    window.open(EDIT)
    window.browser.execute_script(OBSERVE)
    for conditions, wanted in ((FAST, 2), (OFFLINE, 0), (FAST, 2)):
        network(window, conditions)
        window.browser.execute_script("kept = 0")
        for number in range(wanted):
            window.fill(content=" x")
            eventually(lambda number=number: window.browser.execute_script("return kept") > number, 20)
        if not wanted:
            window.fill(content=" x")
            said(window, "Not saved: there is no connection.")
    announced = window.browser.execute_script("return texts")
    assert [text.partition(" ")[0] for text in announced] == ["Kept", "Not", "Kept"]


@pytest.mark.parametrize("conditions", [FAST, SLOW])
def test_a_double_click_or_a_key_during_the_request_saves_a_post_only_once(window, conditions):
    window.open(NEW)
    network(window, conditions)
    window.fill(title="Bread", content="Rises.")
    press = "dispatchEvent(new KeyboardEvent('keydown', { key: 's', ctrlKey: true, cancelable: true }));"
    window.browser.execute_script(press * 2)
    said(window, "Saved")
    network(window, FAST)
    assert titles(window) == ["Bread", "Evening"]
    assert window.service.request("GET", "/v1/posts/2/revisions")[2] == []


def test_a_post_that_was_changed_elsewhere_is_not_overwritten(window):
    window.open(EDIT)
    window.service.request("PATCH", "/v1/posts/1", {"content": "Two.", "tags": ["a"]})
    window.fill(content=" Mine.")
    said(window, "This post was changed elsewhere, too.")
    with window.next_page():
        window.click("Update")
    assert "Not saved: the post was changed elsewhere, too" in window.text
    assert (stored(window), window.value("tags")) == ("Two.", "a")
    window.click("Update")
    said(window, "Updated for readers")
    assert stored(window) == "One. Mine."


def test_a_post_that_was_deleted_elsewhere_is_known_before_it_is_saved(window):
    window.open(EDIT)
    window.service.request("DELETE", "/v1/posts/1")
    window.fill(content=" Mine.")
    said(window, "This post was deleted elsewhere.")
    with window.next_page():
        window.click("Update")
    window.click("Save draft")
    said(window, "Saved")
    assert window.service.request("GET", "/v1/posts/2")[2]["content"] == "One. Mine."


def test_a_post_published_while_it_is_edited_is_changed_only_after_a_question(window):
    window.service.request("POST", "/v1/posts", {"title": "Bread", "content": "Rises."})
    window.open("/settings/posts/2/edit")
    window.fill(content=" Half a sen")
    window.service.request("PATCH", "/v1/posts/2", {"status": "published"})
    window.fill(content="t")
    said(window, "This post is live now.")
    assert window.browser.find_element(By.ID, "save").text == "Update"
    window.click("Update")
    said(window, "Readers see this post. Press the button again")
    assert window.service.request("GET", "/v1/posts/2")[2]["content"] == "Rises."
    window.fill(content="ence.")
    window.click("Update")
    said(window, "Updated for readers")
    post = window.service.request("GET", "/v1/posts/2")[2]
    assert (post["content"], post["status"]) == ("Rises. Half a sentence.", "published")


def test_a_text_that_another_one_replaces_is_told_at_once_and_can_be_compared(window):
    window.open(EDIT)
    network(window, OFFLINE)
    window.fill(content=" Laptop.")
    with another_device(window):
        other = window.browser.current_window_handle
        window.open(EDIT)
        window.fill(content=" Phone.")
        said(window, "Kept")
    network(window, FAST)
    said(window, "You also wrote here")
    window.browser.find_element(By.XPATH, "//button[.='Use this text']").click()
    said(window, "Kept")
    window.browser.switch_to.window(other)
    said(window, "You also wrote here")
    assert window.value("content") == "One. Phone."
    window.browser.find_element(By.XPATH, "//button[.='Compare']").click()
    eventually(lambda: len(window.browser.window_handles) == 3)
    window.browser.switch_to.window(window.browser.window_handles[-1])
    lines = "return [...document.querySelectorAll('del, ins')].map((each) => each.lastChild.textContent.trim())"
    eventually(lambda: window.browser.execute_script(lines) == ["One. Laptop.", "One. Phone."])


def test_save_keeps_the_caret_the_undo_and_the_address(window):
    window.open(NEW)
    window.fill(title="Bread", content="Rises slowly.")
    window.browser.execute_script("document.querySelector('#content').setSelectionRange(5, 5)")
    window.fill(content=(Keys.CONTROL, "s"))
    said(window, "Saved")
    assert window.browser.current_url.endswith("/settings/posts/2/edit")
    assert window.browser.execute_script("return document.querySelector('#content').selectionStart") == 5
    window.press("!")
    window.fill(content=(Keys.CONTROL, "s"))
    eventually(lambda: window.service.request("GET", "/v1/posts/2")[2]["content"] == "Rises! slowly.")
    window.browser.execute_script("document.execCommand('undo')")
    assert window.value("content") == "Rises slowly."
    window.click("Save draft")
    eventually(lambda: window.service.request("GET", "/v1/posts/2")[2]["content"] == "Rises slowly.")
    assert len(window.service.request("GET", "/v1/posts/2/revisions")[2]) == 2


def test_back_shows_the_post_as_it_is(window):
    window.open(EDIT)
    window.fill(content=" Mine.")
    window.click("Update")
    said(window, "Updated for readers")
    window.click("Back to the post")
    window.service.request("PATCH", "/v1/posts/1", {"content": "Two."})
    with window.next_page():
        window.browser.back()
    has(window, "Two.")


def test_enter_in_a_line_of_a_published_post_publishes_nothing(window):
    window.open(EDIT)
    window.fill(title=" falls")
    window.press(Keys.ENTER)
    said(window, "Kept")
    assert titles(window) == ["Evening"]


def test_text_that_the_server_refuses_stays_in_the_form_and_in_the_browser(window):
    window.open(EDIT)
    window.browser.execute_script("document.querySelector('#content').value = ('x'.repeat(99) + '\\n').repeat(42_000)")
    window.fill(content="y")
    said(window, "This text is only in this browser: the server refuses it. Save says why.")
    window.browser.refresh()
    eventually(lambda: len(window.value("content")) == 4_200_001)
    window.browser.execute_script("document.querySelector('#content').value = ''")
    window.fill(content="Short.")
    said(window, "Kept")
