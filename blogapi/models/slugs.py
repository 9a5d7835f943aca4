"""Slugs made from titles."""

from slugify import slugify

from blogapi.db import database

# Titles are not HTML, and "it's" is one word.
SLUG = {
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
FIND = "SELECT 1 FROM post WHERE slug = :slug"


def free_slug(title: str) -> str:
    """Make a slug from `title` that no post has, in O(log n) look-ups for n posts with the same.

    Doubling finds a number that is free, halving then one that is free while the one below is taken.
    """
    slug = slugify(title, **SLUG) or "untitled"
    if not slug_taken(slug):
        return slug
    taken, free = 1, 2
    while slug_taken(f"{slug}-{free}"):
        taken, free = free, free * 2
    while free - taken > 1:
        middle = (taken + free) // 2
        if slug_taken(f"{slug}-{middle}"):
            taken = middle
        else:
            free = middle
    return f"{slug}-{free}"


def slug_taken(slug: str) -> bool:
    return database.row(FIND, {"slug": slug}) is not None
