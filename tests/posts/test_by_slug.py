"""Posts by their slugs: read, changed and deleted as by id, and created or replaced by PUT."""

import pytest

from blogapi.posts import publication
from blogapi.storage.models import Post
from blogapi.webhooks.storage import Event
from tests.api.fixtures import LATER, NOW
from tests.cases import cases
from tests.conftest import message

MADE = {"id": "1", "title": "A", "status": "draft", "slug": "a", "content": "B", "tags": []}
MADE |= {"created_at": NOW, "updated_at": NOW}
FUTURE = f"published_at: {publication.FUTURE}"
WRITES = ("BEGIN", "INSERT", "UPDATE", "DELETE", "COMMIT")


def test_a_post_is_read_by_its_slug_as_by_its_id(client, post):
    created = post(title="One")
    by_slug, by_id = client.get("/v1/posts/by-slug/one"), client.get("/v1/posts/1")
    assert (by_slug.status_code, by_slug.json) == (200, created)
    assert dict(by_slug.headers) | {"X-RateLimit-Remaining": ""} == dict(by_id.headers) | {"X-RateLimit-Remaining": ""}
    assert client.head("/v1/posts/by-slug/one").headers["ETag"] == by_id.headers["ETag"]
    assert client.get("/v1/posts/by-slug/one", headers={"If-None-Match": by_id.headers["ETag"]}).status_code == 304


@pytest.mark.both_engines
@cases("slug", ["b", "1", "A", "a-", "a--b", "a b", "%C3%A4", "a" * 101, "a%0A", "by-slug"])
@cases("method", ["GET", "PATCH", "DELETE"])
def test_an_unknown_or_impossible_slug_is_404(client, post, slug, method):
    post(title="a")
    assert message(client.open(f"/v1/posts/by-slug/{slug}", method=method, json={}), 404)


@cases("slug", ["1", "by-slug", "a" * 100])
def test_any_slug_names_its_post(client, post, slug):
    post(title="other")
    created = post(slug=slug)
    assert client.get(f"/v1/posts/by-slug/{slug}").json == created
    assert client.get("/v1/posts/1").json["slug"] == "other"


# PUT


@pytest.mark.parametrize("fields", [{}, {"slug": "a"}])
def test_put_creates_a_missing_post(client, put, fields):
    answer = put(**fields)
    assert (answer.status_code, answer.json, answer.headers["Location"]) == (201, MADE, "/v1/posts/1")
    read = client.get("/v1/posts/1")
    assert (read.json, read.headers["ETag"]) == (MADE, answer.headers["ETag"])


@pytest.mark.both_engines
def test_put_replaces_an_existing_post(client, put, clock):
    put(excerpt="E", tags=["x", "y"], cover_image="https://a/b", status="published")
    clock.now += 3600
    answer = put(content="C", tags=["Z"])
    times = {"created_at": NOW, "published_at": NOW, "updated_at": LATER}
    assert answer.status_code == 200
    assert answer.json == MADE | times | {"status": "published", "content": "C", "tags": ["Z"]}
    assert "Location" not in answer.headers
    assert client.get("/v1/posts/1").headers["ETag"] == answer.headers["ETag"]
    assert client.get("/v1/tags").json == [{"name": "Z", "posts": 1}]


@cases(
    ("fields", "wrong"),
    ({"slug": "b"}, "slug: must match the path, or be left out"),
    ({"title": " "}, "title: must have 1 to 255 characters"),
    ({"status": "scheduled"}, "published_at: must be given, and in the future, for a scheduled post"),
    ({"status": "published", "published_at": LATER}, FUTURE),
)
def test_a_bad_body_is_refused_and_nothing_is_created_or_changed(client, put, count, fields, wrong):
    assert (message(put(**fields)), count(Post)) == (wrong, 0)
    made = put().json
    assert (message(put(**fields)), client.get("/v1/posts").json) == (wrong, [made])
    client.delete(f"/v1/posts/{made['id']}")


@pytest.mark.both_engines
@cases("slug", ["A", "a-", "a--b", "%C3%A4", "a" * 101, "a_b"])
def test_an_impossible_slug_is_404_whatever_the_body_says(client, count, slug):
    answer = client.put(f"/v1/posts/by-slug/{slug}", data=b"{")
    assert message(answer, 404).startswith("no such path: a slug has lower-case letters")
    name_of_file = client.put("/v1/posts/by-slug/a.md", data=b"# A\n", content_type="text/markdown")
    assert message(name_of_file, 404) == "no such path; did you mean /v1/posts/by-slug/a?"
    assert count(Post) == 0


# No change


