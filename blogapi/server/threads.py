"""Let concurrent writes share commits, and run slow work in threads, on gevent's event loop."""

import math
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from contextlib import closing, suppress
from traceback import clear_frames
from typing import Any
from weakref import WeakValueDictionary

import gevent
from gevent.threadpool import ThreadPool

from blogapi.server.fairness import RoundRobinSemaphore, Turns
from blogapi.storage.database import BUSY_SECONDS, Database, P, Read, T, Write, locked, run_and_commit
from blogapi.storage.engine import Clock, Engine, Loop, Reader, Transaction
from blogapi.storage.errors import RETRY_SECONDS, Busy, NeedsThread, Unavailable

GATHER_SECONDS = 0.010  # longest wait for more requests to join a transaction
MIN_LOCK_SECONDS = 0.5  # keep trying for the lock for at least this long, because another request may hold it briefly
SHARED_SECONDS = 0.025  # a shared transaction blocks all other requests, so it starts no operation after this time
SHARED_WRITES = 24  # at most this many operations share a transaction, because each can keep a 4 MB post in memory
COMPUTING = 2  # at most this many slow functions run at the same time
RESPONSE_SECONDS = 10.0  # deadline for a response from a database server
BACKGROUND_THREADS = 8  # more than the limits on slow reads and slow functions together
NICE = 10  # minimum niceness of the background threads, so that searches do not slow down lists
THREADS = 256  # at most this many other threads; many, because some may be waiting for a slow name server


