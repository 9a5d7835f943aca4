"""The set-up of a SQLite database, and its upgrades."""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from blogapi.post import fold
from blogapi.storage.documents import dump, spelling
from blogapi.storage.errors import Unavailable
from blogapi.storage.search import index

SCHEMA = Path(__file__).parent.parent / "schema.sql"
APPLICATION_ID = 0x626C6F67  # as in schema.sql
VERSION = 5  # as in schema.sql
# The fields of a post as version 4 has them, in their order
VERSION_4_FIELDS = (
    "id",
    "title",
    "status",
    "slug",
    "content",
    "excerpt",
    "tags",
    "cover_image",
    "published_at",
    "created_at",
    "updated_at",
)


def set_up(connection: sqlite3.Connection, upgrade: bool) -> bool:
    """Set a database up where it is empty, upgrade it where it is older; return whether it was set up.

    Raises Unavailable if it is not ours, newer than this program, or older and not to be upgraded.
    """
    application_id, version = _pragma(connection, "application_id"), _pragma(connection, "user_version")
    if application_id == APPLICATION_ID and version == VERSION and index.is_made(connection):
        return False
    foreign = application_id != APPLICATION_ID or version < 1
    if foreign and (application_id or version or _has_tables(connection)):
        raise Unavailable("it belongs to another program")
    if version > VERSION:
        raise Unavailable(f"its version {version} is newer than this program's {VERSION}; upgrade the program")
    if 0 < version < VERSION and not upgrade:
        raise Unavailable(f"its version is {version} and this program's {VERSION}: blogapi init brings it up to date")
    if version == VERSION and not upgrade:
        raise Unavailable("its index of words was made by another Python: blogapi init makes it anew")
    connection.execute("BEGIN IMMEDIATE")
    with connection:  # commits, or rolls back
        created = not _has_tables(connection)  # asked again: another process may have been faster
        if created:
            _run(connection, SCHEMA.read_text())
        connection.create_function("fold", 1, fold, deterministic=True)
        connection.create_function("spelling", 2, spelling, deterministic=True)
        connection.create_function("with_updated_at", 1, with_updated_at, deterministic=True)
        connection.create_function("published_at", 1, published_at, deterministic=True)
        for version in range(_pragma(connection, "user_version"), VERSION):
            _run(connection, UPGRADES[version])
            connection.execute(f"PRAGMA user_version = {version + 1}")
        if not index.is_made(connection):
            index.make(connection)
    return created


def with_updated_at(document: str) -> str:
    """Return a document of version 3 with `updated_at`: the later of when the post was made and published."""
    try:
        post = json.loads(document)
        published_at = "" if post["status"] == "scheduled" else post.get("published_at", "")
        post |= {"updated_at": max(post["created_at"], published_at)}
        return dump({name: post[name] for name in VERSION_4_FIELDS if name in post})
    except (ValueError, KeyError, TypeError):  # It is damaged, and stays so.
        return document


def published_at(document: str) -> str | None:
    """Return the published_at of a document of version 4, None where it has none or is damaged."""
    try:
        time = json.loads(document).get("published_at")
        return time if isinstance(time, str) else None
    except (ValueError, AttributeError):
        return None


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def _has_tables(connection: sqlite3.Connection) -> bool:
    return connection.execute("SELECT 1 FROM sqlite_master").fetchone() is not None


def _run(connection: sqlite3.Connection, script: str) -> None:
    for statement in _statements(script):
        connection.execute(statement)


