"""Posts on the owner's page in a real browser: with the keyboard alone, by two at once, and for everybody."""

import subprocess
import sys

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.service import CHECKOUT

pytestmark = pytest.mark.slow


@pytest.fixture
def owner(window):
    window.enter()
    return window


def get(owner, path="/v1/posts/1"):
    return owner.service.request("GET", path)[2]


def test_a_post_is_written_scheduled_published_deleted_and_restored_with_the_keyboard(owner):
    owner.follow("Posts")
    owner.follow("New post")
    owner.press("Hello")  # The title has the focus.
    owner.reach("Content, in Markdown")
    owner.press("First line.", Keys.ENTER, "Second: 🧁 & <b>.")
    owner.reach("Tags")
    owner.press('One, "Two, three"')
    owner.follow("Create")
    assert owner.notice == "“Hello” was created."
    post = get(owner)
    assert (post["content"], post["tags"]) == ("First line.\nSecond: 🧁 & <b>.", ["One", "Two, three"])
    owner.reach("Schedule Hello")
    owner.press(Keys.ENTER)
    owner.reach(f"Publish on ({owner.zone})")
    owner.press("01022031", Keys.TAB, "0304PM")
    owner.follow("Schedule Hello")
    assert owner.notice.startswith("“Hello” is scheduled now.")
    assert get(owner).items() >= {"status": "scheduled", "published_at": "2031-01-02T15:04:00Z"}.items()
    owner.follow("Publish now Hello")
    assert get(owner)["status"] == "published"
    owner.follow("Undo Hello")
    assert get(owner)["published_at"] == "2031-01-02T15:04:00Z"
    owner.reach("Delete Hello")
    owner.press(Keys.ENTER)
    owner.follow("Yes, delete Hello")
    assert owner.notice.startswith("“Hello” is in the trash.")
    assert get(owner, "/v1/posts") == []
    owner.follow("trash")
    owner.follow("Hello")
    owner.follow("Restore Hello")
    assert (owner.notice.startswith("“Hello” was restored."), get(owner)["content"]) == (True, post["content"])


def test_a_double_click_creates_one_post(owner):
    for script in (False, True):
        owner.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not script})
        owner.open("/settings/posts/new")
        owner.fill("title", "Hello")
        owner.fill("content", "Words.")
        with owner.next_page():
            owner.double_click("Create")
    assert [post["title"] for post in get(owner, "/v1/posts")] == ["Hello", "Hello"]


@pytest.mark.parametrize("with_scripts", [True, False])
def test_a_double_click_creates_one_key_and_shows_it(owner, with_scripts):
    owner.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not with_scripts})
    owner.open("/settings/keys")
    owner.fill("name", "laptop")
    with owner.next_page():
        owner.double_click("Create key")
    owner.service.key = owner.shown[0]
    assert owner.service.request("GET", "/v1/posts")[0] == 200


def test_a_post_that_two_change_at_once_keeps_both_versions_until_one_is_chosen(owner):
    owner.service.request("POST", "/v1/posts", {"title": "Hello", "content": "One.\nTwo.\n"})
    owner.open("/settings/posts/1/edit")
    first = owner.browser.current_window_handle
    owner.browser.switch_to.new_window("tab")
    owner.open("/settings/posts/1/edit")
    owner.fill("content", "Theirs.")
    owner.click("Save")
    owner.browser.switch_to.window(first)
    owner.fill("content", "Mine.")
    owner.click("Save")
    assert "the post was changed elsewhere" in owner.text
    assert get(owner)["content"] == "One.\nTwo.\nTheirs."
    assert [each.text.split() for each in owner.changes] == [["removed:", "Theirs."], ["added:", "Mine."]]
    owner.click("Save")
    assert (owner.notice.partition(".")[0], get(owner)["content"]) == ("“Hello” was saved", "One.\nTwo.\nMine.")


def test_a_version_is_gone_back_to_with_the_keyboard(owner):
    owner.service.request("POST", "/v1/posts", {"title": "Hello", "content": "One.\nTwo.\n"})
    owner.service.request("PATCH", "/v1/posts/1", {"content": "One.\n2.\n"})
    owner.open("/settings/posts/1")
    owner.follow("History")
    owner.follow("Hello")
    assert [each.text.split() for each in owner.changes] == [["removed:", "Two."], ["added:", "2."]]
    owner.follow("Restore this version")
    assert (owner.notice.partition(".")[0], get(owner)["content"]) == ("“Hello” is as it was", "One.\nTwo.\n")


