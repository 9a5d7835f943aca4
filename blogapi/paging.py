"""Divide lists into pages: queries, cursors, and the documents that fit on a page."""

from collections.abc import Callable, Iterable
from typing import Any, Generic, NamedTuple, TypeVar

from peewee import SQL, Select, Window, fn

from blogapi import documents
from blogapi.clock import LATEST
from blogapi.storage.engine import AsBytes
from blogapi.storage.errors import Damaged
from blogapi.storage.models import MAX_ID

PAGE_BYTES = 4 * 1024 * 1024

Item = TypeVar("Item")
Next = TypeVar("Next")
Id = TypeVar("Id", bound=int | str)


class Cursor(NamedTuple, Generic[Id]):
    """A position in a sorted list: an item's time (or, in a list sorted by relevance, "title" or "text") and id."""

    key: str
    id: Id

    def __str__(self) -> str:
        return f"{self.key}_{self.id}"


class Page(NamedTuple, Generic[Item, Next]):
    """A page of a list: its items, such as posts' documents, and the cursor of the next page, if any."""

    items: list[Item]
    next: Next | None


class ListQuery(NamedTuple):
    """Which posts to list, and in which order.

    * sort="created_at": newest first. `before` is the id of a post, and the list contains only posts with a lower id.
    * sort="published_at": only posts with a publication date, latest first. `before` is a Cursor. The date must not be
      earlier than `published_after`, and must be earlier than `published_before`.
    * sort="updated_at": latest change first, back to `updated_after`. `before` is a Cursor; `tag` is not supported.

    `tag` is a folded name. `fields` lists the fields to return, in order and separated by commas. `q` is a search.
    """

    limit: int
    status: str | None = None
    tag: str | None = None
    before: int | Cursor[int] | None = None
    sort: str = "created_at"
    published_after: str = ""
    published_before: str = LATEST
    updated_after: str = ""
    fields: str = ""
    q: str = ""

    @property
    def before_id(self) -> int:
        """The id at which a list sorted by creation time starts (exclusive)."""
        return self.before if isinstance(self.before, int) else MAX_ID

    @property
    def start(self) -> Cursor[int]:
        """The cursor at which a list sorted by another time starts (exclusive)."""
        start = Cursor(self.published_before, 0)
        return min(start, self.before) if isinstance(self.before, Cursor) else start


def id_of(row: tuple) -> int:
    """Return a row's cursor in a list sorted by creation time: the post's id."""
    return row[0]


def cursor_of(row: tuple) -> Cursor[int]:
    """Return a row's cursor in any other list: its time (or "title" or "text") and its id."""
    return Cursor(row[2], row[0])


def page_of(
    rows: Iterable[tuple],
    limit: int,
    cursor: Callable[[tuple], Any],
    fields: str = "",
    item_of: Callable[[tuple, bytes], Any] = lambda row, document: document,
) -> Page[Any, Any]:
    """Return a page with an item for each row: by default, its document, or only some `fields` of it.

    A row begins with an id and a document. The page ends after `limit` items, or with the item that exceeds PAGE_BYTES.
    Damaged posts are skipped.
    """
    items: list[Any] = []
    names = fields.split(",") if fields else []
    size, skipped, last = 0, 0, ()
    for row in rows:
        if len(items) == limit or size > PAGE_BYTES:
            return Page(items, cursor(last))
        last, document = row, row[1]
        if names or document is None:
            try:
                document = documents.cut(document, names) if names else documents.intact(document)
            except Damaged:
                skipped += 1
                continue
        size += len(row[1])  # the full size even if fields are cut, because parsing takes most of the time
        items.append(item_of(row, document))
    return Page(items, cursor(last) if len(items) + skipped > limit else None)


def bounded(query: Select, *after: str, key: str = "id") -> Select:
    """Limit a PostgreSQL query to the posts that fit on a page, plus one, because psycopg holds all rows in memory.

    `key` is the column before the document, and `after` lists the columns after it. The limit costs little, because
    PostgreSQL can tell the size of a string without reading it.
    """
    rows = query.alias("rows")
    size = fn.SUM(fn.OCTET_LENGTH(rows.c.document))
    earlier = size.over(start=Window.preceding(), end=Window.preceding(2), frame_type=Window.ROWS).alias("earlier")
    sized = Select([rows], [SQL("rows.*"), earlier]).alias("sized")
    columns = [sized.c[key], AsBytes(sized.c.document), *(sized.c[name] for name in after)]
    return Select([sized], columns).where(fn.COALESCE(sized.c.earlier, 0) <= PAGE_BYTES)
