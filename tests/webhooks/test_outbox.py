"""The outbox: failed deliveries are kept, damaged ones skipped, and no step of the background holds back another."""

from dataclasses import replace
from functools import partial
from itertools import count as counting

import pytest
from peewee import SQL

from blogapi.api.service import EXTENSION
from blogapi.config import Config
from blogapi.posts import storage as posts
from blogapi.server.background import FAULT_SECONDS, Background
from blogapi.storage.models import Idempotency, Post, Revision, Webhook
from blogapi.webhooks import storage as webhooks
from blogapi.webhooks.storage import Delivery, Event
from tests.conftest import NOON, Clock
from tests.storage.fixtures import locked
from tests.webhooks.fixtures import take_turn


@pytest.mark.usefixtures("impatient")
def test_results_that_cannot_be_recorded_are_kept_and_nothing_is_sent_twice(
    attempt, background, turn, receiver, database, delivery, clock
):
    attempt()
    with locked(database):
        background.turn()
    clock.now += FAULT_SECONDS
    turn()
    assert delivery() == {"state": "delivered", "attempts": 1, "last_status": 204}
    assert len(receiver.messages) == 1


def test_failed_pruning_is_repeated_at_the_next_turn(deliver, background, clock, count, database, impatient):
    deliver()
    clock.now += 31 * 24 * 3600
    with locked(database):
        background.turn()
    assert count(Delivery) == 1
    clock.now += FAULT_SECONDS
    background.turn()
    assert count(Delivery) == 0


@pytest.mark.parametrize(
    ("table", "column", "damaged"),
    [
        ("webhook", "url", None),
        *(("webhook", "secret", secret) for secret in (None, "", "whsec_", "whsec_!", "ü")),
        ("event", "message_id", None),
        ("event", "payload", None),
    ],
)
def test_damage_counts_as_a_failed_attempt_and_a_damaged_event_does_not_stop_others(
    webhook, post, send, damage, database, receiver, table, column, damaged
):
    webhook(events=["post.created"])
    post()
    post()
    damage(table, column, damaged)
    send()
    send()
    failed = ("pending", 1, "unexpected error; see the log")
    attempts = Delivery.select(Delivery.state, Delivery.attempts, Delivery.last_error).order_by(Delivery.event_id)
    assert list(database.rows(attempts)) == [failed, failed if table == "webhook" else ("delivered", 1, None)]
    ids = [message.payload["data"]["post"]["id"] for message in receiver.messages]
    assert ids == ["2"] * (table == "event")


@pytest.mark.sqlite
def test_a_webhooks_damaged_headers_do_not_stop_others(client, webhook, post, turn, receiver, database):
    webhook(events=["post.created"])
    damaged, _ = database.write(webhooks.add, receiver.url, ["post.created"], headers={"X-Key": "1"})
    database.write(lambda tx: tx.execute(Webhook.update(headers="{").where(Webhook.id == damaged.id)))
    post()
    turn()
    assert len(receiver.messages) == 1
    assert client.get(f"/v1/webhooks/{damaged.id}").status_code == 200
    assert client.delete(f"/v1/webhooks/{damaged.id}").status_code == 204


# Limits

EVENT = {"type": "post.created", "payload": "{}", "created_at": "2026-11-20T12:00:00Z"}
DROPPED = "dropped: more than 10,000 later deliveries were pending"


@pytest.mark.parametrize("active", [True, False])
def test_the_newest_10000_pending_deliveries_are_kept(
    webhook, background, turn, receiver, client, database, caplog, active
):
    webhook(events=["post.created"]), webhook(events=["post.updated"])
    receiver.status = 500
    add_pending(database, 10_299)
    if not active:
        client.patch("/v1/webhooks/1", json={"active": False})
    turn()
    background.turn()
    columns = (Delivery.event_id, Delivery.state, Delivery.last_error)
    kept = sorted(database.rows(Delivery.select(*columns).where(Delivery.webhook_id == 1)))
    assert kept[:299] == [(number, "failed", DROPPED) for number in range(1, 300)]
    assert kept[299:] == [(number, "pending", None) for number in range(300, 10_300)]
    assert caplog.messages == ["webhook 1 has too many pending deliveries: dropped the oldest: 299"]
    assert [message.id for message in receiver.messages[:1]] == ["msg_300"] * active


