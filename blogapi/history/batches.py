"""Many writes of a command, in transactions between which others write."""

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice, takewhile
from typing import TypeVar

from blogapi.storage.database import Database
from blogapi.storage.engine import Transaction
from blogapi.storage.errors import Unavailable

PATIENT_SECONDS = 60.0  # how long a transaction waits for other writers

T = TypeVar("T")
U = TypeVar("U")


def write_each(
    database: Database,
    write: Callable[[Transaction, U], T],
    items: Sequence[U],
    seconds: float,
    pause: Callable[[], None],
) -> Iterator[T]:
    """Write items in transactions that take no more of them after `seconds`, with a pause after each transaction.

    Each result is yielded when it is on disk. Waits PATIENT_SECONDS for other writers, then raises Unavailable.
    """
    done = 0

    def write_some(tx: Transaction) -> list[T]:
        until = time.monotonic() + seconds
        others = takewhile(lambda _: time.monotonic() <= until, islice(items, done + 1, None))
        return [write(tx, item) for item in chain([items[done]], others)]

    deadline = time.monotonic() + PATIENT_SECONDS
    while done < len(items):
        try:
            results = database.write(write_some)
        except Unavailable as error:
            if error.retry_after is None or time.monotonic() > deadline:
                raise
            time.sleep(error.retry_after)
        else:
            pause()
            done += len(results)
            yield from results
            deadline = time.monotonic() + PATIENT_SECONDS
