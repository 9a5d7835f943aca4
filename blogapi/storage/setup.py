"""Setting up and upgrading SQLite databases; PostgreSQL shares parts of this."""

import os
import re
import sqlite3
import sys
import unicodedata
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import regex

from blogapi.storage.errors import Unavailable
from blogapi.storage.upgrades import VERSION, Execute, compute, upgrade_from

SCHEMA = (Path(__file__).resolve().parent.parent / "schema.sql").read_text(encoding="utf-8")
# What defines a word: the Unicode tables, and the version of wings/search/words.py
UNICODE = f"{unicodedata.unidata_version}, regex {regex.__version__}, words 4"
APPLICATION_ID = 0x626C6F67  # as in schema.sql
STATEMENT_END = re.compile(r"\n\n|(?<=;)\n(?!END)")
SECTION = re.compile(r"^-- On (\w+)\n\n", re.MULTILINE)  # the heading of the statements for one engine
# Marks all posts to be indexed while the service runs
REBUILD = "INSERT INTO search_rebuild SELECT max(id) + 1 FROM post HAVING max(id) > 0"
# A statement that sets up SQLite's index
INDEX_SETUP = re.compile(r"(?:CREATE VIRTUAL TABLE|INSERT INTO) (search) ")
# Fills the tables that are derived from others
FILL = (
    "INSERT INTO upload SELECT DISTINCT upload FROM image_part WHERE upload NOT IN (SELECT upload FROM image)",
    "INSERT INTO image_total SELECT 1, sum(bytes) FROM image GROUP BY 1",
    REBUILD,
)
TABLE = re.compile(r"^CREATE TABLE (\w+) ", re.MULTILINE)
INDEX_OUTDATED = (
    "another version of Python, regex or this program has indexed its words; run blogapi init to index them again"
)
CREATED = "created a new database %s"  # log message
MISSING = "there is no database {}: run blogapi init, or set BLOGAPI_DATABASE to an existing one"
OLDER = "an older program has written it; to upgrade it, run blogapi init, or start the server"
EMPTY = "it is empty; run blogapi init to set it up"
NO_FTS5 = (
    "SQLite {} lacks FTS5, which the search needs; {} uses it: install blogapi with another Python"
    " (in a checkout, rm -r .venv && make PYTHON=…)"
)


def check_sqlite() -> None:
    """Raise Unavailable if the SQLite of this Python cannot search."""
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute("SELECT fts5_source_id()")
        except sqlite3.Error as error:
            raise Unavailable(NO_FTS5.format(sqlite3.sqlite_version, os.path.realpath(sys.executable))) from error


def check_version(version: int, is_released: bool) -> None:
    """Raise Unavailable if the database's version is too old or too new for this program."""
    if not is_released:  # versions 1 to 5 of development, without `post_tag.name`
        remedy = "export its posts with the old program, and import them with this one"
        raise Unavailable(f"it was written before version 1.0.0: {remedy}")
    if version > VERSION:
        remedy = "upgrade the program, or restore the backup from before the upgrade"
        raise Unavailable(f"its version {version} is newer than this program's {VERSION}; {remedy}")


def check_tables(schema: Iterable[str], tables: set[str], version: int) -> None:
    """Raise Unavailable if a table is missing after the upgrade from this version."""
    if missing := {name for statement in schema for name in TABLE.findall(statement)} - tables:
        raise Unavailable(
            f"it says that its version is {version}, but it has no table {min(missing)}; restore a backup"
        )


def section(text: str, engine: str) -> tuple[str, str]:
    """Split a SQL file into the statements for both engines and those for this engine only."""
    shared, *others = SECTION.split(text)
    return shared, dict(zip(others[::2], others[1::2], strict=True)).get(engine, "")


def statements(text: str) -> list[str]:
    """Return SQLite's statements from a SQL file."""
    return STATEMENT_END.split("".join(section(text, "SQLite")).strip())


def set_up(connection: sqlite3.Connection, create: bool, upgrade: bool = False) -> bool:
    """Set up an empty SQLite database or upgrade an old one, and have all posts indexed again if UNICODE has changed.

    Return whether it was empty. Raises Unavailable if it is not ours, is newer, is empty without `create`, or is old
    without `create` or `upgrade`.
    """
    if is_current(connection, create, upgrade):
        return False
    connection.execute("BEGIN IMMEDIATE")
    with connection:  # commits, or rolls back
        # Check both again, because another process may have been faster.
        is_empty = not tables(connection)
        ((version,),) = connection.execute("PRAGMA user_version")
        if is_empty:
            for statement in statements(SCHEMA):
                connection.execute(statement)
        else:
            upgrade_from(version, connection.execute, statements)
            check_tables(statements(SCHEMA), tables(connection), version)
        connection.execute(f"PRAGMA user_version = {VERSION}")
        if not is_indexed(connection):
            if not is_empty:
                clear_index(connection)
            connection.execute("INSERT INTO search_made VALUES (?)", (UNICODE,))
    return is_empty


def clear_index(connection: sqlite3.Connection) -> None:
    """Set up the search index again, without words, and have all posts indexed."""
    again = [statement for statement in statements(SCHEMA) if INDEX_SETUP.search(statement)]
    emptied = [f"DELETE FROM {table}" for table in ("search_rebuild", "search_made")]
    dropped = {f"DROP TABLE {name}": 0 for statement in again for name in INDEX_SETUP.findall(statement)}
    for statement in (*dropped, *again, *emptied, REBUILD):
        connection.execute(statement)


def tables(connection: sqlite3.Connection) -> set[str]:
    """Return the names of the tables and views."""
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")}


def is_current(connection: sqlite3.Connection, create: bool, upgrade: bool) -> bool:
    """Return whether a SQLite database needs no change. Raises Unavailable like `set_up`."""
    application_id, version = connection.execute("SELECT * FROM pragma_application_id, pragma_user_version").fetchone()
    if application_id == APPLICATION_ID and version:
        query = "SELECT 1 FROM pragma_table_info('post_tag') WHERE name = 'name'"
        check_version(version, is_released=connection.execute(query).fetchone() is not None)
        if version == VERSION:
            check_tables(statements(SCHEMA), tables(connection), version)
            if is_indexed(connection):
                return True
        if not (create or upgrade):
            raise Unavailable(INDEX_OUTDATED if version == VERSION else OLDER)
    elif application_id or version or tables(connection):
        raise Unavailable("it belongs to another program")
    elif not create:
        raise Unavailable(EMPTY)
    return False


def is_indexed(connection: sqlite3.Connection) -> bool:
    """Return whether the search index was built with this program's Unicode tables."""
    return connection.execute("SELECT unicode FROM search_made").fetchone() == (UNICODE,)


def complete_copy(execute: Execute, version: int) -> None:
    """Complete the tables after a database of this version was copied into them."""
    for statement in FILL:
        execute(statement)
    for number in range(version + 1, VERSION + 1):
        compute(execute, number)
