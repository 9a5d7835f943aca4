"""The life of a post: read, changed, scheduled, archived, deleted; its dates; conditional requests."""

from itertools import product

import pytest

from blogapi.posts import publication
from blogapi.storage.keys import new_key
from blogapi.storage.models import Post, PostTag
from tests.api.fixtures import EARLIER, LATER, NOW, listed
from tests.cases import cases
from tests.conftest import NOON, message
from tests.databases import busy

LATER_SECONDS = NOON + 3600


@pytest.fixture
def patch(client):
    """Change post 1; return the response."""

    def patch(headers=None, **changes):
        return client.patch("/v1/posts/1", json=changes, headers=headers)

    return patch


# Changing a post


def test_fields_left_out_stay(patch, post):
    before = post(title="A", excerpt="B", tags=["c"], cover_image="https://d/e", status="published")
    assert patch().json == before
    assert patch(title=" New ").json == before | {"title": "New"}
    assert patch(content="x", tags=["D", "d"]).json == before | {"title": "New", "content": "x", "tags": ["D"]}


@pytest.mark.parametrize(
    ("method", "path"), [("PATCH", "1"), ("PATCH", "by-slug/c"), ("PUT", "by-slug/c"), ("POST", "")]
)
def test_a_post_can_be_sent_back_as_received(client, post, method, path):
    post(slug="c", excerpt="B", tags=["d"], status="published", cover_image="https://d/e", params={"f": 1})
    got = client.get("/v1/posts/1")
    client.delete("/v1/posts/1" if method == "POST" else "/v1/posts/2")
    answer = client.open(f"/v1/posts/{path}".rstrip("/"), method=method, json=got.json)
    assert answer.status_code == (201 if method == "POST" else 200), answer.text
    assert answer.json == got.json | {"id": answer.json["id"]}


@cases(
    ("changes", "wrong"),
    ({"title": ""}, "title: must have 1 to 255 characters"),
    ({"slug": "other"}, "slug: already taken by another post"),
)
def test_a_bad_change_is_refused_and_nothing_changed(client, put, patch, post, changes, wrong):
    before = put().json
    put(at="other")
    assert (message(patch(**changes)), client.get("/v1/posts/1").json) == (wrong, before)


# The status


@cases(
    "moment",
    [
        *("", "2026-11-20", "2026-11-20T12:00:00", "2026-11-20 12:00:00Z", "2026-11-20T12:00Z", "2026-W47-5T12:00:00Z"),
        *("2026-13-20T12:00:00Z", "2026-11-20T24:00:00Z", "2026-11-20T12:00:60Z", "2026-11-20T12:00:00+24:00"),
        *("2026-11-20T12:00:00+02", "2026-11-20T12:00:00+2500", "2026-11-20T12:00:00+02:0"),
        *("0001-01-01T00:00:00+01:00", "２026-11-20T12:00:00Z", 1, True),
    ],
)
def test_a_time_must_be_rfc_3339_with_an_offset(patch, post, moment):
    post()
    wrong = "published_at: must be a time in RFC 3339 with an offset, such as 2026-11-20T10:10:00Z"
    assert message(patch(status="published", published_at=moment)) == wrong


@cases("moment", ["2026-11-20T11:00:00Z", "2026-11-20t12:30:00.999999999+01:30", "2026-11-20T10:00:00-0100"])
def test_a_time_is_kept_in_utc_and_whole_seconds(patch, post, moment):
    post()
    assert patch(status="published", published_at=moment).json["published_at"] == EARLIER


SOON_ENOUGH = "2026-11-20T12:00:01Z"
SOON = "published_at: must be given, and in the future, for a scheduled post"
PAST = f"published_at: {publication.FUTURE}"


