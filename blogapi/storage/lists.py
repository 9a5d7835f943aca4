"""The lists of posts: pages of the newest, pages of the latest published, and all of them."""

from collections.abc import Iterator
from functools import cache, reduce
from operator import add as union_all
from typing import Any, NamedTuple

from peewee import SQL, Select

from blogapi.storage import documents
from blogapi.storage.errors import Damaged, Unavailable
from blogapi.storage.models import DOCUMENT, MAX_ID, STATUSES, Post, PostTag, Schedule
from blogapi.storage.query import Param, Prepared
from blogapi.storage.transaction import Reader

PAGE_BYTES = 4 * 1024 * 1024
READ_SHARE = 8  # fields that are read but not answered count an eighth: to read 32 MiB takes 15 ms


class Place(NamedTuple):
    """The place of a post in the order of publication."""

    published_at: str
    id: int

    def __str__(self) -> str:
        return f"{self.published_at}_{self.id}"


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
) -> Page:
    """Return the newest posts made before the post `before`, newest first; `tag` is folded.

    Sorted by published_at: the posts that have one, latest first, those before the Place `before`. With `fields`, names
    in order with commas between them, there are only these of each post.

    A page ends after `limit` posts, or after the post that brings it past PAGE_BYTES. Costs O(limit): an index gives
    the order for each combination of filters.
    """
    now = reader.now
    values = {"now": now, "tag": tag, "limit": limit + 1}
    if sort == "created_at":
        rows = reader.rows(_newest_posts(status, tag is not None), before=before or MAX_ID, **values)
    else:
        rows = _latest(reader, status, before, values)
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


def _place(row: tuple) -> int | Place:
    """Return what the posts after the one of a row are before."""
    return Place(row[3], row[0]) if len(row) > 3 else row[0]


_columns = (Post.status, DOCUMENT)


@cache
def _newest_posts(status: str | None, by_tag: bool) -> Prepared:
    """Return the query of a page in the order of creation, with the parameters now, tag, before and limit.

    Where several lists are merged it finds the ids first: a document can have four megabytes.
    """
    newest_first = Post.id.desc()
    columns = Post.select(Post.id, *_columns)
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


def _latest(reader: Reader, status: str | None, before: Place | None, values: dict[str, Any]) -> Iterator[tuple]:
    """Yield the rows of the latest published posts before a place: those of the same second, then earlier ones.

    One query for both could not seek: all posts of a second would be gone through for each page of them.
    """
    now, by_tag = values["now"], values["tag"] is not None
    time = before.published_at if before else "~"  # later than any
    values = values | {"time": time, "due": min(time, f"{now}~")}  # later than now, and before the next second
    if before and not (status == "scheduled" and time <= now):
        yield from reader.rows(_latest_posts(status, by_tag, True), id=before.id, **values)
    yield from reader.rows(_latest_posts(status, by_tag, False), **values)


@cache
def _latest_posts(status: str | None, by_tag: bool, of_second: bool) -> Prepared:
    """Return the query of posts in the order of publication, with the parameters now, tag, time, due, id and limit.

    Where several lists are merged, memory holds a document of each.
    """
    lists = [_published(each, by_tag, of_second) for each in ([status] if status else STATUSES)]
    if status == "published":
        lists.append(_published("scheduled", by_tag, of_second, before="due"))
    elif status == "scheduled" and not of_second:
        lists = [each.where(each.selected_columns[-1] > Param("now")) for each in lists]
    return Prepared(reduce(union_all, lists).order_by(SQL("4").desc(), SQL("1").desc()).limit(Param("limit")))


def _published(status: str, by_tag: bool, of_second: bool, before: str = "time") -> Select:
    """Return the query for the posts with a status, and perhaps a tag, that have a published_at."""
    if by_tag:
        time, key = PostTag.published_at, PostTag.post_id
        query = PostTag.select(key, *_columns, time).join(Post, on=Post.id == key)
        query = query.where(PostTag.tag == Param("tag"), PostTag.status == status)
    else:
        time, key = Post.published_at, Post.id
        query = Post.select(key, *_columns, time).where(Post.status == status)
    if of_second:
        return query.where(time == Param(before), key < Param("id"))
    return query.where(time < Param(before))


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
