"""Group commit: writes that wait at the same time share one transaction, and so one wait for the disk."""

import threading
import time
from collections.abc import Callable
from enum import Enum, auto
from typing import Any, TypeVar

from blogapi.storage.engine import Engine, OpenTransaction
from blogapi.storage.errors import RETRY_SECONDS, Busy, Unavailable
from blogapi.storage.transaction import Transaction

BUSY_SECONDS = 2.0  # how long a write waits for another program's
POLL_SECONDS = 0.005  # between two looks at whether that has ended

T = TypeVar("T")


class State(Enum):
    """How far a write has come."""

    WAITING = auto()  # for the transaction before its own
    RUNNING = auto()
    ENDED = auto()


class Write:
    """An operation that is to run in a transaction, and what came of it."""

    def __init__(self, operation: Callable[[Transaction], Any]):
        self.operation = operation
        self.deadline = time.monotonic() + BUSY_SECONDS
        self.state = State.WAITING
        self.result: Any = None
        self.error: Exception | None = None


class GroupCommit:
    """Runs operations in transactions of one connection, one transaction at a time.

    Whoever comes while a transaction runs waits for its end. The first of those then runs the operations of all of
    them, each in its own savepoint: one that raises leaves nothing behind, and does not disturb the others.
    """

    def __init__(self, engine: Engine, clock: Callable[[], float]):
        self._engine = engine
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: list[Write] = []

    def run(self, operation: Callable[[Transaction], Any]) -> Any:
        """Run `operation` in a transaction; return its result once that is on disk.

        Raises what it raises; Unavailable if the lock was not to be had in time, or the database failed.
        """
        write = Write(operation)
        self._waiting.append(write)
        try:
            with self._lock:
                if write.state is State.WAITING:
                    self._commit(write)
        finally:
            if write.state is State.WAITING:  # It goes away, and its operation does not run.
                self._waiting.remove(write)
        try:
            if write.error is not None:
                raise write.error
            return write.result
        finally:
            del write  # The error knows this frame: a cycle would keep for a while what the operation was given.

    def _commit(self, first: Write) -> None:
        time.sleep(0)  # Requests that have arrived meanwhile join.
        try:
            opened = self._begin(first.deadline)
        except Busy:
            raise
        except Unavailable as failure:  # To find that out can take seconds: none of the others is to try again.
            self._end_all(failure)
            return
        batch, self._waiting = self._waiting, []  # From here to the end of the transaction nothing of ours yields.
        for write in batch:
            write.state = State.RUNNING
        error: Exception | None = None
        try:
            self._run(opened, batch)
            opened.commit()
        except Exception as failure:
            error = failure
            opened.recover(failure)
        except BaseException as failure:  # Who runs the operations is interrupted; the others need an answer.
            error = Unavailable("the transaction was interrupted", RETRY_SECONDS)
            opened.recover(failure)
            raise
        finally:
            for write in batch:
                write.error = error or write.error
                write.state = State.ENDED

    def _end_all(self, error: Exception) -> None:
        batch, self._waiting = self._waiting, []
        for write in batch:
            write.error, write.state = error, State.ENDED

    def _begin(self, deadline: float) -> OpenTransaction:
        while (opened := self._engine.begin(deadline - time.monotonic())) is None:
            if time.monotonic() > deadline:
                raise Busy
            time.sleep(POLL_SECONDS)
        return opened

    def _run(self, opened: OpenTransaction, batch: list[Write]) -> None:
        transaction = Transaction(opened, self._clock())
        if len(batch) == 1:  # Alone it needs no savepoint: an error ends the transaction.
            batch[0].result = batch[0].operation(transaction)
            transaction.finish()
            return
        for write in batch:
            opened.savepoint()
            at_end = len(transaction.at_end)
            try:
                write.result = write.operation(transaction)
            except Exception as error:
                if opened.is_fatal(error):
                    raise
                write.error = error
                del transaction.at_end[at_end:]
            opened.release(undo=write.error is not None)
        transaction.finish()


def commit_alone(
    engine: Engine, clock: Callable[[], float], operation: Callable[[Transaction], T], aside: bool = False
) -> T:
    """Run `operation` in a transaction of its own, which it does not wait for; raise as GroupCommit does."""
    opened = engine.begin()
    if opened is None:
        raise Busy
    try:
        transaction = Transaction(opened, clock(), aside)
        result = operation(transaction)
        transaction.finish()
        opened.commit()
        return result
    except BaseException as error:
        opened.recover(error)
        raise
