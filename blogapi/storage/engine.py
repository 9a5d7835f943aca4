"""The interface of an engine: its queries and transactions, and how it waits."""

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
MAX_LAST = 64 * 1024  # characters in the statements of `defer_last` at a time, whose indexing takes 10 ms
NAME = re.compile(r"(?<!:):([a-z]\w*)")  # a placeholder in SQL text; "::" is PostgreSQL's cast


# Queries: Peewee compiles each one whenever it runs, but a `Compiled` query only once


class Placeholder(ColumnBase):
    """A placeholder for a value in a compiled query; in SQL text, it is `:name`."""

    def __init__(self, name: str):
        super().__init__()
        self.name = name

    def __sql__(self, ctx: Context) -> Context:
        return ctx.literal(f":{self.name}")


def placeholders(model: type[Model], *names: str) -> dict[Field, Placeholder]:
    """Return a placeholder for each field of a model, or for those named, for an INSERT or UPDATE."""
    return {field: Placeholder(field.name) for field in model._meta.sorted_fields if not names or field.name in names}


class AsBytes(ColumnBase):
    """A text column as its stored UTF-8 bytes, without decoding."""

    def __init__(self, text: Node):
        super().__init__()
        self.text = text

    def __sql__(self, ctx: Context) -> Context:
        start, end = ctx.state.as_bytes or ("CAST(", " AS BLOB)")
        return ctx.literal(start).sql(self.text).literal(end)


class Compiled:
    """A query that is compiled only once: constants become literals, and variables are placeholders.

    It is a Peewee query or SQL text. Pass `sqlite=…, postgresql=…` if the engines differ.
    """

    def __init__(self, query: Node | str = "", **of_dialects: Node | str):
        self._query = query
        self._of_dialects = of_dialects

    def query(self, dialect: str) -> Node:
        """Return the query for a dialect."""
        query = self._of_dialects.get(dialect, self._query)
        return SQL(query) if isinstance(query, str) else query


Query = Compiled | Node


class Statement(NamedTuple):
    """The text of a query, with the names of its parameters in order or, unless it is `Compiled`, their values."""

    text: str
    names: list[str] | None
    values: list[Any]


# Waiting


class Loop:
    """How to wait in a process that is allowed to block (the default). Our server overrides it in `server.threads`."""

    is_cooperative = False  # whether requests share one thread, and waiting lets others run
    wait_for_socket: Callable[[int, int], int] | None = None  # (file, events): returns the events that occurred

    def semaphore(self, size: int) -> Any:
        """Return a semaphore. Our server's serves clients round-robin."""
        return threading.Semaphore(size)

    def timeout(self, seconds: float) -> AbstractContextManager:
        """Return a context manager. Our server's raises TimeoutError if its block takes longer."""
        return nullcontext()

    def run_in_thread(self, function: Callable[[], T], *, in_background: bool = False) -> T:
        """Run a function and return its result. Our server runs it in a thread of the operating system.

        With `in_background`, it runs at a lower priority than requests and must hold no lock. Raises Unavailable if no
        thread can be started.
        """
        return function()

    def requests_wait(self) -> bool:
        """Return whether requests of known clients are waiting for their turn."""
        return False


BLOCKING = Loop()


# The engine, its readers and its transactions


class Hits(NamedTuple):
    """How many requests a key has sent in a window of the rate limit."""

    hits: int
    window: int  # number of the window
    now: int  # Unix time


