"""The lists of posts: pages of the newest ones, and all of them."""

from collections.abc import Iterator
from functools import cache, reduce
from operator import add as union_all
from typing import Any, NamedTuple

from peewee import SQL, Select, fn

from blogapi.storage import documents
from blogapi.storage.errors import Damaged, Unavailable
from blogapi.storage.models import DOCUMENT, MAX_ID, STATUSES, Post, PostTag, Schedule
from blogapi.storage.query import Param, Prepared
from blogapi.storage.transaction import Reader

PAGE_BYTES = 4 * 1024 * 1024
MAX_COUNTED = 100_000  # posts of a status: 5 ms


class Page(NamedTuple):
    """Some posts of a list, and the id of the last one if more follow."""

    documents: list[bytes]
    last: int | None


def page(reader: Reader, limit: int, status: str | None = None, tag: str | None = None, before: int = MAX_ID) -> Page:
    """Return the newest posts made before the post `before`, newest first; `tag` is folded.

    A page ends after `limit` posts, or after the post that brings it past PAGE_BYTES. Costs O(limit): an index gives
    the order for each combination of filters.
    """
    now = reader.now
    found: list[bytes] = []
    size = last = 0
    query = _newest_posts(status, tag is not None)
    for post_id, document_status, document in reader.rows(query, now=now, tag=tag, before=before, limit=limit + 1):
        if len(found) == limit or size > PAGE_BYTES:
            return Page(found, last)
        last = post_id
        if document_status == "scheduled" or document is None:
            try:
                document = documents.as_of(now, document_status, document)
            except Damaged:  # It is passed over, and can be deleted.
                continue
        found.append(document)
        size += len(document)
    return Page(found, None)


@cache
def _newest_posts(status: str | None, by_tag: bool) -> Prepared:
    """Return the query of a page, with the parameters now, tag, before and limit.

    Where several lists are merged it finds the ids first: a document can have four megabytes.
    """
    newest_first = Post.id.desc()
    columns = Post.select(Post.id, Post.status, DOCUMENT)
    if status is None and not by_tag:
        return Prepared(columns.where(Post.id < Param("before")).order_by(newest_first).limit(Param("limit")))
    lists = [_ids(each, by_tag) for each in ([status] if status else STATUSES)]
    if status == "published":
        lists.append(_due_ids(by_tag))
    elif status == "scheduled":
        lists = [_ids_to_come(*lists)]
    ids = reduce(union_all, lists).order_by(SQL("1").desc()).limit(Param("limit"))
    return Prepared(columns.where(Post.id.in_(ids)).order_by(newest_first))


def _ids(status: str, by_tag: bool) -> Select:
    """Return the query for the ids of the posts with a status, and perhaps a tag."""
    if by_tag:
        key = PostTag.post_id
        query = PostTag.select(key).where(PostTag.tag == Param("tag"), PostTag.status == status)
    else:
        key = Post.id
        query = Post.select(key).where(Post.status == status)
    return query.where(key < Param("before"))


def _ids_to_come(ids: Select) -> Select:
    """Return the query for those of the ids of scheduled posts whose time has not come."""
    (key,) = ids.selected_columns
    return ids.join(Schedule, on=Schedule.post_id == key).where(Schedule.published_at > Param("now"))


def _due_ids(by_tag: bool) -> Select:
    """Return the query for the ids of the posts, mostly none, that are to be published by now."""
    key = Schedule.post_id + 0  # not the primary key, for SQLite: it is the time that finds the few
    query = Schedule.select(key).where(Schedule.published_at <= Param("now"), key < Param("before"))
    if by_tag:
        carries = (PostTag.tag == Param("tag")) & (PostTag.status == "scheduled")
        query = query.join(PostTag, on=carries & (PostTag.post_id == Schedule.post_id))
    return query


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
