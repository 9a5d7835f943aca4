"""List posts: pages sorted by id (newest first) or by a time, and all posts one by one.

Queries sorted by id return the id and the document. Queries sorted by a time also return the time.
"""

from collections.abc import Hashable, Iterator, Mapping
from functools import cache, reduce
from operator import add as union_all
from typing import Any

from peewee import SQL, Field, Ordering, Select

from blogapi import documents
from blogapi.paging import Cursor, ListQuery, Page, bounded, cursor_of, id_of, page_of
from blogapi.search import storage as search
from blogapi.storage.database import Database
from blogapi.storage.engine import Compiled, Placeholder, Reader
from blogapi.storage.errors import Damaged, Unavailable
from blogapi.storage.models import DOCUMENT, MAX_ID, Post, PostTag


def list_page(database: Database, query: Mapping[str, Any], client: Hashable) -> Page[Any, int | Cursor[int]]:
    """Return a page of the posts that the loaded parameters select. `client` takes turns with others if it searches."""
    listed = ListQuery(**query)
    return search.page(database, listed, client) if listed.q else page(database, listed)


def page(reader: Reader, query: ListQuery) -> Page[Any, int | Cursor[int]]:
    """Return a page of posts in O(limit), because an index provides the order for each combination of filters."""
    values = {"tag": query.tag, "limit": query.limit + 1}
    if query.sort != "created_at":
        return page_of(_latest(reader, query, **values), query.limit, cursor_of, query.fields)
    created = created_query(query.status, query.tag is not None)
    return page_of(reader.rows(created, before=query.before_id, **values), query.limit, id_of, query.fields)


DOCUMENTS = {"sqlite": DOCUMENT, "postgresql": Post.document}  # on PostgreSQL, `bounded` casts the column


def _listed(status: str, by_tag: bool) -> tuple[Select, Field]:
    """Return the query for the posts with a status and an optional tag, and the column with their ids."""
    if by_tag:
        return PostTag.select().where(PostTag.tag == Placeholder("tag"), PostTag.status == status), PostTag.post_id
    return Post.select().where(Post.status == status), Post.id


def _union(dialect: str, lists: list[Select], *order: Ordering) -> Select:
    """Return a query that merges several lists."""
    if dialect == "postgresql" and len(lists) > 1:  # It would read and sort whole lists. SQLite merges row by row.
        lists = [query.order_by(*order).limit(Placeholder("limit")) for query in lists]
    return reduce(union_all, lists).order_by(*order).limit(Placeholder("limit"))


# By id


@cache
def created_query(status: str | None, by_tag: bool) -> Compiled:
    """Return the query for a page, with the parameters tag, before and limit."""

    def query_in(dialect: str) -> Select:
        newest_first = Post.id.desc()
        query = Post.select(Post.id, DOCUMENTS[dialect])
        if status is None and not by_tag:
            return query.where(Post.id < Placeholder("before")).order_by(newest_first).limit(Placeholder("limit"))
        listed = [_listed(listed_status, by_tag) for listed_status in ([status] if status else documents.STATUSES)]
        # Find the ids of several lists first, because a document can be 4 MB long.
        lists = [rows.select(key).where(key < Placeholder("before")) for rows, key in listed]
        return query.where(Post.id.in_(_union(dialect, lists, SQL("1").desc()))).order_by(newest_first)

    return Compiled(sqlite=query_in("sqlite"), postgresql=bounded(query_in("postgresql")))


# By a time


def _latest(reader: Reader, query: ListQuery, **values: Any) -> Iterator[tuple]:
    """Yield the rows of a page sorted by a time, latest first.

    The first query reads the remaining posts with the cursor's time, and the second query reads posts with earlier
    times. A single query would read all posts with the cursor's time again for every page.
    """
    sort, status, by_tag, (time, post_id) = query.sort, query.status, query.tag is not None, query.start
    after = query.published_after or query.updated_after
    values |= {"time": time, "after": after}
    if after <= time and post_id:
        yield from reader.rows(time_query(sort, status, by_tag, True), id=post_id, **values)
    yield from reader.rows(time_query(sort, status, by_tag, False), **values)


@cache
def time_query(sort: str, status: str | None, by_tag: bool, of_second: bool) -> Compiled:
    """Return the query for a page, with the parameters tag, time, after, id and limit."""

    def query_in(dialect: str) -> Select:
        def timed(listed: str) -> Select:
            query, key = _listed(listed, by_tag)
            time = getattr(key.model, sort)
            query = query.select(key.alias("id"), DOCUMENTS[dialect], time)
            if by_tag:
                query = query.join(Post, on=Post.id == key)
            if of_second:
                return query.where(time == Placeholder("time"), key < Placeholder("id"))
            return query.where(time < Placeholder("time"), time >= Placeholder("after"))

        # Merging these lists holds only one document of each in memory.
        lists = [timed(listed) for listed in ([status] if status else documents.STATUSES)]
        return _union(dialect, lists, SQL("3").desc(), SQL("1").desc())  # the time and the id

    return Compiled(sqlite=query_in("sqlite"), postgresql=bounded(query_in("postgresql"), sort))


# All posts


def every(reader: Reader) -> Iterator[dict[str, Any]]:
    """Yield every post, newest first, reading one at a time. If posts are damaged, raise Unavailable at the end."""
    damaged, before = [], MAX_ID
    while row := reader.row(created_query(None, False), before=before, limit=1):
        before, document = row
        try:
            yield documents.load(document)
        except Damaged:
            damaged.append(before)
    if damaged:
        raise Unavailable(f"these posts are damaged: {', '.join(map(str, damaged))}; all others were read")
