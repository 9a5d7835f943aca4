"""Webhooks as their owner sees them, and the events that are recorded for them."""

import json
import re
from contextlib import contextmanager
from dataclasses import replace

import pytest

from blogapi.loop import Loop
from blogapi.server.log import mask
from blogapi.storage import outbox, posts, tags, webhooks
from blogapi.storage.models import EVENTS, Delivery, Event, Webhook
from tests.conftest import NOON, message

URL = "https://203.0.114.1/hook"
SHOWN = {"id": "1", "url": URL, "events": list(EVENTS), "active": True, "created_at": "2026-11-20T12:00:00Z"}
MISSING = {"error": 404, "message": "no such webhook"}


@pytest.fixture
def webhook(client):
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


# The webhooks themselves


def test_the_secret_is_shown_only_once(client):
    answer = client.post("/v1/webhooks", json={"url": URL})
    assert (answer.status_code, answer.headers["Location"]) == (201, "/v1/webhooks/1")
    assert re.fullmatch("whsec_[A-Za-z0-9+/]{43}=", answer.json["secret"])
    assert answer.json == SHOWN | {"secret": answer.json["secret"]}
    assert client.get("/v1/webhooks").json == [SHOWN]
    assert client.get("/v1/webhooks/1").json == SHOWN
    assert client.patch("/v1/webhooks/1", json={}).json == SHOWN


def test_the_log_masks_a_secret():
    for text in ("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD3J9hMvQ1yQo=", "whsec_C2FVsBQI%2Fscc%2B"):
        assert mask(f'"GET /{text}" 404') == '"GET /whsec_[masked]" 404'


def test_every_webhook_has_a_secret_of_its_own(webhook):
    assert webhook()["secret"] != webhook()["secret"]


def test_events_are_chosen(client, webhook):
    assert webhook(events=["post.deleted", "ping", "post.deleted"])["events"] == ["post.deleted", "ping"]
    assert client.patch("/v1/webhooks/1", json={"events": ["post.created"]}).json["events"] == ["post.created"]


def test_a_change_leaves_out_what_stays(client, webhook):
    webhook()
    changed = SHOWN | {"url": "http://8.8.8.8", "active": False}
    answer = client.patch("/v1/webhooks/1", json={"url": "http://8.8.8.8", "active": False})
    assert answer.json == changed == client.get("/v1/webhooks/1").json
    merge_patch = {"Content-Type": "application/merge-patch+json"}
    assert client.patch("/v1/webhooks/1", data='{"active": true}', headers=merge_patch).json["active"] is True


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, "url: missing"),
        ({"url": None}, "url: must not be null"),
        ({"url": ""}, "url: must have 1 to 2,048 characters"),
        ({"url": "ftp://a.b"}, "url: must be an absolute http or https URL without white space"),
        ({"url": "http://8.8.8.8:65536"}, "url: must have a valid host, and a port from 1 to 65535"),
        ({"url": "http://8.8.8.8:0"}, "url: must have a valid host, and a port from 1 to 65535"),
        ({"url": "http://127.0.0.1\\@8.8.8.8/"}, "url: must be an absolute http or https URL without white space"),
        ({"url": "http://[1::2::3]"}, "url: must have a valid host, and a port from 1 to 65535"),
        (
            {"url": "http://[::1]:80/"},
            "url: ::1 is a private or loopback address; only BLOGAPI_WEBHOOK_PRIVATE=true allows these",
        ),
        (
            {"url": "http://0x7f.1/"},
            "url: 127.0.0.1 is a private or loopback address; only BLOGAPI_WEBHOOK_PRIVATE=true allows these",
        ),
        (
            {"url": "http://%31%32%37.0.0.1/"},
            "url: 127.0.0.1 is a private or loopback address; only BLOGAPI_WEBHOOK_PRIVATE=true allows these",
        ),
        (
            {"url": "http://2852039166/latest"},
            "url: 169.254.169.254 is a link-local, multicast or metadata address, which is never called",
        ),
        ({"url": URL, "events": []}, "events: must have 1 to 7 events"),
        ({"url": URL, "events": ["ping"] * 8}, "events: must have 1 to 7 events"),
        ({"url": URL, "events": "ping"}, "events: must be an array of strings"),
        ({"url": URL, "events": None}, "events: must not be null"),
        ({"url": URL, "events": ["ping", "pong"]}, f"events[1]: must be one of {', '.join(EVENTS)}"),
        ({"url": URL, "secret": "mine"}, "secret: unknown field; there are url, events"),
        ({"url": URL, "active": True}, "active: unknown field; there are url, events"),
    ],
)
def test_a_bad_webhook_is_refused(client, body, expected):
    assert message(client.post("/v1/webhooks", json=body)) == expected
    assert client.get("/v1/webhooks").json == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"active": 1}, "active: must be true or false"),
        ({"active": None}, "active: must not be null"),
        ({"url": None}, "url: must not be null"),
        ({"events": None}, "events: must not be null"),
        ({"id": "2"}, "id: unknown field; there are url, events, active"),
        (
            {"url": "http://localhost"},
            "url: 127.0.0.1 is a private or loopback address; only BLOGAPI_WEBHOOK_PRIVATE=true allows these",
        ),
    ],
)
def test_a_bad_change_is_refused(client, webhook, body, expected):
    webhook()
    assert message(client.patch("/v1/webhooks/1", json=body)) == expected
    assert client.get("/v1/webhooks/1").json == SHOWN


