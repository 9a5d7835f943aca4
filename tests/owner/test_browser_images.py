"""Images on the owner's page in a real browser: chosen, pasted and dropped."""

import re

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.images.pictures import exif, photograph, save
from tests.owner.browser import IN_BOTH_BROWSERS
from tests.service import eventually

pytestmark = pytest.mark.slow


@pytest.fixture
def loaf(tmp_path):
    """A photograph as a file."""
    path = tmp_path / "loaf.jpg"
    path.write_bytes(save(photograph(), "JPEG"))
    path.with_name("IMG_0123.png").write_bytes(save(photograph(), "PNG"))
    return path


def test_images_are_chosen_pasted_and_dropped_where_the_cursor_is_each_on_a_line_of_its_own(window, loaf):
    window.open("/settings/posts/new")
    window.fill(file=str(loaf.with_name("IMG_0123.png")))
    window.said("IMG_0123.png was added. Describe the image in the [ ].")
    window.press("Rye", Keys.ENTER, "Below.")
    assert re.fullmatch(r"!\[Rye\]\(http\S+\)\n\nBelow\.", window.value("content"))
    window.fill(content=(Keys.CONTROL, "a", Keys.DELETE))
    window.run("rememberChosenFile")
    window.fill(file=str(loaf))
    eventually(lambda: "![loaf]" in window.value("content"))
    window.run("sendChosenFile", "drop", 2)
    eventually(lambda: window.value("content").count("![loaf]") == 3)
    first, second, third, rest = window.value("content").split("\n\n")
    assert (first == second == third, rest) == (True, "")
    window.fill(title="Bread", content=(Keys.CONTROL, "a"))
    window.press("Before.\n\n\n\nAfter.", Keys.UP, Keys.UP, Keys.END)
    window.fill(file=str(loaf))
    image = next(each for each in window.service.request("GET", "/v1/images")[2] if each["name"] == "loaf.jpg")
    markdown = f"![loaf]({image['url']})"
    eventually(lambda: window.value("content") == f"Before.\n\n{markdown}\n\n\n\nAfter.")
    for number, kind in enumerate(("paste", "drop"), 2):
        window.run("select", -1)
        window.run("sendChosenFile", kind)
        eventually(lambda number=number: window.value("content").count(markdown) == number)
    window.save()
    post = window.service.request("GET", "/v1/posts/1")[2]
    assert post["content"].split() == ["Before.", markdown, markdown, "After.", markdown]
    assert window.browser.problems() == []


def test_a_slow_upload_keeps_its_place_while_the_writer_continues_and_save_waits_for_it(window, loaf):
    window.open("/settings/posts/new")
    window.fill(title="Bread", content="Before. After.")
    window.run("slowUploads")
    window.run("select", 7)
    window.fill(file=str(loaf))
    window.run("select", 7)
    window.press(" Meanwhile.")
    window.save()
    url = window.service.request("GET", "/v1/images")[2][0]["url"]
    post = window.service.request("GET", "/v1/posts/1")[2]
    assert post["content"] == f"Before. Meanwhile. After.\n\n![loaf]({url})"


@IN_BOTH_BROWSERS
def test_an_image_above_the_caret_does_not_move_its_line_and_one_at_the_caret_is_in_view(window, loaf):
    text = "\n\n".join(f"Paragraph {number} of a long day." for number in range(100))
    window.service.request("POST", "/v1/posts", {"title": "Bread", "content": text})
    window.open("/settings/posts/1/edit")
    end = "const { top } = content.getBoundingClientRect(); return top + content.scrollHeight - content.scrollTop"
    bar = "return document.querySelector('.bar').getBoundingClientRect().top"
    window.run("putCaretBefore", " of a long day.\n\nParagraph 51")
    window.press(Keys.RIGHT)
    long = loaf.with_name("IMG_0123.png").rename(loaf.with_name("loaf-" * 40 + ".png"))  # Its Markdown has four lines.
    window.fill(file=str(long))
    eventually(lambda: "![loaf loaf" in window.value("content"))
    rest = "- 98 * parseFloat(getComputedStyle(content).lineHeight)"
    eventually(lambda: window.browser.execute_script(f"{end} {rest}") <= window.browser.execute_script(bar))
    window.run("holdSaves")
    window.run("select", 0)
    window.fill(file=str(loaf))
    window.run("select", -1)
    window.press("!")
    before = window.browser.execute_script(end)
    window.browser.execute_script("release()")
    eventually(lambda: window.value("content").startswith("![loaf]"))
    assert abs(window.browser.execute_script(end) - before) < 2
    window.fill(file=str(loaf))
    eventually(lambda: window.value("content").endswith(".jpg)\n\n"))
    eventually(lambda: window.browser.execute_script(end) <= window.browser.execute_script(bar) + 1)


