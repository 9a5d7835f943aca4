"""Run queries and transactions on a SQLite file, and recover from its errors."""

import logging
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from peewee import SQL, SqliteDatabase

from blogapi.storage.codes import DISTRUSTED, ERRORS, FATAL, NOT_UNIQUE, PASSING_CODES, REMEDIES, code_of
from blogapi.storage.engine import BLOCKING, Engine, Loop, Query, Transaction
from blogapi.storage.errors import RETRY_SECONDS, DiskFull, NotUnique, Unavailable
from blogapi.storage.models import BaseModel
from blogapi.storage.reserve import Reserve
from blogapi.storage.setup import CREATED, MISSING, SqliteContents, check_sqlite

MAX_WAL = 16 * 1024 * 1024  # SQLite truncates a larger WAL file to this size when it starts to reuse the file
PRAGMAS = {
    "journal_mode": "wal",
    "synchronous": "full",  # makes committed writes survive a power cut
    "fullfsync": 1,  # affects macOS, where fsync alone leaves data in the disk's cache
    "temp_store": "memory",  # avoids files for savepoints
    "journal_size_limit": MAX_WAL,
}
CONNECT_SECONDS = 1.0  # longest wait for another program that locks the database while closing it
LOOK_STEPS = 10_000  # a slow read checks whether to continue after this many SQLite VM steps (about a millisecond)
MIN_FREE_BYTES = 256 * 1024  # a disk with less free space is considered full
log = logging.getLogger(__name__)


class FileDatabase(SqliteDatabase):
    """A Peewee database that gets its connections from the engine."""

    def __init__(self, engine: "Sqlite", thread_safe: bool):
        super().__init__(str(engine.path), thread_safe=thread_safe)
        self._connect = engine.open_connection


