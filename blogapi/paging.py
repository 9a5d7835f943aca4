"""Places in a list, and its pages."""

from typing import Generic, NamedTuple, TypeVar

Item = TypeVar("Item")
Place = TypeVar("Place")
Id = TypeVar("Id", bound=int | str)


class Cursor(NamedTuple, Generic[Id]):
    """The place of a post or an image in an order: its time, or the part in which a search found it, and its id."""

    key: str
    id: Id

    def __str__(self) -> str:
        return f"{self.key}_{self.id}"


class Page(NamedTuple, Generic[Item, Place]):
    """Some items of a list, such as the documents of posts, and where the next page starts, if more follow."""

    items: list[Item]
    next: Place | None
