"""Copy a whole database, even during writes: back it up, or move it between SQLite and PostgreSQL."""

import errno
import os
import sqlite3
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

from peewee import SQL

from blogapi.storage.database import Database
from blogapi.storage.engine import Engine
from blogapi.storage.errors import Unavailable
from blogapi.storage.models import BaseModel
from blogapi.storage.setup import APPLICATION_ID, EMPTY, MISSING, SCHEMA, TABLE, complete_copy, section, set_up
from blogapi.storage.setup import tables as tables_of
from blogapi.storage.sqlite import Sqlite
from blogapi.wings.search import index

Progress = Callable[[Iterable, int], Iterator]
# Derived tables, which each database fills by itself
FILLED = ("image_total", "search_rebuild", "upload")
# The webhooks of a database before version 13, whose options were in a separate table
OLD_WEBHOOKS = """(
    SELECT webhook.*, coalesce(headers, '{}') AS headers, coalesce(after_seconds, 0) AS after_seconds,
        coalesce(body, 'event') AS body
    FROM webhook LEFT JOIN webhook_options ON webhook_id = id
) AS webhook"""


def backup(engine: Engine, path: Path) -> None:
    """Write a consistent copy as a SQLite file. Raises Unavailable, OSError."""
    if isinstance(engine, Sqlite):
        write_backup(engine.path, path)
    else:
        copy(engine, Sqlite(path))


def copy(source: Engine, target: Engine, progress: Progress | None = None) -> None:
    """Copy one consistent state of a database to an empty one; all of it or nothing.

    `progress(rows, count)` must yield the rows. Raises Unavailable, and OSError for files.
    """
    with snapshot(source) as contents, filling(target) as filled:
        stored_tables = contents.tables  # An older version has fewer.
        if "post" not in stored_tables:
            raise Unavailable(f"cannot copy the database {source.name}: {EMPTY}")
        for table in [table for table in tables() if table in stored_tables]:
            origin = OLD_WEBHOOKS if table == "webhook" and "webhook_options" in stored_tables else table
            columns = [name for name in columns_of(filled, table) if name in columns_of(contents, origin)]
            rows = contents.rows(f"SELECT {', '.join(columns)} FROM {origin}")
            if progress:
                ((count,),) = contents.rows(f"SELECT count(*) FROM {table}")
                rows = progress(rows, count)
            filled.add(table, columns, rows)
        filled.last_ids = contents.last_ids
        filled.complete(contents.version)
    _index_posts(target, progress)


def columns_of(connection: Any, table: str) -> list[str]:
    """Return the names of a table's columns."""
    return [name for name, *_ in connection.execute(f"SELECT * FROM {table} LIMIT 0").description]


def _index_posts(target: Engine, progress: Progress | None) -> None:
    """Index the posts of a new copy. If that is interrupted, the server continues."""
    # Afterwards, the models belong to the source again.
    with closing(target), target.peewee_db.bind_ctx(BaseModel.__subclasses__()):
        target.open()
        database = Database(target)
        posts: Iterable = index.rebuild(database)
        ((count,),) = database.rows(SQL("SELECT count(*) FROM post"))
        deque(progress(posts, count) if progress else posts, maxlen=0)
        index.tidy(database)


def tables() -> list[str]:
    """Return the tables to copy, which both engines have."""
    shared, _ = section(SCHEMA, "")
    return [table for table in TABLE.findall(shared) if table not in FILLED]


@contextmanager
def snapshot(engine: Any) -> Iterator[Any]:
    """Open a connection to one consistent state of a database of any version. Raises Unavailable."""
    is_sqlite = isinstance(engine, Sqlite)
    with read_file(engine.path) if is_sqlite else engine.snapshot() as contents:
        if is_sqlite:
            contents.execute("BEGIN")
        yield contents


def filling(engine: Any) -> Any:
    """Set up an empty database, and open a connection to fill it."""
    return fill_file(engine.path) if isinstance(engine, Sqlite) else engine.filling()


# SQLite files


