"""The interface to an engine: queries, built by Peewee or prepared, and transactions."""

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple, Self

import peewee
from peewee import SQL, ColumnBase, Context, Field, Model, Node

from blogapi.clock import rfc3339
from blogapi.storage.loop import Loop

Clock = Callable[[], float]
NAME = re.compile(r"(?<!:):([a-z]\w*)")  # of a Param in text; "::" is PostgreSQL's cast


# Queries: Peewee's, built when they run, or prepared: compiled once, as they run often


class Param(ColumnBase):
    """A value that is given when a prepared query runs; in text, `:name`."""

    def __init__(self, name: str):
        super().__init__()
        self.name = name

    def __sql__(self, ctx: Context) -> Context:
        return ctx.literal(f":{self.name}")


def params(model: type[Model], *names: str) -> dict[Field, Param]:
    """Return a Param for each of the fields of a model with these names, or for all, as an INSERT or UPDATE needs."""
    return {field: Param(field.name) for field in model._meta.sorted_fields if not names or field.name in names}


class AsBytes(ColumnBase):
    """A text as the UTF-8 bytes that are stored, without decoding it."""

    def __init__(self, text: Node):
        super().__init__()
        self.text = text

    def __sql__(self, ctx: Context) -> Context:
        start, end = ctx.state.as_bytes or ("CAST(", " AS BLOB)")
        return ctx.literal(start).sql(self.text).literal(end)


class Prepared:
    """A query that is compiled once: its constants are literals, and its variables `Param`s.

    Built with Peewee or written as SQL; pass `sqlite=…, postgresql=…` where they differ.
    """

    def __init__(self, query: Node | str = "", **of_dialects: Node | str):
        self._query = query
        self._of_dialects = of_dialects

    def query(self, dialect: str) -> Node:
        """Return the query for a dialect."""
        query = self._of_dialects.get(dialect, self._query)
        return SQL(query) if isinstance(query, str) else query


Query = Prepared | Node


class Statement(NamedTuple):
    """The text of a query, and the names of its parameters in order; or, if it is not prepared, their values."""

    text: str
    names: list[str] | None
    values: list[Any]


class Compiler:
    """Compiles queries for a dialect; `Prepared` ones once."""

    def __init__(self, dialect: str, database: peewee.Database, **options: Any):
        self._dialect = dialect
        self._database = database
        self._options = options
        self._statements: dict[Prepared, Statement] = {}

    def statement(self, query: Query) -> Statement:
        """Return the text of a query."""
        if type(query) is not Prepared:
            text, values = self._context().sql(query).query()
            return Statement(text, None, values)
        statement = self._statements.get(query)
        if statement is None:
            text, values = self._context(value_literals=True).sql(query.query(self._dialect)).query()
            statement = self._statements[query] = Statement(text, list(dict.fromkeys(NAME.findall(text))), values)
        return statement

    def _context(self, **options: Any) -> Context:
        return self._database.get_sql_context(**self._options, **options)


# The engine, and what runs queries on it


class Hits(NamedTuple):
    """The number of requests of a key in a window of the rate limit, if the engine counts them for all processes."""

    hits: int
    window: int  # its number
    now: int  # Unix time


