"""Set up, upgrade and copy databases: the part for both engines, and the part for SQLite."""

import os
import re
import sqlite3
import sys
import unicodedata
from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import regex

from blogapi.storage.errors import Unavailable
from blogapi.storage.upgrades import VERSION, Execute, upgrade_from

SCHEMA = (Path(__file__).resolve().parent.parent / "schema.sql").read_text(encoding="utf-8")
# Identifies the rules that split posts into words: the versions of the Unicode tables and of search/words.py
UNICODE = f"{unicodedata.unidata_version}, regex {regex.__version__}, words 4"
APPLICATION_ID = 0x626C6F67  # the same as in schema.sql
STATEMENT_END = re.compile(r"\n\n|(?<=;)\n(?!END)")
SECTION = re.compile(r"^-- On (\w+)\n\n", re.MULTILINE)  # the heading above the statements for one engine
TABLE = re.compile(r"^CREATE TABLE (\w+) ", re.MULTILINE)
# Matches the statements that set up the search index on SQLite
INDEX_SETUP = re.compile(r"(?:CREATE VIRTUAL TABLE|INSERT INTO) search ")
# Marks all posts as not indexed. The running service then indexes them.
REBUILD = "INSERT INTO search_rebuild SELECT max(id) + 1 FROM post HAVING max(id) > 0"
# Statements that fill the tables derived from other tables
FILL = (
    "INSERT INTO upload SELECT DISTINCT upload FROM image_part WHERE upload NOT IN (SELECT upload FROM image)",
    "INSERT INTO image_total SELECT 1, sum(bytes) FROM image GROUP BY 1",
    REBUILD,
)
CREATED = "created a new database %s"  # log message
MISSING = "there is no database {}: run blogapi init, or set BLOGAPI_DATABASE to an existing one"
FOREIGN = "it belongs to another program"
UNRELEASED = "it was written before version 1.0.0: export its posts with the old program, and import them with this one"
NEWER = (
    f"its version {{}} is newer than this program's {VERSION}; upgrade the program, or restore the backup from before "
    "the upgrade"
)
OLDER = "it was written by an older version of this program; to upgrade it, run blogapi init, or start the server"
INDEX_OUTDATED = (
    "its words were indexed by another version of Python, regex or this program; run blogapi init to index them again"
)
EMPTY = "it is empty; run blogapi init to set it up"
INCOMPLETE = "its version is {}, but it has no table {}; restore a backup"
NO_FTS5 = (
    "SQLite {} lacks FTS5, which the search needs; {} uses it: install blogapi with another Python"
    " (in a checkout, rm -r .venv && make PYTHON=…)"
)


def section(text: str, engine: str) -> tuple[str, str]:
    """Split a SQL file into the statements for both engines and those for the given engine only."""
    shared, *others = SECTION.split(text)
    return shared, dict(zip(others[::2], others[1::2], strict=True)).get(engine, "")


