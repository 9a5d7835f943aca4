"""Commits shared by concurrent writes, and threads for slow work.

An operation may run twice: if one fails halfway in a shared transaction, each runs again alone. One that is too slow
for a shared transaction raises NeedsThread and runs again in a thread.
"""

import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Hashable
from contextlib import closing, suppress
from traceback import clear_frames
from typing import Any, Concatenate, ParamSpec, TypeVar

from blogapi.storage.database import BUSY_SECONDS, Database, commit, locked
from blogapi.storage.engine import Clock, Engine, Reader, Transaction
from blogapi.storage.errors import RETRY_SECONDS, Busy, NeedsThread, Unavailable

GATHER_SECONDS = 0.010  # how long a transaction waits for further requests to join
SHARED_SECONDS = 0.025  # limit for a shared transaction, during which nothing else is served
SHARED_PARTS = 24  # at most this many operations share a transaction; each can hold a post of 4 MB until its end

P = ParamSpec("P")
T = TypeVar("T")


class SharedDatabase(Database):
    """A database whose writes share commits, and whose slow work runs in threads."""

    def __init__(self, engine: Engine, clock: Clock = time.time, keeps_history: bool = True):
        super().__init__(engine, clock, keeps_history)
        self.commits = GroupCommit(engine, self.begin)
        self._reading = threading.Semaphore(engine.readers)
        self._computing = threading.Lock()
        self._turns: defaultdict[Hashable, threading.Lock] = defaultdict(threading.Lock)
        self._next_write = 0.0  # when the next write in a thread may begin, on the monotonic clock

    def write(self, operation: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run an operation in a shared transaction; one that turns out to be slow runs again in a thread."""
        with suppress(NeedsThread):
            return self.commits.run(lambda tx: operation(tx, *args, **kwargs))
        # By now, no traceback keeps alive what the operation has read.
        return self.write_in_thread(operation, *args, **kwargs)

    def write_in_thread(
        self, operation: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a write of more than 100 ms in a thread with its own connection, so that others can read.

        One runs at a time. Afterwards, waiting writes get as much time before the next one.
        """

        def write(engine: Engine) -> T:
            begun = time.monotonic()
            tx = engine.begin(clock=self._clock)
            if tx is None:
                raise Busy
            tx.may_be_slow, tx.keeps_history = True, self.keeps_history
            result = commit(tx, operation, *args, **kwargs)
            if self.commits.waiting:
                ended = time.monotonic()
                self._next_write = ended + min(ended - begun, BUSY_SECONDS / 2)
            engine.shrink()
            return result

        with locked(self._writing, time.monotonic() + BUSY_SECONDS):
            time.sleep(max(0.0, self._next_write - time.monotonic()))
            with locked(self.settling, time.monotonic() + BUSY_SECONDS):
                return self._with_another(write)

    def read_in_thread(
        self, client: Hashable, operation: Callable[Concatenate[Reader, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run a read in a thread. Only a few run at a time, so that other requests get CPU time.

        Only one per client runs or waits, so that no client waits for all requests of another. Raises Unavailable after
        BUSY_SECONDS, or when the request ends.
        """
        until = time.monotonic() + BUSY_SECONDS
        goes_on = threading.Event()

        def read(engine: Engine) -> T:
            with engine.limited(lambda: time.monotonic() < until and goes_on.is_set()):
                return operation(Reader(engine, self._clock), *args, **kwargs)

        with locked(self._turns[client], until), locked(self._reading, until):
            if self.engine.waits_cooperatively:
                return operation(self, *args, **kwargs)
            goes_on.set()
            try:
                return self._with_another(read, in_background=True)
            finally:
                goes_on.clear()

    def in_background(self, client: Hashable, function: Callable[[], T]) -> T:
        """Run a slow function that needs no database, while other requests are answered.

        One runs at a time: two would share one processor, need twice the memory, and delay requests twice as long.
        Clients take turns, as in `read_in_thread`. Raises Unavailable after waiting BUSY_SECONDS.
        """
        until = time.monotonic() + BUSY_SECONDS
        with locked(self._turns[client], until), locked(self._computing, until):
            return self.engine.loop.run_in_thread(function, in_background=True)

    def _with_another(self, use: Callable[[Engine], T], *, in_background: bool = False) -> T:
        """Use another connection in a thread."""

        def use_another() -> T:
            with closing(self.engine.another(BUSY_SECONDS)) as engine:
                return use(engine)

        return self.engine.loop.run_in_thread(use_another, in_background=in_background)


class PartlyApplied(Exception):
    """An operation changed something in a shared transaction before it failed."""


class Part:
    """An operation in a shared transaction, and later its result or error."""

    result: Any = None
    error: BaseException | None = None
    is_done = False  # also if its request has ended
    is_alone = False  # runs in its own transaction
    is_committer = False  # its request runs the next transaction

    def __init__(self, operation: Callable[[Transaction], Any]):
        self.operation = operation
        self.called = threading.Event()  # set once it is done, or has to commit


class GroupCommit:
    """Runs operations in transactions on one connection, one transaction at a time.

    Operations that arrive during a transaction wait for its end. The request of the first of them then runs all of them
    in one transaction. An error of an operation is its own. If it has changed something before, which is
    rare, the transaction is rolled back, and each of them runs again alone: savepoints would cost every creation 3 %.
    """

    def __init__(self, engine: Engine, begin: Callable[[float], Transaction]):
        self.waiting: list[Part] = []
        self._engine = engine
        self._begin_by = begin  # (until), by the monotonic clock
        self._mutex = threading.Lock()  # guards `waiting` and `_has_committer`
        self._has_committer = False

    def run(self, operation: Callable[[Transaction], Any]) -> Any:
        """Run `operation` in a transaction; return its result once it is on disk.

        Raises the operation's errors, and Unavailable if the database fails or another program holds the lock for
        BUSY_SECONDS.
        """
        deadline = time.monotonic() + BUSY_SECONDS
        part = Part(operation)
        with self._mutex:
            self.waiting.append(part)
            part.is_committer = not self._has_committer
            self._has_committer = True
        try:
            if not part.is_committer:
                part.called.wait()
            while not part.is_done:
                self._gather()
                self._commit(deadline)
        finally:
            self._leave(part)
        try:
            if part.error:
                raise part.error
            return part.result
        finally:
            part.error = None  # breaks a cycle through its frames that would keep a large post alive

    def _leave(self, part: Part) -> None:
        """Let the next request commit. The operation of an interrupted request does not run."""
        with self._mutex:
            part.is_done = True
            if part in self.waiting:
                self.waiting.remove(part)
            if part.is_committer:
                self._has_committer = bool(self.waiting)
                for following in self.waiting[:1]:
                    following.is_committer = True
                    following.called.set()

    def _gather(self) -> None:
        """Wait briefly for requests that have arrived to join."""
        until = time.monotonic() + GATHER_SECONDS
        time.sleep(0)
        while self._engine.loop.requests_wait() and time.monotonic() < until:
            time.sleep(0)

    def _commit(self, deadline: float) -> None:
        tx = self._begin(deadline)
        if tx is None:
            return
        taken: list[Part] = []
        commits = False
        try:
            self._run(tx, taken)  # From here to the end of the transaction, no code yields.
            commits = True
            tx.commit()
        except PartlyApplied as error:  # In all these cases, even a failed rollback leaves nobody waiting.
            for part in taken:
                part.is_alone, part.error = True, None
            with self._mutex:
                self.waiting[:0] = [part for part in taken if not part.is_done]
            tx.recover(error)
        except Exception as error:
            _end(taken, error)
            tx.recover(error)
        except BaseException as error:  # The committing request was interrupted; the others fail.
            _end(taken, Unavailable("the transaction was interrupted", RETRY_SECONDS, maybe_changed=commits))
            tx.recover(error)
            raise
        else:
            _end(taken)

    def _begin(self, deadline: float) -> Transaction | None:
        """Begin a transaction. If the database fails, all waiting operations fail with it."""
        try:
            return self._begin_by(deadline)
        except Busy:
            raise
        except Unavailable as error:  # Finding this out can take seconds, so the others do not retry.
            with self._mutex:
                waiting, self.waiting = self.waiting, []
            _end(waiting, error)
            return None

    def _run(self, tx: Transaction, taken: list[Part]) -> None:
        """Run waiting operations until the transaction is full."""
        count = 1 if self.waiting[0].is_alone else min(len(self.waiting), SHARED_PARTS)
        until = math.inf if self._engine.waits_cooperatively else time.monotonic() + SHARED_SECONDS
        while self.waiting and len(taken) < count and (not taken or time.monotonic() < until):
            part = self.waiting.pop(0)
            taken.append(part)
            changes = tx.changes
            try:
                part.result = part.operation(tx)
            except Exception as error:
                if count == 1 or tx.is_fatal(error):
                    raise
                if tx.changes != changes:
                    raise PartlyApplied from error
                clear_frames(error.__traceback__)  # so that many errors do not keep many large posts alive
                part.error = error


def _end(parts: list[Part], error: Exception | None = None) -> None:
    """Wake the requests whose transaction has ended; with `error`, nothing was written."""
    for part in parts:
        part.error = error or part.error
        part.is_done = True
        part.called.set()
