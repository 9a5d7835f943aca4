"""Previews that are shared with somebody without a session."""

import re
import time
import tracemalloc

import pytest

from blogapi.server.log import printable_target
from blogapi.wings.owner import preview, shares
from blogapi.wings.owner.shares import PreviewLink
from tests.owner.pages import follow, view

DAY = 24 * 3600
ENDED = "This preview has ended, or its address is not complete."


@pytest.fixture
def draft(post):
    post(title="Draft", content="# Draft\n\nSecret *words*.")


def share(owner):
    """Share the preview of the draft; return its path."""
    page = view(owner, "/settings/posts/1").press("Share a preview")
    (link,) = page.all("#link")
    return link.removeprefix("http://127.0.0.1:8000")


def test_a_preview_shows_the_post_as_it_is_now_without_a_session_until_it_is_withdrawn(owner, client, stranger, draft):
    path = share(owner)
    assert re.fullmatch(r"/settings/shared\?token=blog_preview_[A-Za-z0-9_-]{22}", path)
    answer = stranger.get(path)
    assert (answer.status_code, "Secret <em>words</em>" in answer.text) == (200, True)
    assert "Secret" not in view(stranger, "/settings/posts/1").text
    client.patch("/v1/posts/1", json={"content": "Other words."})
    assert "Other words." in stranger.get(path).text
    view(owner, "/settings/posts/1").press("Withdraw")
    assert stranger.get(path).status_code == 404


def test_showing_a_preview_again_takes_a_fraction_of_the_time(owner, client, stranger, draft):
    """A stranger with its address can ask for it again and again."""
    path = share(owner)
    client.patch("/v1/posts/1", json={"content": "*a* " * 5000})

    def seconds():
        begun = time.process_time()
        assert stranger.get(path).status_code == 200
        return time.process_time() - begun

    first = seconds()
    assert min(seconds() for _ in range(3)) < first / 3


def test_however_many_previews_are_shown_they_take_little_memory():
    tracemalloc.start()
    try:
        for number in range(100):
            preview.render(f"{number} {'words ' * 10_000}")
        assert tracemalloc.get_traced_memory()[0] < 2.5 * preview.MAX_RENDERED  # All of them have 12 MB.
    finally:
        tracemalloc.stop()


def test_a_shared_preview_is_neither_indexed_nor_stored_and_cannot_do_anything(owner, stranger, draft):
    headers = stranger.get(share(owner)).headers
    assert (headers["X-Robots-Tag"], headers["Cache-Control"]) == ("noindex", "no-store")
    assert (
        headers["Content-Security-Policy"] == owner.get("/settings/posts/1/preview").headers["Content-Security-Policy"]
    )
    assert "Set-Cookie" not in headers


def test_it_ends_after_seven_days(owner, stranger, draft, clock, app, database):
    path = share(owner)
    clock.now += 7 * DAY - 1
    assert stranger.get(path).status_code == 200
    clock.now += 1
    assert view(stranger, path).said[0] == ENDED
    database.write(shares.add, 1)
    assert len(shares.listing(database, 1)) == 1  # The expired one is deleted.
    assert [*database.rows(PreviewLink.select(PreviewLink.post_id))] == [(1,)]


def test_a_wrong_address_and_that_of_a_deleted_post_give_the_same_answer(owner, client, stranger, draft):
    path = share(owner)
    wrong = [view(stranger, each) for each in ("/settings/shared", f"{path[:-1]}", "/settings/shared?token=%00")]
    client.delete("/v1/posts/1")
    wrong.append(view(stranger, path))
    assert {(page.status, page.text) for page in wrong} == {(404, wrong[0].text)}
    assert ENDED in wrong[0].text


def test_its_token_is_neither_logged_nor_stored_nor_shown_again(owner, draft, database):
    path = share(owner)
    assert printable_target(path) == "/settings/shared?token=blog_[masked]"
    token = path.partition("=")[2]
    assert token not in str([*database.rows(PreviewLink.select())])
    assert token not in view(owner, "/settings/posts/1").text


def test_images_from_other_sites_are_shown_on_request(owner, client, stranger, draft):
    client.patch("/v1/posts/1", json={"content": "![](https://example.org/a.jpg)"})
    path = share(owner)
    (shown,) = [each["href"] for each in view(stranger, path).soup.select("a")]
    answer = follow(stranger, stranger.get(f"/settings/shared{shown}"))
    assert "img-src http: https:" in answer.headers["Content-Security-Policy"]


def test_a_post_can_have_at_most_ten(owner, draft):
    for _ in range(shares.MAX_LINKS):
        share(owner)
    page = view(owner, "/settings/posts/1").press("Share a preview")
    assert page.status == 400
    assert "This post has 10 previews already; withdraw one first." in " ".join(page.said)
