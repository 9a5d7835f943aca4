"""The preview of a post: it looks as the post will look, and nothing in it is active."""

from blogapi.wings.owner import sessions
from tests.cases import cases
from tests.owner.pages import Page, send, view

POLICY = (
    "default-src 'none'; img-src 'self' http://127.0.0.1:8000; style-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'; sandbox"
)


def preview(owner, **fields):
    token = view(owner, "/settings/posts/new").soup.find(attrs={"name": "preview_token"})["value"]
    return send(owner, "/settings/preview", {"title": "A", "preview_token": token} | fields)


@cases(
    ("content", "html"),
    [
        ("**a** ~~b~~", "<p><strong>a</strong> <s>b</s></p>"),
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("a <b onclick=x>b</b>", "<p>a &lt;b onclick=x&gt;b&lt;/b&gt;</p>"),
        ("[a](javascript:alert(1))", "<p>[a](javascript:alert(1))</p>"),
        ('![a"](https://b.example/c.png)', '<span class="elsewhere">Image: a&quot; (https://b.example)</span>'),
        ("![a](http://127.0.0.1:8000/c.png)", '<img src="http://127.0.0.1:8000/c.png" alt="a" />'),
        ("|a|\n|-|\n|b|", "<td>b</td>"),
        ("|a|\n|-:|\n|b|", '<td class="right">b</td>'),
        ("a[^1]\n\n[^1]: b", '<section class="footnotes">'),
        ("- [x] a", 'aria-label="done" checked="checked" disabled="disabled" type="checkbox"> a'),
        ("- [ ] **a**", 'disabled="disabled" type="checkbox"> <strong>a</strong>'),
        ("- [ ]a", "<li>[ ]a</li>"),
        (f"{'|a' * 200}|\n{'|-' * 200}|\n" + "b\n" * 99 + "\nc", "too large for the preview.)</p>\n<p>c</p>"),
    ],
)
def test_markdown_is_rendered_and_html_is_shown_as_text(owner, content, html):
    answer = preview(owner, content=content)
    assert (answer.status_code, html in answer.text) == (200, True)
    assert answer.headers["Content-Security-Policy"] == POLICY
    assert answer.headers["X-Frame-Options"] == "SAMEORIGIN"


@cases(("title", "content"), [("A", "# A\n\nB"), ("A", "B"), ("<i>", "B")])
def test_a_preview_shows_its_cover_on_top_and_its_title_once_as_text_and_as_that_of_the_window(owner, title, content):
    page = Page(owner, preview(owner, title=title, content=content, cover_image="http://127.0.0.1:8000/b.png"))
    assert page.soup.main.img["src"] == "http://127.0.0.1:8000/b.png"
    assert (page.all("h1"), page.all("title")) == ([title], [f"Preview of {title} – blogapi"])


def test_images_of_other_hosts_are_shown_after_a_click(owner, post):
    own, other = "http://127.0.0.1:8000/images/a.png", "http://192.168.1.1/reboot"
    post(content=f"![]({own}) ![]({other})", cover_image="https://b.example:81/c.png")
    answer = owner.get("/settings/posts/1/preview")
    text = " ".join(Page(owner, answer).soup.main.text.split())
    assert "Images from 192.168.1.1, b.example:81 are not shown." in text
    assert "img-src 'self' http://127.0.0.1:8000;" in answer.headers["Content-Security-Policy"]
    soup = Page(owner, answer).soup
    assert ([each["src"] for each in soup.select("img")], soup.select_one(".elsewhere").text) == (
        [own],
        "Image:  (http://192.168.1.1)",
    )
    shown = owner.get("/settings/posts/1/preview?images=all")
    assert other in shown.text
    assert "img-src http: https:;" in shown.headers["Content-Security-Policy"]
    assert "are not shown" not in shown.text


def test_an_ended_session_says_so_inside_the_frame(owner, database):
    token = view(owner, "/settings/posts/new").soup.find(attrs={"name": "preview_token"})["value"]
    database.write(sessions.end_all)
    answer = send(owner, "/settings/preview", {"title": "A", "preview_token": token})
    assert (answer.status_code, answer.headers["X-Frame-Options"]) == (403, "SAMEORIGIN")
    assert "frame-ancestors 'self'" in answer.headers["Content-Security-Policy"]


def test_others_are_served_while_a_preview_is_rendered(owner, meanwhile):
    assert "<em>slow</em>" in preview(owner, content="*slow*").text
    assert meanwhile == [200] * 2  # The form has read the tags that it suggests in a thread, too.


def test_long_content_and_content_with_many_brackets_are_cut(owner, monkeypatch):
    cut = "The rest is not shown in the preview."
    answer = preview(owner, content="x " * 150_000)
    assert (cut in answer.text, len(answer.text) < 210_000) == (True, True)
    monkeypatch.setattr("blogapi.wings.owner.preview.MAX_BRACKETS", 200)
    answer = preview(owner, content="![" * 200)
    assert (cut in answer.text, "![" * 199 in answer.text) == (False, True)
    assert cut in preview(owner, content="![" * 201).text


def test_posts_versions_and_the_trash_have_previews_but_not_for_a_stranger(owner, client, stranger, post):
    post(content="*one*")
    assert stranger.get("/settings/posts/1/preview").status_code == 403
    assert send(stranger, "/settings/preview", {"content": "A"}).status_code == 403
    assert send(owner, "/settings/preview", {"content": "A", "preview_token": "x"}).status_code == 403
    client.patch("/v1/posts/1", json={"content": "*two*"})
    assert "<em>two</em>" in view(owner, "/settings/posts/1/preview").text
    assert "<em>one</em>" in view(owner, "/settings/posts/1/history/1/preview").text
    client.delete("/v1/posts/1")
    assert "<em>two</em>" in view(owner, "/settings/trash/1/preview").text
    assert view(owner, "/settings/posts/1/preview").status == 404
