"""The search: finding posts by their words.

A write only notes the post. A search first settles: it indexes the noted posts, as the background work does several
times a second. Then it reads a page of the posts that match.

The words of published posts are apart from those of all others: a search among published posts settles and reads no
others, or its time would tell of them.
"""

import threading
import time
from collections.abc import Hashable, Iterator
from contextlib import suppress
from functools import cache, partial
from typing import Any, NamedTuple

from peewee import SQL, Select

from blogapi import documents
from blogapi.documents import STATUSES
from blogapi.paging import Cursor, Page
from blogapi.posts import publication
from blogapi.posts.lists import ListQuery, bounded, cursor_of, id_of, page_of
from blogapi.storage.database import BUSY_SECONDS, Database, locked
from blogapi.storage.engine import Param, Prepared, Reader, Transaction
from blogapi.storage.errors import RETRY_SECONDS, Busy, Damaged, Unavailable
from blogapi.storage.models import DOCUMENT, MAX_ID, Post
from blogapi.wings.search import words

FIELDS = ("title", "content", "excerpt", "tags", "status")  # that the index depends on
SETTLE_SECONDS, SETTLED_POSTS = 1.0, 5000  # in and of which a search indexes what was noted
INDEXED_POSTS, INDEXED_SECONDS = 64, 0.010  # in one transaction, as others wait for it
PAUSE_SECONDS = 0.001  # between two transactions: a sleep of 0 would not let the loop poll its sockets
LARGE = 32 * 1024  # bytes of a post that is indexed in a thread
MERGED_PAGES = 16  # at a time, of SQLite's index: 5 ms
FIRST_READ = 200  # posts that PostgreSQL reads before the index
TABLES = {True: "search_published", False: "search_others"}  # of SQLite, by whether they have published posts
TITLE, TEXT = "title", "text"  # which of them has all words: the keys of a Cursor in the order of relevance
UNION = " UNION ALL "
State = tuple[str, bool, bytes]  # of a post: its status, "" if it is deleted; whether it is due; its document
large_posts = threading.Lock()  # indexed one at a time: their words can take 100 MB


class Incomplete(Unavailable):
    """Too many posts are noted: until they are indexed, a search would find too little."""

    reason = "too many posts wait for the search index"


# Indexing posts


