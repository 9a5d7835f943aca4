"""Typing in a real browser, on bad networks, in two tabs and on two devices, never overwrites or loses text."""

import os
import signal
import tempfile

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.owner.browser import EDIT, IN_BOTH_BROWSERS, NEW, SCRIPTS, SLOW, Window
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
    window.update()
    assert window.stored() == "One. Two."


def test_a_reload_before_the_browser_can_store_anything_shows_what_was_sent_meanwhile(window):
    source = f"(() => {{ {SCRIPTS} slowStorage() }})()"
    window.browser.switch_to.new_window("tab")  # in which the script is also run after a reload
    window.browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": source})
    window.open(EDIT)
    window.fill(content=" Two.")
    window.browser.refresh()
    window.has("One. Two.")
    window.browser.execute_script("window.same = true")
    window.browser.execute_async_script("setTimeout(arguments[0], 1500)")
    assert window.browser.execute_script("return window.same")  # The page does not load again and again.


def test_a_reload_hands_over_text_that_was_neither_stored_nor_sent(window):
    window.open(EDIT)
    window.browser.execute_script("fetch = () => new Promise(() => {}); IDBObjectStore.prototype.put = () => ({})")
    window.fill(content=" Two.")
    window.browser.refresh()
    window.has("One. Two.")
    assert (window.text.count("Unsaved changes from"), "Unsaved changes from" in window.notice) == (1, True)