class Sqlite(Engine):
    """A database file with one persistent connection, or with one per thread if requests run in threads.

    SQLite waits for a lock for at most `wait_seconds`, because waiting blocks the whole process. The caller of
    `begin` must retry.
    """

    dialect = "sqlite"
    slow_reads = 5  # each runs in its own thread
    waits_cooperatively = False

    def __init__(self, path: Path, wait_seconds: float = 0, loop: Loop = BLOCKING):
        self.path = path.absolute()
        super().__init__(str(self.path), FileDatabase(self, thread_safe=not loop.is_cooperative), loop)
        file = self.path.resolve()  # If the path is a symlink, the database can be in another folder.
        self.folder, self._wal = file.parent, Path(f"{file}-wal")
        self._wait_seconds = wait_seconds
        self._files: dict[Path, tuple[int, int]] = {}
        self._replaced = False
        self._reserve = Reserve(self.folder)

    def open(self, create: bool = True, upgrade: bool = False) -> bool:
        try:
            check_sqlite()  # before the file is created
            # Mode 0600, because keys and drafts are private. SQLite gives the WAL and -shm files the same mode.
            os.close(os.open(self.path, os.O_RDWR | (os.O_CREAT if create else 0), 0o600))
            if not self.path.is_file():
                raise Unavailable("it is not a regular file")
            with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
                created = SqliteContents(connection).set_up(create, upgrade)
            self._files = {self.path: _identity(self.path)}
            self.peewee_db.connect()
            self.peewee_db.bind(BaseModel.__subclasses__())
        except FileNotFoundError as error:
            missing = f"cannot set up the database {self.path}: the folder {self.path.parent} is missing"
            raise Unavailable(missing if create else MISSING.format(self.path)) from error
        except (OSError, sqlite3.Error, Unavailable) as error:
            raise Unavailable(f"cannot use the database {self.path}: {self._reason(error)}") from error
        if created:
            log.warning(CREATED, self.name)
        return created

    def _reason(self, error: Exception) -> str:
        """Return why the database cannot be used: missing permissions or, if none are missing, the error itself."""
        reason = getattr(error, "strerror", None) or str(error)
        exists = os.path.exists(self.path)  # also False if this user cannot enter the folder
        if exists and not self.path.is_file():
            return f"{reason}; set BLOGAPI_DATABASE to a file"
        for file in filter(os.path.exists, (self.path, self._wal)):
            if not os.access(file, os.R_OK | os.W_OK):
                return f"this user cannot read and write {file}; run blogapi doctor to see how to fix this"
        if self.path.parent.exists() and not os.access(self.path.parent, os.W_OK | os.X_OK):
            return f"this user cannot write to the folder {self.path.parent}, where SQLite keeps two more files"
        return reason + REMEDIES.get(code_of(error), "")

    def another(self, wait_seconds: float) -> Self:
        # Do not call `open` here: it closes the file, which drops all locks that SQLite has on it in this process.
        other = type(self)(self.path, wait_seconds)
        other._files = {self.path: self._files[self.path]}
        other.peewee_db.connect()
        return other

    @property
    def connection(self) -> sqlite3.Connection:
        """Peewee's connection, opened if necessary. Raises Unavailable."""
        return self.peewee_db.connection()

    def close(self) -> None:
        if self.peewee_db.close():
            self._files.pop(self._wal, None)
        self._reserve.close()

    # Queries

    def run(self, query: Query, values: Mapping[str, Any]) -> sqlite3.Cursor:
        """Run a query; return its cursor. Raises Unavailable, or NotUnique if a row violates a unique constraint."""
        statement = self.statement(query)
        try:
            return self.connection.execute(statement.text, values or statement.values)
        except ERRORS as error:
            raise self.failure(error) from error

    def row(self, query: Query, values: Mapping[str, Any]) -> tuple | None:
        cursor = self.run(query, values)
        try:
            return cursor.fetchone()
        except ERRORS as error:
            raise self.failure(error) from error

    def rows(self, query: Query, values: Mapping[str, Any]) -> Iterator[tuple]:
        cursor = self.run(query, values)
        try:
            yield from cursor
        except ERRORS as error:
            raise self.failure(error) from error

    def begin(self, wait_seconds: float = 0, clock: Callable[[], float] = time.time) -> "SqliteTransaction | None":
        try:
            self._check_files()
            self.connection.execute("BEGIN IMMEDIATE")
        except ERRORS as error:
            if code_of(error) == sqlite3.SQLITE_BUSY:
                return None
            raise self.failure(error) from error
        return SqliteTransaction(self, clock)

    @contextmanager
    def limited(self, may_go_on: Callable[[], bool]) -> Iterator[None]:
        self.run(SQL("BEGIN"), {})
        self.connection.set_progress_handler(lambda: not may_go_on(), LOOK_STEPS)
        try:
            yield
        finally:
            self.connection.set_progress_handler(None, 0)
            if self.connection.in_transaction:
                self.run(SQL("ROLLBACK"), {})

    def shrink(self) -> None:
        """Checkpoint the write-ahead log (WAL), and truncate it if it is large, without making other programs wait."""
        try:
            self.run(SQL("PRAGMA busy_timeout = 0"), {})
            self.row(SQL("PRAGMA wal_checkpoint(PASSIVE)"), {})  # does not block other writers
            # Leave a smaller WAL file as it is: SQLite overwrites a file faster than it appends to an empty one.
            if self._wal.stat().st_size > MAX_WAL:
                self.row(SQL("PRAGMA wal_checkpoint(TRUNCATE)"), {})
        except Unavailable as error:  # only logged, because the writes are durable without a checkpoint
            log.warning("the -wal file of the database stays large: %s", error)

    def reserve(self) -> None:
        self._reserve.keep()

    @contextmanager
    def freeing(self) -> Iterator[None]:
        with self._reserve.released():
            self._checkpoint()  # Otherwise, the WAL file would grow and use up the reserve.
            try:
                yield
            finally:
                self._checkpoint()

    def _checkpoint(self) -> bool:
        """Checkpoint the WAL and empty its file; return whether this succeeded."""
        with suppress(*ERRORS):
            is_busy, _, _ = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            return not is_busy
        return False

    # Failures

    def failure(self, error: Exception) -> Exception:
        """Return the exception to raise for a SQLite error. Unless a transaction is open, also recover from it."""
        if getattr(error, "sqlite_errorcode", 0) in NOT_UNIQUE:
            return NotUnique(str(error))
        code, cause = code_of(error), str(error) or "out of memory"
        is_full = code == sqlite3.SQLITE_FULL
        failure = DiskFull(cause) if is_full else Unavailable(cause, RETRY_SECONDS if code in PASSING_CODES else None)
        # While a transaction is open, its caller recovers from the error with `SqliteTransaction.recover`.
        if self.peewee_db.is_closed() or not self.connection.in_transaction:
            failure.__cause__ = error
            self.recover(failure)
        return failure

    def recover(self, error: BaseException) -> None:
        """Roll back a transaction that an error left open, and replace a connection that can no longer be trusted."""
        code = code_of(error.__cause__)
        self.write_failed |= code == sqlite3.SQLITE_FULL
        try:
            if not self.peewee_db.is_closed() and self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            # On a full disk, empty the WAL file, so that the next write can use pages that were freed in the database
            # file. The database file grows by less than the WAL file shrinks.
            if code == sqlite3.SQLITE_FULL and not self._checkpoint():
                with self._reserve.released(room=0):
                    self._checkpoint()
            if code in DISTRUSTED:
                self._check_files()  # If the file is gone, this fails, and the old connection is kept.
                self._reconnect()
        except (*ERRORS, Unavailable) as failure:
            log.error("cannot recover the connection to the database: %s", failure)

    def check(self) -> None:
        self._check_files()
        if shutil.disk_usage(self.path).free < MIN_FREE_BYTES:
            raise DiskFull
        self.row(SQL("SELECT 1 FROM post LIMIT 1"), {})

    def is_leader(self) -> bool:
        return True  # because only one server process uses a SQLite database

    def sizes(self) -> dict[str, int]:
        database, wal = (path.stat().st_size if path.exists() else 0 for path in (self.path, self._wal))
        return {"database_size": database + wal, "wal": wal, "disk_free": shutil.disk_usage(self._wal.parent).free}

    def open_connection(self) -> sqlite3.Connection:
        """Open a connection and set our pragmas. Raises Unavailable."""
        self._check_files()  # Otherwise, SQLite would create a missing file, or use one that has replaced ours.
        try:
            # Several threads may use the connection, but never at the same time, so Python's check is turned off.
            connection = sqlite3.connect(
                self.path, timeout=CONNECT_SECONDS, isolation_level=None, check_same_thread=False
            )
            with ExitStack() as stack:
                stack.callback(connection.close)
                for name, value in PRAGMAS.items():
                    connection.execute(f"PRAGMA {name} = {value}")
                connection.execute("SELECT 1 FROM sqlite_master").fetchone()  # creates the WAL file, needed below
                connection.execute(f"PRAGMA busy_timeout = {round(self._wait_seconds * 1000)}")
                self._files[self._wal] = _identity(self._wal)
                stack.pop_all()
        except (OSError, *ERRORS) as error:
            raise Unavailable(error) from error
        return connection

    def _check_files(self) -> None:
        """Raise Unavailable unless the database file and its WAL file are still the ones that were opened."""
        try:
            same = all(_identity(path) == identity for path, identity in list(self._files.items()))
        except OSError as error:
            if self.path.exists():
                self._save_wal()
                return
            raise Unavailable("the database file is not at its path") from error
        if not same and not self._replaced:
            log.error("another file has replaced the database or its -wal file: writes are refused until a restart")
        self._replaced |= not same
        if self._replaced:
            raise Unavailable("another file has replaced the database or its -wal file")
        if not os.access(self.path, os.W_OK):
            raise Unavailable("the database file is not writable")

    def _save_wal(self) -> None:
        """Save the contents of a deleted WAL file, which would be lost if this process were killed."""
        if not self._checkpoint():
            raise Unavailable("the -wal file was deleted while another program was using it", RETRY_SECONDS)
        log.error("the -wal file of the database was deleted; its contents were written into the database")
        self._reconnect()

    def _reconnect(self) -> None:
        self.close()
        self.peewee_db.connect()


