"""Fixtures for posts that Micropub creates and changes."""

import pytest

from tests.micropub.requests import PATH, URL


@pytest.fixture
def create(client):
    """Create a post with a form, or with JSON; return the post, and the names that were ignored."""

    def create(data=None, **options):
        answer = client.post(PATH, data=data, **options)
        assert answer.status_code == 201, answer.json
        assert answer.headers["Location"] == answer.json["url"]
        path = answer.headers["Location"].removeprefix(URL)
        assert answer.json == {"url": URL + path, "ignored": answer.json["ignored"]}
        return client.get(path).json, answer.json["ignored"]

    return create


@pytest.fixture
def post(client, clock):
    fields = {"title": "A", "content": "B", "tags": ["a", "b"], "excerpt": "C", "status": "published"}
    client.post("/v1/posts", json=fields)
    clock.now += 1

    def get():
        return client.get("/v1/posts/1").json

    return get
