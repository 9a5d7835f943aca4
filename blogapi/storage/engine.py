"""The database: the one door for all that is read and written, and the commits that writes share."""

import importlib
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from enum import Enum, auto
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from blogapi.clock import rfc3339
from blogapi.loop import PLAIN, Loop
from blogapi.storage.errors import RETRY_SECONDS, Busy, NeedsThread, Unavailable
from blogapi.storage.query import Each, Query

BUSY_SECONDS = 2.0  # how long a write waits for another program's
POLL_SECONDS = 0.005  # between two looks at whether that has ended

P = ParamSpec("P")
T = TypeVar("T")
Engine = OpenTransaction = Runner = Any


class Reader:
    """Runs queries that read: the Database, or a Transaction. `now` is the time in RFC 3339 as of which it reads."""

    now: str

    def __init__(self, runner: Runner):
        self._runner = runner

    def of_engine(self, each: Each) -> Any:
        """Return what is for the engine that this reads from."""
        return getattr(each, self._runner.dialect)

    def row(self, query: Query, **values: Any) -> tuple | None:
        """Run a query with the values of its Params; return its first row, or None."""
        return self._runner.row(query, values)

    def rows(self, query: Query, **values: Any) -> Iterator[tuple]:
        """Run a query with the values of its Params; give its rows one by one."""
        return self._runner.rows(query, values)


class Transaction(Reader):
    """Runs the queries of an operation, of which all is kept or nothing. The operation must not yield.

    `in_thread`: it runs in a thread of its own, so that it can take longer than 100 ms.
    """

    def __init__(self, opened: OpenTransaction, seconds: float, in_thread: bool = False):
        super().__init__(opened)
        self.in_thread = in_thread
        self._opened = opened
        self.at_end: list[tuple[Query, dict[str, Any]]] = []
        self.now = rfc3339(seconds)  # taken when the lock was had: whoever waited must not write an earlier time

    def execute(self, query: Query, **values: Any) -> int:
        """Run a statement; return how many rows it changed. Raises NotUnique where a constraint says so."""
        return self._opened.execute(query, values)

    def execute_at_end(self, query: Query, **values: Any) -> None:
        """Run a statement once all operations of the transaction are done, of this one and of those that share it.

        What writes the index of the search costs half as much where nothing comes between.
        """
        self.at_end.append((query, values))

    def finish(self) -> None:
        """Run what was left for the end."""
        for query, values in self.at_end:
            self.defer(query, **values)

    def insert(self, query: Query, **values: Any) -> int:
        """Run an INSERT; return the id of the new row. Raises NotUnique where a constraint says so."""
        return self._opened.insert(query, values)

    def defer(self, query: Query, **values: Any) -> None:
        """Run a statement that must not fail, and whose result nobody needs: at once, or with the next ones."""
        self._opened.defer(query, [values])

    def rows_of_each(self, query: Query, rows: list[Mapping[str, Any]]) -> list[list[tuple]]:
        """Run a query once for each of `rows`; return what each gives."""
        return self._opened.rows_of_each(query, rows)

    def execute_many(self, query: Query, rows: Iterable[Mapping[str, Any]]) -> None:
        """Run a statement once for each of `rows`, as `defer` does."""
        self._opened.defer(query, rows)


def engine_for(database: Path | str, connections: int = 1, loop: Loop = PLAIN) -> Engine:
    """Return the engine of a database: that of a file, or that of the URL of one of PostgreSQL.

    Raises ValueError if that cannot be used.
    """
    if isinstance(database, Path):
        return importlib.import_module("blogapi.storage.sqlite").Sqlite(database, loop=loop)
    try:  # Here, and not above: whoever has a file needs none of it, nor its dependencies.
        postgresql = importlib.import_module("blogapi.storage.postgresql")
    except ImportError as error:
        raise ValueError(
            f"BLOGAPI_DATABASE: {error}; for PostgreSQL, make postgresql, or install blogapi[postgresql]"
        ) from error
    return postgresql.Postgresql(database, connections, loop=loop)