@IN_BOTH_BROWSERS
@pytest.mark.parametrize(
    ("before", "expected"),
    [("One.\n\n", "One.\n\n{}\n\nWords go on"), ("One. Wo", "One. WoWords go on\n\n{}"), ("", "{}\n\nWords go on")],
    ids=["on an empty line", "in a word", "at the start"],
)
def test_an_image_does_not_split_what_is_typed_during_its_upload(window, loaf, before, expected):
    window.open("/settings/posts/new")
    window.fill(content=before)
    window.run("holdSaves")
    window.fill(file=str(loaf))
    window.run("select", len(before))
    window.press("Words go")
    window.browser.execute_script("release()")
    eventually(lambda: "![loaf]" in window.value("content"))
    window.press(" on")
    (image,) = window.service.request("GET", "/v1/images")[2]
    assert window.value("content") == expected.format(f"![loaf]({image['url']})")


@IN_BOTH_BROWSERS
def test_an_image_is_taken_out_by_one_undo_and_waits_for_the_end_of_a_composition(window, loaf):
    window.open("/settings/posts/new")
    window.fill(content="Bread")
    window.fill(file=str(loaf))
    eventually(lambda: "![loaf]" in window.value("content"))
    with_image = window.value("content")
    for command, content in (("undo", "Bread"), ("redo", with_image), ("undo", "Bread")):
        window.undo(command)
        assert window.value("content") == content, command
    window.run("select", 5)
    window.browser.compose("hell")
    window.fill(file=str(loaf))
    eventually(lambda: "loaf.jpg was added." in window.text)
    assert window.value("content") == "Breadhell"
    window.browser.end_composition("hello")
    eventually(lambda: window.value("content") == with_image.strip().replace("Bread", "Breadhello"))


@IN_BOTH_BROWSERS
def test_a_click_on_an_image_beside_the_text_leads_to_its_place(window):
    picture = save(photograph(), "PNG")
    url = window.service.request("POST", "/v1/images?name=a.png", picture, Content_Type="image/png")[2]["url"]
    images = [f"![]({url})", "![Other](https://example.org/a.png)", f"![A \\[loaf\\]]({url})"]
    content = "\n\n".join((images[0], images[1], *["A line."] * 99, images[2]))
    window.service.request("POST", "/v1/posts", {"title": "Bread", "content": content})
    window.open("/settings/posts/1/edit")
    strip = window.browser.find_elements(By.CSS_SELECTOR, ".strip button")
    assert [each.accessible_name for each in strip] == ["Image without a description", r"A \[loaf\]"]
    strip[1].click()
    assert window.run("selected") == [images[2], True]
    window.browser.resize(390, 800)
    window.click("Settings")
    assert not window.browser.find_element(By.ID, "content").is_displayed()
    strip[1].click()
    assert window.run("selected") == [images[2], True]


@IN_BOTH_BROWSERS
def test_a_photograph_over_2560_pixels_is_shrunk_unless_the_box_is_cleared(window, tmp_path):
    window.open("/settings/posts/new")
    box = window.browser.find_element(By.XPATH, "//label[contains(., '2,560')]/input")
    small, large = (800, 600), (2600, 1300)
    for size, is_on, stored in ((small, True, (600, 800)), (large, True, (1280, 2560)), (large, False, (1300, 2600))):
        name = f"{size[0]} {is_on}.jpg"
        (tmp_path / name).write_bytes(save(photograph().resize(size), "JPEG", exif=exif(6)))  # held upright
        if not is_on:
            window.browser.execute_script("arguments[0].click()", box)
        window.fill(file=str(tmp_path / name))
        eventually(lambda name=name: f"![{name[:-4]}](" in window.value("content"))
        assert stored in {(image["width"], image["height"]) for image in window.service.request("GET", "/v1/images")[2]}


