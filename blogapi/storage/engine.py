"""Define what each engine implements: queries, transactions, and how to wait."""

import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

import peewee
from peewee import SQL, ColumnBase, Context, Field, Model, Node

from blogapi.clock import rfc3339
from blogapi.storage.errors import DoesNotExist

T = TypeVar("T")
Clock = Callable[[], float]
MAX_LAST = 64 * 1024  # `defer_last` collects about this many characters; indexing them takes 10 ms
NAME = re.compile(r"(?<!:):([a-z]\w*)")  # matches a placeholder in SQL text, but not PostgreSQL's cast "::"


# Queries: an ordinary Peewee query is compiled each time it runs, and a `Compiled` query only once


class Placeholder(ColumnBase):
    """A placeholder for a value in a `Compiled` query. SQL text contains `:name` instead."""

    def __init__(self, name: str):
        super().__init__()
        self.name = name

    def __sql__(self, ctx: Context) -> Context:
        return ctx.literal(f":{self.name}")


def placeholders(model: type[Model], *names: str) -> dict[Field, Placeholder]:
    """Return placeholders for an INSERT or UPDATE: one for each field of a model, or only for the fields in `names`."""
    return {field: Placeholder(field.name) for field in model._meta.sorted_fields if not names or field.name in names}


class AsBytes(ColumnBase):
    """A TEXT column, read as the stored UTF-8 bytes without decoding."""

    def __init__(self, text: Node):
        super().__init__()
        self.text = text

    def __sql__(self, ctx: Context) -> Context:
        start, end = ctx.state.as_bytes or ("CAST(", " AS BLOB)")
        return ctx.literal(start).sql(self.text).literal(end)


class Compiled:
    """A query that is compiled once, on its first use. Constants become literals, and variables must be placeholders.

    The query is a Peewee query or SQL text. Pass `sqlite=…, postgresql=…` if the engines need different queries.
    """

    def __init__(self, query: Node | str = "", **of_dialects: Node | str):
        self._query = query
        self._of_dialects = of_dialects

    def query(self, dialect: str) -> Node:
        query = self._of_dialects.get(dialect, self._query)
        return SQL(query) if isinstance(query, str) else query


Query = Compiled | Node


class Statement(NamedTuple):
    """The SQL of a query, with its parameters: their names in order if it is `Compiled`, and otherwise their values."""

    text: str
    names: list[str] | None
    values: list[Any]


# Waiting


class Loop:
    """How to wait in a process that is allowed to block (the default). Our server uses `server.threads.EventLoop`."""

    is_cooperative = False  # whether all requests share one thread, and a request that waits lets others run
    wait_for_socket: Callable[[int, int], int] | None = None  # (file, events) -> the events that occurred

    def semaphore(self, size: int) -> Any:
        """Return a semaphore. The one in our server serves clients round-robin."""
        return threading.Semaphore(size)

    def timeout(self, seconds: float) -> AbstractContextManager:
        """Return a context manager. The one in our server raises TimeoutError if its block takes longer."""
        return nullcontext()

    def run_in_thread(self, function: Callable[[], T], *, in_background: bool = False) -> T:
        """Run a function and return its result. Our server runs it in a thread of the operating system.

        With `in_background`, the function runs at a lower priority than requests, so it must not hold a lock that
        requests need. Raises Unavailable if no thread can be started.
        """
        return function()

    def requests_wait(self) -> bool:
        """Return whether requests of known clients are waiting for their turn."""
        return False

    def pause(self) -> None:
        """Let other requests and other programs go on between two steps of a long operation."""
        time.sleep(0.001)  # not 0, because our server polls its sockets only during a longer pause


BLOCKING = Loop()


# The engine, its readers and its transactions


class Hits(NamedTuple):
    """The number of requests that a key has sent in the current window of the rate limit."""

    hits: int
    window: int  # number of the window: the Unix time of its start divided by WINDOW_SECONDS
    now: int  # the current Unix time


