"""The orders of posts: the queries of the newest, and of the latest published.

The rows of the newest have id, status and document, those of the latest published_at, too.
"""

from collections.abc import Callable, Iterator
from functools import cache, reduce
from operator import add as union_all
from typing import Any, NamedTuple

from peewee import SQL, Node, Ordering, Select, Window, fn

from blogapi.post import STATUSES
from blogapi.storage.models import DOCUMENT, MAX_ID, Post, PostTag, Schedule, Search, match
from blogapi.storage.query import AsBytes, Each, Param, Prepared
from blogapi.storage.transaction import Reader

READ_BYTES = 32 * 1024 * 1024  # of documents, for a page
Merge = Callable[..., Select]  # makes one list of several, in an order


class Place(NamedTuple):
    """The place of a post in the order of publication."""

    published_at: str
    id: int

    def __str__(self) -> str:
        return f"{self.published_at}_{self.id}"


COLUMNS = (Post.status, DOCUMENT)


def newest(reader: Reader, status: str | None, before: int | None, values: dict[str, Any]) -> Iterator[tuple]:
    """Give the rows of the newest posts made before the post `before`.

    `values` has now, tag (folded, or None), and limit.
    """
    return reader.rows(_newest(status, values["tag"] is not None), before=before or MAX_ID, **values)


@cache
def _newest(status: str | None, by_tag: bool) -> Each:
    """Return the query of a page in the order of creation, with the parameters now, tag, before and limit."""
    return Each(
        sqlite=Prepared(_newest_posts(status, by_tag, DOCUMENT, _merged)),
        postgresql=Prepared(bounded(_newest_posts(status, by_tag, Post.document, _first_merged))),
    )


def _newest_posts(status: str | None, by_tag: bool, document: Node, merged: Merge) -> Select:
    """Return the query of the newest posts.

    Where several lists are merged it finds the ids first: a document can have four megabytes.
    """
    newest_first = Post.id.desc()
    query = Post.select(Post.id, Post.status, document)
    if status is None and not by_tag:
        return query.where(Post.id < Param("before")).order_by(newest_first).limit(Param("limit"))
    lists = [_ids(each, by_tag) for each in ([status] if status else STATUSES)]
    if status == "published":
        lists.append(due_ids(by_tag))
    elif status == "scheduled":
        lists = [ids_to_come(*lists)]
    return query.where(Post.id.in_(merged(lists, SQL("1").desc()))).order_by(newest_first)


def _merged(lists: list[Select], *order: Ordering) -> Select:
    """Return the query of the first of all lists; SQLite takes the next one from that list that has it."""
    return reduce(union_all, lists).order_by(*order).limit(Param("limit"))


def _first_merged(lists: list[Select], *order: Ordering) -> Select:
    """Return the query of the first of all lists, for which PostgreSQL has to be told that each list has a limit.

    It would read all of each list, and sort them.
    """
    if len(lists) == 1:
        return _merged(lists, *order)
    return _merged([query.order_by(*order).limit(Param("limit")) for query in lists], *order)


def bounded(query: Select, *others: str) -> Select:
    """Return the query of those posts that a page can have, and one more: psycopg holds all rows in memory.

    The size of a text is known without reading it.
    """
    rows = query.alias("rows")
    size = fn.SUM(fn.OCTET_LENGTH(rows.c.document))
    before = size.over(start=Window.preceding(), end=Window.preceding(2), frame_type=Window.ROWS).alias("before")
    sized = Select([rows], [SQL("rows.*"), before]).alias("sized")
    columns = [sized.c.id, sized.c.status, AsBytes(sized.c.document), *(sized.c[name] for name in others)]
    return Select([sized], columns).where(fn.COALESCE(sized.c.before, 0) <= READ_BYTES)


def _ids(status: str, by_tag: bool) -> Select:
    """Return the query for the ids of the posts with a status, and perhaps a tag."""
    if by_tag:
        key = PostTag.post_id
        query = PostTag.select(key).where(PostTag.tag == Param("tag"), PostTag.status == status)
    else:
        key = Post.id
        query = Post.select(key).where(Post.status == status)
    return query.where(key < Param("before"))


def ids_to_come(ids: Select) -> Select:
    """Return the query for those of the ids of scheduled posts whose time has not come."""
    (key,) = ids.selected_columns
    return ids.join(Schedule, on=Schedule.post_id == key).where(Schedule.published_at > Param("now"))


def due_ids(by_tag: bool) -> Select:
    """Return the query for the ids of the posts, mostly none, that are to be published by now."""
    key = Schedule.post_id + 0  # not the primary key, for SQLite: it is the time that finds the few
    query = Schedule.select(key).where(Schedule.published_at <= Param("now"), key < Param("before"))
    if by_tag:
        carries = (PostTag.tag == Param("tag")) & (PostTag.status == "scheduled")
        query = query.join(PostTag, on=carries & (PostTag.post_id == Schedule.post_id))
    return query


def latest(
    reader: Reader, status: str | None, before: Place | None, values: dict[str, Any], found: bool = False
) -> Iterator[tuple]:
    """Give the rows of the latest published posts before a place; with `found`, those that have the `words`.

    First those of the same second, then earlier ones. One query for both could not seek: all posts of a second would be
    gone through for each page of them.
    """
    now, by_tag = values["now"], values["tag"] is not None
    time = before.published_at if before else "~"  # later than any
    values = values | {"time": time, "due": min(time, f"{now}~")}  # later than now, and before the next second
    if before and not (status == "scheduled" and time <= now):
        yield from reader.rows(_latest(status, by_tag, True, found), id=before.id, **values)
    yield from reader.rows(_latest(status, by_tag, False, found), **values)


@cache
def _latest(status: str | None, by_tag: bool, of_second: bool, found: bool) -> Each:
    """Return the query of posts in the order of publication, with the parameters now, tag, time, due, id, limit, words.

    Where several lists are merged, memory holds a document of each.
    """
    filters = status, by_tag, of_second
    return Each(
        sqlite=Prepared(_latest_posts(*filters, DOCUMENT, _merged, found)),
        postgresql=Prepared(bounded(_latest_posts(*filters, Post.document, _first_merged), "published_at")),
    )


def _latest_posts(
    status: str | None, by_tag: bool, of_second: bool, document: Node, merged: Merge, found: bool = False
) -> Select:
    """Return the query of the posts that were published latest."""
    lists = [_published(each, by_tag, of_second, document) for each in ([status] if status else STATUSES)]
    if status == "published":
        lists.append(_published("scheduled", by_tag, of_second, document, before="due"))
    elif status == "scheduled" and not of_second:
        lists = [each.where(each.selected_columns[-1] > Param("now")) for each in lists]
    if found:
        has_words = match("words") & (Search.c.rowid == Post.id)
        lists = [each.where(fn.EXISTS(Search.select(Search.c.rowid).where(has_words))) for each in lists]
    return merged(lists, SQL("4").desc(), SQL("1").desc())


def _published(status: str, by_tag: bool, of_second: bool, document: Node, before: str = "time") -> Select:
    """Return the query for the posts with a status, and perhaps a tag, that have a published_at."""
    if by_tag:
        time, key = PostTag.published_at, PostTag.post_id
        query = PostTag.select(key.alias("id"), Post.status, document, time).join(Post, on=Post.id == key)
        query = query.where(PostTag.tag == Param("tag"), PostTag.status == status)
    else:
        time, key = Post.published_at, Post.id
        query = Post.select(key, Post.status, document, time).where(Post.status == status)
    if of_second:
        return query.where(time == Param(before), key < Param("id"))
    return query.where(time < Param(before))
