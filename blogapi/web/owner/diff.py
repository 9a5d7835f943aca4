"""The lines that differ between two texts."""

from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import islice

CONTEXT = 2  # equal lines that are shown around a change
MAX_COMPARED = 300  # lines of a text: the time grows with the square
MAX_SHOWN = 2000

Line = tuple[str, str]  # "same", "removed", "added" or "skipped", and the text


def changed_lines(old: str, new: str) -> list[Line]:
    """Return the lines that were removed and added, with some around them.

    Equal lines at both ends are found at once. A long part between them counts as removed and added as a whole.
    """
    if old == new:
        return []
    before, after = old.split("\n"), new.split("\n")
    start = _first_difference(before, after)
    end = _first_difference(before[start:][::-1], after[start:][::-1])
    if max(len(before), len(after)) - start - end <= MAX_COMPARED:
        start, end = max(0, start - CONTEXT), max(0, end - CONTEXT)
    before, after = before[start : len(before) - end], after[start : len(after) - end]
    lines = list(islice(_changes(before, after), MAX_SHOWN))
    return lines if len(lines) < MAX_SHOWN else [*lines, ("skipped", "")]


def _first_difference(some: list[str], others: list[str]) -> int:
    """Return the number of equal lines from the start."""
    pairs = enumerate(zip(some, others, strict=False))
    return next((number for number, (one, other) in pairs if one != other), min(len(some), len(others)))


def _changes(before: list[str], after: list[str]) -> Iterator[Line]:
    groups = [[("replace", 0, len(before), 0, len(after))]]
    if max(len(before), len(after)) <= MAX_COMPARED + 2 * CONTEXT:
        groups = SequenceMatcher(None, before, after).get_grouped_opcodes(CONTEXT)
    for number, group in enumerate(groups):
        if number:
            yield "skipped", ""
        for step, old_start, old_end, new_start, new_end in group:
            is_same = step == "equal"
            yield from (("same" if is_same else "removed", line) for line in before[old_start:old_end])
            yield from (("added", line) for line in after[new_start:new_end] if not is_same)
