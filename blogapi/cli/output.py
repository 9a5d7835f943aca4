"""The output of the command line: text that is shown only once, progress, and the summary of an import."""

import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

import click

ITEMS_A_LINE = 1000
EXAMPLES = 3
CLEAR_LINE = "\r\x1b[K"  # of a progress bar
# The notes of an import, in the order in which they are printed, and the remedy for each.
TODO = {
    "relative images": "--base-url URL makes them absolute",
    "shortcodes": "only the old site knows them: replace them",
    "wiki links": "only the old site knows them: replace them",
    "links to files": "they should lead to slugs",
    "HTML": "it stays in the Markdown",
    "other slugs": "--redirects FILE lists the old ones",
    "old addresses": "--redirects FILE lists them",
}
SUMMARY = {"created": "made", "updated": "changed"}  # how a summary calls these outcomes, for scripts that read it

T = TypeVar("T")


def show(text: str) -> None:
    """Print text that is shown only once; raise OSError if that is not possible."""
    if sys.stdout is None:
        raise OSError("standard output is closed: nothing was changed")
    try:
        click.echo(text)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python tries again when it exits
        raise OSError(f"cannot write to standard output: {error.strerror}; nothing was changed") from error


def warn(text: str) -> None:
    """Print a line to standard error, over a progress bar if one is there."""
    click.echo(f"{CLEAR_LINE if sys.stderr.isatty() else ''}{text}", err=True)


def with_progress(results: Iterable[T], length: int) -> Iterator[T]:
    """Show the progress: a bar on a terminal, otherwise a line now and then."""
    if sys.stderr.isatty():
        with click.progressbar(results, length, file=sys.stderr) as bar:
            yield from bar
        return
    for number, result in enumerate(results, 1):
        yield result
        if number % ITEMS_A_LINE == 0:
            click.echo(f"{number} of {length}", err=True)


class Summary:
    """The counts of an import, and what is left to do."""

    def __init__(self) -> None:
        self.outcomes = Counter(created=0, updated=0, unchanged=0, refused=0)
        self.dropped: Counter[str] = Counter()
        self.noted: Counter[str] = Counter()
        self.examples: defaultdict[str, list[str]] = defaultdict(list)

    def note(self, what: str, place: str) -> None:
        """Count a note."""
        self.noted[what] += 1
        if len(self.examples[what]) < EXAMPLES:
            self.examples[what].append(place)

    def lines(self, left_out: Mapping[str, int], would_be: str) -> Iterator[str]:
        """Yield the lines of the summary; `would_be` begins those of a dry run."""
        yield would_be + _counts({SUMMARY.get(outcome, outcome): count for outcome, count in self.outcomes.items()})
        if left_out:
            hint = " (--pages imports pages)" if "page" in left_out else ""
            yield f"{would_be}left out: {_counts(left_out)}{hint}"
        if self.dropped:
            yield f"{would_be}dropped: {_counts(dict(self.dropped.most_common()))}"
        for what in (what for what in TODO if what in self.noted):
            more = ", …" if self.noted[what] > EXAMPLES else ""
            yield f"{what} {self.noted[what]} ({TODO[what]}): {', '.join(self.examples[what])}{more}"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items())
