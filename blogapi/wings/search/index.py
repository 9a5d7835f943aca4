"""The search index: the words of posts, written in the transaction of each change.

The words of published posts are kept apart from those of all others. A search among published posts reads no others;
otherwise response times would leak that they exist. Among a post's words, a number stands for each of its tags, the
label, so a site-wide tag change writes no post's words.
"""

import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from blogapi import documents
from blogapi.storage.database import Database
from blogapi.storage.engine import Param, Prepared, Reader, Transaction
from blogapi.storage.errors import Damaged
from blogapi.storage.models import DOCUMENT, Post
from blogapi.wings.search import words

FIELDS = ("title", "content", "excerpt", "tags", "status")  # the fields that the index depends on
BATCH_SECONDS = 0.02  # a transaction that indexes old posts takes no more of them after this time
PAUSE_SECONDS = 0.001  # between two transactions: a sleep of 0 would not let the loop poll its sockets
MERGED_PAGES = 16  # pages of SQLite's index merged in one transaction: 4 ms
PRUNED_LABELS = 1000  # at most this many labels are looked at in one transaction
TABLES = {True: "search_published", False: "search_others"}  # SQLite's tables, by whether they contain published posts


# Changes


def prepare(database: Database, content: str) -> None:
    """Find the words of a large content, in a thread, before the transaction that will index them."""
    if len(content) > words.LARGE:
        database.engine.loop.run_in_thread(partial(words.of_content, content))


