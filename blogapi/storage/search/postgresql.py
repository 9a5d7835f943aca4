"""The search in PostgreSQL: patterns of the words that SQLite's index has, found by their trigrams.

A tsvector holds at most a megabyte, and no positions beyond 16,383.
"""

from collections.abc import Iterator
from functools import cache, partial, reduce
from operator import add as union_all
from operator import and_
from typing import Any

from peewee import SQL, Case, Expression, Node, Select, Tuple, fn

from blogapi.post import STATUSES
from blogapi.storage.database import Database
from blogapi.storage.engine import Param, Prepared, Reader, Transaction
from blogapi.storage.lists import Cursor, bounded
from blogapi.storage.models import Post, Search
from blogapi.storage.search import index

FIRST_READ = 200  # posts, read before the index is used
MARKS = {"text": "", "labels": index.OF_TAG, "title": index.OF_TITLE}  # of words, by the names of parameters


def reindex(tx: Transaction, post_id: int, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Update the words of a changed post."""
    if not new:
        tx.defer(REMOVE, id=post_id)
    elif index.text_differs(old, new) or index.labels_differ(old, new):
        text = index.text_words(new) if index.text_differs(old, new) else None
        published = new["status"] == "published"
        tx.defer(ADD, id=post_id, text=text, labels=index.label_words(new), published=published)


def settle(database: Database) -> None:
    """Move waiting words to the index. Until they are there, searches read the words of each latest change."""
    database.row(SETTLE)


SETTLE = Prepared("SELECT gin_clean_pending_list('search_published'), gin_clean_pending_list('search_others')")
# A space before and after each word
ADD = Prepared(
    """
    INSERT INTO search AS old VALUES (:id, ' ' || :text::text || ' ', ' ' || :labels::text || ' ', :published)
    ON CONFLICT (post_id) DO UPDATE
    SET text = coalesce(excluded.text, old.text), labels = excluded.labels, published = excluded.published
    """
)
REMOVE = Prepared("DELETE FROM search WHERE post_id = :id")


def newest(reader: Reader, terms: index.Terms, values: dict[str, Any]) -> Iterator[tuple]:
    """Return the rows of the newest posts that are found. `values` has now, tag, before and limit."""
    return reader.rows(newest_query(*_filters(terms)), **values, **words_of(terms))


def latest(reader: Reader, terms: index.Terms, sort: str, before: Cursor, values: dict[str, Any]) -> Iterator[tuple]:
    """Return the rows of the latest posts that are found, by `sort`. `values` has now, tag, limit and after."""
    return reader.rows(latest_query(sort, *_filters(terms)), time=before.key, id=before.id, **values, **words_of(terms))


def _filters(terms: index.Terms) -> tuple[int, bool | None, str | None, bool]:
    return len(terms.sequences), terms.by_title, terms.status, terms.tag is not None


def words_of(terms: index.Terms) -> dict[str, Any]:
    """Return the parameters of a search. Sequences have no characters that are special in a LIKE pattern."""
    sequences = {
        f"{name}{number}": f" {index.phrase(sequence, mark)}{'' if by_start else ' '}"
        for number, (sequence, by_start) in enumerate(terms.sequences)
        for name, mark in MARKS.items()
    }
    return sequences | {"label": f" {index.tag_label(terms.tag or '')} ", "first": FIRST_READ}


@cache
def newest_query(count: int, by_title: bool | None, status: str | None, by_tag: bool) -> Prepared:
    """Return the query of a page, with the parameters now, before, limit, and those of `words_of`."""
    key, order = Post.id, Post.id.desc()
    listed = (*_with_status(status), key < Param("before"))
    first = Post.select(key).where(*listed).order_by(order).limit(Param("first"))
    found = _found(first, count, by_title, status, by_tag)
    query = Post.select(key, Post.status, Post.document).where(found, *listed)
    return Prepared(bounded(query.order_by(order).limit(Param("limit"))))


@cache
def latest_query(sort: str, count: int, by_title: None, status: str | None, by_tag: bool) -> Prepared:
    """Return the query of a page by time, with now, time, id, after, limit, and the parameters of `words_of`."""
    time, key = getattr(Post, sort), Post.id
    order = time.desc(), key.desc()
    listed = Post.select(key, time).order_by(*order).limit(Param("first"))
    lists = [listed.where(Post.status == each, _earlier(time)) for each in ([status] if status else STATUSES)]
    merged = reduce(union_all, lists).order_by(SQL("2").desc(), SQL("1").desc()).limit(Param("first")).alias("merged")
    found = _found(Select([merged], [merged.c.id]), count, by_title, status, by_tag)
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


def _found(first: Select, count: int, by_title: bool | None, status: str | None, by_tag: bool) -> Node:
    """Return the condition that a post matches: one of `first` or, if these are too few, one that the index finds.

    The index returns all matches, in no order: for a word in half of the posts, half of the posts. For titles it is
    used at once, as few have all words. The ids are an array, or PostgreSQL could scan all posts.
    """
    is_published = SQL("published")  # Published posts have an index, and the others have one.
    found = [_matching(True, count, by_title, by_tag).where(each) for each in (is_published, ~is_published)]
    indexed = fn.ARRAY(found[status != "published"] if status else found[0] + found[1])
    if by_title:
        return Post.id == fn.ANY(indexed)
    listed = fn.ARRAY(first)
    among = _matching(False, count, by_title, by_tag).where(Search.c.post_id == fn.ANY(listed)).alias("among")
    ids = fn.COALESCE(fn.ARRAY_AGG(among.c.post_id), SQL("'{}'"))
    is_enough = (fn.COUNT(among.c.post_id) >= Param("limit")) | (fn.CARDINALITY(listed) < Param("first"))
    return Post.id == fn.ANY(fn.COALESCE(Select([among], [Case(None, [(is_enough, ids)])]), indexed))


def _matching(by_index: bool, count: int, by_title: bool | None, by_tag: bool) -> Select:
    """Return the query of the ids of posts that match."""
    has = partial(_has, by_index)
    in_title = [has("text", f"title{number}") for number in range(count)]
    anywhere = [has("text", f"text{number}") | has("labels", f"labels{number}") for number in range(count)]
    conditions = in_title if by_title else anywhere
    if by_title is False:  # CASE comes last; PostgreSQL would begin with this condition, as it is simpler.
        conditions = [*anywhere, Case(None, [(reduce(and_, anywhere), ~reduce(and_, in_title))])]
    if by_tag:
        conditions.append(has("labels", "label"))
    return Search.select(Search.c.post_id).where(*conditions)


def _has(by_index: bool, column: str, name: str) -> Node:
    """Return the condition that a column contains a sequence. LIKE uses the index, and is slower without it."""
    if by_index:
        return Expression(Search.c[column], "LIKE", fn.CONCAT("%", Param(name).cast("text"), "%"))
    return fn.STRPOS(Search.c[column], Param(name)) > 0