@pytest.mark.parametrize("way", ["Back", "close"])
def test_text_typed_just_before_leaving_the_page_is_kept_and_the_list_that_is_shown_again_says_so(window, way):
    window.open("/settings/posts")
    with window.another_tab():
        window.open(EDIT)
        window.fill(content=" Two.")
        if way == "close":
            window.browser.close()
        else:
            window.click("Post page")
            window.wait(lambda _: "Unsaved changes" in window.text, 20)
    window.browser.execute_script("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
    window.wait(lambda _: "unsaved changes" in window.text, 60)
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


def test_text_typed_without_a_pause_reaches_the_server_meanwhile_unless_that_does_not_answer(window):
    window.open(EDIT)
    content, said = (window.browser.find_element(By.ID, each) for each in ("content", "saving"))
    eventually(lambda: content.send_keys("x") or "Kept" in said.text)
    window.run("holdAll")
    eventually(lambda: content.send_keys("x") or said.text == "Kept in this browser, not on the server yet")
    window.browser.execute_script("release()")
    eventually(lambda: ", not in the post yet" in said.text)


def test_killing_an_offline_browser_loses_no_more_than_the_last_second_and_the_list_says_so(window):
    words = " ".join(f"word{number}" for number in range(20))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        mine = Window(window.browser.start(folder), window.service, window.url)
        mine.enter()
        for path in (EDIT, NEW):
            mine.browser.switch_to.new_window("tab")
            mine.open(path)
            mine.browser.offline()
            mine.fill(content=f" {words}")
            mine.said("Not saved: there is no connection.")
        mine.browser.execute_async_script("setTimeout(arguments[0], 1000)")
        os.kill(mine.browser.process, signal.SIGKILL)
        mine.browser.service.stop()
        mine = Window(window.browser.start(folder), window.service, window.url)
        mine.enter()
        for title, text in (("Evening", "One."), ("(No title)", "")):
            mine.open()
            mine.wait(lambda _: "unsaved changes" in mine.text and "(No title) word0 word1" in mine.text, 60)
            mine.browser.find_element(By.PARTIAL_LINK_TEXT, title).click()
            mine.has(f"{text} {words}")
            assert mine.browser.execute_script("return content.selectionEnd === content.textLength")  # the caret
        mine.browser.quit()


def test_kept_and_failed_are_announced_once_each(window):
    window.open(EDIT)
    window.run("watchAnnouncements")
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
    assert [text.split()[0] for text in window.browser.execute_script("return texts")] == ["Kept", "Not", "Kept"]


def continue_on_two_devices(window):
    """Continue the open text on the laptop, which is offline, and on a phone; use the laptop's text.

    Return the window of the phone, which stays offline: the page asks for newer text every ten seconds.
    """
    window.browser.offline()
    window.fill(content=" Laptop.")
    with window.another_device():
        phone = window.browser.current_window_handle
        window.open(EDIT)
        window.fill(content=" Phone.")
        window.send()
        window.browser.offline()
    window.browser.offline(False)
    window.said("You also wrote in another window (Chrome on Linux, ")
    window.browser.find_element(By.XPATH, "//button[.='Use this text']").click()
    window.said("Kept")
    return phone


def test_an_unsaved_new_post_survives_a_reload_and_continues_on_the_phone_and_back_on_the_laptop(window):
    window.open(NEW)
    window.fill(title="Bread", content="Rises.")
    window.browser.refresh()
    window.has("Rises.")
    window.click("Preview")
    with window.another_device():
        window.open("/settings/posts")
        assert window.titles == ["Evening"]
        window.click("Bread")
        window.fill(content=" Slowly.")
        window.send()
    window.come_back()
    window.has("Rises. Slowly.")
    eventually(lambda: "Slowly." in window.browser.find_element(By.CSS_SELECTOR, ".preview").text)  # It stays open.
    window.save()
    assert window.stored(2) == "Rises. Slowly."
    window.open(NEW)
    assert "Not saved yet" not in window.text
    assert window.value("content") == ""


def test_a_duplicated_tab_is_another_form(window):
    window.open(NEW)
    window.fill(title="Bread", content="Rises.")
    window.send()
    address = window.browser.current_url
    with window.another_tab():
        window.browser.get(address)
        window.fill(content=" Slowly.")
        window.save()
    window.come_back()
    eventually(lambda: window.browser.current_url.endswith("/settings/posts/2/edit"))
    window.has("Rises. Slowly.")
    assert window.titles == ["Bread", "Evening"]


def test_a_post_that_was_changed_elsewhere_is_not_overwritten(window):
    window.open(EDIT)
    window.service.request("PATCH", "/v1/posts/1", {"content": "Two.", "tags": ["a"]})
    window.fill(content=" Mine.")
    window.send("This post was also changed elsewhere.")
    for _ in range(2):  # Only a button beside the comparison chooses a version.
        with window.next_page():
            window.click("Update")
        window.said("Not saved: the post was also changed elsewhere")
        assert window.browser.switch_to.active_element.get_attribute("id") == "changed"
        assert (window.stored(), window.value("tags")) == ("Two.", "a")
    window.click("Use the other version")
    assert (window.value("content"), window.stored()) == ("Two.", "Two.")
    window.click("Undo")
    window.click("Compare")  # The comparison is not shown until the writer asks for it or saves.
    window.browser.find_element(By.XPATH, "//button[.='Save your version']").click()
    window.said("Updated for readers")
    assert (window.stored(), "elsewhere" in window.text) == ("One. Mine.", False)
    assert window.browser.switch_to.active_element.get_attribute("id") == "content"


@IN_BOTH_BROWSERS
def test_a_form_in_which_nothing_was_typed_takes_the_changed_post_once_its_writer_has_left_the_text(window):
    window.open(EDIT)
    window.browser.find_element(By.ID, "content").click()
    window.service.request("PATCH", "/v1/posts/1", {"content": "Two."})
    window.come_back()
    window.said("This post was also changed elsewhere.")
    window.browser.execute_script("document.activeElement.blur()")
    window.come_back()
    window.has("Two.")
    window.service.request("PATCH", "/v1/posts/1", {"content": "Three."})
    window.fill(tags="a")
    window.click("Update")
    window.said("Saved together with the changes made elsewhere")
    assert (window.value("content"), window.stored(), "undefined" in window.text) == ("Three.", "Three.", False)


def test_a_post_that_was_deleted_elsewhere_is_known_before_it_is_saved(window):
    window.open(EDIT)
    window.service.request("DELETE", "/v1/posts/1")
    window.fill(content=" Mine.")
    window.send("This post was deleted elsewhere.")
    window.service.request("POST", "/v1/trash/1/restore")
    window.come_back()
    eventually(lambda: "elsewhere" not in window.text)  # The post is as it was.
    window.service.request("DELETE", "/v1/posts/1")
    with window.next_page():
        window.click("Update")
    assert "Not saved, but nothing is lost" in window.text
    window.save()
    assert window.stored(2) == "One. Mine."


def test_a_form_in_which_nothing_was_typed_since_takes_the_text_that_was_used_instead_of_its_own(window):
    window.open(EDIT)
    window.browser.switch_to.window(continue_on_two_devices(window))
    window.browser.offline(False)
    window.come_back()
    window.has("One. Laptop.")
    window.said("This text has replaced yours, which is kept.")
    window.fill(content=" Phone.")
    window.send()
    with window.next_page():
        window.browser.find_element(By.LINK_TEXT, "Show the replaced text").click()
    assert window.run("changedLines") == ["One. Laptop. Phone.", "One. Phone."]
    window.click("Restore this text")
    assert window.value("content") == "One. Phone."
    window.fill(content=" Chosen.")
    window.update()
    assert window.stored() == "One. Phone. Chosen."


def test_the_other_text_is_shown_once_the_server_has_the_text_of_this_form_and_still_after_a_reload(window):
    window.open(EDIT)
    window.fill(content=" Laptop.")
    window.send()
    with window.another_device():
        window.open(EDIT)
        window.fill(content=" Phone.")
        window.send()
    window.run("select", -1)
    type_during_request = "dispatchEvent(new Event('visibilitychange')); document.execCommand('insertText', false, '!')"
    window.browser.execute_script(type_during_request)
    window.said("You also wrote in another window")
    link = window.browser.find_element(By.LINK_TEXT, "Show the other text").get_attribute("href")
    for _ in range(2):
        window.browser.refresh()
        window.said("There is another unsaved text")
    window.browser.get(link)
    assert window.run("changedLines") == ["One. Laptop. Phone.", "One. Laptop.!"]
    window.open(EDIT)
    window.has("One. Laptop. Phone.")
    with window.next_page():
        window.browser.find_element(By.LINK_TEXT, "Compare the two").click()
    window.click("Use the newer text, keep the older")
    assert (window.value("content"), "another unsaved text" in window.text) == ("One. Laptop.!", False)


def test_if_both_go_on_the_other_text_is_shown_and_either_can_be_used(window):
    window.open(EDIT)
    laptop, phone = window.browser.current_window_handle, continue_on_two_devices(window)
    window.browser.switch_to.window(phone)
    window.fill(content=" More.")
    window.browser.offline(False)
    window.said("You also wrote in another window")
    window.browser.find_element(By.ID, "save").click()
    eventually(lambda: "Not saved: first choose the text to keep." in window.text)
    window.browser.find_element(By.LINK_TEXT, "Show the other text").click()
    eventually(lambda: len(window.browser.window_handles) == 3)
    comparison = window.browser.window_handles[-1]
    window.browser.switch_to.window(comparison)
    eventually(lambda: window.run("changedLines") == ["One. Laptop.", "One. Phone. More."])
    assert window.browser.find_element(By.TAG_NAME, "h1").text == "Two unsaved texts"
    window.browser.switch_to.window(laptop)
    window.fill(content=" Again.")
    window.send()
    window.browser.switch_to.window(phone)
    window.come_back()
    window.said("The other text has changed again")
    window.browser.switch_to.window(comparison)
    window.click("Use the older text, keep the newer")
    assert window.value("content") == "One. Laptop. Again."
    window.browser.switch_to.window(phone)
    window.has("One. Laptop. Again.")


@IN_BOTH_BROWSERS
def test_a_passage_that_was_typed_over_is_two_clicks_away(window, axe):
    words = " ".join(f"word{number}" for number in range(20))
    window.open(EDIT)
    window.fill(content=f" {words}")
    window.fill(content=(Keys.CONTROL, "a"))  # before the server has these words
    window.press("x")
    window.send("Earlier text")
    with window.next_page():
        window.browser.find_element(By.LINK_TEXT, "Earlier text").click()
    assert window.browser.find_element(By.CSS_SELECTOR, ".text").text == f"One. {words}"
    assert "Restoring would add the green lines and remove the red ones from the text in the form" in window.text
    if window.browser.name == "chrome":
        window.check(axe)
    window.browser.execute_script("getSelection().selectAllChildren(document.querySelector('.diff'))")
    window.browser.find_element(By.TAG_NAME, "body").send_keys((Keys.CONTROL, "c"))
    window.click("Restore this text")
    window.fill(content=(Keys.CONTROL, "a", "v"))
    assert window.value("content").strip() == f"x\nOne. {words}"
    window.undo()
    assert window.value("content") == f"One. {words}"
    window.update()
    window.fill(content=(Keys.CONTROL, "a"))
    window.press("y")
    window.send("Show the post’s text")
    with window.next_page():
        window.browser.find_element(By.LINK_TEXT, "Show the post’s text").click()
    window.click("Discard")
    assert window.value("content") == f"One. {words}"