def test_a_host_that_takes_long_to_be_found_is_taken(app, webhook):
    class SlowLoop(Loop):
        @contextmanager
        def timeout(self, seconds):
            assert seconds == 3
            raise TimeoutError
            yield

    app.extensions["blogapi"] = replace(app.extensions["blogapi"], loop=SlowLoop())
    assert webhook(url="http://slow.example")["url"] == "http://slow.example"


def test_there_are_at_most_50(client, webhook):
    for _ in range(50):
        webhook()
    assert message(client.post("/v1/webhooks", json={"url": URL})) == "webhooks: there are 50 already; delete one first"
    assert client.delete("/v1/webhooks/7").status_code == 204
    assert webhook()["id"] == "51"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("PATCH", ""),
        ("DELETE", ""),
        ("POST", "/ping"),
        ("GET", "/deliveries"),
        ("POST", "/deliveries/msg_p5jXN8AQM9LWM0D4loKWxJ/redeliver"),
    ],
)
@pytest.mark.parametrize("name", ["2", str(2**63)])
def test_what_is_not_there_is_404(client, webhook, method, path, name):
    webhook()
    assert client.open(f"/v1/webhooks/{name}{path}", method=method).json == MISSING


def test_a_delivery_that_is_not_there_is_404(client, webhook, post):
    webhook(), webhook(events=["ping"])
    post()
    delivery = client.get("/v1/webhooks/1/deliveries").json[0]["id"]
    for path in ("1/deliveries/x/redeliver", f"2/deliveries/{delivery}/redeliver"):
        assert message(client.post(f"/v1/webhooks/{path}"), 404) == "no such delivery"


def test_a_query_is_refused(client, webhook):
    webhook()
    assert message(client.get("/v1/webhooks?limit=1")) == "limit: unknown parameter; there are none"
    assert message(client.delete("/v1/webhooks/1?x=1")) == "x: unknown parameter; there are none"


# Events


def test_without_webhooks_nothing_is_recorded(post, statements, count):
    with statements() as collected:
        post(status="published")
    assert sum("webhook" in statement for statement in collected) == 1
    assert count(Event) == 0


def test_a_draft_is_created_and_the_payload_lacks_its_content(webhook, post, recorded):
    webhook()
    created = post(tags=["a"], excerpt="b")
    created.pop("content")
    payload = {"type": "post.created", "timestamp": "2026-11-20T12:00:00Z", "data": {"post": created}}
    assert recorded() == [("post.created", payload)]


