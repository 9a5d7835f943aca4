"""The search: posts are found by the words that they have, and by no others."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from peewee import JOIN, SQL

from blogapi.storage import orders, patterns
from blogapi.storage.engine import Reader, Transaction
from blogapi.storage.errors import NeedsThread
from blogapi.storage.index import OF_TAG, START, STATUS, TAG, changed_parts, is_large, joined
from blogapi.storage.models import MAX_ID, Post, Schedule, Search, match
from blogapi.storage.orders import COLUMNS, Place, due_ids, ids_to_come
from blogapi.storage.query import Each, Param, Prepared, Statement
from blogapi.storage.words import sequences

QUICK_WORDS = 3  # A long sequence can take half a second, in a single post as well.
QUICK_POSTS = 20_000  # in which a search for so few words takes a few milliseconds
SORTED_POSTS = 20_000  # of so many that are found the latest are soon met: each is looked at in some 20 µs


def reindex(tx: Transaction, post_id: int, old: dict[str, Any], new: dict[str, Any], at_once: bool = False) -> None:
    """Let a post be found as it is, and no longer as it was; {} for no post. Fields that are the same can be left out.

    The index is written at the end of the transaction, unless `at_once`, which keeps nothing in memory until then.
    Raises NeedsThread for a large text in a transaction that others wait for.
    """
    if not tx.in_thread and is_large(old, new):
        raise NeedsThread
    run = tx.execute if at_once else tx.execute_at_end
    parts = changed_parts(old, new)
    removed, added = joined(parts)
    if removed:
        run(_remove, id=post_id, words=removed, is_gone=not new)
    if added:
        changes = {name: parts[name][1] if name in parts else None for name in ("text", "labels")}
        run(_add, id=post_id, words=added, **changes)


# PostgreSQL has the parts in columns, a space before and after each word.
_add = Each(
    sqlite=Statement("INSERT INTO search (rowid, words) VALUES (?, ?)", [Param("id"), Param("words")]),
    postgresql=Statement(
        """
        INSERT INTO search AS old VALUES (%s, ' ' || %s::text || ' ', ' ' || %s::text || ' ')
        ON CONFLICT (post_id) DO UPDATE
        SET text = coalesce(excluded.text, old.text), labels = coalesce(excluded.labels, old.labels)
        """,
        [Param("id"), Param("text"), Param("labels")],
    ),
)
_remove = Each(
    sqlite=Statement(
        "INSERT INTO search (search, rowid, words) VALUES ('delete', ?, ?)", [Param("id"), Param("words")]
    ),
    postgresql=Statement("DELETE FROM search WHERE post_id = %s AND %s::boolean", [Param("id"), Param("is_gone")]),
)


def newest(reader: Reader, *arguments: Any) -> Iterator[tuple]:
    """Give the rows of the newest posts that are found; with q and otherwise as orders.newest."""
    return reader.of_engine(Each(_newest_rows, patterns.newest))(reader, *arguments)


def latest(reader: Reader, *arguments: Any) -> Iterator[tuple]:
    """Give the rows of the latest published posts that are found; with q and otherwise as orders.latest."""
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
        ids = ids_to_come(ids)
    elif status == "published":
        due = due_ids(by_tag=False).join(Search, JOIN.CROSS)  # from the few that are due to the index
        ids += due.where(Search.c.rowid == Schedule.post_id, match("due"))
    found = ids.order_by(SQL("1").desc()).limit(Param("limit"))
    return Prepared(Post.select(Post.id, *COLUMNS).where(Post.id.in_(found)).order_by(Post.id.desc()))


def _latest_rows(
    reader: Reader, q: str, status: str | None, before: Place | None, values: dict[str, Any]
) -> Iterator[tuple]:
    """Give the rows of the latest published posts that SQLite finds.

    The index does not have this order: what is found is sorted, or, where that is much, met on the way through all.
    """
    statuses = ("published", "scheduled") if status == "published" else (status,)
    words = " OR ".join(f"({expression(q, each, values['tag'])})" for each in statuses)
    if len(list(reader.rows(_some, words=words, limit=SORTED_POSTS))) == SORTED_POSTS:
        return orders.latest(reader, status, before, values | {"words": expression(q)}, found=True)
    time, post_id = before or ("~", MAX_ID)  # later than any
    return reader.rows(_latest(status), words=words, time=time, id=post_id, **values)


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
