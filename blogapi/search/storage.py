"""Find posts by their words."""

from collections.abc import Hashable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any

from peewee import SQL, Select

from blogapi.documents import STATUSES, dump
from blogapi.paging import Cursor, ListQuery, Page, bounded, cursor_of, id_of, page_of
from blogapi.search import words
from blogapi.search.index import rebuild_position
from blogapi.storage.database import Database
from blogapi.storage.engine import Compiled, Reader
from blogapi.storage.errors import Unavailable
from blogapi.storage.models import MAX_ID

FIRST_READ = 200  # a search checks this many posts in the list's order before it reads all matches
QUICK_READ = 500  # a quick search reads at most this many matches, whatever their status
REBUILD_SECONDS = 5  # Retry-After while the index is incomplete
TITLE, TEXT = "title", "text"  # the key of a Cursor in a list sorted by relevance: where the words occur
NO_LIMIT = -1  # means no limit in SQLite


class Rebuilding(Unavailable):
    """Old posts are still missing from the index, so a search would not find them."""

    reason = "the search index is being rebuilt, and the search would miss old posts"

    def __init__(self) -> None:
        super().__init__("the search index is incomplete", REBUILD_SECONDS)


def page(database: Database, query: ListQuery, client: Hashable) -> Page[Any, int | Cursor[int]]:
    """Return a page of results. A quick search runs inline, and all others run in a thread. Raises Rebuilding."""
    (text, is_prefix), *others = words.of_search(query.q)
    is_quick = " " not in text and not is_prefix and not others and query.limit < QUICK_READ
    if is_quick and query.sort == "created_at" and query.tag is None and query.status in (None, "published"):
        with suppress(Rebuilding):  # The full search below may still find enough posts for a page.
            found = read_page(database, query, QUICK_READ)
            if found.next is not None or query.status is None or not _has_more(database, query):
                return found
    return database.read_in_thread(client, read_page, query)


def _has_more(reader: Reader, query: ListQuery) -> bool:
    """Return whether more than QUICK_READ posts match, so that a quick search may have missed some."""
    values = _sqlite_words(query, "") | {"id": query.before_id, "max_read": QUICK_READ}
    return reader.engine.dialect == "sqlite" and reader.row(SELECT_AFTER_QUICK_READ, **values) is not None


def read_page(reader: Reader, query: ListQuery, max_read: int = NO_LIMIT) -> Page[Any, int | Cursor[int]]:
    """Return a page of the posts that contain the words in `q`. Raises Rebuilding.

    In a list sorted by relevance, the posts whose title contains all words come before the others, and both groups are
    sorted newest first. For a list sorted by creation time, SQLite reads at most `max_read` matches.
    """
    below = rebuild_position(reader)
    if query.sort == "created_at":
        rows = _rows(reader, query, Cursor("", query.before_id), max_read=max_read)
        return page_of(_indexed(rows, query, below) if below else rows, query.limit, id_of, query.fields)
    if below:
        raise Rebuilding
    rows = _by_relevance(reader, query) if query.sort == "relevance" else _rows(reader, query, query.start)
    return page_of(rows, query.limit, cursor_of, query.fields)


def _indexed(rows: Iterable[tuple], query: ListQuery, below: int) -> Iterator[tuple]:
    """Yield the rows down to the id `below`, because older posts may be missing. Raises Rebuilding for too few rows."""
    count = 0
    for row in rows:
        if id_of(row) < below:
            break
        count += 1
        yield row
    if count <= query.limit:
        raise Rebuilding


def _by_relevance(reader: Reader, query: ListQuery) -> Iterator[tuple]:
    """Yield the rows of posts whose title contains all words, then the other rows."""
    before = query.before if isinstance(query.before, Cursor) else Cursor(TITLE, MAX_ID)
    if before.key == TITLE:
        yield from _rows(reader, query, before, TITLE)
        before = Cursor(TEXT, MAX_ID)
    yield from _rows(reader, query, before, TEXT)


