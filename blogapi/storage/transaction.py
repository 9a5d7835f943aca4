"""What operations read and write with."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from blogapi.clock import rfc3339
from blogapi.storage.engine import OpenTransaction, Runner
from blogapi.storage.query import Each, Query


class Reader:
    """Runs queries that read: the Database, or a Transaction. `now` is the time in RFC 3339 as of which it reads."""

    now: str

    def __init__(self, runner: Runner):
        self._runner = runner

    def of_engine(self, each: Each) -> Any:
        """Return what is for the engine that this reads from."""
        return getattr(each, self._runner.dialect)

    def row(self, query: Query, **values: Any) -> tuple | None:
        """Run a query with the values of its Params; return its first row, or None."""
        return self._runner.row(query, values)

    def rows(self, query: Query, **values: Any) -> Iterator[tuple]:
        """Run a query with the values of its Params; give its rows one by one."""
        return self._runner.rows(query, values)


class Transaction(Reader):
    """Runs the queries of an operation, of which all is kept or nothing. The operation must not yield.

    `aside` says that it runs in a thread of its own, so that it can take longer than 100 ms.
    """

    def __init__(self, opened: OpenTransaction, seconds: float, aside: bool = False):
        super().__init__(opened)
        self.aside = aside
        self._opened = opened
        self.at_end: list[tuple[Query, dict[str, Any]]] = []
        self.now = rfc3339(seconds)  # taken when the lock was had: whoever waited must not write an earlier time

    def execute(self, query: Query, **values: Any) -> int:
        """Run a statement; return how many rows it changed. Raises NotUnique where a constraint says so."""
        return self._opened.execute(query, values)

    def execute_at_end(self, query: Query, **values: Any) -> None:
        """Run a statement once all operations of the transaction are done, of this one and of those that share it.

        What writes the index of the search costs half as much where nothing comes between.
        """
        self.at_end.append((query, values))

    def finish(self) -> None:
        """Run what was left for the end."""
        for query, values in self.at_end:
            self.later(query, **values)

    def insert(self, query: Query, **values: Any) -> int:
        """Run an INSERT; return the id of the new row. Raises NotUnique where a constraint says so."""
        return self._opened.insert(query, values)

    def later(self, query: Query, **values: Any) -> None:
        """Run a statement that must not fail, and whose result nobody needs: at once, or with the next ones."""
        self._opened.later(query, [values])

    def rows_of_each(self, query: Query, rows: list[Mapping[str, Any]]) -> list[list[tuple]]:
        """Run a query once for each of `rows`; return what each gives."""
        return self._opened.rows_of_each(query, rows)

    def execute_many(self, query: Query, rows: Iterable[Mapping[str, Any]]) -> None:
        """Run a statement once for each of `rows`, as `later` does."""
        self._opened.later(query, rows)
