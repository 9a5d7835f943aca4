"""Webhooks as their owner sees them, and the events that are recorded for them."""

import re
from contextlib import contextmanager
from dataclasses import replace

import pytest

from blogapi.posts.schemas import PostSchema
from blogapi.storage.engine import Loop
from blogapi.storage.models import Webhook
from blogapi.webhooks.storage import DEFAULT_EVENTS, EVENTS, Delivery, Event
from tests.api.fixtures import NOW, URL
from tests.api.fixtures import WEBHOOK as SHOWN
from tests.cases import cases
from tests.conftest import message

ABSOLUTE = "url: must be an absolute http or https URL without white space"
HOST = "url: must have a valid host, and a port from 1 to 65535"
PRIVATE = "is a private or loopback address; only BLOGAPI_WEBHOOK_PRIVATE=true allows these"
FIELDS = "unknown field; known: url, events, headers, after_seconds, body"
TOO_MANY = {str(number): "b" for number in range(11)}, {"a": "b" * 4096}
NAME = "must be a header name without spaces, and not one that the service sets"


def test_a_webhook_has_its_own_secret_that_is_shown_once(client, subscribe):
    answer = client.post("/v1/webhooks", json={"url": URL})
    assert (answer.status_code, answer.headers["Location"]) == (201, "/v1/webhooks/1")
    secret = answer.json["secret"]
    assert re.fullmatch("whsec_[A-Za-z0-9+/]{43}=", secret)
    assert answer.json == SHOWN | {"secret": secret}
    assert client.get("/v1/webhooks").json == [SHOWN]
    assert client.get("/v1/webhooks/1").json == SHOWN
    assert client.patch("/v1/webhooks/1", json={}).json == SHOWN
    assert subscribe()["secret"] != secret


OPTIONS = {"headers": {"Authorization": "Bearer secret", "X-A": "b"}, "after_seconds": 60, "body": "dispatch"}


def test_only_the_names_of_headers_are_shown_and_a_change_replaces_all(client):
    created = client.post("/v1/webhooks", json={"url": URL} | OPTIONS)
    shown = SHOWN | {"header_names": ["Authorization", "X-A"], "after_seconds": 60, "body": "dispatch"}
    assert (created.status_code, {**created.json, "secret": ""}) == (201, shown | {"secret": ""})
    for path in ("/v1/webhooks/1", "/v1/webhooks"):
        assert "Bearer" not in client.get(path).text
    assert client.patch("/v1/webhooks/1", json={"active": True}).json == shown
    changed = client.patch("/v1/webhooks/1", json={"headers": {"X-B": "c"}, "after_seconds": 0}).json
    assert changed == SHOWN | {"header_names": ["X-B"], "body": "dispatch"}
    assert client.patch("/v1/webhooks/1", json={"headers": {}, "body": "event"}).json == SHOWN


def test_events_can_be_chosen_and_a_change_can_leave_out_fields(client, subscribe):
    assert subscribe(events=["post.deleted", "ping", "post.deleted"])["events"] == ["post.deleted", "ping"]
    every = {"events": SHOWN["events"]}
    assert client.patch("/v1/webhooks/1", json=every).json["events"] == SHOWN["events"]
    changed = SHOWN | {"url": "http://8.8.8.8", "active": False}
    answer = client.patch("/v1/webhooks/1", json={"url": "http://8.8.8.8", "active": False})
    assert answer.json == changed == client.get("/v1/webhooks/1").json
    merge_patch = {"Content-Type": "application/merge-patch+json"}
    assert client.patch("/v1/webhooks/1", data='{"active": true}', headers=merge_patch).json["active"] is True


@cases(
    ("body", "expected"),
    ({"url": None}, "url: must not be null"),
    ({"url": ""}, "url: must have 1 to 2,048 characters"),
    *(({"url": url}, ABSOLUTE) for url in ("ftp://a.b", "http://8.8.8.8:65536", "http://127.0.0.1\\@8.8.8.8/")),
    *(({"url": url}, HOST) for url in ("http://8.8.8.8:0", "http://[1::2::3]")),
    ({"url": "http://%00/"}, "url: not a valid host name"),
    ({"url": "http://localhost"}, f"url: 127.0.0.1 {PRIVATE}"),
    ({"url": "http://[::1]:80/"}, f"url: ::1 {PRIVATE}"),
    ({"url": "http://%31%32%37.0.0.1/"}, f"url: 127.0.0.1 {PRIVATE}"),
    ({"url": "http://2852039166/latest"}, "url: 169.254.169.254 is a link-local, multicast or metadata address"),
    *(({"events": events}, "events: must have 1 to 9 events") for events in ([], ["ping"] * 10)),
    ({"events": "ping"}, "events: must be an array of strings"),
    ({"events": ["ping", "pong"]}, f"events[1]: must be one of {', '.join(EVENTS)}"),
    ({"secret": "2"}, f'"secret": {FIELDS}'),
    *(({"headers": each}, "headers: must be an object whose values are strings") for each in ([], {"a": 1})),
    ({"headers": {"A": "b", "a": "c"}}, "headers: must not have a name twice"),
    ({"headers": {"a": "b\r\nc: d"}}, "headers: a: must have visible ASCII characters, and spaces only"),
    *(({"headers": {name: "b"}}, f"headers: {name}: {NAME}") for name in ("Host", "webhook-id", "a b")),
    *(({"headers": each}, "headers: must have at most 10 headers and 4,096 characters in total") for each in TOO_MANY),
    ({"after_seconds": 601}, "after_seconds: must be from 0 to 600"),
    ({"after_seconds": "1"}, "after_seconds: must be a whole number"),
    ({"body": "xml"}, "body: must be one of event, dispatch"),
)
def test_a_bad_field_is_refused_at_creation_and_at_a_change(client, subscribe, body, expected):
    assert message(client.post("/v1/webhooks", json={"url": URL} | body)).startswith(expected)
    assert client.get("/v1/webhooks").json == []
    path = f"/v1/webhooks/{subscribe()['id']}"
    before = client.get(path).json
    assert message(client.patch(path, json=body)).startswith(expected)
    assert client.get(path).json == before
    client.delete(path)


