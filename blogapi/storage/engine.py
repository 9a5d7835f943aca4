"""What every database engine does: the one seam between what is kept and where."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol, Self

from peewee import Model

from blogapi.loop import Loop
from blogapi.storage.query import Query

Values = Mapping[str, Any]


class Runner(Protocol):
    """Runs queries with the values of their Params. Raises Unavailable. `dialect` is the field of an Each."""

    dialect: str

    def row(self, query: Query, values: Values) -> tuple | None:
        """Run a query; return its first row, or None."""

    def rows(self, query: Query, values: Values) -> Iterator[tuple]:
        """Run a query; give its rows one by one."""


class OpenTransaction(Runner, Protocol):
    """What an engine has begun, and a `Transaction` writes by. Raises NotUnique where a constraint says so."""

    def execute(self, query: Query, values: Values) -> int:
        """Run a statement; return how many rows it changed."""

    def insert(self, query: Query, values: Values) -> int:
        """Run an INSERT; return the id of the new row."""

    def rows_of_each(self, query: Query, rows: list[Values]) -> list[list[tuple]]:
        """Run a query once for each of `rows`; return what each gives."""

    def later(self, query: Query, rows: Iterable[Values]) -> None:
        """Run a statement once for each of `rows`, before the next one that gives something back or the commit."""

    def savepoint(self) -> None:
        """Begin a part of the transaction that can end by itself."""

    def release(self, undo: bool = False) -> None:
        """End the part of the transaction; with `undo`, nothing of it is kept."""

    def commit(self) -> None:
        """End the transaction; what was written is on disk."""

    def is_fatal(self, error: Exception) -> bool:
        """Return whether an error is not of one operation, but of the whole transaction."""

    def recover(self, error: BaseException) -> None:
        """End the transaction that an error has left open."""


class Snapshot(Protocol):
    """All that there is in a database as of one moment."""

    def rows(self, model: type[Model]) -> Iterator[tuple]:
        """Give the rows of a table; memory holds some."""

    def count(self, model: type[Model]) -> int:
        """Return how many rows a table has."""

    def last_ids(self) -> dict[str, int]:
        """Return the greatest ids that there ever were, by the names of the tables."""


class Filling(Protocol):
    """A database that is being filled."""

    def add(self, model: type[Model], rows: Iterable[tuple]) -> None:
        """Add rows to a table."""

    def set_last_ids(self, last_ids: Mapping[str, int]) -> None:
        """Let the ids go on after these."""


class Engine(Runner, Protocol):
    """A database."""

    name: str  # by which it is known, without a password
    loop: Loop
    waits_cooperatively: bool  # whether a query that takes long lets others go on

    def open(self, create: bool = True, upgrade: bool = True) -> bool:
        """Connect; set the database up where it is missing or empty, upgrade it where it is older.

        Without `create` a database that is missing, without `upgrade` one that is older is refused. Returns whether it
        was set up. Raises Unavailable, saying why in one line, if it cannot be used.
        """

    def another(self, wait_seconds: float) -> Self:
        """Return an engine with a connection of its own to the same database, for another thread."""

    def close(self) -> None:
        """Close all connections."""

    def begin(self, wait_seconds: float = 0) -> OpenTransaction | None:
        """Begin a transaction that writes; return None if the lock was not to be had.

        Waits for it at most so long, or not at all where that would stop the whole process.
        """

    def shrink(self) -> None:
        """Give room back that a large transaction has taken."""

    def leads(self) -> bool:
        """Return whether this process is the one of all that sends webhooks and publishes posts; raise Unavailable."""

    def size(self) -> int:
        """Return how many bytes it takes on disk."""

    def check(self) -> bool:
        """Return whether the database can be written, as far as that is known; raise Unavailable if not even read."""

    def probe(self, transaction: object) -> None:
        """Write something that changes nothing."""

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """Give all that there is as of one moment, also while others write. Raises Unavailable."""

    def filling(self) -> AbstractContextManager["Filling"]:
        """Set a database up that is not there yet, and fill it. Of what is interrupted, nothing is kept.

        Raises Unavailable, OSError.
        """

    def backup(self, path: Path) -> None:
        """Write a consistent copy as a SQLite file, also while others write. Raises OSError, Unavailable."""
