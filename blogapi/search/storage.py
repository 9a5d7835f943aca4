"""Find posts by their words."""

from collections.abc import Hashable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

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
NO_LIMIT = -1  # as SQLite's LIMIT
UNION = " UNION ALL "


class Rebuilding(Unavailable):
    """Old posts are still missing from the index, so a search would not find them."""

    reason = "the search index is being built again, and the search would miss old posts"

    def __init__(self) -> None:
        super().__init__("the search index is incomplete", REBUILD_SECONDS)


def find(database: Database, query: ListQuery, client: Hashable) -> Page[Any, int | Cursor[int]]:
    """Return a page of results. A quick search runs inline, and all others run in a thread. Raises Rebuilding."""
    (text, is_prefix), *others = words.of_search(query.q)
    is_word = " " not in text and not is_prefix and not others
    if is_word and query.sort == "created_at" and query.tag is None and query.status in (None, "published"):
        with suppress(Rebuilding):  # The full search below may still find enough posts for a page.
            posts = page(database, query, QUICK_READ)
            if posts.next is not None or query.status is None or not _has_more(database, query):
                return posts
    return database.read_in_thread(client, page, query)


def _has_more(reader: Reader, query: ListQuery) -> bool:
    """Return whether more than QUICK_READ posts match, so that a quick search may have missed some."""
    values = _sqlite_words(query, "") | {"id": query.before_id, "max_read": QUICK_READ}
    return reader.dialect == "sqlite" and reader.row(SELECT_AFTER_QUICK_READ, **values) is not None


def page(reader: Reader, query: ListQuery, max_read: int = NO_LIMIT) -> Page[Any, int | Cursor[int]]:
    """Return a page of the posts that contain the words in `q`. Raises Rebuilding.

    In a list sorted by relevance, the posts whose title contains all words come before the others, and both groups are
    sorted newest first. For a list sorted by creation time, SQLite reads at most `max_read` matches.
    """
    below = rebuild_position(reader)
    if query.sort == "created_at":
        rows = _rows(reader, query, Cursor("", query.before_id), max_read=max_read)
        return page_of(_indexed(rows, query, below) if below else rows, query, id_of)
    if below:
        raise Rebuilding
    rows = _by_relevance(reader, query) if query.sort == "relevance" else _rows(reader, query, query.start)
    return page_of(rows, query, cursor_of)


def _indexed(rows: Iterable[tuple], query: ListQuery, below: int) -> Iterator[tuple]:
    """Yield the rows of posts from the id `below` on, which are all indexed. Raises Rebuilding if there are too few."""
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
    values = _sqlite_words(query, part) if reader.dialect == "sqlite" else _postgresql_words(query)
    values |= {"key": before.key, "id": before.id, "after": query.published_after, "max_read": max_read}
    rows = rows_query(query.sort, query.status, part, query.tag is not None)
    return reader.rows(rows, limit=query.limit + 1, **values)


class Order(NamedTuple):
    """The posts to search and their order, in SQL."""

    lists: list[str]  # a condition for every status; there is an index for each condition
    key: str  # the column or value that is the key of a Cursor
    newest_first: str
    follows: str  # the condition that a post follows the cursor
    is_by_time: bool


@cache
def rows_query(sort: str, status: str | None, part: str, by_tag: bool) -> Compiled:
    """Return the query for a page. The parameters are limit, key, id, after, max_read, and those for the words."""
    lists = [f"status = '{listed}'" for listed in ([status] if status else STATUSES)]
    if sort in ("published_at", "updated_at"):  # The owner's page sorts results by updated_at.
        # The conditions on the time alone let PostgreSQL use its index.
        follows = f"({sort}, id) < (:key, :id) AND {sort} >= :after AND {sort} <= :key"
        order = Order(lists, sort, f"{sort} DESC, id DESC", follows, True)
    else:
        order = Order(lists, f"'{part}'", "id DESC", "id < :id", False)
    rows = Select([SQL(f"({_postgresql_query(order, part, by_tag)}) AS matches")], [SQL("*")])
    return Compiled(sqlite=_sqlite_query(order), postgresql=bounded(rows, "key"))


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


# Checks a single post. MATCH cannot be used here, because it would read on until the next match.
HAS_ALL = """NOT EXISTS (
    SELECT 1 FROM json_each(:texts) AS phrase WHERE NOT instr(' ' || title || ' ' || text || ' ', phrase.value)
)"""
MATCHES = "SELECT rowid AS id FROM search WHERE search MATCH :match"
MATCHES_BEFORE = f"{MATCHES} AND rowid < :id ORDER BY rowid DESC LIMIT"
SELECT_AFTER_QUICK_READ = Compiled(f"{MATCHES_BEFORE} 1 OFFSET :max_read")


