"""Titles and dates from the names of files and in front matter."""

import re
from datetime import UTC, date, tzinfo
from pathlib import Path

from blogapi.wings.markdown.files import MarkdownFile
from blogapi.wings.markdown.front_matter import MONTH_NAMED, YEAR_FIRST, rfc3339_of


def name_and_day(path: Path, zone: tzinfo = UTC) -> tuple[str, str]:
    """Return the name of a file (of `index.md`, of its folder) without a leading date, and that date as a time."""
    stem, dot, language = path.stem.partition(".")
    name = path.absolute().parent.name + (dot + language).replace(".", "-") if stem == "index" else path.stem
    day = midnight(name[:10], zone) if name[10:11] == "-" and name[11:] else ""
    return (name[11:], day) if day else (name, "")


def title_of(name: str) -> str:
    """Return a title for the name of a file: one with white space is a title already, as in Obsidian, or a day."""
    if any(map(str.isspace, name)) or midnight(name):
        return name
    words = re.sub("[-_]+", " ", name).strip() or name
    return words[:1].upper() + words[1:]


def midnight(day: str, zone: tzinfo = UTC) -> str:
    """Return the time at which a day begins in a zone; nothing if it is no day."""
    try:
        return rfc3339_of(str(date.fromisoformat(day)), zone)
    except ValueError:
        return ""


def date_names(file: MarkdownFile) -> list[str]:
    """Return the names in front matter whose values look like dates."""
    values = {name: value for name, value in file.values.items() if isinstance(value, str)}
    return [name for name, value in values.items() if YEAR_FIRST.match(value) or MONTH_NAMED.match(value)]
