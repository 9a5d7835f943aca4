"""The search in PostgreSQL: by patterns of the words that SQLite's index has, too, found by their trigrams.

A tsvector would hold no more than a megabyte, and know no place in a text beyond 16,383.
"""

from collections.abc import Callable, Iterator
from functools import cache, reduce
from operator import add as union_all
from typing import Any

from peewee import SQL, Expression, Node, Select, Table, Tuple, fn

from blogapi.post import STATUSES
from blogapi.storage.engine import Reader
from blogapi.storage.models import MAX_ID, Post, PostTag
from blogapi.storage.pages import LATEST, Cursor, bounded
from blogapi.storage.query import Param, Prepared
from blogapi.storage.search.index import OF_TAG, START, TAG
from blogapi.storage.search.words import sequences

FIRST = 1000  # posts, which are gone through, in 10 ms or so, before the index is asked

Words = Table("search")  # with post_id, text and labels


def newest(reader: Reader, q: str, status: str | None, before: int | None, values: dict[str, Any]) -> Iterator[tuple]:
    """Give the rows of the newest posts that are found, made before the post `before`."""
    return _page(reader, _newest, q, status, values | {"before": before or MAX_ID})


def latest(
    reader: Reader, q: str, status: str | None, before: Cursor | None, values: dict[str, Any]
) -> Iterator[tuple]:
    """Give the rows of the latest published posts that are found, those before a place."""
    time, post_id = before or (LATEST, MAX_ID)
    return _page(reader, _latest, q, status, values | {"time": time, "id": post_id})


def _page(
    reader: Reader, query: Callable[..., Prepared], q: str, status: str | None, values: dict[str, Any]
) -> Iterator[tuple]:
    """Give the rows that are found among the first posts of the order, or, where these are too few, among all.

    The index gives all that are found, in no order: of a word in half of the posts that would be these.
    """
    patterns, tag = _patterns(q), values["tag"]
    filters = len(patterns) // 2, status, tag is not None
    values = values | patterns | {"label": f"% {TAG}{(tag or '').encode().hex()} %"}
    first = list(reader.rows(query(*filters, among_first=True), first=FIRST, **values))
    return iter(first) if len(first) == values["limit"] else reader.rows(query(*filters, among_first=False), **values)


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
def _newest(count: int, status: str | None, by_tag: bool, among_first: bool) -> Prepared:
    """Return the query of a page, with the parameters now, tag, before, limit, first, label and patterns."""
    key = Post.id
    earlier = key < Param("before")
    if among_first:
        first = Post.select(key).where(earlier).order_by(key.desc()).limit(Param("first")).alias("first")
        found = (key >= Select([first], [fn.MIN(first.c.id)])) & _has_all(count)
    else:
        found = _in_index(count, by_tag)
    query = Post.select(key, Post.status, Post.document).where(found, *_conditions(status, by_tag), earlier)
    return Prepared(bounded(query.order_by(key.desc()).limit(Param("limit"))))


@cache
def _latest(count: int, status: str | None, by_tag: bool, among_first: bool) -> Prepared:
    """Return the same by time, with the parameters now, tag, time, id, limit, first, label and patterns."""
    time, key = Post.published_at, Post.id
    # By its first part alone, PostgreSQL sees that the index has all of these.
    earlier = (time <= Param("time")) & (Tuple(time, key) < Tuple(Param("time"), Param("id")))
    order = time.desc(), key.desc()
    if among_first:
        statuses = STATUSES if status is None else ("published", "scheduled") if status == "published" else (status,)
        lists = [
            Post.select(key, time).where(Post.status == each, earlier).order_by(*order).limit(Param("first"))
            for each in statuses
        ]
        first = reduce(union_all, lists).order_by(SQL("2").desc(), SQL("1").desc()).limit(Param("first")).alias("first")
        found = _is_one(Select([first], [first.c.id])) & _has_all(count)
    else:
        found = _in_index(count, by_tag)
    query = Post.select(key, Post.status, Post.document, time).where(found, *_conditions(status, by_tag), earlier)
    return Prepared(bounded(query.order_by(*order).limit(Param("limit")), "published_at"))


def _conditions(status: str | None, by_tag: bool) -> Iterator[Node]:
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


def _in_index(count: int, by_tag: bool) -> Node:
    """Return the condition that a post is one of those that the index finds for all sequences, and perhaps the tag."""
    found = Words.select(Words.c.post_id).where(*map(_has, range(count)))
    return _is_one(found.where(Expression(Words.c.labels, "LIKE", Param("label"))) if by_tag else found)


def _is_one(ids: Select) -> Node:
    """Return the condition that a post is one of these, found first: PostgreSQL could go through all posts."""
    return Post.id == fn.ANY(fn.ARRAY(ids))


def _has_all(count: int) -> Node:
    """Return the condition that a post has all sequences, which is asked of each post: EXISTS could be asked of all."""
    return Post.id == Words.select(Words.c.post_id).where(Words.c.post_id == Post.id, *map(_has, range(count)))


def _has(number: int) -> Node:
    """Return the condition that a sequence is in the text or in the labels of a post."""
    in_text, in_labels = (
        Expression(column, "LIKE", Param(f"{name}{number}"))
        for name, column in (("text", Words.c.text), ("labels", Words.c.labels))
    )
    return in_text | in_labels
