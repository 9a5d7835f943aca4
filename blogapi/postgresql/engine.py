"""Run queries and transactions on PostgreSQL, with locks for the writer and the leader.

Across all processes, only one transaction writes at a time. Code that relies on SQLite's single writer therefore also
works here.
"""

import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import Context
from typing import Any, Self

import psycopg
from peewee import SQL, PostgresqlDatabase

from blogapi.postgresql.connections import (
    LOCK_TIMEOUT_SECONDS,
    UNLIMITED,
    Connections,
    NoRow,
    PostgresConnection,
    Result,
    Unreachable,
    reason,
)
from blogapi.postgresql.setup import PostgresContents
from blogapi.storage.engine import BLOCKING, Clock, Compiled, Engine, Hits, Loop, Query, Statement, Transaction
from blogapi.storage.errors import RETRY_SECONDS, Busy, NotUnique, Unavailable
from blogapi.storage.keys import KEY_FIELDS, WINDOW_SECONDS
from blogapi.storage.models import SELECT_WEBHOOKS, BaseModel
from blogapi.storage.setup import CREATED

WRITER, LEADER, SET_UP = 0x626C6F67, 0x626C6F68, 0x626C6F69  # advisory locks
OLDEST = 15_00_00  # oldest supported version of PostgreSQL
LEASE_SECONDS = 5  # a leader that sends no query for this long loses its lock
log = logging.getLogger(__name__)
BEGIN, COMMIT = Compiled("BEGIN"), Compiled("COMMIT")
SET_LOCK_TIMEOUT = Compiled("SELECT set_config('lock_timeout', :limit, true)")
TAKE_LOCK = Compiled(f"SELECT pg_advisory_xact_lock({WRITER})::text, pg_current_xact_id()::text")
# The rate limit across several processes: the query that finds a key also counts the request. PostgreSQL's clock
# determines the windows. If that clock is set back by up to one window, the current window continues.
KEY_COLUMNS = ", ".join(KEY_FIELDS)
NOW = "floor(extract(epoch FROM clock_timestamp()))::bigint"
WINDOW = f"{NOW} / {WINDOW_SECONDS}"
SELECT_KEY_AND_HITS = Compiled(f"""
    WITH key AS (SELECT {KEY_COLUMNS} FROM api_key WHERE digest = :digest), hit AS (
        INSERT INTO hits AS old
        SELECT digest, {WINDOW}, 1 FROM key
        ON CONFLICT (digest) DO UPDATE SET
            hits = CASE WHEN excluded.number IN (old.number, old.number - 1) THEN old.hits + 1 ELSE 1 END,
            number = CASE WHEN excluded.number = old.number - 1 THEN old.number ELSE excluded.number END
        RETURNING hits, number
    )
    SELECT {KEY_COLUMNS}, hits, number, {NOW} FROM key, hit
""")
COUNTED = f"SELECT hits FROM hits WHERE digest = :digest AND number = {WINDOW}"
SELECT_HITS = Compiled(f"SELECT coalesce(({COUNTED}), 0), {WINDOW}, {NOW}")


class ServerDatabase(PostgresqlDatabase):
    """A Peewee database for PostgreSQL, with connections from the engine's pool."""

    def __init__(self, connections: Connections, thread_safe: bool):
        super().__init__(connections.name, prefer_psycopg3=True, thread_safe=thread_safe)
        self._connect, self._close = connections.take, connections.give

    def get_context_options(self) -> dict[str, Any]:
        return super().get_context_options() | {"as_bytes": ("convert_to(", ", 'UTF8')")}


