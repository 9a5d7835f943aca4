"""PostgreSQL: the engine, its transactions, and the locks of the writer and the leader.

Only one transaction in the whole cluster writes at a time, so code that relies on SQLite's single writer works here.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Self

import psycopg
from peewee import SQL, PostgresqlDatabase

from blogapi.storage import PLAIN, Loop, webhooks
from blogapi.storage.connections import (
    LOCK_SECONDS,
    UNLIMITED,
    Bound,
    Connections,
    PostgresConnection,
    Result,
    failure,
    reason,
)
from blogapi.storage.copy import PostgresContents, copy, index_postgresql, set_up_postgresql
from blogapi.storage.engine import Transaction
from blogapi.storage.errors import RETRY_SECONDS, Unavailable
from blogapi.storage.query import RELEASE, ROLLBACK, SAVEPOINT, Dialect, Prepared, Query
from blogapi.storage.sqlite import Sqlite

WRITER, LEADER, SET_UP = 0x626C6F67, 0x626C6F68, 0x626C6F69  # the numbers of the advisory locks
OLDEST = 15_00_00  # version of PostgreSQL that is supported
LEASE_SECONDS = 5  # after which a silent leader loses its lock
BEGIN, COMMIT = Prepared("BEGIN"), Prepared("COMMIT")
LIMIT = Prepared("SELECT set_config('lock_timeout', :limit, true)")
LOCK = Prepared(f"SELECT pg_advisory_xact_lock({WRITER})::text, pg_current_xact_id()::text")
TRY_LOCK = Prepared(f"SELECT pg_try_advisory_xact_lock({WRITER})::text, pg_current_xact_id()::text")
OPTIONS = {"as_bytes": ("convert_to(", ", 'UTF8')")}


class Postgresql:
    """A database of PostgreSQL, and a few kept connections to it."""

    dialect = "postgresql"
    readers = 3  # searches at a time: other requests need connections, too
    waits_cooperatively = True

    def __init__(self, url: str, connections: int, wait_seconds: float = 0, loop: Loop = PLAIN):
        self.url = url
        self.loop = loop
        self.connections = Connections(url, connections, loop, is_limited=not wait_seconds)
        self.name = self.connections.name  # without a password
        self.statement = Dialect("postgresql", PostgresqlDatabase(None), **OPTIONS).statement
        self._wait_seconds = wait_seconds
        self._leader: PostgresConnection | None = None  # the session with the leader's lock, if this process has it
        self._leads = False

    def open(self, create: bool = True) -> bool:
        """Connect; return whether the database was empty, and was set up. Raises Unavailable."""
        try:
            with closing(self.connections.connect()) as connection:
                return _set_up(connection, create)
        except (psycopg.Error, Unavailable) as error:
            retry_after = getattr(error, "retry_after", None)
            raise Unavailable(f"cannot use the database {self.name}: {reason(error)}", retry_after) from error

    def another(self, wait_seconds: float) -> Self:
        """Return an engine with a connection of its own, for another thread, which can wait for the lock."""
        return type(self)(self.url, 1, wait_seconds)

    def close(self) -> None:
        """Close all connections that are not in use."""
        self.connections.close()
        if self._leader is not None:
            self._leader.close()

    # Queries

    def row(self, query: Query, values: Mapping[str, Any]) -> tuple | None:
        """Run a query; return its first row, or None. Raises Unavailable."""
        return next(self.rows(query, values), None)

    def rows(self, query: Query, values: Mapping[str, Any]) -> Iterator[tuple]:
        """Run a query; yield its rows. Raises Unavailable."""
        statement = self.statement(query)
        while True:
            connection, new = self.connections.take()
            try:
                return iter(connection.run([connection.bind(statement, values)])[0].rows)
            except psycopg.errors.ForeignKeyViolation:  # of the hits of a key that was revoked meanwhile
                return iter(())
            except psycopg.Error as error:
                if is_unsayable(error):
                    return iter(())
                if not connection.closed or new:
                    raise failure(error, connection) from error
                self.connections.close()  # The other connections are usually lost, too.
            finally:
                self.connections.give(connection)

    def begin(self, wait_seconds: float = 0, clock: Callable[[], float] = time.time) -> "PostgresTransaction | None":
        """Begin a transaction that writes; return None if the lock is not free in time.

        Raises Unavailable.
        """
        seconds = max(wait_seconds, self._wait_seconds)
        statements = [BEGIN, LOCK if seconds > 0 else TRY_LOCK, webhooks.ACTIVE]
        if 0 < seconds <= LOCK_SECONDS * 0.9 or seconds > LOCK_SECONDS:  # otherwise it is as the connection has it
            statements.insert(1, LIMIT)
        values = {"limit": f"{max(1, int(1000 * seconds))}"}
        while True:
            connection, new = self.connections.take_for_all()
            try:
                bound = [connection.bind(self.statement(each), values) for each in statements]
                *_, lock, active = connection.run(bound)
                locked, transaction_id = lock.rows[0]
                if locked != "false":
                    return PostgresTransaction(self, connection, transaction_id, clock, {webhooks.ACTIVE: active.rows})
            except psycopg.errors.LockNotAvailable:
                pass
            except psycopg.Error as error:
                lost, failed = connection.closed, failure(error, connection)
                self.connections.abandon(connection)
                self.connections.close()  # The others may lead to a server that has become a standby.
                if not lost or new:
                    raise failed from error
                continue
            except BaseException:
                self.connections.abandon(connection)
                raise
            self.connections.abandon(connection)
            return None

    def shrink(self) -> None:
        """Do nothing: PostgreSQL does this by itself."""

    def check(self) -> bool:
        """Return True if the database can be written; else raise Unavailable."""
        if self.row(SQL("SELECT pg_is_in_recovery()"), {}) != (False,):
            self.connections.close()
            raise Unavailable("the server is a standby", RETRY_SECONDS)
        return True

    def is_leader(self) -> bool:
        """Return whether this process is the leader, which sends webhooks and publishes posts. Raises Unavailable.

        The leader holds a lock of its session, which ends after LEASE_SECONDS of silence: a frozen process loses it.
        """
        try:
            if self._leader is None or self._leader.closed:
                self._leads = False
                self._leader = self.connections.connect()
                self._leader.execute(f"SET idle_session_timeout = '{LEASE_SECONDS}s'")
            if self._leads:
                self._leader.execute("SELECT")
            else:
                query = f"SELECT pg_try_advisory_lock({LEADER})"
                self._leads = self._leader.execute(query).fetchone()[0]
        except psycopg.Error:  # The lock is lost with the connection. The next connection reports why.
            self._leader.close()
            self._leads = False
        return self._leads

    # The whole of it

    def size(self) -> int:
        """Return how many bytes it takes on disk. Raises Unavailable."""
        return self.row(SQL("SELECT pg_database_size(current_database())"), {})[0]

    def backup(self, path: Path) -> None:
        """Write a consistent copy as a SQLite file, even during writes. Raises OSError, Unavailable."""
        copy(self, Sqlite(path))

    @contextmanager
    def snapshot(self) -> Iterator[PostgresContents]:
        """Open the contents as of one moment, even during writes. Raises Unavailable."""
        try:
            with closing(self.connections.connect()) as connection:
                connection.execute(UNLIMITED)
                connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                yield PostgresContents(connection)
        except psycopg.Error as error:
            raise Unavailable(f"cannot copy the database {self.name}: {reason(error)}") from error

    @contextmanager
    def filling(self) -> Iterator[PostgresContents]:
        """Set up an empty database, and fill it. Raises Unavailable."""
        try:
            with closing(self.connections.connect()) as connection, connection.transaction():
                if not _set_up(connection, create=True):
                    raise Unavailable("it is not empty")
                yield PostgresContents(connection)
                index_postgresql(connection)
                connection.execute("ANALYZE")
        except (psycopg.Error, Unavailable) as error:
            raise Unavailable(f"cannot write the database {self.name}: {reason(error)}") from error


def _set_up(connection: PostgresConnection, create: bool) -> bool:
    if connection.info.server_version < OLDEST or connection.info.parameter_status("server_encoding") != "UTF8":
        raise Unavailable("it must be of PostgreSQL 15 or newer, and its encoding UTF8")
    connection.execute(UNLIMITED)
    with connection.transaction():
        connection.execute(f"SELECT pg_advisory_xact_lock({SET_UP})")  # Another process may set it up at the same time.
        return set_up_postgresql(connection, create)


class PostgresTransaction(Transaction):
    """A transaction on a connection of its own.

    Statements without a result are sent with the next one that has a result, or with the commit: each round trip of a
    transaction delays all other writers.
    """

    def __init__(
        self,
        engine: Postgresql,
        connection: PostgresConnection,
        transaction_id: str,
        clock: Callable[[], float],
        known: dict[Query, list[tuple]],
    ):
        super().__init__(engine, clock)
        self._known = known
        self._connection = connection
        self._transaction_id = transaction_id
        self._ended = False
        self._waiting: list[Bound] = []
        self._others = 0  # of these, the statements of other operations
        self._failed = False  # whether one of these did

    def row(self, query: Query, **values: Any) -> tuple | None:
        return next(self.rows(query, **values), None)

    def rows(self, query: Query, **values: Any) -> Iterator[tuple]:
        yield from self.rows_of_each(query, [values])[0]

    def rows_of_each(self, query: Query, rows: list[Mapping[str, Any]]) -> list[list[tuple]]:
        try:
            return [result.rows for result in self._run(self._bind(query, rows))]
        except Unavailable as error:
            if is_unsayable(error.__cause__):
                return [[] for _ in rows]
            raise

    def execute(self, query: Query, **values: Any) -> int:
        self._known.clear()
        return self._run(self._bind(query, [values]))[0].count

    def insert(self, query: Query, **values: Any) -> int:
        return self._run(self._bind(query, [values], " RETURNING id"))[0].rows[0][0]

    def execute_many(self, query: Query, rows: Iterable[Mapping[str, Any]]) -> None:
        self._waiting += self._bind(query, rows)

    def savepoint(self) -> None:
        self.defer(SAVEPOINT)
        self._others = len(self._waiting)

    def release(self, undo: bool = False) -> None:
        if undo:
            del self._waiting[self._others :]
            self.defer(ROLLBACK)
        self.defer(RELEASE)

    def commit(self) -> None:
        try:
            self._run(self._bind(COMMIT, [{}]))
        except Unavailable as error:
            if not self._connection.closed:
                raise
            self._end()  # The answer is lost: find out the result of the transaction before answering anybody.
            committed = self.engine.connections.committed(self._transaction_id)
            if not committed:
                raise Unavailable(error, RETRY_SECONDS, maybe_changed=committed is None) from error
        else:
            self._end()

    def is_fatal(self, error: Exception) -> bool:
        return self._failed or self._connection.closed

    def recover(self, error: BaseException) -> None:
        if not self._ended:
            self.engine.connections.abandon(self._connection)

    def _end(self) -> None:
        self._ended = True
        self.engine.connections.give(self._connection)

    def _bind(self, query: Query, rows: Iterable[Mapping[str, Any]], end: str = "") -> list[Bound]:
        statement = self.engine.statement(query)
        if end:
            statement = statement._replace(text=statement.text + end)
        try:
            return [self._connection.bind(statement, row) for row in rows]
        except psycopg.Error as error:
            raise failure(error, self._connection) from error

    def _run(self, statements: list[Bound]) -> list[Result]:
        """Run the deferred statements, then these, all in one round trip; return the results of these."""
        if not statements:
            return []
        waiting, self._waiting = self._waiting, []
        others, self._others = self._others, 0
        try:
            return self._connection.run(waiting + statements)[len(waiting) :]
        except psycopg.Error as error:
            self._failed |= self._connection.succeeded < others
            raise failure(error, self._connection) from error


def is_unsayable(error: BaseException | None) -> bool:
    """Return whether PostgreSQL's text cannot contain a value (U+0000), so that nothing has it."""
    return isinstance(error, psycopg.DataError) and error.sqlstate is None
