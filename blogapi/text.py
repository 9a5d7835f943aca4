"""Recognize forbidden, visible and white-space characters, and compare names, texts and lines."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Mapping
from difflib import unified_diff
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
CONTEXT = 2  # number of unchanged lines shown before and after a change
MAX_COMPARED = 300  # maximum number of lines compared one by one, because the comparison takes quadratic time
MAX_LINES, MAX_LINE, MAX_CHARACTERS = 2000, 2000, 200_000  # limits on the lines shown, their length, and the total
# The kind and text of each line. Kinds: " " unchanged, "-" removed, "+" added, "@" lines skipped.
Lines = list[tuple[str, str]]
MAX_FOLDED = 600  # maximum number of characters used to compare names; even decomposed tags are shorter


def in_ascii(characters: re.Pattern[str]) -> bytes:
    """Return the ASCII characters that a pattern matches."""
    return "".join(filter(characters.match, map(chr, range(128)))).encode()


def with_line_feeds(text: str) -> str:
    """Convert the line breaks in a string to LF, as browsers do in a form."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def counted(counts: Mapping[str, int]) -> str:
    """Format counts for output, such as `created 3, updated 1`."""
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def equal_start(one: AnyStr, other: AnyStr) -> int:
    """Return the size of the beginning that two strings share."""
    sizes = range(1, min(len(one), len(other)) + 1)
    return bisect_left(sizes, True, key=lambda size: one[:size] != other[:size])


def is_part_of(new: str, old: str) -> bool:
    """Return whether a newer text is an older one without one of its passages."""
    return len(new) <= len(old) and old.endswith(new[equal_start(new, old) :])


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


def changed_lines(old: str, new: str) -> Lines:
    """Return the removed and added lines with their kinds, and a few unchanged lines around them.

    To save memory, only the part between the equal lines at both ends is split, and it is split as bytes, because a
    single emoji makes a string four times as large. If that part is long, all its lines are reported as changed.
    """
    if old == new:
        return []
    before, after = (f"\n{text}\n".encode() for text in (old, new))
    start, end = equal_ends(before, after)
    parts = (text[start : len(text) - end].split(b"\n", MAX_LINES + 1)[1:] for text in (before, after))
    removed, added = ([line.decode() for line in lines] for lines in parts)
    changes = [*(f"-{line}" for line in removed), *(f"+{line}" for line in added)]
    if max(len(removed), len(added)) <= MAX_COMPARED:
        changes = list(unified_diff(removed, added, n=CONTEXT, lineterm=""))[3:]  # without the header lines
    above = before[:start].rsplit(b"\n", CONTEXT)[1:]
    below = before[len(before) - end : -1].split(b"\n", CONTEXT + 1)[1 : CONTEXT + 1]
    same_above, same_below = ([f" {line.decode()}" for line in lines] for lines in (above, below))
    lines: Lines = []
    left = MAX_CHARACTERS
    for line in [*same_above, *changes, *same_below]:
        if len(lines) == MAX_LINES or left <= 0:
            return [*lines, ("@", "")]
        text = line[1:] if len(line) <= MAX_LINE else f"{line[1:MAX_LINE]}…"
        lines.append((line[0], "" if line[0] == "@" else text))
        left -= len(text)
    return lines


def equal_ends(old: bytes, new: bytes) -> tuple[int, int]:
    """Return the sizes, in bytes, of the lines that two strings share at the start and at the end."""
    start = old.rfind(b"\n", 0, equal_start(old, new))
    equal = equal_start(old[start:][::-1], new[start:][::-1])
    return start, len(old) - old.find(b"\n", len(old) - equal)


def fold(name: str) -> str:
    """Convert a tag to the form used in comparisons: NFC(casefold(NFC(name)))."""
    name = name[:MAX_FOLDED]  # Normalizing a run of combining marks takes quadratic time.
    if name.isascii():
        return name.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())
