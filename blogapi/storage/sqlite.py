"""SQLite: a database file, its connection, its transactions, and the meaning of its errors."""

import logging
import os
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, Self

from peewee import SQL, SqliteDatabase

from blogapi.storage.engine import Compiler, Engine, Query, Transaction
from blogapi.storage.errors import RETRY_SECONDS, DiskFull, NotUnique, Unavailable
from blogapi.storage.loop import BLOCKING, Loop
from blogapi.storage.models import BaseModel
from blogapi.storage.setup import MISSING, VERSION, check_sqlite, set_up

MAX_WAL = 16 * 1024 * 1024  # bytes, to which a larger -wal is cut when it restarts
PRAGMAS = {
    "journal_mode": "wal",
    "synchronous": "full",  # acknowledged writes survive a power cut
    "fullfsync": 1,  # also on a Mac, where fsync leaves them in the cache of the disk
    "temp_store": "memory",  # savepoints need no file
    "journal_size_limit": MAX_WAL,
}
# After these, SQLite's cached pages of the file may stay wrong.
DISTRUSTED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOTADB}
# These concern the file, the disk or the connection, and so all operations; any other concerns one statement.
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
PASSING_CODES = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_NOMEM,
}  # after these, the same can succeed
NOT_UNIQUE = {sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY}
ERRORS = (sqlite3.Error, MemoryError)  # SQLITE_NOMEM is raised as a MemoryError
CONNECT_SECONDS = 1.0  # for another program that locks the database while it closes it
LOOK_STEPS = 10_000  # of SQLite's virtual machine, about a millisecond, between two checks whether to continue
MIN_FREE_BYTES = 256 * 1024  # free on the disk; with less it counts as full

log = logging.getLogger(__name__)


class FileDatabase(SqliteDatabase):
    """Peewee's database of a file, whose connections an engine opens."""

    def __init__(self, engine: "Sqlite", thread_safe: bool):
        super().__init__(str(engine.path), thread_safe=thread_safe)
        self._open = engine.open_connection

    def _connect(self) -> sqlite3.Connection:
        return self._open()