def test_one_created_as_published_is_created_and_then_published(webhook, post, types, recorded):
    webhook()
    post(status="published")
    assert types() == ["post.created", "post.published"]
    assert [payload["data"]["post"]["status"] for _, payload in recorded()] == ["published"] * 2


def test_a_change_is_an_update_and_sometimes_a_publication(client, webhook, post, types, recorded):
    post()
    webhook()
    for change, expected in [
        ({"title": "B"}, ["post.updated"]),
        ({"status": "published"}, ["post.updated", "post.published"]),
        ({"title": "C"}, ["post.updated"]),
        ({"status": "archived"}, ["post.updated"]),
        ({"status": "scheduled", "published_at": "2026-11-20T13:00:00Z"}, ["post.updated"]),
    ]:
        before = len(types())
        changed = client.patch("/v1/posts/1", json=change).json
        changed.pop("content")
        assert types()[before:] == expected
        assert recorded()[-1][1]["data"]["post"] == changed


def test_a_deletion_tells_what_was_deleted(client, webhook, post, recorded):
    created = post()
    webhook()
    client.delete("/v1/posts/1")
    created.pop("content")
    assert recorded() == [
        ("post.deleted", {"type": "post.deleted", "timestamp": "2026-11-20T12:00:00Z", "data": {"post": created}})
    ]


@pytest.mark.parametrize("write", ["change", "delete", "publish"])
def test_a_scheduled_publication_is_recorded_once(client, database, webhook, post, types, recorded, clock, write):
    post(tags=["a"])
    client.patch("/v1/posts/1", json={"status": "scheduled", "published_at": "2026-11-20T13:00:00Z"})
    webhook(events=["post.published"])
    clock.now = NOON + 3600
    for _ in range(2):
        if write == "change":
            client.patch("/v1/posts/1", json={"title": "B"})
        elif write == "delete":
            client.delete("/v1/posts/1")
        else:
            database.write(posts.publish_due)
    assert types() == ["post.published"]
    published = recorded()[0][1]["data"]["post"]
    assert (published["status"], published["published_at"]) == ("published", "2026-11-20T13:00:00Z")


def tag_event(name, **data):
    return (f"tag.{name}", {"type": f"tag.{name}", "timestamp": "2026-11-20T12:00:00Z", "data": data})


def test_a_tag_that_is_renamed_or_removed_is_an_event_of_the_tag_and_none_of_its_posts(client, webhook, post, recorded):
    post(tags=["A"], status="published"), post(tags=["a"])
    webhook()
    client.patch("/v1/tags/A", json={"name": "B"})
    client.patch("/v1/tags/b", json={"name": "b"})
    client.delete("/v1/tags/B")
    assert recorded() == [
        tag_event("updated", tag={"name": "B", "posts": 2}, previous_name="a"),
        tag_event("updated", tag={"name": "b", "posts": 2}, previous_name="B"),
        tag_event("deleted", tag={"name": "b"}),
    ]


def test_a_merge_is_an_event_of_what_became_of_the_tag(client, webhook, post, recorded):
    post(tags=["a", "B"]), post(tags=["A"]), post(tags=["b"])
    webhook()
    client.patch("/v1/tags/a", json={"name": "B", "merge": True})
    assert recorded() == [tag_event("updated", tag={"name": "b", "posts": 3}, previous_name="A")]


def test_a_rename_that_changes_nothing_is_no_event(client, webhook, post, recorded):
    post(tags=["A"]), post(tags=["a"])
    webhook()
    client.patch("/v1/tags/a", json={"name": "a"})  # changes a post
    client.patch("/v1/tags/a", json={"name": "a"})
    assert recorded() == [tag_event("updated", tag={"name": "a", "posts": 2}, previous_name="a")]


def test_what_is_refused_is_no_event_of_a_tag(client, webhook, post, types):
    post(tags=["a", "b"])
    webhook(), webhook(events=["tag.deleted"])
    assert client.patch("/v1/tags/a", json={"name": "b"}).status_code == 400
    assert client.delete("/v1/tags/c").status_code == 404
    assert types() == []


