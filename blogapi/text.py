"""Recognize forbidden, visible and white-space characters, and compare names and texts."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Mapping
from typing import AnyStr

import regex

# Control characters, unpaired surrogates, U+FFFE and U+FFFF. They could make a feed invalid, because XML forbids most
# of them.
CONTROL = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
CONTROL_OR_BREAK = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")
FORBIDDEN = "control characters, unpaired surrogates, U+FFFE or U+FFFF"  # in messages
VISIBLE = regex.compile(r"[^\p{Z}\p{Cc}\p{Cf}]")
# Unicode's White_Space. Without this argument, str.strip() would also strip the control characters U+001C to U+001F.
WHITE_SPACE = "".join(filter(str.isspace, map(chr, [*range(0x1C), *range(0x20, 0x3001)])))
# A passage is PASSAGE characters long or, in a short text, half of the text, but at least SHORT_PASSAGE characters.
PASSAGE, SHORT_PASSAGE = 200, 20
PIECE, MAX_SEARCHED = 8, 100_000  # in characters; searching a longer text for each piece would take too long
MAX_FOLDED = 600  # maximum number of characters used to compare names; even decomposed tags are shorter


def in_ascii(characters: re.Pattern[str]) -> bytes:
    """Return the ASCII characters that a pattern matches."""
    return "".join(filter(characters.match, map(chr, range(128)))).encode()


def counted(counts: Mapping[str, int]) -> str:
    """Format counts for output, such as `created 3, updated 1`."""
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def equal_start(one: AnyStr, other: AnyStr) -> int:
    """Return the size of the beginning that two strings share."""
    sizes = range(1, min(len(one), len(other)) + 1)
    return bisect_left(sizes, True, key=lambda size: one[:size] != other[:size])


def lacks_passage(new: str, old: str) -> bool:
    """Return whether a newer text lacks a passage of an older one."""
    needed = min(PASSAGE, max(SHORT_PASSAGE, len(old) // 2))
    start = equal_start(new, old)
    end = equal_start(new[start:][::-1], old[start:][::-1])
    removed, added = old[start : len(old) - end], new[start : len(new) - end]
    if len(added) > MAX_SEARCHED or len(removed) - len(added) >= needed:
        return len(removed) >= needed
    pieces = [removed[at : at + PIECE] for at in range(0, len(removed), PIECE)]
    missing = {*pieces}.difference(added[at : at + PIECE] for at in range(len(added)))
    return sum(len(piece) for piece in pieces if piece in missing) >= needed


def fold(name: str) -> str:
    """Convert a tag to the form used in comparisons: NFC(casefold(NFC(name)))."""
    name = name[:MAX_FOLDED]  # Normalizing a run of combining marks takes quadratic time.
    if name.isascii():
        return name.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