class SharedDatabase(Database):
    """A database that lets writes share commits, and runs slow work in threads."""

    def __init__(self, engine: Engine, clock: Clock = time.time, keeps_history: bool = True):
        super().__init__(engine, clock, keeps_history)
        self.commits = GroupCommit(engine, self.begin)
        self._reading = threading.Semaphore(engine.slow_reads)
        self._computing = threading.Semaphore(COMPUTING)
        self._turns: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()  # one lock per client with slow work
        self._next_write = 0.0  # monotonic time at which the next write in a thread may begin

    def write(self, operation: Write[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run an operation in a shared transaction, or again in a thread if it raises NeedsThread."""
        with suppress(NeedsThread):
            return self.commits.run(lambda tx: operation(tx, *args, **kwargs))
        # This is outside `suppress`, where the exception's traceback would keep the data that was read in memory.
        return self.write_in_thread(operation, *args, **kwargs)

    def write_in_thread(self, operation: Write[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a write of more than 100 ms in a thread with its own connection, so that clients can keep reading.

        Only one such write runs at a time. If other writes are waiting when it ends, the next slow write starts only
        after they have had as much time as it took, up to BUSY_SECONDS / 2.
        """

        def write(engine: Engine) -> T:
            begun = time.monotonic()
            tx = Database(engine, self._clock, self.keeps_history).begin(until=0.0)  # The engine waits for the lock.
            tx.may_be_slow = True
            result = run_and_commit(tx, operation, *args, **kwargs)
            if self.commits.waiting:
                ended = time.monotonic()
                self._next_write = ended + min(ended - begun, BUSY_SECONDS / 2)
            engine.shrink()
            return result

        with locked(self._writing, time.monotonic() + BUSY_SECONDS):
            time.sleep(max(0.0, self._next_write - time.monotonic()))
            return self._with_another(write)

    def read_in_thread(self, client: Hashable, operation: Read[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a slow read in a thread, and interrupt it when its request ends.

        Only a few reads run at the same time, so that requests get CPU time. Each client may have only one slow read or
        function in progress, so that no client has to wait for all the requests of another.
        """
        until = time.monotonic() + BUSY_SECONDS
        may_go_on = threading.Event()

        def read(engine: Engine) -> T:
            with engine.limited(lambda: time.monotonic() < until and may_go_on.is_set()):
                return operation(Reader(engine, self._clock), *args, **kwargs)

        with locked(self._turn(client), until), locked(self._reading, until):
            if self.engine.waits_cooperatively:
                return operation(self, *args, **kwargs)
            may_go_on.set()
            try:
                return self._with_another(read, in_background=True)
            finally:
                may_go_on.clear()

    def compute_in_thread(self, client: Hashable, function: Callable[[], T]) -> T:
        """Run a slow function in a thread. Raises Unavailable if it cannot start within BUSY_SECONDS.

        At most COMPUTING functions run at the same time, because more would need more memory and delay requests longer.
        """
        until = time.monotonic() + BUSY_SECONDS
        with locked(self._turn(client), until), locked(self._computing, until):
            return self.engine.loop.run_in_thread(function, in_background=True)

    def _turn(self, client: Hashable) -> threading.Lock:
        return self._turns.setdefault(client, threading.Lock())

    def _with_another(self, use: Callable[[Engine], T], *, in_background: bool = False) -> T:
        def use_another() -> T:
            with closing(self.engine.another(BUSY_SECONDS)) as engine:
                return use(engine)

        return self.engine.loop.run_in_thread(use_another, in_background=in_background)


class PartlyApplied(Exception):
    """An operation failed after it had changed something in a shared transaction."""


class PendingWrite:
    """An operation that waits for a shared transaction or runs in one, and then has a result or an error."""

    result: Any = None
    error: BaseException | None = None

    def __init__(self, operation: Callable[[Transaction], Any]):
        self.operation = operation
        self.deadline = time.monotonic() + BUSY_SECONDS
        self.done = threading.Event()


class GroupCommit:
    """Runs operations in transactions on one connection, one transaction at a time.

    A thread (in our server, a greenlet) runs the waiting operations in one transaction. If an operation fails, only the
    request that sent it gets the error. If the operation had already changed something, which is rare, the transaction
    is rolled back and each of its operations runs again in a transaction of its own. Savepoints would avoid this, but
    they would make creating any post slower.
    """

    def __init__(self, engine: Engine, begin: Callable[[float], Transaction]):
        self.waiting: deque[PendingWrite] = deque()
        self._alone: deque[PendingWrite] = deque()  # operations to run again, each in its own transaction
        self._engine = engine
        self._begin = begin  # its argument is the monotonic time at which it stops waiting for the lock
        self._arrived = threading.Event()
        threading.Thread(target=self._work, daemon=True).start()

    def run(self, operation: Callable[[Transaction], Any]) -> Any:
        """Run `operation` in a transaction. Return its result once its changes are on disk, or raise its exception.

        Raises Unavailable if the database fails or another program holds the lock for BUSY_SECONDS.
        """
        pending = PendingWrite(operation)
        self.waiting.append(pending)
        self._arrived.set()
        pending.done.wait()
        try:
            if pending.error:
                raise pending.error
            return pending.result
        finally:
            pending.error = None  # breaks a cycle through its traceback, which would keep a large post in memory

    def _work(self) -> None:
        while self._arrived.wait():
            self._arrived.clear()
            while self.waiting or self._alone:
                self._commit()

    def _commit(self) -> None:
        """Run waiting operations in a transaction. Wake the requests that wait for them, even if it fails."""
        self._gather()
        taken: list[PendingWrite] = []
        error: BaseException | None = None
        try:
            deadline = (self._alone or self.waiting)[0].deadline
            tx = self._begin(max(deadline, time.monotonic() + MIN_LOCK_SECONDS))
            try:
                # From here until the transaction ends, no code may yield to the event loop.
                self._run_waiting(tx, taken)
                tx.commit()
            except PartlyApplied as failure:
                self._alone.extend(taken)
                taken = []
                tx.recover(failure)
            except BaseException as failure:
                error = failure
                tx.recover(failure)
        except BaseException as failure:  # The transaction did not begin, or the rollback failed.
            error = error or failure
            taken += self._take_hopeless(failure)
        finally:
            for pending in taken:
                pending.error = error or pending.error
                pending.done.set()
            del taken, error  # The error's traceback refers to this frame, which would be a reference cycle.

    def _gather(self) -> None:
        """Wait briefly, so that other requests can join the transaction."""
        until = time.monotonic() + GATHER_SECONDS
        time.sleep(0)
        while self._engine.loop.requests_wait() and time.monotonic() < until:
            time.sleep(0)

    def _take_hopeless(self, error: BaseException) -> list[PendingWrite]:
        """Take the operations that cannot succeed, and return them.

        If the database is busy, take only the operations whose deadline has passed. If it fails in any other way, take
        all waiting operations, because retrying each of them could take seconds.
        """
        is_busy, now = isinstance(error, Busy), time.monotonic()
        hopeless = [pending for pending in (*self._alone, *self.waiting) if not is_busy or pending.deadline < now]
        for pending in hopeless:
            (self._alone if pending in self._alone else self.waiting).remove(pending)
        return hopeless

    def _run_waiting(self, tx: Transaction, taken: list[PendingWrite]) -> None:
        """Run waiting operations, and move them to `taken`, until the transaction is full."""
        count = 1 if self._alone else min(len(self.waiting), SHARED_WRITES)
        until = math.inf if self._engine.waits_cooperatively else time.monotonic() + SHARED_SECONDS
        while len(taken) < count and (not taken or time.monotonic() < until):
            pending = (self._alone or self.waiting).popleft()
            taken.append(pending)
            pending.error = None
            changes = tx.changes
            try:
                pending.result = pending.operation(tx)
            except Exception as error:
                if count == 1 or tx.is_fatal(error):
                    raise
                if tx.changes != changes:
                    raise PartlyApplied from error
                clear_frames(error.__traceback__)  # Otherwise, many errors could keep many large posts in memory.
                pending.error = error


class EventLoop(Loop):
    """A loop that waits by letting other greenlets run."""

    is_cooperative = True

    def __init__(self) -> None:
        self.turns = Turns()
        threadpool = gevent.get_hub().threadpool
        threadpool.maxsize = THREADS
        self.threads, self.background = threadpool, ThreadPool(BACKGROUND_THREADS)

    def semaphore(self, size: int) -> RoundRobinSemaphore:
        return RoundRobinSemaphore(size)

    def timeout(self, seconds: float) -> gevent.Timeout:
        return gevent.Timeout(seconds, TimeoutError)

    def run_in_thread(self, function: Callable[[], Any], *, in_background: bool = False) -> Any:
        def outcome() -> tuple[Any, Exception | None]:
            try:
                return function(), None
            except Exception as error:  # return the exception, because gevent would log it as unexpected
                return None, error

        try:
            if in_background:
                result, error = self.background.apply(_at_low_priority, [outcome])
            else:
                result, error = self.threads.apply(outcome)
        except RuntimeError as failure:  # No thread can be started: the system is out of memory or processes.
            raise Unavailable(failure, RETRY_SECONDS) from failure
        if error is not None:
            raise error
        return result

    def wait_for_socket(self, file: int, events: int) -> int:
        """Wait until a socket is ready for `events`, and return them. Raises TimeoutError after RESPONSE_SECONDS."""
        hub = gevent.get_hub()
        loop = hub.loop
        watcher, timer = loop.io(file, events, priority=loop.MAXPRI), loop.timer(RESPONSE_SECONDS)
        timer.start(gevent.getcurrent().throw, TimeoutError)  # cheaper than a gevent.Timeout
        try:
            hub.wait(watcher)
        finally:
            timer.close()
            watcher.close()
        return events

    def requests_wait(self) -> bool:
        return bool(self.turns.waiting[True])


def _at_low_priority(function: Callable[[], Any]) -> Any:
    if sys.platform == "linux":  # On other systems, all threads of a process share one priority.
        thread = threading.get_native_id()
        with suppress(OSError):  # A sandbox may forbid any change. An ordinary user may never lower the niceness.
            os.setpriority(os.PRIO_PROCESS, thread, max(NICE, os.getpriority(os.PRIO_PROCESS, thread)))
    return function()
