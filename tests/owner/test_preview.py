"""The preview of a post, which the owner can share: it looks like the post, and runs no scripts."""

import re
import secrets
from urllib.parse import parse_qs

import pytest

from blogapi.markdown import rendering
from blogapi.server.log import printable_target
from blogapi.wings.owner import sessions
from blogapi.wings.owner.sessions import PreviewLink
from tests.cases import cases
from tests.owner.pages import Page, send, view
from tests.timing import memory_limit

POLICY = (
    "default-src 'none'; img-src 'self' http://127.0.0.1:8000; style-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; sandbox"
)
DAY = 24 * 3600
ENDED = "No such preview: it has ended, or its URL is incomplete."


def previewed(owner, **fields):
    token = view(owner, "/settings/posts/new").soup.find(attrs={"name": "preview_token"})["value"]
    return send(owner, "/settings/preview", {"title": "A", "preview_token": token} | fields)


@cases(
    ("content", "html"),
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
)
def test_markdown_is_rendered_and_html_is_shown_as_text(owner, content, html):
    answer = previewed(owner, content=content)
    assert (answer.status_code, html in re.sub(r' data-line="\d+"', "", answer.text)) == (200, True)
    assert answer.headers["Content-Security-Policy"] == POLICY
    assert answer.headers["X-Frame-Options"] == "DENY"


@cases(("title", "content"), [("A", "# A\n\nB"), ("A", "B"), ("<i>", "B"), ('<i> & "', '# <i> & "\n\nB')])
def test_a_preview_shows_its_cover_on_top_and_its_title_once_as_text_and_as_that_of_the_window(owner, title, content):
    page = Page(owner, previewed(owner, title=title, content=content, cover_image="http://127.0.0.1:8000/b.png"))
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
    assert [each["src"] for each in soup.select("img")] == [own]
    assert soup.select_one(".elsewhere").text == "Image:  (http://192.168.1.1)"
    shown = owner.get("/settings/posts/1/preview?images=all")
    assert other in shown.text
    assert "img-src http: https:;" in shown.headers["Content-Security-Policy"]
    assert "are not shown" not in shown.text


def test_others_are_served_while_a_preview_is_rendered(owner, meanwhile):
    assert "<em>slow</em>" in previewed(owner, content="*slow*").text
    assert meanwhile == [200] * 3  # The form has read the tags that it suggests in a thread, too.


def test_long_content_and_content_with_many_brackets_are_cut(owner, monkeypatch):
    cut = "The rest is not shown in the preview."
    answer = previewed(owner, content="x " * 150_000)
    assert (cut in answer.text, len(answer.text) < 210_000) == (True, True)
    monkeypatch.setattr("blogapi.wings.owner.preview.MAX_BRACKETS", 200)
    answer = previewed(owner, content="![" * 200)
    assert (cut in answer.text, "![" * 199 in answer.text) == (False, True)
    assert cut in previewed(owner, content="![" * 201).text


def test_an_address_that_is_used_thousands_of_times_does_not_multiply(owner):
    answer = previewed(owner, content=f"[a]: /{'x' * 10_000}\n\n{'[a] ' * 10_000}")
    assert (answer.text.count('<a href="/xxx'), answer.text.count("<a>")) == (99, 9901)


def test_posts_and_versions_have_previews_but_not_for_a_stranger(owner, client, stranger, post):
    post(content="*one*")
    assert stranger.get("/settings/posts/1/preview").status_code == 403
    assert send(stranger, "/settings/preview", {"content": "A"}).status_code == 403
    assert send(owner, "/settings/preview", {"content": "A", "preview_token": "x"}).status_code == 403
    client.patch("/v1/posts/1", json={"content": "*two*"})
    assert "<em>two</em>" in view(owner, "/settings/posts/1/preview").text
    assert "<em>one</em>" in view(owner, "/settings/posts/1/history/1/preview").text
    client.delete("/v1/posts/1")
    assert "<em>two</em>" in view(owner, "/settings/trash/1").text
    assert view(owner, "/settings/posts/1/preview").status == 404


# Shared


@pytest.fixture
def draft(post):
    post(title="Draft", content="# Draft\n\nSecret *words*.")


def share(owner, post_id=1):
    """Share the preview of the draft; return its path."""
    page = view(owner, f"/settings/posts/{post_id}").press("Share a preview")
    (link,) = page.all("#link")
    return link.removeprefix("http://127.0.0.1:8000")