def test_webhooks_are_told_of_tags_only_where_they_want_that(client, webhook, post, count):
    post(tags=["a"])
    webhook(events=["tag.updated"]), webhook(events=["tag.deleted"]), webhook(events=["post.updated", "ping"])
    client.patch("/v1/tags/a", json={"name": "b"})
    client.delete("/v1/tags/b")
    listed = [client.get(f"/v1/webhooks/{number}/deliveries").json for number in (1, 2, 3)]
    assert [[delivery["event"] for delivery in each] for each in listed] == [["tag.updated"], ["tag.deleted"], []]


def test_what_is_refused_or_repeated_records_nothing(client, webhook, post, types):
    post(slug="taken")
    webhook()
    assert client.post("/v1/posts", json={"title": "A", "content": "B", "slug": "taken"}).status_code == 400
    assert client.patch("/v1/posts/1", json={"title": "B"}, headers={"If-Match": '"x"'}).status_code == 412
    assert client.delete("/v1/posts/7").status_code == 404
    once = {"headers": {"Idempotency-Key": "k"}, "json": {"title": "A", "content": "B"}}
    assert [client.post("/v1/posts", **once).json["id"] for _ in range(2)] == ["2", "2"]
    assert types() == ["post.created"]


def test_what_is_rolled_back_after_it_was_recorded_is_no_event(webhook, database, types, count):
    webhook()

    def fail(tx):
        webhooks.record(tx, {"id": "1"}, "post.created")
        assert tx.row(Event.select(Event.type)) == ("post.created",)
        raise ValueError("rolled back")

    with pytest.raises(ValueError, match="rolled back"):
        database.write(fail)
    assert types() == []
    assert count(Delivery) == 0


def test_only_active_webhooks_that_want_an_event_are_told(client, webhook, post, count):
    webhook(events=["post.deleted"]), webhook(), webhook(events=["post.created", "ping"]), webhook()
    client.patch("/v1/webhooks/4", json={"active": False})
    post()
    assert [len(client.get(f"/v1/webhooks/{number}/deliveries").json) for number in (1, 2, 3, 4)] == [0, 1, 1, 0]
    assert count(Event) == 1


def test_an_event_that_no_webhook_wants_is_not_recorded(webhook, post, types):
    webhook(events=["post.deleted"])
    post(status="published")
    assert types() == []


@pytest.mark.parametrize("write", ["rename", "remove"])
def test_an_event_of_a_tag_is_rolled_back_with_the_change(client, database, webhook, post, types, write):
    post(tags=["a"])
    webhook()

    def fail(tx):
        tags.rename(tx, "a", "b", False) if write == "rename" else tags.delete(tx, "a")
        assert tx.row(Event.select(Event.type))
        raise ValueError("rolled back")

    with pytest.raises(ValueError, match="rolled back"):
        database.write_in_thread(fail)
    assert types() == []
    assert client.get("/v1/tags").json == [{"name": "a", "posts": 1}]


@pytest.mark.parametrize("write", ["create", "change", "delete", "due"])
def test_an_event_is_written_in_the_transaction_of_the_change(
    client, database, webhook, post, clock, statements, write
):
    post()
    if write == "due":
        client.patch("/v1/posts/1", json={"status": "scheduled", "published_at": "2026-11-20T13:00:00Z"})
    webhook()
    clock.now = NOON + 3600
    with statements() as collected:
        if write == "create":
            post()
        elif write == "change":
            client.patch("/v1/posts/1", json={"title": "B"})
        elif write == "delete":
            client.delete("/v1/posts/1")
        else:
            database.write(posts.publish_due)
    words = [" ".join(statement.replace('"', "").split()[:3]) for statement in collected]
    change = {"create": "INSERT INTO post", "delete": "DELETE FROM post"}.get(write, "UPDATE post SET")
    begin, commit = words.index("BEGIN IMMEDIATE"), words.index("COMMIT")
    assert begin < words.index(change) < words.index("INSERT INTO event") < words.index("INSERT INTO delivery") < commit
    assert (words.count("BEGIN IMMEDIATE"), words.count("COMMIT")) == (1, 1)


