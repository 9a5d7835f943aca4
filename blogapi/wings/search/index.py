"""The search index: the queue of posts to index, and the words of those that are indexed.

A write only enqueues the post. A search first indexes what is pending, as the background work does several times a
second. So a GET may write; otherwise it would find too little.

The words of published posts are kept apart from those of all others. A search among published posts indexes and reads
no others; otherwise response times would leak that they exist.
"""

import time
from contextlib import suppress
from typing import Any, NamedTuple

from peewee import SQL

from blogapi import documents
from blogapi.posts import publication
from blogapi.posts.lists import ListQuery
from blogapi.storage.database import Database, locked
from blogapi.storage.engine import Param, Prepared, Reader, Transaction
from blogapi.storage.errors import RETRY_SECONDS, Damaged, Unavailable
from blogapi.storage.models import DOCUMENT, Post
from blogapi.text import fold
from blogapi.wings.search import words

FIELDS = ("title", "content", "excerpt", "tags", "status")  # the fields that the index depends on
INDEX_SECONDS, PENDING_POSTS = 1.0, 5000  # a search indexes at most this many pending posts, for this long
INDEXED_POSTS = 64  # at most this many in one transaction, because other writers wait for it
LARGE = 64 * 1024  # a transaction takes no more posts after this many bytes, and their words are found in a thread
PAUSE_SECONDS = 0.001  # between two transactions: a sleep of 0 would not let the loop poll its sockets
MERGED_PAGES = 16  # pages of SQLite's index merged at a time: 5 ms
TABLES = {True: "search_published", False: "search_others"}  # SQLite's tables, by whether they contain published posts


Texts = tuple[str, str, str]  # as `words.of_post` returns them


class Incomplete(Unavailable):
    """Some posts are not indexed yet, so a search would miss them."""

    reason = "posts wait for the search index"


def enqueue(
    tx: Transaction, post_id: int, old: dict[str, Any], new: dict[str, Any], *, only_tags: bool = False
) -> None:
    """Queue a post for the index if its words changed; {} stands for no post. Unchanged fields can be left out.

    `only_tags` marks a site-wide tag change, for which `enqueue_tag` records the tag.
    """
    if any(old.get(name) != new.get(name) for name in FIELDS):
        published = "published" in (old.get("status"), new.get("status"))
        tx.defer(ENQUEUE, only_tags=only_tags, published=published, id=post_id)


def enqueue_tag(tx: Transaction, name: str) -> None:
    """Record a site-wide tag change. Searches for its words wait until its posts are indexed."""
    tx.defer(ENQUEUE_TAG, name=name)


def index_pending(database: Database, query: ListQuery | None = None, seconds: float = INDEX_SECONDS) -> int:
    """Index the posts that a search waits for, or all pending ones, in short transactions, for at most `seconds`.

    Return at least how many remain. Raises Incomplete if the database cannot be written until then.
    """
    until = time.monotonic() + seconds
    pending = _pending(database, query)
    more = len(pending) >= PENDING_POSTS
    while pending and time.monotonic() < until:
        try:
            with locked(database.indexing, until):
                _index_batch(database, until, pending)
        except Unavailable as error:
            raise Incomplete(error, RETRY_SECONDS) from error
        time.sleep(PAUSE_SECONDS)
    return len(pending) + more


def _pending(database: Database, query: ListQuery | None) -> list[int]:
    """Return the posts that a search waits for; those with only a tag change count only if it looks for that tag."""
    published = query is not None and query.status == "published"
    values = {"published": published, "now": database.now, "limit": PENDING_POSTS}
    rows = list(database.rows(PENDING, **values))
    pending = [post_id for post_id, _ in rows if post_id]
    if any(query is None or _concerns(query, tag) for post_id, tag in rows if not post_id):
        pending.extend(post_id for (post_id,) in database.rows(RETAGGED, **values))
    return pending


def _concerns(query: ListQuery, tag: str) -> bool:
    """Return whether a search can find other posts once a tag has changed."""
    sought = tuple(word for text, _ in words.sequences(query.q) for word in text.split())
    return query.tag == fold(tag) or any(word.startswith(sought) for word in words.split(tag))


def _index_batch(database: Database, until: float, pending: list[int]) -> None:
    """Index the first of some pending posts, and remove them from the list; one that changes meanwhile stays in it."""
    post_id, state = pending[0], _state(database, pending[0])
    if len(state.document or b"") <= LARGE:
        del pending[: database.write_alone(until, _index_some, pending[:INDEXED_POSTS])]
    else:
        texts = database.engine.loop.run_in_thread(lambda: _words_of(state))
        if database.write_alone(until, _index_large, post_id, state, texts):
            del pending[0]
    if database.dialect == "postgresql":
        with suppress(Unavailable):  # PostgreSQL would do this in a later transaction.
            database.row(MERGE_PENDING)