def note(tx: Transaction, post_id: int, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Note that the words of a post changed; {} stands for no post. Fields that stay can be left out."""
    if any(old.get(name) != new.get(name) for name in FIELDS):
        tx.defer(NOTE, published="published" in (old.get("status"), new.get("status")), id=post_id)


def settle(database: Database, only_published: bool = False, seconds: float = SETTLE_SECONDS) -> int:
    """Index the posts that are noted by now, in short transactions, for some seconds; return how many are left."""
    until = time.monotonic() + seconds
    pending = database.rows(PENDING, published=only_published, now=database.now, limit=SETTLED_POSTS)
    noted = [post_id for (post_id,) in pending]
    count, large = 0, list[int]()
    while count < len(noted) and time.monotonic() < until:
        seen, more = database.write(_index_some, noted[count : count + INDEXED_POSTS])
        count, large = count + seen, large + more
        time.sleep(PAUSE_SECONDS)
    while large and time.monotonic() < until:
        large = large[_index_large(database, large[0]) :]
    return database.one(COUNT_PENDING)[0] if large or count < len(noted) or count == SETTLED_POSTS else 0


def _index_some(tx: Transaction, noted: list[int]) -> tuple[int, list[int]]:
    """Index the first of some noted posts; return how many these are, and the large ones, which are left."""
    until, count, large = time.monotonic() + INDEXED_SECONDS, 0, []
    for post_id in noted:
        count += 1
        state = _state(tx, post_id)
        _, is_due, document = state
        if len(document) > LARGE:
            large.append(post_id)
        elif tx.execute(FORGET, id=post_id) or is_due:  # else another search has indexed it meanwhile
            _index(tx, post_id, state, _words_of(document))
        if time.monotonic() > until:
            break
    for statement in MERGE if tx.dialect == "sqlite" else ():
        tx.execute(statement)
    return count, large


def _index_large(database: Database, post_id: int) -> bool:
    """Index a large post, whose words take seconds: others write meanwhile. Return False after waiting for others."""
    with suppress(Busy), locked(large_posts, time.monotonic() + BUSY_SECONDS):
        state = _state(database, post_id)
        _, is_due, document = state
        if is_due or database.row(IS_NOTED, id=post_id):  # else another search has indexed it meanwhile
            # Not in the background: at a low priority, it would wait for the processor while it holds Python's lock.
            found = database.engine.loop.run_in_thread(partial(_words_of, document))
            database.write_in_thread(_index_words, post_id, state, found)
        return True
    return False


def _index_words(tx: Transaction, post_id: int, state: State, found: tuple[str, str, str]) -> None:
    """Index the words that a post had in a state. If it has changed since, it stays noted."""
    present = _state(tx, post_id)
    if present == state:
        tx.defer(FORGET, id=post_id)
    if present[:2] == state[:2]:  # else those of a draft could be found in the published post
        _index(tx, post_id, present, found)


def _state(reader: Reader, post_id: int) -> State:
    status, is_due, document = reader.row(STATE, id=post_id, now=reader.now) or ("", False, b"")
    return status, is_due, document or b""  # NULL if it is damaged


def _words_of(document: bytes) -> tuple[str, str, str]:
    """Return the words of a document as `words.of_post` does; a damaged one has none."""
    with suppress(Damaged):
        return words.of_post(documents.load(document))
    return "", "", ""


def _index(tx: Transaction, post_id: int, state: State, found: tuple[str, str, str]) -> None:
    """Replace the words of a post in the index."""
    for statement in REMOVE:
        tx.defer(statement, id=post_id)
    status, is_due, _ = state
    if status:
        title, text, labels = found
        is_published = status == "published" or is_due
        tx.defer(ADD[is_published], id=post_id, title=title, text=text, labels=labels, published=is_published)


NOTE = Prepared("INSERT INTO search_pending (published, post_id) VALUES (:published, :id) ON CONFLICT DO NOTHING")
COUNT_PENDING = Prepared("SELECT count(*) FROM search_pending")
PENDING_POST = "search_pending WHERE published IN (FALSE, TRUE) AND post_id = :id"
IS_NOTED, FORGET = Prepared(f"SELECT 1 FROM {PENDING_POST}"), Prepared(f"DELETE FROM {PENDING_POST}")
# The noted posts, and those that are due but not yet indexed as published, which they are before the database knows.
NOTED = """
    SELECT post_id FROM search_pending WHERE published >= :published UNION ALL
    SELECT post_id FROM schedule WHERE published_at <= :now AND NOT EXISTS ({}) LIMIT :limit
"""
PENDING = Prepared(
    sqlite=NOTED.format("SELECT 1 FROM search_published WHERE rowid = schedule.post_id"),
    postgresql=NOTED.format("SELECT 1 FROM search WHERE search.post_id = schedule.post_id AND published"),
)
STATE = Prepared(Post.select(Post.status, publication.is_due, DOCUMENT).where(Post.id == Param("id")))
REMOVE = [
    Prepared(sqlite=f"DELETE FROM {table} WHERE rowid = :id", postgresql="DELETE FROM search WHERE post_id = :id")
    for table in TABLES.values()
]
# PostgreSQL has a space before and after each word, and the title in the text, too.
ADD = {
    is_published: Prepared(
        sqlite=f"INSERT INTO {table} (rowid, title, text, labels) VALUES (:id, :title, :text, :labels)",
        postgresql="""
        INSERT INTO search VALUES
        (:id, :published, ' ' || :title || ' ', ' ' || :title || ' ' || :text || ' ', ' ' || :labels || ' ')
        """,
    )
    for is_published, table in TABLES.items()
}
# By itself, SQLite would merge too many pages of its index at a time.
MERGE = [Prepared(f"INSERT INTO {name} ({name}, rank) VALUES ('merge', {MERGED_PAGES})") for name in TABLES.values()]


# Finding posts


def find(database: Database, query: ListQuery, client: Hashable) -> Page[Any, int | Cursor[int]]:
    """Return a page as `page` does, of posts as they are now, in a thread unless it is quick. Raises Incomplete."""
    left = 0
    with suppress(Unavailable):  # What is indexed can be searched even if the database cannot be written.
        left = settle(database, query.status == "published")
    if left:
        raise Incomplete(f"{left} posts wait for the search index", RETRY_SECONDS)
    return page(database, query) if is_quick(query) else database.read_in_thread(client, page, query)


def is_quick(query: ListQuery) -> bool:
    """Return whether a search takes no longer than a few lists: for one word, in an order that the index has."""
    (text, by_start), *others = words.of_search(query.q)
    in_order = query.sort in ("created_at", "relevance") and query.tag is None and query.status in (None, "published")
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
    """Return the rows of the posts before a cursor that match; by relevance, of those in one part of the order."""
    values = _sqlite_words(query, part) if reader.dialect == "sqlite" else _postgresql_words(query)
    values |= {"now": now, "key": before.key, "id": before.id, "after": query.published_after}
    rows = rows_query(query.sort, query.status, part, query.tag is not None)
    return reader.rows(rows, limit=query.limit + 1, **values)


class Order(NamedTuple):
    """An order of posts, in SQL."""

    key: str  # of a Cursor
    newest_first: str
    is_before: str  # whether a post is before the cursor


@cache
def rows_query(sort: str, status: str | None, part: str, by_tag: bool) -> Prepared:
    """Return the query of a page, whose parameters are limit, now, key, id and after, and those of the words."""
    if sort in ("published_at", "updated_at"):
        is_before = (
            f"({sort}, id) < (:key, :id) AND {sort} BETWEEN :after AND :key"  # PostgreSQL's index needs a range.
        )
        order = Order(sort, f"{sort} DESC, id DESC", is_before)
    else:
        order = Order(f"'{part}'", "id DESC", "id < :id")
    found = Select([SQL(f"({_postgresql_query(order, status, part, by_tag)}) AS found")], [SQL("*")])
    return Prepared(sqlite=_sqlite_query(order, status), postgresql=bounded(found, "key"))


DUE = "SELECT post_id FROM schedule WHERE schedule.published_at <= :now"


def _lists(status: str | None, is_due: str) -> list[str]:
    """Return conditions that posts have a status, each of which has an index; a post that is due is published."""
    if status == "published":
        return ["status = 'published'", is_due]
    if status == "scheduled":
        return ["status = 'scheduled' AND published_at > :now"]
    return [f"status = '{each}'" for each in ([status] if status else STATUSES)]


def _indexes(status: str | None) -> list[bool]:
    """Return whose words can match: those of published posts, those of others, or both."""
    return [True, False] if status is None else [status == "published"]


# In SQLite


def _sqlite_words(query: ListQuery, part: str) -> dict[str, str]:
    """Return the parameter for the words of a search. They have no characters with a special meaning."""
    everywhere = " AND ".join(f'"{text}"{" *" if by_start else ""}' for text, by_start in words.of_search(query.q))
    match = f"{TITLE if part == TITLE else '{title text}'} : ({everywhere})"
    if part == TEXT:
        match = f"({match}) NOT (title : ({everywhere}))"
    return {"match": match if query.tag is None else f'({match}) AND labels : "{words.label(query.tag)}"'}


def _sqlite_query(order: Order, status: str | None) -> str:
    """Return the query of the first posts that match. It finds their ids first: SQLite would sort whole documents."""
    lists = _lists(status, f"id IN ({DUE})")
    ids = [
        f"""
        SELECT id, {order.key} FROM (SELECT rowid AS id FROM {table} WHERE {table} MATCH :match)
        CROSS JOIN post USING (id)  -- which reads the words first
        WHERE ({" OR ".join(lists)}) AND {order.is_before}
        """
        for table in (TABLES[each] for each in _indexes(status))
    ]
    return f"""
    SELECT id, status, CAST(document AS BLOB), {order.key} FROM post
    WHERE id IN (SELECT id FROM ({UNION.join(ids)} ORDER BY {order.newest_first} LIMIT :limit))
    ORDER BY {order.newest_first}
    """


# In PostgreSQL


def _postgresql_words(query: ListQuery) -> dict[str, Any]:
    """Return the parameters for the words of a search, likewise."""
    found = words.of_search(query.q)
    texts = [f" {text}" if by_start else f" {text} " for text, by_start in found]
    lexemes = [f"'{text}'{':*' if by_start else ''}".replace(" ", "' & '") for text, by_start in found]
    return {
        "text": texts[0],
        "others": [f"%{text}%" for text in texts[1:]],
        "sequences": [f"%{text}%" for text in texts if " " in text.strip()],
        "lexemes": " & ".join(lexemes),
        "label": words.label(query.tag or ""),
    }


HAS_TEXTS = "strpos({0}, :text) > 0 AND {0} LIKE ALL (:others::text[])"  # strpos takes less time than LIKE.
LEXEMES = "array_to_tsvector(string_to_array(btrim({}), ' '))"  # which are indexed


def _postgresql_query(order: Order, status: str | None, part: str, by_tag: bool) -> str:
    """Return the query of the first posts that match.

    The index returns all matches, in no order: for a word in half of the posts, half of the posts. So it is read only
    if too few of the first posts in the order match.
    """
    lists = _lists(status, f"id = ANY (ARRAY({DUE}))")
    has_texts, has_lexemes = _conditions(part, by_tag)
    indexed = [
        f"SELECT post_id FROM search WHERE published = {each} AND octet_length(text) {condition}"
        for each in _indexes(status)
        for condition in (f"<= 1000000 AND {has_lexemes}", f"> 1000000 AND {has_texts}")  # The index has no others.
    ]
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
    """Return the query of the first posts in the order."""
    first = f"ORDER BY {order.newest_first} LIMIT {FIRST_READ}"
    each = [f"(SELECT id, {order.key} FROM post WHERE {each} AND {order.is_before} {first})" for each in lists]
    return f"SELECT id FROM ({UNION.join(each)}) AS post {first}"


def _conditions(part: str, by_tag: bool) -> tuple[str, str]:
    """Return the conditions for a match: by the texts, and by the index, which does not know the order of words."""
    column = TITLE if part == TITLE else TEXT
    has_texts = HAS_TEXTS.format(column)
    has_lexemes = f"{LEXEMES.format(column)} @@ :lexemes::tsquery AND {column} LIKE ALL (:sequences::text[])"
    if by_tag:
        has_texts += " AND labels LIKE '% ' || :label || ' %'"
        has_lexemes += f" AND {LEXEMES.format('labels')} @@ :label::text::tsquery"
    without_title = f" AND NOT ({HAS_TEXTS.format(TITLE)})" if part == TEXT else ""
    return has_texts + without_title, has_lexemes + without_title
