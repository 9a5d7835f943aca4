"""PostgreSQL: the engine, its transactions, and who of several processes writes and leads.

One transaction of the whole cluster writes at a time: all that rests on SQLite's single writer holds here, too.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Self

import psycopg

from blogapi.loop import PLAIN, Loop
from blogapi.storage.connections import Connection, Connections, failure, fetched, reason
from blogapi.storage.contents import PostgresqlContents, make_index
from blogapi.storage.copy import copy
from blogapi.storage.errors import RETRY_SECONDS, Unavailable
from blogapi.storage.open_transaction import Dialect, OpenTransaction, is_unsayable
from blogapi.storage.query import Query, Statement
from blogapi.storage.search.words import UNICODE
from blogapi.storage.sqlite import Sqlite

SCHEMA = Path(__file__).resolve().parent.parent / "schema.postgresql.sql"
VERSION = 5  # as in schema.postgresql.sql
WRITER, LEADER, SET_UP = 0x626C6F67, 0x626C6F68, 0x626C6F69  # the numbers of the advisory locks
OLDEST = 15_00_00  # the version of PostgreSQL that it takes
LEASE_SECONDS = 5  # after which a leader that is silent is none any more
BEGIN = """
    BEGIN ISOLATION LEVEL READ COMMITTED;
    SET LOCAL lock_timeout = {};
    SELECT pg_advisory_xact_lock({});
    SELECT pg_current_xact_id()::text