class SqliteContents(sqlite3.Connection):
    """A SQLite database to copy from or to fill."""

    rows = sqlite3.Connection.execute
    tables = property(tables_of)

    @property
    def version(self) -> int:
        """The version of its tables."""
        return self.execute("PRAGMA user_version").fetchone()[0]

    @property
    def last_ids(self) -> dict[str, int]:
        """The highest id ever used in each table; new ids follow it."""
        ids = dict(self.execute("SELECT name, seq FROM sqlite_sequence"))
        if "post" not in ids:  # as in databases before version 5
            ids["post"] = self.execute("SELECT greatest_id FROM deleted_post").fetchone()[0]
        return ids | {"post": max(ids["post"], *self.execute("SELECT ifnull(max(id), 0) FROM post").fetchone())}

    @last_ids.setter
    def last_ids(self, ids: dict[str, int]) -> None:
        self.execute("UPDATE deleted_post SET greatest_id = :post", ids)
        self.executemany("UPDATE sqlite_sequence SET seq = ? WHERE name = ?", [(ids[name], name) for name in ids])

    def add(self, table: str, columns: list[str], rows: Iterable[tuple]) -> None:
        """Add rows to a table."""
        values = ", ".join("?" * len(columns))
        self.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})", rows)

    def complete(self, version: int) -> None:
        """Complete the tables after a database of this version was copied into them."""
        complete_copy(self.execute, version)


def connect(file: str, **options: bool) -> AbstractContextManager[SqliteContents]:
    """Open a SQLite database in autocommit mode; close it at the end."""
    return closing(sqlite3.connect(file, isolation_level=None, factory=SqliteContents, **options))


@contextmanager
def read_file(path: Path) -> Iterator[SqliteContents]:
    """Open a SQLite database of any version for reading. Raises Unavailable if it is missing or damaged."""
    if not path.exists():
        raise Unavailable(MISSING.format(path))
    try:
        with connect(f"{path.as_uri()}?mode=rw", uri=True) as connection:  # This does not create a missing file.
            yield connection
    except sqlite3.Error as error:
        raise Unavailable(f"cannot copy the database {path}: {error}") from error


@contextmanager
def fill_file(path: Path) -> Iterator[SqliteContents]:
    """Set up a new SQLite database to be filled. Raises Unavailable, OSError."""
    try:
        with new_file(path) as part, connect(part) as connection:
            connection.execute("PRAGMA journal_mode = off")  # An interrupted copy is deleted.
            set_up(connection, create=True)
            connection.execute("BEGIN")
            yield connection
            connection.execute("COMMIT")
    except OSError as error:
        raise OSError(f"cannot write the database {path}: {error.strerror}") from error
    except sqlite3.Error as error:
        raise Unavailable(f"cannot write the database {path}: {error}") from error


def write_backup(file: Path, path: Path) -> None:
    """Write a consistent copy of a database to a new file. Raises Unavailable, and the errors of `new_file`."""
    with read_file(file) as connection:
        if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
            raise Unavailable("it belongs to another program")
        try:
            with new_file(path) as part:
                connection.execute("VACUUM INTO ?", (part,))
        except sqlite3.Error as error:
            raise Unavailable(f"cannot back up {file} to {path}: {error}") from error


@contextmanager
def new_file(path: Path) -> Iterator[str]:
    """Yield the name of an empty file of mode 0600; at the end, check the database in it and rename it to `path`.

    So `path` is never incomplete, and never overwritten. Raises FileExistsError, OSError, sqlite3.Error, Unavailable.
    """
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    file, part = tempfile.mkstemp(prefix=f"{path.name}.", suffix=".part", dir=path.parent)  # of mode 0600
    os.close(file)
    try:
        yield part
        with connect(part) as connection:
            result = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if result != "ok":
            raise Unavailable(f"the database is damaged: {result}")
        _sync(part)
        try:
            os.link(part, path)  # one step, which overwrites nothing
        except OSError:  # The file exists, or the file system has no links; the errors for that differ.
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            os.replace(part, path)
        _sync(path.parent)
    finally:
        for leftover in (part, f"{part}-journal"):
            Path(leftover).unlink(missing_ok=True)


def _sync(path: str | Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