@pytest.mark.both_engines
@cases(
    ("before", "asked", "after"),
    (("draft", None), {"status": "published", "published_at": NOW}, ("published", NOW)),
    (("draft", None), {"status": "scheduled", "published_at": NOW}, SOON),
    (("draft", None), {"published_at": "2026-11-20T12:01:00Z"}, ("draft", NOW)),
    (("draft", None), {"status": "published", "published_at": "2026-11-20T12:01:00Z"}, ("published", NOW)),
    (("draft", None), {"status": "published", "published_at": "2026-11-20T12:01:01Z"}, PAST),
    (("draft", None), {"status": "scheduled", "published_at": SOON_ENOUGH}, ("scheduled", SOON_ENOUGH)),
    (("draft", EARLIER), {"status": "published"}, ("published", EARLIER)),
    (("draft", EARLIER), {}, ("draft", EARLIER)),
    (("draft", EARLIER), {"status": "scheduled"}, SOON),
    (("published", EARLIER), {}, ("published", EARLIER)),
    (("published", EARLIER), {"status": "draft"}, ("draft", EARLIER)),
    (("published", EARLIER), {"status": "archived"}, ("archived", EARLIER)),
    (("published", EARLIER), {"published_at": NOW}, ("published", NOW)),
    (("published", EARLIER), {"published_at": LATER}, PAST),
    (("published", EARLIER), {"status": "scheduled", "published_at": LATER}, ("scheduled", LATER)),
    (("scheduled", LATER), {}, ("scheduled", LATER)),
    (("scheduled", LATER), {"status": "published"}, ("published", NOW)),
    (("scheduled", LATER), {"status": "draft"}, ("draft", None)),
    (("scheduled", LATER), {"status": "archived"}, ("archived", None)),
    (("scheduled", LATER), {"status": "scheduled"}, ("scheduled", LATER)),
    (("scheduled", LATER), {"published_at": "2026-11-20T14:00:00Z"}, ("scheduled", "2026-11-20T14:00:00Z")),
    (("scheduled", LATER), {"published_at": EARLIER}, SOON),
    (("archived", EARLIER), {"status": "published"}, ("published", EARLIER)),
    (("archived", None), {"status": "published"}, ("published", NOW)),
    (("archived", None), {"status": "draft"}, ("draft", None)),
)
@cases("method", ["PATCH", "PUT"])
def test_any_status_may_follow_any_other(client, post, before, asked, after, method):
    """Status and published_at before, the change, and both afterwards, or the error.

    test_status_in_every_way.py tests what becomes of a new draft.
    """
    number = post(tags=["a"])["id"]
    path = f"/v1/posts/{number}"
    status, time = before
    if time == EARLIER:
        client.patch(path, json={"status": "published", "published_at": EARLIER})
    first = {"status": status} | ({"published_at": time} if status == "scheduled" else {})
    assert client.patch(path, json=first).status_code == 200
    answer = client.open(path, method=method, json={"title": "B", "content": "C", "tags": ["a"]} | asked)
    if isinstance(after, str):
        assert message(answer) == after
        after = before
    kept = client.get(path).json
    assert (kept["status"], kept.get("published_at")) == after
    assert listed(client, f"status={after[0]}&tag=a") == listed(client, f"status={after[0]}") == [number]
    client.delete(path)


# Scheduling


@pytest.fixture
def scheduled(post, patch):
    """Post 1, scheduled in an hour, between two others."""
    post(tags=["a"])
    post(tags=["a"], status="published")
    assert patch(status="scheduled", published_at=LATER).json["status"] == "scheduled"


def seen(client):
    """The posts in each status, according to every kind of read."""
    found = {status: listed(client, f"status={status}") for status in ("published", "scheduled")}
    assert found == {status: listed(client, f"status={status}&tag=a") for status in found}
    one = client.get("/v1/posts/1").json
    assert one in client.get("/v1/posts").json
    assert one in client.get("/v1/posts?tag=a").json
    assert one in client.get(f"/v1/posts?status={one['status']}").json
    return found["published"], found["scheduled"], one["status"]


@pytest.mark.both_engines
def test_a_scheduled_post_is_published_before_the_first_request_after_its_time(client, database, clock, scheduled):
    clock.now = LATER_SECONDS - 1
    assert seen(client) == (["2"], ["1"], "scheduled")
    clock.now = LATER_SECONDS
    assert seen(client) == (["2", "1"], [], "published")
    assert database.row(Post.select(Post.status).where(Post.id == 1)) == ("published",)
    clock.now = NOON  # It stays published, although the clock was set back.
    assert seen(client) == (["2", "1"], [], "published")


QUERIES = ["", "&tag=a", "&q=title", "&q=title&sort=relevance", "&q=title&sort=published_at", "&sort=updated_at"]
LISTS = [*(f"/v1/posts?status=published{query}" for query in QUERIES), "/micropub?q=source&post-status=published"]


@pytest.mark.both_engines
@pytest.mark.parametrize("path", LISTS)
def test_whichever_list_is_read_first_has_the_published_post(client, clock, path, scheduled):
    clock.now = LATER_SECONDS - 1
    one = client.get(path).text.count("published")
    clock.now = LATER_SECONDS
    assert client.get(path).text.count("published") == 2 * one > 0


@pytest.fixture
def due(database):
    """The ids of the posts that are due but not published."""
    return lambda: [post_id for (post_id,) in database.rows(Post.select(Post.id).where(Post.status == "scheduled"))]


@cases("path", ["/healthz", "/readyz", "/v1/posts", "/settings/posts", "/micropub?q=source", "/no/such/path"])
def test_a_stranger_publishes_nothing(stranger, clock, due, path, scheduled):
    clock.now = LATER_SECONDS
    stranger.get(path)
    stranger.get(path, headers={"Authorization": f"Bearer {new_key()}"})
    assert due() == [1]


@pytest.mark.parametrize("path", ["/v1/posts/2", "/v1/key", "/metrics", "/micropub?q=config", "/no/such/path"])
def test_every_request_with_a_key_publishes(client, clock, due, path, scheduled):
    clock.now = LATER_SECONDS
    client.get(path)
    assert due() == []


@pytest.mark.both_engines
def test_a_change_whose_body_arrives_after_the_time_changes_the_published_post(client, clock, due, scheduled):
    clock.now = LATER_SECONDS
    client.application.extensions["blogapi"].due_second = LATER_SECONDS  # as if another request had looked in vain
    assert (client.patch("/v1/posts/1", json={"title": "B"}).json["status"], due()) == ("published", [])


