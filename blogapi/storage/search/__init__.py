"""The search: finding posts by their words."""

import heapq
from collections.abc import Callable, Iterator
from contextlib import suppress
from operator import itemgetter
from typing import Any

from blogapi.storage import documents
from blogapi.storage.engine import Reader, Transaction
from blogapi.storage.errors import Damaged
from blogapi.storage.models import DOCUMENT, MAX_ID, Post, Schedule
from blogapi.storage.pages import LATEST, Cursor, PostPage, page_of
from blogapi.storage.query import Param, Prepared
from blogapi.storage.search import postgresql, sqlite
from blogapi.storage.search.index import Wanted, all_words, has, wanted

ENGINES = {"sqlite": sqlite, "postgresql": postgresql}
TITLE, TEXT = "title", "text"  # which of them has all words: the keys of a Cursor in the order of relevance


def reindex(tx: Transaction, post_id: int, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Update the index for a changed post; {} stands for no post. Fields that stay can be left out."""
    ENGINES[tx.dialect].reindex(tx, post_id, old, new)


def settle(tx: Transaction) -> None:
    """Move all waiting words to the index."""
    ENGINES[tx.dialect].settle(tx)


def page(
    reader: Reader,
    q: str,
    limit: int,
    status: str | None = None,
    tag: str | None = None,
    before: int | Cursor | None = None,
    sort: str = "created_at",
    fields: str | None = None,
    published_after: str = "",
    published_before: str = LATEST,
) -> PostPage:
    """Return a page as `pages.page` does, of the posts with the words of `q`.

    Sorted by relevance: first the posts whose title alone has all words, then the others, each newest first.
    """
    values = {"now": reader.now, "tag": tag, "limit": limit + 1}
    looked_for = wanted(q)
    if sort == "relevance":
        rows = _by_relevance(reader, looked_for, status, before or Cursor(TITLE, MAX_ID), values)
    elif sort == "created_at":
        rows = _newest(reader, looked_for, None, status, values | {"before": before or MAX_ID})
    else:
        last = min(before or Cursor(LATEST, MAX_ID), Cursor(published_before, 0))
        rows = _latest(reader, looked_for, sort, status, last, values | {"after": published_after})
    return page_of(rows, limit, fields, values["now"])


def is_quick(reader: Reader, query: dict[str, Any]) -> bool:
    """Return whether a search needs no thread."""
    if query.get("status") == "published" and reader.row(_any_due, now=reader.now):
        return False
    is_by_id = query.get("sort", "created_at") in ("created_at", "relevance")
    in_order = is_by_id and "tag" not in query and query.get("status") in (None, "published")
    return ENGINES[reader.dialect].is_quick(reader, wanted(query["q"]), in_order)


def _newest(
    reader: Reader, looked_for: Wanted, by_title: bool | None, status: str | None, values: dict[str, Any]
) -> Iterator[tuple]:
    rows = ENGINES[reader.dialect].newest(reader, looked_for, by_title, status, values)
    others = _others(reader, looked_for, by_title, "created_at", status, values)
    return _merged(reader, rows, [(post_id,) for post_id, _ in others if post_id < values["before"]], itemgetter(0))


def _by_relevance(
    reader: Reader, looked_for: Wanted, status: str | None, before: Cursor, values: dict[str, Any]
) -> Iterator[tuple]:
    """Yield the rows of the posts whose title has all words, then those of the others."""
    if before.key == TITLE:
        for row in _newest(reader, looked_for, True, status, values | {"before": before.id}):
            yield *row, TITLE
        before = Cursor(TEXT, MAX_ID)
    for row in _newest(reader, looked_for, False, status, values | {"before": before.id}):
        yield *row, TEXT


def _latest(
    reader: Reader, looked_for: Wanted, sort: str, status: str | None, before: Cursor, values: dict[str, Any]
) -> Iterator[tuple]:
    rows = ENGINES[reader.dialect].latest(reader, looked_for, sort, status, before, values)
    others = [
        (post_id, time)
        for post_id, time in _others(reader, looked_for, None, sort, status, values)
        if values["after"] <= time and (time, post_id) < before
    ]
    return _merged(reader, rows, others, itemgetter(3, 0))


def _others(
    reader: Reader, looked_for: Wanted, by_title: bool | None, sort: str, status: str | None, values: dict[str, Any]
) -> Iterator[tuple[int, str]]:
    """Yield the ids and times of matching posts that the index does not find."""
    yield from ENGINES[reader.dialect].recent(reader, looked_for, by_title, sort, status, values)
    if status == "published" and sort != "updated_at":
        yield from _find_due(reader, looked_for, by_title, values)


def _find_due(
    reader: Reader, looked_for: Wanted, by_title: bool | None, values: dict[str, Any]
) -> Iterator[tuple[int, str]]:
    """Yield the ids and times of the due posts that have the words, which the index does not know as published yet.

    Their text is read, not the index: the time of a search among published posts must not depend on others.
    """
    for post_id, time in list(reader.rows(_due, now=values["now"])):
        found = reader.row(_document, id=post_id)  # One by one: memory holds one.
        with suppress(Damaged):
            words = all_words(documents.load(found[1] if found else b""))
            if has(words, looked_for, by_title, values["tag"]):
                yield post_id, time


_due_posts = Schedule.select(Schedule.post_id, Schedule.published_at).where(Schedule.published_at <= Param("now"))
_due, _any_due = Prepared(_due_posts), Prepared(_due_posts.limit(1))
_document = Prepared(Post.select(Post.status, DOCUMENT).where(Post.id == Param("id")))


def _merged(reader: Reader, rows: Iterator[tuple], others: list[tuple], key: Callable[[tuple], Any]) -> Iterator[tuple]:
    """Merge the rows with those of other posts, in order; the documents of these are read one by one."""
    if not others:
        return rows
    read = (
        (post_id, *found, *rest)
        for post_id, *rest in sorted(others, key=itemgetter(slice(None, None, -1)), reverse=True)
        if (found := reader.row(_document, id=post_id))
    )
    return heapq.merge(rows, read, key=key, reverse=True)
