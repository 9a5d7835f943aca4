"""The search index: its words for a post, and how it is built.

A post is in it twice under its id, with no word in common, so that each part changes by itself: its text, and its
labels, which are its tags and status. Marks that no word can contain tell them apart:

    fog lake §f §l «fog «§f       the words of title, content and excerpt, their first letters, and the title again
    ¶lake ¶§l ¦draft ¬6c616b65    the words of its tags, their first letters, its status, and each tag to filter by

In SQLite, each word of a published post has one more mark, °: a search among published posts reads no others.
SQLite splits the text exactly between these words: for its `ascii` tokenizer, all other characters are part of a word.
"""

import logging
import sqlite3
from collections.abc import Iterable
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

from blogapi.post import fold
from blogapi.storage import documents
from blogapi.storage.engine import Transaction
from blogapi.storage.errors import Damaged, NeedsThread
from blogapi.storage.search.words import STANDS_ALONE, UNICODE, parts, sequences, words

START = "§"  # before the first letter of a word: merging all words with that letter would take seconds
OF_TITLE = "«"
OF_TAG = "¶"
STATUS = "¦"
TAG = "¬"
PUBLISHED = "°"
BETWEEN = "·"  # between two texts: no sequence of words crosses it
TEXT_FIELDS = ("title", "content", "excerpt")
FIRST = itemgetter(0)
# The numbers of rows and words to store for SQLite: 2**49, as varints of its file format
PLENTY = (b"\x81" + 6 * b"\x80" + b"\x00") * 2
LARGE = 64 * 1024  # characters, which take some 25 ms to index
PROGRESS = 100_000  # posts between two lines about the progress

log = logging.getLogger(__name__)


def check_size(tx: Transaction, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Raise NeedsThread if indexing a change would take long, unless it runs in a thread.

    A character beyond ASCII counts more: NFKD makes up to six words of it.
    """
    if not tx.in_thread and text_differs(old, new):
        contents = [post.get("content", "") for post in (old, new)]
        if sum(4 * len(text.encode()) - 3 * len(text) for text in contents) > LARGE:
            raise NeedsThread


def text_differs(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Return whether the words of the text differ, or the post became published or unpublished."""
    is_published = [post.get("status") == "published" for post in (old, new)]
    return is_published[0] != is_published[1] or any(old.get(name) != new.get(name) for name in TEXT_FIELDS)


def labels_differ(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Return whether the words of the labels differ."""
    return any(old.get(name) != new.get(name) for name in ("status", "tags"))


def text_words(post: dict[str, Any]) -> str:
    """Return the words of the text of a post; nothing for {}."""
    if not post:
        return ""
    texts: list[str] = []
    letters: set[str] = set()
    for name in TEXT_FIELDS:
        for found in parts(post.get(name, "")):
            texts.append(" ".join(found))
            letters.update(map(FIRST, found))
        texts.append(BETWEEN)
    title = words(post["title"])
    return " ".join([*texts, *_starts(letters), *[OF_TITLE + word for word in [*title, *_starts(map(FIRST, title))]]])


def label_words(post: dict[str, Any]) -> str:
    """Return the words of the labels of a post; nothing for {}."""
    if not post:
        return ""
    return " ".join([*map(_tag_words, post["tags"]), STATUS + post["status"]])


@lru_cache(maxsize=1024)  # Many posts have the same tags.
def _tag_words(tag: str) -> str:
    found = words(tag)
    return " ".join([*(OF_TAG + word for word in [*found, BETWEEN, *_starts(map(FIRST, found))]), tag_label(fold(tag))])


def _starts(letters: Iterable[str]) -> list[str]:
    """Return the words that find others by their first letter. A character that is a word by itself begins no other."""
    return [START + letter for letter in {*letters} if letter.isascii() or not STANDS_ALONE.match(letter)]


def marked(post: dict[str, Any], *parts: str) -> str:
    """Return the words in some parts of a post as SQLite has them."""
    joined = " ".join(parts)
    return PUBLISHED + joined.replace(" ", f" {PUBLISHED}") if post.get("status") == "published" else joined


def all_words(post: dict[str, Any]) -> str:
    """Return all words of a post as SQLite has them; nothing for {}."""
    return marked(post, text_words(post), label_words(post)) if post else ""


def tag_label(tag: str) -> str:
    """Return the word by which posts with a tag, folded, are found."""
    return TAG + tag.encode().hex()


# The terms of a search

Wanted = list[tuple[tuple[str, ...], bool]]  # sequences, each with whether its last word is a prefix


class Asked(NamedTuple):
    """The posts that a search asks for; `by_title`, if given, says whether their title alone has all words."""

    looked_for: Wanted
    status: str | None
    tag: str | None
    by_title: bool | None = None


def wanted(q: str) -> Wanted:
    """Return the different sequences of words that a search looks for in the index."""
    found = dict.fromkeys(sequences(q))
    return [
        ((START + sequence[0],), False) if by_start and len(sequence) == len(sequence[0]) == 1 else (sequence, by_start)
        for sequence, by_start in found
    ]


def phrase(sequence: tuple[str, ...], mark: str) -> str:
    """Return a sequence as the index has it, in the texts with a mark."""
    return " ".join(mark + word for word in sequence)


def has(found: str, asked: Asked) -> bool:
    """Return whether the words of a post, as SQLite has them, are those that a search asks for."""
    scope, padded = PUBLISHED if found.startswith(PUBLISHED) else "", f" {found} "

    def has_all(*marks: str) -> bool:
        return all(
            any(_padded(sequence, by_start, scope + mark) in padded for mark in marks)
            for sequence, by_start in asked.looked_for
        )

    if asked.tag and f" {scope}{tag_label(asked.tag)} " not in padded:
        return False
    return (
        has_all(OF_TITLE)
        if asked.by_title
        else has_all("", OF_TAG) and not (asked.by_title is False and has_all(OF_TITLE))
    )


@lru_cache(maxsize=256)  # asked for each post that is looked through
def _padded(sequence: tuple[str, ...], by_start: bool, mark: str) -> str:
    return f" {phrase(sequence, mark)}{'' if by_start else ' '}"


# For all posts


def is_made(connection: sqlite3.Connection) -> bool:
    """Return whether this program would write the same words to the index."""
    return connection.execute("SELECT unicode FROM search_made").fetchone() == (UNICODE,)


def make(connection: sqlite3.Connection) -> None:
    """Rebuild the index in the open transaction, without damaged posts."""
    connection.execute("DELETE FROM recent")
    connection.execute("INSERT INTO search (search) VALUES ('delete-all')")
    (count,) = connection.execute("SELECT count(*) FROM post").fetchone()
    for number, (post_id, document) in enumerate(connection.execute("SELECT id, document FROM post ORDER BY id"), 1):
        try:
            words_of_post = all_words(documents.load(document))
            connection.execute("INSERT INTO search (rowid, words) VALUES (?, ?)", (post_id, words_of_post))
        except Damaged:
            pass
        if number % PROGRESS == 0:
            log.warning("%s of %s posts are indexed", f"{number:,}", f"{count:,}")
    # SQLite fails to remove more words than it has counted, such as a damaged post's. The count has no other use.
    connection.execute("SAVEPOINT counted")  # With this, the number is written.
    connection.execute("UPDATE search_data SET block = ? WHERE id = 1", (PLENTY,))
    connection.execute("RELEASE counted")
    connection.execute("DELETE FROM search_made")
    connection.execute("INSERT INTO search_made VALUES (?)", (UNICODE,))
