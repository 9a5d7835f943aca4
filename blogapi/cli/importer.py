"""The import: posts are checked and stored in short transactions, between which a running server can write."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

from marshmallow import ValidationError

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

schema = PutPostSchema()


class Result(NamedTuple):
    """The result for a source."""

    outcome: posts.Outcome | Literal["refused"]
    source: str
    reasons: list[Refused] = []  # why it was refused
    item: Item | None = None


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
        return Result("refused", source.source, [source])
    try:
        return source._replace(fields=schema.load(source.fields))
    except ValidationError as error:
        reasons = [
            Refused(source.source, source.line_of(field), sentence)
            for field, messages in error.normalized_messages().items()
            for sentence in sentences({field: messages})
        ]
        return Result("refused", source.source, reasons)


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
        return Result(put(checked), checked.source, item=checked)
    except (Conflict, Damaged) as error:  # raised before anything is written
        line = checked.line_of(error.field) if isinstance(error, Conflict) else None
        return Result("refused", checked.source, [Refused(checked.source, line, str(error))])
