"""List, rename and delete tags. A tag exists as long as a post has it, and is spelled as in the newest such post."""

from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from typing import NamedTuple

from peewee import SQL, Select, fn

from blogapi import documents
from blogapi.paging import Page
from blogapi.posts import effects
from blogapi.posts.tag_rows import IS_TAG_OF_POST
from blogapi.storage.engine import Compiled, Placeholder, Reader, Transaction, placeholders
from blogapi.storage.errors import Damaged, Rejected
from blogapi.storage.models import DOCUMENT, Author, Post, PostTag
from blogapi.text import fold

BEFORE_ALL, AFTER_ALL = "\x01", "\U0010ffff" * (documents.MAX_TAG + 1)  # these sort before and after all tags


class CountedTag(NamedTuple):
    """A tag and the number of posts that have it."""

    name: str
    posts: int


def page(reader: Reader, limit: int, after: str = "", status: str | None = None) -> Page[CountedTag, str]:
    """Return at most `limit` tags in order of their folded names, starting after `after`.

    Call this in a thread: it reads one index entry for each tag of each post, which takes 100 ms for 100,000 entries.
    With `status`, only posts with that status are counted, and the newest of them decides the spelling.
    """
    rows = [*reader.rows(tags_query(status), limit=limit + 1, first=after + BEFORE_ALL, last=AFTER_ALL)]
    counted = [CountedTag(name, posts) for _, name, posts in rows[:limit]]
    return Page(counted, rows[limit - 1][0] if len(rows) > limit else None)


def get(reader: Reader, tag: str, status: str | None = None) -> CountedTag:
    """Return a tag by its folded name. Read one index entry for each of the tag's posts. Raises DoesNotExist."""
    return CountedTag(*reader.get("tag", tags_query(status), limit=1, first=tag, last=tag)[1:])


@cache
def tags_query(status: str | None) -> Compiled:
    """Return the query for a page of tags, with their folded names, spellings in the newest post, and post counts."""
    carried = PostTag.select().where(PostTag.status == status) if status else PostTag.select()
    if status == "published":  # The index post_tag_by_time has only dated posts.
        carried = carried.where(PostTag.published_at > "")
    newest, count = fn.MAX(PostTag.post_id).alias("newest"), fn.COUNT(PostTag.post_id).alias("posts")
    asked = PostTag.tag.between(Placeholder("first"), Placeholder("last"))
    groups = carried.select(PostTag.tag, newest, count).where(asked).group_by(PostTag.tag)
    counted = groups.order_by(PostTag.tag).limit(Placeholder("limit")).alias("counted")
    spelling = (PostTag.tag == counted.c.tag) & (PostTag.post_id == counted.c.newest)
    spelling &= PostTag.status.in_([status] if status else documents.STATUSES)
    name = PostTag.select(PostTag.name).where(spelling)  # looked up only for the tags on the page
    return Compiled(Select([counted], [counted.c.tag, name, counted.c.posts]).order_by(SQL("1")))


# Changes to a tag in all its posts. They can be slow, so run them with Database.write_in_thread.


def rename(tx: Transaction, old: str, name: str, merge: bool, author: Author) -> CountedTag:
    """Rename the tag with the folded name `old` in every post, and return the renamed tag.

    Raises DoesNotExist if no post has the tag, or Rejected if another tag has the new name and `merge` is false.
    """
    before = get(tx, old)
    new = fold(name)
    if new != old and not merge and tx.row(PostTag.select(PostTag.tag).where(PostTag.tag == new).limit(1)):
        raise Rejected("name", 'another tag has this name; "merge": true merges the two')
    change = partial(_replaced, old, [name])
    statuses = _rewrite(tx, old, change, author)
    if new != old:
        both = PostTag.select(PostTag.post_id).where(PostTag.tag == new)
        tx.execute(PostTag.delete().where(PostTag.tag == old, PostTag.post_id.in_(both)))
        tx.execute(PostTag.update(tag=new, name=name).where(PostTag.tag == old))
    tag = get(tx, new)
    if statuses or tag.name != before.name:
        data = {"tag": tag._asdict(), "previous_name": before.name}
        effects.run_for_tag(tx, "tag.updated", data, change, on_site="published" in statuses)
    return tag


def delete(tx: Transaction, tag: str, author: Author) -> None:
    """Remove the tag with this folded name from every post. Raises DoesNotExist if no post has the tag."""
    name = get(tx, tag).name
    change = partial(_replaced, tag, [])
    statuses = _rewrite(tx, tag, change, author)
    tx.execute(PostTag.delete().where(PostTag.tag == tag))
    effects.run_for_tag(tx, "tag.deleted", {"tag": {"name": name}}, change, on_site="published" in statuses)


def _rewrite(tx: Transaction, tag: str, change: Callable[[list[str]], list[str]], author: Author) -> set[str]:
    """Change the tags in the documents of all posts with a tag, and return the statuses of the changed posts."""
    statuses = set()
    for (post_id,) in tx.rows(PostTag.select(PostTag.post_id).where(PostTag.tag == tag)):
        with suppress(Damaged):
            stored = tx.row(SELECT_DOCUMENT, id=post_id)  # one document at a time, to save memory
            old = documents.load(stored[0] if stored else None)
            new = old | {"tags": change(old["tags"]), "updated_at": tx.now}
            if new["tags"] != old["tags"]:
                effects.run_for_retagging(tx, post_id, old, new, author)
                tx.defer(UPDATE_DOCUMENT, id=post_id, document=documents.dump(new), updated_at=tx.now)
                copies = {"status": old["status"], "post_id": post_id}
                tx.execute_many(UPDATE_NAME, [{"tag": fold(name), "name": name} | copies for name in new["tags"]])
                statuses.add(old["status"])
    return statuses


_has_id = Post.id == Placeholder("id")
_has_other_name = IS_TAG_OF_POST & (PostTag.name != Placeholder("name"))
SELECT_DOCUMENT = Compiled(Post.select(DOCUMENT).where(_has_id))
UPDATE_DOCUMENT = Compiled(Post.update(placeholders(Post, "document", "updated_at")).where(_has_id))
UPDATE_NAME = Compiled(PostTag.update(placeholders(PostTag, "name")).where(_has_other_name))


def _replaced(old: str, new: list[str], names: list[str]) -> list[str]:
    """Return `names` with `new` in place of the tag with the folded name `old`, without repeated tags."""
    tags: dict[str, str] = {}
    for tag in names:
        for name in new if fold(tag) == old else [tag]:
            tags.setdefault(fold(name), name)
    return list(tags.values())
