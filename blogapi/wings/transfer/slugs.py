"""Give each imported post its own slug and addresses."""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC
from typing import NamedTuple
from urllib.parse import unquote

from blogapi.documents import MAX_FORMER_SLUGS, is_slug
from blogapi.posts.slugs import slug_of
from blogapi.wings.markdown.dates import datetime_of
from blogapi.wings.transfer.items import Failure, Item, Note

NO_DATE = "~"  # sorts after every time


class SpoolEntry(NamedTuple):
    """The place of an item in the spool, what it is sorted by, and its slug."""

    offset: int
    when: str = NO_DATE
    number: int = 0
    slug: str = ""  # empty for a Failure
    parents: tuple[str, ...] = ()
    slug_prefix: str = ""
    day: str = ""  # the date in the site's time zone
    is_given: bool = False  # whether the slug is from front matter

    @classmethod
    def of(cls, item: Item, offset: int = 0) -> "SpoolEntry":
        """Return the entry for an item."""
        when = item.created_at or item.fields.get("published_at", NO_DATE)
        slug, is_given = valid_slug(item.fields["slug"]), "slug" in item.file.sources
        day = when if when == NO_DATE else datetime_of(when, UTC).astimezone(item.zone).date().isoformat()
        return cls(offset, when, item.file.number, slug, item.parents, item.slug_prefix, day, is_given)


def with_distinct_slugs(found: list[SpoolEntry]) -> list[SpoolEntry]:
    """Put the language, then more and more folders of the path in front of each slug that several posts have.

    If that is not enough, put the day in front, or the day and the folders. Slugs that are still the same stay as they
    were, and so does one that only one post has in its front matter.
    """
    counts = Counter(each.slug for each in found)
    given = Counter(each.slug for each in found if each.is_given)
    fixed = [each.is_given and not each.slug_prefix and given[each.slug] == 1 for each in found]
    slugs = [
        valid_slug(f"{each.slug_prefix} {each.slug}") if counts[each.slug] > 1 and not is_fixed else each.slug
        for each, is_fixed in zip(found, fixed, strict=True)
    ]
    longest = max((len(each.parents) for each in found), default=0)
    for depth in range(1, 2 * longest + 2):
        counts = Counter(slugs)
        for index, each in enumerate(found):
            if each.slug and counts[slugs[index]] > 1 and not fixed[index]:
                front = each.parents[-depth:]
                if depth > len(each.parents):
                    front = (each.day, *(each.parents[longest + 1 - depth :] if depth > longest + 1 else ()))
                slugs[index] = valid_slug(" ".join((*front, each.slug)))
    counts = Counter(slugs)
    return [each if counts[slug] > 1 else each._replace(slug=slug) for each, slug in zip(found, slugs, strict=True)]


def possible_slugs(entry: SpoolEntry) -> list[str]:
    """Return all slugs that a post could get among any others: its own, then ever more particular ones."""
    above = [entry.parents[-depth:] for depth in range(1, len(entry.parents) + 1)]
    days = [(entry.day, *folders) for folders in ((), *above)] if entry.day not in ("", NO_DATE) else []
    fronts = [(), (entry.slug_prefix,), *above, *days]
    return [*dict.fromkeys(valid_slug(" ".join(filter(None, (*front, entry.slug)))) for front in fronts)]


def valid_slug(text: str) -> str:
    """Return a valid slug as it is, and a slug for any other text."""
    return text if is_slug(text) else slug_of(text)


class TakenAddresses:
    """The slugs and addresses of all imported posts. Each belongs to one post."""

    def __init__(self, slugs: Iterable[str]):
        self.slugs = {*slugs}
        self.addresses = {*self.slugs}
        self.sources: dict[str, str] = {}  # names of files by slug

    def assign(self, item: Item, slug: str) -> Item | Failure:
        """Return an item with its final slug, and without former slugs and addresses that other posts have."""
        fields, notes, old_paths, line_of = item.fields, item.notes, item.old_paths, item.file.line_of
        if slug in self.sources:
            reason = f"{self.sources[slug]} has the slug {slug}, too: one of them needs a `slug` of its own"
            return Failure(item.source, line_of("slug"), reason)
        self.sources[slug] = item.source
        if slug != fields["slug"]:
            notes[Note.OTHER_SLUGS] = line_of("slug")
            if slug != valid_slug(fields["slug"]):  # Other posts have that one, too.
                old_paths = (*old_paths, item.own_path or f"/{fields['slug']}")
        if former := dict.fromkeys(fields.get("former_slugs", ())):
            fields["former_slugs"] = [each for each in former if each not in self.slugs][:MAX_FORMER_SLUGS]
            if len(former) > len(fields["former_slugs"]):
                notes[Note.FORMER_SLUGS] = line_of("former_slugs")
        own = tuple(path for path in old_paths if _address(path) == slug or _address(path) not in self.addresses)
        if len(own) < len(old_paths):
            notes[Note.SHARED_ADDRESSES] = None
        self.addresses.update(map(_address, own))
        fields["slug"], item.old_paths = slug, own
        return item


def _address(path: str) -> str:
    return unquote(path, errors="surrogateescape").strip("/")
