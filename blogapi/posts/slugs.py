"""Choose unique slugs for posts, by default from their titles, and keep the former slugs of published posts."""

import re
from typing import Any, NamedTuple

from peewee import Node, fn
from slugify import slugify

from blogapi.documents import MAX_FORMER_SLUGS, MAX_TITLE
from blogapi.storage.engine import Compiled, Placeholder, Reader, Transaction, placeholders
from blogapi.storage.errors import SlugTaken
from blogapi.storage.models import FormerSlug, Post

NUMBERED_SLUG = 90  # a slug has at most this many characters before its number
# Titles are text, not HTML. The replacement makes one word of "it's".
SLUG_OPTIONS: dict[str, Any] = {
    "algorithm": "modern",
    "backend": "text-unidecode",
    "max_length": 80,
    "word_boundary": True,
    "save_order": True,
    "entities": False,
    "decimal": False,
    "hexadecimal": False,
    "replacements": [("'", "")],
}

DIGITS_AND_COMMA = re.compile("[0-9],[0-9]")  # slugify treats 1,000 as one number
ASCII_SLUG = {code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)} | {ord("'"): None}


def new_id_and_slug(tx: Transaction, fields: dict[str, Any]) -> tuple[int, str]:
    """Return the id and the slug of a new post. Raises SlugTaken."""
    slug = fields.get("slug") or slug_of(fields["title"])
    post_id, taken = tx.one(SELECT_NEXT_ID_AND_IS_TAKEN, slug=slug, is_given=bool(fields.get("slug")))
    if taken and fields.get("slug"):
        check_free(tx, slug)
    return post_id, find_free(tx, slug) if taken else slug


# The id after the highest one ever used, and whether a slug is taken. On PostgreSQL, `next_id` uses up an id, so it is
# not called for a request that will be refused.
_slug_is_taken = (
    "(EXISTS (SELECT 1 FROM post WHERE slug = :slug) OR EXISTS (SELECT 1 FROM former_slug WHERE slug = :slug))"
)
_last_id = "max(ifnull((SELECT max(id) FROM post), 0), (SELECT greatest_id FROM deleted_post))"
SELECT_NEXT_ID_AND_IS_TAKEN = Compiled(
    sqlite=f"SELECT {_last_id} + 1, {_slug_is_taken}",
    postgresql=f"SELECT CASE WHEN {_slug_is_taken} AND :is_given THEN 0 ELSE next_id('post') END, {_slug_is_taken}",
)


def slug_of(title: str) -> str:
    """Return a slug for the first MAX_TITLE characters of a title."""
    title = title[:MAX_TITLE]
    if title.isascii() and len(title) <= SLUG_OPTIONS["max_length"] and not DIGITS_AND_COMMA.search(title):
        slug = "-".join(title.translate(ASCII_SLUG).split())  # the same as slugify, but faster
    else:
        slug = slugify(title, **SLUG_OPTIONS)
    return slug or "untitled"


def find_free(reader: Reader, slug: str, post_id: int = 0) -> str:
    """Return a slug that is free for this post, with a number at the end if needed.

    If n posts share the slug, this takes O(log n) look-ups: doubling finds a free number, and bisection then finds a
    free number right after a taken one.
    """
    if not find_holder(reader, slug, post_id):
        return slug
    if len(slug) > NUMBERED_SLUG:
        return find_free(reader, slug[:NUMBERED_SLUG].rstrip("-"), post_id)
    taken, free = 1, 2
    while find_holder(reader, f"{slug}-{free}", post_id):
        taken, free = free, free * 2
    while free - taken > 1:
        middle = (taken + free) // 2
        if find_holder(reader, f"{slug}-{middle}", post_id):
            taken = middle
        else:
            free = middle
    return f"{slug}-{free}"


def check_free(reader: Reader, slug: str, post_id: int = 0, field: str = "slug") -> None:
    """Raise SlugTaken if a post other than this one has or had this slug."""
    if post := find_holder(reader, slug, post_id):
        raise SlugTaken(slug, *post, field)


