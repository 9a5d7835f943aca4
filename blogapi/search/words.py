"""The words of a text and of a search.

A word is a run of letters and digits, with the marks that belong to them; case and diacritics make no difference. In
scripts that write no spaces between words each character is a word.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import chain

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
