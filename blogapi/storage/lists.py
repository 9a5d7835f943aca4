"""The lists of posts: pages in the order of creation or of publication, and all of them."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from peewee import SQL, Select, fn

from blogapi.post import STATUSES
from blogapi.storage import documents, orders, search
from blogapi.storage.errors import Damaged, Unavailable
from blogapi.storage.models import DOCUMENT, MAX_ID, Post, Schedule
from blogapi.storage.orders import Place
from blogapi.storage.query import Param, Prepared
from blogapi.storage.transaction import Reader

PAGE_BYTES = 4 * 1024 * 1024
READ_SHARE = 8  # fields that are read but not answered count an eighth: to read 32 MiB takes 15 ms
MAX_COUNTED = 100_000  # posts of a status: 5 ms


class Page(NamedTuple):
    """Some posts of a list, and what the next page is `before` if more follow."""

    documents: list[bytes]
    before: int | Place | None


def page(
    reader: Reader,
    limit: int,
    status: str | None = None,
    tag: str | None = None,
    before: int | Place | None = None,
    sort: str = "created_at",
    fields: str | None = None,
    q: str | None = None,
) -> Page:
    """Return the newest posts made before the post `before`, newest first; `tag` is folded, `q` has words to look for.

    Sorted by published_at: the posts that have one, latest first, those before the Place `before`. With `fields`, names
    in order with commas between them, there are only these of each post.

    A page ends after `limit` posts, or after the post that brings it past PAGE_BYTES. Costs O(limit): an index gives
    the order for each combination of filters. A search costs more where posts have some of its words and not the rest.
    """
    now = reader.now
    rows = _rows(reader, q, sort, status, before, {"now": now, "tag": tag, "limit": limit + 1})
    names = fields.split(",") if fields else None
    found: list[bytes] = []
    size = passed_over = 0
    last: tuple = ()
    for row in rows:
        if len(found) == limit or size > PAGE_BYTES:
            return Page(found, _place(last))
        last = row
        document = row[2]
        if row[1] == "scheduled" or names or document is None:
            try:
                document = documents.as_of(now, row[1], document)
                if names:
                    read = len(document)
                    document = documents.cut(document, names)
                    size += (read - len(document)) // READ_SHARE
            except Damaged:  # It can be deleted.
                passed_over += 1
                continue
        size += len(document)
        found.append(document)
    return Page(found, _place(last) if len(found) + passed_over > limit else None)


def _rows(
    reader: Reader, q: str | None, sort: str, status: str | None, before: int | Place | None, values: dict[str, Any]
) -> Iterator[tuple]:
    """Give the rows of the posts in their order, of those that are found where something is looked for."""
    if q is None:
        order = orders.newest if sort == "created_at" else orders.latest
        return order(reader, status, before, values)
    order = search.newest if sort == "created_at" else search.latest
    return order(reader, q, status, before, values)


def _place(row: tuple) -> int | Place:
    """Return what the posts after the one of a row are before."""
    return Place(row[3], row[0]) if len(row) > 3 else row[0]


def counts(reader: Reader) -> dict[str, int]:
    """Return how many posts have each status; MAX_COUNTED stands for so many or more, which would take too long."""
    now = reader.now
    found = {status: reader.row(_count, status=status)[0] for status in STATUSES}
    due = min(reader.row(_count_due, now=now)[0], found["scheduled"])  # in the database they are published later
    return found | {"published": found["published"] + due, "scheduled": found["scheduled"] - due}


def _count_of(query: Select) -> Prepared:
    return Prepared(Select([query.limit(MAX_COUNTED)], [fn.COUNT(SQL("*"))]))


_count = _count_of(Post.select(Post.id).where(Post.status == Param("status")))
_count_due = _count_of(Schedule.select(Schedule.post_id).where(Schedule.published_at <= Param("now")))


def every(reader: Reader) -> Iterator[dict[str, Any]]:
    """Yield every post, newest first, each as it is when it is read; memory holds one.

    Raises Unavailable at the end if some are damaged, saying which.
    """
    damaged = []
    before = MAX_ID
    while found := reader.row(_post_before, before=before):
        before, status, document = found
        try:
            yield documents.load(documents.as_of(reader.now, status, document))
        except Damaged:
            damaged.append(before)
    if damaged:
        raise Unavailable(f"these posts are damaged: {', '.join(map(str, damaged))}; all others were read")


_post_before = Prepared(
    Post.select(Post.id, Post.status, DOCUMENT).where(Post.id < Param("before")).order_by(Post.id.desc()).limit(1)
)
