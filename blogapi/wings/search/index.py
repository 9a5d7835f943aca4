"""The search index: the words of posts, written in the transaction of each change.

Published posts are indexed apart from all others. A search among published posts reads no others;
otherwise response times would leak that they exist. Among a post's words, a label stands for each of its tags.
"""

import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from blogapi import documents
from blogapi.storage.database import Database
from blogapi.storage.engine import Compiled, Placeholder, Reader, Transaction
from blogapi.storage.errors import Damaged
from blogapi.storage.models import DOCUMENT, MAX_ID, Post
from blogapi.wings.search import labels, words
from blogapi.wings.search.labels import INDEX_TABLES

INDEXED_FIELDS = ("title", "content", "excerpt", "tags", "status")  # the fields that the index depends on
BATCH_SECONDS = 0.02  # a transaction that indexes old posts takes no more of them after this time
PAUSE_SECONDS = 0.001  # between two transactions: a sleep of 0 would not let the loop poll its sockets
MERGED_PAGES = 16  # pages of SQLite's index merged in one transaction: 4 ms


# Changes


def prepare(database: Database, content: str) -> None:
    """Find the words of a large content, in a thread, before the transaction that will index them."""
    if len(content) > words.LARGE:
        database.engine.loop.run_in_thread(partial(words.of_content, content))


def update(tx: Transaction, post_id: int, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Index the words of a changed post; {} stands for no post."""
    if any(old.get(name) != new.get(name) for name in INDEXED_FIELDS):
        before, after = (post.get("status") == "published" for post in (old, new))
        if old and (before != after or not new):
            _remove(tx, before, post_id)
        if new:
            add(tx, post_id, new)


def add(tx: Transaction, post_id: int, post: dict[str, Any]) -> None:
    """Index the words of a post, replacing its words in the same part of the index."""
    is_published, (title, text) = post["status"] == "published", words.of_post(post)
    values: dict[str, Any] = {"id": post_id, "title": title}
    if tx.dialect == "postgresql":
        labels.add(tx, is_published, post["tags"])
        values |= {"published": int(is_published), "keys": words.keys_of(*post["tags"])}
        values["words"] = " ".join({*title.split(), *text.split()})
    else:
        text += labels.of_tags(tx, is_published, post["tags"])
    tx.defer_last((is_published, post_id), ADD[is_published], text=text, **values)
    if tx.dialect == "sqlite" and not tx.engine.loop.is_cooperative:  # Our server merges in the background.
        tx.defer_last((is_published, MAX_ID + 1), MERGE[is_published])


def remove(tx: Transaction, post_id: int) -> None:
    """Remove a post whose status is unknown."""
    for is_published in INDEX_TABLES:
        _remove(tx, is_published, post_id)


def _remove(tx: Transaction, is_published: bool, post_id: int) -> None:
    tx.defer_last((is_published, post_id), REMOVE[is_published], id=post_id)


# SQLite's index writes a segment whenever another statement follows, and for each id that is lower than the last.
# In PostgreSQL, each word has a space on both sides, the text includes the title, and `words` has each word once.
REMOVE = {
    is_published: Compiled(
        sqlite=f"DELETE FROM {table} WHERE rowid = :id", postgresql="DELETE FROM search WHERE post_id = :id"
    )
    for is_published, table in INDEX_TABLES.items()
}
ADD = {
    is_published: Compiled(
        sqlite=f"INSERT OR REPLACE INTO {table} (rowid, title, text) VALUES (:id, :title, :text)",
        postgresql=f"""
        INSERT INTO search
        SELECT :id, {is_published}, ' ' || :title::text || ' ', ' ' || :title::text || ' ' || :text::text || ' ',
        array_to_string(:words::text || labels::text[], ' {words.LABEL}'), labels FROM (SELECT ARRAY(
        SELECT {labels.LABEL} FROM jsonb_array_elements_text(:keys::jsonb) AS key (value)
        ) AS labels) AS labelled ON CONFLICT (post_id) DO UPDATE SET published = excluded.published,
        title = excluded.title, text = excluded.text, words = excluded.words, labels = excluded.labels
        """,
    )
    for is_published, table in INDEX_TABLES.items()
}


# Upkeep


def tidy(database: Database) -> None:
    """Merge what writes have left in the index, in short transactions."""
    if database.dialect == "postgresql":
        database.row(CLEAN)
        return
    for statement in MERGE.values():
        while database.write(_merge, statement):
            time.sleep(PAUSE_SECONDS)


def _merge(tx: Transaction, statement: Compiled) -> bool:
    """Merge some pages of SQLite's index; return whether there may be more to merge."""
    before = tx.changes
    tx.defer(statement)
    return tx.changes - before > 1


def rebuild_position(reader: Reader) -> int:
    """Return the id below which the index may lack posts, or 0 if it is complete."""
    found = reader.row(UNINDEXED)
    return found[0] if found else 0


def indexed_percent(reader: Reader) -> int | None:
    """Return how many percent of the posts are indexed, or None if all are."""
    found = reader.row(PROGRESS)
    return None if found is None else 100 - 100 * found[0] // max(found[0], found[1] or 0)


def rebuild(database: Database) -> Iterator[int]:
    """Index the posts that an upgrade has left to be indexed, newest first; yield each id once it is on disk."""
    while below := rebuild_position(database):
        _, document = database.row(NEXT, below=below) or (0, None)
        with suppress(Damaged):
            prepare(database, documents.load(document)["content"])
        yield from database.write(_index_some)
        time.sleep(PAUSE_SECONDS)


def _index_some(tx: Transaction) -> list[int]:
    """Index the next posts, up to a large one; return their ids."""
    indexed: list[int] = []
    below, until = rebuild_position(tx), time.monotonic() + BATCH_SECONDS
    while found := tx.row(NEXT, below=below):
        post_id, document = found
        if indexed and (len(document or b"") > words.LARGE or time.monotonic() > until):
            break
        with suppress(Damaged):
            add(tx, post_id, documents.load(document))
        indexed.append(below := post_id)
    tx.execute(SET_UNINDEXED if found else COMPLETE, below=below)
    return indexed


CLEAN = Compiled("SELECT gin_clean_pending_list('search_published'), gin_clean_pending_list('search_others')")
# By itself, SQLite would merge too many pages of its index at a time.
MERGE = {
    is_published: Compiled(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', {MERGED_PAGES})")
    for is_published, table in INDEX_TABLES.items()
}
UNINDEXED = Compiled("SELECT below FROM search_rebuild")
PROGRESS = Compiled("SELECT below, (SELECT max(id) FROM post) FROM search_rebuild")
SET_UNINDEXED = Compiled("UPDATE search_rebuild SET below = :below")
COMPLETE = Compiled("DELETE FROM search_rebuild")
NEXT = Compiled(Post.select(Post.id, DOCUMENT).where(Post.id < Placeholder("below")).order_by(Post.id.desc()).limit(1))
