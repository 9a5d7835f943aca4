"""Tags: the posts that carry them, their number and their spelling."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache, partial
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple

from peewee import EXCLUDED, JOIN, SQL, Case, Field, Node, Select, Value, fn

from blogapi.post import STATUSES, fold
from blogapi.storage import documents, search, webhooks
from blogapi.storage.engine import Reader, Transaction
from blogapi.storage.errors import NotFound, TagExists
from blogapi.storage.models import Post, PostTag, Schedule, Tag
from blogapi.storage.query import Param, Prepared, params


class CountedTag(NamedTuple):
    """A tag, and how many posts carry it."""

    name: str
    posts: int


class TagPage(NamedTuple):
    """Some tags of a list, and the folded name of the last one if more follow."""

    tags: list[CountedTag]
    last: str | None


def page(reader: Reader, limit: int, after: str = "", status: str | None = None) -> TagPage:
    """Return at most `limit` tags by their folded names, those that follow `after`. Costs O(limit).

    With `status`, only posts that have it now count, and decide the spelling. The tags of due posts are read as well.
    """
    limits = {"limit": len(STATUSES) * (limit + 1), "after": after}
    rows = list(islice(_merged(reader.rows(_tags(status), now=reader.now, **limits)), limit + 1))
    return TagPage(_named(reader, rows[:limit]), rows[limit - 1][0] if len(rows) > limit else None)


def find(reader: Reader, tag: str, status: str | None = None) -> CountedTag:
    """Return a tag by its folded name, as in a page. Raises NotFound."""
    rows = reader.rows(_tags(status, one=True), now=reader.now, tag=tag, limit=len(STATUSES) + 1)
    found = _named(reader, list(_merged(rows)))
    if not found:
        raise NotFound("tag")
    return found[0]


Row = dict[str, Any]  # of a query
TagRow = tuple[str, str | None, int, int]  # a tag, its name, the newest post with it, and the number of posts


def _merged(rows: Iterable[TagRow]) -> Iterator[TagRow]:
    """Merge the rows of each tag, which are next to each other: the newest post spells it."""
    for tag, group in groupby(rows, itemgetter(0)):
        found = list(group)
        _, name, newest, _ = max(found, key=itemgetter(2))
        yield tag, name, newest, sum(posts for *_, posts in found)


def _named(reader: Reader, rows: list[TagRow]) -> list[CountedTag]:
    unread = {newest for _, name, newest, _ in rows if name is None}
    spellings = {post_id: documents.spellings(_read(reader, post_id)) for post_id in unread}
    return [
        CountedTag(spellings[newest].get(tag, tag) if name is None else name, posts)
        for tag, name, newest, posts in rows
    ]


def _read(reader: Reader, post_id: int) -> str | None:
    found = reader.row(_document, id=post_id)
    return found and found[0]


@cache
def _tags(status: str | None, one: bool = False) -> Prepared:
    """Return the query of a page, with the parameters now, after and limit; or, with tag in place of after, of one tag.

    A tag can have several rows. Its name is NULL if only the document of the newest post has it.
    """
    query = Tag.select(Tag.tag, Tag.name, Tag.newest, Tag.posts).where(_wanted(Tag.tag, one))
    if status is not None:
        query = query.where(Tag.status == status)
    if status == "scheduled":
        query = _future(query, one)
    elif status == "published":
        query += _due(one)
    return Prepared(query.order_by(SQL("1")).limit(Param("limit")))


def _wanted(tag: Field, one: bool) -> Node:
    return tag == Param("tag") if one else tag > Param("after")


def _due(one: bool) -> Select:
    """Return the query of the tags of due posts: usually no rows."""
    newest, posts = fn.MAX(PostTag.post_id).alias("newest"), fn.COUNT(PostTag.post_id).alias("posts")
    carries = (PostTag.post_id == Schedule.post_id + 0) & (PostTag.status == "scheduled")  # + 0: as in pages.py
    query = Schedule.select(PostTag.tag, Value(None), newest, posts).join(PostTag, on=carries)
    return query.where(Schedule.published_at <= Param("now"), _wanted(PostTag.tag, one)).group_by(PostTag.tag)


def _future(tags: Select, one: bool) -> Select:
    """Return the query of the tags of scheduled posts that are not due."""
    due = _due(one).alias("due")
    passed = (Schedule.post_id == PostTag.post_id) & (Schedule.published_at <= Param("now"))
    newest = (
        PostTag.select(PostTag.post_id)
        .where(PostTag.tag == Tag.tag, PostTag.status == "scheduled")
        .where(~fn.EXISTS(Schedule.select(Schedule.post_id).where(passed)))
        .order_by(PostTag.post_id.desc())
        .limit(1)
    )
    is_due = due.c.newest == Tag.newest
    posts = Tag.posts - fn.COALESCE(due.c.posts, 0)
    columns = Tag.tag, Case(None, [(is_due, None)], Tag.name), Case(None, [(is_due, newest)], Tag.newest), posts
    return tags.select(*columns).join(due, JOIN.LEFT_OUTER, on=due.c.tag == Tag.tag).where(posts > 0)


# The tags of one post


def attach(tx: Transaction, post_id: int, status: str, names: Iterable[str], published_at: str | None) -> None:
    """Give a post its tags."""
    post = {"status": status, "post_id": post_id, "published_at": published_at}
    rows = [{"tag": fold(name), "name": name} | post for name in names]
    tx.execute_many(_attach, rows)
    tx.execute_many(_count_up, rows)


_attach = Prepared(PostTag.insert(params(PostTag)))
_count_up = Prepared(
    Tag.insert(
        {
            Tag.tag: Param("tag"),
            Tag.status: Param("status"),
            Tag.name: Param("name"),
            Tag.newest: Param("post_id"),
            Tag.posts: 1,
        }
    ).on_conflict(
        conflict_target=[Tag.tag, Tag.status],
        update={
            Tag.name: Case(None, [(EXCLUDED.newest >= Tag.newest, EXCLUDED.name)], Tag.name),
            Tag.newest: Case(None, [(EXCLUDED.newest >= Tag.newest, EXCLUDED.newest)], Tag.newest),
            Tag.posts: Tag.posts + 1,
        },
    )
)


def detach(tx: Transaction, post_id: int, status: str, names: Iterable[str]) -> None:
    """Remove its tags from a post, after its new document is written."""
    if not _detach_rows(tx, post_id, [{"tag": fold(name), "status": status} for name in names]):
        detach_all(tx, post_id)  # Older Unicode tables of Python folded a name differently.


def detach_all(tx: Transaction, post_id: int) -> None:
    """Remove all tags from a post, regardless of its document. Reads the tags of all posts."""
    rows = tx.rows(PostTag.select(PostTag.tag, PostTag.status).where(PostTag.post_id == post_id))
    _detach_rows(tx, post_id, [{"tag": tag, "status": status} for tag, status in rows])


def _detach_rows(tx: Transaction, post_id: int, rows: list[Row]) -> bool:
    """Remove tags from a post; return whether it had all of them."""
    rows = [row | {"post_id": post_id} for row in rows]
    counted = tx.rows_of_each(_count_down, rows)
    tx.execute_many(_detach, rows)
    for row, found in zip(rows, counted, strict=True):
        for newest, earlier, document in found:
            if newest == post_id:
                _spell(tx, row, earlier, document)
    return all(counted)


_in_status = (Tag.tag == Param("tag")) & (Tag.status == Param("status"))
_this_tag = (PostTag.tag == Param("tag")) & (PostTag.status == Param("status")) & (PostTag.post_id == Param("post_id"))
_detach = Prepared(PostTag.delete().where(_this_tag))
_carries = fn.EXISTS(PostTag.select(PostTag.tag).where(_this_tag))
_with_tag = (PostTag.tag == Tag.tag) & (PostTag.status == Tag.status)  # A Param would be compared with partial indexes.
_earlier = PostTag.select(fn.MAX(PostTag.post_id)).where(_with_tag, PostTag.post_id < Tag.newest)
_if_newest = Tag.newest == Param("post_id")
_count_down = Prepared(
    Tag.update({Tag.posts: Tag.posts - 1})
    .where(_in_status, _carries)
    .returning(
        Tag.newest,
        Case(None, [(_if_newest, _earlier)]),
        Case(None, [(_if_newest, Post.select(Post.document).where(Post.id == _earlier))]),
    )
)


def _spell(tx: Transaction, row: Row, newest: int | None, document: str | None) -> None:
    """Update the spelling of a tag from the newest post with a status; forget it if no post carries it."""
    tag = {"tag": row["tag"], "status": row["status"]}
    if newest is None:
        tx.defer(_forget, **tag)
    else:
        tx.defer(_respell, **tag, newest=newest, name=documents.spelling(document, row["tag"]))


_newest = PostTag.select(fn.MAX(PostTag.post_id)).where(PostTag.tag == Param("tag"), PostTag.status == Param("status"))
_newest_post = Prepared(Post.select(Post.id, Post.document).where(Post.id == _newest))
_forget = Prepared(Tag.delete().where(_in_status))
_respell = Prepared(Tag.update({Tag.name: Param("name"), Tag.newest: Param("newest")}).where(_in_status))

# Changes of a tag in all of its posts: slow if there are many, so use Database.write_in_thread


def rename(tx: Transaction, old: str, name: str, merge: bool) -> CountedTag:
    """Rename a tag, folded, in every post that carries it; return the tag.

    Raises NotFound if no post carries it, TagExists if another tag has the name and `merge` is false.
    """
    before = find(tx, old)
    new = fold(name)
    if new != old and not merge and tx.row(Tag.select(Tag.tag).where(Tag.tag == new)):
        raise TagExists
    changed = _rewrite(tx, old, partial(_renamed, old, name))
    if new != old:
        both = PostTag.select(PostTag.post_id).where(PostTag.tag == new)
        tx.execute(PostTag.delete().where(PostTag.tag == old, PostTag.post_id.in_(both)))
        tx.execute(PostTag.update(tag=new).where(PostTag.tag == old))
        tx.execute(Tag.delete().where(Tag.tag.in_([old, new])))
        tx.execute(Tag.insert_from(_counts(new, name), Tag._meta.sorted_fields))
    for status in STATUSES:
        row = {"tag": new, "status": status}
        _spell(tx, row, *(tx.row(_newest_post, **row) or (None, None)))
    tag = find(tx, new)
    if changed or tag.name != before.name:
        webhooks.record(tx, {"tag": tag._asdict(), "previous_name": before.name}, "tag.updated")
    return tag


def _counts(tag: str, name: str) -> Select:
    columns = PostTag.tag, PostTag.status, Value(name), fn.MAX(PostTag.post_id), fn.COUNT(PostTag.post_id)
    return PostTag.select(*columns).where(PostTag.tag == tag).group_by(PostTag.tag, PostTag.status)


def delete(tx: Transaction, tag: str) -> None:
    """Remove a tag, folded, from every post; raise NotFound if none carries it."""
    name = find(tx, tag).name
    _rewrite(tx, tag, partial(_without, tag))
    tx.execute(PostTag.delete().where(PostTag.tag == tag))
    tx.execute(Tag.delete().where(Tag.tag == tag))
    webhooks.record(tx, {"tag": {"name": name}}, "tag.deleted")


def _rewrite(tx: Transaction, tag: str, change: Callable[[list[str]], list[str]]) -> bool:
    """Change the tags in the documents of all posts with a tag; return whether any became another.

    One after another: memory holds one document.
    """
    any_changed = False
    for (post_id,) in tx.rows(PostTag.select(PostTag.post_id).where(PostTag.tag == tag)):
        document, status = tx.row(_document, id=post_id) or (None, None)
        with suppress(AttributeError, ValueError):  # A damaged post is skipped.
            changed = documents.with_tags(document, change, tx.now)
            if changed is not document:
                tx.execute(_set_document, id=post_id, document=changed, now=tx.now)
                old, new = ({"status": status, "tags": documents.tags(each)} for each in (document, changed))
                search.reindex(tx, post_id, old, new)
                any_changed = True
    return any_changed


_document = Prepared(Post.select(Post.document, Post.status).where(Post.id == Param("id")))
_set_document = Prepared(
    Post.update({Post.document: Param("document"), Post.updated_at: Param("now")}).where(Post.id == Param("id"))
)


def _renamed(old: str, name: str, names: list[str]) -> list[str]:
    """Return `names` with the tag `old` called `name`; a later repeat is dropped."""
    tags: dict[str, str] = {}
    for each in names:
        spelling = name if fold(each) == old else each
        tags.setdefault(fold(spelling), spelling)
    return list(tags.values())


def _without(tag: str, names: list[str]) -> list[str]:
    """Return `names` without the tag."""
    return [name for name in names if fold(name) != tag]
