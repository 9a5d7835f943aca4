"""A post of another program, ready to be checked and stored."""

import re
from collections.abc import Callable, Mapping
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from blogapi.files.content import absolute, markdown_of, not_portable, with_absolute_images
from blogapi.files.front_matter import MarkdownError, rfc3339_of
from blogapi.files.markdown import NAMES, Document, line_of
from blogapi.post import is_slug

DRAFT_FOLDERS = ("_drafts", "drafts")
ABSOLUTE_URL = re.compile(r"https?://\S+", re.IGNORECASE)
DATED_NAME = re.compile(r"(\d{4}-\d\d-\d\d)-(.+)", re.ASCII | re.DOTALL)
DATE_IN_PATH = re.compile(r"(?:^|/)(\d{4})/(\d\d)/(\d\d)(?:/|$)", re.ASCII)
# The names that programs have for the address of a post, those of its values that are no path, and for older addresses.
PATH_NAMES = ("permalink", "path", "url")
PATH_STYLES = ("date", "pretty", "ordinal", "weekdate", "none", "false", "true")
ALIAS_NAMES = ("aliases", "alias", "redirect_from")
# Characters that a terminal obeys: controls, line separators, directions of writing. And unpaired surrogates.
NOT_SHOWN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class Item(NamedTuple):
    """A post that was read."""

    source: str  # the name of the file, for messages
    fields: dict[str, Any]  # the fields of a post, with a `slug`, as in JSON. Not validated yet
    created_at: str | None  # RFC 3339; None: now
    dropped: tuple[str, ...] = ()  # the names of values that have no place in a post
    lines: Mapping[str, int] = {}  # the lines of the fields in its file
    number: int = 0  # the former id, which orders posts of the same second; 0 if unknown
    content_line: int = 0  # the line in which the content begins; 0 if it is not in a file of its own
    old_paths: tuple[str, ...] = ()  # the former addresses
    notes: tuple[tuple[str, int | None], ...] = ()  # things for the author to look at, each with its line

    def line_of(self, field: str) -> int | None:
        """Return the line in which a field is wrong, if it is known."""
        return line_of(field, self.fields, self.lines, self.content_line)


class Refused(NamedTuple):
    """A file or a post that cannot be read."""

    source: str
    line: int | None
    reason: str

    def __str__(self) -> str:
        return f"{self.source}:{self.line}: {self.reason}" if self.line else f"{self.source}: {self.reason}"


class Setting(NamedTuple):
    """The circumstances of an import."""

    now: str  # RFC 3339 in UTC
    slug_of: Callable[[str], str]  # makes a slug from a text
    site: str = ""  # the URL to which relative addresses of images belong; empty: they stay relative


def item_of_file(path: Path, top: Path, document: Document, setting: Setting) -> Item:
    """Return the post in a Markdown file below a folder. Raise MarkdownError."""
    fields, unknown = document.fields, {key.lower(): value for key, value in document.unknown.items()}
    name, named_day = _undated(_name(path))
    paths = [value for key in PATH_NAMES if (value := _path(unknown.get(key)))]
    last = re.sub(r"(^|/)index$", "", re.sub(r"\.html?$", "", paths[0])) if paths else ""
    fields.setdefault("slug", unquote(last.strip("/").rpartition("/")[2]) or shown(name))
    fields.setdefault("title", _title(shown(name)))
    if day := "" if document.is_exported else named_day or (_day_in(paths[0]) if paths else ""):
        fields.setdefault("published_at", day)
    folders = path.parent.parts[len(top.parts) :]
    if {top.absolute().name, *folders} & set(DRAFT_FOLDERS):
        fields.setdefault("status", "draft")
    elif "published_at" in fields:
        fields.setdefault("status", "published")
    if tags := _taxonomies(unknown):
        fields["tags"] = fields.get("tags", []) + tags
    aliases = {key: found for key in ALIAS_NAMES if (found := _aliases(unknown.get(key)))}
    used = (*PATH_NAMES, *aliases, *(("taxonomies",) if tags else ()))
    dropped = tuple(key for key in document.unknown if key.lower() not in used)
    item = _item(shown(str(path)), fields, _created_at(document), "/".join(folders), dropped, setting)
    old_paths = (*item.old_paths, *paths, *(alias for found in aliases.values() for alias in found))
    return item._replace(
        lines=document.lines, number=document.number, content_line=document.content_line, old_paths=old_paths
    )


def item_of_export(file: str, post: dict[str, Any], setting: Setting) -> Item:
    """Return a post that a reader of exports found in a file. Raise MarkdownError."""
    html, title, slug = post["html"], post["title"], slug_in_export(post, setting)
    source = shown(f"{file} ({slug})" if title else f"{file} ({slug}, id {post['id']})")
    content = markdown_of(html, bare=post.get("bare", False)) if html else post.get("content", "")
    values = post | {"slug": post["slug"] or slug, "title": title or _title(slug), "content": content}
    fields = {name: value for name, value in values.items() if name in (*NAMES, "content") and value}
    item = _item(source, fields, post["created_at"], "", (), setting)
    return item._replace(old_paths=(*item.old_paths, *filter(None, [_path(post.get("path"))])))


