"""SQLite: the connection to a database file, transactions on it, and what its errors mean."""

import logging
import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing
from pathlib import Path
from typing import Any, Self

from peewee import SqliteDatabase

from blogapi.loop import PLAIN, Loop
from blogapi.storage.backup import write_backup
from blogapi.storage.copy import SqliteFile, fill_new, read_all
from blogapi.storage.errors import RETRY_SECONDS, NotUnique, Unavailable
from blogapi.storage.query import Each, Prepared, Query, Statement
from blogapi.storage.upgrades import VERSION, set_up

PRAGMAS = {
    "journal_mode": "wal",
    "synchronous": "full",  # what was acknowledged survives a power cut
    "temp_store": "memory",  # savepoints need no file
    "journal_size_limit": 16 * 1024 * 1024,  # bytes; a -wal that one large transaction made larger is cut back to it
}
# After these, what SQLite keeps of the file in memory may be wrong for good.
DISTRUSTED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOTADB}
# These are about the file, the disk or the connection, and so everybody's; any other is about one statement.
FATAL = DISTRUSTED | {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_PROTOCOL,
    sqlite3.SQLITE_READONLY,
}
NOT_UNIQUE = {sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY}
CONNECT_SECONDS = 1.0  # for a program that closes the database, and has it for itself while it does
ROOM_BYTES = 256 * 1024  # on a disk; with less than that it is as good as full

log = logging.getLogger(__name__)