def _sqlite_query(order: Order) -> str:
    """Return the query for the first matches, which finds ids first, because SQLite would sort whole documents."""
    ids = f"""
        SELECT id FROM ({MATCHES_BEFORE} :max_read) AS matches CROSS JOIN post USING (id)  -- keeps the order
        WHERE ({" OR ".join(order.lists)}) LIMIT :limit
    """
    return f"""
    SELECT id, CAST(document AS BLOB), {order.key} FROM post
    WHERE id IN ({_sqlite_by_time(order) if order.is_by_time else ids})
    ORDER BY {order.newest_first} LIMIT :limit
    """


def _sqlite_by_time(order: Order) -> str:
    """Return the query for the ids of the first matching posts in a list sorted by time.

    SQLite's index returns matches in order of creation. The query therefore checks the first posts of the list, and
    reads all matches only if too few of those posts match.
    """
    return f"""
        WITH first AS MATERIALIZED ({_first_posts(order)}),
        among_first AS MATERIALIZED (
            SELECT id FROM first WHERE EXISTS (SELECT 1 FROM search WHERE rowid = id AND {HAS_ALL}) LIMIT :limit
        )
        SELECT id FROM among_first {UNION} SELECT id FROM (
            SELECT id FROM (SELECT 1 WHERE (SELECT count(*) FROM among_first) < :limit)
            CROSS JOIN ({MATCHES}) CROSS JOIN post USING (id)  -- reads the words first
            WHERE ({" OR ".join(order.lists)}) AND {order.follows} ORDER BY {order.newest_first} LIMIT :limit
        )
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


LEXEMES = "array_to_tsvector(string_to_array({}, ' '))"  # the indexed expression


def _postgresql_query(order: Order, part: str, by_tag: bool) -> str:
    """Return the query for the first matching posts.

    PostgreSQL's index returns all matches, unsorted, which for a common word may be half of all posts. The query
    therefore checks the first posts of the list, and reads the index only if too few of those posts match.
    """
    has_texts, has_lexemes = _conditions(part, by_tag)
    return f"""
    WITH first AS ({_first_posts(order)}),
    among_first AS (SELECT post_id FROM search WHERE post_id = ANY (ARRAY(SELECT id FROM first)) AND {has_texts})
    SELECT id, document, {order.key} AS key FROM post
    WHERE (({" OR ".join(order.lists)}) AND {order.follows}) IS TRUE  -- no index has this, so the ids find the posts
    AND id = ANY (ARRAY(
        SELECT post_id FROM among_first {UNION}
        SELECT post_id FROM search WHERE {has_lexemes}
        AND (SELECT count(*) FROM among_first) < :limit AND (SELECT count(*) FROM first) = {FIRST_READ}
    )) ORDER BY {order.newest_first} LIMIT :limit
    """


def _first_posts(order: Order) -> str:
    """Return the query for the first posts of the list, whether or not they match."""
    first = f"ORDER BY {order.newest_first} LIMIT {FIRST_READ}"
    posts = [
        f"SELECT * FROM (SELECT id, {order.key} FROM post WHERE {condition} AND {order.follows} {first}) AS listed"
        for condition in order.lists
    ]
    return f"SELECT id FROM ({UNION.join(posts)}) AS post {first}"


def _conditions(part: str, by_tag: bool) -> tuple[str, str]:
    """Return two conditions for a match: one reads the text, the other uses the index, which ignores word order."""
    column, indexed = (TITLE, f"btrim({TITLE})") if part == TITLE else (TEXT, "words")
    has_texts = f"{column} LIKE ALL (:texts::text[])"
    has_lexemes = f"{LEXEMES.format(indexed)} @@ :lexemes::tsquery AND {column} LIKE ALL (:phrases::text[])"
    if by_tag:
        has_texts += " AND strpos(text, :tag) > 0"
        has_lexemes += f" AND {LEXEMES.format('words')} @@ :tag_lexeme::tsquery"
    not_in_title = f" AND NOT {TITLE} LIKE ALL (:texts::text[])" if part == TEXT else ""
    return has_texts + not_in_title, has_lexemes + not_in_title


def _spaced(text: str, is_prefix: bool) -> str:
    """Put spaces around a phrase, as the index does around each word. A prefix gets no space at its end."""
    return f" {text}" if is_prefix else f" {text} "
