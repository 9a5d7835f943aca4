"""Images on the owner's page: uploads, the list, the uses of an image, and deletion."""

import pytest

from blogapi.wings.images import storage as images
from blogapi.wings.images.storage import Image, ImagePart
from tests.cases import cases
from tests.images.pictures import gif, jpeg, png, webp
from tests.owner.pages import follow, pages, send, view

URL = "http://127.0.0.1:8000"


def upload(owner, content, name="loaf.jpg", page="/settings/images"):
    action, fields = view(owner, page).form("Upload")
    answer = send(owner, action, fields | {"file": (name, content)})
    return answer, follow(owner, answer)


def test_an_uploaded_image_is_shown_with_its_markdown(owner):
    answer, page = upload(owner, jpeg(orientation=6))
    path = answer.headers["Location"].replace("/settings", "") + ".jpg"
    assert (page.status, page.said[0]) == (200, "“loaf.jpg” was uploaded.")
    assert page.soup.select_one("main img")["src"] == path
    assert owner.get(path).content_type == "image/jpeg"
    assert page.all(".copied code") == [f"![loaf]({URL}{path})", URL + path]
    assert page.all(".about dd")[1] == "image/jpeg"
    assert upload(owner, jpeg(orientation=6), "other.jpg")[1].said[0] == "“loaf.jpg” was uploaded before."
    listed = view(owner, "/settings/images")
    assert (listed.all(".card h2"), listed.all(".copied code")) == (["loaf.jpg"], [f"![loaf]({URL}{path})"])
    page = upload(owner, png(), "my-a_2 [b] <i>.png")[1]
    assert page.all(".copied code")[0].startswith(r"![my a 2 \[b\] <i>](http")  # A name is plain text in Markdown, too.
    assert page.soup.select("main i") == []


@cases(
    ("content", "status", "said"),
    (b"Hello", 415, "File: must be a JPEG, PNG, GIF, WebP or AVIF image; this seems to be text."),
    (jpeg()[:300], 400, "File: the file ends early."),
    (bytes(20 * 1024**2 + 1), 413, "An image must have at most 20,971,520 bytes."),
)
def test_a_file_that_is_not_an_image_is_refused_together_with_its_post(owner, client, count, content, status, said):
    answer, page = upload(owner, content)
    assert (answer.status_code, page.said[0]) == (status, said)
    page = view(owner, "/settings/posts/new").press("Save draft", title="A", content="B", file=("loaf.jpg", content))
    assert (page.status, said in page.said, client.get("/v1/posts").json) == (status, True, [])
    assert status == 413 or page.form("Save draft")[1]["content"] == "B"
    assert (count(Image), count(ImagePart)) == (0, 0)


def test_an_upload_needs_a_session_and_the_token_of_its_form(owner, stranger, count):
    other = view(owner, "/settings/keys").form("Create key")[1]["form_token"]
    for client, token in ((owner, ""), (owner, other), (stranger, "")):
        data = {"form_token": token, "file": ("a.png", png())}
        assert send(client, "/settings/images/upload", data).status_code == 403
    assert (count(Image), count(ImagePart)) == (0, 0)


def test_an_image_chosen_in_a_post_form_is_uploaded_with_it(owner, client):
    typed = {"title": "A", "content": "B", "file": ("loaf.jpg", jpeg())}
    view(owner, "/settings/posts/new").press("Save draft", **typed)
    markdown = f"![loaf]({URL}/images/{client.get('/v1/images').json[0]['id']}.jpg)"
    assert client.get("/v1/posts/1").json["content"] == f"B\n\n{markdown}\n"
    view(owner, "/settings/posts/1/edit").press("Save draft", content="", file=("loaf.jpg", jpeg()))
    assert client.get("/v1/posts/1").json["content"] == f"{markdown}\n"