class Sqlite:
    """A database file, and one kept connection to it.

    A connection for each request would cost more than most requests do (about 500 µs). SQLite's own waiting for a
    lock would stop the whole process, so there is none but for `wait_seconds`: whoever begins a transaction waits.
    """

    dialect = "sqlite"
    waits_cooperatively = False

    def __init__(self, path: Path, wait_seconds: float = 0, loop: Loop = PLAIN):
        self.path = path.absolute()
        self.name = str(self.path)
        self._wal = Path(f"{self.path.resolve()}-wal")  # SQLite has it beside the file itself, not beside a link.
        self._wait_seconds = wait_seconds
        self.connection: sqlite3.Connection | None = None
        self._dialect = SqliteDatabase(None)  # builds the text of queries, and is never connected
        self._statements: dict[Prepared, Statement] = {}
        self._files: dict[Path, tuple[int, int]] = {}
        self._replaced = False
        self._write_failed = False
        self.loop = loop

    def open(self, create: bool = True, upgrade: bool = True) -> bool:
        """Connect; set the database up where it is missing or empty, upgrade it where it is older.

        Without `create` a database that is missing, without `upgrade` one that is older is refused. Returns whether it
        was set up. Raises Unavailable, saying why in one line, if it cannot be used.
        """
        try:
            # Keys and drafts are nobody else's business: 0600, which SQLite gives to the -wal and -shm too.
            os.close(os.open(self.path, os.O_RDWR | (os.O_CREAT if create else 0), 0o600))
            if not self.path.is_file():
                raise Unavailable("it is no regular file")
            connection = sqlite3.connect(self.path, isolation_level=None)
            try:
                created = set_up(connection, upgrade)
            finally:
                connection.close()
            self._files = {self.path: _identity(self.path)}
            self._connect()
        except FileNotFoundError as error:
            if create:
                raise Unavailable(f"cannot set up the database {self.path}: its folder is missing") from error
            hint = "blogapi init sets one up, BLOGAPI_DATABASE names another"
            raise Unavailable(f"there is no database {self.path}: {hint}") from error
        except OSError as error:
            raise Unavailable(f"cannot open the database {self.path}: {error.strerror}") from error
        except (sqlite3.Error, Unavailable) as error:
            raise Unavailable(f"cannot use the database {self.path}: {error}") from error
        return created

    def another(self, wait_seconds: float) -> Self:
        """Return an engine with a connection of its own to the same database, for another thread.

        Not by `open`: to close a file of one's own drops all locks that SQLite has on it in this process.
        """
        other = type(self)(self.path, wait_seconds)
        other._files = {self.path: self._files[self.path]}
        other._connect()
        return other

    def close(self) -> None:
        """Close the connection; the last one of all leaves no -wal."""
        if self.connection is not None:
            self.connection.close()
            self.connection = None
            self._files.pop(self._wal, None)

    # Statements

    def run(self, query: Query, values: Mapping[str, Any]) -> sqlite3.Cursor:
        """Run a query with the values of its `Param`s; return its cursor. Raises NotUnique or Unavailable."""
        statement = self.statement(query)
        try:
            return (self.connection or self._connect()).execute(statement.text, statement.bind(values))
        except sqlite3.Error as error:
            raise self._failure(error) from error

    def row(self, query: Query, values: Mapping[str, Any]) -> tuple | None:
        """Run a query; return its first row, or None. Raises Unavailable."""
        cursor = self.run(query, values)
        try:
            return cursor.fetchone()
        except sqlite3.Error as error:
            raise self._failure(error) from error

    def rows(self, query: Query, values: Mapping[str, Any]) -> Iterator[tuple]:
        """Run a query; give its rows one by one. Raises Unavailable, also half-way."""
        cursor = self.run(query, values)
        try:
            yield from cursor
        except sqlite3.Error as error:
            raise self._failure(error) from error

    def execute(self, query: Query, values: Mapping[str, Any]) -> int:
        """Run a statement; return how many rows it changed. Raises NotUnique or Unavailable."""
        return self.run(query, values).rowcount

    def insert(self, query: Query, values: Mapping[str, Any]) -> int:
        """Run an INSERT; return the id of the new row. Raises NotUnique or Unavailable."""
        return self.run(query, values).lastrowid

    def rows_of_each(self, query: Query, rows: list[Mapping[str, Any]]) -> list[list[tuple]]:
        """Run a query once for each of `rows`; return what each gives. Raises Unavailable."""
        return [list(self.rows(query, values)) for values in rows]

    def defer(self, query: Query, rows: Iterable[Mapping[str, Any]]) -> None:
        """Run a statement once for each of `rows`, at once. Raises NotUnique or Unavailable."""
        statement = self.statement(query)
        try:
            (self.connection or self._connect()).executemany(statement.text, [statement.bind(row) for row in rows])
        except sqlite3.Error as error:
            raise self._failure(error) from error

    def statement(self, query: Query) -> Statement:
        if type(query) is Each:
            return self.statement(query.sqlite)
        if type(query) is not Prepared:
            return query if type(query) is Statement else Statement.of(query, self._dialect)
        statement = self._statements.get(query)
        if statement is None:
            statement = self._statements[query] = Statement.of(query.query, self._dialect, value_literals=True)
        return statement

    # Transactions

    def begin(self, wait_seconds: float = 0) -> Self | None:
        """Begin a transaction that writes, by itself; return None if the lock was not to be had. Raises Unavailable.

        Does not wait: that would stop the whole process.
        """
        try:
            self._check_files()
            (self.connection or self._connect()).execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            if _code(error) == sqlite3.SQLITE_BUSY:
                return None
            raise self._failure(error) from error
        return self

    def commit(self) -> None:
        """End the transaction; what was written is on disk. Raises Unavailable."""
        try:
            self.connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._write_failed = True
            # Where the disk took it all but could not say that it is safe, SQLite may find it when it opens the file.
            unknown = _code(error) == sqlite3.SQLITE_IOERR and error.sqlite_errorcode != sqlite3.SQLITE_IOERR_WRITE
            raise Unavailable(error, maybe_changed=unknown) from error
        self._write_failed = False

    def savepoint(self) -> None:
        """Begin a part of a transaction that can end by itself."""
        self.run(Statement("SAVEPOINT part", []), {})

    def release(self, undo: bool = False) -> None:
        """End the part of the transaction; with `undo`, nothing of it is kept."""
        if undo:
            self.run(Statement("ROLLBACK TO part", []), {})
        self.run(Statement("RELEASE part", []), {})

    def shrink(self) -> None:
        """Cut a -wal back that a large transaction has made large, if that can be had."""
        try:
            self.row(Statement("PRAGMA wal_checkpoint(TRUNCATE)", []), {})
        except Unavailable as error:  # What was written is on disk all the same.
            log.warning("the -wal of the database stays large: %s", error)

    def is_leader(self) -> bool:
        """Return True: there is one process only."""
        return True

    # Failures

    def is_fatal(self, error: Exception) -> bool:
        """Return whether an error in a transaction is not of one operation, but of the disk or the connection."""
        return _code(error.__cause__) in FATAL or not self.connection.in_transaction  # SQLite may have ended it.

    def recover(self, error: Exception) -> None:
        """End the transaction that an error has left open; renew the connection where it cannot be trusted any more."""
        code = _code(error.__cause__)
        self._write_failed |= code == sqlite3.SQLITE_FULL
        try:
            if self.connection is not None and self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            if code in DISTRUSTED:
                self._check_files()  # Without its file, an old connection is better than none.
                self.close()
                self._connect()
        except (sqlite3.Error, Unavailable) as failure:
            log.error("cannot recover the connection to the database: %s", failure)

    def _failure(self, error: sqlite3.Error) -> Exception:
        """Return what to raise for an error of SQLite's, which is to be its cause."""
        if error.sqlite_errorcode in NOT_UNIQUE:
            return NotUnique(str(error))
        failure = Unavailable(error, RETRY_SECONDS if _code(error) == sqlite3.SQLITE_BUSY else None)
        if self.connection is None or not self.connection.in_transaction:  # else whoever began it sees to that
            failure.__cause__ = error
            self.recover(failure)
        return failure

    def check(self) -> bool:
        """Return whether the last write came to the disk.

        Raises Unavailable if the database cannot be read, its file is not in its place, or the disk is full.
        """
        self._check_files()
        if shutil.disk_usage(self.path.parent).free < ROOM_BYTES:
            raise Unavailable("the disk is full")
        self.row(Statement("SELECT 1 FROM post LIMIT 1", []), {})
        return not self._write_failed

    def size(self) -> int:
        """Return how many bytes the database has on disk."""
        return sum(path.stat().st_size for path in (self.path, self._wal) if path.exists())

    def probe(self, transaction: object) -> None:
        """Write something that changes nothing."""
        self.run(Statement(f"PRAGMA user_version = {VERSION}", []), {})

    def backup(self, path: Path) -> None:
        """Write a consistent copy of a database of any version, also while others write.

        Raises OSError if it cannot be written, Unavailable if there is no database, or a damaged one.
        """
        try:
            source = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=rw", uri=True)  # Not created if missing.
            with closing(source):
                write_backup(source, path)
        except sqlite3.Error as error:
            raise Unavailable(f"cannot copy the database {self.path}: {error}") from error

    def snapshot(self) -> AbstractContextManager[SqliteFile]:
        """Give all that there is as of one moment, also while others write. Raises Unavailable."""
        return read_all(self.path)

    def filling(self) -> AbstractContextManager[SqliteFile]:
        """Set a database up that is not there yet, and fill it. Raises Unavailable, OSError."""
        return fill_new(self.path)

    def _connect(self) -> sqlite3.Connection:
        self._check_files()  # SQLite would create a missing file, and take another one for ours.
        # GroupCommit and the rule of one thread see to it that it is not used by two at the same time.
        try:
            connection = sqlite3.connect(
                self.path, timeout=CONNECT_SECONDS, isolation_level=None, check_same_thread=False
            )
            with ExitStack() as stack:
                stack.callback(connection.close)
                for name, value in PRAGMAS.items():
                    connection.execute(f"PRAGMA {name} = {value}")
                connection.execute("SELECT 1 FROM sqlite_master").fetchone()  # With the first read, the -wal is there.
                connection.execute(f"PRAGMA busy_timeout = {round(self._wait_seconds * 1000)}")
                self._files[self._wal] = _identity(self._wal)
                stack.pop_all()
        except (OSError, sqlite3.Error) as error:
            raise Unavailable(error) from error
        self.connection = connection
        return connection

    def _check_files(self) -> None:
        """Raise Unavailable unless the file, and the -wal with what a kill would leave, are those that were opened."""
        try:
            same = all(_identity(path) == identity for path, identity in self._files.items())
        except OSError as error:
            if self.path.exists():
                self._save_wal()
                return
            raise Unavailable("the database file is not at its path") from error
        if not same and not self._replaced:
            log.error("another file is in the place of the database or its -wal: writes are refused until a restart")
        self._replaced |= not same
        if self._replaced:
            raise Unavailable("another file is in the place of the database or its -wal")
        if not os.access(self.path, os.W_OK):
            raise Unavailable("the database file is not writable")

    def _save_wal(self) -> None:
        """Write what a deleted -wal has into the database while this process has it open: a kill would lose it."""
        log.error("the -wal of the database was deleted; what it had is written into the database")
        busy, _, _ = self.row(Statement("PRAGMA wal_checkpoint(TRUNCATE)", []), {})
        if busy:
            raise Unavailable("the -wal of the database was deleted while another program uses it", RETRY_SECONDS)
        self.close()
        self._connect()


def _code(error: BaseException | None) -> int:
    """Return SQLite's primary result code of an error, 0 if it has none."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _identity(path: Path) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino
