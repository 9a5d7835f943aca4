"""Helpers for several API tests: clients with other keys and settings, lists, webhooks."""

import json
from dataclasses import replace

import pytest

from blogapi import create_app
from blogapi.documents import INPUT_FIELDS
from blogapi.webhooks.storage import DEFAULT_EVENTS, Event
from tests.service import add_key

EARLIER, NOW, LATER = "2026-11-20T11:00:00Z", "2026-11-20T12:00:00Z", "2026-11-20T13:00:00Z"
FIELDS_ARE = f"known: {', '.join(INPUT_FIELDS)}"
NEW_STATUS = (
    "status: must be one of published, draft; PUT /v1/posts/by-slug/{slug} also creates scheduled and archived posts"
)
URL = "https://203.0.114.1/hook"
WEBHOOK = {"id": "1", "url": URL, "events": list(DEFAULT_EVENTS), "active": True, "created_at": NOW}


def with_key(app, scope="full"):
    """A client with a new key."""
    client = app.test_client()
    client.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {add_key(app.extensions['blogapi'].database, scope, scope)}"
    return client


@pytest.fixture
def own_app(config, clock):
    """Create a separate application with these settings."""
    apps = []

    def create(**settings):
        apps.append(create_app(replace(config, **settings), clock))
        return apps[-1]

    yield create
    for app in apps:
        app.extensions["blogapi"].database.close()


@pytest.fixture
def agent(app):
    """A client with a drafts-only key."""
    return with_key(app, "drafts-only")


def answers(client, path):
    """Yield the response for each page of a list."""
    while path:
        yield (answer := client.get(path))
        path = answer.headers.get("Link", "").removeprefix("<").removesuffix('>; rel="next"')


def walk(client, path):
    """The titles of the posts on each page."""
    return [[post["title"] for post in answer.json] for answer in answers(client, path)]


def titles(client, path):
    """The titles of the posts in a list, joined into one string."""
    answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return "".join(post["title"] for post in answer.json)


def in_pages(client, path, limit):
    """The titles of the posts on all pages of this length; only the last one may be shorter."""
    pages = walk(client, f"{path}&limit={limit}")
    assert all(len(page) == limit for page in pages[:-1]), path
    return [title for page in pages for title in page]


def listed(client, query=""):
    """The ids of the posts in a list."""
    return [post["id"] for post in client.get(f"/v1/posts?{query}").json]


@pytest.fixture
def put(client):
    """PUT a post with the slug `a`; return the response."""

    def put(headers=None, at="a", **fields):
        return client.put(f"/v1/posts/by-slug/{at}", json={"title": "A", "content": "B"} | fields, headers=headers)

    return put


@pytest.fixture
def change(client):
    """Change a post."""

    def change(number, **fields):
        answer = client.patch(f"/v1/posts/{number}", json=fields)
        assert answer.status_code == 200, answer.text

    return change


@pytest.fixture
def dated(post, change):
    """Posts in each status, with and without a date, some in the same second. Every other post has a tag."""
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
    """The types and payloads of all events, in order."""

    def recorded():
        rows = database.rows(Event.select(Event.type, Event.payload).order_by(Event.id))
        return [(name, json.loads(payload)) for name, payload in rows]

    return recorded


@pytest.fixture
def types(recorded):
    return lambda: [name for name, _ in recorded()]
