"""The search: finding posts by their words, in an index that follows the changes of posts.

A write only notes the post. A search indexes the noted posts first, and the background work does so each second. The
words of published posts are apart from those of all others: a search among published posts reads no others.
"""

import logging
import time
from collections.abc import Hashable, Iterator
from contextlib import suppress
from functools import cache, reduce
from operator import add as union_all
from operator import and_
from typing import Any, NamedTuple

from peewee import SQL, Case, Expression, Node, Select, Table, Tuple, fn

from blogapi.posts import documents, lists, publication
from blogapi.posts.fields import STATUSES
from blogapi.posts.lists import COLUMNS, Cursor, ListQuery, Page, bounded, page_of
from blogapi.search.words import STANDS_ALONE, parts, sequences
from blogapi.storage.database import Database
from blogapi.storage.engine import Param, Prepared, Reader, Transaction
from blogapi.storage.errors import Damaged, NeedsThread, Unavailable
from blogapi.storage.models import DOCUMENT, MAX_ID, Post
from blogapi.text import fold

FIELDS = ("title", "content", "excerpt", "tags", "status")  # that the index depends on
START = "§"  # before the first letter of a word: merging all words with that letter would take seconds
BETWEEN = "·"  # between two texts: no sequence of words crosses it
MAX_WORD = 500  # characters, as PostgreSQL indexes at most 2,046 bytes
INDEXED_POSTS, INDEXED_BYTES, INDEXED_SECONDS = 32, 64 * 1024, 0.005  # in one transaction, as others wait for it
PAUSE_SECONDS = 0.001  # between two transactions: a sleep of 0 would not let the loop poll its sockets
LARGE = 32 * 1024  # bytes of a post that is indexed in a thread
SETTLE_SECONDS = 1.0  # in which a search indexes what was noted
MERGED_PAGES = 16  # at a time, of SQLite's index: 5 ms
# Bytes of a file in which SQLite searches for plain words, and for beginnings or sequences, in some 20 ms at most
QUICK_WORDS = 3
QUICK_BYTES, QUICK_SEQUENCE_BYTES = 256 * 1024 * 1024, 4 * 1024 * 1024
SORTED_POSTS = 20_000  # If SQLite finds more, a scan of all posts soon finds the latest of them.
FIRST_READ = 200  # posts that PostgreSQL reads before the index
TITLE, TEXT = "title", "text"  # which of them has all words: the keys of a Cursor in the order of relevance

log = logging.getLogger(__name__)

# No models: FTS5 hides its columns, and a copy of a database indexes all posts again.
Published, Others, Search = Table("search_published"), Table("search_others"), Table("search")

# The index


