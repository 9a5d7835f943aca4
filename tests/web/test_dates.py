"""The dates of a post: updated_at, and published_at at its creation."""

import pytest

from blogapi.post import SCHEDULING
from blogapi.storage.models import Post
from tests.conftest import message
from tests.web.conftest import LATER, NOW


def test_updated_at_changes_only_when_the_post_does(client, put, clock):
    put(status="draft")
    clock.now += 60
    assert put().json["updated_at"] == NOW
    assert client.patch("/v1/posts/1", json={"title": "A"}).json["updated_at"] == NOW
    assert put(title="C").json["updated_at"] == "2026-11-20T12:01:00Z"
    clock.now += 60
    assert client.patch("/v1/posts/1", json={"title": "D"}).json["updated_at"] == "2026-11-20T12:02:00Z"


def test_updated_at_changes_when_a_tag_is_renamed_or_removed(client, post, clock):
    post(tags=["a", "b"])
    post(tags=["b"])

    def updated_at(post_id):
        return client.get(f"/v1/posts/{post_id}").json["updated_at"]

    for method, name, body, minute in [
        ("PATCH", "a", {"name": "a"}, 0),
        ("PATCH", "a", {"name": "A"}, 2),
        ("PATCH", "a", {"name": "c"}, 3),
        ("DELETE", "c", None, 4),
    ]:
        clock.now += 60
        assert client.open(f"/v1/tags/{name}", method=method, json=body).status_code in (200, 204)
        assert (updated_at(1), updated_at(2)) == (f"2026-11-20T12:0{minute}:00Z", NOW)


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
