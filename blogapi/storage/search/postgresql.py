"""The search in PostgreSQL: patterns of the words that SQLite's index has, found by their trigrams.

A tsvector holds at most a megabyte, and no positions beyond 16,383.
"""

from collections.abc import Callable, Iterator
from functools import cache, partial, reduce
from operator import add as union_all
from operator import and_
from typing import Any

from peewee import SQL, Case, Expression, Node, Select, Table, Tuple, fn

from blogapi.post import STATUSES
from blogapi.storage.engine import Reader, Transaction
from blogapi.storage.models import Post
from blogapi.storage.pages import Cursor, bounded
from blogapi.storage.query import Param, Prepared
from blogapi.storage.search.index import (
    OF_TAG,
    OF_TITLE,
    Asked,
    Wanted,
    label_words,
    labels_differ,
    phrase,
    tag_label,
    text_differs,
    text_words,
)

FIRST = 200  # posts, read before the index is used
SMALL_BYTES = 2 * 1024 * 1024  # of words, which are searched in less time than the index
COLUMNS = (("text", ""), ("labels", OF_TAG), ("title", OF_TITLE))  # names of parameters, and the marks of their words

ALL, AMONG_FIRST, INDEXED = "all", "among first", "indexed"  # ways to search

Words = Table("search")  # with post_id, text, labels and published


