"""What must hold in every database, whatever happened to it: recomputed from the documents of its posts."""

import json
import sqlite3
from collections import Counter
from contextlib import closing

from blogapi.storage.fold import fold


def sound_posts(path):
    """Assert every invariant of a database file, also beside a running server; return its posts by id."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN")  # All is read as of the same moment.

        def rows(query):
            return connection.execute(query).fetchall()

        assert rows("PRAGMA integrity_check") == [("ok",)]
        posts = {number: json.loads(document) for number, document in rows("SELECT id, document FROM post")}
        copies_are_true(rows, posts)
        tags_are_true(rows, posts)
        schedule_is_true(rows, posts)
        events_are_whole(rows)
        ids_are_known(rows)
    return {post["id"]: post for post in posts.values()}


def copies_are_true(rows, posts):
    of_documents = {number: (post["id"], post["slug"], post["status"]) for number, post in posts.items()}
    columns = rows("SELECT id, CAST(id AS TEXT), slug, status FROM post")
    assert {number: tuple(rest) for number, *rest in columns} == of_documents


def tags_are_true(rows, posts):
    carried = [(fold(name), name, number) for number, post in posts.items() for name in post["tags"]]
    expected = sorted((tag, posts[number]["status"], number) for tag, _, number in carried)
    assert sorted(rows("SELECT tag, status, post_id FROM post_tag")) == expected
    counts = Counter((tag, posts[number]["status"]) for tag, _, number in carried)
    by_age = sorted(carried, key=lambda each: each[2])
    newest = {(tag, posts[number]["status"]): (name, number) for tag, name, number in by_age}
    expected = [(*key, *newest[key], counts[key]) for key in sorted(counts)]
    assert rows("SELECT tag, status, name, newest, posts FROM tag ORDER BY tag, status") == expected


def schedule_is_true(rows, posts):
    expected = {number: post["published_at"] for number, post in posts.items() if post["status"] == "scheduled"}
    assert dict(rows("SELECT post_id, published_at FROM schedule")) == expected
    assert all("published_at" in post for post in posts.values() if post["status"] == "published")


def events_are_whole(rows):
    """Every delivery has its event and its webhook, every event a delivery and an id that no other has."""
    webhooks = {number for (number,) in rows("SELECT id FROM webhook")}
    events = dict(rows("SELECT id, message_id FROM event"))
    deliveries = rows("SELECT webhook_id, event_id, state, next_attempt_at FROM delivery")
    assert {webhook for webhook, _, _, _ in deliveries} <= webhooks
    assert {event for _, event, _, _ in deliveries} == set(events)
    assert len(set(events.values())) == len(events)
    assert [each for each in deliveries if (each[2] == "pending") != (each[3] is not None)] == []


def ids_are_known(rows):
    """No id is greater than the last that was given; what names a post names one that there was."""
    last = dict(rows("SELECT name, seq FROM sqlite_sequence"))
    for name, query in {
        "post": "SELECT max(id) FROM post",
        "webhook": "SELECT max(id) FROM webhook",
        "event": "SELECT max(id) FROM event",
        "idempotency": "SELECT max(post_id) FROM idempotency",
    }.items():
        assert (rows(query)[0][0] or 0) <= last.get("post" if name == "idempotency" else name, 0), name
    assert (rows("SELECT min(post_id) FROM idempotency")[0][0] or 1) >= 1