class Engine(ABC):
    """A database, and the connection or connections to it. A failure of it is Unavailable."""

    dialect: str  # its name
    readers: int  # how many may search at a time
    waits_cooperatively: bool  # whether other requests run while it waits for the database
    name: str  # the path of the file, or the URL without a password
    loop: Loop
    peewee: peewee.Database
    key_query: Prepared | None = None  # finds a key, and counts the request, if several processes share the rate limit
    statement: Callable[[Query], Statement]  # compiles a query

    @abstractmethod
    def open(self, create: bool = True) -> bool:
        """Connect; return whether the database was missing or empty, and was set up, which needs `create`."""

    @abstractmethod
    def another(self, wait_seconds: float) -> Self:
        """Return an engine with a connection of its own, for another thread, which waits for a lock that long."""

    @abstractmethod
    def close(self) -> None:
        """Close all connections that are not in use."""

    @abstractmethod
    def row(self, query: Query, values: Mapping[str, Any]) -> tuple | None:
        """Run a query; return its first row, or None."""

    @abstractmethod
    def rows(self, query: Query, values: Mapping[str, Any]) -> Iterator[tuple]:
        """Run a query; yield its rows. It can fail halfway."""

    @property
    def folder(self) -> Path | None:
        """Where an upload is kept while it arrives; None: in the folder for temporary files."""
        return None

    def hits(self, digest: bytes) -> Hits | None:
        """Return the Hits of a key without counting, if the engine counts them."""
        return None

    @abstractmethod
    def begin(self, wait_seconds: float = 0, clock: Clock = time.time) -> "Transaction | None":
        """Begin a transaction that writes; return None if another has the lock.

        PostgreSQL waits for the lock, `wait_seconds` at most. SQLite does not wait: the caller tries again.
        """

    def limited(self, goes_on: Callable[[], bool]) -> AbstractContextManager[None]:
        """Let the queries of a block read as of one moment, and interrupt them once `goes_on` returns False.

        PostgreSQL does nothing: its server ends what takes long.
        """
        return nullcontext()

    @abstractmethod
    def shrink(self) -> None:
        """Give back the room on disk that a large transaction has taken."""

    @abstractmethod
    def check(self, write: Callable[[Callable[["Transaction"], object]], object]) -> None:
        """Raise Unavailable unless the database can be read and written; `write` runs an operation."""

    @abstractmethod
    def is_leader(self) -> bool:
        """Return whether this process is the one that sends webhooks and publishes posts."""

    @abstractmethod
    def size(self) -> int:
        """Return how many bytes the database has on disk."""


class Reader:
    """Runs queries that read: either the database or a transaction."""

    def __init__(self, engine: Engine, clock: Clock):
        self.engine = engine
        self._clock = clock

    @property
    def now(self) -> str:
        """The time, in RFC 3339. Posts that are due by then are read as published."""
        return rfc3339(self._clock())

    @property
    def dialect(self) -> str:
        """The name of the engine."""
        return self.engine.dialect

    def row(self, query: Query, **values: Any) -> tuple | None:
        """Run a query with the values of its Params; return its first row, or None. Raises Unavailable."""
        return self.engine.row(query, values)

    def one(self, query: Query, **values: Any) -> tuple:
        """Run a query that always has a row; return its first. Raises Unavailable."""
        row = self.row(query, **values)
        assert row is not None
        return row

    def rows(self, query: Query, **values: Any) -> Iterator[tuple]:
        """Run a query with the values of its Params; yield its rows. Raises Unavailable, also halfway."""
        return self.engine.rows(query, values)


class Transaction(Reader, ABC):
    """Runs the queries of operations, atomically. An operation must not yield to the event loop.

    Its time is when it got the lock. With `may_be_slow` it runs in a thread, and may take longer than 100 ms. With
    `keeps_history`, changes keep what they replace. Each engine has a subclass; errors are NotUnique, for a unique
    constraint, or Unavailable.
    """

    may_be_slow = False
    keeps_history = True
    now = ""  # the time at its beginning
    changes = 0  # grows with each change

    def __init__(self, engine: Engine, clock: Clock):
        super().__init__(engine, clock)
        self.now = rfc3339(clock())
        self._cached_rows: dict[Query, list[tuple]] = {}

    def rows_once(self, query: Query) -> list[tuple]:
        """Return the rows of a query that changes seldom. They are read once, and again after an `execute`."""
        if query not in self._cached_rows:
            self._cached_rows[query] = list(self.rows(query))
        return self._cached_rows[query]

    @abstractmethod
    def execute(self, query: Query, **values: Any) -> int:
        """Run a statement; return how many rows it changed."""

    @abstractmethod
    def insert(self, query: Query, **values: Any) -> int:
        """Run an INSERT; return the id of the new row."""

    @abstractmethod
    def execute_many(self, query: Query, rows: Iterable[Mapping[str, Any]]) -> None:
        """Run a statement once for each of `rows`, at the latest before the next one that returns a result."""

    def defer(self, query: Query, **values: Any) -> None:
        """Run a statement whose result nobody needs, as `execute_many` does."""
        self.execute_many(query, [values])

    @abstractmethod
    def commit(self) -> None:
        """Commit. Raises Unavailable."""

    @abstractmethod
    def recover(self, error: BaseException) -> None:
        """Roll back after an error."""

    @abstractmethod
    def is_fatal(self, error: Exception) -> bool:
        """Return whether an error concerns the database, and not only the operation that raised it."""
