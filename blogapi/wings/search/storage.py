"""The search: finding posts by their words."""

from collections.abc import Hashable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

from peewee import SQL, Select

from blogapi.documents import STATUSES, dump
from blogapi.paging import Cursor, ListQuery, Page, bounded, cursor_of, id_of, page_of
from blogapi.storage.database import Database
from blogapi.storage.engine import Compiled, Reader
from blogapi.storage.errors import Unavailable
from blogapi.storage.models import MAX_ID
from blogapi.wings.search import words
from blogapi.wings.search.index import rebuild_position

FIRST_READ = 200  # posts read in order before the index is used
QUICK_READ = 500  # a quick search for published posts looks at this many posts with the word, whatever their status
REBUILD_SECONDS = 5  # clients are asked to retry after this time
TITLE, TEXT = "title", "text"  # where all the words were found: the key of a Cursor in the order of relevance
NO_LIMIT = -1  # in SQLite
UNION = " UNION ALL "


class Rebuilding(Unavailable):
    """Old posts are not indexed again yet, so the search would miss them."""

    reason = "the search index is being built again, and the search would miss old posts"


def find(database: Database, query: ListQuery, client: Hashable) -> Page[Any, int | Cursor[int]]:
    """Return a page as `page` does, in a thread unless the search is quick. Raises Rebuilding."""
    if is_quick(query):
        with suppress(Rebuilding):  # A full search may find enough.
            posts = page(database, query, QUICK_READ)
            if posts.next is not None or query.status is None or not _has_more(database, query):
                return posts
    return database.read_in_thread(client, page, query)


def is_quick(query: ListQuery) -> bool:
    """Return whether a search is cheap enough to run inline: for one word, in an order that the index has."""
    (text, is_prefix), *others = words.of_search(query.q)
    in_order = query.sort == "created_at" and query.tag is None and query.status in (None, "published")
    return in_order and " " not in text and not is_prefix and not others


def _has_more(reader: Reader, query: ListQuery) -> bool:
    """Return whether more than QUICK_READ posts have a word, so that a quick search may have missed some."""
    values = _sqlite_words(query, "") | {"id": query.before_id, "max_read": QUICK_READ}
    return reader.dialect == "sqlite" and reader.row(AFTER_QUICK_READ, **values) is not None


def page(reader: Reader, query: ListQuery, max_read: int = NO_LIMIT) -> Page[Any, int | Cursor[int]]:
    """Return a page as `lists.page` does, of the posts with the words of `q`. Raises Rebuilding.

    By relevance, posts with all words in their title come first, then the others; both newest first. On SQLite,
    at most `max_read` posts with the words are looked at in the order of creation.
    """
    below = rebuild_position(reader)
    if query.sort == "created_at":
        rows = _rows(reader, query, Cursor("", query.before_id), max_read=max_read)
        return page_of(_indexed(rows, query, below) if below else rows, query, id_of)
    if below:
        raise Rebuilding("it is not complete", REBUILD_SECONDS)
    rows = _by_relevance(reader, query) if query.sort == "relevance" else _rows(reader, query, query.start)
    return page_of(rows, query, cursor_of)


def _indexed(rows: Iterable[tuple], query: ListQuery, below: int) -> Iterator[tuple]:
    """Yield the rows, newest first, down to the first post that may not be indexed.

    Raises Rebuilding if the page has room for more.
    """
    count = 0
    for row in rows:
        if id_of(row) < below:
            break
        count += 1
        yield row
    if count <= query.limit:
        raise Rebuilding("it is not complete", REBUILD_SECONDS)


def _by_relevance(reader: Reader, query: ListQuery) -> Iterator[tuple]:
    """Yield the rows of posts with all words in their title, then the others."""
    before = query.before if isinstance(query.before, Cursor) else Cursor(TITLE, MAX_ID)
    if before.key == TITLE:
        yield from _rows(reader, query, before, TITLE)
        before = Cursor(TEXT, MAX_ID)
    yield from _rows(reader, query, before, TEXT)


