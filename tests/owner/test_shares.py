"""Previews that are shared with somebody without a session."""

import re
import secrets
import tracemalloc
from urllib.parse import parse_qs

import pytest

from blogapi.server.log import printable_target
from blogapi.wings.owner import preview, sessions
from blogapi.wings.owner.sessions import PreviewLink
from tests.owner.pages import view

DAY = 24 * 3600
ENDED = "This preview has ended, or its address is not complete."


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
    """A stranger with their addresses can ask for them again and again."""
    preview.pages.clear()
    render, rendered, paths = preview.markdown.render, [], []
    monkeypatch.setattr(preview.markdown, "render", lambda text: rendered.append(text[:2]) or render(text))
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
    tracemalloc.start()
    try:
        monkeypatch.setattr(preview, "MAX_CACHED", 1_000_000)
        for _ in range(100):
            preview.render(secrets.token_hex(25_000))
        assert tracemalloc.get_traced_memory()[0] < 1_500_000  # All of them have 3 MB.
    finally:
        tracemalloc.stop()


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
def test_a_post_can_have_at_most_ten_and_all_together_a_hundred(owner, post, database):
    for number in range(1, 12):
        post(title=f"{number}")
        for _ in range(sessions.MAX_PREVIEWS_OF_POST if number < 11 else 0):
            database.write(sessions.share, number)
        if number in (10, 11):
            page = view(owner, f"/settings/posts/{number}").press("Share a preview")
            reason = {10: "This post has 10 previews already", 11: "There are 100 previews already"}[number]
            assert (page.status, f"{reason}; withdraw one" in " ".join(page.said)) == (400, True)
