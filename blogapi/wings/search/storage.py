"""The search: finding posts by their words."""

from collections.abc import Hashable, Iterator
from functools import cache
from typing import Any, NamedTuple

from peewee import SQL, Select

from blogapi.documents import STATUSES, dump
from blogapi.paging import Cursor, Page
from blogapi.posts.lists import ListQuery, bounded, cursor_of, id_of, page_of
from blogapi.storage.database import Database
from blogapi.storage.engine import Prepared, Reader
from blogapi.storage.errors import RETRY_SECONDS
from blogapi.storage.models import MAX_ID
from blogapi.wings.search import words
from blogapi.wings.search.index import TABLES, Incomplete, index_pending

FIRST_READ = 200  # posts that are read in order before the index
TITLE, TEXT = "title", "text"  # where all the words were found: the key of a Cursor in the order of relevance
UNION = " UNION ALL "


def find(database: Database, query: ListQuery, client: Hashable) -> Page[Any, int | Cursor[int]]:
    """Index pending posts; return a page as `page` does, in a thread unless the search is quick. Raises Incomplete."""
    if left := index_pending(database, query):
        raise Incomplete(f"{left} posts wait for the search index", RETRY_SECONDS)
    return page(database, query) if is_quick(query) else database.read_in_thread(client, page, query)


def is_quick(query: ListQuery) -> bool:
    """Return whether a search is cheap enough to run inline: for one word, in an order that the index has."""
    (text, by_start), *others = words.of_search(query.q)
    in_order = query.sort == "created_at" and query.tag is None and query.status in (None, "published")
    return in_order and " " not in text and not by_start and not others


def page(reader: Reader, query: ListQuery) -> Page[Any, int | Cursor[int]]:
    """Return a page as `lists.page` does, of the posts with the words of `q`, as they are indexed.

    Sorted by relevance: first the posts whose title alone has all words, then the others, each newest first.
    """
    now = reader.now
    if query.sort == "created_at":
        return page_of(_rows(reader, query, now, Cursor("", query.before_id)), query, now, id_of)
    rows = _by_relevance(reader, query, now) if query.sort == "relevance" else _rows(reader, query, now, query.start)
    return page_of(rows, query, now, cursor_of)


def _by_relevance(reader: Reader, query: ListQuery, now: str) -> Iterator[tuple]:
    """Yield the rows of the posts whose title has all words, then those of the others."""
    before = query.before if isinstance(query.before, Cursor) else Cursor(TITLE, MAX_ID)
    if before.key == TITLE:
        yield from _rows(reader, query, now, before, TITLE)
        before = Cursor(TEXT, MAX_ID)
    yield from _rows(reader, query, now, before, TEXT)


def _rows(reader: Reader, query: ListQuery, now: str, before: Cursor[int], part: str = "") -> Iterator[tuple]:
    """Return the rows of the matching posts before a cursor; by relevance, only those in one part of the order."""
    values = _sqlite_words(query, part) if reader.dialect == "sqlite" else _postgresql_words(query)
    values |= {"now": now, "key": before.key, "id": before.id, "after": query.published_after}
    rows = rows_query(query.sort, query.status, part, query.tag is not None)
    return reader.rows(rows, limit=query.limit + 1, **values)


class Order(NamedTuple):
    """An order of posts, in SQL."""

    key: str  # of a Cursor
    newest_first: str
    is_before: str  # whether a post is before the cursor
    is_by_time: bool


@cache
def rows_query(sort: str, status: str | None, part: str, by_tag: bool) -> Prepared:
    """Return the query of a page, whose parameters are limit, now, key, id and after, and those of the words."""
    if sort in ("published_at", "updated_at"):
        # PostgreSQL's index needs a range.
        is_before = f"({sort}, id) < (:key, :id) AND {sort} >= :after AND {sort} <= :key"
        order = Order(sort, f"{sort} DESC, id DESC", is_before, True)
    else:
        order = Order(f"'{part}'", "id DESC", "id < :id", False)
    found = Select([SQL(f"({_postgresql_query(order, status, part, by_tag)}) AS found")], [SQL("*")])
    return Prepared(sqlite=_sqlite_query(order, status), postgresql=bounded(found, "key"))


DUE = "SELECT post_id FROM schedule WHERE schedule.published_at <= :now"


def _lists(status: str | None, is_due: str) -> list[str]:
    """Return conditions for posts with a status, each covered by an index; a due post counts as published."""
    if status == "published":
        return ["status = 'published'", is_due]
    if status == "scheduled":
        return ["status = 'scheduled' AND published_at > :now"]
    return [f"status = '{listed}'" for listed in ([status] if status else STATUSES)]


def _indexes(status: str | None) -> list[bool]:
    """Return whose words can match: those of published posts, those of others, or both."""
    return [True, False] if status is None else [status == "published"]


# In SQLite


# Like MATCH, but for a single post: MATCH would read on until it finds another one.
HAS_ALL = """
    instr(' ' || labels || ' ', :label) AND
    NOT EXISTS (SELECT 1 FROM json_each(:texts) WHERE NOT instr(' ' || title || ' ' || text || ' ', value))
"""


def _sqlite_words(query: ListQuery, part: str) -> dict[str, str]:
    """Return the parameter for the words of a search. They have no characters with a special meaning."""
    everywhere = " AND ".join(f'"{text}"{" *" if by_start else ""}' for text, by_start in words.of_search(query.q))
    match = f"{TITLE if part == TITLE else '{title text}'} : ({everywhere})"
    if part == TEXT:
        match = f"({match}) NOT (title : ({everywhere}))"
    label = " "
    if query.tag is not None:
        label = f" {words.label(query.tag)} "
        match = f'({match}) AND labels : "{label.strip()}"'
    return {"match": match, "label": label, "texts": dump(_texts(query))}


