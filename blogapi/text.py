"""Recognize forbidden, visible and white-space characters, and compare names and texts."""

import re
import unicodedata
from collections.abc import Mapping

import regex

# Control characters, unpaired surrogates, U+FFFE and U+FFFF. They could make a feed invalid, because XML forbids most
# of them.
CONTROL = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
CONTROL_OR_BREAK = re.compile("[\0-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")
FORBIDDEN = "control characters, unpaired surrogates, U+FFFE or U+FFFF"  # in messages
VISIBLE = regex.compile(r"[^\p{Z}\p{Cc}\p{Cf}]")
# Unicode's White_Space. Without this argument, str.strip() would also strip the control characters U+001C to U+001F.
WHITE_SPACE = "".join(filter(str.isspace, map(chr, [*range(0x1C), *range(0x20, 0x3001)])))
# A passage has PASSAGE characters or, in a short text, half of the text, but at least SHORT_PASSAGE characters.
PASSAGE, SHORT_PASSAGE, CHUNK = 200, 20, 50
PIECE, MAX_SEARCHED = 8, 100_000  # in characters; searching a longer text for each piece would take too long
MAX_FOLDED = 600  # maximum number of characters used to compare names; even decomposed tags are shorter


def in_ascii(characters: re.Pattern[str]) -> bytes:
    """Return the ASCII characters that a pattern matches."""
    return "".join(filter(characters.match, map(chr, range(128)))).encode()


def counted(counts: Mapping[str, int]) -> str:
    """Format counts for output, such as `created 3, updated 1`."""
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def lacks_passage(new: str, old: str) -> bool:
    """Return whether a passage of an older text is missing."""
    size = min(CHUNK, 1 + len(old) // 1000)  # Large chunks save time; small ones find a short passage.
    start, end = (
        next((at for at in range(0, len(old), size) if not other.startswith(one[at : at + size], at)), len(old))
        for one, other in ((old, new), (old[::-1], new[::-1]))
    )
    removed, added = old[start : len(old) - end], new[start : max(start, len(new) - end)]
    pieces = [removed[at : at + PIECE] for at in range(0, len(removed), PIECE)]
    missing = {*pieces}
    if len(added) <= MAX_SEARCHED:
        missing.difference_update(added[at : at + PIECE] for at in range(len(added)))
    characters = sum(len(piece) for piece in pieces if piece in missing)
    return characters >= min(PASSAGE, max(SHORT_PASSAGE, len(old) // 2))


def fold(name: str) -> str:
    """Convert a tag to the form used in comparisons: NFC(casefold(NFC(name)))."""
    name = name[:MAX_FOLDED]  # Normalizing a run of combining marks takes quadratic time.
    if name.isascii():
        return name.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
