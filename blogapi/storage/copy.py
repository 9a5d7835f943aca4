"""A copy of a whole database to another one, of either engine: all rows of all tables, as they are."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

from peewee import Model

from blogapi.storage.backup import new_file
from blogapi.storage.engine import Engine
from blogapi.storage.errors import Unavailable
from blogapi.storage.models import BaseModel
from blogapi.storage.search import index
from blogapi.storage.upgrades import set_up


def copy(
    source: Engine, target: Engine, progress: Callable[[Iterable[tuple], int], Iterator[tuple]] | None = None
) -> None:
    """Copy a database as it is at one moment to another that is not there yet, all of it or nothing.

    `progress(rows, count)` is to give the rows. Raises Unavailable, and OSError for files.
    """
    with source.snapshot() as snapshot, target.filling() as filling:
        for model in BaseModel.__subclasses__():
            rows = snapshot.rows(model)
            filling.add(model, progress(rows, snapshot.count(model)) if progress else rows)
        filling.set_last_ids(snapshot.last_ids())


def columns(model: type[Model]) -> list[str]:
    """Return the names of the columns of a table."""
    return [field.column_name for field in model._meta.sorted_fields]


class SqliteFile:
    """A SQLite database that is read or filled in a transaction."""

    def __init__(self, connection: sqlite3.Connection):
        self._connection = connection

    def rows(self, model: type[Model]) -> Iterator[tuple]:
        """Give the rows of a table."""
        yield from self._connection.execute(f"SELECT {', '.join(columns(model))} FROM {model._meta.table_name}")

    def count(self, model: type[Model]) -> int:
        """Return how many rows a table has."""
        return self._connection.execute(f"SELECT count(*) FROM {model._meta.table_name}").fetchone()[0]

    def last_ids(self) -> dict[str, int]:
        """Return the greatest ids that there ever were."""
        last = dict(self._connection.execute("SELECT name, seq FROM sqlite_sequence"))
        (newest,) = self._connection.execute("SELECT ifnull(max(id), 0) FROM post").fetchone()
        return last | {"post": max(newest, last["post"])}

    def add(self, model: type[Model], rows: Iterable[tuple]) -> None:
        """Add rows to a table."""
        names = columns(model)
        text = f"INSERT INTO {model._meta.table_name} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
        self._connection.executemany(text, rows)

    def set_last_ids(self, last_ids: Mapping[str, int]) -> None:
        """Let the ids go on after these."""
        self._connection.execute("DELETE FROM sqlite_sequence")
        self._connection.executemany("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", last_ids.items())


@contextmanager
def read_all(path: Path) -> Iterator[SqliteFile]:
    """Give all that there is in a SQLite database as of one moment, also while others write. Raises Unavailable."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)) as connection:
            connection.isolation_level = None
            connection.execute("BEGIN")
            yield SqliteFile(connection)
    except sqlite3.Error as error:
        raise Unavailable(f"cannot copy the database {path}: {error}") from error


@contextmanager
def fill_new(path: Path) -> Iterator[SqliteFile]:
    """Set a SQLite database up that is not there yet, and fill it. Raises Unavailable, OSError."""
    try:
        with new_file(path) as part, closing(sqlite3.connect(part, isolation_level=None)) as connection:
            connection.execute("PRAGMA journal_mode = off")  # What is interrupted is deleted.
            set_up(connection, upgrade=True)
            connection.execute("BEGIN")
            yield SqliteFile(connection)
            index.make(connection)
            connection.execute("COMMIT")
    except OSError as error:
        raise OSError(f"cannot write the database {path}: {error.strerror}") from error
    except sqlite3.Error as error:
        raise Unavailable(f"cannot write the database {path}: {error}") from error