def _statements(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


# n has the statements that make version n + 1 of version n. Tables and indexes are as in schema.sql, to the letter, so
# that an upgraded database is like a fresh one.
UPGRADES = {
    1: """
CREATE TABLE tag (
    tag TEXT NOT NULL PRIMARY KEY,  -- folded, as in post_tag
    name TEXT NOT NULL,  -- the spelling in the newest post carrying it
    newest INTEGER NOT NULL,  -- that post
    posts INTEGER NOT NULL  -- how many carry it: to count them would take seconds
) STRICT, WITHOUT ROWID;

CREATE TABLE schedule (
    post_id INTEGER NOT NULL PRIMARY KEY,  -- a post whose status is scheduled
    published_at TEXT NOT NULL  -- a copy of the post's
) STRICT;

CREATE INDEX schedule_due ON schedule (published_at);

CREATE TABLE idempotency (
    digest BLOB NOT NULL,  -- of the API key
    name TEXT NOT NULL,  -- the Idempotency-Key
    request BLOB NOT NULL,  -- SHA-256 of the body
    post_id INTEGER NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (digest, name)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_age ON idempotency (created_at);

INSERT INTO tag (tag, name, newest, posts)
SELECT
    tag,
    (SELECT value FROM post, json_each(document, '$.tags') WHERE post.id = newest AND fold(value) = tag),
    newest,
    posts
FROM (SELECT tag, max(post_id) AS newest, count(*) AS posts FROM post_tag GROUP BY tag);
""",
    2: """
CREATE TABLE webhook (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    url TEXT NOT NULL,
    events TEXT NOT NULL,  -- a JSON array of the types that it is sent
    active INTEGER NOT NULL CHECK (active IN (0, 1)),
    secret TEXT NOT NULL,  -- itself and no digest: every delivery is signed with it
    created_at TEXT NOT NULL
) STRICT;

-- What there is to tell, once for all webhooks; kept as long as there is a delivery of it.
CREATE TABLE event (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    message_id TEXT NOT NULL,  -- random: the ids of a restored backup would come again, for other events
    type TEXT NOT NULL,
    payload TEXT NOT NULL,  -- JSON, just as it is sent
    created_at TEXT NOT NULL
) STRICT;

CREATE TABLE delivery (
    webhook_id INTEGER NOT NULL,
    event_id INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'failed')),
    attempts INTEGER NOT NULL,
    last_status INTEGER,
    last_error TEXT,
    repeats INTEGER NOT NULL,  -- how often it was asked for again, so that this is seen also during an attempt
    next_attempt_at TEXT,  -- of a pending one; '' for at once, so that the clock does not change the order
    PRIMARY KEY (webhook_id, event_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX delivery_due ON delivery (webhook_id, next_attempt_at, event_id) WHERE state = 'pending';

CREATE INDEX delivery_finished ON delivery (webhook_id, event_id) WHERE state <> 'pending';
""",
    3: "UPDATE post SET document = with_updated_at(document);",
    4: """
DROP INDEX post_status;

ALTER TABLE post RENAME TO old_post;

CREATE TABLE post (
    id INTEGER NOT NULL PRIMARY KEY,
    slug TEXT NOT NULL UNIQUE,
    status TEXT NOT NULL CHECK (status IN ('published', 'draft', 'scheduled', 'archived')),
    published_at TEXT,
    document TEXT NOT NULL  -- the Post as JSON, just as it is answered; slug, status and published_at are its copies
) STRICT;

INSERT INTO post
SELECT id, slug, status, published_at(document), document
FROM (SELECT id, slug, status, ifnull(document, '') AS document FROM old_post);

INSERT INTO sqlite_sequence (name, seq) SELECT 'post', ifnull(max(seq), 0) FROM sqlite_sequence WHERE name = 'old_post';

DROP TABLE old_post;

CREATE INDEX post_status ON post (status, id);

CREATE INDEX post_published ON post (status, published_at, id) WHERE published_at IS NOT NULL;

CREATE TRIGGER post_deleted AFTER DELETE ON post WHEN NOT EXISTS (SELECT 1 FROM post WHERE id > OLD.id)
BEGIN
    UPDATE sqlite_sequence SET seq = max(seq, OLD.id) WHERE name = 'post';
END;

ALTER TABLE post_tag RENAME TO old_post_tag;

CREATE TABLE post_tag (
    tag TEXT NOT NULL,  -- case-folded and normalized: what decides whether two tags are the same
    status TEXT NOT NULL,  -- a copy of the post's
    post_id INTEGER NOT NULL,
    published_at TEXT,  -- another copy
    PRIMARY KEY (tag, status, post_id)
) STRICT, WITHOUT ROWID;

INSERT INTO post_tag
SELECT tag, status, post_id, (SELECT published_at FROM post WHERE id = post_id) FROM old_post_tag;

DROP TABLE old_post_tag;

CREATE INDEX post_tag_published ON post_tag (tag, status, published_at, post_id) WHERE published_at IS NOT NULL;

CREATE TABLE session (
    digest BLOB NOT NULL PRIMARY KEY,  -- SHA-256 of its token, which itself is stored nowhere
    kind TEXT NOT NULL CHECK (kind IN ('link', 'session')),  -- a link opens a session, once
    ends_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;

ALTER TABLE api_key RENAME TO older_api_key;

CREATE TABLE api_key (
    digest BLOB NOT NULL PRIMARY KEY,  -- SHA-256 of the key, which itself is stored nowhere
    name TEXT NOT NULL UNIQUE,
    last_four TEXT NOT NULL,
    created_at TEXT NOT NULL,
    last_used_on TEXT,  -- a date in UTC
    scope TEXT NOT NULL CHECK (scope IN ('full', 'read-only', 'published-only'))  -- what it may do
) STRICT, WITHOUT ROWID;

INSERT INTO api_key SELECT digest, name, last_four, created_at, last_used_on, 'full' FROM older_api_key;

DROP TABLE older_api_key;

CREATE INDEX post_tag_scheduled ON post_tag (post_id, tag) WHERE status = 'scheduled';

DROP TABLE tag;

CREATE TABLE tag (
    tag TEXT NOT NULL,  -- folded, as in post_tag
    status TEXT NOT NULL,
    name TEXT NOT NULL,  -- the spelling in the newest post with the status that carries it
    newest INTEGER NOT NULL,  -- that post
    posts INTEGER NOT NULL,  -- how many with the status carry it: to count them would take seconds
    PRIMARY KEY (tag, status)
) STRICT, WITHOUT ROWID;

CREATE INDEX tag_status ON tag (status, tag);

INSERT INTO tag (tag, status, name, newest, posts)
SELECT tag, status, spelling((SELECT document FROM post WHERE id = newest), tag), newest, posts
FROM (SELECT tag, status, max(post_id) AS newest, count(*) AS posts FROM post_tag GROUP BY tag, status);

CREATE VIRTUAL TABLE search USING fts5 (words, content = '', columnsize = 0, tokenize = 'ascii');

INSERT INTO search (search, rank) VALUES ('automerge', 8);  -- a post is written again half as often

CREATE TABLE search_made (
    unicode TEXT NOT NULL  -- the version by which all words were made; without a row, they are still to be
) STRICT;
""",
}
