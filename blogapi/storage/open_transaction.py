"""Transactions that write to PostgreSQL, and the texts of queries there."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import psycopg
from peewee import PostgresqlDatabase

from blogapi.storage.connections import Connection, Connections, failure, fetched, reason
from blogapi.storage.errors import RETRY_SECONDS, Unavailable
from blogapi.storage.query import Each, Prepared, Query, Statement


class Dialect:
    """Builds the texts of queries, those that are run again and again once."""

    OPTIONS = {"as_bytes": ("convert_to(", ", 'UTF8')")}

    def __init__(self) -> None:
        self._database = PostgresqlDatabase(None)  # is never connected
        self._statements: dict[Prepared, Statement] = {}

    def statement(self, query: Query) -> Statement:
        """Return the text of a query."""
        if type(query) is Each:
            query = query.postgresql
        if type(query) is Statement:
            return query
        if type(query) is not Prepared:
            return Statement.of(query, self._database, **self.OPTIONS)
        statement = self._statements.get(query)
        if statement is None:
            statement = Statement.of(query.query, self._database, value_literals=True, **self.OPTIONS)
            self._statements[query] = statement
        return statement


class OpenTransaction:
    """A transaction that writes.

    What gives nothing back waits for the next statement that does, or for the commit, and goes with it: it is the round
    trips that a transaction takes, during which nobody else writes.
    """

    dialect = "postgresql"

    def __init__(self, connections: Connections, connection: Connection, transaction_id: str, dialect: "Dialect"):
        self._connections = connections
        self._statement = dialect.statement
        self._connection = connection
        self._transaction_id = transaction_id
        self._ended = False
        self._waiting: list[tuple[Statement, Mapping[str, Any]]] = []
        self._failed = False  # whether statements of several operations did

    def row(self, query: Query, values: Mapping[str, Any]) -> tuple | None:
        """Run a query; return its first row, or None. Raises Unavailable."""
        return next(self.rows(query, values), None)

    def rows(self, query: Query, values: Mapping[str, Any]) -> Iterator[tuple]:
        """Run a query; give its rows. Raises Unavailable."""
        yield from self.rows_of_each(query, [values])[0]

    def rows_of_each(self, query: Query, rows: list[Mapping[str, Any]]) -> list[list[tuple]]:
        """Run a query once for each of `rows`, all in one round trip; return what each gives. Raises Unavailable."""
        statement = self._statement(query)
        try:
            return [fetched(cursor) for cursor in self._run_all([(statement, values) for values in rows])]
        except psycopg.Error as error:
            if is_unsayable(error):
                return [[] for _ in rows]
            raise failure(error, self._connection) from error

    def execute(self, query: Query, values: Mapping[str, Any]) -> int:
        """Run a statement; return how many rows it changed. Raises NotUnique or Unavailable."""
        return self._run(self._statement(query), values).rowcount

    def insert(self, query: Query, values: Mapping[str, Any]) -> int:
        """Run an INSERT; return the id of the new row. Raises NotUnique or Unavailable."""
        statement = self._statement(query)
        return self._run(statement._replace(text=f"{statement.text} RETURNING id"), values).fetchone()[0]

    def defer(self, query: Query, rows: Iterable[Mapping[str, Any]]) -> None:
        """Run a statement once for each of `rows`, before the next one that gives something back or the commit."""
        statement = self._statement(query)
        self._waiting += [(statement, row) for row in rows]

    def savepoint(self) -> None:
        """Begin a part of the transaction that can end by itself."""
        self._waiting.append((Statement("SAVEPOINT part", []), {}))

    def release(self, undo: bool = False) -> None:
        """End the part of the transaction; with `undo`, nothing of it is kept."""
        if undo:
            self._waiting.append((Statement("ROLLBACK TO part", []), {}))
        self._waiting.append((Statement("RELEASE part", []), {}))

    def commit(self) -> None:
        """End the transaction; what was written is on disk. Raises Unavailable.

        Where the answer is lost, it is asked for what became of the transaction before anybody is told.
        """
        try:
            self._run_all([(Statement("COMMIT", []), {})])
        except psycopg.Error as error:
            if not self._connection.closed:
                raise failure(error, self._connection) from error
            self._end()
            committed = self._connections.committed(self._transaction_id)
            if not committed:
                raise Unavailable(reason(error), RETRY_SECONDS, maybe_changed=committed is None) from error
        else:
            self._end()

    def is_fatal(self, error: Exception) -> bool:
        """Return whether an error is not of one operation, but of the whole transaction."""
        return self._failed or self._connection.closed

    def recover(self, error: BaseException) -> None:
        """End the transaction that an error has left open."""
        if not self._ended:
            self._connections.abandon(self._connection)

    def _end(self) -> None:
        self._ended = True
        self._connections.give(self._connection)

    def _run(self, statement: Statement, values: Mapping[str, Any]) -> psycopg.Cursor:
        try:
            return self._run_all([(statement, values)])[0]
        except psycopg.Error as error:
            raise failure(error, self._connection) from error

    def _run_all(self, statements: list[tuple[Statement, Mapping[str, Any]]]) -> list[psycopg.Cursor]:
        """Run what waits, and then statements, all in one round trip; return the cursors of these."""
        if not statements:
            return []
        waiting, self._waiting = self._waiting, []
        if len(waiting) + len(statements) == 1:
            return [self._connection.run(*statements[0])]
        cursors: list[psycopg.Cursor] = []
        try:
            with self._connection.pipeline():
                cursors += [self._connection.run(*each) for each in waiting]
                return [self._connection.run(*each) for each in statements]
        except psycopg.Error:
            self._failed |= any(cursor.statusmessage is None for cursor in cursors) or len(cursors) < len(waiting)
            raise


def is_unsayable(error: psycopg.Error) -> bool:
    """Return whether a value cannot be in PostgreSQL's text (U+0000): nothing is found by it."""
    return isinstance(error, psycopg.DataError) and error.sqlstate is None
