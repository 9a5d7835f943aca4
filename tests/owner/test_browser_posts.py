"""Posts on the owner's page in a real browser: with the keyboard alone, by two people at once, and accessible."""

import subprocess
import sys

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.cases import cases
from tests.service import CHECKOUT, eventually

pytestmark = pytest.mark.slow


def get(window, path="/v1/posts/1"):
    return window.service.request("GET", path)[2]


def test_a_post_is_written_scheduled_printed_published_deleted_and_restored_with_the_keyboard(window):
    window.open()
    window.follow("Posts")
    window.follow("New post")
    window.press("Hello")  # The title has the focus.
    window.reach("Content, in Markdown")
    window.press("First line.", Keys.ENTER, "Second: 🧁 & <b>.")
    window.reach("Tags")
    window.press('One, "Two, three"')
    window.reach("Save draft")
    window.press(Keys.ENTER)
    eventually(lambda: "Saved" in window.text)
    post = get(window)
    assert (post["content"], post["tags"]) == ("First line.\nSecond: 🧁 & <b>.", ["One", "Two, three"])
    window.reach("Publish…")
    window.press(Keys.ENTER)
    window.reach(window.browser.find_element(By.CSS_SELECTOR, "[for=published_at]").text)
    window.press("01022031", Keys.TAB, "0304PM")
    window.follow("Schedule")
    assert window.notice.startswith("“Hello” is now scheduled. Readers will see it on Jan 2, 2031, 3:04")
    assert get(window).items() >= {"status": "scheduled", "published_at": "2031-01-02T15:04:00Z"}.items()
    window.browser.show(medium="print")
    pressed = window.browser.find_elements(By.CSS_SELECTOR, "button, .button, summary, header, footer")
    assert ([each for each in pressed if each.is_displayed()], "First line." in window.text) == ([], True)
    window.browser.show()
    window.reach("Publish or reschedule Hello")
    window.press(Keys.ENTER)
    window.follow("Publish now")
    assert get(window)["status"] == "published"
    window.follow("Undo Hello")
    assert get(window)["published_at"] == "2031-01-02T15:04:00Z"
    window.reach("Delete Hello")
    window.press(Keys.ENTER)
    assert window.browser.switch_to.active_element.accessible_name == "Cancel"
    window.follow("Yes, delete Hello")
    assert window.notice.startswith("“Hello” is in the trash.")
    assert get(window, "/v1/posts") == []
    window.follow("trash")
    window.follow("Restore Hello")
    assert (window.notice.startswith("“Hello” was restored."), get(window)["content"]) == (True, post["content"])


@cases(
    ("length", "has_session", "told"),
    (1_400_000, True, "Too long\nThis is too long to save: a post can be at most 1,000,000 characters long.\nGo back"),
    (100_000, False, "Open the link in another tab, then go back in your browser: most browsers keep what you typed."),
)
def test_without_scripts_a_long_post_that_is_not_saved_is_still_there_after_going_back(
    window, length, has_session, told
):
    window.browser.run_scripts(False)
    window.open("/settings/posts/new")
    typed = {"title": "Hello", "slug": "hi", "cover_image": "https://example.org/a.jpg", "content": "x", "tags": "a"}
    window.fill(**typed)
    window.browser.execute_script(f"document.querySelector('#content').value += '€'.repeat({length})")
    if not has_session:
        window.browser.delete_all_cookies()
    with window.next_page():
        window.click("Save draft")
    assert told in window.text
    with window.another_tab():
        window.enter()
    with window.next_page():
        window.browser.back()
    assert {name: window.value(name) for name in typed} == typed | {"content": "x" + "€" * length}


def test_posts_are_accessible_and_never_scroll_sideways(window, axe):
    window.browser.bypass_policies()  # Previews allow no scripts.
    window.check_each(axe, "/settings/posts")
    for title in ("W" * 255, "\u202e" + "🧁" * 254, "<b>"):
        table = f"|{'a|' * 99}\n|{'-|' * 99}"
        texts = ["x" * 500, title, "- [x] a[^1]", f"`{'y' * 500}`", f"    {'z' * 500}", table, "[^1]: Note"]
        fields = {"title": title, "content": "\n\n".join(texts), "excerpt": "y" * 500, "tags": ["x" * 64]}
        fields |= {"cover_image": "https://example.org/" + "a" * 300, "params": {"url": "b c" * 300}}
        window.service.request("POST", "/v1/posts", fields)
    window.check_each(axe, "/settings", "/settings/posts/1", "/settings/posts/2/edit", "/settings/posts/new")
    window.open("/settings/tags")
    window.click(f"Rename {'x' * 64}")
    window.check(axe)
    window.open("/settings/posts/1")
    window.click(f"Share a preview {'W' * 255}")
    window.check(axe)
    window.browser.get(window.shown[0])
    window.check(axe)
    window.open("/settings/posts/new")
    window.fill(title="A", content="B", slug="日本")
    window.click("Save draft")
    window.said("Not saved")
    window.check(axe)
    window.open("/settings/posts/1/edit")
    window.fill(content="y")
    window.service.request("PATCH", "/v1/posts/1", {"content": "z" * 500})
    with window.next_page():
        window.click("Save draft")
    window.check(axe)
    window.service.request("DELETE", "/v1/posts/2")
    history = "/settings/posts/1/history"
    window.check_each(axe, history, f"{history}/1", "/settings/trash", "/settings/trash/2")


@pytest.mark.usefixtures("soak")
def test_the_pictures_in_the_documentation_can_be_renewed(tmp_path, browser):
    script = [sys.executable, CHECKOUT / "docs/pictures.py", tmp_path]
    subprocess.run(script, check=True, timeout=180)
    taken = {picture.name for picture in tmp_path.glob("*.png")}
    assert taken == {picture.name for picture in (CHECKOUT / "docs/pictures").iterdir()}
