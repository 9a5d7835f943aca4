"""Titles and dates from the names of files and in front matter."""

import re
from collections.abc import Mapping
from datetime import UTC, tzinfo
from functools import cache
from pathlib import Path
from typing import Any

from blogapi.wings.markdown.files import MarkdownFile
from blogapi.wings.markdown.front_matter import MONTH_NAMED, YEAR_FIRST, rfc3339_of

DATED = re.compile(r"(\d{4}-\d\d?-\d\d?)-(.+)", re.ASCII | re.DOTALL)
LANGUAGE = re.compile(r"[a-z]{2}(?:[-_][A-Za-z]{2,4})?", re.ASCII)


def name_and_day(path: Path, zone: tzinfo) -> tuple[str, str]:
    """Return the name of a file (of `index.md`, of its folder) without a leading date, and when that day begins."""
    stem, dot, language = path.stem.partition(".")
    name = path.absolute().parent.name + (dot + language).replace(".", "-") if stem == "index" else path.stem
    dated = DATED.fullmatch(name)
    day = midnight(dated[1], zone) if dated else ""
    return (dated[2], day) if dated and day else (name, "")


def language_of(path: Path, values: Mapping[str, Any]) -> str:
    """Return the language of a translation: that in the name of its file, or in its front matter."""
    said = (path.stem.partition(".")[2], *map(values.get, ("lang", "language", "locale")))
    return next((text for text in said if isinstance(text, str) and LANGUAGE.fullmatch(text)), "")


@cache
def has_data_file(folder: Path) -> bool:
    """Return whether a folder has a file with values for all posts in it, as in Eleventy."""
    names = (f"{folder.name}.json", f"{folder.name}.yaml", f"{folder.name}.yml")
    return any(path.name in names or ".11tydata." in path.name for path in folder.iterdir())


def title_of(name: str) -> str:
    """Return a title for the name of a file: one with white space is a title already, as in Obsidian, or a day."""
    if any(map(str.isspace, name)) or midnight(name):
        return name
    words = re.sub("[-_]+", " ", name).strip() or name
    return words[:1].upper() + words[1:]


def midnight(day: str, zone: tzinfo = UTC) -> str:
    """Return the time at which a day begins; nothing if it is no day."""
    try:
        return rfc3339_of(day, zone)
    except ValueError:
        return ""


def date_names(file: MarkdownFile) -> list[str]:
    """Return the names in front matter whose values look like dates."""
    values = {name: value for name, value in file.values.items() if isinstance(value, str)}
    return [name for name, value in values.items() if YEAR_FIRST.match(value) or MONTH_NAMED.match(value)]