def slug_in_export(post: Mapping[str, Any], setting: Setting) -> str:
    """Return the slug of a post that a reader of exports found."""
    return make_slug(post["slug"] or post["title"] or f"post-{post['id']}", setting.slug_of)


def looked_through(item: Item, slug: str) -> Item:
    """Return an item with the slug that it gets, and notes for its author."""
    has_changed = item.notes or slug != item.fields["slug"]
    notes = [("other slugs", item.line_of("slug"))] if has_changed else []
    for name, line in not_portable(item.fields.get("content", "")).items():
        notes.append((name, item.content_line and item.content_line + line - 1))
    return item._replace(fields=item.fields | {"slug": slug}, notes=tuple(notes))


def shown(text: str) -> str:
    """Return a text, for example the name of a file, as a terminal can show it."""
    return NOT_SHOWN.sub("\ufffd", text)


def _item(
    source: str, fields: dict[str, Any], created_at: str, folder: str, dropped: tuple[str, ...], setting: Setting
) -> Item:
    """Complete a post.

    A post published in the future is scheduled, and one scheduled for the past is published. A post with another
    status keeps no time in the future.
    """
    published_at, now = fields.get("published_at", ""), setting.now
    if fields.get("status") in ("published", "scheduled") and published_at:
        fields["status"] = "scheduled" if published_at > now else "published"
    elif published_at > now:
        del fields["published_at"]
        dropped += ("published_at in the future",)
    if setting.site:
        fields["content"] = with_absolute_images(fields.get("content", ""), setting.site, folder)
    if not _has_usable_cover(fields, folder, setting):
        del fields["cover_image"]
        dropped += ("cover_image",)
    created_at = next((time for time in (created_at, published_at) if time and time <= now), "")
    given, fields["slug"] = fields["slug"], make_slug(fields["slug"], setting.slug_of)
    item = Item(source, fields, created_at or None, dropped)
    return item if given == fields["slug"] else item._replace(old_paths=(f"/{given}",), notes=(("other slugs", None),))


def _has_usable_cover(fields: dict[str, Any], folder: str, setting: Setting) -> bool:
    """Make a relative cover image absolute if possible; return whether there is none or it is absolute."""
    address = fields.get("cover_image", "")
    if setting.site and not ABSOLUTE_URL.fullmatch(address) and not address.startswith("//") and address:
        fields["cover_image"] = address = absolute(address, setting.site, folder)
    return not address or ABSOLUTE_URL.fullmatch(address) is not None


def make_slug(text: str, slug_of: Callable[[str], str]) -> str:
    """Return `text` if it is a slug, else the one that `slug_of` makes of it."""
    return text if is_slug(text) else slug_of(text)


def _name(path: Path) -> str:
    """Return the name of a file, or of its folder for `index.md`, with the language for `index.en.md`."""
    if path.stem != "index" and not path.stem.startswith("index."):
        return path.stem
    return path.absolute().parent.name + path.stem.removeprefix("index").replace(".", "-")


def _undated(name: str) -> tuple[str, str]:
    """Split the name of a file into what follows a leading date, and that date as a time."""
    match = DATED_NAME.fullmatch(name)
    day = _midnight(match[1]) if match else ""
    return (match[2], day) if match and day else (name, "")


def _title(name: str) -> str:
    """Return a title for the name of a file: one with white space is a title already, as in Obsidian, or a day."""
    if any(map(str.isspace, name)) or _midnight(name):
        return name
    words = re.sub("[-_]+", " ", name).strip() or name
    return words[:1].upper() + words[1:]


def _midnight(day: str) -> str:
    try:
        return f"{date.fromisoformat(day)}T00:00:00Z"
    except ValueError:
        return ""


def _path(value: Any) -> str:
    """Return the path of an address; nothing if it is a pattern or the name of a style."""
    if not isinstance(value, str) or value in PATH_STYLES or "{" in value:
        return ""
    path = re.sub(r"^[a-z]+://[^/]*|[?#].*", "", value)
    return "" if re.search("(^|/|-):[a-z]", path) else path


def _aliases(value: Any) -> list[str]:
    """Return the older addresses in a value; those of Obsidian are names."""
    values = value if isinstance(value, list) else [value]
    return [path for value in values if (path := _path(value)) and "/" in path]


def _day_in(path: str) -> str:
    match = DATE_IN_PATH.search(path)
    return _midnight("-".join(match.groups())) if match else ""


def _taxonomies(unknown: Mapping[str, Any]) -> list[str]:
    """Return the tags and categories as in Zola."""
    taxonomies = unknown.get("taxonomies")
    if not isinstance(taxonomies, dict):
        return []
    lists = [names for name in ("tags", "categories") if isinstance(names := taxonomies.get(name), list)]
    return [name for names in lists for name in names if isinstance(name, str) and name.strip()]


def _created_at(document: Document) -> str:
    try:
        return rfc3339_of(str(document.created_at)) if document.created_at else ""
    except ValueError as error:
        raise MarkdownError(f"`created_at` {error}", document.lines["created_at"]) from None