def test_put_of_the_same_post_writes_nothing_and_sends_no_event(put, subscribe, statements, count, clock):
    subscribe(events=["post.created", "post.updated", "post.published"])
    every = {"excerpt": "E", "tags": ["x", "Y"], "cover_image": "https://a/b", "status": "published"}
    first = put(**every)
    events = count(Event)
    clock.now += 3600
    for same in (
        {},
        {"slug": "a", "published_at": NOW},
        {"published_at": "2026-11-20T13:00:00+01:00"},
        {"tags": ["x", "Y", "X"]},
        {"title": " A "},
    ):
        with statements() as collected:
            answer = put(**every | same)
        assert (answer.status_code, answer.data, answer.headers["ETag"]) == (200, first.data, first.headers["ETag"])
        assert [each for each in collected if each.startswith(WRITES)] == ["BEGIN IMMEDIATE", "COMMIT"]
    assert (events, count(Event)) == (2, 2)
    for another_order_or_spelling in (["Y", "x"], ["X", "Y"]):
        assert put(**every | {"tags": another_order_or_spelling}).json["tags"] == another_order_or_spelling


def test_a_file_that_schedules_a_post_changes_nothing_once_the_post_is_published(put, clock, client):
    scheduled = {"status": "scheduled", "published_at": LATER}
    assert put(**scheduled).status_code == 201
    clock.now += 3600
    published = client.get("/v1/posts/by-slug/a").json
    assert published == MADE | {"status": "published", "published_at": LATER, "updated_at": LATER}
    answer = put(**scheduled)
    assert (answer.status_code, answer.json) == (200, published)
    changed = put(title="B", **scheduled).json
    assert (changed["title"], changed["status"], changed["published_at"]) == ("B", "published", LATER)
    wrong = message(put(status="scheduled", published_at=NOW))
    assert wrong == "published_at: must be given, and in the future, for a scheduled post"
    assert message(put(status="scheduled")) == wrong


# Preconditions


def test_if_none_match_with_a_star_only_creates(put):
    assert put({"If-None-Match": "*"}).status_code == 201
    for fields in ({}, {"title": "Other"}):
        answer = put({"If-None-Match": "*"}, **fields)
        assert message(answer, 412) == "If-None-Match: the post already exists"


@pytest.mark.both_engines
@cases("path", ["/v1/posts/1", "/v1/posts/by-slug/a"])
@cases("method", ["PATCH", "DELETE"])
@cases(
    ("header", "why"),
    ('"other"', "the post has changed since; get it again"),
    ("W/{}", "a weak ETag (W/) never matches; a proxy that compresses responses makes them weak"),
    ('"x", W/{}', "a weak ETag (W/) never matches; a proxy that compresses responses makes them weak"),
    ('"x", W/"y"', "the post has changed since; get it again"),
    ("unquoted", "must be an ETag with its quotes"),
)
def test_an_if_match_that_does_not_match_changes_nothing_and_says_why(client, put, path, method, header, why):
    before = put().json
    headers = {"If-Match": header.format(client.get("/v1/posts/1").headers["ETag"])}
    answer = client.open(path, method=method, json={"title": "B"}, headers=headers)
    assert (message(answer, 412), client.get("/v1/posts/1").json) == (f"If-Match: {why}", before)


def test_if_match_only_replaces(client, put, count):
    for wanted in ("*", '"x"'):
        answer = put({"If-Match": wanted})
        assert message(answer, 412) == "If-Match: there is no such post"
    assert count(Post) == 0
    tag = put().headers["ETag"]
    assert put({"If-Match": '"x"'}, title="C").status_code == 412
    assert put({"If-Match": '"x"'}).status_code == 412
    assert put({"If-Match": tag}).status_code == 200
    assert put({"If-Match": tag}, title="C").json["title"] == "C"
    assert put({"If-Match": tag}, title="D").status_code == 412
    assert put({"If-Match": "*"}, title="D").status_code == 200


# By id


@pytest.mark.both_engines
def test_put_by_id_replaces_the_post_and_its_slug(client, put, count):
    put(excerpt="E", tags=["x"], status="published")
    answer = client.put("/v1/posts/1", json={"title": "A", "content": "C", "slug": "other"})
    assert answer.status_code == 200
    new = {"content": "C", "slug": "other", "status": "published", "published_at": NOW, "former_slugs": ["a"]}
    assert answer.json == MADE | new
    same = client.put("/v1/posts/1", json={"title": "A", "content": "C", "slug": ""})
    assert (same.data, same.headers["ETag"]) == (answer.data, answer.headers["ETag"])
    file = b"---\nslug: third\nauthor: Ada\n---\n\n# A\n"
    markdown = client.put("/v1/posts/1?unknown=params", data=file, content_type="text/markdown").json
    assert (markdown["slug"], markdown["params"]) == ("third", {"author": "Ada"})
    assert count(Post) == 1


def test_put_by_id_creates_nothing_and_cannot_take_the_slug_of_another_post(client, put, count):
    fields = {"title": "A", "content": "B"}
    assert message(client.put("/v1/posts/1", json=fields, headers={"If-Match": "*"}), 404).startswith("no such post")
    tag = put().headers["ETag"]
    put(at="b")
    assert message(client.put("/v1/posts/1", json=fields | {"slug": "b"})).startswith("slug: ")
    for headers in ({"If-Match": '"x"'}, {"If-None-Match": "*"}):
        assert client.put("/v1/posts/1", json=fields | {"content": "C"}, headers=headers).status_code == 412
    assert client.put("/v1/posts/1", json=fields | {"content": "C"}, headers={"If-Match": tag}).status_code == 200
    assert count(Post) == 2
