"""What operations read and write with."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from peewee import Node

from blogapi.clock import rfc3339
from blogapi.storage.query import Prepared, Statement
from blogapi.storage.sqlite import Sqlite

Query = Prepared | Statement | Node


class Reader:
    """Runs queries that read: the Database, or a Transaction. `now` is the time in RFC 3339 as of which it reads."""

    now: str

    def __init__(self, engine: Sqlite):
        self.engine = engine

    def row(self, query: Query, **values: Any) -> tuple | None:
        """Run a query with the values of its Params; return its first row, or None."""
        return self.engine.row(query, values)

    def rows(self, query: Query, **values: Any) -> Iterator[tuple]:
        """Run a query with the values of its Params; give its rows one by one."""
        return self.engine.rows(query, values)


class Transaction(Reader):
    """Runs the queries of an operation, of which all is kept or nothing. The operation must not yield."""

    def __init__(self, engine: Sqlite, seconds: float):
        super().__init__(engine)
        self.at_end: list[tuple[Query, dict[str, Any]]] = []
        self.now = rfc3339(seconds)  # taken when the lock was had: whoever waited must not write an earlier time

    def execute(self, query: Query, **values: Any) -> int:
        """Run a statement; return how many rows it changed. Raises NotUnique where a constraint says so."""
        return self.engine.run(query, values).rowcount

    def execute_at_end(self, query: Query, **values: Any) -> None:
        """Run a statement once all operations of the transaction are done, of this one and of those that share it.

        What writes the index of the search costs half as much where nothing comes between.
        """
        self.at_end.append((query, values))

    def finish(self) -> None:
        """Run what was left for the end."""
        for query, values in self.at_end:
            self.execute(query, **values)

    def insert(self, query: Query, **values: Any) -> int:
        """Run an INSERT; return the id of the new row. Raises NotUnique where a constraint says so."""
        return self.engine.run(query, values).lastrowid

    def execute_many(self, query: Query, rows: Iterable[Mapping[str, Any]]) -> None:
        """Run a statement once for each of `rows`. Raises NotUnique where a constraint says so."""
        self.engine.run_many(query, rows)