class Sqlite(Engine):
    """A database file, and one kept connection to it, or one for each thread if requests run in threads.

    Waiting for a lock in SQLite would stop the whole process, so it waits for `wait_seconds` only, and the caller of
    `begin` waits.
    """

    dialect = "sqlite"
    readers = 5  # threads that read: while as many clients search for two seconds each, the searches of others wait
    waits_cooperatively = False

    def __init__(self, path: Path, wait_seconds: float = 0, loop: Loop = BLOCKING):
        self.path = path.absolute()
        self.name = str(self.path)
        self.loop = loop
        self.peewee = FileDatabase(self, thread_safe=not loop.is_cooperative)
        self.write_failed = False
        self.statement = Compiler("sqlite", self.peewee).statement
        self._wal = Path(f"{self.path.resolve()}-wal")  # SQLite puts it next to the file itself, not next to a link.
        self._wait_seconds = wait_seconds
        self._files: dict[Path, tuple[int, int]] = {}
        self._replaced = False

    def open(self, create: bool = True) -> bool:
        """Connect; return whether the database was missing or empty, and was set up.

        Without `create` nothing is set up. Raises Unavailable, saying why in one line, if it cannot be used.
        """
        try:
            check_sqlite()  # before it creates the file
            # Keys and drafts are private: mode 0600, which SQLite also gives to -wal and -shm.
            os.close(os.open(self.path, os.O_RDWR | (os.O_CREAT if create else 0), 0o600))
            if not self.path.is_file():
                raise Unavailable("it is not a regular file")
            with closing(sqlite3.connect(self.path, isolation_level=None)) as connection:
                created = set_up(connection, create)
            self._files = {self.path: _identity(self.path)}
            self.peewee.connect()
            self.peewee.bind(BaseModel.__subclasses__())
        except FileNotFoundError as error:
            missing = f"cannot set up the database {self.path}: the folder {self.path.parent} is missing"
            raise Unavailable(missing if create else MISSING.format(self.path)) from error
        except (OSError, sqlite3.Error, Unavailable) as error:
            raise Unavailable(f"cannot use the database {self.path}: {self._reason(error)}") from error
        return created

    def _reason(self, error: Exception) -> str:
        """Return why the database cannot be used: the rights of this user, or the error itself."""
        reason = getattr(error, "strerror", None) or str(error)
        if self.path.exists() and not self.path.is_file():
            return reason
        if self.path.exists() and not os.access(self.path, os.R_OK | os.W_OK):
            return "this user cannot read and write the file"
        if self.path.parent.exists() and not os.access(self.path.parent, os.W_OK | os.X_OK):
            return f"this user cannot write the folder {self.path.parent}, where SQLite keeps two more files"
        return reason

    def another(self, wait_seconds: float) -> Self:
        """Return an engine with a connection of its own to the same database, for another thread.

        This does not call `open`: closing a file drops all of SQLite's locks on it in this process.
        """
        other = type(self)(self.path, wait_seconds)
        other._files = {self.path: self._files[self.path]}
        other.peewee.connect()
        return other

    @property
    def folder(self) -> Path:
        """Where an upload is kept while it arrives: on the disk that it will be written to."""
        return self.path.resolve().parent

    @property
    def connection(self) -> sqlite3.Connection:
        """Peewee's connection, which is opened if needed. Raises Unavailable."""
        return self.peewee.connection()

    def close(self) -> None:
        """Close the connection; the last one of all leaves no -wal."""
        if self.peewee.close():
            self._files.pop(self._wal, None)

    # Queries

    def run(self, query: Query, values: Mapping[str, Any]) -> sqlite3.Cursor:
        """Run a query; return its cursor. Raises NotUnique or Unavailable."""
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
            if _code(error) == sqlite3.SQLITE_BUSY:
                return None
            raise self.failure(error) from error
        return SqliteTransaction(self, clock)

    @contextmanager
    def limited(self, goes_on: Callable[[], bool]) -> Iterator[None]:
        self.run(SQL("BEGIN"), {})
        self.connection.set_progress_handler(lambda: not goes_on(), LOOK_STEPS)
        try:
            yield
        finally:
            self.connection.set_progress_handler(None, 0)
            if self.connection.in_transaction:
                self.run(SQL("ROLLBACK"), {})

    def shrink(self) -> None:
        """Write a large -wal into the database and cut it, without making other programs wait."""
        try:
            self.run(SQL("PRAGMA busy_timeout = 0"), {})
            self.row(SQL("PRAGMA wal_checkpoint(PASSIVE)"), {})  # Others can write during this.
            # Otherwise it is kept: overwriting is faster than appending.
            if self._wal.stat().st_size > MAX_WAL:
                self.row(SQL("PRAGMA wal_checkpoint(TRUNCATE)"), {})
        except Unavailable as error:  # The writes are on disk anyway.
            log.warning("the -wal of the database stays large: %s", error)

    # Failures

    def failure(self, error: Exception) -> Exception:
        """Return the exception to raise for an error of SQLite, which becomes its cause."""
        if getattr(error, "sqlite_errorcode", 0) in NOT_UNIQUE:
            return NotUnique(str(error))
        code, cause = _code(error), str(error) or "out of memory"
        is_full = code == sqlite3.SQLITE_FULL
        failure = DiskFull(cause) if is_full else Unavailable(cause, RETRY_SECONDS if code in PASSING_CODES else None)
        if self.peewee.is_closed() or not self.connection.in_transaction:  # otherwise its transaction does that
            failure.__cause__ = error
            self.recover(failure)
        return failure

    def recover(self, error: BaseException) -> None:
        """Roll back a transaction that an error has left open; renew a connection that can no longer be trusted."""
        code = _code(error.__cause__)
        self.write_failed |= code == sqlite3.SQLITE_FULL
        try:
            if not self.peewee.is_closed() and self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            if code in DISTRUSTED:
                self._check_files()  # Without its file, an old connection is better than none.
                self.close()
                self.peewee.connect()
        except (*ERRORS, Unavailable) as failure:
            log.error("cannot recover the connection to the database: %s", failure)

    def check(self, write: Callable[[Callable[[Transaction], object]], object]) -> None:
        self._check_files()
        if shutil.disk_usage(self.path).free < MIN_FREE_BYTES:
            raise DiskFull
        self.row(SQL("SELECT 1 FROM post LIMIT 1"), {})
        if self.write_failed:  # Another write, which changes nothing, shows whether the next ones would fail.
            write(lambda tx: tx.execute(SQL(f"PRAGMA user_version = {VERSION}")))

    def is_leader(self) -> bool:
        return True  # There is only one process.

    # The whole of it

    def size(self) -> int:
        return sum(path.stat().st_size for path in (self.path, self._wal) if path.exists())

    def open_connection(self) -> sqlite3.Connection:
        """Open a connection with our pragmas. Raises Unavailable."""
        self._check_files()  # SQLite would create a missing file, and take another one for ours.
        try:
            # No two threads use it at the same time, which Python cannot know.
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
        except (OSError, *ERRORS) as error:
            raise Unavailable(error) from error
        return connection

    def _check_files(self) -> None:
        """Raise Unavailable unless the file, and its -wal, are the ones that were opened."""
        try:
            same = all(_identity(path) == identity for path, identity in list(self._files.items()))
        except OSError as error:
            if self.path.exists():
                self._save_wal()
                return
            raise Unavailable("the database file is not at its path") from error
        if not same and not self._replaced:
            log.error("another file has replaced the database or its -wal: writes are refused until a restart")
        self._replaced |= not same
        if self._replaced:
            raise Unavailable("another file has replaced the database or its -wal")
        if not os.access(self.path, os.W_OK):
            raise Unavailable("the database file is not writable")

    def _save_wal(self) -> None:
        """Write a deleted -wal into the database while this process has it open: a kill would lose it."""
        busy, _, _ = self.run(SQL("PRAGMA wal_checkpoint(TRUNCATE)"), {}).fetchone()
        if busy:
            raise Unavailable("the -wal of the database was deleted while another program uses it", RETRY_SECONDS)
        log.error("the -wal of the database was deleted; its contents were written into the database")
        self.close()
        self.peewee.connect()


