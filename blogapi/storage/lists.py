"""The lists of posts: pages of the newest ones, and all of them."""

from collections.abc import Iterator
from functools import cache, reduce
from operator import add as union_all
from typing import Any, NamedTuple

from peewee import JOIN, SQL, Expression, Select, Table

from blogapi.storage import documents, search
from blogapi.storage.errors import Damaged, Unavailable
from blogapi.storage.models import DOCUMENT, MAX_ID, STATUSES, Post, PostTag, Schedule
from blogapi.storage.query import Param, Prepared
from blogapi.storage.transaction import Reader

PAGE_BYTES = 4 * 1024 * 1024
Search = Table("search")


class Page(NamedTuple):
    """Some posts of a list, and the id of the last one if more follow."""

    documents: list[bytes]
    last: int | None


def page(
    reader: Reader,
    limit: int,
    status: str | None = None,
    tag: str | None = None,
    before: int = MAX_ID,
    q: str | None = None,
) -> Page:
    """Return the newest posts made before the post `before`, newest first; `tag` is folded, `q` has words to look for.

    A page ends after `limit` posts, or after the post that brings it past PAGE_BYTES. Costs O(limit): an index gives
    the order for each combination of filters. A search costs more where posts have some of its words and not the rest.
    """
    now = reader.now
    found: list[bytes] = []
    size = last = 0
    if q is None:
        query, values = _newest_posts(status, tag is not None), {"tag": tag}
    else:
        query, values = _newest_found(status), {"words": search.expression(q, status, tag)}
        if status == "published":
            values["due"] = search.expression(q, "scheduled", tag)
    for post_id, document_status, document in reader.rows(query, now=now, before=before, limit=limit + 1, **values):
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


@cache
def _newest_found(status: str | None) -> Prepared:
    """Return the query of a page of a search, with the parameters now, words, due, before and limit.

    The index gives the ids in their order. It may still have some of posts that were damaged when they were deleted.
    """
    ids = Search.select(Search.c.rowid).where(_match("words"), Search.c.rowid < Param("before"))
    ids = ids.join(Post, on=Post.id == Search.c.rowid)
    if status == "scheduled":
        ids = _ids_to_come(ids)
    elif status == "published":
        due = _due_ids(by_tag=False).join(Search, JOIN.CROSS)  # from the few that are due to the index
        ids += due.where(Search.c.rowid == Schedule.post_id, _match("due"))
    newest = ids.order_by(SQL("1").desc()).limit(Param("limit"))
    columns = Post.select(Post.id, Post.status, DOCUMENT)
    return Prepared(columns.where(Post.id.in_(newest)).order_by(Post.id.desc()))


def _match(words: str) -> Expression:
    return Expression(Search.c.search, "MATCH", Param(words))


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