def test_a_megabyte_opens_and_saves(owner):
    content = "Привет, мир.\n🧁 & <b>\n" * 45_000
    owner.service.request("POST", "/v1/posts", {"title": "Hello", "content": content})
    owner.open("/settings/posts/1/edit")
    owner.fill("title", " again")
    owner.click("Save")
    assert get(owner)["title"] == "Hello again"
    assert get(owner)["content"] == content


def type_long_post(owner, length):
    """Type a new post; return its fields."""
    owner.open("/settings/posts/new")
    typed = {"title": "Hello", "slug": "hi", "cover_image": "https://example.org/a.jpg", "content": "x", "tags": "a"}
    for name, text in typed.items():
        owner.fill(name, text)
    owner.browser.execute_script(f"document.querySelector('#content').value += 'y'.repeat({length})")
    return typed | {"content": "x" + "y" * length}


def shown_after_going_back(owner, names):
    with owner.next_page():
        owner.browser.back()
    return {name: owner.browser.find_element(By.NAME, name).get_property("value") for name in names}


@pytest.mark.parametrize("with_scripts", [True, False])
def test_a_post_that_is_too_long_is_still_there_after_going_back(owner, with_scripts):
    typed = type_long_post(owner, 5_000_000)
    owner.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not with_scripts})
    owner.click("Create")
    assert owner.text.startswith(
        "Too long\nThis is too long to be saved: a post can have 1,000,000 characters.\nGo back"
    )
    assert shown_after_going_back(owner, typed) == typed


def test_a_long_post_is_still_there_after_the_end_of_a_session(owner):
    typed = type_long_post(owner, 2_000_000)
    owner.browser.delete_all_cookies()
    owner.click("Create")
    assert owner.text.endswith(
        "Open the link in another tab, then go back in your browser: what you typed is still there."
    )
    first = owner.browser.current_window_handle
    owner.browser.switch_to.new_window("tab")
    owner.enter()
    owner.browser.switch_to.window(first)
    assert shown_after_going_back(owner, typed) == typed


def test_the_reference_and_the_page_lead_to_each_other(owner):
    owner.click("API reference")
    assert owner.browser.current_url == f"{owner.url}/docs"
    owner.click("Owner’s page")
    assert owner.browser.current_url == f"{owner.url}/settings/posts"


def test_nobody_is_kept_out_and_nothing_scrolls_sideways(owner, axe):
    owner.open("/settings/posts")
    owner.check(axe)
    for title in ("W" * 255, "\u202e" + "🧁" * 254, "<b>"):
        fields = {"title": title, "content": "x" * 500 + "\n\n" + title, "excerpt": "y" * 500, "tags": ["x" * 64]}
        owner.service.request("POST", "/v1/posts", fields | {"cover_image": "https://example.org/" + "a" * 300})
    for path in ("/settings", "/settings/posts/1", "/settings/posts/2/edit", "/settings/posts/new"):
        owner.open(path)
        owner.check(axe)
    owner.fill("title", "A")
    owner.fill("content", "B")
    owner.fill("slug", "Not a slug")
    owner.click("Create")
    owner.check(axe)
    owner.open("/settings/posts/1/edit")
    owner.service.request("PATCH", "/v1/posts/1", {"content": "z" * 500})
    owner.click("Save")
    owner.check(axe)
    owner.service.request("DELETE", "/v1/posts/2")
    for path in ("/settings/posts/1/history", "/settings/posts/1/history/1", "/settings/trash", "/settings/trash/2"):
        owner.open(path)
        owner.check(axe)


def test_the_pictures_of_the_documentation_can_be_taken_again(tmp_path, browser):
    script = [sys.executable, CHECKOUT / "docs/pictures.py", tmp_path]
    subprocess.run(script, check=True, timeout=60)
    taken = {picture.name for picture in tmp_path.glob("*.png")}
    assert taken == {picture.name for picture in (CHECKOUT / "docs/pictures").iterdir()}
