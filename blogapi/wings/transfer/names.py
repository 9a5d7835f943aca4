"""Infer titles, dates and languages from file names, addresses and front matter; make slugs differ."""

import re
from collections import Counter
from collections.abc import Mapping
from datetime import tzinfo
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from blogapi.documents import is_slug
from blogapi.posts.slugs import slug_of
from blogapi.wings.markdown.files import MarkdownFile
from blogapi.wings.markdown.front_matter import MONTH_NAMED, YEAR_FIRST, shown, time_or_nothing
from blogapi.wings.transfer.bounds import Note
from blogapi.wings.transfer.content import without_controls
from blogapi.wings.transfer.permalinks import parted
from blogapi.wings.transfer.sites import Site

DATED = re.compile(r"(\d{4}-\d\d?-\d\d?)-(.+)", re.ASCII | re.DOTALL)
DATE_IN_PATH = re.compile(r"(?:^|/)(\d{4}/\d\d/\d\d)(?:/|$)", re.ASCII)
LANGUAGE = re.compile(r"[a-z]{2}(?:[-_][A-Za-z]{2,4})?", re.ASCII)

DRAFT_FOLDERS = {"_drafts", "drafts", "draft", "_draft", "private", "_private", "unpublished", "hidden"}
LAST = "~"  # after every time


def name_and_day(path: Path, zone: tzinfo) -> tuple[str, str]:
    """Return the name of a file without a leading date, and when that day begins. `index.md` has its folder's name."""
    stem, dot, language = path.stem.partition(".")
    name = path.absolute().parent.name + (dot + language).replace(".", "-") if stem == "index" else path.stem
    dated = DATED.fullmatch(name)
    day = time_or_nothing(dated[1], zone) if dated else ""
    return (dated[2], day) if dated and day else (name, "")


def language_of(path: Path, values: Mapping[str, Any]) -> str:
    """Return the language of a translation, from the name of its file or from its front matter."""
    said = (path.stem.partition(".")[2], *map(values.get, ("lang", "language", "locale")))
    return next((text for text in said if isinstance(text, str) and LANGUAGE.fullmatch(text)), "")


@cache
def has_data_file(folder: Path) -> bool:
    """Return whether a folder contains a file with values for all its posts, as in Eleventy."""
    names = (f"{folder.name}.json", f"{folder.name}.yaml", f"{folder.name}.yml")
    return any(path.name in names or ".11tydata." in path.name for path in folder.iterdir())


def title_of(name: str) -> str:
    """Return a title made from the name of a file. A date, or a name with spaces (Obsidian), stays as it is."""
    if any(map(str.isspace, name)) or time_or_nothing(name):
        return name
    words = re.sub("[-_]+", " ", name).strip() or name
    return words[:1].upper() + words[1:]


def infer(file: MarkdownFile, path: Path, folders: set[str], address: str, zone: tzinfo) -> str:
    """Infer the fields that front matter leaves out; return the name of the file without a leading date."""
    fields = file.fields
    (name, day), day_in_address = name_and_day(path, zone), DATE_IN_PATH.search(address)
    fields.setdefault("slug", unquote(parted(address)[1]) or shown(name))
    fields.setdefault("title", title_of(shown(name)))
    if day_in_address and not day:
        day = time_or_nothing(day_in_address[1], zone)
    if day and not file.is_exported:
        fields.setdefault("published_at", day)
    if DRAFT_FOLDERS & {folder.lower() for folder in folders} and not file.is_exported:
        fields.setdefault("status", "draft")
    elif "published_at" in fields:
        fields.setdefault("status", "published")
    return name


def notes_of(file: MarkdownFile, path: Path, site: Site) -> dict[str, Note]:
    """Return the notes on a file; remove the control characters in its fields."""
    notes: dict[str, Note] = {**without_controls(file.fields)}
    if site.is_zone_unknown:
        notes["time zones"] = None
    if not {"status", "published_at"} & file.fields.keys() and has_data_file(path.absolute().parent):
        notes["undated"] = None
    return notes


def date_names(file: MarkdownFile) -> list[str]:
    """Return the names in front matter whose values look like dates."""
    values = {name: value for name, value in file.values.items() if isinstance(value, str)}
    return [name for name, value in values.items() if YEAR_FIRST.match(value) or MONTH_NAMED.match(value)]


# Slugs


class SpoolEntry(NamedTuple):
    """The place of an item in the spool, what it is sorted by, and its slug."""

    offset: int
    when: str = LAST
    number: int = 0
    slug: str = ""  # empty for a Failure
    parents: tuple[str, ...] = ()
    front: str = ""
    day: str = ""  # in the site's time zone
    is_given: bool = False  # whether front matter says the slug


def distinct(found: list[SpoolEntry]) -> list[SpoolEntry]:
    """Put the language, then more and more folders of the path in front of each slug that several posts have.

    If that is not enough, put the day in front, or the day and the folders. Slugs that are still the same stay as they
    were, and so does one that only one post has in its front matter.
    """
    counts = Counter(each.slug for each in found)
    given = Counter(each.slug for each in found if each.is_given)
    fixed = [each.is_given and not each.front and given[each.slug] == 1 for each in found]
    slugs = [
        valid_slug(f"{each.front} {each.slug}") if counts[each.slug] > 1 and not is_fixed else each.slug
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


def valid_slug(text: str) -> str:
    """Return a slug as it is, or one made from a text."""
    return text if is_slug(text) else slug_of(text)
