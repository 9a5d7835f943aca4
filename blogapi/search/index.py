"""Index the words of every post, but not its status, in the transaction that changes the post."""

import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from blogapi import documents
from blogapi.search import words
from blogapi.storage.database import Database
from blogapi.storage.engine import Compiled, Placeholder, Reader, Transaction
from blogapi.storage.errors import Damaged
from blogapi.storage.models import DOCUMENT, MAX_ID, Post

INDEXING_SECONDS = 0.02  # a rebuild's transaction does not begin another post after this time
MAX_MERGED_PAGES = 16  # a transaction merges this many pages of SQLite's index, which takes 4 ms


# Changes


def prepare(database: Database, content: str) -> None:
    """Split large content into words in a thread; `of_content` caches them for the transaction that indexes them."""
    if len(content) > words.LARGE:
        database.engine.loop.run_in_thread(partial(words.of_content, content))


def update(tx: Transaction, post_id: int, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Update a post's words in the index if they have changed. {} stands for a post that does not exist."""
    if not new:
        delete(tx, post_id)
    elif any(old.get(name) != new.get(name) for name in words.INDEXED_FIELDS):
        add(tx, post_id, new)


def add(tx: Transaction, post_id: int, post: dict[str, Any]) -> None:
    """Index a post's words in place of any already indexed."""
    title, text = words.of_post(post)
    values: dict[str, Any] = {"id": post_id, "title": title, "text": text}
    if tx.engine.dialect == "postgresql":
        values["words"] = " ".join({*title.split(), *text.split()})
    tx.defer_last((post_id,), INSERT, **values)
    if tx.engine.dialect == "sqlite" and not tx.engine.loop.is_cooperative:  # Our server does this in the background.
        tx.defer_last((MAX_ID + 1,), MERGE)


def delete(tx: Transaction, post_id: int) -> None:
    tx.defer_last((post_id,), DELETE, id=post_id)


# On SQLite, these statements are deferred and sorted by id, because the index gets a new segment whenever a different
# statement follows or an id is lower than the previous one. On PostgreSQL, every word in `title` and `text` has a space
# on both sides, `text` includes the title, and `words` contains every word once.
DELETE = Compiled(sqlite="DELETE FROM search WHERE rowid = :id", postgresql="DELETE FROM search WHERE post_id = :id")
INSERT = Compiled(
    sqlite="INSERT OR REPLACE INTO search (rowid, title, text) VALUES (:id, :title, :text)",
    postgresql="""
    INSERT INTO search VALUES (
        :id, ' ' || :title::text || ' ', ' ' || :title::text || ' ' || :text::text || ' ', :words
    ) ON CONFLICT (post_id) DO UPDATE SET title = excluded.title, text = excluded.text, words = excluded.words
    """,
)


# Upkeep


def tidy(database: Database) -> None:
    """Merge the segments that writes have added to the index, in short transactions."""
    if database.engine.dialect == "postgresql":
        database.row(MERGE_PENDING)
        return
    while database.write(_merge):
        database.engine.loop.pause()


def _merge(tx: Transaction) -> bool:
    """Merge some pages of SQLite's index. Return whether there may be more to merge."""
    before = tx.changes
    tx.defer(MERGE)
    return tx.changes - before > 1


def rebuild_position(reader: Reader) -> int:
    """Return the id below which posts may be missing from the index, or 0 if the index is complete."""
    row = reader.row(SELECT_UNINDEXED)
    return row[0] if row else 0


def indexed_percent(reader: Reader) -> int | None:
    """Return the percentage of posts that are indexed, or None if all are."""
    row = reader.row(SELECT_PROGRESS)
    return None if row is None else 100 - 100 * row[0] // max(row[0], row[1] or 0)


def rebuild(database: Database) -> Iterator[int]:
    """Index the posts that are missing after an upgrade or a copy, newest first. Yield each id once it is on disk."""
    while below := rebuild_position(database):
        _, document = database.row(SELECT_NEXT, below=below) or (0, None)
        with suppress(Damaged, *documents.MALFORMED):
            prepare(database, documents.load(document)["content"])
        yield from database.write(_index_some)
        database.engine.loop.pause()


def _index_some(tx: Transaction) -> list[int]:
    """Index the next posts, stopping before a large post or after INDEXING_SECONDS. Return the ids of these posts."""
    indexed: list[int] = []
    below, until = rebuild_position(tx), time.monotonic() + INDEXING_SECONDS
    while row := tx.row(SELECT_NEXT, below=below):
        post_id, document = row
        if indexed and (len(document or b"") > words.LARGE or time.monotonic() > until):
            break
        with suppress(Damaged, *documents.MALFORMED):
            add(tx, post_id, documents.load(document))
        indexed.append(below := post_id)
    tx.execute(UPDATE_UNINDEXED if row else DELETE_UNINDEXED, below=below)
    return indexed


MERGE_PENDING = Compiled("SELECT gin_clean_pending_list('search_words')")
# Without these small merges, SQLite would merge too many pages of its index at a time.
MERGE = Compiled(f"INSERT INTO search (search, rank) VALUES ('merge', {MAX_MERGED_PAGES})")
SELECT_UNINDEXED = Compiled("SELECT below FROM search_rebuild")
SELECT_PROGRESS = Compiled("SELECT below, (SELECT max(id) FROM post) FROM search_rebuild")
UPDATE_UNINDEXED = Compiled("UPDATE search_rebuild SET below = :below")
DELETE_UNINDEXED = Compiled("DELETE FROM search_rebuild")
SELECT_NEXT = Compiled(
    Post.select(Post.id, DOCUMENT).where(Post.id < Placeholder("below")).order_by(Post.id.desc()).limit(1)
)
