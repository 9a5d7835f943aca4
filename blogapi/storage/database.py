"""The database: reads, and writes that are transactions."""

import threading
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, Concatenate, ParamSpec, TypeVar

from blogapi.storage.engine import Clock, Engine, Reader, Transaction
from blogapi.storage.errors import Busy

BUSY_SECONDS = 2.0  # how long a write waits for another, and how long a slow read takes
LOCK_POLL_SECONDS = 0.005  # between two checks whether another program's write has ended

P = ParamSpec("P")
T = TypeVar("T")


class Database(Reader):
    """Reads, and writes one at a time. A failure of the database is Unavailable; a unique constraint raises NotUnique.

    Our server has a subclass whose writes share commits, and whose slow work runs in threads (`server.commits`).
    """

    def __init__(self, engine: Engine, clock: Clock = time.time, keeps_history: bool = True):
        super().__init__(engine, clock)
        self.keeps_history = keeps_history  # whether changes keep what they replace
        self._writing = threading.Lock()

    def write(self, operation: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `operation(transaction, *args, **kwargs)` in a transaction; return its result when that is on disk.

        Nothing is kept if it raises. Raises Busy if another write goes on for BUSY_SECONDS.
        """
        until = time.monotonic() + BUSY_SECONDS
        with locked(self._writing, until):
            tx = self.begin(until)
            tx.may_be_slow = True  # Nothing else shares it.
            return commit(tx, operation, *args, **kwargs)

    def write_alone(
        self, until: float, operation: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run an operation as `write` does, but in a transaction of its own. Raises Busy if it cannot begin until then.

        `until` is a time of the monotonic clock.
        """
        return commit(self.begin(until), operation, *args, **kwargs)

    def write_at_once(
        self, operation: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run an operation as `write` does, but raise Unavailable rather than wait."""
        return self.write_alone(0.0, operation, *args, **kwargs)

    def write_in_thread(
        self, operation: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run an operation of more than 100 ms as `write` does; our server lets others read meanwhile."""
        return self.write(operation, *args, **kwargs)

    def read_in_thread(
        self, client: Hashable, operation: Callable[Concatenate[Reader, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run an operation that reads, perhaps for long, and as of one moment. Raises Unavailable after BUSY_SECONDS.

        Our server serves others meanwhile, and one such operation of each client at a time.
        """
        until = time.monotonic() + BUSY_SECONDS
        with self.engine.limited(lambda: time.monotonic() < until):
            return operation(self, *args, **kwargs)

    def in_background(self, client: Hashable, function: Callable[[], T]) -> T:
        """Return the result of a slow function that needs no database; our server serves others meanwhile."""
        return function()

    def begin(self, until: float) -> Transaction:
        """Begin a transaction. Raises Busy if another program holds the lock until then."""
        while (tx := self.engine.begin(until - time.monotonic(), self._clock)) is None:
            if time.monotonic() > until:
                raise Busy
            time.sleep(LOCK_POLL_SECONDS)
        tx.keeps_history = self.keeps_history
        return tx

    def check(self) -> None:
        """Raise Unavailable unless the database can be read and written, and its file is in its place."""
        self.engine.check(self.write)

    def close(self) -> None:
        """Close the connection."""
        self.engine.close()


def commit(tx: Transaction, operation: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Run an operation in a transaction of its own, commit, and return the result; roll back if it raises."""
    try:
        result = operation(tx, *args, **kwargs)
        tx.commit()
        return result
    except BaseException as error:
        tx.recover(error)
        raise


@contextmanager
def locked(lock: "threading.Lock | threading.Semaphore", until: float) -> Iterator[None]:
    """Hold a lock; raise Busy if it is not free by then."""
    if not lock.acquire(timeout=max(0.0, until - time.monotonic())):
        raise Busy
    try:
        yield
    finally:
        lock.release()
