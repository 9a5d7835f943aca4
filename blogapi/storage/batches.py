"""Batched writes for commands, in short transactions that let other clients have their turn."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from blogapi.storage.database import Database
from blogapi.storage.engine import Transaction
from blogapi.storage.errors import Unavailable

STEP_SECONDS = 0.025  # a transaction takes no new items after this time; the last one and the commit come on top
PAUSE_SECONDS = 0.01  # pause between transactions, longer than the server's polling interval for the lock
PATIENT_SECONDS = 60.0  # limit for a transaction's wait for other writers

T = TypeVar("T")
U = TypeVar("U")

give_way = partial(time.sleep, PAUSE_SECONDS)


def write_each(
    database: Database,
    write: Callable[[Transaction, U], T],
    items: Sequence[U],
    seconds: float = STEP_SECONDS,
    pause: Callable[[], None] = give_way,
) -> Iterator[T]:
    """Write items in transactions of about `seconds` each; yield each result once it is on disk."""
    done = 0

    def write_some(tx: Transaction) -> list[T]:
        until, results = time.monotonic() + seconds, []
        for item in items[done:]:
            results.append(write(tx, item))
            if time.monotonic() > until:
                break
        return results

    while done < len(items):
        results = write_patiently(database, write_some, pause=pause)
        done += len(results)
        yield from results


def write_patiently(
    database: Database, operation: Callable[..., T], *arguments: Any, pause: Callable[[], None] = give_way
) -> T:
    """Run an operation in a transaction, then pause so that other clients can write.

    Raises Unavailable after waiting PATIENT_SECONDS for other writers.
    """
    deadline = time.monotonic() + PATIENT_SECONDS
    while True:
        try:
            result = database.write(operation, *arguments)
        except Unavailable as error:
            if error.retry_after is None or time.monotonic() > deadline:
                raise
            time.sleep(error.retry_after)
        else:
            pause()
            return result
