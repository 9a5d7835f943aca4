"""The words of a text and of a search.

A word is a run of letters and digits, with the marks that belong to them; case and diacritics make no difference. In
scripts that write no spaces between words each character is a word.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any

from blogapi.text import fold

# The blocks of scripts without spaces between words: Thai, Lao, Myanmar and Khmer; Hangul and kana; Han
BLOCKS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\ua9e0-\ua9ff\uaa60-\uaa7f"
BLOCKS += "\u1100-\u11ff\ua960-\ua97f\uac00-\ud7ff\u3031-\u30ff\u31f0-\u31ff\U0001aff0-\U0001b16f"
BLOCKS += "\u3005-\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00016ff0-\U00016fff\U00020000-\U0003ffff"
BEYOND = "\U00010000"  # the first character that takes more than 16 bits
# Combining classes of marks that are part of a letter: kana's voicing, vowels and tones of Asian scripts, the virama
OF_LETTERS = {7, 8, 9, 84, 91, *range(103, 133)}
LONGEST = "\ufdfa", "\u0635\u0644\u0649"  # NFKD turns it into 18 characters, and takes seconds for a million
MAX_WORD = 500  # characters, as PostgreSQL indexes at most 2,046 bytes
START = "§"  # before the first letter of a word: merging all words with that letter would take seconds
BETWEEN = "·"  # between two texts: no sequence of words crosses it
# A large text is split part by part, from space to space if possible, so that other threads can run.
PARTS = re.compile(r"(?s).{1,16384}(?=\s|\Z)|.{1,16384}")
ASCII_WORDS = "".join(chr(byte).lower() if chr(byte).isalnum() else " " for byte in range(128)).encode().ljust(256)


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
DROPPED = re.compile(f"[{_charset(_dropped)}]+")
DROPPED_WITHIN = re.compile(f"[{_charset(mark for mark in _dropped if mark < BEYOND)}]+")  # takes half of the time
HAS_BEYOND = re.compile(f"[{BEYOND}-\U0010ffff]")
RUN = re.compile(f"([{_sorted}]{{4}})[{_sorted}]+")  # of marks, for which NFKD takes quadratic time
STANDS_ALONE = re.compile(rf"(?=\w|[{KEPT_MARKS}])[{BLOCKS}]")
WORD = re.compile(rf"[^\W_{BLOCKS}]+(?:[{KEPT_MARKS}]+[^\W_{BLOCKS}]*)*|{STANDS_ALONE.pattern}")
# Text in quotes, or a run of words, perhaps with a star at its end
SEQUENCE = re.compile(rf'"([^"]*)"|((?:{WORD.pattern})+)(\*(?![\w*]))?')


def parts(text: str) -> Iterator[list[str]]:
    """Yield the words of a text in their order, those of a part of it at a time: there can be a million."""
    for part in PARTS.findall(text):
        if part.isascii():
            yield part.encode().translate(ASCII_WORDS).decode().split()
        else:
            yield WORD.findall(_fold(part))


def _fold(text: str) -> str:
    """Return a text without case and diacritics."""
    dropped = DROPPED if HAS_BEYOND.search(text) else DROPPED_WITHIN
    decomposed = unicodedata.normalize("NFKD", RUN.sub(r"\1", dropped.sub("", text.replace(*LONGEST))))
    return unicodedata.normalize("NFC", dropped.sub("", decomposed).casefold())


# The words of a search


Sequence = tuple[str, bool]  # words with a space between two, and whether the last is only the beginning of one


def sequences(q: str) -> Iterator[Sequence]:
    """Yield the sequences of words of a search: the words in a pair of quotes, or words with nothing between them.

    A character that is a word by itself begins no other.
    """
    for quoted, run, star in SEQUENCE.findall(_fold(q)):
        if words := WORD.findall(quoted or run):
            yield " ".join(words), bool(star) and not STANDS_ALONE.match(words[-1])


def of_search(q: str) -> list[Sequence]:
    """Return the different sequences that a search looks for in the index."""
    found = dict.fromkeys(sequences(q))
    return [(START + text, False) if by_start and len(text) == 1 else (text, by_start) for text, by_start in found]


# The words of a post


def of_post(post: dict[str, Any]) -> tuple[str, str, str]:
    """Return the words of the title of a post, those of its other texts and tags, and its labels, one for each tag."""
    texts = [post["content"], post.get("excerpt", ""), *post["tags"]]
    return _indexed(post["title"]), _indexed(*texts), " ".join(map(label, post["tags"]))


def _indexed(*texts: str) -> str:
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
    """Return the word that stands for a folded tag, or one that no post has for the tag ""."""
    return fold(tag).encode().hex() or "none"
