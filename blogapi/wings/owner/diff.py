"""The lines that differ between two texts."""

from collections.abc import Iterable
from difflib import unified_diff
from itertools import chain, islice, takewhile
from operator import eq

CONTEXT = 2  # equal lines that are shown around a change
MAX_COMPARED = 300  # lines of a text: the time grows quadratically
MAX_LINES, MAX_LINE, MAX_CHARACTERS = 2000, 2000, 200_000  # shown: lines, characters of each, and in all
KINDS = {" ": "same", "-": "removed", "+": "added", "@": "skipped"}


def changed_lines(old: str, new: str) -> list[tuple[str, str]]:
    """Return the removed and added lines, each after its kind, with a few equal lines around them.

    Equal lines at both ends are skipped first. If what remains is long, all of it counts as removed and added.
    """
    if old == new:
        return []
    before, after = old.split("\n"), new.split("\n")
    start = sum(takewhile(bool, map(eq, before, after)))
    end = sum(takewhile(bool, map(eq, reversed(before[start:]), reversed(after[start:]))))
    is_short = max(len(before), len(after)) - start - end <= MAX_COMPARED
    context = CONTEXT if is_short else 0
    start, end = max(0, start - context), max(0, end - context)
    before, after = before[start : len(before) - end], after[start : len(after) - end]
    if is_short:
        signed: Iterable[str] = islice(unified_diff(before, after, n=CONTEXT, lineterm=""), 3, None)  # without headers
    else:
        signed = chain((f"-{line}" for line in before), (f"+{line}" for line in after))
    lines: list[tuple[str, str]] = []
    left = MAX_CHARACTERS
    for line in signed:
        if len(lines) == MAX_LINES or left <= 0:
            return [*lines, ("skipped", "")]
        text = line[1:] if len(line) <= MAX_LINE else f"{line[1:MAX_LINE]}…"
        lines.append((KINDS[line[0]], "" if line[0] == "@" else text))
        left -= len(text)
    return lines
