"""The dates of a post: updated_at, and published_at at its creation."""

import pytest

from blogapi.post import SCHEDULING
from blogapi.storage import posts
from blogapi.storage.models import Post
from tests.conftest import NOON, message

NOW, LATER = "2026-11-20T12:00:00Z", "2026-11-20T13:00:00Z"


@pytest.fixture
def put(client):
    """PUT a post with the slug a; return the answer."""

    def put(headers=None, at="a", **fields):
        return client.put(f"/v1/posts/by-slug/{at}", json={"title": "A", "content": "B"} | fields, headers=headers)

    return put


def test_updated_at_tells_when_the_post_became_other_than_it_was(client, put, clock):
    put(status="draft")
    clock.now += 60
    assert put().json["updated_at"] == NOW
    assert client.patch("/v1/posts/1", json={"title": "A"}).json["updated_at"] == NOW
    assert put(title="C").json["updated_at"] == "2026-11-20T12:01:00Z"
    clock.now += 60
    assert client.patch("/v1/posts/1", json={"title": "D"}).json["updated_at"] == "2026-11-20T12:02:00Z"


def test_updated_at_tells_of_a_tag_that_was_renamed_or_removed(client, post, clock):
    post(tags=["a", "b"])
    post(tags=["b"])

    def updated_at(post_id):
        return client.get(f"/v1/posts/{post_id}").json["updated_at"]

    for minute, (method, name, body) in enumerate(
        [("PATCH", "a", {"name": "A"}), ("PATCH", "a", {"name": "c"}), ("DELETE", "c", None)], 1
    ):
        clock.now = NOON + 60 * minute
        assert client.open(f"/v1/tags/{name}", method=method, json=body).status_code in (200, 204)
        assert (updated_at(1), updated_at(2)) == (f"2026-11-20T12:0{minute}:00Z", NOW)


def test_a_tag_renamed_to_what_it_is_updates_nothing(client, post, clock):
    post(tags=["a"])
    tag = client.get("/v1/posts/1").headers["ETag"]
    clock.now += 60
    client.patch("/v1/tags/a", json={"name": "a"})
    assert client.get("/v1/posts/1").headers["ETag"] == tag


def test_updated_at_is_the_time_of_a_publication_also_before_it_is_written(client, put, database, clock):
    put(status="scheduled", published_at="2026-11-20T12:30:00Z")
    clock.now += 3600
    before = client.get("/v1/posts/1")
    assert before.json["updated_at"] == "2026-11-20T12:30:00Z"
    database.write(posts.publish_due)
    assert client.get("/v1/posts/1").data == before.data
    assert client.get("/v1/posts").json == [before.json]


# published_at at creation


@pytest.mark.parametrize("status", ["draft", "published"])
def test_a_post_can_be_created_with_an_earlier_date(client, post, status):
    assert post(status=status, published_at="2020-01-02T03:04:05+01:00")["published_at"] == "2020-01-02T02:04:05Z"
    published = client.patch("/v1/posts/1", json={"status": "published"}).json
    assert (published["published_at"], published["created_at"]) == ("2020-01-02T02:04:05Z", NOW)


@pytest.mark.parametrize("status", ["draft", "published"])
def test_a_post_cannot_be_created_with_a_future_date(client, status, count):
    answer = client.post("/v1/posts", json={"title": "A", "content": "B", "status": status, "published_at": LATER})
    wrong = f"published_at: must not be in the future unless the status is scheduled; {SCHEDULING}"
    assert (message(answer), count(Post)) == (wrong, 0)
