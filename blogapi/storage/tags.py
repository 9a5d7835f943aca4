"""The tags: which posts carry them, how many, and how they are spelt."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial, reduce
from operator import add as union_all
from typing import NamedTuple

from peewee import EXCLUDED, Case, Select, fn

from blogapi.storage import documents, search
from blogapi.storage.errors import NotFound, TagExists
from blogapi.storage.fold import fold
from blogapi.storage.models import STATUSES, Post, PostTag, Tag
from blogapi.storage.query import Param, Prepared
from blogapi.storage.transaction import Reader, Transaction


class CountedTag(NamedTuple):
    """A tag, and how many posts carry it."""

    name: str
    posts: int


class Page(NamedTuple):
    """Some tags of a list, and the folded name of the last one if more follow."""

    tags: list[CountedTag]
    last: str | None


def page(reader: Reader, limit: int, after: str = "") -> Page:
    """Return the tags whose folded names follow `after`, by these; at most `limit`. Costs O(limit)."""
    rows = list(reader.rows(_tags_after, after=after, limit=limit + 1))
    last = rows[limit - 1][0] if len(rows) > limit else None
    return Page([CountedTag(name, posts) for _, name, posts in rows[:limit]], last)


_tags_after = Prepared(
    Tag.select(Tag.tag, Tag.name, Tag.posts).where(Tag.tag > Param("after")).order_by(Tag.tag).limit(Param("limit"))
)


def find(reader: Reader, tag: str) -> CountedTag:
    """Return a tag by its folded name; raise NotFound if no post carries it."""
    found = reader.row(_tag, tag=tag)
    if found is None:
        raise NotFound("tag")
    return CountedTag(*found)


_tag = Prepared(Tag.select(Tag.name, Tag.posts).where(Tag.tag == Param("tag")))

# The tags of one post


def attach(tx: Transaction, post_id: int, status: str, names: Iterable[str]) -> None:
    """Give a post its tags."""
    rows = [{"tag": fold(name), "name": name, "status": status, "post_id": post_id} for name in names]
    tx.execute_many(_attach, rows)
    tx.execute_many(_count_up, rows)


_attach = Prepared(
    PostTag.insert({PostTag.tag: Param("tag"), PostTag.status: Param("status"), PostTag.post_id: Param("post_id")})
)
_count_up = Prepared(
    Tag.insert(
        {Tag.tag: Param("tag"), Tag.name: Param("name"), Tag.newest: Param("post_id"), Tag.posts: 1}
    ).on_conflict(
        conflict_target=[Tag.tag],
        update={
            Tag.name: Case(None, [(EXCLUDED.newest >= Tag.newest, EXCLUDED.name)], Tag.name),
            Tag.newest: Case(None, [(EXCLUDED.newest >= Tag.newest, EXCLUDED.newest)], Tag.newest),
            Tag.posts: Tag.posts + 1,
        },
    )
)


def detach(tx: Transaction, post_id: int, status: str, names: Iterable[str]) -> None:
    """Take its tags from a post, once it has its new document."""
    folded = [fold(name) for name in names]
    removed = [tag for tag in folded if tx.execute(_detach, tag=tag, status=status, post_id=post_id)]
    for tag in removed:
        _count_down(tx, tag, post_id)
    if len(removed) < len(folded):  # Python's older Unicode tables have folded a name in another way.
        detach_all(tx, post_id)


def detach_all(tx: Transaction, post_id: int) -> None:
    """Take from a post all tags that it has, whatever its document says. Goes through the tags of all posts."""
    rows = list(tx.rows(PostTag.select(PostTag.tag, PostTag.status).where(PostTag.post_id == post_id)))
    for tag, status in rows:
        tx.execute(_detach, tag=tag, status=status, post_id=post_id)
        _count_down(tx, tag, post_id)


_this_tag = (PostTag.tag == Param("tag")) & (PostTag.status == Param("status")) & (PostTag.post_id == Param("post_id"))
_detach = Prepared(PostTag.delete().where(_this_tag))


def publish(tx: Transaction, post_id: int, names: Iterable[str]) -> None:
    """Let the tags of a scheduled post be those of a published one."""
    tx.execute_many(_publish, [{"tag": fold(name), "status": "scheduled", "post_id": post_id} for name in names])


_publish = Prepared(PostTag.update({PostTag.status: "published"}).where(_this_tag))


def _count_down(tx: Transaction, tag: str, post_id: int) -> None:
    if tx.row(_one_less, tag=tag) == (post_id,):
        _refresh(tx, tag)


_one_less = Prepared(Tag.update({Tag.posts: Tag.posts - 1}).where(Tag.tag == Param("tag")).returning(Tag.newest))


def _refresh(tx: Transaction, tag: str) -> None:
    """Take the spelling of a tag from the newest post that carries it; forget the tag where none does."""
    found = tx.row(_newest_post, tag=tag)
    if found is None:
        tx.execute(Tag.delete().where(Tag.tag == tag))
        return
    newest, document = found
    try:
        name = next((name for name in documents.tags(document) if fold(name) == tag), tag)
    except ValueError:  # The post is damaged.
        name = tag
    tx.execute(Tag.update(name=name, newest=newest).where(Tag.tag == tag))


def _newest_in(status: str) -> Select:
    newest = fn.MAX(PostTag.post_id).alias("post_id")
    return PostTag.select(newest).where(PostTag.tag == Param("tag"), PostTag.status == status)


_newest_by_status = reduce(union_all, map(_newest_in, STATUSES))  # each is the end of a part of the key
_newest_post = Prepared(
    Post.select(Post.id, Post.document).where(
        Post.id == Select([_newest_by_status], [fn.MAX(_newest_by_status.c.post_id)])
    )
)

# A tag of all its posts: takes long where these are many, so Database.write_aside is for these


def rename(tx: Transaction, old: str, name: str, merge: bool) -> CountedTag:
    """Rename a tag, folded, in every post that carries it; return the tag.

    Raises NotFound if no post carries it, TagExists if another tag has the name and `merge` is false.
    """
    find(tx, old)
    new = fold(name)
    if new != old and not merge and tx.row(_tag, tag=new):
        raise TagExists
    _rewrite(tx, old, partial(_renamed, old, name))
    if new != old:
        both = PostTag.select(PostTag.post_id).where(PostTag.tag == new)
        tx.execute(PostTag.delete().where(PostTag.tag == old, PostTag.post_id.in_(both)))
        tx.execute(PostTag.update(tag=new).where(PostTag.tag == old))
        tx.execute(Tag.delete().where(Tag.tag.in_([old, new])))
        posts = tx.row(PostTag.select(fn.COUNT(PostTag.post_id)).where(PostTag.tag == new))[0]
        tx.execute(Tag.insert(tag=new, name=name, newest=0, posts=posts))
    _refresh(tx, new)
    return find(tx, new)


def remove(tx: Transaction, tag: str) -> None:
    """Remove a tag, folded, from every post; raise NotFound if none carries it."""
    find(tx, tag)
    _rewrite(tx, tag, partial(_without, tag))
    tx.execute(PostTag.delete().where(PostTag.tag == tag))
    tx.execute(Tag.delete().where(Tag.tag == tag))


def _rewrite(tx: Transaction, tag: str, change: Callable[[list[str]], list[str]]) -> None:
    """Change the tags in the documents of all posts with a tag, one after another: memory holds one document."""
    for (post_id,) in tx.rows(PostTag.select(PostTag.post_id).where(PostTag.tag == tag)):
        document, status = tx.row(_document, id=post_id)
        with suppress(ValueError):  # A damaged post is passed over.
            changed = documents.with_tags(document, change, tx.now)
            tx.execute(_set_document, id=post_id, document=changed)
            old, new = ({"status": status, "tags": documents.tags(each)} for each in (document, changed))
            search.reindex(tx, post_id, old, new, at_once=True)


_document = Prepared(Post.select(Post.document, Post.status).where(Post.id == Param("id")))
_set_document = Prepared(Post.update({Post.document: Param("document")}).where(Post.id == Param("id")))


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
