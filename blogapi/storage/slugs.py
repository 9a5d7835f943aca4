"""Slugs made from titles."""

from slugify import slugify

from blogapi.storage.engine import Reader
from blogapi.storage.models import Post
from blogapi.storage.query import Param, Prepared

# Titles are not HTML, and "it's" is one word.
OPTIONS = {
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


def slug_of(title: str) -> str:
    """Make a slug from a title."""
    return slugify(title, **OPTIONS) or "untitled"


def free_slug(reader: Reader, title: str) -> str:
    """Make a slug from a title that no post has, in O(log n) look-ups for n posts with the same.

    Doubling finds a number that is free, halving then one that is free while the one below is taken.
    """
    slug = slug_of(title)
    if not _is_taken(reader, slug):
        return slug
    taken, free = 1, 2
    while _is_taken(reader, f"{slug}-{free}"):
        taken, free = free, free * 2
    while free - taken > 1:
        middle = (taken + free) // 2
        if _is_taken(reader, f"{slug}-{middle}"):
            taken = middle
        else:
            free = middle
    return f"{slug}-{free}"


_post_with_slug = Prepared(Post.select(Post.id).where(Post.slug == Param("slug")))


def _is_taken(reader: Reader, slug: str) -> bool:
    return reader.row(_post_with_slug, slug=slug) is not None
