"""Queries: Peewee's queries, compiled once if they are frequent, and text for SQL that Peewee cannot express."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from peewee import ColumnBase, Context, Database, Node


class Param(ColumnBase):
    """A value that is given when the query runs."""

    def __init__(self, name: str):
        super().__init__()
        self.name = name

    def __sql__(self, ctx: Context) -> Context:
        ctx._values.append(self)
        return ctx.literal(ctx.state.param or "?")


class AsBytes(ColumnBase):
    """A text as the UTF-8 bytes that are stored, without decoding it."""

    def __init__(self, text: Node):
        super().__init__()
        self.text = text

    def __sql__(self, ctx: Context) -> Context:
        start, end = ctx.state.as_bytes or ("CAST(", " AS BLOB)")
        return ctx.literal(start).sql(self.text).literal(end)


class Prepared:
    """A Peewee query that is compiled once: its constants are literals, and its variables are `Param`s."""

    def __init__(self, query: Node):
        self.query = query


class Statement:
    """The text of a query, and its parameters in order: `Param`s, or values."""

    __slots__ = ("names", "parameters", "text")

    def __init__(self, text: str, parameters: list[Any]):
        self.text = text
        self.parameters = parameters
        names = [each.name for each in parameters if type(each) is Param]
        self.names = names if len(names) == len(parameters) else None  # if all of them are `Param`s

    def bind(self, values: Mapping[str, Any]) -> list[Any]:
        """Return the values of the parameters."""
        if self.names is not None:
            return [values[name] for name in self.names]
        return [values[each.name] if type(each) is Param else each for each in self.parameters]


class Each(NamedTuple):
    """A query or a function in a variant for each engine."""

    sqlite: Any
    postgresql: Any


Query = Prepared | Statement | Each | Node


class Dialect:
    """Compiles queries for an engine, named like a field of `Each`; `Prepared` ones once."""

    def __init__(self, name: str, database: Database, **options: Any):
        self.name = name
        self._database = database  # never connected
        self._options = options
        self._statements: dict[Prepared, Statement] = {}

    def statement(self, query: Query) -> Statement:
        """Return the text of a query."""
        if type(query) is Each:
            query = getattr(query, self.name)
        if type(query) is Statement:
            return query
        if type(query) is not Prepared:
            return self._compile(query)
        statement = self._statements.get(query)
        if statement is None:
            statement = self._statements[query] = self._compile(query.query, value_literals=True)
        return statement

    def _compile(self, query: Node, **options: Any) -> Statement:
        return Statement(*self._database.get_sql_context(**self._options, **options).sql(query).query())