@pytest.mark.both_engines
def test_a_request_publishes_a_batch_and_the_next_second_another(client, post, clock, due, monkeypatch):
    monkeypatch.setattr("blogapi.posts.storage.MAX_PUBLISHED", 1)
    for number in (1, 2, 3):
        post()
        client.patch(f"/v1/posts/{number}", json={"status": "scheduled", "published_at": LATER})
    for left in ([2, 3], [3], []):
        clock.now = max(clock.now + 1, LATER_SECONDS)
        for _ in range(2):
            client.get("/v1/key")
            assert due() == left


@pytest.mark.usefixtures("scheduled")
def test_a_due_post_that_cannot_be_written_is_read_as_scheduled_and_tried_once_a_second(client, config, clock, due):
    clock.now = LATER_SECONDS
    with busy(config.database):
        assert seen(client) == (["2"], ["1"], "scheduled")
    assert client.get("/v1/posts/1").json["status"] == "scheduled"
    clock.now += 1
    assert (client.get("/v1/posts/1").json["status"], due()) == ("published", [])


def test_a_large_due_post_is_published_before_the_request_too(client, clock, patch, scheduled):
    patch(content="x" * 300_000)
    clock.now = LATER_SECONDS
    assert client.get("/v1/posts/1").json["status"] == "published"


# Dates


def test_updated_at_changes_when_a_tag_is_renamed_or_removed(client, post, clock):
    post(tags=["a", "b"]), post(tags=["b"])
    for name, new_name, minute in (("a", "a", 0), ("a", "A", 2), ("a", "c", 3), ("c", None, 4)):
        clock.now += 60
        body = {"name": new_name} if new_name else None
        client.open(f"/v1/tags/{name}", method="PATCH" if body else "DELETE", json=body)
        times = [client.get(f"/v1/posts/{number}").json["updated_at"] for number in (1, 2)]
        assert times == [f"2026-11-20T12:0{minute}:00Z", NOW]


# Deleting


@pytest.mark.both_engines
def test_in_any_order_of_deletions_slugs_become_free_and_ids_do_not(client, post, count):
    for order in ("321", "456"):
        for _ in range(3):
            post(tags=["a", "b"])
        for number in order:
            answer = client.delete(f"/v1/posts/{number}")
            assert (answer.status_code, answer.data, "Content-Type" in answer.headers) == (204, b"", False)
    assert (count(Post), count(PostTag)) == (0, 0)
    assert post().items() >= {"id": "7", "slug": "a-title"}.items()


def test_only_the_id_as_written_names_a_post(client, post):
    before = post()
    spellings = ["2", "007", "01", "+1", "-1", "1.0", "%D9%A1", "1%20", "%201", "1%0A", "1_0", "0x1", "1e0", "1/", "a"]
    for spelling, method in product((*spellings, "", "9" * 19, "9" * 30), ("GET", "PATCH", "DELETE")):
        answer = client.open(f"/v1/posts/{spelling}", method=method, json={"title": "B"})
        assert answer.status_code == 404, (method, spelling)
    assert client.get("/v1/posts").json == [before]


# Preconditions


def test_other_preconditions_hold_as_well(client, patch, post):
    post()
    tag = client.get("/v1/posts/1").headers["ETag"]
    assert client.get("/v1/posts/1", headers={"If-Match": '"x"'}).status_code == 412
    for wanted, reason in (("*", "the post already exists"), (tag, "the post still has this entity tag")):
        answer = patch({"If-None-Match": wanted}, title="B")
        assert message(answer, 412) == f"If-None-Match: {reason}"
    assert patch({"If-None-Match": '"x"'}, title="B").status_code == 200


def test_setting_the_clock_back_changes_no_publication(patch, post, clock):
    before = post(status="published")
    clock.now -= 60
    assert patch(title="B").json == before | {"title": "B", "updated_at": "2026-11-20T11:59:00Z"}


@pytest.mark.both_engines
@pytest.mark.in_process
@pytest.mark.parametrize(
    ("method", "path", "body", "times"),
    [
        ("POST", "posts", {"title": "B", "content": "y" * 300_000}, 2),  # while its words are found, and in the write
        ("PATCH", "posts/1", {"content": "y" * 300_000}, 2),
        ("PATCH", "posts/2", {"status": "published"}, 1),
        ("PUT", "posts/by-slug/small", {"title": "B", "content": "y" * 300_000}, 2),
        ("DELETE", "posts/2", None, 1),
        ("POST", "trash/3/restore", None, 1),
    ],
)
def test_others_are_served_while_a_large_post_is_written(client, post, meanwhile, method, path, body, times):
    post(slug="small")
    for _ in range(2):
        post(content="x" * 300_000)
    client.delete("/v1/posts/3")
    meanwhile.clear()
    assert client.open(f"/v1/{path}", method=method, json=body).status_code in (200, 201, 204)
    assert meanwhile == [200] * times
