"""The import: posts are stored in short transactions, between which a running server can write, and summed up."""

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, NamedTuple
from urllib.parse import quote, unquote

import click
from marshmallow import ValidationError

from blogapi.files.front_matter import shown
from blogapi.files.sources import Item, Refused
from blogapi.post import PutPostSchema, sentences
from blogapi.storage import posts
from blogapi.storage.engine import Database, Reader, Transaction
from blogapi.storage.errors import Conflict, Damaged, Unavailable

BATCH_POSTS = 100  # read and checked before a transaction begins
BATCH_CHARACTERS = 1_000_000  # of content, likewise
TRANSACTION_SECONDS = 0.025  # after which it takes no more posts; the last post and the disk come on top
PAUSE_SECONDS = 0.01  # between two transactions: longer than the server sleeps while it waits for the lock
BUSY_SECONDS = 60.0  # the longest wait for a server that writes all the time
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

schema = PutPostSchema()


class Result(NamedTuple):
    """The result for a source: its item, or the reasons why it was refused."""

    outcome: posts.Outcome | Literal["refused"]
    item: Item | None = None
    reasons: list[Refused] = []


Checked = Item | Result  # a post whose fields are valid, or a refusal


def store(database: Database, sources: Iterable[Item | Refused], events: bool, by: str) -> Iterator[Result]:
    """Create or update the posts of the sources; yield each result once it is on disk.

    No transaction is open while a result is handled. Raises Unavailable.
    """
    for batch in _batches(sources):
        while batch:
            results = _write_patiently(database, batch, events, by)
            batch = batch[len(results) :]
            yield from results
            time.sleep(PAUSE_SECONDS)


def foresee(reader: Reader, sources: Iterable[Item | Refused]) -> Iterator[Result]:
    """Yield the results that `store` would yield, without writing."""
    for source in sources:
        yield _result(_checked(source), lambda item: posts.would_put(reader, item.fields["slug"], item.fields))


def _batches(sources: Iterable[Item | Refused]) -> Iterator[list[Checked]]:
    batch: list[Checked] = []
    size = 0
    for source in sources:
        batch.append(_checked(source))
        size += len(source.fields.get("content", "")) if isinstance(source, Item) else 0
        if len(batch) == BATCH_POSTS or size > BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    yield batch


def _checked(source: Item | Refused) -> Checked:
    if isinstance(source, Refused):
        return Result("refused", reasons=[source])
    try:
        return source._replace(fields=schema.load(source.fields))
    except ValidationError as error:
        reasons = [
            Refused(source.source, source.line_of(field), sentence)
            for field, messages in error.normalized_messages().items()
            for sentence in sentences({field: messages})
        ]
        return Result("refused", reasons=reasons)


def _write_patiently(database: Database, batch: list[Checked], events: bool, by: str) -> list[Result]:
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            return database.write(_put_some, batch, events, by)
        except Unavailable as error:
            if error.retry_after is None or time.monotonic() > deadline:
                raise


def _put_some(tx: Transaction, batch: list[Checked], events: bool, by: str) -> list[Result]:
    """Put the first posts of a batch, at least one, until the time is over."""

    def put(item: Item) -> posts.Outcome:
        slug, fields = item.fields["slug"], item.fields
        return posts.put(tx, slug, fields, created_at=item.created_at, with_events=events, by=by).outcome

    deadline = time.monotonic() + TRANSACTION_SECONDS
    results: list[Result] = []
    for checked in batch:
        results.append(_result(checked, put))
        if time.monotonic() > deadline:
            break
    return results


def _result(checked: Checked, put: Callable[[Item], posts.Outcome]) -> Result:
    if isinstance(checked, Result):
        return checked
    try:
        return Result(put(checked), checked)
    except (Conflict, Damaged) as error:  # raised before anything is written
        line = checked.line_of(error.field) if isinstance(error, Conflict) else None
        return Result("refused", reasons=[Refused(checked.source, line, str(error))])


class Report:
    """The counts of an import, and what is left to do."""

    def __init__(self, dry_run: bool):
        self.dry_run = dry_run
        self.outcomes = Counter(created=0, updated=0, unchanged=0, refused=0)
        self.dropped: Counter[str] = Counter()
        self.places: defaultdict[str, list[str]] = defaultdict(list)  # of each kind of note

    def add(self, result: Result) -> None:
        """Count a result; print why it was refused, or what a dry run foresees."""
        self.outcomes[result.outcome] += 1
        for reason in result.reasons:
            click.echo(f"{CLEAR_LINE if sys.stderr.isatty() else ''}{shown(str(reason))}", err=True)
        if item := result.item:
            self.dropped.update(item.dropped)
            for what, line in item.notes:
                self.places[what].append(f"{item.source}:{line}" if line else item.source)
            if any(redirects(item)):
                self.places["old addresses"].append(item.source)
            if self.dry_run:
                click.echo(shown(f"{item.source}: would be {result.outcome}: {_foreseen(item)}"))

    def print(self, left_out: Mapping[str, int]) -> None:
        """Print the counts, with those of what is not imported."""
        would_be = "would be " if self.dry_run else ""
        lines = [would_be + counted({SUMMARY.get(outcome, outcome): count for outcome, count in self.outcomes.items()})]
        if left_out:
            hint = " (--pages imports pages)" if "page" in left_out else ""
            lines.append(f"{would_be}left out: {counted(left_out)}{hint}")
        if self.dropped:
            lines.append(f"{would_be}dropped: {counted(dict(self.dropped.most_common()))}")
        for what, remedy in TODO.items():
            if places := self.places[what]:
                more = ", …" if len(places) > EXAMPLES else ""
                lines.append(f"{what} {len(places)} ({remedy}): {', '.join(places[:EXAMPLES])}{more}")
        for line in lines:
            click.echo(shown(line))


def counted(counts: Mapping[str, int]) -> str:
    """Return counts as a line of output."""
    return ", ".join(f"{name} {count}" for name, count in counts.items())


def redirects(item: Item) -> Iterator[str]:
    """Yield a line for each old address of a post that is not its slug."""
    for path in dict.fromkeys(quote(unquote(path)).strip("/") for path in item.old_paths):
        if path not in ("", item.fields["slug"]):
            yield f"/{path} /{item.fields['slug']}\n"


def _foreseen(item: Item) -> str:
    fields = item.fields
    parts = [fields["slug"], f"{fields.get('status', '')} {fields.get('published_at', '')}".strip()]
    parts.append(f"tags {', '.join(fields['tags'])}" if fields["tags"] else "")
    parts.append(f"drops {', '.join(item.dropped)}" if item.dropped else "")
    parts += [f"{what} in line {line}" if line else what for what, line in item.notes]
    return "; ".join(filter(None, parts))
