"""The search: posts are found by the words that they have, and by no others."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from peewee import JOIN, SQL

from blogapi.storage import pages
from blogapi.storage.engine import Reader
from blogapi.storage.models import MAX_ID, Post, Schedule, Search, match
from blogapi.storage.pages import COLUMNS, LATEST, Cursor, PostPage, due_ids, future_ids, page_of
from blogapi.storage.query import Each, Param, Prepared, Statement
from blogapi.storage.search import patterns
from blogapi.storage.search.index import OF_TAG, START, STATUS, TAG
from blogapi.storage.search.words import sequences

QUICK_WORDS = 3  # A long sequence can take half a second, in a single post as well.
QUICK_POSTS = 20_000  # in which a search for so few words takes a few milliseconds
SORTED_POSTS = 20_000  # of so many that are found the latest are soon met: each is looked at in some 20 µs


def page(
    reader: Reader,
    q: str,
    limit: int,
    status: str | None = None,
    tag: str | None = None,
    before: int | Cursor | None = None,
    sort: str = "created_at",
    fields: str | None = None,
) -> PostPage:
    """Return a page as `pages.page` does, of the posts that have the words of `q`.

    Costs more than a list if posts have some of the words and not the rest.
    """
    values = {"now": reader.now, "tag": tag, "limit": limit + 1}
    rows = (newest if sort == "created_at" else latest)(reader, q, status, before, values)
    return page_of(rows, limit, fields, values["now"])


def newest(reader: Reader, *arguments: Any) -> Iterator[tuple]:
    """Give the rows of the newest posts that are found; with q and otherwise as pages.newest."""
    return reader.of_engine(Each(_newest_rows, patterns.newest))(reader, *arguments)


def latest(reader: Reader, *arguments: Any) -> Iterator[tuple]:
    """Give the rows of the latest published posts that are found; with q and otherwise as pages.latest."""
    return reader.of_engine(Each(_latest_rows, patterns.latest))(reader, *arguments)


def _newest_rows(
    reader: Reader, q: str, status: str | None, before: int | None, values: dict[str, Any]
) -> Iterator[tuple]:
    """Give the rows of the newest posts that SQLite finds.

    The index has the order. A search costs more where posts have some of its words and not the rest.
    """
    words = {"words": expression(q, status, values["tag"]), "due": expression(q, "scheduled", values["tag"])}
    return reader.rows(_newest(status), before=before or MAX_ID, **words, **values)


@cache
def _newest(status: str | None) -> Prepared:
    """Return the query of a page of a search, with the parameters now, words, due, before and limit.

    The index may still have words of posts that were damaged when they were deleted.
    """
    ids = Search.select(Search.c.rowid).where(match("words"), Search.c.rowid < Param("before"))
    ids = ids.join(Post, on=Post.id == Search.c.rowid)
    if status == "scheduled":
        ids = future_ids(ids)
    elif status == "published":
        due = due_ids(by_tag=False).join(Search, JOIN.CROSS)  # from the few that are due to the index
        ids += due.where(Search.c.rowid == Schedule.post_id, match("due"))
    found = ids.order_by(SQL("1").desc()).limit(Param("limit"))
    return Prepared(Post.select(Post.id, *COLUMNS).where(Post.id.in_(found)).order_by(Post.id.desc()))


def _latest_rows(
    reader: Reader, q: str, status: str | None, before: Cursor | None, values: dict[str, Any]
) -> Iterator[tuple]:
    """Give the rows of the latest published posts that SQLite finds.

    The index does not have this order: what is found is sorted, or, where that is much, met on the way through all.
    """
    statuses = ("published", "scheduled") if status == "published" else (status,)
    words = " OR ".join(f"({expression(q, each, values['tag'])})" for each in statuses)
    if len(list(reader.rows(_some, words=words, limit=SORTED_POSTS))) == SORTED_POSTS:
        return pages.latest(reader, status, before, values | {"words": expression(q)}, HAS_WORDS)
    time, post_id = before or (LATEST, MAX_ID)
    return reader.rows(_latest(status), words=words, time=time, id=post_id, **values)


HAS_WORDS = Search.select(Search.c.rowid).where(match("words"), Search.c.rowid == Post.id)
_some = Prepared(Search.select(Search.c.rowid).where(match("words")).limit(Param("limit")))


@cache
def _latest(status: str | None) -> Prepared:
    """Return the query of a page of a search by time, with the parameters now, words, time, id and limit."""
    time, key = Post.published_at, Post.id
    earlier = (time < Param("time")) | ((time == Param("time")) & (key < Param("id")))
    ids = Search.select(key).join(Post, on=key == Search.c.rowid).where(match("words"), earlier)
    if status == "published":
        ids = ids.where((Post.status == status) | (time <= Param("now")))
    elif status == "scheduled":
        ids = ids.where(time > Param("now"))
    order = time.desc(), key.desc()
    found = ids.order_by(*order).limit(Param("limit"))
    return Prepared(Post.select(key, *COLUMNS, time).where(key.in_(found)).order_by(*order))


def is_quick(reader: Reader, q: str, sort: str, filtered: bool) -> bool:
    """Return whether a search takes no longer than a list: one for one word, or for a few among not too many posts."""
    found = list(sequences(q))
    count = sum(len(sequence) for sequence, _ in found)
    if count == 1 and sort == "created_at" and not filtered and not (found[0][1] and len(found[0][0][0]) > 1):
        return True
    return count <= QUICK_WORDS and reader.row(_last_post)[0] <= QUICK_POSTS


_last_post = Statement("SELECT coalesce(max(id), 0) FROM post", [])


def expression(q: str, status: str | None = None, tag: str | None = None) -> str:
    """Return what SQLite is to look for: only words of ours, in quotes, so that nothing has a meaning of SQLite's."""
    terms = [f"({_term(sequence, by_start)})" for sequence, by_start in dict.fromkeys(sequences(q))]
    if status:
        terms.append(f'"{STATUS}{status}"')
    if tag:
        terms.append(f'"{TAG}{tag.encode().hex()}"')
    return " AND ".join(terms)


def _term(sequence: tuple[str, ...], by_start: bool) -> str:
    """Return what finds a sequence in a text or in a tag."""
    if by_start and len(sequence) == len(sequence[0]) == 1:
        sequence, by_start = (START + sequence[0],), False
    star = " *" if by_start else ""
    return " OR ".join(f'"{" ".join(mark + word for word in sequence)}"{star}' for mark in ("", OF_TAG))
