"""Queries: Peewee's, built when they run, or prepared: compiled once, as they run often."""

import re
from itertools import count
from typing import Any, NamedTuple

from peewee import SQL, ColumnBase, Context, Database, Field, Model, Node

NAME = re.compile(r"(?<!:):([a-z]\w*)")  # of a Param in text; "::" is PostgreSQL's cast


class Param(ColumnBase):
    """A value that is given when a prepared query runs; in text, `:name`."""

    def __init__(self, name: str):
        super().__init__()
        self.name = name

    def __sql__(self, ctx: Context) -> Context:
        return ctx.literal(f":{self.name}")


def params(model: type[Model], *names: str) -> dict[Field, Param]:
    """Return a Param for each of the fields of a model with these names, or for all, as an INSERT or UPDATE needs."""
    return {field: Param(field.name) for field in model._meta.sorted_fields if not names or field.name in names}


class AsBytes(ColumnBase):
    """A text as the UTF-8 bytes that are stored, without decoding it."""

    def __init__(self, text: Node):
        super().__init__()
        self.text = text

    def __sql__(self, ctx: Context) -> Context:
        start, end = ctx.state.as_bytes or ("CAST(", " AS BLOB)")
        return ctx.literal(start).sql(self.text).literal(end)


class Prepared:
    """A query that is compiled once: its constants are literals, and its variables `Param`s.

    It is one of Peewee's, or text; by the name of the engine if that matters.
    """

    def __init__(self, query: Node | str = "", **of_engines: Node | str):
        self._query = query
        self._of_engines = of_engines

    def query(self, engine: str) -> Node:
        """Return the query for an engine."""
        query = self._of_engines.get(engine, self._query)
        return SQL(query) if isinstance(query, str) else query


Query = Prepared | Node


class Statement(NamedTuple):
    """The text of a query, and the names of its parameters in order; or, if it is not prepared, their values."""

    text: str
    names: list[str] | None
    values: list[Any]

    def numbered(self) -> str:
        """Return the text with numbers for the parameters, as PostgreSQL has them."""
        if self.names is None:
            numbers = count(1)
            return re.sub("%s", lambda _: f"${next(numbers)}", self.text)
        return NAME.sub(lambda match: f"${self.names.index(match[1]) + 1}", self.text)


class Dialect:
    """Compiles queries for an engine; `Prepared` ones once."""

    def __init__(self, engine: str, database: Database, **options: Any):
        self._engine = engine
        self._database = database
        self._options = options
        self._statements: dict[Prepared, Statement] = {}

    def statement(self, query: Query) -> Statement:
        """Return the text of a query."""
        if type(query) is not Prepared:
            text, values = self._context().sql(query).query()
            return Statement(text, None, values)
        statement = self._statements.get(query)
        if statement is None:
            text, values = self._context(value_literals=True).sql(query.query(self._engine)).query()
            statement = self._statements[query] = Statement(text, list(dict.fromkeys(NAME.findall(text))), values)
        return statement

    def _context(self, **options: Any) -> Context:
        return self._database.get_sql_context(**self._options, **options)
