"""The database: the one door for all that is read and written."""

import importlib
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Hashable
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from blogapi.clock import rfc3339
from blogapi.loop import PLAIN, Loop
from blogapi.storage.engine import Engine
from blogapi.storage.errors import Busy, TakesLong
from blogapi.storage.group_commit import BUSY_SECONDS, GroupCommit, commit_alone
from blogapi.storage.sqlite import Sqlite
from blogapi.storage.transaction import Reader, Transaction

P = ParamSpec("P")
T = TypeVar("T")


def engine_for(database: Path | str, connections: int = 1, loop: Loop = PLAIN) -> Engine:
    """Return the engine of a database: that of a file, or that of the URL of one of PostgreSQL.

    Raises ValueError if that cannot be used.
    """
    if isinstance(database, Path):
        return Sqlite(database, loop=loop)
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
        self._reading_aside, self._writing_aside = threading.Lock(), threading.Lock()
        self._turns: defaultdict[Hashable, threading.Lock] = defaultdict(threading.Lock)

    @property
    def now(self) -> str:
        """The time, in RFC 3339: what is due by then is published for all that read."""
        return rfc3339(self._clock())

    def write(self, operation: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `operation(transaction, *args, **kwargs)` in a transaction; return its result once that is on disk.

        Raises what it raises, of which nothing is kept. What turns out to take long is made anew, aside.
        """
        try:
            return self._group.run(partial(_call, operation, args, kwargs))
        except TakesLong:
            return self.write_aside(operation, *args, **kwargs)

    def write_at_once(self, operation: Callable[Concatenate[Transaction, P], T], *args: P.args) -> T:
        """Run an operation as `write` does, but raise Unavailable rather than wait for anybody."""
        return commit_alone(self.engine, self._clock, partial(_call, operation, args, {}))

    def write_aside(self, operation: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run an operation as `write` does, by a connection of its own in a thread: others can read meanwhile.

        For what takes longer than 100 ms; one at a time, as each has a share of the processor.
        """

        def commit(engine: Engine) -> T:
            result = commit_alone(engine, self._clock, partial(_call, operation, args, kwargs), aside=True)
            engine.shrink()
            return result

        if not self._writing_aside.acquire(timeout=BUSY_SECONDS):
            raise Busy
        try:
            return self._aside(commit)
        finally:
            self._writing_aside.release()

    def read_aside(
        self, client: Hashable, operation: Callable[Concatenate[Reader, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run an operation that reads, aside as `write_aside` does; one at a time, so that others get their share.

        Of each client one waits for that: nobody waits for all that another has asked for.
        """

        def read(engine: Engine) -> T:
            reader = Reader(engine)
            reader.now = self.now
            return operation(reader, *args, **kwargs)

        with self._turns[client]:
            if self.engine.waits_cooperatively:
                return operation(self, *args, **kwargs)
            with self._reading_aside:
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
