"""Whole databases: set-up, and copies of all rows of all tables, even during writes."""

import errno
import os
import re
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

from blogapi.search.words import UNICODE
from blogapi.storage.errors import Unavailable
from blogapi.storage.models import BaseModel

SCHEMAS = Path(__file__).resolve().parent.parent
APPLICATION_ID = 0x626C6F67  # as in schema.sql
VERSION = 4  # as in both schemas
# What each version has added to the one before: an upgrade runs those statements of the schema that name it.
ADDED = {
    2: ("image", "image_created", "image_part", "retagging", "retagging_changed", "webhook_options", "owner_session"),
    3: ("upload", "image_total"),
    4: ("post_tag_by_time", "search", "search_published", "search_others", "search_large", "search_pending"),
}
# The statements of a schema that fill tables from others
DERIVED = re.compile("^INSERT INTO (upload|image_total) ", re.MULTILINE)
# What a version dropped: copies of what other tables have, and sessions, which end
DROPPED = {2: ("TABLE session",), 4: ("TABLE tag", "INDEX post_tag_published", "TABLE search", "TABLE recent")}
# The words of all posts are indexed again, while the service runs.
NOTE_ALL = "INSERT INTO search_pending SELECT status = 'published', id FROM post WHERE true ON CONFLICT DO NOTHING"
OTHER_PYTHON = "another Python has indexed its words; run blogapi init to index them again"
MISSING = "there is no database {}: run blogapi init, or set BLOGAPI_DATABASE to an existing one"
OLDER = "an older program has written it; to upgrade it, run blogapi init, or start the server"
EMPTY = "it is empty; run blogapi init to set it up"


def copy(source: Any, target: Any, progress: Callable[[Iterable[tuple], int], Iterator[tuple]] | None = None) -> None:
    """Copy the state of a database at one moment to an empty one; all of it or nothing.

    `progress(rows, count)` yields the rows. Raises Unavailable, and OSError for files.
    """
    with source.snapshot() as snapshot, target.filling() as filling:
        found = {table for (table,) in snapshot.rows(snapshot.TABLES)}  # A database of an older version has fewer.
        for model in [model for model in BaseModel.__subclasses__() if model._meta.table_name in found]:
            table, columns = model._meta.table_name, [field.column_name for field in model._meta.sorted_fields]
            rows = snapshot.rows(f"SELECT {', '.join(columns)} FROM {table}")
            if progress:
                ((count,),) = snapshot.rows(f"SELECT count(*) FROM {table}")
                rows = progress(rows, count)
            filling.add(table, columns, rows)
        for last in snapshot.rows(snapshot.LAST_IDS):
            filling.execute(filling.SET_LAST_ID, last)


def check_version(version: int, is_released: bool) -> None:
    """Raise Unavailable unless this program knows the tables of a database of ours."""
    if not is_released:  # It has a version from 1 to 5, but no `post_tag.name`.
        remedy = "export its posts with the old program, and import them with this one"
        raise Unavailable(f"it was written before version 1.0.0: {remedy}")
    if version > VERSION:
        raise Unavailable(f"its version {version} is newer than this program's {VERSION}; upgrade the program")


def check_tables(found: set[str], version: int) -> None:
    """Raise Unavailable if a table is missing that a database of this version has."""
    added = {name for number, names in ADDED.items() if number > version for name in names}
    if missing := {model._meta.table_name for model in BaseModel.__subclasses__()} - found - added:
        raise Unavailable(f"it says that its version is {version}, but it has no table {min(missing)}")


def derived(schema: str) -> Iterator[str]:
    """Yield the statements that fill tables from others."""
    return filter(DERIVED.search, schema.split("\n\n"))


def upgrade(schema: str, version: int) -> Iterator[str]:
    """Yield the statements of a schema that bring a database of an older version to this one."""
    added = "|".join(name for number, names in ADDED.items() if number > version for name in names)
    statement = re.compile(rf"^(CREATE (VIRTUAL TABLE|TABLE|INDEX)|ALTER TABLE|INSERT INTO) ({added}) ", re.MULTILINE)
    for number, names in DROPPED.items():
        yield from (f"DROP {name.replace(' ', ' IF EXISTS ')}" for name in names if number > version)
    yield from filter(statement.search, schema.split("\n\n")) if added else ()


# SQLite


def set_up(connection: sqlite3.Connection, create: bool) -> bool:
    """Set a SQLite database up if it is empty, upgrade it, and index its words if another Python did.

    Return whether it was empty. Raises Unavailable if it is not ours, is newer, or needs a change without `create`.
    """
    application_id, version = connection.execute("SELECT * FROM pragma_application_id, pragma_user_version").fetchone()
    tables = "SELECT 1 FROM sqlite_master"
    if application_id == APPLICATION_ID and version:
        query = "SELECT 1 FROM pragma_table_info('post_tag') WHERE name = 'name'"
        check_version(version, is_released=connection.execute(query).fetchone() is not None)
        check_tables({name for (name,) in connection.execute(SqliteContents.TABLES)}, version)
        if version == VERSION and is_indexed(connection):
            return False
        if not create:
            raise Unavailable(OTHER_PYTHON if version == VERSION else OLDER)
    elif application_id or version or connection.execute(tables).fetchone():
        raise Unavailable("it belongs to another program")
    elif not create:
        raise Unavailable(EMPTY)
    connection.execute("BEGIN IMMEDIATE")
    with connection:  # commits, or rolls back
        is_empty = not connection.execute(tables).fetchone()  # checked again: another process may have been faster
        schema = (SCHEMAS / "schema.sql").read_text()
        ((version,),) = connection.execute("PRAGMA user_version")  # likewise
        for statement in schema.split("\n\n") if is_empty else upgrade(schema, version):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")
        if version < VERSION or not is_indexed(connection):
            connection.execute(NOTE_ALL)
            connection.execute("DELETE FROM search_made")
            connection.execute("INSERT INTO search_made VALUES (?)", (UNICODE,))
    return is_empty


