"""Revisions of posts and the trash, over HTTP."""

import pytest

from blogapi.posts import history
from blogapi.storage.models import Revision
from tests.api.fixtures import answers, with_key
from tests.cases import cases
from tests.conftest import NOON, message

FIRST = {"title": "First", "content": "One.\r\n", "excerpt": "e", "tags": ["a", "b"], "cover_image": "https://a/b"}
FIRST["params"] = {"a": 1, "b": [True]}
TIMES = [f"2026-11-20T12:0{minute}:00Z" for minute in range(10)]


@pytest.fixture
def changed(client, clock):
    """A post that was changed twice, a minute apart."""
    post = client.post("/v1/posts", json=FIRST).json
    last = {"content": "Three.", "tags": [], "params": {"a": None, "c": 1.0}}
    for minute, change in enumerate([{"title": "Second", "excerpt": None}, last], 1):
        clock.now = NOON + 60 * minute
        assert client.patch("/v1/posts/1", json=change).status_code == 200
    return post


def without_content(post):
    return {name: value for name, value in post.items() if name != "content"}


def test_the_revisions_of_a_post_are_its_earlier_versions(client, changed):
    second = changed | {"title": "Second", "updated_at": TIMES[1]}
    del second["excerpt"]
    expected = [
        {"revision": "2", "replaced_at": TIMES[2], "by": "tests", "post": without_content(second)},
        {"revision": "1", "replaced_at": TIMES[1], "by": "tests", "post": without_content(changed)},
    ]
    for path in ("/v1/posts/1/revisions", "/v1/posts/by-slug/first/revisions"):
        assert client.get(path).json == expected
        assert [page.json for page in answers(client, f"{path}?limit=1")] == [expected[:1], expected[1:]]
        assert client.get(f"{path}?limit=1").headers["Link"] == '</v1/posts/1/revisions?limit=1&before=2>; rel="next"'
        assert client.get(f"{path}?before=2").json == expected[1:]
    assert client.get("/v1/posts/1/revisions/1").json == changed
    assert client.get("/v1/posts/by-slug/first/revisions/2").json == second


def test_a_revision_as_a_markdown_file_can_be_put_back(client, changed):
    file = client.get("/v1/posts/by-slug/first/revisions/1", headers={"Accept": "text/markdown"})
    assert (file.content_type, file.headers["Vary"]) == ("text/markdown; charset=utf-8", "Accept")
    client.put("/v1/posts/by-slug/first", data=file.data, content_type="text/markdown")
    assert client.get("/v1/posts/1").json == changed | {"updated_at": TIMES[2]}


def test_restoring_brings_back_the_text_and_keeps_slug_status_and_dates(client, changed, clock):
    client.patch("/v1/posts/1", json={"slug": "other", "status": "published"})
    clock.now = NOON + 300
    answer = client.post("/v1/posts/by-slug/other/revisions/1/restore")
    kept = {"slug": "other", "status": "published", "published_at": TIMES[2], "updated_at": TIMES[5]}
    assert (answer.status_code, answer.json) == (200, changed | kept)
    assert client.get("/v1/posts/1").headers["ETag"] == answer.headers["ETag"]
    assert len(client.get("/v1/posts/1/revisions").json) == 4


@pytest.mark.both_engines
def test_a_deleted_post_is_in_the_trash_and_comes_back_as_it_was(client, changed, clock):
    post = client.get("/v1/posts/1").json
    assert client.delete("/v1/posts/1").status_code == 204
    assert client.get("/v1/posts/1").status_code == client.get("/v1/posts/1/revisions").status_code == 404
    trashed = {"deleted_at": TIMES[2], "by": "tests", "post": without_content(post)}
    assert (client.get("/v1/trash").json, client.get("/v1/trash/1").json) == ([trashed], post)
    client.post("/v1/posts", json=FIRST)  # takes the slug of the deleted post
    clock.now = NOON + 300
    answer = client.post("/v1/trash/1/restore")
    assert (answer.status_code, answer.json) == (200, post | {"slug": "first-2", "updated_at": TIMES[5]})
    assert (client.get("/v1/trash").json, len(client.get("/v1/posts/1/revisions").json)) == ([], 2)


