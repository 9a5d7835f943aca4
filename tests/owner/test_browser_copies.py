"""Typing in a real browser, on bad networks: nothing is lost."""

import os
import signal
import tempfile

import pytest
from selenium.webdriver.common.by import By

from tests.owner.browser import EDIT, NEW, SLOW, Window
from tests.service import eventually

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("evening")]


@pytest.mark.parametrize("conditions", [{"is_offline": False}, SLOW])
def test_text_typed_just_before_a_reload_survives_it_and_the_post_is_unchanged(window, conditions):
    window.open(EDIT)
    window.browser.offline(**conditions)
    window.fill(content=" Two.")
    window.browser.refresh()
    window.has("One. Two.")
    assert window.stored() == "One."
    window.click("Update")
    window.said("Updated for readers")
    assert window.stored() == "One. Two."


SLOW_STORAGE = """
const { open } = IDBFactory.prototype;
IDBFactory.prototype.open = function (...given) {
  const [opening, late] = [open.apply(this, given), {}];
  opening.onsuccess = () => setTimeout(() => (late.result = opening.result) && late.onsuccess(), 1000);
  return late;
};
"""


def test_a_reload_before_the_browser_can_store_anything_shows_what_was_sent_meanwhile(window):
    window.browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": SLOW_STORAGE})
    window.open(EDIT)
    window.fill(content=" Two.")
    window.browser.refresh()
    window.has("One. Two.")
    window.browser.execute_script("window.same = true")
    window.browser.execute_async_script("setTimeout(arguments[0], 1500)")
    assert window.browser.execute_script("return window.same")  # The page does not load again and again.


def test_an_unsaved_new_post_can_be_found_by_its_address_and_in_the_list(window):
    window.open(NEW)
    window.fill(title="Bread", content="Rises.")
    window.browser.refresh()
    window.has("Rises.")
    window.open("/settings/posts")
    assert window.titles == ["Evening"]
    window.click("Bread")
    window.fill(content=" Slowly.")
    window.click("Save draft")
    window.said("Saved")
    assert window.stored(2) == "Rises. Slowly."
    window.open(NEW)
    assert "Not saved yet" not in window.text
    assert window.value("content") == ""


@pytest.mark.parametrize("way", ["Back", "close"])
def test_text_typed_just_before_leaving_the_page_is_kept(window, way):
    with window.another_tab():
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
    window.fill(content=" Three.")
    window.click("Discard")
    window.click("Undo")
    assert window.value("content") == "One. Two. Three."


def test_text_typed_without_a_pause_reaches_the_server_meanwhile(window):
    window.open(EDIT)
    content = window.browser.find_element(By.ID, "content")

    def is_there():
        content.send_keys("x")
        return "Kept" in window.browser.find_element(By.ID, "saving").text

    eventually(is_there)


def test_killing_an_offline_browser_loses_no_more_than_the_last_second(window):
    words = " ".join(f"word{number}" for number in range(60))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        mine = Window(window.browser.start(folder), window.service, window.url)
        mine.enter()
        mine.open(EDIT)
        mine.browser.offline()
        mine.fill(content=f" {words}")
        mine.said("Not saved: there is no connection.")
        mine.browser.execute_async_script("setTimeout(arguments[0], 1000)")
        os.kill(mine.browser.process, signal.SIGKILL)
        mine.browser.service.stop()
        mine = Window(window.browser.start(folder), window.service, window.url)
        mine.enter()
        mine.open()
        eventually(lambda: mine.browser.refresh() or "unsaved changes" in mine.text)
        mine.browser.quit()
    window.open(EDIT)
    assert window.value("content") == f"One. {words}"


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
    for wanted in (2, 0, 1):
        window.browser.offline(not wanted)
        window.browser.execute_script("kept = 0")
        for number in range(wanted):
            window.fill(content=" x")
            window.send("")
            eventually(lambda number=number: window.browser.execute_script("return kept") > number, 20)
        if not wanted:
            window.fill(content=" x")
            window.send("Not saved: there is no connection.")
    announced = window.browser.execute_script("return texts")
    assert [text.partition(" ")[0] for text in announced] == ["Kept", "Not", "Kept"]