def is_indexed(connection: sqlite3.Connection) -> bool:
    """Return whether this program would write the same words to the index of the search."""
    return connection.execute("SELECT unicode FROM search_made").fetchone() == (UNICODE,)


class SqliteContents(sqlite3.Connection):
    """A SQLite database that is copied, or filled."""

    # The greatest ids ever used, and the tables; new ids follow these.
    LAST_IDS = """
        SELECT iif(name = 'post', max(seq, (SELECT ifnull(max(id), 0) FROM post)), seq), name FROM sqlite_sequence
    """
    TABLES = "SELECT name FROM sqlite_master WHERE type = 'table'"
    SET_LAST_ID = "UPDATE sqlite_sequence SET seq = ? WHERE name = ?"

    rows = sqlite3.Connection.execute

    def add(self, table: str, columns: list[str], rows: Iterable[tuple]) -> None:
        """Add rows to a table."""
        values = ", ".join("?" * len(columns))
        self.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})", rows)


def connect(file: str, **options: bool) -> AbstractContextManager[SqliteContents]:
    """Open a SQLite database for a while, without transactions of its own."""
    return closing(sqlite3.connect(file, isolation_level=None, factory=SqliteContents, **options))


@contextmanager
def read_file(path: Path) -> Iterator[SqliteContents]:
    """Open a SQLite database of any version to read it. Raises Unavailable if it is missing or damaged."""
    if not path.exists():
        raise Unavailable(MISSING.format(path))
    try:
        with connect(f"{path.as_uri()}?mode=rw", uri=True) as connection:  # This does not create a missing file.
            yield connection
    except sqlite3.Error as error:
        raise Unavailable(f"cannot copy the database {path}: {error}") from error


@contextmanager
def fill_file(path: Path) -> Iterator[SqliteContents]:
    """Set up a new SQLite database, and fill it. Raises Unavailable, OSError."""
    try:
        with new_file(path) as part, connect(part) as connection:
            connection.execute("PRAGMA journal_mode = off")  # An interrupted copy is deleted.
            set_up(connection, create=True)
            connection.execute("BEGIN")
            yield connection
            for statement in derived((SCHEMAS / "schema.sql").read_text()):
                connection.execute(statement)
            connection.execute(NOTE_ALL)
            connection.execute("COMMIT")
    except OSError as error:
        raise OSError(f"cannot write the database {path}: {error.strerror}") from error
    except sqlite3.Error as error:
        raise Unavailable(f"cannot write the database {path}: {error}") from error


def write_backup(connection: sqlite3.Connection, path: Path) -> None:
    """Write a consistent copy of a database to a new file. Raises Unavailable, and errors as `new_file` does."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise Unavailable("it belongs to another program")
    with new_file(path) as part:
        connection.execute("VACUUM INTO ?", (part,))


@contextmanager
def new_file(path: Path) -> Iterator[str]:
    """Yield the name of an empty file, of mode 0600, which becomes the database `path` at the end if it is sound.

    An incomplete one never has it. Raises FileExistsError rather than overwrite; OSError, sqlite3.Error, Unavailable.
    """
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    file, part = tempfile.mkstemp(prefix=f"{path.name}.", suffix=".part", dir=path.parent)  # of mode 0600
    os.close(file)
    try:
        yield part
        with connect(part) as connection:
            found = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if found != "ok":
            raise Unavailable(f"the database is damaged: {found}")
        _sync(part)
        try:
            os.link(part, path)  # one step, which overwrites nothing
        except OSError:  # It exists, or this file system has no links, which each says in another way.
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            os.replace(part, path)
        _sync(path.parent)
    finally:
        Path(part).unlink(missing_ok=True)


def _sync(path: str | Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


# PostgreSQL


def set_up_postgresql(connection: Any, create: bool) -> bool:
    """Do the same as `set_up` in the open transaction."""
    query = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = current_schema()"
    found = set(connection.execute(query))
    if found and ("blogapi", "version") not in found:
        raise Unavailable("it belongs to another program")
    schema = (SCHEMAS / "postgresql/schema.sql").read_text()
    if not found:
        if not create:
            raise Unavailable(EMPTY)
        connection.execute(schema)
    version, unicode = connection.execute("TABLE blogapi").fetchone()
    check_version(version, is_released=not found or ("post_tag", "name") in found)
    check_tables({table for table, _ in connection.execute(query)}, version)
    if version < VERSION:
        if not create:
            raise Unavailable(OLDER)
        for statement in upgrade(schema, version):
            connection.execute(statement)
        connection.execute("UPDATE blogapi SET version = %s", [VERSION])
    if version < VERSION or unicode != UNICODE:
        if not create:
            raise Unavailable(OTHER_PYTHON)
        connection.execute(NOTE_ALL)
        connection.execute("UPDATE blogapi SET unicode = %s", [UNICODE])
    return not found


def derive_postgresql(connection: Any) -> None:
    """Fill the tables that others determine, in the open transaction."""
    for statement in derived((SCHEMAS / "postgresql/schema.sql").read_text()):
        connection.execute(statement)
    connection.execute(NOTE_ALL)