def note(tx: Transaction, post_id: int, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Note that the words of a post changed; {} stands for no post. Fields that stay can be left out."""
    if any(old.get(name) != new.get(name) for name in FIELDS):
        tx.defer(NOTE, published="published" in (old.get("status"), new.get("status")), id=post_id)


NOTE = Prepared("INSERT INTO search_pending (published, post_id) VALUES (:published, :id) ON CONFLICT DO NOTHING")


def settle(database: Database, only_published: bool = False, seconds: float = SETTLE_SECONDS) -> int:
    """Index the noted posts, in short transactions, for some seconds; return how many are left."""
    until = time.monotonic() + seconds
    while database.row(PENDING, published=only_published, now=database.now, limit=1):
        if time.monotonic() > until:
            return database.row(COUNT_PENDING)[0]
        database.write(_index_some, only_published)
        if database.dialect == "sqlite":
            database.write(_merge)
        time.sleep(PAUSE_SECONDS)
    return 0


_is_indexed = {
    "sqlite": "SELECT 1 FROM search_published WHERE rowid = schedule.post_id",
    "postgresql": "SELECT 1 FROM search WHERE search.post_id = schedule.post_id AND published",
}
# A post whose time has come counts as published before it is.
PENDING = Prepared(
    **{
        dialect: f"""
        SELECT post_id FROM search_pending WHERE published >= :published UNION ALL
        SELECT post_id FROM schedule WHERE published_at <= :now AND NOT EXISTS ({query}) LIMIT :limit
        """
        for dialect, query in _is_indexed.items()
    }
)
COUNT_PENDING = Prepared("SELECT count(*) FROM search_pending")


def _index_some(tx: Transaction, only_published: bool) -> None:
    """Index a few posts. Raises NeedsThread if the first one is large."""
    until, size = time.monotonic() + INDEXED_SECONDS, 0
    noted = list(tx.rows(PENDING, published=only_published, now=tx.now, limit=INDEXED_POSTS))
    for number, (post_id,) in enumerate(noted):
        found = tx.row(STATE, id=post_id, now=tx.now)
        length = len(found[2] or b"") if found else 0
        size += length
        if number and (length > LARGE or size > INDEXED_BYTES or time.monotonic() > until):
            return
        if length > LARGE and not tx.may_be_slow:
            raise NeedsThread
        _index(tx, post_id, *(found or ()))


STATE = Prepared(Post.select(Post.status, publication.is_due, DOCUMENT).where(Post.id == Param("id")))


def _index(tx: Transaction, post_id: int, status: str = "", is_due: bool = False, document: bytes = b"") -> None:
    """Replace the words of a post in the index; a damaged one has none."""
    for statement in (*REMOVE[tx.dialect], FORGET):
        tx.defer(statement, id=post_id)
    if status:
        is_published = status == "published" or bool(is_due)
        title = text = labels = ""
        with suppress(Damaged):
            title, text, labels = indexed(documents.load(document or b""))
        add = ADD[tx.dialect][is_published]
        tx.defer(add, id=post_id, title=title, text=text, labels=labels, published=is_published)


FORGET = Prepared("DELETE FROM search_pending WHERE published IN (FALSE, TRUE) AND post_id = :id")
REMOVE = {
    "sqlite": [Prepared(f"DELETE FROM {table.__name__} WHERE rowid = :id") for table in (Published, Others)],
    "postgresql": [Prepared("DELETE FROM search WHERE post_id = :id")],
}
_add = "INSERT INTO {} (rowid, title, text, labels) VALUES (:id, :title, :text, :labels)"
# A space before and after each word
_texts = "' ' || :title || ' ', ' ' || :title || ' ' || :text || ' ', ' ' || :labels || ' '"
_add_padded = Prepared(f"INSERT INTO search VALUES (:id, :published, {_texts})")
ADD = {
    "sqlite": {True: Prepared(_add.format("search_published")), False: Prepared(_add.format("search_others"))},
    "postgresql": {True: _add_padded, False: _add_padded},
}


def _merge(tx: Transaction) -> None:
    """Let SQLite merge a few pages of its index. By itself it would merge too many at a time."""
    for statement in MERGE:
        tx.execute(statement)


MERGE = [
    Prepared(f"INSERT INTO {name} ({name}, rank) VALUES ('merge', {MERGED_PAGES})")
    for name in ("search_published", "search_others")
]


def indexed(post: dict[str, Any]) -> tuple[str, str, str]:
    """Return the words of the title of a post, those of its other texts and tags, and its labels, one for each tag."""
    texts = [post["content"], post.get("excerpt", ""), *post["tags"]]
    return _words(post["title"]), _words(*texts), " ".join(map(_label, post["tags"]))


def _words(*texts: str) -> str:
    """Return the words of some texts, and the first letters by which they are found."""
    found: list[str] = []
    letters: set[str] = set()
    for text in texts:
        for part in filter(None, parts(text)):
            found.append(" ".join(part if len(max(part, key=len)) <= MAX_WORD else [word[:MAX_WORD] for word in part]))
            letters.update(word[0] for word in part)
        found.append(BETWEEN)
    # A character that is a word by itself begins no other.
    return " ".join([*found, *(START + each for each in letters if each.isascii() or not STANDS_ALONE.match(each))])


def _label(tag: str) -> str:
    return fold(tag).encode().hex()


# The search


class Asked(NamedTuple):
    """What a search asks for, as far as its query depends on it."""

    status: str | None
    by_tag: bool
    is_sequence: tuple[bool, ...]  # for each of its words or sequences of words
    by_title: bool | None = None  # whether the title alone has all of them, if that matters


Sequences = list[tuple[tuple[str, ...], bool]]  # sequences of words, each with whether its last word is a prefix


def sequences_of(q: str) -> Sequences:
    """Return the different sequences of words that a search looks for in the index."""
    found = dict.fromkeys(sequences(q))
    return [
        ((START + sequence[0],), False) if by_start and len(sequence) == len(sequence[0]) == 1 else (sequence, by_start)
        for sequence, by_start in found
    ]


def find(database: Database, query: ListQuery, client: Hashable) -> Page:
    """Return a page as `page` does, of posts as they are now. A search that may take long runs in a thread."""
    with suppress(Unavailable):  # What is indexed can be searched even if the database cannot be written.
        settle(database, query.status == "published")
    if is_quick(database, query):
        return page(database, query)
    return database.read_in_thread(client, page, query)


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
    elif query.sort == "created_at":
        rows = _newest(reader, asked, query.before or MAX_ID, values)
    else:
        rows = _latest(reader, asked, query.sort, query.start, values)
    return page_of(rows, query, values["now"])


def is_quick(reader: Reader, query: ListQuery) -> bool:
    """Return whether a search takes no longer than a few lists, and needs no thread."""
    found = sequences_of(query.q)
    count = sum(len(sequence) for sequence, _ in found)
    in_order = query.sort in ("created_at", "relevance") and query.tag is None and query.status in (None, "published")
    is_plain = in_order and count == len(found) and not any(by_start for _, by_start in found)
    if is_plain and count == 1:
        return True
    if reader.dialect == "postgresql" or count > QUICK_WORDS:
        return False
    return reader.row(SIZE)[0] <= (QUICK_BYTES if is_plain else QUICK_SEQUENCE_BYTES)


SIZE = Prepared("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")


def _newest(reader: Reader, asked: Asked, before: int, values: dict[str, Any]) -> Iterator[tuple]:
    return reader.rows(newest_query(asked), before=before, **_bound(asked, values))


def _by_relevance(reader: Reader, asked: Asked, before: Cursor, values: dict[str, Any]) -> Iterator[tuple]:
    """Yield the rows of the posts whose title has all words, then those of the others."""
    if before.key == TITLE:
        for row in _newest(reader, asked._replace(by_title=True), before.id, values):
            yield *row, TITLE
        before = Cursor(TEXT, MAX_ID)
    for row in _newest(reader, asked._replace(by_title=False), before.id, values):
        yield *row, TEXT


def _latest(reader: Reader, asked: Asked, sort: str, before: Cursor, values: dict[str, Any]) -> Iterator[tuple]:
    """Return the rows of the latest posts that are found.

    SQLite's index does not have this order: the matches are sorted or, if there are many, found by a scan of all posts.
    """
    values = _bound(asked, values)
    if reader.dialect == "sqlite":
        matches = _matches(asked.status)
        if len(list(reader.rows(matches_query(asked.status), **values | {"limit": SORTED_POSTS}))) == SORTED_POSTS:
            return lists.latest(reader, sort, asked.status, before, values, matches)
    return reader.rows(latest_query(sort, asked), time=before.key, id=before.id, **values)


def _bound(asked: Asked, values: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a search for each engine. Words have no characters with a special meaning."""
    quoted = [(" ".join(sequence), by_start) for sequence, by_start in values["words"]]
    anywhere = " AND ".join(f'"{text}"{" *" if by_start else ""}' for text, by_start in quoted)
    match = f"{'title' if asked.by_title else '{title text}'} : ({anywhere})"
    if asked.by_title is False:
        match = f"({match}) NOT (title : ({anywhere}))"
    label = _label(values["tag"] or "")
    each = [(word, by_start and word == sequence[-1]) for sequence, by_start in values["words"] for word in sequence]
    return values | {
        "words": f'({match}) AND labels : "{label}"' if asked.by_tag else match,
        "lexemes": " & ".join(f"'{word}'{':*' if by_start else ''}" for word, by_start in each),
        "label": f"'{label}'",
        "label_word": f" {label} ",
        "first": FIRST_READ,
        **{f"text{number}": f" {text}{'' if by_start else ' '}" for number, (text, by_start) in enumerate(quoted)},
    }


@cache
def newest_query(asked: Asked) -> Prepared:
    """Return the query of a page in the order of creation, with the parameters before and those of `_bound`."""
    key, order = Post.id, Post.id.desc()
    earlier = key < Param("before")
    found = _matches(asked.status, is_bounded=True).order_by(SQL("1").desc()).limit(Param("limit"))
    sqlite = Post.select(key, *COLUMNS).where(key.in_(found)).order_by(order)
    first = Post.select(key).where(*_with_status(asked.status), earlier).order_by(order).limit(Param("first"))
    query = Post.select(key, Post.status, Post.document).where(_is_found(asked, first), *_with_status(asked.status))
    return Prepared(sqlite=sqlite, postgresql=bounded(query.where(earlier).order_by(order).limit(Param("limit"))))


@cache
def latest_query(sort: str, asked: Asked) -> Prepared:
    """Return the query of a page by time, with the parameters time, id, after and those of `_bound`."""
    time, key = getattr(Post, sort), Post.id
    order = time.desc(), key.desc()
    earlier = (time < Param("time")) | ((time == Param("time")) & (key < Param("id")))
    ids = Post.select(key).where(key.in_(_matches(asked.status)), earlier, time >= Param("after"))
    found = ids.order_by(*order).limit(Param("limit"))
    sqlite = Post.select(key, *COLUMNS, time).where(key.in_(found)).order_by(*order)
    listed = Post.select(key, time).where(_earlier(time)).order_by(*order).limit(Param("first"))
    by_status = [listed.where(condition) for condition in _statuses(asked.status)]
    merged = reduce(union_all, by_status).order_by(SQL("2").desc(), SQL("1").desc()).limit(Param("first")).alias("rows")
    is_found = _is_found(asked, Select([merged], [merged.c.id]))
    is_earlier = _earlier(fn.NULLIF(time, ""))  # keeps PostgreSQL from an index: the ids find the posts
    query = Post.select(key, Post.status, Post.document, time).where(is_found, *_with_status(asked.status), is_earlier)
    return Prepared(sqlite=sqlite, postgresql=bounded(query.order_by(*order).limit(Param("limit")), sort))


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
def matches_query(status: str | None) -> Prepared:
    """Return the query of some ids of matching posts."""
    return Prepared(_matches(status).limit(Param("limit")))


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


def _earlier(time: Node) -> Node:
    """Return the condition that a post is before a cursor. Its first part lets PostgreSQL use an index."""
    return time.between(Param("after"), Param("time")) & (Tuple(time, Post.id) < Tuple(Param("time"), Param("id")))


def _statuses(status: str | None) -> Iterator[Node]:
    """Yield a condition for each list of posts to merge: each has an index."""
    for each in [status] if status else STATUSES:
        yield Post.status == each
    if status == "published":
        yield publication.is_due


def _is_found(asked: Asked, first: Select) -> Node:
    """Return the condition that a post matches: one of `first` or, if these are too few, one that the index finds.

    The index returns all matches, in no order: for a word in half of the posts, half of the posts. For titles it is
    used at once, as few have all words. The ids are an array, or PostgreSQL could scan all posts.
    """
    published = SQL("published")  # Published posts have an index, and the others have one.
    each = [published] if asked.status == "published" else [~published] if asked.status else [published, ~published]
    queries = [_matching(asked, *by_index).where(part) for part in each for by_index in ((True, False), (False, True))]
    indexed = fn.ARRAY(reduce(union_all, queries))
    if asked.by_title:
        return Post.id == fn.ANY(indexed)
    listed = fn.ARRAY(first)
    among = _matching(asked).where(Search.c.post_id == fn.ANY(listed)).alias("among")
    ids = fn.COALESCE(fn.ARRAY_AGG(among.c.post_id), SQL("'{}'"))
    is_enough = (fn.COUNT(among.c.post_id) >= Param("limit")) | (fn.CARDINALITY(listed) < Param("first"))
    return Post.id == fn.ANY(fn.COALESCE(Select([among], [Case(None, [(is_enough, ids)])]), indexed))


def _matching(asked: Asked, by_index: bool = False, is_large: bool = False) -> Select:
    """Return the query of the ids of posts that match. The index knows words, not their order, and no large texts."""
    column = Search.c.title if asked.by_title else Search.c.text

    def has(column: Node, number: int) -> Node:
        return fn.STRPOS(column, Param(f"text{number}")) > 0

    numbers = range(len(asked.is_sequence))
    conditions = [has(column, number) for number in numbers if asked.is_sequence[number] or not by_index]
    if by_index:
        conditions = [_has_lexemes(column, "lexemes"), SQL("octet_length(text) <= 1000000"), *conditions]
    if is_large:
        conditions.append(SQL("octet_length(text) > 1000000"))
    if asked.by_tag:
        by_label = _has_lexemes(Search.c.labels, "label"), fn.STRPOS(Search.c.labels, Param("label_word")) > 0
        conditions.append(by_label[not by_index])
    if asked.by_title is False:  # CASE comes last; PostgreSQL would begin with this condition, as it is simpler.
        in_title = reduce(and_, [has(Search.c.title, number) for number in numbers])
        conditions.append(Case(None, [(reduce(and_, conditions), ~in_title)]))
    return Search.select(Search.c.post_id).where(*conditions)


def _has_lexemes(column: Node, name: str) -> Node:
    lexemes = fn.ARRAY_TO_TSVECTOR(fn.STRING_TO_ARRAY(fn.BTRIM(column), SQL("' '")))
    return Expression(lexemes, "@@", Param(name).cast("tsquery"))