class Contents(ABC):
    """A database of any version, to be set up, upgraded or copied. Each engine has a subclass."""

    execute: Execute
    last_ids: dict[str, int]  # maps each table to the highest id ever used in it, after which new ids continue
    find_tables: str  # query for the names of tables and views
    find_unicode: str  # query for the value of UNICODE when all words were indexed
    store_version: str  # statement that stores the version of the tables in place of {}
    store_unicode: str  # statement that stores UNICODE in place of ?

    @abstractmethod
    def version(self) -> int:
        """Return the version of the tables, or 0 without tables. Raises Unavailable if they are another program's."""

    @abstractmethod
    def statements(self, text: str) -> list[str]:
        """Return the statements in a SQL file, translated for this engine."""

    @abstractmethod
    def clear_index(self) -> None:
        """Remove all words from the search index, and the stored UNICODE."""

    @abstractmethod
    def add(self, table: str, columns: list[str], rows: Iterable[tuple]) -> None:
        """Add rows to a table."""

    def rows(self, query: str) -> Iterable[tuple]:
        """Run a query; yield its rows, holding only a few in memory at a time."""
        return self.execute(query)

    def schema(self) -> list[str]:
        """Return the statements that set up an empty database."""
        return self.statements(SCHEMA)

    def tables(self) -> set[str]:
        return {name for (name,) in self.execute(self.find_tables)}

    def columns(self, table: str) -> list[str]:
        return [name for name, *_ in self.execute(f"SELECT * FROM {table} LIMIT 0").description]

    def set_up(self, create: bool, upgrade: bool = False) -> bool:
        """Set up an empty database, or upgrade an old one; return whether the database was empty.

        If UNICODE has changed, also have all posts indexed again. The caller must keep other processes from setting up
        the database at the same time. Raises Unavailable in the same cases as `is_current`.
        """
        if self.is_current(create, upgrade):
            return False
        version = self.version()
        if version:
            upgrade_from(version, self.execute, self.statements)
            self._check_tables(version)
        else:
            for statement in self.schema():
                self.execute(statement)
        self.execute(self.store_version.format(VERSION))
        if not self._is_indexed():
            if version:
                self.clear_index()
                self.execute("DELETE FROM search_rebuild")
                self.execute(REBUILD)
            self.execute(self.store_unicode, (UNICODE,))
        return not version

    def is_current(self, create: bool, upgrade: bool) -> bool:
        """Return whether the database is set up and up to date.

        Raises Unavailable if it belongs to another program or is newer than this program, if it is empty and `create`
        is false, or if it is old and both `create` and `upgrade` are false.
        """
        version = self.version()
        if not version and not create:
            raise Unavailable(EMPTY)
        if version and "name" not in self.columns("post_tag"):  # true of versions 1 to 5, from before 1.0.0
            raise Unavailable(UNRELEASED)
        if version > VERSION:
            raise Unavailable(NEWER.format(version))
        if version == VERSION:
            self._check_tables(version)
        is_current = version == VERSION and self._is_indexed()
        if not is_current and not (create or upgrade):
            raise Unavailable(INDEX_OUTDATED if version == VERSION else OLDER)
        return is_current

    def _is_indexed(self) -> bool:
        return list(self.execute(self.find_unicode)) == [(UNICODE,)]

    def _check_tables(self, version: int) -> None:
        if missing := {name for statement in self.schema() for name in TABLE.findall(statement)} - self.tables():
            raise Unavailable(INCOMPLETE.format(version, min(missing)))

    def complete(self, version: int) -> None:
        """Complete the contents of the tables after a database of this version was copied into them."""
        for statement in FILL:
            self.execute(statement)
        upgrade_from(version, self.execute, lambda text: ())  # runs no SQL files: the tables are already up to date


class SqliteContents(Contents):
    """The contents of a SQLite database, accessed over a connection in autocommit mode."""

    find_tables = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
    find_unicode = "SELECT unicode FROM search_made"
    store_version = "PRAGMA user_version = {}"
    store_unicode = "INSERT INTO search_made VALUES (?)"

    def __init__(self, connection: sqlite3.Connection):
        self.connection = connection
        self.execute = connection.execute

    def version(self) -> int:
        application_id, version = self.execute("SELECT * FROM pragma_application_id, pragma_user_version").fetchone()
        is_ours = application_id == APPLICATION_ID and version
        if not is_ours and (application_id or version or self.tables()):
            raise Unavailable(FOREIGN)
        return version

    @property
    def last_ids(self) -> dict[str, int]:
        ids = dict(self.execute("SELECT name, seq FROM sqlite_sequence"))
        if "post" not in ids:  # true since version 5 of the tables
            ids["post"] = self.execute("SELECT greatest_id FROM deleted_post").fetchone()[0]
        return ids | {"post": max(ids["post"], *self.execute("SELECT ifnull(max(id), 0) FROM post").fetchone())}

    @last_ids.setter
    def last_ids(self, ids: dict[str, int]) -> None:
        self.execute("UPDATE deleted_post SET greatest_id = :post", ids)
        for name, last in ids.items():
            self.execute("UPDATE sqlite_sequence SET seq = ? WHERE name = ?", (last, name))

    def statements(self, text: str) -> list[str]:
        return STATEMENT_END.split("".join(section(text, "SQLite")).strip())

    def set_up(self, create: bool, upgrade: bool = False) -> bool:
        if self.is_current(create, upgrade):  # checked before taking the lock, because a server may hold it
            return False
        self.execute("BEGIN IMMEDIATE")
        with self.connection:  # commits, or rolls back after an error
            return super().set_up(create, upgrade)

    def clear_index(self) -> None:
        self.execute("DROP TABLE search")
        self.execute("DELETE FROM search_made")
        for statement in filter(INDEX_SETUP.search, self.statements(SCHEMA)):
            self.execute(statement)

    def add(self, table: str, columns: list[str], rows: Iterable[tuple]) -> None:
        values = ", ".join("?" * len(columns))
        self.connection.executemany(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})", rows)


def check_sqlite() -> None:
    """Raise Unavailable if this Python's SQLite lacks FTS5, which the search needs."""
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute("SELECT fts5_source_id()")
        except sqlite3.Error as error:
            raise Unavailable(NO_FTS5.format(sqlite3.sqlite_version, os.path.realpath(sys.executable))) from error
