"""The search: finding posts by their words.

A search among published posts reads no words of any other.
"""

from collections.abc import Hashable, Iterator
from contextlib import suppress
from functools import cache, reduce
from itertools import compress
from operator import add as union_all
from operator import and_
from typing import Any, NamedTuple

from peewee import SQL, Case, Expression, Node, Select, Table, Tuple, fn

from blogapi.posts import lists, publication
from blogapi.posts.documents import STATUSES
from blogapi.posts.lists import COLUMNS, Cursor, ListQuery, Page, bounded, cursor_of, id_of, page_of
from blogapi.search.index import START, label, settle
from blogapi.search.words import sequences
from blogapi.storage.database import Database
from blogapi.storage.engine import Param, Prepared, Reader
from blogapi.storage.errors import RETRY_SECONDS, Unavailable
from blogapi.storage.models import MAX_ID, Post

FIRST_READ = 200  # posts that PostgreSQL reads before the index
TITLE, TEXT = "title", "text"  # which of them has all words: the keys of a Cursor in the order of relevance

# No models: FTS5 hides its columns, and a copy of a database indexes all posts again.
Published, Others, Search = Table("search_published"), Table("search_others"), Table("search")


class Incomplete(Unavailable):
    """Too many posts are noted: until they are indexed, a search would find too little."""

    reason = "too many posts wait for the search index"


Sequences = list[tuple[tuple[str, ...], bool]]  # sequences of words, each with whether its last word is a prefix


class Asked(NamedTuple):
    """What a search asks for, as far as its query depends on it."""

    status: str | None
    by_tag: bool
    is_sequence: tuple[bool, ...]  # for each of its words or sequences of words
    by_title: bool | None = None  # whether the title alone has all of them, if that matters


def sequences_of(q: str) -> Sequences:
    """Return the different sequences of words that a search looks for in the index."""
    found = dict.fromkeys(sequences(q))
    return [
        ((START + sequence[0],), False) if by_start and len(sequence) == len(sequence[0]) == 1 else (sequence, by_start)
        for sequence, by_start in found
    ]


def find(database: Database, query: ListQuery, client: Hashable) -> Page:
    """Return a page as `page` does, of posts as they are now, in a thread unless it is quick. Raises Incomplete."""
    left = 0
    with suppress(Unavailable):  # What is indexed can be searched even if the database cannot be written.
        left = settle(database, query.status == "published")
    if left:
        raise Incomplete(f"{left} posts wait for the search index", RETRY_SECONDS)
    return page(database, query) if is_quick(query) else database.read_in_thread(client, page, query)


def is_quick(query: ListQuery) -> bool:
    """Return whether a search takes no longer than a few lists: for one word, in an order that the index has."""
    (sequence, by_start), *others = sequences_of(query.q)
    in_order = query.sort in ("created_at", "relevance") and query.tag is None and query.status in (None, "published")
    return in_order and len(sequence) == 1 and not by_start and not others


def page(reader: Reader, query: ListQuery) -> Page:
    """Return a page as `lists.page` does, of the posts with the words of `q`, as they are indexed.

    Sorted by relevance: first the posts whose title alone has all words, then the others, each newest first.
    """
    found = sequences_of(query.q)
    asked = Asked(query.status, query.tag is not None, tuple(len(sequence) > 1 for sequence, _ in found))
    values = {"now": reader.now, "tag": query.tag, "limit": query.limit + 1}
    values |= {"words": found, "after": query.published_after}
    if query.sort == "relevance":
        rows = _by_relevance(reader, asked, query.before or Cursor(TITLE, MAX_ID), values)
    else:
        before = Cursor("", query.before or MAX_ID) if query.sort == "created_at" else query.start
        rows = _rows(reader, asked, query.sort, before, values)
    return page_of(rows, query, values["now"], id_of if query.sort == "created_at" else cursor_of)


