"""Queries that are built once: building one takes Peewee about 95 µs, most of what a small request takes."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from peewee import ColumnBase, Context, Database, Node


class Param(ColumnBase):
    """A value of a query that is given when the query runs."""

    def __init__(self, name: str):
        super().__init__()
        self.name = name

    def __sql__(self, ctx: Context) -> Context:
        ctx._values.append(self)
        return ctx.literal(ctx.state.param or "?")


class AsBytes(ColumnBase):
    """A text as its bytes in UTF-8, as it is stored: decoding and encoding it would be for nothing."""

    def __init__(self, text: Node):
        super().__init__()
        self.text = text

    def __sql__(self, ctx: Context) -> Context:
        start, end = ctx.state.as_bytes or ("CAST(", " AS BLOB)")
        return ctx.literal(start).sql(self.text).literal(end)


class Prepared:
    """A query whose text is built once, with its constants in it; what differs from run to run are `Param`s."""

    def __init__(self, query: Node):
        self.query = query


class Statement(NamedTuple):
    """The text of a query, and its parameters in order: values, or `Param`s that stand for them."""

    text: str
    parameters: list[Any]
    names: list[str] | None = None  # of the parameters, where all of them are `Param`s

    @classmethod
    def of(cls, query: Node, dialect: Database, **options: Any) -> "Statement":
        """Build the text of `query` in the dialect of a database."""
        text, parameters = dialect.get_sql_context(**options).sql(query).query()
        names = [each.name for each in parameters if type(each) is Param]
        return cls(text, parameters, names if len(names) == len(parameters) else None)

    def bind(self, values: Mapping[str, Any]) -> list[Any]:
        """Return the values of the parameters."""
        if self.names is not None:
            return [values[name] for name in self.names]
        return [values[each.name] if type(each) is Param else each for each in self.parameters]


class Each(NamedTuple):
    """What each engine says in a way of its own: a query, or a function."""

    sqlite: Any
    postgresql: Any


Query = Prepared | Statement | Each | Node