def _rows(
    reader: Reader, query: ListQuery, before: Cursor[int], part: str = "", max_read: int = NO_LIMIT
) -> Iterator[tuple]:
    """Return the rows of the matching posts before a cursor; by relevance, only those in one part of the order."""
    values = _sqlite_words(query, part) if reader.dialect == "sqlite" else _postgresql_words(query)
    values |= {"key": before.key, "id": before.id, "after": query.published_after, "max_read": max_read}
    rows = rows_query(query.sort, query.status, part, query.tag is not None)
    return reader.rows(rows, limit=query.limit + 1, **values)


class Order(NamedTuple):
    """An order of posts, in SQL."""

    key: str  # the key of a Cursor in this order
    newest_first: str
    is_before: str  # whether a post is before the cursor
    is_by_time: bool


@cache
def rows_query(sort: str, status: str | None, part: str, by_tag: bool) -> Compiled:
    """Return the query of a page, with the parameters limit, key, id, after, max_read, and those of the words."""
    if sort in ("published_at", "updated_at"):
        # PostgreSQL's index needs a range.
        is_before = f"({sort}, id) < (:key, :id) AND {sort} >= :after AND {sort} <= :key"
        order = Order(sort, f"{sort} DESC, id DESC", is_before, True)
    else:
        order = Order(f"'{part}'", "id DESC", "id < :id", False)
    rows = Select([SQL(f"({_postgresql_query(order, status, part, by_tag)}) AS found")], [SQL("*")])
    return Compiled(sqlite=_sqlite_query(order, status), postgresql=bounded(rows, "key"))


def _lists(status: str | None) -> list[str]:
    """Return conditions for posts with a status, each covered by an index."""
    return [f"status = '{listed}'" for listed in ([status] if status else STATUSES)]


# In SQLite


def _sqlite_words(query: ListQuery, part: str) -> dict[str, Any]:
    """Return the parameters for the words of a search. The words contain no characters with a special meaning."""
    phrases = words.of_search(query.q)
    everywhere = " AND ".join(f'"{text}"{" *" if is_prefix else ""}' for text, is_prefix in phrases)
    in_title = f"title : ({everywhere})"
    match = {TITLE: in_title, TEXT: f"({everywhere}) NOT ({in_title})"}.get(part, everywhere)
    tag = [] if query.tag is None else [words.tag_word(query.tag)]
    return {
        "match": " AND ".join([f"({match})", *(f'"{word}"' for word in tag)]),
        "texts": dump([_spaced(*phrase) for phrase in phrases] + [_spaced(word, False) for word in tag]),
    }


# Checks a single post, where MATCH would go on to the next one that matches.
HAS_ALL = """NOT EXISTS (
    SELECT 1 FROM json_each(:texts) AS sought WHERE NOT instr(' ' || title || ' ' || text || ' ', sought.value)
)"""
MATCHES = "SELECT rowid AS id FROM search WHERE search MATCH :match"
MATCHES_BEFORE = f"{MATCHES} AND rowid < :id ORDER BY rowid DESC LIMIT"
AFTER_QUICK_READ = Compiled(f"{MATCHES_BEFORE} 1 OFFSET :max_read")


def _sqlite_query(order: Order, status: str | None) -> str:
    """Return the query for the first posts that match. It finds ids first: SQLite would sort whole documents."""
    lists = _lists(status)
    ids = f"""
        SELECT id FROM ({MATCHES_BEFORE} :max_read) AS matches CROSS JOIN post USING (id)  -- in their order
        WHERE ({" OR ".join(lists)}) LIMIT :limit
    """
    return f"""
    SELECT id, CAST(document AS BLOB), {order.key} FROM post
    WHERE id IN ({_sqlite_by_time(order, lists) if order.is_by_time else ids})
    ORDER BY {order.newest_first} LIMIT :limit
    """