def _by_relevance(reader: Reader, asked: Asked, before: Cursor, values: dict[str, Any]) -> Iterator[tuple]:
    """Yield the rows of the posts whose title has all words, then those of the others."""
    if before.key == TITLE:
        for row in _rows(reader, asked._replace(by_title=True), "created_at", before, values):
            yield *row, TITLE
        before = Cursor(TEXT, MAX_ID)
    for row in _rows(reader, asked._replace(by_title=False), "created_at", before, values):
        yield *row, TEXT


def _rows(reader: Reader, asked: Asked, sort: str, before: Cursor, values: dict[str, Any]) -> Iterator[tuple]:
    """Return the rows of the posts that are found before a cursor, in an order.

    SQLite's index has the order of creation only: for any other, all posts are read in it until enough are found.
    """
    values = _bound(asked, values) | {"tag": None}  # A tag is among the words.
    if reader.dialect == "postgresql":
        return reader.rows(ordered_query(asked, sort), time=before.key, id=before.id, **values)
    if sort == "created_at":
        return reader.rows(newest_query(asked.status), before=before.id, **values)
    return lists.latest(reader, sort, asked.status, before, values, _matches(asked.status))


def _bound(asked: Asked, values: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a search for each engine. Words have no characters with a special meaning."""
    quoted = [(" ".join(sequence), by_start) for sequence, by_start in values["words"]]
    anywhere = " AND ".join(f'"{text}"{" *" if by_start else ""}' for text, by_start in quoted)
    match = f"{'title' if asked.by_title else '{title text}'} : ({anywhere})"
    if asked.by_title is False:
        match = f"({match}) NOT (title : ({anywhere}))"
    tag = label(values["tag"] or "")
    each = [(word, by_start and word == sequence[-1]) for sequence, by_start in values["words"] for word in sequence]
    return values | {
        "words": f'({match}) AND labels : "{tag}"' if asked.by_tag else match,
        "lexemes": " & ".join(f"'{word}'{':*' if by_start else ''}" for word, by_start in each),
        "label": f"'{tag}'",
        "label_word": f" {tag} ",
        "first": FIRST_READ,
        **{f"text{number}": f" {text}{'' if by_start else ' '}" for number, (text, by_start) in enumerate(quoted)},
    }


def _with_status(status: str | None) -> Iterator[Node]:
    """Yield the condition that a post has a status, if there is one. A post whose time has come is published."""
    if status == "published":
        yield (Post.status == status) | publication.is_due
    elif status:
        yield Post.status == status
    if status == "scheduled":
        yield Post.published_at > Param("now")


# In SQLite


@cache
def newest_query(status: str | None) -> Prepared:
    """Return SQLite's query of a page in the order of creation, with the parameters before and those of `_bound`."""
    newest_first = Post.id.desc()
    found = _matches(status, is_bounded=True).order_by(SQL("1").desc()).limit(Param("limit"))
    return Prepared(Post.select(Post.id, *COLUMNS).where(Post.id.in_(found)).order_by(newest_first))


@cache
def _matches(status: str | None, is_bounded: bool = False) -> Select:
    """Return the query of the ids of posts that match; if it is bounded, of those before one."""
    tables = [Published] if status == "published" else [Others] if status else [Published, Others]
    found = []
    for table in tables:
        key = table.c.rowid
        ids = table.select(key).where(Expression(table.c[table.__name__], "MATCH", Param("words")))
        if is_bounded:
            ids = ids.where(key < Param("before"))
        found.append(ids.join(Post, on=Post.id == key).where(*_with_status(status)))
    return reduce(union_all, found)


# In PostgreSQL


@cache
def ordered_query(asked: Asked, sort: str) -> Prepared:
    """Return PostgreSQL's query of a page, with the parameters id, for a time also time and after, and `_bound`'s."""
    times = [] if sort == "created_at" else [getattr(Post, sort)]
    order = [column.desc() for column in (*times, Post.id)]
    listed = Post.select(*times, Post.id).where(_earlier(*times)).order_by(*order).limit(Param("first"))
    by_status = [listed.where(condition) for condition in _statuses(asked.status)]
    merged = reduce(union_all, by_status).order_by(*(SQL(f"{number + 1}").desc() for number in range(len(order))))
    first = merged.limit(Param("first")).alias("rows")
    is_found = _is_found(asked, Select([first], [first.c.id]))
    is_earlier = _earlier(*(fn.NULLIF(time, "") for time in times))  # keeps it from an index: the ids find the posts
    query = Post.select(Post.id, Post.status, Post.document, *times)
    found = query.where(is_found, *_with_status(asked.status), is_earlier).order_by(*order).limit(Param("limit"))
    return Prepared(bounded(found, *(time.name for time in times)))


def _earlier(*times: Node) -> Node:
    """Return the condition that a post is before a cursor. A range of its time lets PostgreSQL use an index."""
    before = [Param("time") for _ in times]
    ranges = [time.between(Param("after"), Param("time")) for time in times]
    return reduce(and_, [*ranges, Tuple(*times, Post.id) < Tuple(*before, Param("id"))])


def _statuses(status: str | None) -> Iterator[Node]:
    """Yield a condition for each list of posts to merge: each has an index."""
    for each in [status] if status else STATUSES:
        yield Post.status == each
    if status == "published":
        yield publication.is_due


def _is_found(asked: Asked, first: Select) -> Node:
    """Return the condition that a post matches: one of `first` or, if these are too few, one that the index finds.

    The index returns all matches, in no order: for a word in half of the posts, half of the posts. It has no large
    texts. The ids are an array, or PostgreSQL could scan all posts.
    """
    column = Search.c.title if asked.by_title else Search.c.text
    texts = _has_texts(asked, column)
    lexemes = [_has_lexemes(column, "lexemes"), *compress(texts, asked.is_sequence)]  # It knows words, not their order.
    if asked.by_tag:
        texts.append(fn.STRPOS(Search.c.labels, Param("label_word")) > 0)
        lexemes.append(_has_lexemes(Search.c.labels, "label"))
    statuses = [asked.status == "published"] if asked.status else [True, False]
    parts = [SQL("published" if is_published else "NOT published") for is_published in statuses]  # Each has an index.
    sizes = (SQL("octet_length(text) <= 1000000"), *lexemes), (SQL("octet_length(text) > 1000000"), *texts)
    indexed = fn.ARRAY(reduce(union_all, [_matching(asked, part, *size) for part in parts for size in sizes]))
    listed = fn.ARRAY(first)
    among = _matching(asked, Search.c.post_id == fn.ANY(listed), *texts).alias("among")
    ids = fn.COALESCE(fn.ARRAY_AGG(among.c.post_id), SQL("'{}'"))
    is_enough = (fn.COUNT(among.c.post_id) >= Param("limit")) | (fn.CARDINALITY(listed) < Param("first"))
    return Post.id == fn.ANY(fn.COALESCE(Select([among], [Case(None, [(is_enough, ids)])]), indexed))


def _matching(asked: Asked, *conditions: Node) -> Select:
    """Return the query of the ids of posts under some conditions and, if asked, without all words in their titles."""
    if asked.by_title is False:  # CASE comes last; PostgreSQL would begin with this condition, as it is simpler.
        in_title = reduce(and_, _has_texts(asked, Search.c.title))
        conditions = *conditions, Case(None, [(reduce(and_, conditions), ~in_title)])
    return Search.select(Search.c.post_id).where(*conditions)


def _has_texts(asked: Asked, column: Node) -> list[Node]:
    return [fn.STRPOS(column, Param(f"text{number}")) > 0 for number in range(len(asked.is_sequence))]


def _has_lexemes(column: Node, name: str) -> Node:
    lexemes = fn.ARRAY_TO_TSVECTOR(fn.STRING_TO_ARRAY(fn.BTRIM(column), SQL("' '")))
    return Expression(lexemes, "@@", Param(name).cast("tsquery"))