"""

log = logging.getLogger(__name__)


class Postgresql:
    """A database of PostgreSQL, and a few kept connections to it."""

    dialect = "postgresql"
    waits_cooperatively = True

    def __init__(self, url: str, connections: int, wait_seconds: float = 0, loop: Loop = PLAIN):
        self.url = url
        self.loop = loop
        self.connections = Connections(url, connections, self)
        self.name = self.connections.name
        self._wait_seconds = wait_seconds
        self._dialect = Dialect()
        self._leader: Connection | None = None  # whose session has the lock of the leader, if this process leads
        self._leads = False

    def open(self, create: bool = True, upgrade: bool = True) -> bool:
        """Connect; set the database up where it is empty. Raises Unavailable."""
        try:
            with closing(self.connections.connect()) as connection:
                return _set_up(connection, create, upgrade)
        except (psycopg.Error, Unavailable) as error:
            raise Unavailable(f"cannot use the database {self.name}: {reason(error)}") from error

    def another(self, wait_seconds: float) -> Self:
        """Return an engine with a connection of its own, for another thread, which can wait for the lock."""
        return type(self)(self.url, 1, wait_seconds)

    def close(self) -> None:
        """Close all connections that are not in use."""
        self.connections.close()
        if self._leader is not None:
            self._leader.close()

    # Statements

    def row(self, query: Query, values: Mapping[str, Any]) -> tuple | None:
        """Run a query; return its first row, or None. Raises Unavailable."""
        rows = self._read(query, values)
        return rows[0] if rows else None

    def rows(self, query: Query, values: Mapping[str, Any]) -> Iterator[tuple]:
        """Run a query; give its rows. Raises Unavailable."""
        yield from self._read(query, values)

    def _read(self, query: Query, values: Mapping[str, Any]) -> list[tuple]:
        statement = self._dialect.statement(query)
        while True:
            connection, new = self.connections.take()
            try:
                if statement.names is not None:
                    return connection.rows(statement, values)
                return fetched(connection.run(statement, values))
            except psycopg.Error as error:
                if is_unsayable(error):
                    return []
                if not connection.closed or new:
                    raise failure(error, connection) from error
                self.connections.close()  # The others are lost, too, mostly.
            finally:
                self.connections.give(connection)

    # Transactions

    def begin(self, wait_seconds: float = 0) -> OpenTransaction | None:
        """Begin a transaction that writes; return None if the lock was not to be had in time. Raises Unavailable."""
        text = BEGIN.format(max(1, int(1000 * max(wait_seconds, self._wait_seconds))), WRITER)
        while True:
            connection, new = self.connections.take()
            try:
                cursor = connection.execute(text)
                cursor.set_result(-1)
                return OpenTransaction(self.connections, connection, cursor.fetchone()[0], self._dialect)
            except psycopg.errors.LockNotAvailable:
                self.connections.abandon(connection)
                return None
            except BaseException as error:
                lost = connection.closed
                self.connections.abandon(connection)
                if not isinstance(error, psycopg.Error):
                    raise
                self.connections.close()  # The others may be of a server that is a standby by now.
                if not lost or new:
                    raise failure(error, connection) from error

    def shrink(self) -> None:
        """PostgreSQL does that by itself."""

    def is_leader(self) -> bool:
        """Return whether this process is the one of all that does what only one may do. Raises Unavailable.

        That is who has a lock of its session, which ends when it was not asked for LEASE_SECONDS: a process that is
        frozen leads no longer.
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
        except psycopg.Error:  # With the connection, what it led is lost. Why, the next one will say.
            self._leader.close()
            self._leads = False
        return self._leads

    # The whole of it

    @contextmanager
    def snapshot(self) -> Iterator[PostgresqlContents]:
        """Give all that there is as of one moment, also while others write. Raises Unavailable."""
        try:
            with closing(self.connections.connect()) as connection:
                connection.execute("SET idle_in_transaction_session_timeout = 0")
                connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                yield PostgresqlContents(connection)
        except psycopg.Error as error:
            raise Unavailable(f"cannot copy the database {self.name}: {reason(error)}") from error

    @contextmanager
    def filling(self) -> Iterator[PostgresqlContents]:
        """Set a database up that is empty, and fill it. Raises Unavailable."""
        try:
            with closing(self.connections.connect()) as connection:
                connection.execute("SET idle_in_transaction_session_timeout = 0")
                with connection.transaction():
                    if not _set_up(connection, create=True, upgrade=True):
                        raise Unavailable("it is not empty")
                    yield PostgresqlContents(connection)
                    make_index(connection)
                    connection.execute("ANALYZE")
        except (psycopg.Error, Unavailable) as error:
            raise Unavailable(f"cannot write the database {self.name}: {reason(error)}") from error

    def backup(self, path: Path) -> None:
        """Write a consistent copy as a SQLite file, also while others write. Raises OSError, Unavailable."""
        copy(self, Sqlite(path))

    def size(self) -> int:
        """Return how many bytes it takes on disk. Raises Unavailable."""
        return self.row(Statement("SELECT pg_database_size(current_database())", []), {})[0]

    def check(self) -> bool:
        """Return True if the database can be written; else raise Unavailable."""
        if self.row(Statement("SELECT pg_is_in_recovery()", []), {}) != (False,):
            self.connections.close()
            raise Unavailable("the server is a standby", RETRY_SECONDS)
        return True

    def probe(self, transaction: object) -> None:
        """Nothing: `check` knows."""


def _set_up(connection: Connection, create: bool, upgrade: bool) -> bool:
    """Set a database up where it is empty; return whether it was set up. Others that do so at the same time wait."""
    if connection.info.server_version < OLDEST or connection.info.parameter_status("server_encoding") != "UTF8":
        raise Unavailable("it must be of PostgreSQL 15 or newer, and its encoding UTF8")
    with connection.transaction():
        connection.execute(f"SELECT pg_advisory_xact_lock({SET_UP})")
        tables = "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
        names = {name for (name,) in connection.execute(tables)}
        if not names:
            if not create:
                raise Unavailable("it is empty; blogapi init sets one up")
            connection.execute(SCHEMA.read_bytes())
            make_index(connection)
            return True
        if not {"blogapi", "post"} <= names:
            raise Unavailable("it belongs to another program")
        version, unicode = connection.execute("TABLE blogapi").fetchone()
        if version > VERSION:
            raise Unavailable(f"its version {version} is newer than this program's {VERSION}; upgrade the program")
        if unicode != UNICODE:
            if not upgrade:
                raise Unavailable("its index of words was made by another Python: blogapi init makes it anew")
            make_index(connection)
    return False
