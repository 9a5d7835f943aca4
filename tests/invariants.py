"""The invariants of every database, recomputed from the documents of its posts."""

import json
import sqlite3
from collections import defaultdict
from contextlib import closing
from pathlib import Path

import psycopg

from blogapi.posts.history import MAX_REVISIONS
from blogapi.search.words import of_post
from blogapi.storage.models import MAX_ID
from blogapi.text import fold


def sound_posts(database):
    """Assert every invariant of a database, even while a server uses it; return its posts by id."""
    is_file = isinstance(database, Path)
    connection = sqlite3.connect(database) if is_file else psycopg.connect(database, autocommit=True)
    with closing(connection):
        # reads everything as of the same moment
        connection.execute("BEGIN" if is_file else "BEGIN ISOLATION LEVEL REPEATABLE READ")

        def rows(query):
            return connection.execute(query).fetchall()

        if is_file:
            assert rows("PRAGMA integrity_check") == [("ok",)]
        posts = {number: json.loads(document) for number, document in rows("SELECT id, document FROM post")}
        copies_are_true(rows, posts)
        former_slugs_are_true(rows, posts)
        tags_are_true(rows, posts)
        dates_are_true(posts)
        events_are_whole(rows)
        history_is_true(rows)
        last_ids = dict(rows("SELECT name, seq FROM sqlite_sequence" if is_file else "TABLE counter"))
        if is_file:  # The table has the greatest id only if that post was deleted.
            last_ids["post"] = max(rows("SELECT greatest_id FROM deleted_post")[0][0], *posts, 0)
        ids_are_known(rows, last_ids)
        index_is_true(rows, posts, is_file)
    return {post["id"]: post for post in posts.values()}


def copies_are_true(rows, posts):
    of_documents = {
        number: (post["id"], post["slug"], post["status"], post.get("published_at"), post["updated_at"])
        for number, post in posts.items()
    }
    columns = rows("SELECT id, CAST(id AS TEXT), slug, status, published_at, updated_at FROM post")
    assert {number: tuple(rest) for number, *rest in columns} == of_documents


def former_slugs_are_true(rows, posts):
    """Each slug leads to a single post, which has or had this slug."""
    former = [(slug, number) for number, post in posts.items() for slug in post.get("former_slugs", ())]
    hidden = {(post["slug"], number) for number, post in posts.items() if post["status"] != "published"}
    assert sorted(set(rows("SELECT slug, post_id FROM former_slug")) - hidden) == sorted(former)
    every = [slug for slug, _ in former] + [post["slug"] for post in posts.values()]
    assert len(set(every)) == len(every)


def tags_are_true(rows, posts):
    carried = [(fold(name), name, number) for number, post in posts.items() for name in post["tags"]]
    expected = {
        (tag, posts[number]["status"], number, posts[number].get("published_at"), name) for tag, name, number in carried
    }
    found = rows("SELECT tag, status, post_id, published_at, name FROM post_tag")
    assert (len(found), set(found)) == (len(carried), expected)


def dates_are_true(posts):
    dated = ("published", "scheduled")
    assert all("published_at" in post for post in posts.values() if post["status"] in dated)


def events_are_whole(rows):
    """Every delivery has its event and its webhook, and every event has a delivery and a unique id."""
    webhooks = {number for (number,) in rows("SELECT id FROM webhook")}
    events = dict(rows("SELECT id, message_id FROM event"))
    deliveries = rows("SELECT webhook_id, event_id, state, next_attempt_at FROM delivery")
    assert {webhook for webhook, _, _, _ in deliveries} <= webhooks
    assert {event for _, event, _, _ in deliveries} == set(events)
    assert len(set(events.values())) == len(events)
    assert [each for each in deliveries if (each[2] == "pending") != (each[3] is not None)] == []


def history_is_true(rows):
    """Posts in the trash exist nowhere else. The versions of a post follow one another; the last is recent."""
    present = dict(rows("SELECT id, version FROM post"))
    kept = rows("SELECT post_id, version, state, document FROM revision")
    assert all(json.loads(document)["id"] == str(number) for number, _, _, document in kept)
    assert present.keys().isdisjoint(number for number, _, state, _ in kept if state == "deleted")
    assert all(version < present.get(number, MAX_ID) for number, version, _, _ in kept)
    versions = defaultdict(list)
    for number, version, *_ in sorted(kept):
        versions[number].append(version)
    for number in present.keys() & versions.keys():
        assert versions[number] == [*range(present[number] - len(versions[number]), present[number])]
    assert max(map(len, versions.values()), default=0) <= MAX_REVISIONS + 1  # the one in the trash


def ids_are_known(rows, last):
    """No id is greater than the last assigned id, and every reference is to a post that existed."""
    for name, query in {
        "post": "SELECT max(id) FROM post",
        "webhook": "SELECT max(id) FROM webhook",
        "event": "SELECT max(id) FROM event",
        "idempotency": "SELECT max(post_id) FROM idempotency",
        "revision": "SELECT max(post_id) FROM revision",
    }.items():
        assert (rows(query)[0][0] or 0) <= last.get("post" if name in ("idempotency", "revision") else name, 0), name
    assert (rows("SELECT min(post_id) FROM idempotency")[0][0] or 1) >= 1


def index_is_true(rows, posts, is_file):
    """The search index has the words of each post."""
    table = "SELECT rowid, title, text FROM search" if is_file else "SELECT post_id, title, text FROM search"
    found = {number: texts for number, *texts in rows(table)}
    for number in posts.keys() | found.keys():
        title, text = of_post(posts[number])
        expected = text if is_file else f"{title} {text}"
        pairs = zip(found[number], (title, expected), strict=True)
        assert all(sorted(indexed.split()) == sorted(words.split()) for indexed, words in pairs)
