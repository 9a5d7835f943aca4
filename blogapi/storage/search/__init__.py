"""The search: finding posts by their words."""

import heapq
from collections.abc import Callable, Iterator
from contextlib import suppress
from operator import itemgetter
from typing import Any

from blogapi.storage import documents, publication
from blogapi.storage.database import Database
from blogapi.storage.engine import Param, Prepared, Reader, Transaction
from blogapi.storage.errors import Damaged
from blogapi.storage.lists import Cursor, ListQuery, PostPage, page_of
from blogapi.storage.models import DOCUMENT, MAX_ID, Post, Schedule
from blogapi.storage.search import postgresql, sqlite
from blogapi.storage.search.index import Terms, all_words, has, sequences_of

ENGINES = {"sqlite": sqlite, "postgresql": postgresql}
# Bytes of a file in which SQLite searches for plain words, and for beginnings or sequences, in some 20 ms at most
QUICK_WORDS = 3
QUICK_BYTES, QUICK_SEQUENCE_BYTES = 256 * 1024 * 1024, 4 * 1024 * 1024
TITLE, TEXT = "title", "text"  # which of them has all words: the keys of a Cursor in the order of relevance


def reindex(tx: Transaction, post_id: int, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Update the index for a changed post; {} stands for no post. Fields that stay can be left out."""
    ENGINES[tx.dialect].reindex(tx, post_id, old, new)


def settle(database: Database) -> None:
    """Move waiting words to the index."""
    ENGINES[database.dialect].settle(database)


def page(reader: Reader, query: ListQuery) -> PostPage:
    """Return a page as `lists.page` does, of the posts with the words of `q`.

    Sorted by relevance: first the posts whose title alone has all words, then the others, each newest first.
    """
    terms = Terms(sequences_of(query.q), query.status, query.tag)
    values = {"now": reader.now, "tag": query.tag, "limit": query.limit + 1}
    if query.sort == "relevance":
        rows = _by_relevance(reader, terms, query.before or Cursor(TITLE, MAX_ID), values)
    elif query.sort == "created_at":
        rows = _by_creation(reader, terms, values | {"before": query.before or MAX_ID})
    else:
        rows = _by_time(reader, terms, query.sort, query.start, values | {"after": query.published_after})
    return page_of(rows, query, values["now"])


def is_quick(reader: Reader, query: ListQuery) -> bool:
    """Return whether a search takes no longer than a few lists, and needs no thread."""
    sequences = sequences_of(query.q)
    count = sum(len(sequence) for sequence, _ in sequences)
    in_order = query.sort in ("created_at", "relevance") and query.tag is None and query.status in (None, "published")
    is_plain = in_order and count == len(sequences) and not any(by_start for _, by_start in sequences)
    if query.status == "published" and publication.next_due(reader) is not None:
        return False
    if is_plain and count == 1:
        return True
    if reader.dialect == "postgresql" or count > QUICK_WORDS:
        return False
    return reader.row(sqlite.SIZE)[0] <= (QUICK_BYTES if is_plain else QUICK_SEQUENCE_BYTES)


def _by_creation(reader: Reader, terms: Terms, values: dict[str, Any]) -> Iterator[tuple]:
    rows = ENGINES[reader.dialect].newest(reader, terms, values)
    others = _others(reader, terms, "created_at", values)
    return _with_others(
        reader, rows, [(post_id,) for post_id, _ in others if post_id < values["before"]], itemgetter(0)
    )


def _by_relevance(reader: Reader, terms: Terms, before: Cursor, values: dict[str, Any]) -> Iterator[tuple]:
    """Yield the rows of the posts whose title has all words, then those of the others."""
    if before.key == TITLE:
        for row in _by_creation(reader, terms._replace(by_title=True), values | {"before": before.id}):
            yield *row, TITLE
        before = Cursor(TEXT, MAX_ID)
    for row in _by_creation(reader, terms._replace(by_title=False), values | {"before": before.id}):
        yield *row, TEXT


def _by_time(reader: Reader, terms: Terms, sort: str, before: Cursor, values: dict[str, Any]) -> Iterator[tuple]:
    rows = ENGINES[reader.dialect].latest(reader, terms, sort, before, values)
    others = [
        (post_id, time)
        for post_id, time in _others(reader, terms, sort, values)
        if values["after"] <= time and (time, post_id) < before
    ]
    return _with_others(reader, rows, others, itemgetter(3, 0))


def _others(reader: Reader, terms: Terms, sort: str, values: dict[str, Any]) -> Iterator[tuple[int, str]]:
    """Yield the ids and times of matching posts that the index does not find.

    It does not know due posts as published yet. Their text is read, not the index: the time of a search among published
    posts must not depend on others.
    """
    if reader.dialect == "sqlite":
        yield from sqlite.recent(reader, terms, sort, values["now"])
    if terms.status == "published" and sort != "updated_at":
        for post_id, time in list(reader.rows(DUE, now=values["now"])):
            found = reader.row(STATUS_AND_DOCUMENT, id=post_id)  # One by one: memory holds one.
            with suppress(Damaged):
                if has(all_words(documents.load(found[1] if found else b"")), terms):
                    yield post_id, time


DUE = Prepared(Schedule.select(Schedule.post_id, Schedule.published_at).where(publication.has_come))
STATUS_AND_DOCUMENT = Prepared(Post.select(Post.status, DOCUMENT).where(Post.id == Param("id")))


def _with_others(
    reader: Reader, rows: Iterator[tuple], others: list[tuple], key: Callable[[tuple], Any]
) -> Iterator[tuple]:
    """Merge the rows with those of other posts, in order; the documents of these are read one by one."""
    if not others:
        return rows
    read = (
        (post_id, *found, *rest)
        for post_id, *rest in sorted(others, key=itemgetter(slice(None, None, -1)), reverse=True)
        if (found := reader.row(STATUS_AND_DOCUMENT, id=post_id))
    )
    return heapq.merge(rows, read, key=key, reverse=True)
