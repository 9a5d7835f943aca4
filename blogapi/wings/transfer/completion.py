"""Determine the status and dates of an imported post, and shorten its fields to their limits."""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from blogapi.api.schemas import URL
from blogapi.documents import FIELDS, MAX_TAG, MAX_TAGS, SHORT_TEXTS, STATUSES, filtered, is_slug
from blogapi.markdown.dates import looks_like_date
from blogapi.markdown.fields import EPOCH
from blogapi.markdown.front_matter import shortened
from blogapi.markdown.programs import OURS
from blogapi.markdown.public import OFF, PLAIN_DRAFTS, Inherited, future_publication, why_hidden, without_passwords
from blogapi.posts.params import ParamsError, check_params, is_name
from blogapi.posts.publication import status_meant
from blogapi.text import VISIBLE, fold
from blogapi.wings.transfer.items import Item, Note


def shorten(item: Item) -> None:
    """Shorten a post's fields to their limits, and note what was cut."""
    fields, notes, line_of = item.fields, item.notes, item.file.line_of
    params = fields.get("params", {})
    for name in SHORT_TEXTS:
        longest = FIELDS[name].max_length
        if len(text := fields.get(name, "")) > longest:
            fields[name] = text[: longest + 1].rpartition(" ")[0].rstrip() or text[:longest]
            params = params | {name: params.get(name, text)}
            notes.setdefault(Note.LONG_TEXTS, line_of(name))
    if tags := fields.get("tags", []):
        distinct: dict[str, str] = {}
        for tag in tags:
            distinct.setdefault(fold(tag[:MAX_TAG]), tag[:MAX_TAG])
        if len(distinct) > MAX_TAGS or any(len(tag) > MAX_TAG for tag in tags):
            notes[Note.MANY_TAGS] = line_of("tags")
        fields["tags"] = [*distinct.values()][:MAX_TAGS]
    fields["params"] = fitting = _fitting(filtered(params, lambda name, _: is_name(name)))
    if not fitting:
        del fields["params"]
    if left_out := [name for name, value in params.items() if (name, value) not in fitting.items()]:
        notes[Note.LARGE_PARAMS] = line_of(left_out[0]), ", ".join(map(shortened, left_out))


def _fitting(params: dict[str, Any]) -> dict[str, Any]:
    """Remove invalid params, and then the largest ones until the rest fit their limits."""
    for name in sorted(params, key=lambda name: len(json.dumps(params[name])), reverse=True):
        try:
            check_params(params)
            break
        except ParamsError as error:
            wrong = next((param for param in params if error.place.startswith(f".{param}")), name)
            params = {other: value for other, value in params.items() if other != wrong}
    return params


NO_INDEX = re.compile(r"noindex\W+(true|yes|on|1)\b|robots\W.{0,100}noindex")  # asks search engines not to index a post
# Names of params that never become the content of a post
NOT_TEXT = re.compile("alias|redirect|canonical|permalink|image|author|avatar|layout|^(path|url)$", re.IGNORECASE)
WEB_URL = re.compile(r"https?://[^\s<>]+")
FOR_OTHERS = ("draft", "permalink")  # A flat export writes these to keep other programs from publishing a post.


def move_unknown_status(item: Item) -> None:
    """If the status is another program's word, such as `evergreen`, move it to params, and make the post a draft."""
    fields = item.fields
    word = fields.get("status", "draft")
    if word not in STATUSES and item.file.program is not OURS:
        fields |= {"status": "draft", "params": {item.file.sources["status"]: word} | fields.get("params", {})}


def hide_unless_public(item: Item, values: Mapping[str, Any], inherited: Iterable[Inherited], now: str) -> None:
    """Make a post a draft unless it was public, and remove passwords from it."""
    fields = item.fields
    if "params" in fields:
        fields["params"] = without_passwords(fields["params"])
    if item.file.is_exported and fields.get("status") == "scheduled":
        values = {name: value for name, value in values.items() if name not in FOR_OTHERS}
    why = why_hidden({"title": fields.get("title", ""), **values}, inherited, now)
    why = why or future_publication(fields.get("params", {}), now)
    if NO_INDEX.search(str(values).lower()):
        item.notes[Note.NO_INDEX] = None
    if not why:
        return
    item.notes.pop(Note.NOT_PUBLISHED, None)
    if why.lower() not in PLAIN_DRAFTS:
        item.notes[Note.HIDDEN] = item.file.line_of(why.partition(":")[0]), why
    if fields.get("status", "published") in ("published", "scheduled"):
        fields["status"] = "draft"


