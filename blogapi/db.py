"""The database: its one connection, set-up and upgrades, and writes that share a commit."""

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

from peewee import DatabaseError, OperationalError, PeeweeException, SqliteDatabase, __exception_wrapper__

from blogapi.fold import fold
from blogapi.upgrades import UPGRADES

SCHEMA = Path(__file__).resolve().parent.parent / "schema.sql"
APPLICATION_ID = 0x626C6F67  # as in schema.sql
VERSION = 3  # as in schema.sql
BUSY_SECONDS = 2.0  # how long a write waits for another program's

PRAGMAS = {
    "synchronous": "full",  # what was acknowledged survives a power cut
    "temp_store": "memory",  # savepoints need no file
}
# After these, what SQLite keeps of the file in memory may be wrong for good.
DISTRUSTED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOTADB)

T = TypeVar("T")
log = logging.getLogger(__name__)


class Write:
    """An operation that waits for its transaction, and then what came of it."""

    def __init__(self, operation: Callable[[], Any]):
        self.operation = operation
        self.deadline = time.monotonic() + BUSY_SECONDS
        self.turn = threading.Event()
        self.done = False
        self.result: Any = None
        self.error: Exception | None = None

    def finish(self, error: Exception | None) -> None:
        """Say that its transaction is committed or, with `error`, that nothing of it was kept."""
        self.error = error or self.error
        self.done = True
        self.turn.set()


