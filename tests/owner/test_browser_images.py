"""Images on the owner's page in a real browser: chosen, pasted and dropped."""

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.images.pictures import photograph, save
from tests.service import eventually

pytestmark = pytest.mark.slow
# The file of the form, as a paste or a drop has it; nothing else can put a file on the clipboard of a test.
EVENT = """
const data = new DataTransfer();
data.items.add(document.getElementById("file").files[0]);
const [target, kind] = [document.getElementById("content"), arguments[0]];
const options = { bubbles: true, cancelable: true };
target.dispatchEvent(
  kind === "paste"
    ? new ClipboardEvent(kind, { ...options, clipboardData: data })
    : new DragEvent(kind, { ...options, dataTransfer: data }));
"""


@pytest.fixture
def owner(window):
    window.enter()
    return window


@pytest.fixture
def loaf(tmp_path):
    """The file of a photograph."""
    path = tmp_path / "loaf.jpg"
    path.write_bytes(save(photograph(), "JPEG"))
    return path


def content(owner):
    return owner.browser.find_element(By.NAME, "content").get_property("value")


def is_shown(owner):
    """Whether all images of the page were loaded."""
    script = "return [...document.querySelectorAll('main img')].every(each => each.complete && each.naturalWidth > 0)"
    return owner.browser.execute_script(script)


def test_an_image_is_chosen_pasted_and_dropped_where_the_cursor_is(owner, loaf):
    owner.open("/settings/posts/new")
    owner.fill("title", "Bread")
    owner.fill("content", "Before.\n\n\n\nAfter.")
    owner.press(Keys.UP, Keys.UP, Keys.END)
    owner.fill("file", str(loaf))
    owner.browser.find_element(By.CSS_SELECTOR, "button[form=upload]").click()
    eventually(lambda: "loaf.jpg was added." in owner.text)
    (image,) = owner.service.request("GET", "/v1/images")[2]
    markdown = f"![loaf]({image['url']})"
    assert content(owner) == f"Before.\n\n{markdown}\n\nAfter."
    for number, kind in enumerate(("paste", "drop"), 2):
        owner.browser.find_element(By.NAME, "content").send_keys(" ")
        owner.browser.execute_script(EVENT, kind)
        eventually(lambda number=number: content(owner).count(markdown) == number)
    owner.click("Create")
    post = owner.service.request("GET", "/v1/posts/1")[2]
    assert post["content"].split() == ["Before.", markdown, "After.", markdown, markdown]
    assert [entry["message"] for entry in owner.browser.get_log("browser")] == []


def test_a_file_that_is_no_image_is_refused_and_nothing_typed_is_lost(owner, tmp_path):
    (tmp_path / "a.jpg").write_text("Hello")
    owner.open("/settings/posts/new")
    owner.fill("content", "Words.")
    owner.fill("file", str(tmp_path / "a.jpg"))
    owner.browser.execute_script(EVENT, "drop")
    eventually(lambda: "File: must be a JPEG, PNG, GIF, WebP or AVIF image." in owner.text)
    assert content(owner) == "Words."


def test_without_scripts_an_upload_opens_its_own_page(owner, loaf):
    owner.browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    owner.open("/settings/posts/new")
    owner.fill("content", "Words.")
    owner.fill("file", str(loaf))
    first = owner.browser.current_window_handle
    owner.browser.find_element(By.CSS_SELECTOR, "button[form=upload]").click()
    eventually(lambda: len(owner.browser.window_handles) == 2)
    (other,) = {*owner.browser.window_handles} - {first}
    owner.browser.switch_to.window(other)
    eventually(lambda: "was uploaded." in owner.text)
    assert "![loaf](http" in owner.text
    owner.browser.close()
    owner.browser.switch_to.window(first)
    assert content(owner) == "Words."


def test_the_pages_of_images_are_for_everybody(owner, loaf, axe):
    owner.open("/settings/images")
    owner.check(axe)
    owner.fill("file", str(loaf))
    owner.click("Upload")
    owner.check(axe)
    assert is_shown(owner)
    url = owner.service.request("GET", "/v1/images")[2][0]["url"]
    owner.service.request("POST", "/v1/posts", {"title": "A", "content": f"![]({url})", "cover_image": url})
    for path in (owner.browser.current_url.removeprefix(owner.url), "/settings/images", "/settings/posts/1/edit"):
        owner.open(path)
        eventually(lambda: is_shown(owner))
        owner.check(axe)
