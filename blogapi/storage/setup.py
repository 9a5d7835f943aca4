"""Setting up and upgrading SQLite databases; PostgreSQL shares parts of this."""

import os
import re
import sqlite3
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import regex

from blogapi.storage.errors import Unavailable

SCHEMA = Path(__file__).resolve().parent.parent / "schema.sql"
# What defines a word: the Unicode tables, and the version of wings/search/words.py
UNICODE = f"{unicodedata.unidata_version}, regex {regex.__version__}, words 2"
APPLICATION_ID = 0x626C6F67  # as in schema.sql
VERSION = 6  # as `user_version` in schema.sql; PostgreSQL stores it in a table
# Tables and indexes added by each version; an upgrade runs the schema's statements that create them.
ADDED = {
    2: ("image", "image_created", "image_part", "retagging", "retagging_changed", "webhook_options", "owner_session"),
    3: ("upload", "image_total"),
    4: ("post_tag_by_time", "search", "search_published", "search_others", "search_large", "search_pending"),
    5: ("deleted_post", "newest_post_deleted", "preview_link", "preview_link_post", "purge", "purge_time"),
    6: (
        "former_slug",
        "search",
        "search_published",
        "search_others",
        "search_pending",
        "search_retagged",
        "draft_copy",
        "draft_copy_post",
    ),
}
# Schema statements that fill tables from other tables
DERIVED = re.compile("^INSERT INTO (upload|image_total) ", re.MULTILINE)
# Dropped by each version: data derived from other tables, and sessions, which are short-lived
DROPPED = {
    2: ("TABLE session",),
    4: ("TABLE tag", "INDEX post_tag_published", "TABLE recent"),
    6: ("TABLE search", "TABLE search_published", "TABLE search_others", "TABLE search_pending"),
}
# Further statements for SQLite
ON_SQLITE = {
    5: (
        "DROP TRIGGER post_deleted",
        "UPDATE deleted_post SET greatest_id = (SELECT max(seq) FROM sqlite_sequence WHERE name = 'post')",
        "DELETE FROM sqlite_sequence WHERE name = 'post'",
    ),
}
# Tables whose constraints changed in a version: SQLite has to rebuild them
REBUILT = {6: ("api_key",)}
# Queues all posts for indexing, which happens while the service runs.
ENQUEUE_ALL = """
INSERT INTO search_pending SELECT false, status = 'published', id FROM post WHERE true ON CONFLICT DO NOTHING
"""
TABLE = re.compile(r"^CREATE TABLE (\w+) ", re.MULTILINE)
TABLES = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
OTHER_WORDS = (
    "another version of Python, regex or this program has indexed its words; run blogapi init to index them again"
)
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
        raise Unavailable(f"its version {version} is newer than this program's {VERSION}; upgrade the program")


def check_tables(schema: str, found: set[str], version: int) -> None:
    """Raise Unavailable if a table is missing that a database of this version must have."""
    added = {name for number, names in ADDED.items() if number > version for name in names}
    if missing := set(TABLE.findall(schema)) - found - added:
        raise Unavailable(f"it says that its version is {version}, but it has no table {min(missing)}")


def derived(schema: str) -> Iterator[str]:
    """Yield the schema statements that fill tables from other tables."""
    return filter(DERIVED.search, schema.split("\n\n"))


def upgrade(schema: str, version: int) -> Iterator[str]:
    """Yield the statements that upgrade a database of an older version."""
    added = "|".join(name for number, names in ADDED.items() if number > version for name in names)
    statement = re.compile(
        rf"^(CREATE (VIRTUAL TABLE|TABLE|INDEX|TRIGGER)|ALTER TABLE|INSERT INTO) ({added}) ", re.MULTILINE
    )
    for number, names in DROPPED.items():
        yield from (f"DROP {name.replace(' ', ' IF EXISTS ')}" for name in names if number > version)
    yield from filter(statement.search, schema.split("\n\n")) if added else ()


def _on_sqlite(schema: str, version: int) -> Iterator[str]:
    for number, statements in ON_SQLITE.items():
        yield from statements if number > version else ()
    for table in dict.fromkeys(name for number, names in REBUILT.items() if number > version for name in names):
        yield f"ALTER TABLE {table} RENAME TO old_{table}"
        yield next(statement for statement in schema.split("\n\n") if f"CREATE TABLE {table} " in statement)
        yield f"INSERT INTO {table} SELECT * FROM old_{table}"
        yield f"DROP TABLE old_{table}"


def set_up(connection: sqlite3.Connection, create: bool) -> bool:
    """Set up an empty SQLite database, or upgrade an old one, or queue its posts for indexing if UNICODE has changed.

    Return whether it was empty. Raises Unavailable if it is not ours, is newer, or needs a change without `create`.
    """
    schema = SCHEMA.read_text()
    if is_current(connection, schema, create):
        return False
    connection.execute("BEGIN IMMEDIATE")
    with connection:  # commits, or rolls back
        # Both again, because another process may have been faster.
        is_empty = not connection.execute(TABLES).fetchone()
        ((version,),) = connection.execute("PRAGMA user_version")
        statements = schema.split("\n\n") if is_empty else [*upgrade(schema, version), *_on_sqlite(schema, version)]
        for statement in statements:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")
        if version < VERSION or not is_indexed(connection):
            connection.execute(ENQUEUE_ALL)
            connection.execute("DELETE FROM search_made")
            connection.execute("INSERT INTO search_made VALUES (?)", (UNICODE,))
    return is_empty


def is_current(connection: sqlite3.Connection, schema: str, create: bool) -> bool:
    """Return whether a SQLite database needs no change. Raises Unavailable like `set_up`."""
    application_id, version = connection.execute("SELECT * FROM pragma_application_id, pragma_user_version").fetchone()
    tables = {name for (name,) in connection.execute(TABLES)}
    if application_id == APPLICATION_ID and version:
        query = "SELECT 1 FROM pragma_table_info('post_tag') WHERE name = 'name'"
        check_version(version, is_released=connection.execute(query).fetchone() is not None)
        check_tables(schema, tables, version)
        if version == VERSION and is_indexed(connection):
            return True
        if not create:
            raise Unavailable(OTHER_WORDS if version == VERSION else OLDER)
    elif application_id or version or tables:
        raise Unavailable("it belongs to another program")
    elif not create:
        raise Unavailable(EMPTY)
    return False


def is_indexed(connection: sqlite3.Connection) -> bool:
    """Return whether the search index was built with this program's Unicode tables."""
    return connection.execute("SELECT unicode FROM search_made").fetchone() == (UNICODE,)