@cases("path", ["/settings/posts/new", "/settings/posts/1/edit"])
def test_an_upload_in_a_post_form_does_not_save_the_post_and_keeps_the_typed_text(owner, client, path):
    client.post("/v1/posts", json={"title": "A", "content": "B"})
    page = view(owner, path).press("Upload", content="C")
    assert (page.status, page.said[0]) == (400, "Not saved yet. File: Choose an image first.")
    typed = {"title": "", "file": ("loaf.jpg", jpeg()), "upload": "on"}
    page = page.press("Upload", **typed)
    fields = page.form("Upload")[1]
    assert (page.status, fields["title"], fields["content"].partition("(")[0]) == (200, "", "C\n\n![loaf]")
    assert page.all("#file-hint .unscripted") == ["loaf.jpg was added to the end of the content."]
    assert {post["content"] for post in client.get("/v1/posts").json} == {"B"}
    assert "Not saved" not in page.text


def test_a_post_form_shows_the_cover_if_the_image_is_on_this_service(owner, client):
    path = upload(owner, png())[0].headers["Location"].replace("/settings", "") + ".png"
    for number, (cover, shown) in enumerate(((URL + path, [path]), (f"https://a.example{path}", [])), 1):
        client.post("/v1/posts", json={"title": "A", "content": "B", "cover_image": cover})
        found = view(owner, f"/settings/posts/{number}/edit").soup.select("main img")
        assert [each["src"] for each in found] == shown


@pytest.mark.both_engines
def test_the_list_has_pages(owner, database):
    for number in range(13):
        fields = (f"{number:032x}", f"{number}", f"{number}.png", "image/png", 0, 1, 1, "")
        database.write(images.add, images.StoredImage(*fields))
    shown = [page.all(".card h2") for page in pages(owner, "/settings/images")]
    assert shown == [[f"{number}.png" for number in range(12, 0, -1)], ["0.png"]]
    assert view(owner, "/settings/images?before=1").status == 400
    found = view(owner, "/settings/images?q=2.PNG")
    assert found.all(".card h2") == ["12.png", "2.png"]
    assert view(owner, "/settings/images?q=%25").said[-1] == "No image name contains this."


def test_an_image_in_use_lists_its_posts_and_cannot_be_deleted(owner, client):
    answer, page = upload(owner, png())
    delete = page.form("Yes, delete")
    url = URL + answer.headers["Location"].replace("/settings", "") + ".png"
    for title in "ABC":
        client.post("/v1/posts", json={"title": title, "content": f"![]({url})"})
    client.patch("/v1/posts/2", json={"content": "B"})
    client.delete("/v1/posts/3")
    page = view(owner, answer.headers["Location"])
    assert [(each.text, each["href"]) for each in page.soup.select("main li a")] == [
        ("“A”", "/settings/posts/1"),
        ("an earlier version of “B”", "/settings/posts/2/history/1"),
        ("“C” in the trash", "/settings/trash/3"),
    ]
    assert [view(owner, each["href"]).status for each in page.soup.select("main li a")] == [200] * 3
    client.post("/v1/posts/1/proposals", json={"excerpt": url})
    client.delete("/v1/trash/3")
    (link,) = [each for each in view(owner, answer.headers["Location"]).soup.select("main li a") if "prop" in each.text]
    assert (link.text, link["href"]) == ("a proposal for “A”", "/settings/posts/1")
    refused = owner.post(delete[0], data=delete[1], content_type="multipart/form-data")
    assert refused.status_code == 400
    assert "Nothing was deleted. Still used in post 1 (a), revision 1 of post 2" in refused.text


def test_an_unused_image_is_deleted(owner, count):
    for name in ("1", "0" * 32, "upload"):
        assert view(owner, f"/settings/images/{name}").status == 404, name
    for content in (png(), gif(), webp()):
        page = upload(owner, content)[1]
    page = page.press("Yes, delete")
    assert (page.said[0], len(page.all(".card h2")), count(Image)) == ("“loaf.jpg” was deleted.", 2, 2)