def complete(item: Item, now: str, drop: Collection[str]) -> None:
    """Determine a post's status and dates, and shorten its fields to their limits."""
    fields, notes, file = item.fields, item.notes, item.file
    published_at = fields.get("published_at", "")
    if fields.get("status") == "published" and not published_at:
        names = [name for name in _dates_in(file.values) if name not in file.sources.values()]
        note = Note.NO_DATES if file.lines else Note.NO_DATES_IN_EXPORTS
        notes[note] = (file.line_of(names[0]), ", ".join(names)) if names else None
    if fields.get("status") in ("published", "scheduled") and published_at:
        fields["status"] = status_meant("published", published_at, now)
    elif published_at > now:
        del fields["published_at"]
        notes[Note.FUTURE_DATES] = file.line_of("published_at")
    _place_cover(item)
    if not VISIBLE.search(fields.get("content", "")) and (text := _substitute_text(fields)):
        fields["content"], notes[Note.NO_TEXT] = text, None
    if params := fields.get("params", {}):
        fields["params"] = {name: value for name, value in params.items() if name not in drop}
    shorten(item)
    item.created_at = next((time for time in (item.created_at, published_at) if time and time <= now), None)
    if not is_slug(fields["slug"]):
        item.old_paths = (f"/{fields['slug']}", *item.old_paths)


def _substitute_text(fields: Mapping[str, Any]) -> str:
    """Return the links and lists in params as Markdown or, if there are none, the excerpt or the cover."""
    lines = []
    for name, value in fields.get("params", {}).items():
        values = value if isinstance(value, list) else [value]
        if not NOT_TEXT.search(name) and (values is value or WEB_URL.match(str(value))):
            parts = (element.values() if isinstance(element, dict) else [element] for element in values)
            lines += [WEB_URL.sub(r"<\g<0>>", " ".join(map(str, texts))) for texts in parts]
    cover = fields.get("cover_image", "")
    text = "\n".join(f"* {line}" for line in lines) if len(lines) > 1 else "".join(lines)
    return text or fields.get("excerpt", "") or (cover and f"![]({cover})")


def _place_cover(item: Item) -> None:
    """Move a cover that is not a URL to params."""
    cover, params = item.fields.pop("cover_image", ""), item.fields.get("params", {})
    if re.fullmatch(URL, cover):
        item.fields["cover_image"] = cover
    elif cover:
        item.notes[Note.COVERS] = item.file.line_of("cover_image")
        if cover not in params.values():
            item.fields["params"] = params | {item.file.sources.get("cover_image", "cover_image"): cover}


DATE_NAME = re.compile("date|publish|^created|_at$|^posted|^time", re.IGNORECASE)
PUBLISHED = re.compile("publish", re.IGNORECASE)
MAX_HEADER_TEXT = 500  # search for header-like lines in at most this many characters
LIKE_HEADER = re.compile(r"^\W*([A-Za-z][\w -]{0,40}?)\W*:[: \t]\W*(.{4,60})$", re.MULTILINE)
ABLOG = re.compile(r"\{post\}[ \t]+\w")
# Matches a possible date in the path of a file without a recognized date
DAY_IN_PATH = re.compile(
    r"(?<!\d)(?:19|20)\d\d(?:[-/_.][01]?\d(?:[-/_.][0-3]?\d)?|[01]\d[0-3]\d(?:\d{4}|\d{6})?)(?!\d)", re.ASCII
)


def note_dates(item: Item, inherited: Iterable[Inherited], path: Path) -> None:
    """Add a note to an undated draft if anything in it looks like a date, or suggests that it was published."""
    if item.file.is_exported or {"published_at", "status"} & item.fields.keys():
        return
    hints = _dates_in(item.file.values)
    line = item.file.line_of(hints[0]) if hints else None
    hints += [f"{name} in {entry.source}" for entry in inherited for name in _dates_in(entry.values, nested=False)]
    hints += [f"{name} in its text" for name in _dates_in_text(item.fields["content"])]
    if match := DAY_IN_PATH.search(str(path)):
        hints.append(f"{match[0]} in its path")
    if hints:
        item.notes[Note.OTHER_DATES] = line, ", ".join(hints)


def _dates_in(values: Mapping[str, Any], nested: bool = True) -> list[str]:
    """Return the names of values that look like dates or suggest that a post was published."""
    return [name for name, value in values.items() if (nested or isinstance(value, str)) and _is_date(name, value)]


def _is_date(name: str, value: Any) -> bool:
    if isinstance(value, dict):
        return any(_is_date(key, part) for key, part in value.items())
    if not value or not isinstance(value, str):
        return False
    is_number = EPOCH.fullmatch(value) and DATE_NAME.search(name)
    word = value.lower()
    is_word = word == "published" or name.lower() == "date" or (PUBLISHED.search(name) and word not in OFF)
    return bool(looks_like_date(value) or is_number or is_word)


def _dates_in_text(text: str) -> list[str]:
    """Return the names in header-like lines with dates at the beginning of a post."""
    lines = LIKE_HEADER.finditer(text[:MAX_HEADER_TEXT])
    names = [match[1] for match in lines if DATE_NAME.search(match[1]) and looks_like_date(match[2])]
    return [*dict.fromkeys(names), *(["{post}"] if ABLOG.search(text[:MAX_HEADER_TEXT]) else [])]