def _sqlite_by_time(order: Order, lists: list[str]) -> str:
    """Return the query for the ids of the first posts that match, in an order by time.

    The word index is in the order of creation, so all matches are read, but only if too few of the first posts match.
    """
    return f"""
        WITH first AS MATERIALIZED ({_first_posts(order, lists)}),
        among_first AS MATERIALIZED (
            SELECT id FROM first WHERE EXISTS (SELECT 1 FROM search WHERE rowid = id AND {HAS_ALL}) LIMIT :limit
        )
        SELECT id FROM among_first {UNION} SELECT id FROM (
            SELECT id FROM (SELECT 1 WHERE (SELECT count(*) FROM among_first) < :limit)
            CROSS JOIN ({MATCHES}) CROSS JOIN post USING (id)  -- which reads the words first
            WHERE ({" OR ".join(lists)}) AND {order.is_before} ORDER BY {order.newest_first} LIMIT :limit
        )
    """


# In PostgreSQL


def _postgresql_words(query: ListQuery) -> dict[str, Any]:
    """Return the parameters for the words of a search."""
    phrases = words.of_search(query.q)
    texts = [_spaced(*phrase) for phrase in phrases]
    patterns = [f"%{text}%" for text in texts]
    lexemes = [f"'{text}'{':*' if is_prefix else ''}".replace(" ", "' & '") for text, is_prefix in phrases]
    tag = words.tag_word(query.tag or "")
    return {
        "text": texts[0],
        "others": patterns[1:],
        "texts": patterns,
        "phrases": [pattern for pattern, (text, _) in zip(patterns, phrases, strict=True) if " " in text],
        "lexemes": " & ".join(lexemes),
        "tag": f" {tag} ",
        "tag_lexeme": f"'{tag}'",
    }


HAS_TEXTS = "strpos({0}, :text) > 0 AND {0} LIKE ALL (:others::text[])"  # strpos takes less time than LIKE.
LEXEMES = "array_to_tsvector(string_to_array({}, ' '))"  # the indexed expression


def _postgresql_query(order: Order, status: str | None, part: str, by_tag: bool) -> str:
    """Return the query for the first posts that match.

    The index returns all matches, unsorted: for a common word, half of all posts. So it is read only if too few of the
    first posts match.
    """
    lists = _lists(status)
    has_texts, has_lexemes = _conditions(part, by_tag)
    return f"""
    WITH first AS ({_first_posts(order, lists)}),
    among_first AS (SELECT post_id FROM search WHERE post_id = ANY (ARRAY(SELECT id FROM first)) AND {has_texts})
    SELECT id, document, {order.key} AS key FROM post
    WHERE (({" OR ".join(lists)}) AND {order.is_before}) IS TRUE  -- which no index has: the ids find the posts
    AND id = ANY (ARRAY(
        SELECT post_id FROM among_first UNION ALL
        SELECT post_id FROM search WHERE {has_lexemes}
        AND (SELECT count(*) FROM among_first) < :limit AND (SELECT count(*) FROM first) = {FIRST_READ}
    )) ORDER BY {order.newest_first} LIMIT :limit
    """


def _first_posts(order: Order, lists: list[str]) -> str:
    """Return the query for the first posts in the order."""
    first = f"ORDER BY {order.newest_first} LIMIT {FIRST_READ}"
    posts = [
        f"SELECT * FROM (SELECT id, {order.key} FROM post WHERE {condition} AND {order.is_before} {first}) AS listed"
        for condition in lists
    ]
    return f"SELECT id FROM ({UNION.join(posts)}) AS post {first}"


def _conditions(part: str, by_tag: bool) -> tuple[str, str]:
    """Return two conditions for a match: one on the texts, and one on the index, which ignores the order of words."""
    column, indexed = (TITLE, f"btrim({TITLE})") if part == TITLE else (TEXT, "words")
    has_texts = HAS_TEXTS.format(column)
    has_lexemes = f"{LEXEMES.format(indexed)} @@ :lexemes::tsquery AND {column} LIKE ALL (:phrases::text[])"
    if by_tag:
        has_texts += " AND strpos(text, :tag) > 0"
        has_lexemes += f" AND {LEXEMES.format('words')} @@ :tag_lexeme::tsquery"
    not_in_title = f" AND NOT {TITLE} LIKE ALL (:texts::text[])" if part == TEXT else ""
    return has_texts + not_in_title, has_lexemes + not_in_title


def _spaced(text: str, is_prefix: bool) -> str:
    """Return the text that words with spaces around them contain if a search for a phrase finds them."""
    return f" {text}" if is_prefix else f" {text} "