class SqliteTransaction(Transaction):
    """A transaction on the connection of an engine."""

    engine: Sqlite

    def __init__(self, engine: Sqlite, clock: Callable[[], float]):
        super().__init__(engine, clock)
        self.connection = engine.connection  # which the engine may renew after an error

    def execute(self, query: Query, **values: Any) -> int:
        self._cached_rows.clear()
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
    def changes(self) -> int:  # type: ignore[override]  # read from the connection
        return self.connection.total_changes

    def commit(self) -> None:
        try:
            self.connection.execute("COMMIT")
        except ERRORS as error:
            self.engine.write_failed = True
            # If the disk wrote all of it but failed to sync, SQLite may find it when it opens the file.
            if _code(error) == sqlite3.SQLITE_FULL:
                raise DiskFull(error) from error
            unknown = (
                _code(error) == sqlite3.SQLITE_IOERR
                and getattr(error, "sqlite_errorcode", 0) != sqlite3.SQLITE_IOERR_WRITE
            )
            raise Unavailable(error, maybe_changed=unknown) from error
        self.engine.write_failed = False

    def is_fatal(self, error: Exception) -> bool:
        # SQLite may have ended the transaction, and the connection may not have been renewed.
        return _code(error.__cause__) in FATAL or not self.engine.connection.in_transaction

    def recover(self, error: BaseException) -> None:
        self.engine.recover(error)


def _code(error: BaseException | None) -> int:
    """Return SQLite's primary result code of an error, 0 if it has none."""
    if isinstance(error, MemoryError):
        return sqlite3.SQLITE_NOMEM
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _identity(path: Path) -> tuple[int, int]:
    status = os.stat(path)
    return status.st_dev, status.st_ino