class SqliteTransaction(Transaction):
    """A transaction on the engine's connection."""

    engine: Sqlite

    def __init__(self, engine: Sqlite, clock: Callable[[], float]):
        super().__init__(engine, clock)
        self.connection = engine.connection  # stored here, because the engine may replace its connection after an error

    def execute(self, query: Query, **values: Any) -> int:
        return self.engine.run(query, values).rowcount

    def insert(self, query: Query, **values: Any) -> int:
        row_id = self.engine.run(query, values).lastrowid
        assert row_id is not None
        return row_id

    def execute_many(self, query: Query, rows: Iterable[Mapping[str, Any]]) -> None:
        statement = self.engine.statement(query)
        try:
            self.connection.executemany(statement.text, [row or statement.values for row in rows])
        except ERRORS as error:
            raise self.engine.failure(error) from error

    @property
    def changes(self) -> int:
        return self.connection.total_changes + self._last_count

    def commit(self) -> None:
        self.run_last()
        try:
            self.connection.execute("COMMIT")
        except ERRORS as error:
            self.engine.write_failed = True
            # If the data was written but not synced, SQLite may recover it when it opens the file again. On a full
            # disk, or after a failed write, nothing was changed.
            if code_of(error) == sqlite3.SQLITE_FULL:
                raise DiskFull(error) from error
            is_written = getattr(error, "sqlite_errorcode", 0) != sqlite3.SQLITE_IOERR_WRITE
            maybe_changed = is_written and code_of(error) == sqlite3.SQLITE_IOERR
            raise Unavailable(error, maybe_changed=maybe_changed) from error
        self.engine.write_failed = False

    def is_fatal(self, error: Exception) -> bool:
        # SQLite may also have ended the transaction itself.
        return code_of(error.__cause__) in FATAL or not self.engine.connection.in_transaction

    def recover(self, error: BaseException) -> None:
        self.engine.recover(error)


def _identity(path: Path) -> tuple[int, int]:
    return (status := os.stat(path)).st_dev, status.st_ino
