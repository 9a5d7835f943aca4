"""The lines that differ between two texts."""

from bisect import bisect_left
from collections.abc import Iterable
from difflib import unified_diff
from itertools import chain, groupby, islice, pairwise

from markupsafe import Markup

CONTEXT = 2  # equal lines that are shown around a change
MAX_COMPARED = 300  # lines of a text: the time grows quadratically
MAX_LINES, MAX_LINE, MAX_CHARACTERS = 2000, 2000, 200_000  # shown: lines, characters of each, and in all
KINDS = {" ": "same", "-": "removed", "+": "added", "@": "skipped"}


def changed_lines(old: str, new: str) -> list[tuple[str, str]]:
    """Return the removed and added lines, each after its kind, with a few equal lines around them.

    Equal lines at both ends are skipped first, before the texts are split, which takes up to 60 bytes a line. If what
    remains is long, all of it counts as removed and added. A text with an emoji takes a quarter of the memory as bytes.
    """
    if old == new:
        return []
    before, after = (f"\n{text}\n".encode() for text in (old, new))
    start, end = equal_ends(before, after)
    is_short = max(text.count(b"\n", start, len(text) - end) for text in (before, after)) <= MAX_COMPARED
    for _ in range(CONTEXT if is_short else 0):
        start = max(0, before.rfind(b"\n", 0, start))
        end -= max(0, before.find(b"\n", len(before) - end + 1) - (len(before) - end))
    parts = (text[start : len(text) - end].split(b"\n", MAX_LINES + 1)[1:] for text in (before, after))
    removed, added = ([line.decode() for line in lines] for lines in parts)
    if is_short:
        signed: Iterable[str] = islice(unified_diff(removed, added, n=CONTEXT, lineterm=""), 3, None)  # without headers
    else:
        signed = chain((f"-{line}" for line in removed), (f"+{line}" for line in added))
    lines: list[tuple[str, str]] = []
    left = MAX_CHARACTERS
    for line in signed:
        if len(lines) == MAX_LINES or left <= 0:
            return [*lines, ("skipped", "")]
        text = line[1:] if len(line) <= MAX_LINE else f"{line[1:MAX_LINE]}…"
        lines.append((KINDS[line[0]], "" if line[0] == "@" else text))
        left -= len(text)
    return lines


def equal_ends(old: bytes, new: bytes) -> tuple[int, int]:
    """Return how many bytes of whole lines two texts share at the start and at the end."""
    most = min(len(old), len(new))
    equal = bisect_left(range(1, most + 1), True, key=lambda size: old[:size] != new[:size])
    start = old.rfind(b"\n", 0, equal)
    equal = bisect_left(range(1, most - start + 1), True, key=lambda size: old[-size:] != new[-size:])
    return start, len(old) - old.find(b"\n", len(old) - equal)


def marked(lines: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Mark what is between equal words at both ends, where as many lines were added as removed."""
    runs = [(kind, [line for _, line in run]) for kind, run in groupby(lines, key=lambda line: line[0])]
    for (old_kind, old), (new_kind, new) in pairwise(runs):
        if (old_kind, new_kind, len(old)) == ("removed", "added", len(new)):
            old[:], new[:] = zip(*map(_mark_words, old, new), strict=True)
    return [(kind, line) for kind, run in runs for line in run]


def _mark_words(old: str, new: str) -> tuple[str, str]:
    before, after = old.split(" "), new.split(" ")
    most = min(len(before), len(after))
    start = next((at for at in range(most) if before[at] != after[at]), most)
    end = next((at for at in range(most - start) if before[-1 - at] != after[-1 - at]), most - start)
    if not start and not end:
        return old, new
    return _with_mark(before, start, end), _with_mark(after, start, end)


def _with_mark(words: list[str], start: int, end: int) -> str:
    middle = " ".join(words[start : len(words) - end])
    parts = [
        " ".join(words[:start]),
        Markup("<mark>{}</mark>").format(middle) if middle else "",
        " ".join(words[len(words) - end :]),
    ]
    return Markup(" ").join(part for part in parts if part)