def test_a_file_that_is_no_image_is_refused_and_an_image_can_be_sent_again_after_a_failure(window, loaf, tmp_path):
    (tmp_path / "a.heic").write_bytes(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic")
    window.open("/settings/posts/new")
    window.browser.execute_script("window.real = fetch; fetch = async () => { throw new TypeError() }")
    cover = window.browser.find_elements(By.CSS_SELECTOR, "input[type=file]")[-1]
    window.fill(content="First.", file=str(loaf))
    field = window.browser.find_element(By.CSS_SELECTOR, ".bar")
    eventually(lambda: "loaf.jpg was not added. There is no connection." in field.text)
    window.fill(content="\n\nLast.")
    window.browser.execute_script("fetch = real")
    window.click("Try again")
    eventually(lambda: re.fullmatch(r"First\.\n\n!\[loaf\]\S+\n\nLast\.", window.value("content")))
    cover.send_keys(str(tmp_path / "a.heic"))
    eventually(lambda: "convert HEIC to JPEG first." in field.text)
    (tmp_path / "a.jpg").write_text("Hello")
    window.fill(file=str(tmp_path / "a.jpg"))
    refused = "a.jpg was not added. It must be a JPEG, PNG, GIF, WebP or AVIF image; this seems to be text."
    eventually(lambda: refused in field.text)
    window.click("Dismiss")
    assert (refused in field.text, window.value("content")[-7:]) == (False, "\n\nLast.")
    cover.send_keys(str(loaf))
    (image,) = window.service.request("GET", "/v1/images")[2]
    eventually(lambda: window.value("cover_image") == image["url"])
    eventually(lambda: window.run("areImagesShown"))


def choose(window, name):
    """Choose an image in the picker, whose list may be redrawn at the same time."""
    button = f".//dialog//li/button[normalize-space()='{name}']"
    window.wait(lambda browser: browser.find_element(By.XPATH, button).click() is None, 20)


def test_an_uploaded_image_is_found_among_many_and_can_be_picked_for_the_text_and_for_the_cover(window, loaf, axe):
    for number in range(12):
        picture = save(photograph().rotate(number + 1), "PNG")
        window.service.request("POST", f"/v1/images?name={number}.png", picture, Content_Type="image/png")
    window.open("/settings/images")
    window.fill(file=str(loaf))
    window.click("Upload")
    (url,) = (each["url"] for each in window.service.request("GET", "/v1/images")[2] if each["name"] == "loaf.jpg")
    window.open("/settings/posts/new")
    window.fill(content="Bread: ")
    window.click("Uploaded images")
    shown = "return document.querySelectorAll('dialog li img').length"
    eventually(lambda: window.browser.execute_script(shown) == 12)
    window.browser.find_element(By.XPATH, "//dialog/button[.='More']").click()
    eventually(lambda: window.browser.execute_script(shown) == 13)
    assert window.browser.switch_to.active_element.text.endswith(".png")
    search, description = window.browser.find_elements(By.CSS_SELECTOR, "dialog input")
    search.send_keys("cake")
    eventually(lambda: not window.browser.find_elements(By.CSS_SELECTOR, "dialog li"))
    search.clear()
    search.send_keys("LOAF")
    description.send_keys("A [loaf]")
    eventually(lambda: window.browser.execute_script(shown) == 1)  # not the results of an earlier search
    window.check(axe)
    choose(window, "loaf.jpg")
    assert window.value("content") == rf"Bread: {chr(10)}{chr(10)}![A \[loaf\]]({url}){chr(10)}{chr(10)}"
    window.click("Choose the cover")
    choose(window, "loaf.jpg")
    assert window.value("cover_image") == url


def test_without_scripts_an_image_is_uploaded_with_the_post(window, loaf):
    window.browser.run_scripts(False)
    window.open("/settings/posts/new")
    assert not window.browser.find_element(By.CSS_SELECTOR, ".tools").is_displayed()
    window.fill(title="Bread", content="Words.", file=str(loaf))
    window.click("Upload")
    assert "loaf.jpg was added to the end of the content." in window.text
    assert window.value("content").startswith("Words.\n\n![loaf](http")


def test_pages_of_images_are_accessible_and_never_scroll_sideways(window, loaf, axe):
    window.check_each(axe, "/settings/images")
    window.fill(file=str(loaf))
    window.click("Upload")
    window.check(axe)
    assert window.run("areImagesShown")
    url = window.service.request("GET", "/v1/images")[2][0]["url"]
    window.service.request("POST", "/v1/posts", {"title": "Bread", "content": f"![]({url})", "cover_image": url})
    for path in (window.browser.current_url.removeprefix(window.url), "/settings/images", "/settings/posts/1/edit"):
        window.open(path)
        eventually(lambda: window.run("areImagesShown"))
        window.check(axe)
