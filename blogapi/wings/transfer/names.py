"""Infer titles, dates and languages from file names, addresses and front matter."""

import re
from collections.abc import Mapping
from datetime import time as time_of_day
from datetime import tzinfo
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from blogapi.text import VISIBLE
from blogapi.wings.markdown.dates import datetime_of, looks_like_date, rfc3339_or_empty
from blogapi.wings.markdown.fields import EPOCH
from blogapi.wings.markdown.files import MarkdownFile
from blogapi.wings.markdown.front_matter import shown
from blogapi.wings.markdown.programs import Program
from blogapi.wings.markdown.public import OFF
from blogapi.wings.transfer.items import Note
from blogapi.wings.transfer.permalinks import split_address

DATE_IN_PATH = re.compile(r"(?:^|/)(\d{4}/\d\d/\d\d)(?:/|$)", re.ASCII)
LANGUAGE_CODE = re.compile(r"[a-z]{2}(?:[-_][A-Za-z]{2,4})?", re.ASCII)

TAG_IN_NAME = re.compile(r"\[(?!drafts?\])([^\[\]]+)\]", re.IGNORECASE)
TAGS_IN_NAME = re.compile(rf"(?:{TAG_IN_NAME.pattern}[ ]*)+(?=.)", re.IGNORECASE)
MIDNIGHT = time_of_day()
MAX_TITLE_TEXT = 2000  # characters in which a title is looked for
# Parts of a text that cannot be its title: code, HTML, images, imports, and the marks of blocks
NOT_TITLE = re.compile(
    r"^(```|~~~)(?s:.*?)(?:^\1|\Z)|<[^<>]*>|!\[[^\]]{0,300}\]\([^)]{0,300}\)"
    r"|^(?:import|export) .*$|^:::.*$|^ {0,3}(?:[-*_] *){3,}$",
    re.MULTILINE,
)
ANY_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(\S(?:.{0,300}?\S)?)[ \t#]*$", re.MULTILINE)
CHECKLIST = re.compile(r"\s*[-*+] \[[ xX]\]")
MARKUP = re.compile(r"\[([^\]]{0,300})\]\([^)]{0,300}\)|^\s*(?:[-+*] |[>#]+)|[*`]|\b_|_\b", re.MULTILINE)
SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s|(?<=[。！？])")
DATE_NAME = re.compile("date|publish|^created|_at$|^posted|^time", re.IGNORECASE)
MAX_HEADER_TEXT = 500  # characters in which lines like headers are looked for
LIKE_HEADER = re.compile(r"^\W*([A-Za-z][\w -]{0,40}?)\W*:[: \t]\W*(.{4,60})$", re.MULTILINE)
ABLOG = re.compile(r"\{post\}[ \t]+\w")
PUBLISHED = re.compile("publish", re.IGNORECASE)

DRAFT_FOLDERS = {"_drafts", "drafts", "draft", "_draft", "private", "_private", "unpublished", "hidden"}


def name_and_date(path: Path, folders: tuple[str, ...], program: Program, zone: tzinfo) -> tuple[str, str]:
    """Return the name of a file without a leading date, and when that day begins. `index.md` has its folder's name."""
    stem, dot, language = path.stem.partition(".")
    is_index = stem in program.index_names
    name = (path.parent.name or stem) + (dot + language).replace(".", "-") if is_index else path.stem
    name = program.not_in_names.sub("", name) or name
    above = folders[:-1] if is_index else folders
    for text in dict.fromkeys((name, "/".join((*above, name)))):
        if match := program.date_and_name.fullmatch(text):
            year, month, number, rest = filter(None, match.groups())
            if day := rfc3339_or_empty(f"{year}-{month}-{number}", zone):
                return rest, day
    return name, ""


def language_of(path: Path, values: Mapping[str, Any]) -> str:
    """Return the language of a translation, from the name of its file or from its front matter."""
    candidates = (path.stem.partition(".")[2], *map(values.get, ("lang", "language", "locale")))
    return next((text for text in candidates if isinstance(text, str) and LANGUAGE_CODE.fullmatch(text)), "")


def title_from_name(name: str) -> str:
    """Return a title made from the name of a file. A date, or a name with spaces (Obsidian), stays as it is."""
    if any(map(str.isspace, name)) or rfc3339_or_empty(name):
        return name
    words = re.sub("[-_]+", " ", name).strip() or name
    return words[:1].upper() + words[1:]


def title_from_text(content: str) -> str:
    """Return the first heading in a text, else its first sentence, of at most 60 characters; "" for a checklist."""
    text = NOT_TITLE.sub("", content[:MAX_TITLE_TEXT])
    if found := ANY_HEADING.search(text):
        return found[1]
    if CHECKLIST.match(text):
        return ""
    words = MARKUP.sub(r"\1", text).split()
    sentence = SENTENCE_END.split(" ".join(words), maxsplit=1)[0]
    short = sentence if len(sentence) <= 60 else sentence[:61].rpartition(" ")[0] or sentence[:60]
    return short.rstrip(" .,;:") if VISIBLE.search(short) else ""


def infer(
    file: MarkdownFile, path: Path, folders: tuple[str, ...], top: str, address: str, zone: tzinfo, publish: bool
) -> tuple[str, list[Note]]:
    """Infer the fields that front matter leaves out; a date publishes a post only with `publish`.

    Return the name of the file without a leading date, and notes on a title and a status.
    """
    fields, program = file.fields, file.program
    if program.names_have_tags and (match := TAGS_IN_NAME.match(path.stem)):
        fields["tags"] = [*fields.get("tags", ()), *TAG_IN_NAME.findall(match[0])]
        path = path.with_name(path.name[match.end() :])
    (name, day), day_in_address = name_and_date(path, folders, program, zone), DATE_IN_PATH.search(address)
    fields.setdefault("slug", unquote(split_address(address)[1]) or shown(name))
    notes = []
    if not fields.get("title"):
        title = "" if program.titles_from_names or any(map(str.isspace, name)) else title_from_text(fields["content"])
        fields["title"] = title or title_from_name(shown(name))
        notes.append(Note.TITLES if title else Note.TITLES_FROM_NAMES)
    if day_in_address and not day:
        day = rfc3339_or_empty(day_in_address[1], zone)
    if day and not file.is_exported:
        fields.setdefault("published_at", day)
    time = file.others.get("time")  # in PieCrust
    if isinstance(time, str) and "published_at" in fields:
        local = datetime_of(fields["published_at"]).astimezone(zone)
        if local.time() == MIDNIGHT:
            fields["published_at"] = rfc3339_or_empty(f"{local.date()} {time}", zone) or fields["published_at"]
    if DRAFT_FOLDERS & {folder.lower() for folder in (top, *folders)} and not file.is_exported:
        fields.setdefault("status", "draft")
    elif "published_at" in fields and publish:
        fields.setdefault("status", "published")
    elif "published_at" in fields and "status" not in fields:
        notes.append(Note.NOT_PUBLISHED)
    return name, notes


def dates_in(values: Mapping[str, Any]) -> list[str]:
    """Return the names of values that look like dates, or that say that a post is published."""
    return [name for name, value in values.items() if value and _is_date(name, value)]


def dates_in_text(text: str) -> list[str]:
    """Return the names of lines near the beginning of a text that look like headers with dates."""
    lines = LIKE_HEADER.finditer(text[:MAX_HEADER_TEXT])
    found = [match[1] for match in lines if DATE_NAME.search(match[1]) and looks_like_date(match[2])]
    return found + ["{post}"] * bool(ABLOG.search(text[:MAX_HEADER_TEXT]))


def _is_date(name: str, value: Any) -> bool:
    if isinstance(value, dict):
        return any(_is_date(each, part) for each, part in value.items())
    if not isinstance(value, str):
        return False
    is_number = EPOCH.fullmatch(value) and DATE_NAME.search(name)
    is_word = (
        name.lower() == "date" or (PUBLISHED.search(name) and value.lower() not in OFF) or value.lower() == "published"
    )
    return bool(looks_like_date(value) or is_number or is_word)