def _texts(query: ListQuery) -> list[str]:
    """Return the texts that a post's words, with spaces around them, contain if a search finds it."""
    return [f" {text}" if by_start else f" {text} " for text, by_start in words.of_search(query.q)]


def _sqlite_query(order: Order, status: str | None) -> str:
    """Return the query for the first posts that match. It finds their ids first: SQLite would sort whole documents.

    The word index is in the order of creation. When sorting by time, all matches are read only if too few of the first
    posts match.
    """
    lists, tables = _lists(status, f"id IN ({DUE})"), [TABLES[published] for published in _indexes(status)]
    few = "(SELECT 1 WHERE (SELECT count(*) FROM among_first) < :limit) CROSS JOIN" if order.is_by_time else ""
    ids = [
        f"""
        SELECT id, {order.key} FROM {few} (SELECT rowid AS id FROM {table} WHERE {table} MATCH :match)
        CROSS JOIN post USING (id)  -- which reads the words first
        WHERE ({" OR ".join(lists)}) AND {order.is_before}
        """
        for table in tables
    ]
    found = f"SELECT id FROM ({UNION.join(ids)} ORDER BY {order.newest_first} LIMIT :limit)"
    matches = " OR ".join(f"EXISTS (SELECT 1 FROM {table} WHERE rowid = id AND {HAS_ALL})" for table in tables)
    first = f"""
    WITH first AS MATERIALIZED ({_first_posts(order, lists)}),
    among_first AS MATERIALIZED (SELECT id FROM first WHERE {matches} LIMIT :limit)
    """
    return f"""
    {first if order.is_by_time else ""}
    SELECT id, status, CAST(document AS BLOB), {order.key} FROM post
    WHERE id IN ({f"SELECT id FROM among_first {UNION}" if order.is_by_time else ""} {found})
    ORDER BY {order.newest_first} LIMIT :limit
    """


# In PostgreSQL


def _postgresql_words(query: ListQuery) -> dict[str, Any]:
    """Return the parameters for the words of a search."""
    texts, found = _texts(query), words.of_search(query.q)
    lexemes = [f"'{text}'{':*' if by_start else ''}".replace(" ", "' & '") for text, by_start in found]
    return {
        "text": texts[0],
        "others": [f"%{text}%" for text in texts[1:]],
        "sequences": [f"%{text}%" for text in texts if " " in text.strip()],
        "lexemes": " & ".join(lexemes),
        "label": words.label(query.tag or ""),
    }


HAS_TEXTS = "strpos({0}, :text) > 0 AND {0} LIKE ALL (:others::text[])"  # strpos takes less time than LIKE.
LEXEMES = "array_to_tsvector(string_to_array({}, ' '))"  # which are indexed


def _postgresql_query(order: Order, status: str | None, part: str, by_tag: bool) -> str:
    """Return the query for the first posts that match.

    The index returns all matches, unsorted: for a common word, half of all posts. So it is read only if too few of the
    first posts match.
    """
    lists = _lists(status, f"id = ANY (ARRAY({DUE}))")
    has_texts, has_lexemes = _conditions(part, by_tag)
    of_part = f"SELECT post_id FROM search WHERE {has_lexemes} AND published = "
    indexed = [f"{of_part}{published}" for published in _indexes(status)]
    return f"""
    WITH first AS ({_first_posts(order, lists)}),
    among_first AS (SELECT post_id FROM search WHERE post_id = ANY (ARRAY(SELECT id FROM first)) AND {has_texts})
    SELECT id, status, document, {order.key} AS key FROM post
    WHERE (({" OR ".join(lists)}) AND {order.is_before}) IS TRUE  -- which no index has: the ids find the posts
    AND id = ANY (ARRAY(
        SELECT post_id FROM among_first UNION ALL
        SELECT post_id FROM ({UNION.join(indexed)}) AS indexed
        WHERE (SELECT count(*) FROM among_first) < :limit AND (SELECT count(*) FROM first) = {FIRST_READ}
    )) ORDER BY {order.newest_first} LIMIT :limit
    """


def _first_posts(order: Order, lists: list[str]) -> str:
    """Return the query for the first posts in the order."""
    first = f"ORDER BY {order.newest_first} LIMIT {FIRST_READ}"
    each = [
        f"SELECT * FROM (SELECT id, {order.key} FROM post WHERE {each} AND {order.is_before} {first}) AS listed"
        for each in lists
    ]
    return f"SELECT id FROM ({UNION.join(each)}) AS post {first}"


def _conditions(part: str, by_tag: bool) -> tuple[str, str]:
    """Return two conditions for a match: one on the texts, and one on the index, which ignores word order."""
    column, indexed = (TITLE, f"btrim({TITLE})") if part == TITLE else (TEXT, "words")
    has_texts = HAS_TEXTS.format(column)
    has_lexemes = f"{LEXEMES.format(indexed)} @@ :lexemes::tsquery AND {column} LIKE ALL (:sequences::text[])"
    if by_tag:
        has_texts += " AND labels LIKE '% ' || :label || ' %'"
        has_lexemes += f" AND {LEXEMES.format('btrim(labels)')} @@ :label::text::tsquery"
    without_title = f" AND NOT ({HAS_TEXTS.format(TITLE)})" if part == TEXT else ""
    return has_texts + without_title, has_lexemes + without_title