@pytest.mark.parametrize("damaged", [None, "", '["post.created"'])
def test_a_webhook_whose_events_are_damaged_stops_no_change_and_can_be_mended(
    client, webhook, post, damage, types, damaged
):
    webhook()
    damage("webhook", "events", damaged)
    post()
    assert client.get("/v1/webhooks").json == [SHOWN | {"events": []}]
    assert client.patch("/v1/webhooks/1", json={"events": ["post.created"]}).json["events"] == ["post.created"]
    before = types()
    post()
    assert types() == [*before, "post.created"]


# Deliveries


def test_deliveries_are_listed_newest_first_at_most_100(client, webhook, post, database):
    webhook(events=["post.created"])
    for _ in range(101):
        post()
    listed = client.get("/v1/webhooks/1/deliveries").json
    ids = [message_id for (message_id,) in database.rows(Event.select(Event.message_id).order_by(Event.id.desc()))]
    assert [delivery["id"] for delivery in listed] == ids[:100]
    assert listed[0] == {
        "id": ids[0],
        "event": "post.created",
        "created_at": "2026-11-20T12:00:00Z",
        "state": "pending",
        "attempts": 0,
    }


def test_a_ping_goes_to_one_webhook_whatever_its_events(client, webhook, recorded):
    webhook(), webhook(events=["post.created"])
    answer = client.post("/v1/webhooks/2/ping")
    assert answer.status_code == 202
    assert client.get("/v1/webhooks/2/deliveries").json == [answer.json]
    assert (answer.json["event"], answer.json["state"], answer.json["attempts"]) == ("ping", "pending", 0)
    assert client.get("/v1/webhooks/1/deliveries").json == []
    assert recorded() == [("ping", {"type": "ping", "timestamp": "2026-11-20T12:00:00Z", "data": {}})]


def test_a_webhook_that_is_off_is_sent_nothing_on_request_either(client, webhook):
    webhook()
    delivery = client.post("/v1/webhooks/1/ping").json["id"]
    client.patch("/v1/webhooks/1", json={"active": False})
    for path in ("ping", f"deliveries/{delivery}/redeliver"):
        answer = client.post(f"/v1/webhooks/1/{path}")
        assert message(answer) == "active: is false, and nothing is sent; set it to true first"


def test_redelivering_what_was_never_sent_is_404_also_if_the_webhook_is_off(client, webhook):
    webhook()
    client.patch("/v1/webhooks/1", json={"active": False})
    assert message(client.post("/v1/webhooks/1/deliveries/msg_1/redeliver"), 404) == "no such delivery"


def test_the_latest_deliveries_of_all_webhooks_are_those_of_each(webhook, post, database):
    webhook(events=["post.created"]), webhook(events=["post.deleted"]), webhook()
    post(), post(), post(status="published")
    latest = webhooks.latest_deliveries(database, 2)
    assert latest == {number: list(webhooks.deliveries(database, number))[:2] for number in (1, 3)}
    assert [len(each) for each in latest.values()] == [2, 2]


def test_with_the_last_webhook_its_events_are_gone(client, webhook, post, types, count):
    webhook(events=["post.created"]), webhook()
    post(status="published")
    client.delete("/v1/webhooks/2")
    assert types() == ["post.created"]
    client.delete("/v1/webhooks/1")
    assert (types(), count(Delivery), count(Webhook)) == ([], 0, 0)


@pytest.mark.parametrize(
    ("query", "scans"),
    [
        (webhooks._deliveries.where(Delivery.webhook_id == 1).order_by(Delivery.event_id.desc()), []),
        (webhooks._latest_deliveries, ["SCAN t1"]),  # the webhooks
        (webhooks._remove_event, []),
        (outbox._first, []),
        (outbox._retries, []),
        (outbox._due_webhooks, ["SCAN t1"]),  # the webhooks
    ],
)
def test_only_webhooks_are_gone_through_and_nothing_is_sorted(plan, query, scans):
    assert [step for step in plan(query) if "SCAN" in step or "TEMP" in step] == scans
