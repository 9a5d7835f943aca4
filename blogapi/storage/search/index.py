"""The search index: the words of a text, of a post and of a search, and how the index is built.

A word is a run of letters and digits, with the marks that belong to them; case and diacritics make no difference. In
scripts that write no spaces between words each character is a word.

A post is in the index twice under its id, with no word in common, so that each part changes by itself: its text, and
its labels, which are its tags and status. Marks that no word can contain tell them apart:

    fog lake §f §l «fog «§f       the words of title, content and excerpt, their first letters, and the title again
    ¶lake ¶§l ¦draft ¬6c616b65    the words of its tags, their first letters, its status, and each tag to filter by

In SQLite, each word of a published post has one more mark, °: a search among published posts reads no others.
SQLite splits the text exactly between these words: for its `ascii` tokenizer, all other characters are part of a word.
"""

import re
import sqlite3
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

from blogapi.storage import documents
from blogapi.storage.engine import Transaction
from blogapi.storage.errors import Damaged, NeedsThread
from blogapi.text import fold

START = "§"  # before the first letter of a word: merging all words with that letter would take seconds
OF_TITLE = "«"
OF_TAG = "¶"
STATUS = "¦"
TAG = "¬"
PUBLISHED = "°"
BETWEEN = "·"  # between two texts: no sequence of words crosses it
TEXT_FIELDS = ("title", "content", "excerpt")
FIRST_LETTER = itemgetter(0)
# The numbers of rows and words to store for SQLite: 2**49, as varints of its file format
PLENTY = (b"\x81" + 6 * b"\x80" + b"\x00") * 2
LARGE = 64 * 1024  # characters, which take some 25 ms to index
UNICODE = unicodedata.unidata_version  # the version of the tables that decide about words
# Han, Hiragana, Katakana, Hangul, Thai, Lao, Myanmar and Khmer, by their blocks
WITHOUT_SPACES = [
    *(range(0x0E00, 0x0F00), range(0x1000, 0x10A0), range(0x1100, 0x1200), range(0x1780, 0x1800)),
    *(range(0x3005, 0x3008), range(0x3021, 0x302A), range(0x3031, 0x3100), range(0x31F0, 0x3200)),
    *(range(0xA960, 0xA980), range(0xA9E0, 0xAA00), range(0xAA60, 0xAA80), range(0xD7B0, 0xD800)),
    *(range(0x16FF0, 0x17000), range(0x1AFF0, 0x1B170)),
]
LETTERS = "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"  # the same, letters throughout
BEYOND = "\U00010000"  # the first character that takes more than 16 bits
# Combining classes of marks that are part of a letter: kana's voicing, vowels and tones of Asian scripts, the virama
OF_LETTERS = {7, 8, 9, 84, 91, *range(103, 133)}
MAX_MARKS = 4  # of these in a run, as NFKD takes quadratic time for a run
LONGEST = "\ufdfa", "\u0635\u0644\u0649"  # NFKD turns it into 18 characters, and takes seconds for a million
# A large text is split part by part, from space to space if possible, so that other threads can run
PART = 16384  # characters
PARTS = re.compile(rf"(?s).{{1,{PART}}}(?=\s|\Z)|.{{1,{PART}}}")
ASCII_WORDS = "".join(chr(byte).lower() if chr(byte).isalnum() else " " for byte in range(128)).encode().ljust(256)
MAX_REMEMBERED = 255  # characters of a text whose words are remembered


# The words of a text


def _is_dropped(mark: str) -> bool:
    """Return whether a mark is a diacritic, a variation selector or an enclosing one, and not part of a letter."""
    if unicodedata.combining(mark):
        return unicodedata.combining(mark) not in OF_LETTERS
    return unicodedata.category(mark) == "Me" or "\ufe00" <= mark <= "\ufe0f" or mark >= "\U000e0100"


def _charset(characters: Iterable[str]) -> str:
    """Return characters as ranges of a regular expression: one by one, those beyond U+FFFF would make it slow."""
    ranges: list[list[int]] = []
    for code in sorted(map(ord, characters)):
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in ranges)


