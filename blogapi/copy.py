"""Copy a database while it is in use: back it up, or move it between SQLite and PostgreSQL."""

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

from blogapi.search import index
from blogapi.storage.database import Database
from blogapi.storage.engine import Engine
from blogapi.storage.errors import Unavailable
from blogapi.storage.models import BaseModel
from blogapi.storage.setup import EMPTY, MISSING, SCHEMA, TABLE, Contents, SqliteContents, section
from blogapi.storage.sqlite import Sqlite

Progress = Callable[[Iterable, int], Iterable]  # receives rows and their number, and returns the rows
# Tables to leave out of a copy, because the target derives their rows from the other tables
FILLED = ("image_total", "search_rebuild", "upload")
# Reads webhooks from a database older than version 13, which has their options in a separate table
OLD_WEBHOOKS = """(
    SELECT webhook.*, coalesce(headers, '{}') AS headers, coalesce(after_seconds, 0) AS after_seconds,
        coalesce(body, 'event') AS body
    FROM webhook LEFT JOIN webhook_options ON webhook_id = id
) AS webhook"""


def backup(engine: Engine, path: Path) -> None:
    """Write a consistent copy of a database to a SQLite file. Raises Unavailable or OSError."""
    if isinstance(engine, Sqlite):
        write_backup(engine.path, path)
    else:
        copy(engine, Sqlite(path))


def copy(source: Engine, target: Engine, progress: Progress = lambda rows, count: rows) -> None:
    """Copy a snapshot of a database to an empty one, completely or not at all. Raises Unavailable or OSError."""
    with snapshot(source) as contents, filling(target) as filled:
        version, stored_tables = contents.version(), contents.tables()  # An older database has fewer tables.
        if not version:
            raise Unavailable(f"cannot copy the database {source.name}: {EMPTY}")
        for table in [table for table in tables() if table in stored_tables]:
            origin = OLD_WEBHOOKS if table == "webhook" and "webhook_options" in stored_tables else table
            columns = [name for name in filled.columns(table) if name in contents.columns(origin)]
            rows = contents.rows(f"SELECT {', '.join(columns)} FROM {origin}")
            ((count,),) = contents.rows(f"SELECT count(*) FROM {table}")
            filled.add(table, columns, progress(rows, count))
        filled.last_ids = contents.last_ids
        filled.complete(version)
    _index_posts(target, progress)


def _index_posts(target: Engine, progress: Progress) -> None:
    """Index the posts in a new copy. If this is interrupted, the server finishes the indexing when it starts."""
    # The models are bound to the copy only within this block.
    with closing(target), target.peewee_db.bind_ctx(BaseModel.__subclasses__()):
        target.open()
        database = Database(target)
        ((count,),) = database.rows(SQL("SELECT count(*) FROM post"))
        deque(progress(index.rebuild(database), count), maxlen=0)
        index.tidy(database)


def tables() -> list[str]:
    """Return the names of the tables to copy. All of them exist on both engines."""
    shared, _ = section(SCHEMA, "")
    return [table for table in TABLE.findall(shared) if table not in FILLED]


def snapshot(engine: Any) -> AbstractContextManager[Contents]:
    """Open a consistent snapshot of a database, which can be of any version. Raises Unavailable."""
    return read_file(engine.path, "BEGIN") if isinstance(engine, Sqlite) else engine.snapshot()


def filling(engine: Any) -> AbstractContextManager[Contents]:
    """Set up the tables in an empty database, and open it for writing. Raises Unavailable or OSError."""
    return fill_file(engine.path) if isinstance(engine, Sqlite) else engine.filling()


@contextmanager
def connect(file: str, **options: bool) -> Iterator[SqliteContents]:
    """Open a SQLite database in autocommit mode, and close it after the block."""
    with closing(sqlite3.connect(file, isolation_level=None, **options)) as connection:
        yield SqliteContents(connection)


@contextmanager
def read_file(path: Path, statement: str = "") -> Iterator[SqliteContents]:
    """Open a SQLite database of any version, and run a statement. Raises Unavailable if it is missing or damaged."""
    if not path.exists():
        raise Unavailable(MISSING.format(path))
    try:
        with connect(f"{path.as_uri()}?mode=rw", uri=True) as contents:  # mode=rw does not create a missing file.
            contents.execute(statement)
            yield contents
    except sqlite3.Error as error:
        raise Unavailable(f"cannot copy the database {path}: {error}") from error


@contextmanager
def fill_file(path: Path) -> Iterator[SqliteContents]:
    """Create a SQLite database with its tables, and open it for writing. Raises Unavailable or OSError."""
    try:
        with new_file(path) as part, connect(part) as contents:
            contents.execute("PRAGMA journal_mode = off")  # safe, because an interrupted copy is deleted
            contents.set_up(create=True)
            contents.execute("BEGIN")
            yield contents
            contents.execute("COMMIT")
    except sqlite3.Error as error:
        raise Unavailable(f"cannot write the database {path}: {error}") from error


def write_backup(file: Path, path: Path) -> None:
    """Write a consistent copy of a SQLite database to a new file. Raises OSError or Unavailable."""
    with read_file(file) as contents:
        if not contents.version():
            raise Unavailable(f"cannot back up {file}: {EMPTY}")
        try:
            with new_file(path) as part:
                contents.execute("VACUUM INTO ?", (part,))
        except sqlite3.Error as error:
            raise Unavailable(f"cannot back up {file} to {path}: {error}") from error


@contextmanager
def new_file(path: Path) -> Iterator[str]:
    """Yield the name of an empty file. After the block, check the database in the file, and rename the file to `path`.

    `path` is therefore never incomplete, and never overwritten. Raises OSError, sqlite3.Error or Unavailable.
    """
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    file, part = tempfile.mkstemp(prefix=f"{path.name}.", suffix=".part", dir=path.parent)  # with mode 0600
    os.close(file)
    try:
        yield part
        with connect(part) as contents:
            result = contents.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if result != "ok":
            raise Unavailable(f"the database is damaged: {result}")
        _sync(part)
        try:
            os.link(part, path)  # atomic, and fails if `path` exists
        except OSError:  # `path` exists, or the file system has no hard links: systems report the latter differently.
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