@pytest.fixture
def one(subscribe):
    return subscribe()


@cases(
    ("method", "path", "body", "expected"),
    ("POST", "", {}, "url: missing"),
    ("POST", "", {"url": URL, "active": True}, f'"active": {FIELDS}'),
    ("PATCH", "/1", {"active": 1}, "active: must be true or false"),
    ("PATCH", "/1", {"secret": "2"}, f'"secret": {FIELDS}, active'),
)
def test_a_bad_creation_or_change_is_refused(client, one, method, path, body, expected):
    assert message(client.open(f"/v1/webhooks{path}", method=method, json=body)) == expected
    assert client.get("/v1/webhooks").json == [SHOWN]


def test_null_counts_as_left_out_for_each_optional_field(client, subscribe):
    """Java's generated clients send it."""
    assert subscribe(events=None)["events"] == list(DEFAULT_EVENTS)
    client.patch("/v1/webhooks/1", json={"events": ["ping"]})
    assert client.patch("/v1/webhooks/1", json={"events": None, "active": False}).json["events"] == ["ping"]
    nothing = dict.fromkeys(("events", "headers", "after_seconds", "body"))
    plain = subscribe()
    assert subscribe(**nothing).keys() == plain.keys()
    options = {"headers": {"X-A": "a"}, "after_seconds": 5, "body": "dispatch", "active": False}
    changed = client.patch("/v1/webhooks/2", json=options).json
    assert client.patch("/v1/webhooks/2", json=nothing | {"active": None}).json == changed


def test_a_host_whose_look_up_takes_long_is_accepted(app, subscribe):
    class SlowLoop(Loop):
        @contextmanager
        def timeout(self, seconds):
            assert seconds == 3
            raise TimeoutError
            yield

    app.extensions["blogapi"] = replace(app.extensions["blogapi"], loop=SlowLoop())
    assert subscribe(url="http://slow.example")["url"] == "http://slow.example"


def test_there_are_at_most_50(client, subscribe):
    for _ in range(50):
        subscribe()
    assert message(client.post("/v1/webhooks", json={"url": URL})) == "webhooks: there are 50 already; delete one first"
    assert client.delete("/v1/webhooks/7").status_code == 204
    assert subscribe()["id"] == "51"


@cases(
    ("method", "path"),
    ("GET", ""),
    ("PATCH", ""),
    ("DELETE", ""),
    ("POST", "/ping"),
    ("GET", "/deliveries"),
    ("POST", "/deliveries/msg_p5jXN8AQM9LWM0D4loKWxJ/redeliver"),
)
@cases("name", ["2", str(2**63)])
def test_an_unknown_webhook_is_404(client, one, method, path, name):
    assert message(client.open(f"/v1/webhooks/{name}{path}", method=method), 404) == "no such webhook"


def test_a_missing_delivery_is_404(client, subscribe, post):
    subscribe(), subscribe(events=["ping"])
    post()
    delivery = client.get("/v1/webhooks/1/deliveries").json[0]["id"]
    for path in ("1/deliveries/x/redeliver", f"2/deliveries/{delivery}/redeliver"):
        for active in (True, False):
            client.patch("/v1/webhooks/1", json={"active": active})
            assert message(client.post(f"/v1/webhooks/{path}"), 404) == "no such delivery"


# Deliveries


def test_deliveries_are_listed_newest_first_at_most_100(client, subscribe, post, database):
    subscribe(events=["post.created"])
    for _ in range(101):
        post()
    listed = client.get("/v1/webhooks/1/deliveries").json
    ids = [message_id for (message_id,) in database.rows(Event.select(Event.message_id).order_by(Event.id.desc()))]
    assert [delivery["id"] for delivery in listed] == ids[:100]
    newest = {"id": ids[0], "event": "post.created", "created_at": NOW, "state": "pending", "attempts": 0}
    assert listed[0] == newest


def test_a_ping_goes_to_one_webhook_with_any_events(client, subscribe, recorded):
    subscribe(), subscribe(events=["post.created"])
    answer = client.post("/v1/webhooks/2/ping")
    assert answer.status_code == 202
    assert client.get("/v1/webhooks/2/deliveries").json == [answer.json]
    assert (answer.json["event"], answer.json["state"], answer.json["attempts"]) == ("ping", "pending", 0)
    assert client.get("/v1/webhooks/1/deliveries").json == []
    sample = {name: value for name, value in PostSchema.example.items() if name != "content"}
    assert recorded() == [("ping", {"type": "ping", "timestamp": NOW, "data": {"post": sample}})]


def test_a_webhook_that_is_off_gets_nothing_even_on_request(client, subscribe):
    subscribe()
    delivery = client.post("/v1/webhooks/1/ping").json["id"]
    client.patch("/v1/webhooks/1", json={"active": False})
    for path in ("ping", f"deliveries/{delivery}/redeliver"):
        answer = client.post(f"/v1/webhooks/1/{path}")
        assert message(answer) == "active: the webhook is inactive; set `active` to true first"


def test_deleting_the_last_webhook_deletes_its_events(client, subscribe, post, types, count):
    subscribe(events=["post.created"]), subscribe()
    post(status="published")
    client.delete("/v1/webhooks/2")
    assert types() == ["post.created"]
    client.delete("/v1/webhooks/1")
    assert (types(), count(Delivery), count(Webhook)) == ([], 0, 0)