class State(NamedTuple):
    """What the index entry of a post depends on."""

    status: str = ""  # "" if the post is deleted
    is_due: bool = False
    is_queued: bool = True  # else another search has indexed it
    document: bytes | None = b""  # None if it is damaged


def _state(reader: Reader, post_id: int) -> State:
    return State(*(reader.row(STATE, id=post_id, now=reader.now) or ()))


def _index_some(tx: Transaction, pending: list[int]) -> int:
    """Index the first of these posts, up to a large one; return how many."""
    count = size = 0
    for post_id in pending:
        state = _state(tx, post_id)
        size += len(state.document or b"")
        if size > LARGE:
            break
        count += 1
        if state.is_queued or state.is_due:
            _index(tx, post_id, state, _words_of(state))
    _merge(tx)
    return count


def _index_large(tx: Transaction, post_id: int, state: State, texts: Texts) -> bool:
    """Index a post whose words were found; return False if it has changed since."""
    if _state(tx, post_id) != state:
        return False
    if state.is_queued or state.is_due:
        _index(tx, post_id, state, texts)
    _merge(tx)
    return True


def _merge(tx: Transaction) -> None:
    for statement in (*MERGE, FORGET_TAGS) if tx.dialect == "sqlite" else (FORGET_TAGS,):
        tx.defer(statement)


def _words_of(state: State) -> Texts:
    """Return the words of a post as `words.of_post` does; a damaged one has none."""
    with suppress(Damaged):
        return words.of_post(documents.load(state.document))
    return "", "", ""


def _index(tx: Transaction, post_id: int, state: State, texts: Texts) -> None:
    """Replace the words of a post in the index."""
    for statement in (FORGET, *REMOVE):
        tx.defer(statement, id=post_id)
    if state.status:
        is_published, (title, text, labels) = state.status == "published" or bool(state.is_due), texts
        values = {"id": post_id, "title": title, "text": text, "labels": labels, "published": is_published}
        if tx.dialect == "postgresql":
            values["words"] = " ".join({*title.split(), *text.split()})
        tx.defer(ADD[is_published], **values)


ENQUEUE = Prepared("INSERT INTO search_pending VALUES (:only_tags, :published, :id) ON CONFLICT DO NOTHING")
ENQUEUE_TAG = Prepared("INSERT INTO search_retagged VALUES (:name) ON CONFLICT DO NOTHING")
OF_POST = "FROM search_pending WHERE only_tags IN (FALSE, TRUE) AND published IN (FALSE, TRUE) AND post_id = :id"
FORGET = Prepared(f"DELETE {OF_POST}")
FORGET_TAGS = Prepared(
    "DELETE FROM search_retagged WHERE NOT EXISTS (SELECT 1 FROM search_pending WHERE only_tags = TRUE)"
)
# The names of tags that were changed site-wide; the queued posts; and due posts that are not indexed as published yet:
# they count as published before the database says so
QUEUED = """
    SELECT 0, name FROM search_retagged UNION ALL
    SELECT post_id, '' FROM search_pending WHERE only_tags = FALSE AND published >= :published UNION ALL
    SELECT post_id, '' FROM schedule WHERE published_at <= :now AND NOT EXISTS ({}) LIMIT :limit
"""
PENDING = Prepared(
    sqlite=QUEUED.format("SELECT 1 FROM search_published WHERE rowid = schedule.post_id"),
    postgresql=QUEUED.format("SELECT 1 FROM search WHERE search.post_id = schedule.post_id AND published"),
)
RETAGGED = Prepared(
    "SELECT post_id FROM search_pending WHERE only_tags = TRUE AND published >= :published LIMIT :limit"
)
_is_queued = SQL(f"EXISTS (SELECT 1 {OF_POST})")
STATE = Prepared(Post.select(Post.status, publication.is_due, _is_queued, DOCUMENT).where(Post.id == Param("id")))
REMOVE = [
    Prepared(sqlite=f"DELETE FROM {table} WHERE rowid = :id", postgresql="DELETE FROM search WHERE post_id = :id")
    for table in TABLES.values()
]
# In PostgreSQL, each word has a space on both sides, the text includes the title, and `words` has each word once.
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
