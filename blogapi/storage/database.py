"""The database: reads, writes in transactions, and the batches of commands."""

import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar

from peewee import SQL

from blogapi.storage.engine import Clock, Engine, Reader, Transaction
from blogapi.storage.errors import Busy, DiskFull, NeedsThread, Unavailable
from blogapi.storage.upgrades import VERSION

BUSY_SECONDS = 2.0  # longest wait for another write, and longest slow read
LOCK_POLL_SECONDS = 0.005  # how often to check whether another program's write has ended
STEP_SECONDS = 0.025  # a batch takes no new items after this time; its last item and its commit may exceed it
PAUSE_SECONDS = 0.01  # pause between batches, longer than the server's polling interval for the lock
PATIENT_SECONDS = 60.0  # longest wait of a batch for other writers

P = ParamSpec("P")
T = TypeVar("T")
Item = TypeVar("Item")
Write = Callable[Concatenate[Transaction, P], T]
Read = Callable[Concatenate[Reader, P], T]

give_way = partial(time.sleep, PAUSE_SECONDS)


class Database(Reader):
    """Reads, and writes one at a time. Raises Unavailable if the database fails, NotUnique for a unique constraint.

    In our server, a subclass shares commits between writes and runs slow work in threads (`server.threads`).
    """

    def __init__(self, engine: Engine, clock: Clock = time.time, keeps_history: bool = True):
        super().__init__(engine, clock)
        self.keeps_history = keeps_history  # whether a change keeps the version it replaces
        self._writing = threading.Lock()

    def write(self, operation: Write[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `operation(transaction, *args, **kwargs)` in a transaction, and return its result once it is on disk.

        Rolls back if the operation raises. Raises Busy if another write takes longer than BUSY_SECONDS.
        """
        until = time.monotonic() + BUSY_SECONDS
        with locked(self._writing, until):
            tx = self.begin(until)
            tx.may_be_slow = True  # No other operation shares it.
            return run_and_commit(tx, operation, *args, **kwargs)

    def write_within(self, seconds: float, operation: Write[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run an operation in a transaction of its own. Raises Busy rather than wait longer for another write."""
        with suppress(NeedsThread):
            return run_and_commit(self.begin(time.monotonic() + seconds), operation, *args, **kwargs)
        return self.write_in_thread(operation, *args, **kwargs)

    def write_freeing(self, operation: Write[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run an operation that frees disk space. If the disk is full, it may use the reserved space."""
        try:
            return self.write(operation, *args, **kwargs)
        except DiskFull:
            with self.engine.freeing():
                return self.write_within(BUSY_SECONDS, operation, *args, **kwargs)

    def write_in_thread(self, operation: Write[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a write of more than 100 ms; our server lets other clients read meanwhile."""
        return self.write(operation, *args, **kwargs)

    def read_in_thread(self, client: Hashable, operation: Read[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a possibly slow read, on SQLite on one snapshot. Raises Unavailable after BUSY_SECONDS.

        Meanwhile, our server answers others; it runs one such read per client at a time.
        """
        until = time.monotonic() + BUSY_SECONDS
        with self.engine.limited(lambda: time.monotonic() < until):
            return operation(self, *args, **kwargs)

    def compute_in_thread(self, client: Hashable, function: Callable[[], T]) -> T:
        """Run a slow function that needs no database. Meanwhile, our server answers others; it runs one per client.

        It belongs here because a client takes turns with it as with slow reads.
        """
        return function()

    def begin(self, until: float) -> Transaction:
        """Begin a transaction. Raises Busy if another program still holds the lock at `until`, a monotonic time."""
        while (tx := self.engine.begin(until - time.monotonic(), self._clock)) is None:
            if time.monotonic() > until:
                raise Busy
            time.sleep(LOCK_POLL_SECONDS)
        tx.keeps_history = self.keeps_history
        return tx

    def check(self) -> None:
        """Raise Unavailable unless the database can be read and written and its file is in place."""
        self.engine.check()
        if self.engine.write_failed:  # A write that changes nothing shows whether others would fail.
            self.write(lambda tx: tx.execute(SQL(f"PRAGMA user_version = {VERSION}")))

    def close(self) -> None:
        self.engine.close()


def run_and_commit(tx: Transaction, operation: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Run an operation in its own transaction, commit, and return the result. Rolls back if it raises."""
    try:
        result = operation(tx, *args, **kwargs)
        tx.commit()
        return result
    except BaseException as error:
        tx.recover(error)
        raise


@contextmanager
def locked(lock: "threading.Lock | threading.Semaphore", until: float) -> Iterator[None]:
    """Hold a lock. Raises Busy if it is not free by `until`."""
    if not lock.acquire(timeout=max(0.0, until - time.monotonic())):
        raise Busy
    try:
        yield
    finally:
        lock.release()


# Batches: short transactions of commands, which let other clients have their turn


def write_each(
    database: Database,
    write: Callable[[Transaction, Item], T],
    items: Sequence[Item],
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
            break
        except Unavailable as error:
            if error.retry_after is None or time.monotonic() > deadline:
                raise
            time.sleep(error.retry_after)
    pause()
    return result
