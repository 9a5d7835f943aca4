"""Idempotency-Key: repeating a request creates no second post."""

import pytest

from blogapi.posts import idempotency
from blogapi.storage import keys
from blogapi.storage.models import Idempotency
from tests.api.fixtures import listed, with_key
from tests.cases import cases
from tests.conftest import message


@pytest.fixture
def once(client):
    """Create a post with an Idempotency-Key; return the response."""

    def once(key="k", title="A"):
        fields = {"title": title, "content": "B", "tags": ["c"]}
        return client.post("/v1/posts", json=fields, headers={"Idempotency-Key": key})

    return once


def test_a_repeated_request_creates_nothing_unless_the_first_was_refused(client, once):
    assert once(title=" ").status_code == 400
    first, second = once(), once()
    assert (second.status_code, second.json, second.headers["Location"]) == (201, first.json, "/v1/posts/1")
    assert listed(client) == ["1"]
    assert once("other").json["id"] == "2"


def test_a_regenerated_key_creates_nothing_twice_but_a_new_one_with_the_name_of_a_revoked_one_does(
    client, once, database
):
    once()
    regenerated, new = keys.new_key(), keys.new_key()
    database.write(keys.regenerate, "tests", regenerated)
    client.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {regenerated}"
    assert (once().json["id"], listed(client)) == ("1", ["1"])
    database.write(keys.revoke, "tests")
    database.write(keys.add, "tests", new)
    client.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {new}"
    assert once().json["id"] == "2"


@cases("query", ["", "unknown=params"])
def test_another_body_is_refused(client, query):
    """Another body is refused even if it ends with the query of the first request."""
    headers = {"Idempotency-Key": f"k{query}", "Content-Type": "text/markdown"}
    first = client.post(f"/v1/posts?{query}", data="# A\n\nB", headers=headers)
    other = client.post("/v1/posts", data=f"# A\n\n{'B' if query else 'C'}{query}", headers=headers)
    assert message(other) == "Idempotency-Key: was used for another request within the last 24 hours"
    assert listed(client)[0] == first.json["id"]


def test_a_post_that_was_deleted_is_not_created_again(client, once):
    once()
    client.delete("/v1/posts/1")
    assert message(once()) == "Idempotency-Key: the post it created was deleted"


def test_it_is_remembered_for_24_hours(once, clock, count, background, monkeypatch):
    once(), once("other"), once("last")
    clock.now += 24 * 3600 - 1
    assert once().json["id"] == "1"
    clock.now += 1
    monkeypatch.setattr(idempotency, "MAX_PRUNED", 1)
    assert (once("last").json["id"], count(Idempotency)) == ("4", 2)
    background.turn()
    assert count(Idempotency) == 1


@cases("name", ["", "a b", "x" * 256, "ä"])
def test_it_must_be_visible_ascii(once, name):
    assert message(once(name)) == "Idempotency-Key: must have 1 to 255 visible ASCII characters"


def test_each_api_key_has_its_own(app, client):
    post = {"json": {"title": "A", "content": "B"}, "headers": {"Idempotency-Key": "k"}}
    other = with_key(app)
    assert [each.post("/v1/posts", **post).json["id"] for each in (client, other, client)] == ["1", "2", "1"]
