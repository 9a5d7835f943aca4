"""Writing in two tabs, on two devices or over the API at the same time: no text is overwritten or lost."""

import pytest
from selenium.webdriver.common.by import By

from tests.owner.browser import EDIT, IN_BOTH_BROWSERS, NEW
from tests.service import eventually

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("evening")]


def continue_on_two_devices(window):
    """Continue the open text on the laptop, which is offline, and on a phone; use that of the laptop.

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
    window.said("You also wrote here (Chrome on Linux, ")
    window.browser.find_element(By.XPATH, "//button[.='Use this text']").click()
    window.said("Kept")
    return phone


def test_the_text_continues_on_the_phone_and_back_on_the_laptop(window):
    window.open(EDIT)
    window.fill(content=" Laptop.")
    window.send()
    with window.another_tab():
        window.open(EDIT)
        window.fill(content=" Phone.")
        window.send()
    window.come_back()
    window.has("One. Laptop. Phone.")


def test_if_two_devices_continue_the_same_text_neither_is_lost(window):
    window.open(EDIT)
    window.fill(content=" Both.")
    window.send()
    continue_on_two_devices(window)
    window.click("Update")
    window.said("Updated for readers")
    assert window.stored() == "One. Both. Laptop."
    window.open("/settings/posts/1/history")
    window.click("Content (1 word added, 1 word removed)")
    assert window.value("content") == "One. Both. Phone."


def test_a_new_post_continues_on_the_phone_and_back_on_the_laptop(window):
    window.open(NEW)
    window.fill(title="Bread", content="Rises.")
    window.send()
    with window.another_device():
        window.open("/settings/posts")
        window.click("Bread")
        window.fill(content=" Slowly.")
        window.send()
    window.come_back()
    window.has("Rises. Slowly.")
    window.click("Save draft")
    window.said("Saved")
    assert window.stored(2) == "Rises. Slowly."


def test_a_duplicated_tab_is_another_form(window):
    window.open(NEW)
    window.fill(title="Bread", content="Rises.")
    window.send()
    address = window.browser.current_url
    with window.another_tab():
        window.browser.get(address)
        window.fill(content=" Slowly.")
        window.click("Save draft")
        window.said("Saved")
    window.come_back()
    eventually(lambda: window.browser.current_url.endswith("/settings/posts/2/edit"))
    window.has("Rises. Slowly.")
    assert window.titles == ["Bread", "Evening"]


def test_a_post_that_was_changed_elsewhere_is_not_overwritten(window):
    window.open(EDIT)
    window.service.request("PATCH", "/v1/posts/1", {"content": "Two.", "tags": ["a"]})
    window.fill(content=" Mine.")
    window.send("This post was changed elsewhere, too.")
    with window.next_page():
        window.click("Update")
    assert "Not saved: the post was changed elsewhere, too" in window.text
    assert (window.stored(), window.value("tags")) == ("Two.", "a")
    window.click("Update")
    window.said("Updated for readers")
    assert window.stored() == "One. Mine."


@IN_BOTH_BROWSERS
def test_a_form_in_which_nothing_was_typed_takes_the_changed_post_once_its_writer_has_left_the_text(window):
    window.open(EDIT)
    window.browser.find_element(By.ID, "content").click()
    window.service.request("PATCH", "/v1/posts/1", {"content": "Two."})
    window.come_back()
    window.said("This post was changed elsewhere, too.")
    window.browser.execute_script("document.activeElement.blur()")
    window.come_back()
    window.has("Two.")


def test_a_post_that_was_deleted_elsewhere_is_known_before_it_is_saved(window):
    window.open(EDIT)
    window.service.request("DELETE", "/v1/posts/1")
    window.fill(content=" Mine.")
    window.send("This post was deleted elsewhere.")
    with window.next_page():
        window.click("Update")
    window.click("Save draft")
    window.said("Saved")
    assert window.stored(2) == "One. Mine."


def test_a_post_published_while_it_is_edited_is_changed_only_after_a_question(window):
    window.service.request("POST", "/v1/posts", {"title": "Bread", "content": "Rises."})
    window.open("/settings/posts/2/edit")
    window.fill(content=" Half a sen")
    window.send()
    published = {"status": "published", "published_at": "2020-01-02T03:04:05Z"}
    window.service.request("PATCH", "/v1/posts/2", published)
    window.fill(content="t")
    window.send("This post is live now.")
    with window.next_page():
        window.click("Save draft")
    assert "Not saved: this post is live now. Update shows readers the text below." in window.text
    assert window.stored(2) == "Rises."
    window.fill(content="ence.")
    window.click("Update")
    window.said("Updated for readers")
    window.fill(content=" More.")
    window.click("Update")
    eventually(lambda: window.stored(2) == "Rises. Half a sentence. More.")
    assert window.browser.current_url.endswith("/settings/posts/2/edit")
    assert window.service.request("GET", "/v1/posts/2")[2].items() >= published.items()


def test_a_form_in_which_nothing_was_typed_since_takes_the_text_that_was_used_instead_of_its_own(window):
    window.open(EDIT)
    window.browser.switch_to.window(continue_on_two_devices(window))
    window.browser.offline(False)
    window.come_back()
    window.has("One. Laptop.")
    window.fill(content=" Phone.")
    window.send()


def test_if_both_go_on_the_other_text_is_shown_and_either_can_be_used(window):
    window.open(EDIT)
    phone = continue_on_two_devices(window)
    window.browser.switch_to.window(phone)
    window.fill(content=" More.")
    window.browser.offline(False)
    window.said("You also wrote here")
    window.browser.find_element(By.XPATH, "//button[.='Show the other text']").click()
    eventually(lambda: len(window.browser.window_handles) == 3)
    window.browser.switch_to.window(window.browser.window_handles[-1])
    shown = "[...document.querySelectorAll('del, ins')].map((each) => each.textContent.replace(/^\\w+: /, '').trim())"
    lines = f"return {shown}"
    eventually(lambda: window.browser.execute_script(lines) == ["One. Laptop.", "One. Phone. More."])
    window.click("Use the other text")
    assert window.value("content") == "One. Laptop."
    window.browser.switch_to.window(phone)
    window.has("One. Laptop.")