class Engine(ABC):
    """A database and its connections. Raises Unavailable if the database fails."""

    dialect: str  # name of the SQL dialect
    slow_reads: int  # at most this many slow reads run at a time
    waits_cooperatively: bool  # whether other requests run while this one waits for the database
    key_query: Compiled | None = None  # finds a key and counts the request, if several processes share the rate limit
    folder: Path | None = None  # for uploads while they arrive; None means the system's temporary folder
    write_failed = False  # whether the last write failed; only SQLite sets it

    def __init__(self, name: str, database: peewee.Database, loop: Loop):
        self.name = name  # path of the file, or URL without its password
        self.peewee_db = database
        self.loop = loop
        self._statements: dict[Compiled, Statement] = {}

    def statement(self, query: Query) -> Statement:
        """Compile a query, unless it is `Compiled` and known."""
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
        """Connect, and set up a missing or empty database if `create` is true; return whether it was set up.

        With `create` or `upgrade`, an older database is upgraded.
        """

    @abstractmethod
    def another(self, wait_seconds: float) -> Self:
        """Return an engine with its own connection, for another thread; it waits up to `wait_seconds` for a lock."""

    @abstractmethod
    def close(self) -> None:
        """Close all connections that are not in use."""

    def row(self, query: Query, values: Mapping[str, Any]) -> tuple | None:
        """Run a query; return its first row, or None."""
        return next(self.rows(query, values), None)

    @abstractmethod
    def rows(self, query: Query, values: Mapping[str, Any]) -> Iterator[tuple]:
        """Run a query; yield its rows. May raise after some rows."""

    def hits(self, digest: bytes) -> Hits | None:
        """Return a key's Hits without counting this request, or None if the engine does not count."""
        return None

    @abstractmethod
    def begin(self, wait_seconds: float = 0, clock: Clock = time.time) -> "Transaction | None":
        """Begin a write transaction; return None if the lock is taken.

        PostgreSQL waits up to `wait_seconds` for the lock. SQLite does not wait: the caller retries.
        """

    def limited(self, goes_on: Callable[[], bool]) -> AbstractContextManager[None]:
        """Give a block of queries one snapshot on SQLite, and interrupt them once `goes_on` returns False.

        PostgreSQL does nothing here, because its server ends slow queries.
        """
        return nullcontext()

    def shrink(self) -> None:
        """Free the disk space that a large transaction has used; PostgreSQL does this by itself."""
        return

    def reserve(self) -> None:
        """Keep some disk space for `freeing`, if the database is a file."""
        return

    def freeing(self) -> AbstractContextManager[None]:
        """Use the reserved disk space in a block that frees more."""
        return nullcontext()

    @abstractmethod
    def check(self) -> None:
        """Raise Unavailable if the database cannot be read, or is known to refuse writes."""

    @abstractmethod
    def is_leader(self) -> bool:
        """Return whether this process is the one that sends webhooks and publishes posts."""

    @abstractmethod
    def sizes(self) -> dict[str, int]:
        """Return the bytes of the database on disk (`database_size`), and of a file's `wal` and `disk_free`."""


class Reader:
    """Runs read queries; both the database and a transaction are readers."""

    def __init__(self, engine: Engine, clock: Clock):
        self.engine = engine
        self._clock = clock

    @property
    def now(self) -> str:
        """The current time in RFC 3339."""
        return rfc3339(self._clock())

    @property
    def dialect(self) -> str:
        """The name of the engine's SQL dialect."""
        return self.engine.dialect

    def row(self, query: Query, **values: Any) -> tuple | None:
        """Run a query with the values of its placeholders; return its first row, or None. Raises Unavailable."""
        return self.engine.row(query, values)

    def get(self, kind: str, query: Query, **values: Any) -> tuple:
        """Run a query for something of this kind; return the first row. Raises DoesNotExist, Unavailable."""
        row = self.row(query, **values)
        if row is None:
            raise DoesNotExist(kind)
        return row

    def one(self, query: Query, **values: Any) -> tuple:
        """Run a query that always returns a row; return the first. Raises Unavailable."""
        row = self.row(query, **values)
        assert row is not None
        return row

    def rows(self, query: Query, **values: Any) -> Iterator[tuple]:
        """Run a query with the values of its placeholders; yield its rows. Raises Unavailable, even after some rows."""
        return self.engine.rows(query, values)


class Transaction(Reader, ABC):
    """Runs the queries of operations atomically. An operation must not yield to the event loop.

    Its clock stops when the lock is acquired. With `may_be_slow`, it runs in a thread and may take longer than 100 ms.
    With `keeps_history`, a change keeps the version it replaces. Raises NotUnique for a unique constraint, else
    Unavailable.
    """

    may_be_slow = False
    keeps_history = True
    active_webhooks: list[tuple] | None = None  # rows of ACTIVE_WEBHOOKS, cached until an `execute`

    def __init__(self, engine: Engine, clock: Clock):
        now = clock()
        super().__init__(engine, lambda: now)
        self._last: dict[tuple[int, ...], tuple[Query, Mapping[str, Any]]] = {}
        self._last_size = self._last_count = 0

    @property
    @abstractmethod
    def changes(self) -> int:
        """A number that grows with every change."""

    @abstractmethod
    def execute(self, query: Query, **values: Any) -> int:
        """Run a statement; return the number of changed rows."""

    @abstractmethod
    def insert(self, query: Query, **values: Any) -> int:
        """Run an INSERT; return the id of the new row."""

    @abstractmethod
    def execute_many(self, query: Query, rows: Iterable[Mapping[str, Any]]) -> None:
        """Run a statement for each of `rows`, no later than the next statement that returns a result."""

    def defer(self, query: Query, **values: Any) -> None:
        """Run a statement without a result, no later than the next one that returns a result."""
        self.execute_many(query, [values])

    def defer_last(self, key: tuple[int, ...], query: Query, **values: Any) -> None:
        """Run a statement at the end of the transaction, in the order of keys; a later one with its key replaces it.

        PostgreSQL runs each statement in turn.
        """
        self._last[key] = query, values
        self._last_count += 1
        self._last_size += sum(len(value) for value in values.values() if isinstance(value, str))
        if self._last_size > MAX_LAST:
            self.run_last()

    def run_last(self) -> None:
        """Run the statements of `defer_last` so far."""
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
        """Return whether an error concerns the whole database, not just the operation that raised it."""