def add_pending(database, count, first=1):
    """Record events for the first webhook, up to this number."""
    pending = {"webhook_id": 1, "state": "pending", "next_attempt_at": ""}

    def write(tx, numbers):
        tx.execute(Event.insert_many([EVENT | {"message_id": f"msg_{number}"} for number in numbers]))
        tx.execute(Delivery.insert_many([pending | {"event_id": number} for number in numbers]))

    # Three seconds between two statements would lose PostgreSQL's lock.
    for start in range(first, count + 1, 250):
        database.write(write, range(start, min(start + 250, count + 1)))


def test_a_dropped_delivery_is_shown_and_can_be_redelivered(webhook, send, receiver, client, database, delivery):
    webhook()
    add_pending(database, 1)
    database.write(lambda tx: tx.execute(SQL("ANALYZE")))  # Plans must not depend on these statistics.
    add_pending(database, 10_001, first=2)
    assert database.write(webhooks.fail_surplus, 1) == 1
    database.write(lambda tx: tx.execute(Delivery.delete().where(Delivery.event_id > 1)))
    assert delivery() == {"state": "failed", "attempts": 0, "last_error": DROPPED}
    assert client.post("/v1/webhooks/1/deliveries/msg_1/redeliver").status_code == 202
    send()
    assert delivery() == {"state": "delivered", "attempts": 1, "last_status": 204}


def test_the_newest_1000_finished_deliveries_are_kept(webhook, post, send, receiver, clock, database):
    webhook(events=["post.created"]), webhook(events=["post.deleted"])
    events = [EVENT | {"message_id": f"msg_{number}"} for number in range(1, 1503)]
    rows = [{"webhook_id": 1, "event_id": number, "state": "delivered"} for number in range(1, 1502)]
    rows += [{"webhook_id": 2, "event_id": 1, "state": "delivered"}]
    pending = {"state": "pending", "next_attempt_at": "9"}

    def write(tx):
        tx.execute(Event.insert_many(events))
        tx.execute(Delivery.insert_many(rows))
        tx.execute(Delivery.insert({"webhook_id": 1, "event_id": 1502} | pending))
        tx.execute(Delivery.update(pending).where(Delivery.event_id == 5, Delivery.webhook_id == 1))

    database.write(write)
    post()
    send()
    clock.now += 60
    send()
    of_first = Delivery.select(Delivery.event_id).where(Delivery.webhook_id == 1).order_by(Delivery.event_id)
    kept = [event_id for (event_id,) in database.rows(of_first)]
    assert kept == [5, *range(503, 1504)]
    assert [event_id for (event_id,) in database.rows(Event.select(Event.id).order_by(Event.id))] == [1, *kept]


def test_finished_deliveries_are_kept_for_30_days(webhook, post, send, receiver, clock, count, database):
    webhook(events=["post.created"])
    post()
    send()
    clock.now = NOON + 29 * 24 * 3600
    post()
    send()
    receiver.status = 500
    post()
    send()
    assert count(Event) == 3
    clock.now = NOON + 30 * 24 * 3600
    send()
    assert list(database.rows(Event.select(Event.id))) == [(2,), (3,)]
    clock.now = NOON + 60 * 24 * 3600
    send()
    assert list(database.rows(Delivery.select(Delivery.state))) == [("pending",)]


def test_idempotency_keys_are_forgotten_even_if_no_more_arrive(client, background, clock, database):
    for key in ("a", "b"):
        client.post("/v1/posts", json={"title": "A", "content": "B"}, headers={"Idempotency-Key": key})
        clock.now += 3600
    clock.now = NOON + 24 * 3600
    background.turn()
    assert list(database.rows(Idempotency.select(Idempotency.name))) == [("b",)]


MINUTE, HOUR, DAY = 60, 3600, 24 * 3600