@pytest.mark.both_engines
def test_the_trash_has_pages_with_the_latest_deletion_first(client, post, clock):
    for number in range(1, 6):
        post(title=f"P{number}")
    for number in (3, 1, 5, 2, 4):
        client.delete(f"/v1/posts/{number}")
        clock.now += 60 * (number != 5)
    pages = answers(client, "/v1/trash?limit=2")
    assert [[entry["post"]["id"] for entry in page.json] for page in pages] == [["4", "5"], ["2", "1"], ["3"]]


@pytest.mark.both_engines
def test_a_post_deleted_for_good_is_gone_with_its_revisions(client, changed, post, count, database):
    for number in (2, 3):
        post()
        client.patch(f"/v1/posts/{number}", json={"title": "Changed"})
    assert client.delete("/v1/posts/1?permanent=true").status_code == 204
    assert client.get("/v1/trash").json == []
    assert message(client.get("/v1/trash/1"), 404) == "no such post in the trash"
    client.delete("/v1/posts/2")
    assert client.delete("/v1/trash/2").status_code == 204
    assert client.delete("/v1/trash/2").status_code == 404
    assert client.get("/v1/trash").json == []
    while database.write(history.prune_purged):  # On a busy machine, some are left to the background work.
        pass
    assert (count(Revision), post()["id"]) == (1, "4")


@cases(
    ("method", "path", "status", "wrong"),
    ("GET", "/v1/posts/1/revisions?before=0", 400, "before: must be a revision, a whole number from 1"),
    ("GET", "/v1/posts/1/revisions?status=draft", 400, '"status": unknown parameter; known: limit, before'),
    ("GET", "/v1/trash?before=7", 400, "before: must be the value that Link gave for this list"),
    ("GET", "/v1/trash/1?limit=1", 400, '"limit": unknown parameter; known: none'),
    *(("DELETE", f"/v1/posts/1?permanent={flag}", 400, "permanent: must be true or false") for flag in ("yes", "True")),
    *(("DELETE", f"/v1/posts/1?{name}=1", 400, f'"{name}": unknown parameter; known: permanent') for name in ("", "a")),
    ("GET", "/v1/posts/2/revisions", 404, "no such post"),
    ("GET", "/v1/posts/1/revisions/3", 404, "no such revision"),
    ("POST", "/v1/posts/1/revisions/3/restore", 404, "no such revision"),
    *((method, "/v1/trash/1", 404, "no such post in the trash") for method in ("GET", "DELETE")),
    ("POST", "/v1/trash/1/restore", 404, "no such post in the trash"),
    ("GET", "/v1/trash/007", 404, "no such path"),
)
def test_a_bad_parameter_is_named_and_a_missing_version_is_404(client, changed, method, path, status, wrong):
    assert message(client.open(path, method=method), status) == wrong


@pytest.mark.parametrize(
    ("method", "path", "post"),
    [
        ("POST", "/v1/posts/1/revisions/1/restore", "/v1/posts/1"),
        ("POST", "/v1/trash/1/restore", "/v1/trash/1"),
        ("DELETE", "/v1/trash/1", "/v1/trash/1"),
    ],
)
def test_if_match_applies_to_restoring_and_to_deleting_for_good(client, changed, method, path, post):
    if post == "/v1/trash/1":
        client.delete("/v1/posts/1")
    for etag, status in (('"another"', 412), (client.get(post).headers["ETag"], 204 if method == "DELETE" else 200)):
        assert client.open(path, method=method, headers={"If-Match": etag}).status_code == status


def test_a_post_in_the_trash_is_404_and_the_message_says_where_it_is(app, client, post):
    post(status="published")
    client.delete("/v1/posts/1")
    for method in ("GET", "PATCH", "DELETE"):
        answer = client.open("/v1/posts/1", method=method, json={"title": "B"} if method == "PATCH" else None)
        assert message(answer, 404) == "no such post: it is in the trash, at /v1/trash/1"
    assert message(with_key(app, "published-only").get("/v1/posts/1"), 404) == "no such post"
    client.delete("/v1/trash/1")
    assert message(client.get("/v1/posts/1"), 404) == "no such post"


def test_with_zero_days_nothing_is_kept(own_app):
    client = with_key(own_app(keep_days=0))
    client.post("/v1/posts", json=FIRST)
    client.patch("/v1/posts/1", json={"title": "Second"})
    assert (client.get("/v1/posts/1/revisions").json, client.delete("/v1/posts/1").status_code) == ([], 204)
    assert client.get("/v1/trash").json == []