class Postgresql(Engine):
    """A PostgreSQL database and a pool of connections."""

    dialect = "postgresql"
    slow_reads = 3  # few, because other requests also need connections
    waits_cooperatively = True
    key_query = SELECT_KEY_AND_HITS

    def __init__(self, url: str, connections: int, wait_seconds: float = 0, loop: Loop = BLOCKING):
        self.url = url
        self.connections = Connections(url, connections, loop, is_limited=not wait_seconds)
        database = ServerDatabase(self.connections, thread_safe=not loop.is_cooperative)
        super().__init__(self.connections.name, database, loop)
        self._wait_seconds = wait_seconds
        self._leader: PostgresConnection | None = None  # holds the leader's lock while this process is the leader

    def open(self, create: bool = True, upgrade: bool = False) -> bool:
        with self._setting_up("use", create, upgrade) as (_, was_empty):
            self.peewee_db.bind(BaseModel.__subclasses__())
        if was_empty:
            log.warning(CREATED, self.name)
        return was_empty

    def another(self, wait_seconds: float) -> Self:
        return type(self)(self.url, 1, wait_seconds)

    def close(self) -> None:
        self.peewee_db.close()
        self.connections.close()
        if self._leader is not None:
            self._leader.close()

    # Queries

    def rows(self, query: Query, values: Mapping[str, Any]) -> Iterator[tuple]:
        try:
            connection, (result,) = self._run([query], values)
        except NoRow:
            return iter(())
        self.connections.give(connection)
        return iter(result.rows)

    def hits(self, digest: bytes) -> Hits:
        (row,) = self.rows(SELECT_HITS, {"digest": digest})
        return Hits._make(row)

    def begin(self, wait_seconds: float = 0, clock: Clock = time.time) -> "PostgresTransaction | None":
        seconds = max(wait_seconds, self._wait_seconds)
        statements: list[Query] = [BEGIN, SET_LOCK_TIMEOUT, TAKE_LOCK, SELECT_WEBHOOKS]
        if seconds > LOCK_TIMEOUT_SECONDS * 0.9:
            statements.remove(SET_LOCK_TIMEOUT)  # The session's own limit is about the same.
        values = {"limit": f"{max(1, int(1000 * seconds))}"}
        try:
            # The transaction may serve several clients, so it waits for a connection on behalf of the service, not of
            # one of the clients (see `server.fairness`).
            connection, (*_, lock, active) = Context().run(self._run, statements, values)
        except Busy:
            return None
        return PostgresTransaction(self, clock, connection, lock, active)

    def _run(
        self, queries: list[Query], values: Mapping[str, Any], retry: bool = True
    ) -> tuple[PostgresConnection, list[Result]]:
        """Run queries on a connection from the pool. Return the connection and the results.

        If the connection turns out to be lost, try once more with a new one. The caller must return the connection to
        the pool.
        """
        connection = self.connections.take()
        try:
            return connection, connection.run([connection.bind(self.statement(query), values) for query in queries])
        except BaseException as error:
            retry &= connection.closed and isinstance(error, Unavailable)
            self.connections.give(connection)
            if not retry:
                raise
        self.connections.close()  # because the other connections have usually been lost, too
        return self._run(queries, values, retry=False)

    def check(self) -> None:
        if self.row(SQL("SELECT pg_is_in_recovery()"), {}) != (False,):
            raise Unavailable("the server is a standby", RETRY_SECONDS)

    def is_leader(self) -> bool:
        """Return whether this process is the leader, which sends webhooks and publishes due posts. Raises Unavailable.

        The leader is the process that holds a lock in its session. The server ends the session after LEASE_SECONDS
        without a query, so a process that freezes loses the lock.
        """
        try:
            if self._leader is None or self._leader.closed:
                self._leader = self.connections.connect()
                self._leader.execute(f"SET idle_session_timeout = '{LEASE_SECONDS}s'")
            ((is_locked,),) = self._leader.execute(f"SELECT pg_try_advisory_lock({LEADER})")
            return is_locked
        except psycopg.Error:  # The session has ended and released the lock. The next attempt to connect reports why.
            if self._leader:
                self._leader.close()
            return False

    # The database as a whole

    def sizes(self) -> dict[str, int]:
        (size,) = self.row(SQL("SELECT pg_database_size(current_database())"), {}) or (0,)
        return {"database_size": size}

    @contextmanager
    def snapshot(self) -> Iterator[PostgresContents]:
        with self.connections.session() as connection:
            connection.execute(UNLIMITED)
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            try:
                yield PostgresContents(connection)
            except psycopg.Error as error:
                raise Unavailable(f"cannot copy the database {self.name}: {reason(error)}") from error

    @contextmanager
    def filling(self) -> Iterator[PostgresContents]:
        """Set up an empty database, and yield its contents to a block that fills them."""
        with self._setting_up("write", create=True) as (contents, was_empty):
            if not was_empty:
                raise Unavailable("it is not empty")
            yield contents
            contents.execute("ANALYZE")

    @contextmanager
    def _setting_up(self, purpose: str, create: bool, upgrade: bool = False) -> Iterator[tuple[PostgresContents, bool]]:
        """Set up or upgrade the database in a transaction. Yield the contents, and whether the database was empty."""
        try:
            with self.connections.session() as connection:
                server = connection.info
                if server.server_version < OLDEST or server.parameter_status("server_encoding") != "UTF8":
                    raise Unavailable("its server must be PostgreSQL 15 or newer, with the encoding UTF8")
                self.connections.check_sessions(connection)
                connection.execute(UNLIMITED)
                with connection.transaction():
                    connection.execute(f"SELECT pg_advisory_xact_lock({SET_UP})")  # keeps other processes out
                    contents = PostgresContents(connection)
                    yield contents, contents.set_up(create, upgrade)
        except (NotUnique, Unavailable) as error:
            retry_after = getattr(error, "retry_after", None)
            way_out = "; is the server running there? See BLOGAPI_DATABASE" if isinstance(error, Unreachable) else ""
            cause = f"cannot {purpose} the database {self.name}: {error}{way_out}"
            raise Unavailable(cause, retry_after) from error