class Database(SqliteDatabase):
    """A SQLite file used through one kept connection, by one thread.

    A connection for each request would cost more than most requests do (about 500 µs). SQLite's own
    waiting for a lock would stop the whole process, so it is off: `write` waits, outside any transaction.
    """

    def __init__(self) -> None:
        super().__init__(None, thread_safe=False)
        self._identity: tuple[int, int] | None = None
        self._replaced = False
        self._writes: list[Write] = []

    def open(self, path: Path, create: bool = True) -> bool:
        """Connect to the database at `path`; set it up where it is missing or empty, upgrade it where it is older.

        Returns whether it was set up. Raises DatabaseError, saying why in one line, if it cannot be used.
        """
        if not self.is_closed():
            self.close()
        self._replaced = False
        try:
            # Keys and drafts are nobody else's business: 0600, which SQLite gives to the -wal and -shm too.
            os.close(os.open(path, os.O_RDWR | (os.O_CREAT if create else 0), 0o600))
            self._identity = _identity(path)
            if not path.is_file():
                raise DatabaseError("it is no regular file")
            self.init(str(path), timeout=BUSY_SECONDS, pragmas=PRAGMAS)
            created = self._prepare()
            self.pragma("journal_mode", "wal")
        except OSError as error:
            raise DatabaseError(f"cannot open the database {path}: {error.strerror}") from error
        except PeeweeException as error:
            if not self.is_closed():
                self.close()
            raise DatabaseError(f"cannot use the database {path}: {error}") from error
        self.timeout = 0
        return created

    def write(self, operation: Callable[[], T]) -> T:
        """Run `operation` in a transaction; return its result once that is on disk.

        Operations that wait at the same time share one transaction (group commit), each in its own savepoint:
        one that raises leaves nothing behind and does not disturb the others. An operation must not yield.
        Raises what it raises; OperationalError if the lock was not to be had in time, or the disk failed.
        """
        write = Write(operation)
        self._writes.append(write)
        if self._writes[0] is not write:  # The first one commits for all.
            write.turn.wait()
        if not write.done:
            self._commit_waiting(write)
        if write.error is not None:
            raise write.error
        return write.result

    def rows(self, sql: str, parameters: tuple | dict = ()) -> Iterator[tuple]:
        """Run a query and give its rows one by one; raise DatabaseError if it fails, also half-way."""
        try:
            cursor = self.execute_sql(sql, parameters)
            with __exception_wrapper__:  # Peewee's, which a cursor of SQLite's goes without
                yield from cursor
        except PeeweeException as error:
            self._recover(error)
            raise

    def row(self, sql: str, parameters: tuple | dict = ()) -> tuple | None:
        """Run a query and return its first row, or None; raise DatabaseError if it fails."""
        try:
            cursor = self.execute_sql(sql, parameters)
            with __exception_wrapper__:
                return cursor.fetchone()
        except PeeweeException as error:
            self._recover(error)
            raise

    def execute_many(self, sql: str, rows: list[dict]) -> None:
        """Run a statement once for each of `rows`; raise DatabaseError if it fails."""
        with __exception_wrapper__:
            self.connection().executemany(sql, rows)

    def check(self) -> None:
        """Raise DatabaseError unless the database can be read, and its file is in its place and writable."""
        self._check_file()
        self.row("SELECT 1 FROM post LIMIT 1")

    def backup(self, path: Path) -> None:
        """Write a consistent copy, one file of mode 0600, also while another process writes to the database.

        Raises FileExistsError rather than overwrite, OSError or DatabaseError if it cannot be written.
        """
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        part = path.with_name(f"{path.name}.part")  # An empty file is no backup; half a copy would look like one.
        try:
            os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            with __exception_wrapper__, closing(sqlite3.connect(part)) as copy:
                self.connection().backup(copy)
                copy.execute("PRAGMA journal_mode = delete")  # One file, without -wal, is what people copy.
            _sync(part)
            os.replace(part, path)
            _sync(path.parent)
        except BaseException:
            part.unlink(missing_ok=True)
            path.unlink(missing_ok=True)
            raise

    def _prepare(self) -> bool:
        version = self.user_version
        if self.application_id == APPLICATION_ID and version == VERSION:
            return False
        foreign = self.application_id != APPLICATION_ID or version < 1
        if foreign and (self.application_id or version or self._has_tables()):
            raise DatabaseError("it belongs to another program")
        if version > VERSION:
            raise DatabaseError(f"its version {version} is newer than this program's {VERSION}; upgrade the program")
        with self.atomic("IMMEDIATE"):
            created = not self._has_tables()  # asked again: another process may have been faster
            if created:
                self._run(SCHEMA.read_text())
            for version in range(self.user_version, VERSION):
                self.connection().create_function("fold", 1, fold, deterministic=True)
                self._run(UPGRADES[version])
                self.user_version = version + 1
        return created

    def _has_tables(self) -> bool:
        return self.execute_sql("SELECT 1 FROM sqlite_master").fetchone() is not None

    def _run(self, script: str) -> None:
        for statement in _statements(script):
            self.execute_sql(statement)

    def _connect(self) -> sqlite3.Connection:
        self._check_file()  # SQLite would create a missing file, and take another one for ours.
        return super()._connect()

    def _check_file(self) -> None:
        try:
            same = _identity(self.database) == self._identity
        except OSError as error:
            raise OperationalError("the database file is not at its path") from error
        if not same:
            if not self._replaced:
                log.error("another file is in the place of the database: writes are refused until a restart")
            self._replaced = True
        if self._replaced:
            raise OperationalError("another file is in the place of the database")
        if not os.access(self.database, os.W_OK):
            raise OperationalError("the database file is not writable")

    def _commit_waiting(self, first: Write) -> None:
        batch = [first]
        error: Exception | None = OperationalError("interrupted")
        try:
            time.sleep(0)  # The requests that have arrived meanwhile join.
            self._begin(first.deadline)
            batch = self._writes[:]  # From here to COMMIT nothing yields.
            if len(batch) == 1:  # Alone it needs no savepoint: an error ends the transaction.
                first.result = first.operation()
            else:
                for write in batch:
                    self._attempt(write)
            self.execute_sql("COMMIT")
            error = None
        except Exception as failure:
            error = failure
        finally:
            if error is not None:
                self._recover(error)
            del self._writes[: len(batch)]
            for write in batch:
                write.finish(error)
            if self._writes:
                self._writes[0].turn.set()

    def _begin(self, deadline: float) -> None:
        while True:
            self._check_file()
            try:
                self.execute_sql("BEGIN IMMEDIATE")
                return
            except OperationalError as error:
                if _code(error) != sqlite3.SQLITE_BUSY:
                    raise
                if time.monotonic() > deadline:
                    error.retry_after = 1  # seconds: waiting helps
                    raise
            time.sleep(0.005)

    def _attempt(self, write: Write) -> None:
        self.execute_sql("SAVEPOINT one")
        try:
            write.result = write.operation()
        except PeeweeException:  # The database failed, and with it the whole transaction.
            raise
        except Exception as error:
            write.error = error
            self.execute_sql("ROLLBACK TO one")
        self.execute_sql("RELEASE one")

    def _recover(self, error: Exception) -> None:
        """End what an error has left open; connect anew where the connection cannot be trusted any more."""
        if self.is_closed():
            return
        try:
            if self.connection().in_transaction:  # SQLite may have rolled back by itself.
                self.execute_sql("ROLLBACK")
            if _code(error) in DISTRUSTED:
                self._check_file()  # Without its file, an old connection is better than none.
                self.close()
        except PeeweeException as failure:
            log.error("cannot recover the connection to the database: %s", failure)


def _code(error: Exception) -> int:
    """Return SQLite's primary result code behind an error of Peewee's, 0 if there is none."""
    return getattr(getattr(error, "orig", None), "sqlite_errorcode", 0) & 0xFF


def _identity(path: str | Path) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _statements(script: str) -> Iterator[str]:
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


database = Database()
