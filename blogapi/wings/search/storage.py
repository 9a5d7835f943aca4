"""The search: finding posts by their words.

A write only notes the post. A search first settles: it indexes the noted posts, as the background work does several
times a second. Then it reads a page of the posts that match.

The words of published posts are apart from those of all others: a search among published posts settles and reads no
others, or its time would tell of them.
"""

import time
from collections.abc import Hashable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

from peewee import SQL, Select

from blogapi import documents
from blogapi.documents import STATUSES
from blogapi.paging import Cursor, Page
from blogapi.posts import publication
from blogapi.posts.lists import ListQuery, bounded, cursor_of, id_of, page_of
from blogapi.storage.database import Database, locked
from blogapi.storage.engine import Param, Prepared, Reader, Transaction
from blogapi.storage.errors import RETRY_SECONDS, Damaged, Unavailable
from blogapi.storage.models import DOCUMENT, MAX_ID, Post
from blogapi.text import fold
from blogapi.wings.search import words

FIELDS = ("title", "content", "excerpt", "tags", "status")  # that the index depends on
SETTLE_SECONDS, SETTLED_POSTS = 1.0, 5000  # a search indexes at most this many pending posts, for this long
INDEXED_POSTS = 64  # at most this many in one transaction, because others wait for it
PAUSE_SECONDS = 0.001  # between two transactions: a sleep of 0 would not let the loop poll its sockets
LARGE = 64 * 1024  # bytes of posts after which a transaction takes no more; their words are found in a thread
MERGED_PAGES = 16  # at a time, of SQLite's index: 5 ms
FIRST_READ = 200  # posts that are read in order before the index
TABLES = {True: "search_published", False: "search_others"}  # of SQLite, by whether they have published posts
TITLE, TEXT = "title", "text"  # which of them has all words: the keys of a Cursor in the order of relevance
UNION = " UNION ALL "


class Incomplete(Unavailable):
    """Posts wait for the index: until then, a search would find too little."""

    reason = "posts wait for the search index"


# Indexing posts


def note(tx: Transaction, post_id: int, old: dict[str, Any], new: dict[str, Any], *, only_tags: bool = False) -> None:
    """Note that the words of a post changed; {} stands for no post. Fields that stay can be left out.

    With `only_tags`, a tag changed in every post, which `note_tag` names.
    """
    if any(old.get(name) != new.get(name) for name in FIELDS):
        published = "published" in (old.get("status"), new.get("status"))
        tx.defer(NOTE, only_tags=only_tags, published=published, id=post_id)


def note_tag(tx: Transaction, name: str) -> None:
    """Note that a tag changed in every post. Until these are indexed, searches for its words wait for them."""
    tx.defer(NOTE_TAG, name=name)


def settle(database: Database, query: ListQuery | None = None, seconds: float = SETTLE_SECONDS) -> int:
    """Index the posts that a search waits for, or all that are pending, in short transactions.

    Return how many are left after some seconds. Raises Incomplete if the database cannot be written until then.
    """
    until = time.monotonic() + seconds
    pending = _pending(database, query)
    more = len(pending) >= SETTLED_POSTS
    while pending and time.monotonic() < until:
        try:
            with locked(database.settling, until):
                _settle_some(database, until, pending)
        except Unavailable as error:
            raise Incomplete(error, RETRY_SECONDS) from error
        time.sleep(PAUSE_SECONDS)
    return len(pending) + more


def _pending(database: Database, query: ListQuery | None) -> list[int]:
    """Return the posts that a search waits for: if their tags alone changed, only if it looks for these tags."""
    published = query is not None and query.status == "published"
    values = {"published": published, "now": database.now, "limit": SETTLED_POSTS}
    rows = list(database.rows(PENDING, **values))
    pending = [post_id for post_id, _ in rows if post_id]
    if any(query is None or _concerns(query, tag) for post_id, tag in rows if not post_id):
        pending.extend(post_id for (post_id,) in database.rows(RETAGGED, **values))
    return pending


def _concerns(query: ListQuery, tag: str) -> bool:
    """Return whether a search can find other posts once a tag has changed."""
    sought = tuple(word for text, _ in words.sequences(query.q) for word in text.split())
    return query.tag == fold(tag) or any(word.startswith(sought) for word in words.split(tag))


def _settle_some(database: Database, until: float, pending: list[int]) -> None:
    """Index the first of some pending posts; leave those pending that change meanwhile."""
    states: dict[int, State] = {}
    size = 0
    for post_id in pending[:INDEXED_POSTS]:
        if size > LARGE:
            break
        states[post_id] = _state(database, post_id)
        size += len(states[post_id].document)

    def find() -> dict[int, tuple[str, str, str]]:
        return {post_id: _words_of(state.document) for post_id, state in states.items() if state.is_pending}

    found = database.engine.loop.run_in_thread(find) if size > LARGE else find()
    pending[: len(states)] = database.write_alone(until, _index_some, states, found) if found else []
    if found and database.dialect == "postgresql":
        with suppress(Unavailable):  # PostgreSQL would do this in a later transaction.
            database.row(MERGE_PENDING)


class State(NamedTuple):
    """What the index needs to know about a post."""

    status: str = ""  # "" if it is deleted
    is_due: bool = False
    is_noted: bool = True
    document: bytes = b""

    @property
    def is_pending(self) -> bool:
        """Whether it is not indexed; another search may have done so."""
        return self.is_noted or self.is_due


def _state(reader: Reader, post_id: int) -> State:
    found = reader.row(STATE, id=post_id, now=reader.now)
    return State._make((*found[:3], found[3] or b"")) if found else State()  # NULL if it is damaged


def _index_some(tx: Transaction, states: dict[int, State], found: dict[int, tuple[str, str, str]]) -> list[int]:
    """Index posts whose words were found; return those that have changed since."""
    changed = []
    for post_id, texts in found.items():
        state = states[post_id]
        if _state(tx, post_id) == state:
            tx.defer(FORGET, id=post_id)
            _index(tx, post_id, state.status, texts, state.status == "published" or state.is_due)
        else:
            changed.append(post_id)
    for statement in (*MERGE, FORGET_TAGS) if tx.dialect == "sqlite" else (FORGET_TAGS,):
        tx.defer(statement)
    return changed


def _words_of(document: bytes) -> tuple[str, str, str]:
    """Return the words of a document as `words.of_post` does; a damaged one has none."""
    with suppress(Damaged):
        return words.of_post(documents.load(document))
    return "", "", ""


def _index(tx: Transaction, post_id: int, status: str, texts: tuple[str, str, str], is_published: bool) -> None:
    """Replace the words of a post in the index."""
    for statement in REMOVE:
        tx.defer(statement, id=post_id)
    if status:
        title, text, labels = texts
        values = {"id": post_id, "title": title, "text": text, "labels": labels, "published": is_published}
        if tx.dialect == "postgresql":
            values["words"] = " ".join({*title.split(), *text.split()})
        tx.defer(ADD[is_published], **values)


NOTE = Prepared("INSERT INTO search_pending VALUES (:only_tags, :published, :id) ON CONFLICT DO NOTHING")
NOTE_TAG = Prepared("INSERT INTO search_retagged VALUES (:name) ON CONFLICT DO NOTHING")
OF_POST = "FROM search_pending WHERE only_tags IN (FALSE, TRUE) AND published IN (FALSE, TRUE) AND post_id = :id"
FORGET = Prepared(f"DELETE {OF_POST}")
FORGET_TAGS = Prepared(
    "DELETE FROM search_retagged WHERE NOT EXISTS (SELECT 1 FROM search_pending WHERE only_tags = TRUE)"
)
# The noted posts, and those that are due but not yet indexed as published, which they are before the database knows;
# and the names of tags that changed in every post.
NOTED = """
    SELECT 0, name FROM search_retagged UNION ALL
    SELECT post_id, '' FROM search_pending WHERE only_tags = FALSE AND published >= :published UNION ALL
    SELECT post_id, '' FROM schedule WHERE published_at <= :now AND NOT EXISTS ({}) LIMIT :limit
"""
PENDING = Prepared(
    sqlite=NOTED.format("SELECT 1 FROM search_published WHERE rowid = schedule.post_id"),
    postgresql=NOTED.format("SELECT 1 FROM search WHERE search.post_id = schedule.post_id AND published"),
)
RETAGGED = Prepared(
    "SELECT post_id FROM search_pending WHERE only_tags = TRUE AND published >= :published LIMIT :limit"
)
_is_noted = SQL(f"EXISTS (SELECT 1 {OF_POST})")
STATE = Prepared(Post.select(Post.status, publication.is_due, _is_noted, DOCUMENT).where(Post.id == Param("id")))
REMOVE = [
    Prepared(sqlite=f"DELETE FROM {table} WHERE rowid = :id", postgresql="DELETE FROM search WHERE post_id = :id")
    for table in TABLES.values()
]
# PostgreSQL has a space before and after each word, the title in the text, too, and each word once for the index.
ADD = {
    is_published: Prepared(
        sqlite=f"INSERT INTO {table} (rowid, title, text, labels) VALUES (:id, :title, :text, :labels)",
        postgresql="""
        INSERT INTO search VALUES
        (:id, :published, ' ' || :title || ' ', ' ' || :title || ' ' || :text || ' ', :words, ' ' || :labels || ' ')
        """,
    )
    for is_published, table in TABLES.items()
}
MERGE_PENDING = Prepared("SELECT gin_clean_pending_list('search_published'), gin_clean_pending_list('search_others')")
# By itself, SQLite would merge too many pages of its index at a time.
MERGE = [Prepared(f"INSERT INTO {name} ({name}, rank) VALUES ('merge', {MERGED_PAGES})") for name in TABLES.values()]


# Finding posts


def find(database: Database, query: ListQuery, client: Hashable) -> Page[Any, int | Cursor[int]]:
    """Return a page as `page` does, of posts as they are now, in a thread unless it is quick. Raises Incomplete."""
    if left := settle(database, query):
        raise Incomplete(f"{left} posts wait for the search index", RETRY_SECONDS)
    return page(database, query) if is_quick(query) else database.read_in_thread(client, page, query)


def is_quick(query: ListQuery) -> bool:
    """Return whether a search takes no longer than a few lists: for one word, in an order that the index has."""
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
    """Return the query of the first posts that match. It finds their ids first: SQLite would sort whole documents.

    The index of the words has the order of creation. By a time, all matches are read only if too few of the first
    posts match.
    """
    lists, tables = _lists(status, f"id IN ({DUE})"), [TABLES[each] for each in _indexes(status)]
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
    matches = " OR ".join(f"EXISTS (SELECT 1 FROM {each} WHERE {each} MATCH :match AND rowid = id)" for each in tables)
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
LEXEMES = "array_to_tsvector(string_to_array({}, ' '))"  # which are indexed


def _postgresql_query(order: Order, status: str | None, part: str, by_tag: bool) -> str:
    """Return the query of the first posts that match.

    The index returns all matches, in no order: for a word in half of the posts, half of the posts. So it is read only
    if too few of the first posts in the order match.
    """
    lists = _lists(status, f"id = ANY (ARRAY({DUE}))")
    has_texts, has_lexemes = _conditions(part, by_tag)
    indexed = [f"SELECT post_id FROM search WHERE published = {each} AND {has_lexemes}" for each in _indexes(status)]
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
    each = [
        f"SELECT * FROM (SELECT id, {order.key} FROM post WHERE {each} AND {order.is_before} {first}) AS listed"
        for each in lists
    ]
    return f"SELECT id FROM ({UNION.join(each)}) AS post {first}"


def _conditions(part: str, by_tag: bool) -> tuple[str, str]:
    """Return the conditions for a match: by the texts, and by the index, which does not know the order of words."""
    column, indexed = (TITLE, f"btrim({TITLE})") if part == TITLE else (TEXT, "words")
    has_texts = HAS_TEXTS.format(column)
    has_lexemes = f"{LEXEMES.format(indexed)} @@ :lexemes::tsquery AND {column} LIKE ALL (:sequences::text[])"
    if by_tag:
        has_texts += " AND labels LIKE '% ' || :label || ' %'"
        has_lexemes += f" AND {LEXEMES.format('btrim(labels)')} @@ :label::text::tsquery"
    without_title = f" AND NOT ({HAS_TEXTS.format(TITLE)})" if part == TEXT else ""
    return has_texts + without_title, has_lexemes + without_title
