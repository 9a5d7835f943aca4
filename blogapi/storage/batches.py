"""Batches: many writes in transactions that leave room for others."""

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice, takewhile
from typing import Any

from blogapi.storage.database import Database
from blogapi.storage.engine import Transaction
from blogapi.storage.errors import Unavailable

WAIT_SECONDS = 60.0  # for others that write

Write = Callable[[Transaction, Any], Any]


def write_each(
    database: Database, write: Write, items: Sequence[Any], seconds: float, pause: Callable[[], None]
) -> Iterator[Any]:
    """Write items in transactions that take no more of them after `seconds`, with a pause after each transaction.

    Each result is yielded once it is on disk. Waits WAIT_SECONDS for others that write, then raises Unavailable.
    """
    done = 0

    def write_some(tx: Transaction) -> list[Any]:
        until = time.monotonic() + seconds
        others = takewhile(lambda _: time.monotonic() <= until, islice(items, done + 1, None))
        return [write(tx, item) for item in chain([items[done]], others)]

    deadline = time.monotonic() + WAIT_SECONDS
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
            deadline = time.monotonic() + WAIT_SECONDS