# Without Han, Hangul, surrogates and private use: each of these characters would lengthen the start
_blocks = range(0x300, 0x3400), range(0xA000, 0xAC00), range(0xFB00, 0x17000), range(0x18D00, 0x1F000)
_marks = [
    mark
    for codes in (*_blocks, range(0xE0100, 0xE01F0))
    for mark in map(chr, codes)
    if unicodedata.category(mark) in ("Mn", "Mc", "Me")
]
_decomposed = {mark: unicodedata.normalize("NFKD", mark) for mark in _marks}
_dropped = [mark for mark in _marks if all(map(_is_dropped, _decomposed[mark]))]
_kept = {*_marks}.difference(_dropped)
_sorted = _charset(["\uff9e", "\uff9f", *(mark for mark in _kept if unicodedata.combining(_decomposed[mark][0]))])
KEPT_MARKS = _charset(_kept)
ALONE = LETTERS + _charset(
    character for codes in WITHOUT_SPACES for character in map(chr, codes) if character.isalnum() or character in _kept
)
DROPPED = re.compile(f"[{_charset(mark for mark in _dropped if mark < BEYOND)}]+")
DROPPED_BEYOND = re.compile(f"[{_charset(mark for mark in _dropped if mark >= BEYOND)}]+")
RUN = re.compile(f"([{_sorted}]{{{MAX_MARKS}}})[{_sorted}]+")
HAS_BEYOND = re.compile(f"[{BEYOND}-\U0010ffff]")
WORD = re.compile(rf"[^\W_{ALONE}]+(?:[{KEPT_MARKS}]+[^\W_{ALONE}]*)*|[{ALONE}]")
STANDS_ALONE = re.compile(f"[{ALONE}]")
# Text in quotes, or a run of words, perhaps with a star at its end
SEQUENCE = re.compile(rf'"([^"]*)"|((?:{WORD.pattern})+)(\*(?![\w*]))?')


def parts(text: str) -> Iterator[list[str]]:
    """Yield the words of a text in their order, those of a part of it at a time: there can be a million."""
    for part in PARTS.findall(text) if len(text) > PART else [text]:
        if part.isascii():
            yield part.encode().translate(ASCII_WORDS).decode().split()
        else:
            yield WORD.findall(_fold(part))


def words(text: str) -> list[str]:
    """Return the words of a text in their order."""
    return [*chain.from_iterable(parts(text))]


def sequences(q: str) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Yield the sequences of words of a search, each with whether its last word is only the beginning of one.

    A sequence is the words in a pair of quotes, or words with nothing between them. A character that is a word by
    itself begins no other.
    """
    for quoted, run, star in SEQUENCE.findall(_fold(q)):
        if sequence := WORD.findall(quoted or run):
            yield tuple(sequence), bool(star) and not STANDS_ALONE.match(sequence[-1])


def _fold(text: str) -> str:
    """Return a text without case and diacritics."""
    text = RUN.sub(r"\1", _without_diacritics(text.replace(*LONGEST)))
    decomposed = unicodedata.normalize("NFKD", text)
    return unicodedata.normalize("NFC", _without_diacritics(decomposed).casefold())


def _without_diacritics(text: str) -> str:
    text = DROPPED.sub("", text)
    return DROPPED_BEYOND.sub("", text) if HAS_BEYOND.search(text) else text


# The words of a post


def check_size(tx: Transaction, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Raise NeedsThread if indexing a change would take long, unless it runs in a thread.

    A character beyond ASCII counts up to 13 times: NFKD makes up to six words of it.
    """
    contents = old.get("content", ""), new.get("content", "")
    if len(contents[0]) + len(contents[1]) <= LARGE // 13 or tx.may_be_slow or not text_differs(old, new):
        return
    if sum(4 * len(text.encode()) - 3 * len(text) for text in contents) > LARGE:
        raise NeedsThread


