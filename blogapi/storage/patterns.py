"""The search in PostgreSQL: by patterns of the words that SQLite's index has, too, found by their trigrams.

A tsvector would hold no more than a megabyte, and know no place in a text beyond 16,383.
"""

from collections.abc import Iterator
from functools import cache, reduce
from operator import and_ as intersect
from typing import Any

from peewee import Expression, Node, Select, Table, fn

from blogapi.storage.index import OF_TAG, START
from blogapi.storage.models import MAX_ID, Post, PostTag
from blogapi.storage.orders import Place, bounded
from blogapi.storage.query import Param, Prepared
from blogapi.storage.transaction import Reader
from blogapi.storage.words import sequences

Words = Table("search")  # with post_id, text and labels


def newest(reader: Reader, q: str, status: str | None, before: int | None, values: dict[str, Any]) -> Iterator[tuple]:
    """Give the rows of the newest posts that are found, made before the post `before`."""
    patterns = _patterns(q)
    query = _newest(len(patterns) // 2, status, values["tag"] is not None)
    return reader.rows(query, before=before or MAX_ID, **patterns, **values)


def latest(reader: Reader, q: str, status: str | None, before: Place | None, values: dict[str, Any]) -> Iterator[tuple]:
    """Give the rows of the latest published posts that are found, those before a place."""
    patterns = _patterns(q)
    time, post_id = before or ("~", MAX_ID)  # later than any
    query = _latest(len(patterns) // 2, status, values["tag"] is not None)
    return reader.rows(query, time=time, id=post_id, **patterns, **values)


def _patterns(q: str) -> dict[str, str]:
    """Return what LIKE is to find of each sequence in a text, or in labels: words have no character of its own."""
    patterns = {}
    for number, (sequence, by_start) in enumerate(dict.fromkeys(sequences(q))):
        if by_start and len(sequence) == len(sequence[0]) == 1:
            sequence, by_start = (START + sequence[0],), False
        for column, mark in (("text", ""), ("labels", OF_TAG)):
            words = " ".join(mark + word for word in sequence)
            patterns[f"{column}{number}"] = f"% {words}%" if by_start else f"% {words} %"
    return patterns


@cache
def _newest(count: int, status: str | None, by_tag: bool) -> Prepared:
    """Return the query of a page of a search, with the parameters now, tag, before, limit and so many patterns."""
    query = Post.select(Post.id, Post.status, Post.document).where(*_conditions(count, status, by_tag))
    query = query.where(Post.id < Param("before")).order_by(Post.id.desc())
    return Prepared(bounded(query.limit(Param("limit"))))


@cache
def _latest(count: int, status: str | None, by_tag: bool) -> Prepared:
    """Return the same by time, with the parameters now, tag, time, id, limit and patterns."""
    time, key = Post.published_at, Post.id
    earlier = (time < Param("time")) | ((time == Param("time")) & (key < Param("id")))
    query = Post.select(key, Post.status, Post.document, time).where(*_conditions(count, status, by_tag), earlier)
    return Prepared(bounded(query.order_by(time.desc(), key.desc()).limit(Param("limit")), "published_at"))


def _conditions(count: int, status: str | None, by_tag: bool) -> Iterator[Node]:
    yield Post.id == fn.ANY(fn.ARRAY(reduce(intersect, map(_found, range(count)))))  # first, and so by the index
    is_due = Post.published_at <= Param("now")
    if status == "published":
        yield (Post.status == status) | ((Post.status == "scheduled") & is_due)
    elif status is not None:
        yield Post.status == status
    if status == "scheduled":
        yield ~is_due
    if by_tag:
        carries = (PostTag.tag == Param("tag")) & (PostTag.status == Post.status) & (PostTag.post_id == Post.id)
        yield fn.EXISTS(PostTag.select(PostTag.post_id).where(carries))


def _found(number: int) -> Select:
    """Return the query for the ids of the posts that have a sequence."""
    in_text, in_labels = (
        Expression(column, "LIKE", Param(f"{name}{number}"))
        for name, column in (("text", Words.c.text), ("labels", Words.c.labels))
    )
    return Words.select(Words.c.post_id).where(in_text | in_labels)