def rename(database, table, name):
    database.write(lambda tx: tx.execute(SQL(f"ALTER TABLE {table} RENAME TO {name}")))


@pytest.mark.sqlite
@pytest.mark.parametrize("table", ["post", "revision", "idempotency", ""])
def test_a_failure_to_publish_or_to_prune_does_not_hold_back_messages(
    webhook, post, background, turn, receiver, database, table, clock, caplog
):
    webhook(events=["post.created"])
    post()
    clock.now += HOUR
    if table:
        rename(database, table, "other")
    else:
        background.config = Config(keep_days=999_999)
    turn()
    assert len(receiver.messages) == 1
    waits = f"background work is waiting for the database: no such table: {table}"
    assert caplog.messages == [waits if table else "unexpected error in background work"]


@pytest.mark.sqlite
def test_results_that_cannot_be_recorded_do_not_hold_back_publications(
    client, attempt, background, database, clock, caplog
):
    attempt()
    client.patch("/v1/posts/1", json={"status": "scheduled", "published_at": "2026-11-20T13:00:00Z"})
    rename(database, "delivery", "other")
    clock.now += HOUR
    background.turn()
    assert database.row(Post.select(Post.status)) == ("published",)
    assert caplog.messages == ["background work is waiting for the database: no such table: delivery"]


def test_a_long_pruning_is_done_in_parts(app, database, webhook, post, receiver, clock, count):
    config = Config(keep_days=0, webhook_private=True)
    background = Background(replace(app.extensions[EXTENSION], config=config), monotonic=partial(next, counting()))
    webhook(events=["post.created"])
    post()
    version = {"post_id": 1, "since": "", "author": "", "until": "", "replaced_by": "", "state": "replaced"}
    version["document"] = posts.get(database, 1).decode()
    rows = [version | {"version": number} for number in range(1, 121)]
    database.write(lambda tx: tx.execute(Revision.insert_many(rows)))
    clock.now += DAY
    take_turn(background)
    assert len(receiver.messages) == 1
    assert count(Revision) > 0
    while count(Revision):
        background.turn()


@pytest.mark.both_engines
@pytest.mark.parametrize("change", [{}, {"title": "Changed"}], ids=["created", "changed"])
def test_a_clock_that_falls_behind_a_published_post_is_logged_once(app, client, post, clock, caplog, change):
    monotonic = Clock(1000)
    background = Background(app.extensions[EXTENSION], monotonic=monotonic)
    post(status="published")
    clock.now += MINUTE
    client.patch("/v1/posts/1", json=change)
    post(status="draft")
    for jump in (0, -6 * HOUR, MINUTE, 6 * HOUR, MINUTE):
        clock.now += jump
        monotonic.now += MINUTE
        background.turn()
    seconds = "12:01:00Z" if change else "12:00:00Z"
    assert caplog.messages == [
        f"the clock is behind: it is 2026-11-20T06:01:00Z, but a post is dated 2026-11-20T{seconds}",
        "the clock is no longer behind the posts",
    ]


@pytest.mark.parametrize(
    ("turns", "is_gone"),
    [
        ([(2 * HOUR, 0), (MINUTE, 31 * DAY), (MINUTE, -31 * DAY), (2 * HOUR, 0)], False),  # ahead for a minute
        ([(MINUTE, 31 * DAY), (MINUTE, -31 * DAY), (2 * HOUR, 0)], False),  # ahead when the service starts
        ([(MINUTE, 31 * DAY), (59 * MINUTE, 0)], False),
        ([(MINUTE, 31 * DAY), (59 * MINUTE, 0), (MINUTE, 0)], True),
    ],
)
def test_only_a_clock_that_has_been_steady_for_an_hour_prunes_the_history(
    client, app, clock, count, post, turns, is_gone
):
    post()
    client.patch("/v1/posts/1", json={"title": "Another title"})
    monotonic = Clock(1000)
    background = Background(app.extensions[EXTENSION], monotonic=monotonic)
    for seconds, jump in turns:
        assert count(Revision) == 1
        clock.now += seconds + jump
        monotonic.now += seconds
        background.turn()
    assert (count(Revision) == 0) is is_gone