class Engine(ABC):
    """A database and its connections. Raises Unavailable if the database fails."""

    dialect: str  # name of the SQL dialect
    slow_reads: int  # at most this many slow reads run at a time
    waits_cooperatively: bool  # whether other requests run while this one waits for the database
    key_query: Compiled | None = None  # finds a key and counts the request; set if processes share the rate limit
    folder: Path | None = None  # where to store uploads while they arrive; None means the system's temporary folder
    write_failed = False  # whether the last write failed; set only on SQLite

    def __init__(self, name: str, database: peewee.Database, loop: Loop):
        self.name = name  # path of the database file, or the database URL without its password
        self.peewee_db = database
        self.loop = loop
        self._statements: dict[Compiled, Statement] = {}

    def statement(self, query: Query) -> Statement:
        """Return a query as a Statement. A `Compiled` query is compiled only on its first use."""
        if type(query) is not Compiled:
            text, values = self.peewee_db.get_sql_context().sql(query).query()
            return Statement(text, None, values)
        statement = self._statements.get(query)
        if statement is None:
            context = self.peewee_db.get_sql_context(value_literals=True)
            text, values = context.sql(query.query(self.dialect)).query()
            statement = self._statements[query] = Statement(text, list(dict.fromkeys(NAME.findall(text))), values)
        return statement

    @abstractmethod
    def open(self, create: bool = True, upgrade: bool = False) -> bool:
        """Connect to the database; return whether it was newly set up.

        With `create`, set up a missing or empty database. With `create` or `upgrade`, upgrade an older one.
        """

    @abstractmethod
    def another(self, wait_seconds: float) -> Self:
        """Return an engine for another thread. It has its own connection, and waits up to `wait_seconds` for a lock."""

    @abstractmethod
    def close(self) -> None:
        """Close all connections that are not in use."""

    def row(self, query: Query, values: Mapping[str, Any]) -> tuple | None:
        """Run a query; return its first row, or None."""
        return next(self.rows(query, values), None)

    @abstractmethod
    def rows(self, query: Query, values: Mapping[str, Any]) -> Iterator[tuple]:
        """Run a query; yield its rows. May fail after it has yielded some rows."""

    def hits(self, digest: bytes) -> Hits | None:
        """Return the Hits of a key without counting this request, or None if the engine does not count requests."""
        return None

    @abstractmethod
    def begin(self, wait_seconds: float = 0, clock: Clock = time.time) -> "Transaction | None":
        """Begin a write transaction; return None if the lock is taken. Only PostgreSQL waits, up to `wait_seconds`."""

    def limited(self, may_go_on: Callable[[], bool]) -> AbstractContextManager[None]:
        """Run the queries of a block on one snapshot, and interrupt them once `may_go_on` returns False."""
        return nullcontext()  # PostgreSQL ends slow queries itself.

    def shrink(self) -> None:
        """Free the disk space that a large transaction has used. PostgreSQL does this by itself."""
        return

    def reserve(self) -> None:
        """If the database is a file, reserve some disk space for `freeing`."""
        return

    def freeing(self) -> AbstractContextManager[None]:
        """Make the reserved disk space available to a block that frees more space."""
        return nullcontext()

    @abstractmethod
    def check(self) -> None:
        """Raise Unavailable if the database cannot be read, or if it is clear that writes would fail."""

    @abstractmethod
    def is_leader(self) -> bool:
        """Return whether this process is the leader, which sends webhooks and publishes due posts."""

    @abstractmethod
    def sizes(self) -> dict[str, int]:
        """Return the size of the database on disk in bytes, as `database_size`.

        For a database file, also return the size of its write-ahead log as `wal`, and the free space as `disk_free`.
        """


class Reader:
    """Runs read queries. Both the database and a transaction are readers."""

    def __init__(self, engine: Engine, clock: Clock):
        self.engine = engine
        self._clock = clock

    @property
    def now(self) -> str:
        """The current time in RFC 3339."""
        return rfc3339(self._clock())

    def row(self, query: Query, **values: Any) -> tuple | None:
        """Run a query with the values of its placeholders; return its first row, or None. Raises Unavailable."""
        return self.engine.row(query, values)

    def get(self, kind: str, query: Query, **values: Any) -> tuple:
        """Run a query; return its first row. Raises Unavailable, or DoesNotExist(kind) if there is none."""
        row = self.row(query, **values)
        if row is None:
            raise DoesNotExist(kind)
        return row

    def one(self, query: Query, **values: Any) -> tuple:
        """Run a query that always has a result; return its first row. Raises Unavailable."""
        row = self.row(query, **values)
        assert row is not None
        return row

    def rows(self, query: Query, **values: Any) -> Iterator[tuple]:
        """Run a query with the values of its placeholders; yield its rows. May raise Unavailable after some rows."""
        return self.engine.rows(query, values)


class Transaction(Reader, ABC):
    """Runs the queries of operations atomically. An operation must not yield to the event loop.

    `now` is fixed when the transaction acquires the lock. If `may_be_slow` is true, the transaction has only one
    operation, which may take longer than 100 ms. If `keeps_history` is true, a change to a post keeps the version that
    it replaces. The methods raise Unavailable, or NotUnique if a row violates a unique constraint.
    """

    now = ""
    may_be_slow = False
    keeps_history = True

    def __init__(self, engine: Engine, clock: Clock):
        super().__init__(engine, clock)
        self.now = rfc3339(clock())
        self.active_webhooks: list[tuple] | None = None  # the rows of SELECT_WEBHOOKS, which many operations share
        self._last: dict[tuple[int, ...], tuple[Query, Mapping[str, Any]]] = {}
        self._last_size = self._last_count = 0

    @property
    @abstractmethod
    def changes(self) -> int:
        """A number that increases with every change."""

    @abstractmethod
    def execute(self, query: Query, **values: Any) -> int:
        """Run a statement; return the number of rows that it changed."""

    @abstractmethod
    def insert(self, query: Query, **values: Any) -> int:
        """Run an INSERT; return the id of the new row."""

    @abstractmethod
    def execute_many(self, query: Query, rows: Iterable[Mapping[str, Any]]) -> None:
        """Run a statement for each of `rows`. They may be delayed until the next statement that returns a result."""

    def defer(self, query: Query, **values: Any) -> None:
        """Run a statement without a result. It may be delayed until the next statement that returns a result.

        Use this instead of `execute` in frequent writes and in long loops, so that PostgreSQL needs fewer round trips.
        """
        self.execute_many(query, [values])

    def defer_last(self, key: tuple[int, ...], query: Query, **values: Any) -> None:
        """Run a statement at the end of the transaction, unless a later call with the same key replaces it.

        These statements run in the order of their keys. On PostgreSQL, every statement runs, in the order of the calls.
        """
        self._last[key] = query, values
        self._last_count += 1
        self._last_size += sum(len(value) for value in values.values() if isinstance(value, str))
        if self._last_size > MAX_LAST:
            self.run_last()

    def run_last(self) -> None:
        """Run the statements that `defer_last` has collected so far."""
        for _, (query, values) in sorted(self._last.items()):
            self.defer(query, **values)
        self._last.clear()
        self._last_size = 0

    @abstractmethod
    def commit(self) -> None:
        """Commit. Raises Unavailable."""

    @abstractmethod
    def recover(self, error: BaseException) -> None:
        """Roll back after an error."""

    @abstractmethod
    def is_fatal(self, error: Exception) -> bool:
        """Return whether an error affects the whole transaction, not only the operation that raised it."""
