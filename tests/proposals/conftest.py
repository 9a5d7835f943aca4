"""Fixtures for an agent that proposes changes, and functions that make and apply proposals."""

import json

import pytest

from tests.api.fixtures import with_key

POST = "/v1/posts/1"


@pytest.fixture
def agent(app):
    """A client with a drafts-only key."""
    return with_key(app, "drafts-only")


def propose(client, path=POST, **fields):
    body = json.dumps(fields, ensure_ascii=False).encode()
    answer = client.post(f"{path}/proposals", data=body, content_type="application/json")
    assert answer.status_code == 201, answer.text
    return answer.json


def apply(client, proposal, query="", **options):
    return client.post(f"/v1/posts/{proposal['post_id']}/proposals/{proposal['id']}/apply{query}", **options)


def titles(client, path="/v1/proposals"):
    return [each["changes"]["title"] for each in client.get(path).json]
