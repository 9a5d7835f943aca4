"""Cursors and pages of lists."""

from typing import Generic, NamedTuple, TypeVar

Item = TypeVar("Item")
Place = TypeVar("Place")
Id = TypeVar("Id", bound=int | str)


class Cursor(NamedTuple, Generic[Id]):
    """A position in an ordered list: the item's time (or, by relevance, where a search found its words) and its id."""

    key: str
    id: Id

    def __str__(self) -> str:
        return f"{self.key}_{self.id}"


class Page(NamedTuple, Generic[Item, Place]):
    """Items of a list, such as documents of posts, and where the next page starts if there is one."""

    items: list[Item]
    next: Place | None
