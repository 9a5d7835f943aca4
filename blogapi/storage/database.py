"""Run reads, writes in transactions, and the batches in which commands write."""

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

BUSY_SECONDS = 2.0  # longest wait for another write, and longest duration of a slow read
LOCK_POLL_SECONDS = 0.005  # interval at which to check whether another program's write has ended
BATCH_SECONDS = 0.025  # a batch starts no new item after this time; its last item and its commit may exceed it
BATCH_PAUSE_SECONDS = 0.01  # longer than LOCK_POLL_SECONDS, so that the server can get the lock
PATIENT_SECONDS = 60.0  # longest time that a batch waits for other writers

P = ParamSpec("P")
T = TypeVar("T")
Item = TypeVar("Item")
Write = Callable[Concatenate[Transaction, P], T]  # must follow the rules in `Database.write`; may raise NeedsThread
Read = Callable[Concatenate[Reader, P], T]

give_way = partial(time.sleep, BATCH_PAUSE_SECONDS)


class Database(Reader):
    """Runs reads, and runs writes one at a time.

    Raises Unavailable if the database fails, and NotUnique if a row violates a unique constraint. Our server uses a
    subclass that lets writes share commits and runs slow work in threads (`server.threads`).
    """

    def __init__(self, engine: Engine, clock: Clock = time.time, keeps_history: bool = True):
        super().__init__(engine, clock)
        self.keeps_history = keeps_history  # whether a change to a post keeps the version that it replaces
        self._writing = threading.Lock()

    def write(self, operation: Write[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `operation(transaction, *args, **kwargs)` in a transaction; return its result once it is on disk.

        The transaction is rolled back if the operation raises an exception. Raises Busy if another write takes longer
        than BUSY_SECONDS. Our server lets several operations share a transaction, so every operation must follow three
        rules:

        * It may run twice. It runs again if another operation in its transaction fails after a change, and it runs in a
          thread if it raises `NeedsThread`. It must have no effects except through the transaction.
        * It must not yield to the event loop: it must not sleep, use a socket or log.
        * It should check everything, and raise `NeedsThread` if it is slow, before it changes anything. If it fails
          after a change, all operations in its transaction have to run again.
        """
        until = time.monotonic() + BUSY_SECONDS
        with locked(self._writing, until):
            tx = self.begin(until)
            tx.may_be_slow = True  # because no other operation shares this transaction
            return run_and_commit(tx, operation, *args, **kwargs)

    def write_within(self, seconds: float, operation: Write[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run an operation in a transaction of its own. Raises Busy if another write takes longer than `seconds`."""
        with suppress(NeedsThread):
            return run_and_commit(self.begin(time.monotonic() + seconds), operation, *args, **kwargs)
        return self.write_in_thread(operation, *args, **kwargs)

    def write_freeing(self, operation: Write[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run an operation that frees disk space. If the disk is full, let it use the reserved space."""
        try:
            return self.write(operation, *args, **kwargs)
        except DiskFull:
            with self.engine.freeing():
                return self.write_within(BUSY_SECONDS, operation, *args, **kwargs)

    def write_in_thread(self, operation: Write[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a write of more than 100 ms. Our server uses a thread, so that other clients can keep reading."""
        return self.write(operation, *args, **kwargs)

    def read_in_thread(self, client: Hashable, operation: Read[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a read that may be slow. Raises Unavailable if it takes longer than BUSY_SECONDS.

        On SQLite, all of its queries see one snapshot. Our server uses a thread, keeps answering other clients, and
        runs only one slow read per client at a time.
        """
        until = time.monotonic() + BUSY_SECONDS
        with self.engine.limited(lambda: time.monotonic() < until):
            return operation(self, *args, **kwargs)

    def compute_in_thread(self, client: Hashable, function: Callable[[], T]) -> T:
        """Run a slow function that does not use the database. Our server treats it like a read in `read_in_thread`."""
        return function()

    def begin(self, until: float) -> Transaction:
        """Begin a transaction. Raises Busy if another program still holds the lock at the monotonic time `until`."""
        while (tx := self.engine.begin(until - time.monotonic(), self._clock)) is None:
            if time.monotonic() > until:
                raise Busy
            time.sleep(LOCK_POLL_SECONDS)
        tx.keeps_history = self.keeps_history
        return tx

    def check(self) -> None:
        """Raise Unavailable unless the database can be read and written, and its file is in place."""
        self.engine.check()
        if self.engine.write_failed:  # Try a write that changes nothing, to see whether writes still fail.
            self.write(lambda tx: tx.execute(SQL(f"PRAGMA user_version = {VERSION}")))

    def close(self) -> None:
        self.engine.close()


def run_and_commit(tx: Transaction, operation: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """Run an operation in the transaction `tx` and commit; return the result. Roll back if either step fails."""
    try:
        result = operation(tx, *args, **kwargs)
        tx.commit()
        return result
    except BaseException as error:
        tx.recover(error)
        raise


@contextmanager
def locked(lock: "threading.Lock | threading.Semaphore", until: float) -> Iterator[None]:
    """Hold a lock during a block. Raises Busy if the lock is not free by the monotonic time `until`."""
    if not lock.acquire(timeout=max(0.0, until - time.monotonic())):
        raise Busy
    try:
        yield
    finally:
        lock.release()


# Batches: commands write in short transactions, so that other clients can write in between


def write_each(
    database: Database,
    write: Callable[[Transaction, Item], T],
    items: Sequence[Item],
    seconds: float = BATCH_SECONDS,
    pause: Callable[[], None] = give_way,
) -> Iterator[T]:
    """Call `write` for each item, in transactions of about `seconds`; yield every result once it is on disk."""
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
    """Run an operation in a transaction, and pause afterwards so that other clients can write.

    Retries while the database is busy. Raises Unavailable if that lasts longer than PATIENT_SECONDS.
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