def text_differs(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Return whether the words of the text differ, or the post became published or unpublished."""
    is_published = [post.get("status") == "published" for post in (old, new)]
    return is_published[0] != is_published[1] or any(old.get(name) != new.get(name) for name in TEXT_FIELDS)


def labels_differ(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Return whether the words of the labels differ."""
    return any(old.get(name) != new.get(name) for name in ("status", "tags"))


def text_words(post: dict[str, Any], between: str = " ") -> str:
    """Return the words of the text of a post, with `between` two of them; nothing for {}."""
    if not post:
        return ""
    texts: list[str] = []
    letters: set[str] = set()
    for name in TEXT_FIELDS:
        text = post.get(name, "")
        joined, first = (_divided if len(text) > MAX_REMEMBERED else _remembered)(text, between)
        texts += [*joined, BETWEEN]
        letters |= first
    return between.join([*texts, *_starts(letters), *_title_words(post["title"])])


def _divided(text: str, between: str) -> tuple[list[str], set[str]]:
    """Return the words of each part of a text, with `between` two of them, and their first letters."""
    texts: list[str] = []
    letters: set[str] = set()
    for found in filter(None, parts(text)):
        texts.append(between.join(found))
        letters.update(map(FIRST_LETTER, found))
    return texts, letters


_remembered = lru_cache(maxsize=256)(_divided)  # A change of a content leaves title and excerpt as they are.


@lru_cache(maxsize=256)
def _title_words(title: str) -> list[str]:
    found = words(title)
    return [OF_TITLE + word for word in [*found, *_starts(map(FIRST_LETTER, found))]]


def label_words(post: dict[str, Any]) -> str:
    """Return the words of the labels of a post; nothing for {}."""
    return _label_words(post["status"], *post["tags"]) if post else ""


@lru_cache(maxsize=256)  # Many posts have the same tags.
def _label_words(status: str, *tags: str, between: str = " ") -> str:
    return between.join(" ".join([*map(_tag_words, tags), STATUS + status]).split(" "))


@lru_cache(maxsize=1024)
def _tag_words(tag: str) -> str:
    found = words(tag)
    return " ".join(
        [*(OF_TAG + word for word in [*found, BETWEEN, *_starts(map(FIRST_LETTER, found))]), tag_label(fold(tag))]
    )


def _starts(letters: Iterable[str]) -> list[str]:
    """Return the words that find others by their first letter. A character that is a word by itself begins no other."""
    return [START + letter for letter in {*letters} if letter.isascii() or not STANDS_ALONE.match(letter)]


def mark(post: dict[str, Any]) -> str:
    """Return the mark before each word of a post in SQLite."""
    return PUBLISHED if post.get("status") == "published" else ""


def marked_labels(post: dict[str, Any]) -> str:
    """Return the words of the labels of a post as SQLite has them."""
    return mark(post) + _label_words(post["status"], *post["tags"], between=f" {mark(post)}")


def all_words(post: dict[str, Any]) -> str:
    """Return all words of a post as SQLite has them; nothing for {}."""
    return f"{mark(post)}{text_words(post, f' {mark(post)}')} {marked_labels(post)}" if post else ""


def tag_label(tag: str) -> str:
    """Return the word by which posts with a tag, folded, are found."""
    return TAG + tag.encode().hex()


# The terms of a search

Sequences = list[tuple[tuple[str, ...], bool]]  # sequences, each with whether its last word is a prefix


class Terms(NamedTuple):
    """What a search asks for; `by_title`, if given, says whether their title alone has all words."""

    sequences: Sequences
    status: str | None
    tag: str | None
    by_title: bool | None = None


def sequences_of(q: str) -> Sequences:
    """Return the different sequences of words that a search looks for in the index."""
    found = dict.fromkeys(sequences(q))
    return [
        ((START + sequence[0],), False) if by_start and len(sequence) == len(sequence[0]) == 1 else (sequence, by_start)
        for sequence, by_start in found
    ]


def phrase(sequence: tuple[str, ...], mark: str) -> str:
    """Return a sequence as the index has it, in the texts with a mark."""
    return " ".join(mark + word for word in sequence)


def has(found: str, terms: Terms) -> bool:
    """Return whether the words of a post, as SQLite has them, are those that a search asks for."""
    scope, padded = PUBLISHED if found.startswith(PUBLISHED) else "", f" {found} "

    def has_all(*marks: str) -> bool:
        return all(
            any(_padded(sequence, by_start, scope + mark) in padded for mark in marks)
            for sequence, by_start in terms.sequences
        )

    if terms.tag and f" {scope}{tag_label(terms.tag)} " not in padded:
        return False
    if terms.by_title:
        return has_all(OF_TITLE)
    return has_all("", OF_TAG) and not (terms.by_title is False and has_all(OF_TITLE))


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
    for post_id, document in connection.execute("SELECT id, CAST(document AS BLOB) FROM post ORDER BY id"):
        with suppress(Damaged):
            row = post_id, all_words(documents.load(document))
            connection.execute("INSERT INTO search (rowid, words) VALUES (?, ?)", row)
    # SQLite fails to remove more words than it has counted, such as a damaged post's. The count has no other use.
    connection.execute("SAVEPOINT counted")  # With this, the number is written.
    connection.execute("UPDATE search_data SET block = ? WHERE id = 1", (PLENTY,))
    connection.execute("RELEASE counted")
    connection.execute("DELETE FROM search_made")
    connection.execute("INSERT INTO search_made VALUES (?)", (UNICODE,))