class Database(Reader):
    """Reads and writes; every failure is Unavailable."""

    def __init__(self, engine: Engine, clock: Callable[[], float] = time.time):
        super().__init__(engine)
        self.engine = engine
        self._clock = clock
        self._group = GroupCommit(engine, clock)
        self._reading, self._writing = threading.Lock(), threading.Lock()
        self._turns: defaultdict[Hashable, threading.Lock] = defaultdict(threading.Lock)

    @property
    def now(self) -> str:
        """The time, in RFC 3339: what is due by then is published for all that read."""
        return rfc3339(self._clock())

    def write(self, operation: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `operation(transaction, *args, **kwargs)` in a transaction; return its result once that is on disk.

        Raises what it raises, of which nothing is kept. What turns out to take long is run again in a thread.
        """
        try:
            return self._group.run(partial(_call, operation, args, kwargs))
        except NeedsThread:
            return self.write_in_thread(operation, *args, **kwargs)

    def write_at_once(self, operation: Callable[Concatenate[Transaction, P], T], *args: P.args) -> T:
        """Run an operation as `write` does, but raise Unavailable rather than wait for anybody."""
        return commit_alone(self.engine, self._clock, partial(_call, operation, args, {}))

    def write_in_thread(
        self, operation: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run an operation as `write` does, by a connection of its own in a thread: others can read meanwhile.

        For what takes longer than 100 ms; one at a time, as each has a share of the processor.
        """

        def commit(engine: Engine) -> T:
            result = commit_alone(engine, self._clock, partial(_call, operation, args, kwargs), in_thread=True)
            engine.shrink()
            return result

        if not self._writing.acquire(timeout=BUSY_SECONDS):
            raise Busy
        try:
            return self._aside(commit)
        finally:
            self._writing.release()

    def read_in_thread(
        self, client: Hashable, operation: Callable[Concatenate[Reader, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run an operation that reads in a thread; one at a time, so that others get their share.

        Of each client one waits for that: nobody waits for all that another has asked for.
        """

        def read(engine: Engine) -> T:
            reader = Reader(engine)
            reader.now = self.now
            return operation(reader, *args, **kwargs)

        with self._turns[client]:
            if self.engine.waits_cooperatively:
                return operation(self, *args, **kwargs)
            with self._reading:
                return self._aside(read)

    def check(self) -> None:
        """Raise Unavailable unless the database can be read and written, its file in its place."""
        if not self.engine.check():
            self.write(self.engine.probe)

    def close(self) -> None:
        """Close the connection."""
        self.engine.close()

    def _aside(self, use: Callable[[Engine], T]) -> T:
        result, error = self.engine.loop.run_in_thread(self._with_another_engine, (use,))
        if error is not None:
            raise error
        return result

    def _with_another_engine(self, use: Callable[[Engine], T]) -> tuple[T | None, Exception | None]:
        """Return the result or the error: what is raised in a thread is in the log, as if nobody had expected it."""
        try:
            engine = self.engine.another(BUSY_SECONDS)
            try:
                return use(engine), None
            finally:
                engine.close()
        except Exception as error:
            return None, error


def _call(operation: Callable, args: tuple, kwargs: dict, transaction: Transaction) -> Any:
    return operation(transaction, *args, **kwargs)


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
    engine: Engine, clock: Callable[[], float], operation: Callable[[Transaction], T], in_thread: bool = False
) -> T:
    """Run `operation` in a transaction of its own, which it does not wait for; raise as GroupCommit does."""
    opened = engine.begin()
    if opened is None:
        raise Busy
    try:
        transaction = Transaction(opened, clock(), in_thread)
        result = operation(transaction)
        transaction.finish()
        opened.commit()
        return result
    except BaseException as error:
        opened.recover(error)
        raise
