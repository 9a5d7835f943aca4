"""Fixtures for lists, and for webhooks by the API."""

import json

import pytest

from blogapi.storage.models import Event

LATER = "2026-11-20T13:00:00Z"
URL = "https://203.0.114.1/hook"


@pytest.fixture
def change(client):
    """Change a post."""

    def change(number, **fields):
        answer = client.patch(f"/v1/posts/{number}", json=fields)
        assert answer.status_code == 200, answer.text

    return change


@pytest.fixture
def dated(post, change):
    """Posts of each status with a time and without, some of the same second; every other has a tag."""
    for title, status, year in [
        ("1", "published", 2024),
        ("2", "draft", None),
        ("3", "published", 2020),
        ("4", "draft", 2022),
        ("5", "published", 2024),
        ("6", "published", 2020),
        ("7", "published", 2020),
        ("8", "published", 2020),
        ("9", "published", 2021),
    ]:
        time = {"published_at": f"{year}-01-01T00:00:00Z"} if year else {}
        post(title=title, status=status, tags=["T"] if int(title) % 2 else [], **time)
    change(8, status="archived")
    change(2, status="scheduled", published_at=LATER)


@pytest.fixture
def subscribe(client):
    """Create a webhook; return it."""

    def create(**fields):
        answer = client.post("/v1/webhooks", json={"url": URL} | fields)
        assert answer.status_code == 201, answer.text
        return answer.json

    return create


@pytest.fixture
def recorded(database):
    """Type and payload of all events, in order."""

    def recorded():
        rows = database.rows(Event.select(Event.type, Event.payload).order_by(Event.id))
        return [(name, json.loads(payload)) for name, payload in rows]

    return recorded


@pytest.fixture
def types(recorded):
    return lambda: [name for name, _ in recorded()]
