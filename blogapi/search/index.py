"""The index of the search: the words of posts. It follows their changes.

A write only notes the post. A search indexes the noted posts first, and the background work does so several times a
second. The words of published posts are apart from those of all others.
"""

import time
from contextlib import suppress
from typing import Any

from blogapi.posts import documents, publication
from blogapi.search.words import STANDS_ALONE, parts
from blogapi.storage.database import Database
from blogapi.storage.engine import Param, Prepared, Transaction
from blogapi.storage.errors import Damaged, NeedsThread
from blogapi.storage.models import DOCUMENT, Post
from blogapi.text import fold

FIELDS = ("title", "content", "excerpt", "tags", "status")  # that the index depends on
START = "§"  # before the first letter of a word: merging all words with that letter would take seconds
BETWEEN = "·"  # between two texts: no sequence of words crosses it
MAX_WORD = 500  # characters, as PostgreSQL indexes at most 2,046 bytes
INDEXED_POSTS, INDEXED_SECONDS = 32, 0.005  # in one transaction, as others wait for it
PAUSE_SECONDS = 0.001  # between two transactions: a sleep of 0 would not let the loop poll its sockets
LARGE = 32 * 1024  # bytes of a post that is indexed in a thread
SETTLE_SECONDS, SETTLED_POSTS = 1.0, 5000  # in and of which a search indexes what was noted
MERGED_PAGES = 16  # at a time, of SQLite's index: 5 ms
TABLES = {True: "search_published", False: "search_others"}  # of SQLite, by whether they have published posts


def note(tx: Transaction, post_id: int, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Note that the words of a post changed; {} stands for no post. Fields that stay can be left out."""
    if any(old.get(name) != new.get(name) for name in FIELDS):
        tx.defer(NOTE, published="published" in (old.get("status"), new.get("status")), id=post_id)


NOTE = Prepared("INSERT INTO search_pending (published, post_id) VALUES (:published, :id) ON CONFLICT DO NOTHING")


def settle(database: Database, only_published: bool = False, seconds: float = SETTLE_SECONDS) -> int:
    """Index the posts that are noted by now, in short transactions, for some seconds; return how many are left."""
    until = time.monotonic() + seconds
    pending = database.rows(PENDING, published=only_published, now=database.now, limit=SETTLED_POSTS)
    noted = [post_id for (post_id,) in pending]
    count = 0
    while count < len(noted) and time.monotonic() < until:
        count += database.write(_index_some, noted[count : count + INDEXED_POSTS])
        time.sleep(PAUSE_SECONDS)
    return database.row(COUNT_PENDING)[0] if count < len(noted) or count == SETTLED_POSTS else 0


# A post whose time has come counts as published before it is.
PENDING = Prepared(
    **{
        dialect: f"""
        SELECT post_id FROM search_pending WHERE published >= :published UNION ALL
        SELECT post_id FROM schedule WHERE published_at <= :now AND NOT EXISTS (SELECT 1 FROM {indexed}) LIMIT :limit
        """
        for dialect, indexed in {
            "sqlite": "search_published WHERE rowid = schedule.post_id",
            "postgresql": "search WHERE search.post_id = schedule.post_id AND published",
        }.items()
    }
)
COUNT_PENDING = Prepared("SELECT count(*) FROM search_pending")


def _index_some(tx: Transaction, noted: list[int]) -> int:
    """Index the first of some noted posts; return how many. Raises NeedsThread if the first one is large."""
    until, count = time.monotonic() + INDEXED_SECONDS, 0
    for post_id in noted:
        status, is_due, document = tx.row(STATE, id=post_id, now=tx.now) or ("", False, b"")
        is_large = len(document or b"") > LARGE
        if count and (is_large or time.monotonic() > until):
            break
        if is_large and not tx.may_be_slow:
            raise NeedsThread
        if tx.execute(FORGET, id=post_id) or is_due:  # else another search has indexed it meanwhile
            _index(tx, post_id, status, bool(is_due), document)
        count += 1
    for statement in MERGE if tx.dialect == "sqlite" else ():
        tx.execute(statement)
    return count


STATE = Prepared(Post.select(Post.status, publication.is_due, DOCUMENT).where(Post.id == Param("id")))
FORGET = Prepared("DELETE FROM search_pending WHERE published IN (FALSE, TRUE) AND post_id = :id")


def _index(tx: Transaction, post_id: int, status: str, is_due: bool, document: bytes | None) -> None:
    """Replace the words of a post in the index; a damaged one has none."""
    for statement in REMOVE:
        tx.defer(statement, id=post_id)
    if status:
        title = text = labels = ""
        with suppress(Damaged):
            title, text, labels = indexed(documents.load(document))
        is_published = status == "published" or is_due
        tx.defer(ADD[is_published], id=post_id, title=title, text=text, labels=labels, published=is_published)


REMOVE = [
    Prepared(
        sqlite=f"DELETE FROM {table} WHERE rowid = :id",
        postgresql=f"DELETE FROM search WHERE post_id = :id AND published = {is_published}",
    )
    for is_published, table in TABLES.items()
]
# PostgreSQL has a space before and after each word.
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


def indexed(post: dict[str, Any]) -> tuple[str, str, str]:
    """Return the words of the title of a post, those of its other texts and tags, and its labels, one for each tag."""
    texts = [post["content"], post.get("excerpt", ""), *post["tags"]]
    return _words(post["title"]), _words(*texts), " ".join(map(label, post["tags"]))


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


def label(tag: str) -> str:
    """Return the word that stands for a tag."""
    return fold(tag).encode().hex()
