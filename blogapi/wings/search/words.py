"""The words of a text and of a search.

A word is a run of letters and digits, with the marks that belong to them; case, diacritics and strokes through letters
make no difference. In scripts that write no spaces between words each character is a word.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import partial
from operator import itemgetter
from typing import Any

import regex

from blogapi.text import fold

compiled = partial(regex.compile, flags=regex.V1)  # with -- and && between sets of characters

# Scripts without spaces between words, and the marks that the two kana share
APART = r"\p{Thai}\p{Lao}\p{Myanmar}\p{Khmer}\p{Hangul}\p{Hiragana}\p{Katakana}\p{Han}ー\u3099\u309a"
SINGLE = rf"[[\p{{L}}\p{{N}}\p{{M}}]&&[{APART}]]"  # a character that is a word
WORD_PATTERN = rf"[[\p{{L}}\p{{N}}]--[{APART}]][[\p{{L}}\p{{N}}\p{{M}}]--[{APART}]]*|{SINGLE}"
WORD, STANDS_ALONE = compiled(WORD_PATTERN), compiled(SINGLE)
LETTER, MARK = compiled(r"[\p{L}\p{N}]"), compiled(r"\p{M}")
# Text in quotes, or a run of words, perhaps with a star at its end
SEQUENCE = compiled(rf'"([^"]*)"|((?:{WORD_PATTERN})+)(\*(?![\w*]))?')
# Combining classes of marks that are part of a letter: kana's voicing, vowels and tones of Asian scripts, the virama
OF_LETTERS = "".join(rf"\p{{ccc={each}}}" for each in (0, 7, 8, 9, 84, 91, 103, 107, 118, 122, 129, 130, 132))
DIACRITICS = compiled(rf"[[\p{{M}}--[{OF_LETTERS}]]\p{{Me}}\p{{Variation_Selector}}]+")
# Letters with a stroke or bar, which Unicode does not decompose, and the letters without it
STROKES = dict(zip("ⱥƀȼđɇǥħɨɉꝁłƚⱡøɵᵽɍꞩŧⱦʉɏƶғҝҟұҹӿ", "abcdeghijklllooprsttuyzгккүчх", strict=True))
STROKED = re.compile(f"[{''.join(STROKES)}]")  # four times as fast as regex, ten times as str.translate
# Marks that NFKD sorts, in quadratic time, and characters that it turns into such marks
SORTED = r"[[\p{M}--\p{ccc=0}]\u0f73\u0f75\u0f81\uff9e\uff9f]"
LONG_RUN = compiled(f"({SORTED}{{4}}){SORTED}+")
LONGEST = "\ufdfa", "\u0635\u0644\u0649"  # NFKD turns it into 18 characters, and takes seconds for a million
MAX_WORD = 500  # characters, as PostgreSQL indexes at most 2,046 bytes
MAX_INDEXED = 100_000  # characters of a content, both as it is and as its words are stored
MAX_DIFFERENT = 20_000  # words of a post: each takes as long to write as ten that repeat
START = "§"  # before the first letter of a word: merging all words with that letter would take seconds
FIRST = itemgetter(0)  # letter of a word
BETWEEN = "·"  # between two texts: no sequence of words crosses it
# A text is split part by part, from space to space if possible, or within no word.
PARTS = compiled(r"(?s).{1,16384}(?=\s|\Z)|.{1,16384}(?=[^\p{L}\p{N}\p{M}]|\p{Han})|.{1,16384}")
ASCII_WORDS = "".join(chr(byte).lower() if chr(byte).isalnum() else " " for byte in range(128)).encode().ljust(256)


class Table(dict[int, str | None]):
    """What characters become in `str.translate`, which takes a tenth of the time of a pattern."""

    size = 30_000  # characters that are remembered, in 6 MB: more than one text in Chinese has

    def __init__(self, find: Callable[[str], str | None]):
        super().__init__()
        self._find = find

    def __missing__(self, code: int) -> str | None:
        if len(self) >= self.size:
            self.clear()
        found = self[code] = self._find(chr(code))
        return found


def _between_spaces(character: str) -> str:
    if STANDS_ALONE.match(character):
        return f" {character} "
    if MARK.match(character):
        seen_marks.add(character)
        return character
    return character if LETTER.match(character) else " "


seen_marks: set[str] = set()  # those in BETWEEN_SPACES, at least
WITHOUT_DIACRITICS = Table(lambda character: None if DIACRITICS.match(character) else character)
BETWEEN_SPACES = Table(_between_spaces)


# The words of a text


def parts(text: str) -> Iterator[list[str]]:
    """Yield the words of a text in their order, those of a part of it at a time: there can be 100,000."""
    for part in PARTS.findall(text):
        if part.isascii():
            yield part.encode().translate(ASCII_WORDS).decode().split()
        else:
            yield _split(_fold(part))


def _fold(text: str) -> str:
    """Return a text without case, diacritics and strokes."""
    decomposed = unicodedata.normalize("NFKD", LONG_RUN.sub(r"\1", DIACRITICS.sub("", text.replace(*LONGEST))))
    folded = decomposed.translate(WITHOUT_DIACRITICS).casefold()
    return unicodedata.normalize("NFC", STROKED.sub(lambda match: STROKES[match[0]], folded))


def _split(text: str) -> list[str]:
    """Return the words of a folded text as WORD finds them."""
    words = text.translate(BETWEEN_SPACES).split()
    return words if seen_marks.isdisjoint(map(FIRST, set(words))) else WORD.findall(text)  # No word begins with a mark.


# The words of a search


Sequence = tuple[str, bool]  # words with a space between two, and whether the last is only the beginning of one


def sequences(q: str) -> Iterator[Sequence]:
    """Yield the sequences of words of a search: the words in a pair of quotes, or words with nothing between them.

    A character that is a word by itself begins no other.
    """
    for quoted, run, star in SEQUENCE.findall(_fold(q)):
        if words := [word[:MAX_WORD] for word in WORD.findall(quoted or run)]:
            yield " ".join(words), bool(star) and not STANDS_ALONE.match(words[-1])


def of_search(q: str) -> list[Sequence]:
    """Return the different sequences that a search looks for in the index."""
    found = dict.fromkeys(sequences(q))
    return [(START + text, False) if by_start and len(text) == 1 else (text, by_start) for text, by_start in found]


# The words of a post


def of_post(post: dict[str, Any], pause: Callable[[], None] = lambda: None) -> tuple[str, str, str]:
    """Return the words of the title of a post, those of its other texts and tags, and its labels, one for each tag.

    `pause` runs after each part of a text.
    """
    texts = [post.get("excerpt", ""), *post["tags"], post["content"][:MAX_INDEXED]]
    return _indexed(pause, post["title"]), _indexed(pause, *texts), " ".join(map(label, post["tags"]))


def _indexed(pause: Callable[[], None], *texts: str) -> str:
    """Return the words of some texts, and the first letters by which they are found."""
    found: list[str] = []
    different: set[str] = set()
    for text in texts:
        rest = MAX_INDEXED
        for part in parts(text):
            words = [word[:MAX_WORD] for word in part]
            different.update(words)
            found.append(" ".join(words))
            rest -= len(found[-1]) - len(words)
            pause()
            if rest < 0 or len(different) > MAX_DIFFERENT:
                break
        found.append(BETWEEN)
    # A character that is a word by itself begins no other.
    letters = set(map(FIRST, different))
    found += (START + each for each in letters if each.isascii() or not STANDS_ALONE.match(each))
    return " ".join(filter(None, found))


def label(tag: str) -> str:
    """Return the word that stands for a folded tag, or one that no post has for the tag ""."""
    return fold(tag).encode().hex() or "none"