class PostgresTransaction(Transaction):
    """A transaction on its own connection.

    A statement without a result is not sent at once, but together with the next statement that has a result, or with
    the commit. Deferring saves round trips, each of which delays all other writers.
    """

    engine: Postgresql
    changes = 0  # also counts failed statements, because after one of them the server accepts only ROLLBACK

    def __init__(self, engine: Postgresql, clock: Clock, connection: PostgresConnection, lock: Result, active: Result):
        super().__init__(engine, clock)
        self.active_webhooks = active.rows
        self._connection = connection
        ((_, self._id),) = lock.rows
        self._waiting: list[tuple] = []

    def row(self, query: Query, **values: Any) -> tuple | None:
        return next(self.rows(query, **values), None)

    def rows(self, query: Query, **values: Any) -> Iterator[tuple]:
        with suppress(NoRow):
            yield from self._run(self.engine.statement(query), values).rows

    def execute(self, query: Query, **values: Any) -> int:
        count = self._run(self.engine.statement(query), values).row_count or 0
        self.changes += count != 0
        return count

    def insert(self, query: Query, **values: Any) -> int:
        self.changes += 1
        statement = self.engine.statement(query)
        # Peewee adds RETURNING only if the model was bound when the query was built.
        if " RETURNING " not in statement.text:
            statement = statement._replace(text=f"{statement.text} RETURNING id")
        return self._run(statement, values).rows[0][0]

    def execute_many(self, query: Query, rows: Iterable[Mapping[str, Any]]) -> None:
        self.changes += 1
        statement = self.engine.statement(query)
        self._waiting += [self._connection.bind(statement, row) for row in rows]

    def defer_last(self, key: tuple[int, ...], query: Query, **values: Any) -> None:
        self.defer(query, **values)

    def commit(self) -> None:
        try:
            self._run(self.engine.statement(COMMIT), {})
        except Unavailable as error:
            if not self._connection.closed:
                raise
            # The response was lost: find out whether the commit succeeded before any client gets a response.
            committed = self.engine.connections.committed(self._id)
            if not committed:
                raise Unavailable(error, RETRY_SECONDS, maybe_changed=committed is None) from error
        self.engine.connections.give(self._connection)

    def is_fatal(self, error: Exception) -> bool:
        return self._connection.closed

    def recover(self, error: BaseException) -> None:
        self.engine.connections.give(self._connection)

    def _run(self, statement: Statement, values: Mapping[str, Any]) -> Result:
        """Run the deferred statements and then this statement in one round trip. Return the result of this one."""
        statements = [*self._waiting, self._connection.bind(statement, values)]
        self._waiting.clear()
        try:
            return self._connection.run(statements)[-1]
        except (NotUnique, Unavailable):
            self.changes += 1
            raise
