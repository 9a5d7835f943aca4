"""Slugs: from the title, and free ones."""

import re
from typing import Any

from slugify import slugify

from blogapi.documents import MAX_TITLE
from blogapi.storage.engine import Param, Prepared, Reader, Transaction
from blogapi.storage.errors import SlugTaken
from blogapi.storage.models import Post

NUMBERED_SLUG = 90  # characters of a slug that gets a number, at most
# Titles are not HTML, and "it's" is one word.
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

DIGITS_AND_COMMA = re.compile("[0-9],[0-9]")  # slugify takes 1,000 for one number.
ASCII_SLUG = {code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)} | {ord("'"): None}


def new(tx: Transaction, fields: dict[str, str]) -> tuple[int, str]:
    """Return the id and the slug of a new post. Raises SlugTaken."""
    slug = fields.get("slug") or slug_of(fields["title"])
    post_id, is_taken = tx.one(NEXT_ID_AND_IS_TAKEN, slug=slug, is_given=bool(fields.get("slug")))
    if is_taken and fields.get("slug"):
        raise SlugTaken
    return post_id, find_free(tx, slug) if is_taken else slug


# The id after the greatest one ever used, and whether a slug is taken
_slug_is_taken = "EXISTS (SELECT 1 FROM post WHERE slug = :slug)"
_last_id = "max(ifnull((SELECT max(id) FROM post), 0), (SELECT greatest_id FROM deleted_post))"
NEXT_ID_AND_IS_TAKEN = Prepared(
    sqlite=f"SELECT {_last_id} + 1, {_slug_is_taken}",
    postgresql=f"SELECT CASE WHEN {_slug_is_taken} AND :is_given THEN 0 ELSE next_id('post') END, {_slug_is_taken}",
)


def slug_of(title: str) -> str:
    """Return a slug for a title, or for any other text: what is longer than a title is cut before it is read."""
    title = title[:MAX_TITLE]
    if title.isascii() and len(title) <= SLUG_OPTIONS["max_length"] and not DIGITS_AND_COMMA.search(title):
        slug = "-".join(title.translate(ASCII_SLUG).split())  # as slugify, in a twentieth of the time
    else:
        slug = slugify(title, **SLUG_OPTIONS)
    return slug or "untitled"


def find_free(reader: Reader, slug: str) -> str:
    """Return a slug, with a number if it is taken, in O(log n) look-ups for n posts with the same.

    Doubling finds a free number; bisection then finds a free one whose predecessor is taken.
    """
    if not is_taken(reader, slug):
        return slug
    if len(slug) > NUMBERED_SLUG:
        return find_free(reader, slug[:NUMBERED_SLUG].rstrip("-"))
    taken, free = 1, 2
    while is_taken(reader, f"{slug}-{free}"):
        taken, free = free, free * 2
    while free - taken > 1:
        middle = (taken + free) // 2
        if is_taken(reader, f"{slug}-{middle}"):
            taken = middle
        else:
            free = middle
    return f"{slug}-{free}"


def is_taken(reader: Reader, slug: str) -> bool:
    """Return whether a post has this slug."""
    return reader.row(WITH_SLUG, slug=slug) is not None


WITH_SLUG = Prepared(Post.select(Post.id).where(Post.slug == Param("slug")))