@pytest.mark.both_engines
def test_a_preview_shows_the_post_as_it_is_now_without_a_session_until_it_is_withdrawn(
    owner, client, stranger, draft, database
):
    path = share(owner)
    assert re.fullmatch(r"/settings/shared\?token=blog_preview_[A-Za-z0-9_-]{22}", path)
    assert printable_target(path) == "/settings/shared?token=blog_[masked]"
    token = path.partition("=")[2]  # It is not stored, and shown once.
    assert token not in str([*database.rows(PreviewLink.select())]) + view(owner, "/settings/posts/1").text
    answer = stranger.get(path)
    assert (answer.status_code, "Secret <em>words</em>" in answer.text) == (200, True)
    assert (answer.headers["X-Robots-Tag"], answer.headers["Cache-Control"]) == ("noindex", "no-store")
    policy = owner.get("/settings/posts/1/preview").headers["Content-Security-Policy"]
    assert (answer.headers["Content-Security-Policy"], "Set-Cookie" in answer.headers) == (policy, False)
    assert "Secret" not in view(stranger, "/settings/posts/1").text
    client.patch("/v1/posts/1", json={"content": "Other words."})
    assert "Other words." in stranger.get(path).text
    view(owner, "/settings/posts/1").press("Withdraw")
    assert stranger.get(path).status_code == 404


def test_each_version_of_a_shared_post_is_rendered_once_however_many_and_large_they_are(
    owner, client, post, stranger, monkeypatch
):
    """A stranger who has the links can open the previews again and again."""
    rendering.pages.clear()
    render, rendered, paths = rendering.markdown.render, [], []
    monkeypatch.setattr(rendering.markdown, "render", lambda text: rendered.append(text[:2]) or render(text))
    for number in range(1, 13):
        post(title="Draft", content=f"{number:02} {'words ' * 16_000}")
        paths.append(share(owner, number))
    for _ in range(2):
        for path in paths:
            for query in ("", "&images=all"):
                assert "words words" in stranger.get(path + query).text
    assert rendered == [f"{number:02}" for number in range(1, 13)]
    client.patch("/v1/posts/1", json={"content": "Other words."})
    assert "Other words." in stranger.get(paths[0]).text


def test_however_many_previews_are_shown_they_take_little_memory(monkeypatch):
    monkeypatch.setattr(rendering, "MAX_CACHED", 1_000_000)
    with memory_limit(1_500_000):  # All of them have 3 MB.
        for _ in range(100):
            rendering.render(secrets.token_hex(25_000))


@pytest.mark.both_engines
def test_it_ends_after_seven_days(owner, stranger, draft, clock, app, database):
    path = share(owner)
    clock.now += 7 * DAY - 1
    assert stranger.get(path).status_code == 200
    clock.now += 1
    assert view(stranger, path).said[0] == ENDED
    database.write(sessions.share, 1)
    assert len(sessions.previews(database, 1)) == 1  # The expired one is deleted.
    assert [*database.rows(PreviewLink.select(PreviewLink.post_id))] == [(1,)]


def test_a_wrong_address_and_that_of_a_deleted_post_give_the_same_answer(owner, client, stranger, draft):
    path = share(owner)
    wrong = [view(stranger, each) for each in ("/settings/shared", f"{path[:-1]}", "/settings/shared?token=%00")]
    client.delete("/v1/posts/1")
    wrong.append(view(stranger, path))
    assert {(page.status, page.text) for page in wrong} == {(404, wrong[0].text)}
    assert ENDED in wrong[0].text


def test_images_from_other_sites_are_shown_to_the_owner_alone_on_request(owner, client, stranger, draft):
    client.patch("/v1/posts/1", json={"content": "![](https://example.org/a.jpg)"})
    path = share(owner)
    page = view(stranger, path)
    assert page.all("p.muted") == ["Images from example.org are not shown."]
    assert not page.soup.select("a")
    (shown,) = [each["href"] for each in view(owner, path).soup.select("a")]
    assert parse_qs(shown[1:])["images"] == ["all"]
    policies = [each.get(f"/settings/shared{shown}").headers["Content-Security-Policy"] for each in (owner, stranger)]
    assert ["img-src http: https:" in policy for policy in policies] == [True, False]


@pytest.mark.both_engines
def test_there_can_be_a_hundred_at_a_time(owner, draft, database):
    for _ in range(100):
        database.write(sessions.share, 1)
    page = view(owner, "/settings/posts/1").press("Share a preview")
    assert (page.status, "There are 100 previews already; withdraw one" in " ".join(page.said)) == (400, True)
    view(owner, "/settings/posts/1").press("Withdraw")
    assert view(owner, "/settings/posts/1").press("Share a preview").status == 200