def _rows(
    reader: Reader, query: ListQuery, before: Cursor[int], part: str = "", max_read: int = NO_LIMIT
) -> Iterator[tuple]:
    """Return the rows of matching posts after a cursor. `part` selects a part of a list sorted by relevance."""
    values = _sqlite_words(query, part) if reader.engine.dialect == "sqlite" else _postgresql_words(query)
    values |= {"key": before.key, "id": before.id, "after": query.published_after, "max_read": max_read}
    rows = rows_query(query.sort, query.status, part, query.tag is not None)
    return reader.rows(rows, limit=query.limit + 1, **values)


@cache
def rows_query(sort: str, status: str | None, part: str, by_tag: bool) -> Compiled:
    """Return the query for a page. The parameters are limit, key, id, after, max_read, and those for the words."""
    statuses = [f"status = '{listed}'" for listed in ([status] if status else STATUSES)]  # each has an index
    slots = {"has_status": " OR ".join(statuses), "first_read": str(FIRST_READ)} | _postgresql_slots(part, by_tag)
    if is_by_time := sort in ("published_at", "updated_at"):  # The owner's page sorts results by updated_at.
        # The conditions on the time alone let PostgreSQL use its index.
        follows = f"({sort}, id) < (:key, :id) AND {sort} >= :after AND {sort} <= :key"
        slots |= {"key": sort, "order": f"{sort} DESC, id DESC", "follows": follows}
    else:
        slots |= {"key": f"'{part}'", "order": "id DESC", "follows": "id < :id"}
    slots["first"] = " UNION ALL ".join(FIRST.format(status=condition, **slots) for condition in statuses)
    sqlite = SQLITE_BY_TIME if is_by_time else SQLITE_BY_ID
    rows = Select([SQL(f"({POSTGRESQL.format(**slots)}) AS matches")], [SQL("*")])
    return Compiled(sqlite=sqlite.format(**slots), postgresql=bounded(rows, "key"))


# The first posts of a list with one status, whether or not they match. `follows` says that a post follows the cursor.
FIRST = """
    SELECT * FROM (
        SELECT id, {key} FROM post WHERE {status} AND {follows} ORDER BY {order} LIMIT {first_read}
    ) AS listed
"""


# In SQLite


def _sqlite_words(query: ListQuery, part: str) -> dict[str, Any]:
    """Return the query parameters for the words of a search. Words contain no characters that FTS5 treats specially."""
    phrases = words.of_search(query.q)
    everywhere = " AND ".join(f'"{text}"{" *" if is_prefix else ""}' for text, is_prefix in phrases)
    in_title = f"title : ({everywhere})"
    match = {TITLE: in_title, TEXT: f"({everywhere}) NOT ({in_title})"}.get(part, everywhere)
    tag = [] if query.tag is None else [words.tag_word(query.tag)]
    return {
        "match": " AND ".join([f"({match})", *(f'"{word}"' for word in tag)]),
        "texts": dump([_spaced(*phrase) for phrase in phrases] + [_spaced(word, False) for word in tag]),
    }


