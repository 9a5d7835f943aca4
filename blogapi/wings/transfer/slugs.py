"""Make the slugs of imported posts unique."""

from collections import Counter
from typing import NamedTuple

from blogapi.documents import is_slug
from blogapi.posts.slugs import slug_of

LAST = "~"  # after every time


class SpoolEntry(NamedTuple):
    """The place of an item in the spool, what it is sorted by, and its slug."""

    offset: int
    when: str = LAST
    number: int = 0
    slug: str = ""  # empty for a Failure
    parents: tuple[str, ...] = ()
    front: str = ""


def distinct(found: list[SpoolEntry]) -> list[SpoolEntry]:
    """Put the language, then more and more folders of the path in front of each slug that several posts have.

    If that is not enough, put the day in front, or the day and the folders. Slugs that are still the same stay as they
    were.
    """
    counts = Counter(each.slug for each in found)
    slugs = [valid_slug(f"{each.front} {each.slug}") if counts[each.slug] > 1 else each.slug for each in found]
    longest = max((len(each.parents) for each in found), default=0)
    for depth in range(1, 2 * longest + 2):
        counts = Counter(slugs)
        for index, each in enumerate(found):
            if each.slug and counts[slugs[index]] > 1:
                front = each.parents[-depth:]
                if depth > len(each.parents):
                    front = (each.when[:10], *(each.parents[longest + 1 - depth :] if depth > longest + 1 else ()))
                slugs[index] = valid_slug(" ".join((*front, each.slug)))
    counts = Counter(slugs)
    return [each if counts[slug] > 1 else each._replace(slug=slug) for each, slug in zip(found, slugs, strict=True)]


def valid_slug(text: str) -> str:
    """Return a slug as it is, or one made from a text."""
    return text if is_slug(text) else slug_of(text)
