"""Tags: the posts that carry them, their number and their spelling.

A tag has a row for each status of the posts that carry it, with their number and the spelling in the newest of them: a
list by status must reveal nothing of other posts.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from itertools import groupby, islice
from operator import itemgetter
from typing import Any, NamedTuple

from peewee import EXCLUDED, SQL, Case, Field, Node, Select, fn

from blogapi.post import MAX_TAG, STATUSES
from blogapi.storage import documents, history, publication, search, webhooks
from blogapi.storage.engine import Param, Prepared, Reader, Transaction, params
from blogapi.storage.errors import NotFound, Rejected
from blogapi.storage.models import Post, PostTag, Schedule, Tag
from blogapi.text import fold

BEFORE_ALL, AFTER_ALL = "\x01", "\U0010ffff" * (MAX_TAG + 1)  # before all characters of tags, and after all tags


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
    rows = _rows(reader, limit + 1, after + BEFORE_ALL, AFTER_ALL, status)
    tags = [CountedTag(name, posts) for _, name, _, posts in rows[:limit]]
    return TagPage(tags, rows[limit - 1][0] if len(rows) > limit else None)


def find(reader: Reader, tag: str, status: str | None = None) -> CountedTag:
    """Return a tag by its folded name, as in a page. Raises NotFound."""
    for _, name, _, posts in _rows(reader, 1, tag, tag, status):
        return CountedTag(name, posts)
    raise NotFound("tag")


TagRow = tuple[str, str, int, int]  # a tag, its name, the newest post with it, and the number of posts


def _rows(reader: Reader, limit: int, first: str, last: str, status: str | None) -> list[TagRow]:
    """Return the tags between two, at most `limit`. A tag can have a row for each status: the newest post spells it."""
    values = {"now": reader.now, "limit": len(STATUSES) * limit, "first": first, "last": last}
    one_is_due = status == "scheduled" and publication.next_due(reader) is not None
    groups = groupby(reader.rows(tags_query(status, one_is_due), **values), itemgetter(0))
    return [_of_all_statuses(*group) for _, group in islice(groups, limit)]


def _of_all_statuses(*rows: TagRow) -> TagRow:
    tag, name, newest, _ = max(rows, key=itemgetter(2))
    return tag, name, newest, sum(posts for *_, posts in rows)


@cache
def tags_query(status: str | None, one_is_due: bool = False) -> Prepared:
    """Return the query of the tags from `first` to `last`, with the parameters now and limit.

    A tag can have several rows. While a post is due, the tags of the posts that are still scheduled are counted.
    """
    query = Tag.select(Tag.tag, Tag.name, Tag.newest, Tag.posts).where(_asked(Tag.tag))
    if status is not None:
        query = query.where(Tag.status == status)
    if status == "published":
        query += _of_schedule(publication.has_come)
    elif status == "scheduled" and one_is_due:
        query = _of_schedule(Schedule.published_at > Param("now"))
    return Prepared(query.order_by(SQL("1")).limit(Param("limit")))


def _asked(tag: Field) -> Node:
    return tag.between(Param("first"), Param("last"))


def _of_schedule(condition: Node) -> Select:
    """Return the query of the tags of scheduled posts, counted; only those on the page are spelled."""
    carried = (PostTag.post_id == Schedule.post_id + 0) & (PostTag.status == "scheduled")  # + 0: as in `lists`
    of_posts = Schedule.select(PostTag.tag, *_counted).join(PostTag, on=carried).where(_asked(PostTag.tag), condition)
    counted = of_posts.group_by(PostTag.tag).order_by(PostTag.tag).limit(Param("limit")).alias("counted")
    tag, newest, posts = counted.c.tag, counted.c.newest, counted.c.posts
    spelling = (PostTag.tag == tag) & (PostTag.status == "scheduled") & (PostTag.post_id == newest)
    return Select([counted], [tag, PostTag.select(PostTag.name).where(spelling), newest, posts])


_counted = fn.MAX(PostTag.post_id).alias("newest"), fn.COUNT(PostTag.post_id).alias("posts")


# The tags of one post


def attach(tx: Transaction, post: dict[str, Any]) -> None:
    """Give a post its tags."""
    own = {"status": post["status"], "post_id": int(post["id"]), "published_at": post.get("published_at")}
    rows = [{"tag": fold(name), "name": name} | own for name in post["tags"]]
    tx.execute_many(ATTACH, rows)
    tx.execute_many(COUNT_UP, rows)


ATTACH = Prepared(PostTag.insert(params(PostTag)))
_new = {Tag.tag: Param("tag"), Tag.status: Param("status"), Tag.name: Param("name"), Tag.newest: Param("post_id")}
_is_newer = EXCLUDED.newest >= Tag.newest
COUNT_UP = Prepared(
    Tag.insert(_new | {Tag.posts: 1}).on_conflict(
        conflict_target=[Tag.tag, Tag.status],
        update={
            Tag.name: Case(None, [(_is_newer, EXCLUDED.name)], Tag.name),
            Tag.newest: Case(None, [(_is_newer, EXCLUDED.newest)], Tag.newest),
            Tag.posts: Tag.posts + 1,
        },
    )
)


def detach(tx: Transaction, post: dict[str, Any]) -> None:
    """Remove the tags of a post. The newest of the other posts spells them now."""
    _detach_each(tx, int(post["id"]), [(fold(name), post["status"]) for name in post["tags"]])


def detach_all(tx: Transaction, post_id: int) -> None:
    """Remove all tags from a post, regardless of its document. Reads the tags of all posts."""
    of_post = PostTag.select(PostTag.tag, PostTag.status).where(PostTag.post_id == post_id)
    _detach_each(tx, post_id, list(tx.rows(of_post)))


def _detach_each(tx: Transaction, post_id: int, tags: list[tuple[str, str]]) -> None:
    rows = [{"tag": tag, "status": status, "post_id": post_id} for tag, status in tags]
    for statement in (COUNT_DOWN, DETACH, FORGET):
        tx.execute_many(statement, rows)


_in_status = (Tag.tag == Param("tag")) & (Tag.status == Param("status"))
_of_post = (PostTag.tag == Param("tag")) & (PostTag.status == Param("status")) & (PostTag.post_id == Param("post_id"))
_carries = fn.EXISTS(PostTag.select(PostTag.tag).where(_of_post))
_is_newest = Tag.newest == Param("post_id")
_with_tag = (PostTag.tag == Tag.tag) & (PostTag.status == Tag.status)  # A Param would be compared with an index.
_others = PostTag.select().where(_with_tag, PostTag.post_id < Param("post_id"))
_next = _others.order_by(PostTag.post_id.desc()).limit(1)
COUNT_DOWN = Prepared(
    Tag.update(
        {
            Tag.posts: Tag.posts - 1,
            Tag.newest: Case(None, [(_is_newest, fn.COALESCE(_next.select(PostTag.post_id), 0))], Tag.newest),
            Tag.name: Case(None, [(_is_newest, fn.COALESCE(_next.select(PostTag.name), ""))], Tag.name),
        }
    ).where(_in_status, _carries)
)
DETACH = Prepared(PostTag.delete().where(_of_post))
FORGET = Prepared(Tag.delete().where(_in_status, Tag.posts == 0))

# Changes of a tag in all of its posts: slow if there are many, so use Database.write_in_thread


def rename(tx: Transaction, old: str, name: str, merge: bool, author: str) -> CountedTag:
    """Rename a tag, folded, in every post that carries it; return the tag. With an author, undo can undo it.

    Raises NotFound if no post carries it, Rejected if another tag has the name and `merge` is false.
    """
    before = find(tx, old)
    new = fold(name)
    if new != old and not merge and tx.row(Tag.select(Tag.tag).where(Tag.tag == new)):
        raise Rejected("name", 'another tag has this name; "merge": true merges the two')
    changed = _rewrite(tx, old, partial(_renamed, old, name), author)
    if new != old:
        both = PostTag.select(PostTag.post_id).where(PostTag.tag == new)
        tx.execute(PostTag.delete().where(PostTag.tag == old, PostTag.post_id.in_(both)))
        tx.execute(PostTag.update(tag=new, name=name).where(PostTag.tag == old))
    tx.execute(Tag.delete().where(Tag.tag.in_([old, new])))
    counts = PostTag.select(PostTag.status, *_counted).where(PostTag.tag == new).group_by(PostTag.status)
    for status, newest, posts in list(tx.rows(counts)):
        spelling = (PostTag.tag == new) & (PostTag.status == status) & (PostTag.post_id == newest)
        (spelled,) = tx.row(PostTag.select(PostTag.name).where(spelling))
        tx.execute(Tag.insert(tag=new, status=status, name=spelled, newest=newest, posts=posts))
    tag = find(tx, new)
    if changed or tag.name != before.name:
        webhooks.record(tx, {"tag": tag._asdict(), "previous_name": before.name}, "tag.updated")
    return tag


def delete(tx: Transaction, tag: str, author: str) -> None:
    """Remove a tag, folded, from every post; raise NotFound if none carries it. With an author, undo can undo it."""
    name = find(tx, tag).name
    _rewrite(tx, tag, lambda names: [each for each in names if fold(each) != tag], author)
    tx.execute(PostTag.delete().where(PostTag.tag == tag))
    tx.execute(Tag.delete().where(Tag.tag == tag))
    webhooks.record(tx, {"tag": {"name": name}}, "tag.deleted")


def _rewrite(tx: Transaction, tag: str, change: Callable[[list[str]], list[str]], author: str) -> bool:
    """Change the tags in the documents of all posts with a tag; return whether any became another.

    One after another: memory holds one document.
    """
    any_changed = False
    for (post_id,) in tx.rows(PostTag.select(PostTag.post_id).where(PostTag.tag == tag)):
        document, status = tx.row(DOCUMENT_AND_STATUS, id=post_id) or (None, None)
        with suppress(AttributeError, ValueError):  # A damaged post is skipped.
            changed = documents.with_tags(document, change, tx.now)
            if changed is not document:
                history.keep_tags(tx, post_id, author, json.dumps(documents.tags(document)[0], ensure_ascii=False))
                tx.execute(SET_DOCUMENT, id=post_id, document=changed, updated_at=tx.now)
                old, new = ({"status": status, "tags": documents.tags(each)[0]} for each in (document, changed))
                search.reindex(tx, post_id, old, new)
                tags = [{"tag": fold(name), "name": name} for name in new["tags"]]
                tx.execute_many(RESPELL, [tag | {"status": status, "post_id": post_id} for tag in tags])
                any_changed = True
    return any_changed


DOCUMENT_AND_STATUS = Prepared(Post.select(Post.document, Post.status).where(Post.id == Param("id")))
RESPELL = Prepared(PostTag.update(params(PostTag, "name")).where(_of_post, PostTag.name != Param("name")))
SET_DOCUMENT = Prepared(Post.update(params(Post, "document", "updated_at")).where(Post.id == Param("id")))


def _renamed(old: str, name: str, names: list[str]) -> list[str]:
    """Return `names` with the tag `old` called `name`; a later repeat is dropped."""
    tags: dict[str, str] = {}
    for each in names:
        spelling = name if fold(each) == old else each
        tags.setdefault(fold(spelling), spelling)
    return list(tags.values())