def update(tx: Transaction, post_id: int, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Index the words of a changed post; {} stands for no post."""
    if any(old.get(name) != new.get(name) for name in FIELDS):
        before, after = (post.get("status") == "published" for post in (old, new))
        if old and (before != after or not new):
            tx.defer(REMOVE[before], id=post_id)
        if new:
            add(tx, post_id, new)


def add(tx: Transaction, post_id: int, post: dict[str, Any]) -> None:
    """Index the words of a post, in place of those that the same part of the index has."""
    is_published, (title, text) = post["status"] == "published", words.of_post(post)
    if post["tags"]:
        tx.defer(ADD_LABELS[is_published], tags=f"[{','.join(map(words.of_tag, post['tags']))}]")
    values = {"id": post_id, "title": title, "text": text, "keys": documents.dump([*map(words.key_of, post["tags"])])}
    if tx.dialect == "postgresql":
        values["words"] = " ".join({*title.split(), *text.split()})
    tx.defer(ADD[is_published], **values)
    if tx.dialect == "sqlite" and not tx.engine.loop.is_cooperative:  # Our server merges in the background.
        tx.defer(MERGE[is_published])


def remove(tx: Transaction, post_id: int) -> None:
    """Remove a post whose status is unknown."""
    for statement in REMOVE.values():
        tx.defer(statement, id=post_id)


def relabel(tx: Transaction, old: str, name: str) -> None:
    """Index a new name for a (folded) tag in all of its posts; "" stands for none."""
    tag = words.of_tag(name) if name else '["","",[""]]'  # The label stays, because the words of posts contain it.
    for label, is_published in list(tx.rows(LABELS, key=words.key_of(old))):
        tx.execute(REMOVE_LABEL, label=label)
        tx.execute(REPLACE_LABEL, label=label, published=is_published, tag=tag)


# In PostgreSQL, each word has a space on both sides, the text includes the title, and `words` has each word once.
REMOVE = {
    is_published: Prepared(
        sqlite=f"DELETE FROM {table} WHERE rowid = :id", postgresql="DELETE FROM search WHERE post_id = :id"
    )
    for is_published, table in TABLES.items()
}
LABEL = "(SELECT min(search_label.id) FROM search_label WHERE published = {} AND word = value)"
ADD = {
    is_published: Prepared(
        sqlite=f"""
        INSERT OR REPLACE INTO {table} (rowid, title, text) VALUES (:id, :title, :text || coalesce(
        (SELECT group_concat(' {words.LABEL}' || {LABEL.format(int(is_published))}, '') FROM json_each(:keys)), ''))
        """,
        postgresql=f"""
        INSERT INTO search
        SELECT :id, {is_published}, ' ' || :title::text || ' ', ' ' || :title::text || ' ' || :text::text || ' ',
        array_to_string(:words::text || labels::text[], ' {words.LABEL}'), labels FROM (SELECT ARRAY(
        SELECT {LABEL.format(int(is_published))} FROM jsonb_array_elements_text(:keys::jsonb) AS key (value)
        ) AS labels) AS labelled ON CONFLICT (post_id) DO UPDATE SET published = excluded.published,
        title = excluded.title, text = excluded.text, words = excluded.words, labels = excluded.labels
        """,
    )
    for is_published, table in TABLES.items()
}
# A tag is a JSON array: its key, its words in one text, and its key and each word once
ADD_LABELS = {
    is_published: Prepared(
        sqlite=f"""
        INSERT INTO search_label (published, word, id, words) SELECT {int(is_published)}, word.value,
        (SELECT coalesce(max(id), 0) + 1 FROM search_label) + tag.key, json_extract(tag.value, '$[1]')
        FROM json_each(:tags) AS tag CROSS JOIN json_each(tag.value, '$[2]') AS word WHERE NOT EXISTS (
        SELECT 1 FROM search_label WHERE published = {int(is_published)} AND word = json_extract(tag.value, '$[0]'))
        """,
        postgresql=f"""
        INSERT INTO search_label (published, word, id, words) SELECT {int(is_published)}, word,
        (SELECT coalesce(max(id), 0) FROM search_label) + tag.number, tag.value ->> 1
        FROM jsonb_array_elements(:tags::jsonb) WITH ORDINALITY AS tag (value, number),
        jsonb_array_elements_text(tag.value -> 2) AS word WHERE NOT EXISTS (
        SELECT 1 FROM search_label WHERE published = {int(is_published)} AND word = tag.value ->> 0)
        """,
    )
    for is_published in TABLES
}
LABELS = Prepared("SELECT id, published FROM search_label WHERE published IN (0, 1) AND word = :key")
REMOVE_LABEL = Prepared("DELETE FROM search_label WHERE id = :label")
REPLACE_LABEL = Prepared(
    sqlite="""
    INSERT INTO search_label (published, word, id, words)
    SELECT :published, value, :label, json_extract(:tag, '$[1]') FROM json_each(:tag, '$[2]')
    """,
    postgresql="""
    INSERT INTO search_label (published, word, id, words)
    SELECT :published, word, :label, :tag::jsonb ->> 1 FROM jsonb_array_elements_text(:tag::jsonb -> 2) AS word
    """,
)


# Upkeep


def tidy(database: Database) -> None:
    """Merge what writes have left in the index, in short transactions."""
    if database.dialect == "postgresql":
        database.row(CLEAN)
        return
    for statement in MERGE.values():
        while database.write(_merge, statement):
            time.sleep(PAUSE_SECONDS)


def _merge(tx: Transaction, statement: Prepared) -> bool:
    """Merge some pages of SQLite's index; return whether there may be more to merge."""
    before = tx.changes
    tx.defer(statement)
    return tx.changes - before > 1


def prune(tx: Transaction, after: int) -> int:
    """Delete the labels after the label `after` that no post has any more; return the last one looked at, or 0."""
    found = list(tx.rows(UNUSED_LABELS, after=after, limit=PRUNED_LABELS))
    for label, is_published, is_unused in found:
        if is_unused and not tx.row(LABELLED[bool(is_published)], label=f"{words.LABEL}{label}"):
            tx.execute(REMOVE_LABEL, label=label)
    return found[-1][0] if len(found) == PRUNED_LABELS else 0


def unindexed(reader: Reader) -> int:
    """Return the id below which the index may lack posts, or 0 if it is complete."""
    found = reader.row(UNINDEXED)
    return found[0] if found else 0


def indexed_percent(reader: Reader) -> int | None:
    """Return how many percent of the posts are indexed, or None if all are."""
    found = reader.row(PROGRESS)
    return None if found is None else 100 - 100 * found[0] // max(found[0], found[1] or 0)


def rebuild(database: Database) -> Iterator[int]:
    """Index the posts that an upgrade has left to be indexed, newest first; yield each id once it is on disk."""
    while below := unindexed(database):
        _, document = database.row(NEXT, below=below) or (0, None)
        with suppress(Damaged):
            prepare(database, documents.load(document)["content"])
        yield from database.write(_index_some)
        time.sleep(PAUSE_SECONDS)


def _index_some(tx: Transaction) -> list[int]:
    """Index the next posts, up to a large one; return their ids."""
    indexed: list[int] = []
    below, until = unindexed(tx), time.monotonic() + BATCH_SECONDS
    while found := tx.row(NEXT, below=below):
        post_id, document = found
        if indexed and (len(document or b"") > words.LARGE or time.monotonic() > until):
            break
        with suppress(Damaged):
            add(tx, post_id, documents.load(document))
        indexed.append(below := post_id)
    tx.execute(SET_UNINDEXED if found else COMPLETE, below=below)
    return indexed


CLEAN = Prepared("SELECT gin_clean_pending_list('search_published'), gin_clean_pending_list('search_others')")
# By itself, SQLite would merge too many pages of its index at a time.
MERGE = {
    is_published: Prepared(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', {MERGED_PAGES})")
    for is_published, table in TABLES.items()
}
# Each label once, and whether no post carries its tag. That of a tag that was deleted site-wide has the word ''.
_carried = "EXISTS (SELECT 1 FROM post_tag WHERE tag = substr(word, 2) AND status {})"
UNUSED_LABELS = Prepared(f"""
    SELECT id, published, word = '' OR CASE published WHEN 1 THEN NOT {_carried.format("= 'published'")}
    ELSE NOT {_carried.format("IN ('draft', 'scheduled', 'archived')")} END
    FROM search_label WHERE id > :after AND (word = '' OR word LIKE '=%') ORDER BY id LIMIT :limit
""")
LABELLED = {
    is_published: Prepared(
        sqlite=f"SELECT 1 FROM {table} WHERE {table} MATCH '\"' || :label || '\"' LIMIT 1",
        postgresql=f"""
        SELECT 1 FROM search WHERE published = {is_published}
        AND array_to_tsvector(string_to_array(words, ' ')) @@ :label::text::tsquery LIMIT 1
        """,
    )
    for is_published, table in TABLES.items()
}
UNINDEXED = Prepared("SELECT below FROM search_rebuild")
PROGRESS = Prepared("SELECT below, (SELECT max(id) FROM post) FROM search_rebuild")
SET_UNINDEXED = Prepared("UPDATE search_rebuild SET below = :below")
COMPLETE = Prepared("DELETE FROM search_rebuild")
NEXT = Prepared(Post.select(Post.id, DOCUMENT).where(Post.id < Param("below")).order_by(Post.id.desc()).limit(1))