def reindex(tx: Transaction, post_id: int, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Update the words of a changed post."""
    if not new:
        tx.defer(_remove, id=post_id)
    elif text_differs(old, new) or labels_differ(old, new):
        text = text_words(new) if text_differs(old, new) else None
        published = new["status"] == "published"
        tx.defer(_add, id=post_id, text=text, labels=label_words(new), published=published)


# A space before and after each word
_add = Prepared(
    """
    INSERT INTO search AS old VALUES (:id, ' ' || :text::text || ' ', ' ' || :labels::text || ' ', :published)
    ON CONFLICT (post_id) DO UPDATE
    SET text = coalesce(excluded.text, old.text), labels = excluded.labels, published = excluded.published
    """
)
_remove = Prepared("DELETE FROM search WHERE post_id = :id")


def newest(reader: Reader, asked: Asked, values: dict[str, Any]) -> Iterator[tuple]:
    """Return the rows of the newest posts that are found. `values` has now, tag, before and limit."""
    return _page(reader, _newest, asked, values)


def latest(reader: Reader, asked: Asked, sort: str, before: Cursor, values: dict[str, Any]) -> Iterator[tuple]:
    """Return the rows of the latest posts that are found, by published_at or updated_at.

    `values` has now, tag, limit and after.
    """
    return _page(reader, partial(_latest, sort), asked, values | {"time": before.key, "id": before.id})


def is_quick(reader: Reader, looked_for: Wanted, in_order: bool) -> bool:
    """Return whether a search takes no longer than a few lists."""
    return in_order and len(looked_for) == len(looked_for[0][0]) == 1


def _page(reader: Reader, query: Callable[..., Prepared], asked: Asked, values: dict[str, Any]) -> Iterator[tuple]:
    """Return the matching rows among the first posts of the order or, if these are too few, among all posts.

    The index returns all matches, in no order: for a word in half of the posts, half of the posts. For titles it is
    used at once, as few have all words.
    """
    filters = len(asked.looked_for), asked.by_title, asked.status, asked.tag is not None
    values = values | _sequences(asked.looked_for) | {"label": f" {tag_label(asked.tag or '')} "}
    first = [] if asked.by_title else list(reader.rows(query(*filters, AMONG_FIRST), first=FIRST, **values))
    if len(first) == values["limit"]:
        return iter(first)
    way = ALL if reader.row(_size)[0] <= SMALL_BYTES else INDEXED
    return reader.rows(query(*filters, way), **values)


_size = Prepared("SELECT pg_table_size('search')")


def _sequences(looked_for: Wanted) -> dict[str, str]:
    """Return the parameters of each sequence, which have no characters that are special in a LIKE pattern."""
    return {
        f"{name}{number}": f" {phrase(sequence, mark)}{'' if by_start else ' '}"
        for number, (sequence, by_start) in enumerate(looked_for)
        for name, mark in COLUMNS
    }


@cache
def _newest(count: int, by_title: bool | None, status: str | None, by_tag: bool, way: str) -> Prepared:
    """Return the query of a page, with the parameters now, before, limit, first, label and sequences."""
    key = Post.id
    order = [key.desc()]
    first = Post.select(key).where(*_with_status(status), key < Param("before")).order_by(*order).limit(Param("first"))
    found = _found(way, first, count, by_title, status, by_tag)
    query = Post.select(key, Post.status, Post.document).where(found, *_with_status(status), key < Param("before"))
    return Prepared(bounded(query.order_by(*order).limit(Param("limit"))))


@cache
def _latest(sort: str, count: int, by_title: None, status: str | None, by_tag: bool, way: str) -> Prepared:
    """Return the query of a page by time, with now, time, id, after, limit, first, label and sequences."""
    time, key = getattr(Post, sort), Post.id
    order = time.desc(), key.desc()
    lists = [
        Post.select(key, time).where(Post.status == each, _earlier(time)).order_by(*order).limit(Param("first"))
        for each in ([status] if status else STATUSES)
    ]
    merged = reduce(union_all, lists).order_by(SQL("2").desc(), SQL("1").desc()).limit(Param("first")).alias("merged")
    found = _found(way, Select([merged], [merged.c.id]), count, by_title, status, by_tag)
    is_earlier = _earlier(fn.NULLIF(time, ""))  # keeps PostgreSQL from an index: the ids find the posts
    query = Post.select(key, Post.status, Post.document, time).where(found, *_with_status(status), is_earlier)
    return Prepared(bounded(query.order_by(*order).limit(Param("limit")), sort))


def _earlier(time: Node) -> Node:
    """Return the condition that a post is before a cursor. Its first part lets PostgreSQL use an index."""
    return time.between(Param("after"), Param("time")) & (Tuple(time, Post.id) < Tuple(Param("time"), Param("id")))


def _with_status(status: str | None) -> Iterator[Node]:
    if status is not None:
        yield Post.status == status
    if status == "scheduled":
        yield Post.published_at > Param("now")


def _found(way: str, first: Select, count: int, by_title: bool | None, status: str | None, by_tag: bool) -> Node:
    """Return the condition that a post matches: any one, one of `first`, or one that the index finds."""
    has = _is_like if way == INDEXED else _contains
    in_title = [has("text", f"title{number}") for number in range(count)]
    anywhere = [has("text", f"text{number}") | has("labels", f"labels{number}") for number in range(count)]
    conditions = in_title if by_title else anywhere
    if by_title is False:  # CASE comes last; PostgreSQL would begin with this condition, as it is simpler.
        conditions = [*anywhere, Case(None, [(reduce(and_, anywhere), ~reduce(and_, in_title))])]
    if by_tag:
        conditions.append(has("labels", "label"))
    found = Words.select(Words.c.post_id).where(*conditions)
    if way == AMONG_FIRST:
        return _is_one_of(found.where(_is_one_of(first, Words.c.post_id)))
    published, others = found.where(SQL("published")), found.where(SQL("NOT published"))  # Each has an index.
    if status:
        return _is_one_of(published if status == "published" else others)
    return _is_one_of(found if way == ALL else published + others)


def _is_one_of(ids: Select, key: Node = Post.id) -> Node:
    """Return the condition that a post is one of these, which are found first: PostgreSQL could scan all posts."""
    return key == fn.ANY(fn.ARRAY(ids))


def _is_like(column: str, name: str) -> Node:
    """Return the condition that a column contains a sequence, for the index."""
    return Expression(Words.c[column], "LIKE", fn.CONCAT("%", Param(name).cast("text"), "%"))


def _contains(column: str, name: str) -> Node:
    """Return the same without an index, which is faster than LIKE."""
    return fn.STRPOS(Words.c[column], Param(name)) > 0