class SlugHolder(NamedTuple):
    """A post that has or had a slug."""

    id: int
    slug: str  # the current one


def find_holder(reader: Reader, slug: str, post_id: int = 0) -> SlugHolder | None:
    """Return the other post that has or had this slug, if any."""
    row = reader.row(SELECT_HOLDER, slug=slug)
    return SlugHolder._make(row) if row and row[0] != post_id else None


def has_slug(slug: Placeholder) -> Node:
    """Return the condition that a post has or had this slug. With an OR, PostgreSQL would scan all posts."""
    present = Post.alias()
    having, had = present.select(present.id), FormerSlug.select(FormerSlug.post_id)
    return Post.id == fn.COALESCE(having.where(present.slug == slug), had.where(FormerSlug.slug == slug))


SELECT_HOLDER = Compiled(Post.select(Post.id, Post.slug).where(has_slug(Placeholder("slug"))))


# Former slugs


def with_former(old: dict[str, Any], new: dict[str, Any], was_public: bool = False) -> dict[str, Any]:
    """Return a new version of a post with its former slugs, newest first, at most MAX_FORMER_SLUGS of them.

    If the slug changes, the old slug becomes a former slug, provided that the post is published or `was_public`. If the
    post takes a former slug back, that slug is removed from the list.
    """
    former = new.get("former_slugs") or []
    if new["slug"] != old.get("slug") and (was_public or old.get("status") == "published"):
        former = [old["slug"], *former]
    former = [slug for slug in dict.fromkeys(former) if slug != new["slug"]]
    return {**new, "former_slugs": former[:MAX_FORMER_SLUGS]}


def was_public(reader: Reader, old: dict[str, Any], changes: dict[str, Any]) -> bool:
    """Return whether changes replace the slug of an unpublished post that was once published under this slug."""
    if changes.get("slug", old["slug"]) == old["slug"] or old["status"] == "published":
        return False
    return reader.row(SELECT_FORMER, slug=old["slug"]) is not None


SELECT_FORMER = Compiled(FormerSlug.select(FormerSlug.post_id).where(FormerSlug.slug == Placeholder("slug")))


def still_free(reader: Reader, slugs: list[str], post_id: int) -> list[str]:
    """Return the slugs that no other post has or had."""
    return [slug for slug in slugs if not find_holder(reader, slug, post_id)]


def check_former(reader: Reader, post_id: int, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Raise SlugTaken if another post has or had a former slug that `new` adds. `old` is {} for a new post."""
    own = {old.get("slug"), *old.get("former_slugs", ())}
    for slug in new.get("former_slugs", ()):
        if slug not in own:
            check_free(reader, slug, post_id, "former_slugs")


def change_former(tx: Transaction, post_id: int, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Write the former slugs of a changed post. `old` is {} for a new post, and `new` is {} for a deleted one.

    When a post is unpublished, its own slug becomes a former slug, too, although `former_slugs` does not contain it.
    The row lasts as long as the post keeps the slug and is not published; `was_public` looks it up.
    """
    before, after = ({*post.get("former_slugs", ())} for post in (old, new))
    # A post's own slug while the post is not published. Only the table knows whether it ever was a public slug.
    hidden_before, hidden = ({post["slug"]} if post and post["status"] != "published" else set() for post in (old, new))
    if gone := ((before - after) | hidden_before) - hidden:
        tx.execute_many(DELETE_FORMER, [{"slug": slug} for slug in gone])
    if added := (after - before) | ((hidden & {old.get("slug")}) - hidden_before):
        tx.execute_many(INSERT_FORMER, [{"slug": slug, "post_id": post_id} for slug in added])


def delete_former(tx: Transaction, post_id: int) -> None:
    """Delete the former slugs of a post with an unreadable document. This scans the whole table."""
    tx.execute(FormerSlug.delete().where(FormerSlug.post_id == post_id))


INSERT_FORMER = Compiled(FormerSlug.insert(placeholders(FormerSlug)))
DELETE_FORMER = Compiled(FormerSlug.delete().where(FormerSlug.slug == Placeholder("slug")))