SELECT_AFTER_QUICK_READ = Compiled("""
    SELECT rowid FROM search WHERE search MATCH :match AND rowid < :id ORDER BY rowid DESC LIMIT 1 OFFSET :max_read
""")
# Finds ids first, because SQLite would sort whole documents.
SQLITE_BY_ID = """
    SELECT id, CAST(document AS BLOB), {key} FROM post WHERE id IN (
        SELECT id FROM (
            SELECT rowid AS id FROM search WHERE search MATCH :match AND rowid < :id ORDER BY rowid DESC LIMIT :max_read
        ) AS matches CROSS JOIN post USING (id)  -- keeps the order
        WHERE ({has_status}) LIMIT :limit
    ) ORDER BY {order} LIMIT :limit
"""
# SQLite's index returns matches in order of creation. The query therefore checks the first posts of the list, and reads
# all matches only if too few of those posts match. To check a post, it cannot use MATCH, which would read on until the
# next match.
SQLITE_BY_TIME = """
    SELECT id, CAST(document AS BLOB), {key} FROM post WHERE id IN (
        WITH first AS MATERIALIZED (SELECT id FROM ({first}) AS post ORDER BY {order} LIMIT {first_read}),
        among_first AS MATERIALIZED (
            SELECT id FROM first WHERE EXISTS (
                SELECT 1 FROM search WHERE rowid = id AND NOT EXISTS (
                    SELECT 1 FROM json_each(:texts) AS phrase
                    WHERE NOT instr(' ' || title || ' ' || text || ' ', phrase.value)
                )
            ) LIMIT :limit
        )
        SELECT id FROM among_first UNION ALL SELECT id FROM (
            SELECT id FROM (SELECT 1 WHERE (SELECT count(*) FROM among_first) < :limit)
            CROSS JOIN (SELECT rowid AS id FROM search WHERE search MATCH :match)
            CROSS JOIN post USING (id)  -- reads the words first
            WHERE ({has_status}) AND {follows} ORDER BY {order} LIMIT :limit
        )
    ) ORDER BY {order} LIMIT :limit
"""


# In PostgreSQL


def _postgresql_words(query: ListQuery) -> dict[str, Any]:
    phrases = words.of_search(query.q)
    patterns = [f"%{_spaced(*phrase)}%" for phrase in phrases]
    lexemes = [f"'{text}'{':*' if is_prefix else ''}".replace(" ", "' & '") for text, is_prefix in phrases]
    tag = words.tag_word(query.tag or "")
    return {
        "texts": patterns,
        "phrases": [pattern for pattern, (text, _) in zip(patterns, phrases, strict=True) if " " in text],
        "lexemes": " & ".join(lexemes),
        "tag": f" {tag} ",
        "tag_lexeme": f"'{tag}'",
    }


# PostgreSQL's index returns all matches, unsorted, and a common word may match half of all posts. The query therefore
# checks the first posts of the list, and reads the index, which ignores the order of words, only if too few of those
# posts match. IS TRUE keeps PostgreSQL from using other indexes, so it finds the posts by their ids.
POSTGRESQL = """
    WITH first AS (SELECT id FROM ({first}) AS post ORDER BY {order} LIMIT {first_read}),
    among_first AS (
        SELECT post_id FROM search WHERE post_id = ANY (ARRAY(SELECT id FROM first))
        AND {column} LIKE ALL (:texts::text[]) {has_tag} {not_in_title}
    )
    SELECT id, document, {key} AS key FROM post WHERE (({has_status}) AND {follows}) IS TRUE
    AND id = ANY (ARRAY(
        SELECT post_id FROM among_first UNION ALL
        SELECT post_id FROM search WHERE array_to_tsvector(string_to_array({indexed}, ' ')) @@ :lexemes::tsquery
        AND {column} LIKE ALL (:phrases::text[]) {has_indexed_tag} {not_in_title}
        AND (SELECT count(*) FROM among_first) < :limit AND (SELECT count(*) FROM first) = {first_read}
    )) ORDER BY {order} LIMIT :limit
"""


def _postgresql_slots(part: str, by_tag: bool) -> dict[str, str]:
    """Return the values that only POSTGRESQL needs: the conditions for a part of a list by relevance, and for a tag."""
    has_indexed_tag = "AND array_to_tsvector(string_to_array(words, ' ')) @@ :tag_lexeme::tsquery"
    return {
        "column": TITLE if part == TITLE else TEXT,
        "indexed": "btrim(title)" if part == TITLE else "words",  # the indexed expressions
        "not_in_title": "AND NOT title LIKE ALL (:texts::text[])" if part == TEXT else "",
        "has_tag": "AND strpos(text, :tag) > 0" if by_tag else "",
        "has_indexed_tag": has_indexed_tag if by_tag else "",
    }


def _spaced(text: str, is_prefix: bool) -> str:
    """Put spaces around a phrase, as the index does around each word. A prefix gets no space at its end."""
    return f" {text}" if is_prefix else f" {text} "
