"""The search in SQLite, by an FTS5 index that keeps no text.

The words of changed texts wait in `recent` until there are many; then triggers move them to the index, as writing them
one by one would take half of the time of a creation. Until then, a search scans them.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

from peewee import JOIN, SQL, Expression

from blogapi.storage import lists
from blogapi.storage.database import Database
from blogapi.storage.engine import Param, Prepared, Reader, Transaction
from blogapi.storage.lists import COLUMNS, Cursor, future_ids
from blogapi.storage.models import Post, Recent, Search
from blogapi.storage.search import index

SORTED_POSTS = 20_000  # If more match, a scan of all posts soon finds the latest of them.


def reindex(tx: Transaction, post_id: int, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Update the words of a changed post."""
    if index.text_differs(old, new):
        removed, added = index.all_words(old), index.all_words(new)
        tx.defer(REMEMBER, id=post_id, removed=removed, added=added, size=len(removed) + len(added))
    elif index.labels_differ(old, new):
        tx.defer(SETTLE_POST, id=post_id)
        tx.defer(REMOVE, id=post_id, words=index.marked_labels(old))
        tx.defer(ADD, id=post_id, words=index.marked_labels(new))


def settle(database: Database) -> None:
    """Move waiting words to the index."""
    if database.row(WAITING):
        database.write(lambda tx: tx.defer(SETTLE))


WAITING = Prepared(Recent.select(Recent.c.post_id).limit(1))
SETTLE, SETTLE_POST = Prepared("DELETE FROM recent"), Prepared("DELETE FROM recent WHERE post_id = :id")
REMEMBER = Prepared(
    """
    INSERT INTO recent (post_id, removed, added, size) VALUES (:id, :removed, :added, :size)
    ON CONFLICT DO UPDATE SET added = excluded.added, size = length(removed) + length(excluded.added)
    """
)
ADD = Prepared("INSERT INTO search (rowid, words) VALUES (:id, :words)")
REMOVE = Prepared("INSERT INTO search (search, rowid, words) VALUES ('delete', :id, :words)")


_is_recent = Search.c.rowid.in_(Recent.select(Recent.c.post_id))
_found = Search.select(Search.c.rowid).where(Expression(Search.c.search, "MATCH", Param("words")), ~_is_recent)


def newest(reader: Reader, terms: index.Terms, values: dict[str, Any]) -> Iterator[tuple]:
    """Return the rows of the newest posts that are found. `values` has now, tag, before and limit.

    Costs more than a list if posts have some of the words and not the rest.
    """
    return reader.rows(newest_query(terms.status), words=expression(terms), **values)


@cache
def newest_query(status: str | None) -> Prepared:
    """Return the query of a page, with the parameters now, words, before and limit.

    The index may still have words of posts that were damaged when they were deleted.
    """
    ids = _found.where(Search.c.rowid < Param("before")).join(Post, on=Post.id == Search.c.rowid)
    if status == "scheduled":
        ids = future_ids(ids)
    found = ids.order_by(SQL("1").desc()).limit(Param("limit"))
    return Prepared(Post.select(Post.id, *COLUMNS).where(Post.id.in_(found)).order_by(Post.id.desc()))


def latest(reader: Reader, terms: index.Terms, sort: str, before: Cursor, values: dict[str, Any]) -> Iterator[tuple]:
    """Return the rows of the latest posts that are found, by published_at or updated_at.

    `values` has now, tag, limit and after. The index does not have this order: the matches are sorted or, if there
    are many, found by a scan of all posts.
    """
    words, status = expression(terms), terms.status
    if len(list(reader.rows(SOME_IDS, words=words, limit=SORTED_POSTS))) == SORTED_POSTS:
        return lists.latest(reader, sort, status, before, values | {"words": words}, _found)
    return reader.rows(latest_query(sort, status), words=words, time=before.key, id=before.id, **values)


SOME_IDS = Prepared(_found.limit(Param("limit")))


@cache
def latest_query(sort: str, status: str | None) -> Prepared:
    """Return the query of a page by time, with the parameters now, words, time, id, after and limit."""
    time, key = getattr(Post, sort), Post.id
    earlier = (time < Param("time")) | ((time == Param("time")) & (key < Param("id")))
    ids = _found.select(key).join(Post, on=key == Search.c.rowid).where(earlier, time >= Param("after"))
    if status == "scheduled":
        ids = ids.where(Post.published_at > Param("now"))
    order = time.desc(), key.desc()
    found = ids.order_by(*order).limit(Param("limit"))
    return Prepared(Post.select(key, *COLUMNS, time).where(key.in_(found)).order_by(*order))


def recent(reader: Reader, terms: index.Terms, sort: str, now: str) -> Iterator[tuple[int, str]]:
    """Yield the ids and times of the posts that are found among those whose words are not in the index yet."""
    for post_id, words, time, published_at in reader.rows(_recent(sort, terms.status)):
        is_due = terms.status == "scheduled" and published_at <= now
        if time and not is_due and index.has(words, terms):
            yield post_id, time


@cache
def _recent(sort: str, status: str | None) -> Prepared:
    """Return the query of matching posts whose words wait. The words of other posts are not read."""
    time = Post.published_at if sort == "published_at" else Post.updated_at
    query = Recent.select(Post.id, Recent.c.added, time, Post.published_at).join(Post, JOIN.CROSS)  # the few first
    query = query.where(Post.id == Recent.c.post_id)
    return Prepared(query if status is None else query.where(Post.status == status))


SIZE = Prepared("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")


def expression(terms: index.Terms) -> str:
    """Return the search expression for SQLite: our words in quotes, so that none has a special meaning."""
    sequences, status, tag, by_title = terms
    scopes = ["", index.PUBLISHED] if status is None else [index.PUBLISHED if status == "published" else ""]

    def either(sequence: tuple[str, ...], by_start: bool, *marks: str) -> str:
        star = " *" if by_start else ""
        found = (f'"{index.phrase(sequence, scope + mark)}"{star}' for scope in scopes for mark in marks)
        return f"({' OR '.join(found)})"

    parts = [either(*each, *([index.OF_TITLE] if by_title else ["", index.OF_TAG])) for each in sequences]
    if status not in (None, "published"):
        parts.append(f'"{index.STATUS}{status}"')
    if tag:
        parts.append(either((index.tag_label(tag),), False, ""))
    if by_title is False:
        return f"({' AND '.join(parts)}) NOT ({' AND '.join(either(*each, index.OF_TITLE) for each in sequences)})"
    return " AND ".join(parts)
