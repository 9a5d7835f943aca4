"""The index of the search: what it has of a post, and how it is made for all of them.

A post is there twice under its id, with no word in common, so that one changes without the other: its text, and its
labels, which are its status and its tags. Marks that no word can have tell apart what stands there:

    fog lake §f §l       the words of title, content and excerpt, and the first letter of each
    ¶lake ¶§l            the words of its tags, likewise
    ¦draft ¬6c616b65     its status, and each tag as it is filtered by

SQLite splits this just there where it is joined: to its `ascii` tokenizer all beyond ASCII is part of a word.
"""

import logging
import sqlite3
from collections.abc import Iterator
from typing import Any

from blogapi.post import fold
from blogapi.storage import documents
from blogapi.storage.engine import Transaction
from blogapi.storage.errors import Damaged, NeedsThread
from blogapi.storage.query import Each, Param, Statement
from blogapi.storage.search.words import STANDS_ALONE, UNICODE, words

START = "§"  # before the first letter of a word: to merge all words that begin with one would take seconds
OF_TAG = "¶"  # before a word of a tag
STATUS = "¦"
TAG = "¬"
BETWEEN = "·"  # between two texts: a sequence of words is not found across it
TEXT_FIELDS = ("title", "content", "excerpt")
LABEL_FIELDS = ("status", "tags")
# The numbers of rows and of words that SQLite is told it has: 2**49, as varints of its file format
PLENTY = (b"\x81" + 6 * b"\x80" + b"\x00") * 2
LARGE = 64 * 1024  # characters, from which on indexing a text takes 25 ms and more
PROGRESS = 100_000  # posts, after which a line says how far it has come

log = logging.getLogger(__name__)


def reindex(tx: Transaction, post_id: int, old: dict[str, Any], new: dict[str, Any], at_once: bool = False) -> None:
    """Let a post be found as it is, and no longer as it was; {} for no post. Fields that are the same can be left out.

    The index is written at the end of the transaction, unless `at_once`, which keeps nothing in memory until then.
    Raises NeedsThread for a large text in a transaction that others wait for.
    """
    if not tx.in_thread and is_large(old, new):
        raise NeedsThread
    run = tx.execute if at_once else tx.execute_at_end
    parts = changed_parts(old, new)
    removed, added = joined(parts)
    if removed:
        run(_remove, id=post_id, words=removed, is_gone=not new)
    if added:
        changes = {name: parts[name][1] if name in parts else None for name in ("text", "labels")}
        run(_add, id=post_id, words=added, **changes)


# PostgreSQL has the parts in columns, a space before and after each word.
_add = Each(
    sqlite=Statement("INSERT INTO search (rowid, words) VALUES (?, ?)", [Param("id"), Param("words")]),
    postgresql=Statement(
        """
        INSERT INTO search AS old VALUES (%s, ' ' || %s::text || ' ', ' ' || %s::text || ' ')
        ON CONFLICT (post_id) DO UPDATE
        SET text = coalesce(excluded.text, old.text), labels = coalesce(excluded.labels, old.labels)
        """,
        [Param("id"), Param("text"), Param("labels")],
    ),
)
_remove = Each(
    sqlite=Statement(
        "INSERT INTO search (search, rowid, words) VALUES ('delete', ?, ?)", [Param("id"), Param("words")]
    ),
    postgresql=Statement("DELETE FROM search WHERE post_id = %s AND %s::boolean", [Param("id"), Param("is_gone")]),
)


def is_large(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Return whether to index a change takes tens of milliseconds."""
    return _differ(old, new, TEXT_FIELDS) and sum(len(post.get("content", "")) for post in (old, new)) > LARGE


def _differ(old: dict[str, Any], new: dict[str, Any], fields: tuple[str, ...]) -> bool:
    return any(old.get(field) != new.get(field) for field in fields)


def changed_parts(old: dict[str, Any], new: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Return what leaves the index and what comes into it when a post changes, of the text and of the labels.

    {} stands for no post.
    """
    parts = {}
    for name, fields, words_of in (("text", TEXT_FIELDS, _text), ("labels", LABEL_FIELDS, _labels)):
        if _differ(old, new, fields):
            parts[name] = " ".join(words_of(old)) if old else "", " ".join(words_of(new)) if new else ""
    return parts


def joined(parts: dict[str, tuple[str, str]]) -> tuple[str, str]:
    """Return what leaves the index and what comes into it, of all parts that change."""
    removed, added = (" ".join(part[index] for part in parts.values() if part[index]) for index in (0, 1))
    return removed, added


def _text(post: dict[str, Any]) -> list[str]:
    found: list[str] = []
    for name in TEXT_FIELDS:
        found += words(post.get(name, ""))
        found.append(BETWEEN)
    return found + _starts(found)


def _labels(post: dict[str, Any]) -> Iterator[str]:
    found: list[str] = []
    for tag in post["tags"]:
        found += words(tag)
        found.append(BETWEEN)
        yield TAG + fold(tag).encode().hex()
    for word in found + _starts(found):
        yield OF_TAG + word
    yield STATUS + post["status"]


def _starts(found: list[str]) -> list[str]:
    """Return what lets words be found by their first letter. One that stands alone begins no other."""
    letters = {word[0] for word in found} - {BETWEEN}
    return [START + letter for letter in letters if letter.isascii() or not STANDS_ALONE.match(letter)]


# For all posts


def is_made(connection: sqlite3.Connection) -> bool:
    """Return whether the words of the index are those that this program would make."""
    return connection.execute("SELECT unicode FROM search_made").fetchone() == (UNICODE,)


def make(connection: sqlite3.Connection) -> None:
    """Make the index anew, in the transaction that is open; damaged posts are passed over."""
    connection.execute("INSERT INTO search (search) VALUES ('delete-all')")
    (count,) = connection.execute("SELECT count(*) FROM post").fetchone()
    for number, (post_id, document) in enumerate(connection.execute("SELECT id, document FROM post ORDER BY id"), 1):
        try:
            _, added = joined(changed_parts({}, documents.load(document)))
            connection.execute("INSERT INTO search (rowid, words) VALUES (?, ?)", (post_id, added))
        except Damaged:
            pass
        if number % PROGRESS == 0:
            log.warning("%s of %s posts are indexed", f"{number:,}", f"{count:,}")
    # SQLite fails to remove more words than it has counted: those of a damaged post, say. Nothing else asks the number.
    connection.execute("SAVEPOINT counted")  # With this, the number is written.
    connection.execute("UPDATE search_data SET block = ? WHERE id = 1", (PLENTY,))
    connection.execute("RELEASE counted")
    connection.execute("DELETE FROM search_made")
    connection.execute("INSERT INTO search_made VALUES (?)", (UNICODE,))
