"""What other programs leave, folders of Markdown files and exports, as posts in the order of their dates."""

import json
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple
from urllib.parse import unquote

from blogapi.clock import rfc3339
from blogapi.files.exports import EXPORTS, markdown_of
from blogapi.files.front_matter import MarkdownError, rfc3339_of
from blogapi.files.markdown import Document, parse
from blogapi.post import is_slug

EXTENSIONS = (".md", ".markdown", ".mdx")
# What was built or installed, not written. Hidden folders are not entered either.
NOT_ENTERED = ("node_modules", "bower_components", "vendor", "_site")
# The page of a whole section in Hugo and Zola.
NOT_POSTS = ("_index",)
DRAFT_FOLDERS = ("_drafts", "drafts")
MAX_BYTES = 4 * 1024 * 1024

DATED_NAME = re.compile(r"(\d{4}-\d\d-\d\d)-(.+)", re.ASCII | re.DOTALL)
DATE_IN_PATH = re.compile(r"(?:^|/)(\d{4})/(\d\d)/(\d\d)(?:/|$)", re.ASCII)
# Where a post was: the names that programs have for it, and what in them is no path.
PATH_NAMES = ("permalink", "path", "url")
PATH_STYLES = ("date", "pretty", "ordinal", "weekdate", "none", "false", "true")
LAST = "~"  # after every time

ABSOLUTE_URL = re.compile(r"https?://\S+", re.IGNORECASE)


class Item(NamedTuple):
    """A post that was read."""

    source: str
    """Where it stands, to be shown."""
    fields: dict[str, Any]
    """The fields of a post, `slug` among them, as JSON would have them. Not checked yet."""
    created_at: str | None
    """When it was made, RFC 3339; None: now."""
    dropped: tuple[str, ...] = ()
    """The names of what has no place in a post."""
    lines: Mapping[str, int] = {}
    """The lines of the fields, where they have any."""
    number: int = 0
    """The id that it had, by which posts of the same second are in order; 0 where it had none."""


class Refused(NamedTuple):
    """Something that could not be read."""

    source: str
    line: int | None
    reason: str

    def __str__(self) -> str:
        return f"{self.source}:{self.line}: {self.reason}" if self.line else f"{self.source}: {self.reason}"


class Found(NamedTuple):
    """A post that is there to be read."""

    when: str
    number: int
    read: Callable[[], Item | Refused]


class Sources:
    """The posts in files and folders, each an Item or Refused, in the order of their dates; those without come last.

    Their number is known before they are read, and the memory taken does not grow with their contents.
    """

    def __init__(self, paths: Iterable[Path], now: str, slug_of: Callable[[str], str], spool: IO[bytes]):
        self.now = now
        self.slug_of = slug_of
        self.spool = spool
        self.files: set[Path] = set()
        self.found: list[Found] = []
        for path in paths:
            self.found.extend(self._find(path))
        self.found.sort(key=lambda found: (found.when, found.number))

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Item | Refused]:
        sources: dict[str, str] = {}
        for *_, read in self.found:
            item = read()
            if isinstance(item, Item):
                slug = item.fields["slug"]
                if slug in sources:
                    reason = f"{sources[slug]} has the slug {slug}, too: one of them needs a `slug` of its own"
                    item = Refused(item.source, item.lines.get("slug"), reason)
                else:
                    sources[slug] = item.source
            yield item

    def _find(self, path: Path) -> Iterator[Found]:
        if path.is_dir():
            for file in walk(path):
                yield from self._find_file(file, path)
        elif posts := EXPORTS.get(path.suffix.lower()):
            yield from self._find_in_export(path, posts)
        else:
            yield from self._find_file(path, path.absolute().parent)

    def _find_file(self, path: Path, top: Path) -> Iterator[Found]:
        """Find a file, once however many paths lead to it."""
        if (resolved := path.resolve()) not in self.files:
            self.files.add(resolved)
            item = self._read_file(path, top)
            read = partial(self._read_file, path, top)
            if isinstance(item, Refused):
                yield Found(LAST, 0, read)
            else:
                yield Found(item.created_at or item.fields.get("published_at") or LAST, item.number, read)

    def _read_file(self, path: Path, top: Path) -> Item | Refused:
        source = shown(str(path))
        try:
            document = parse(_bytes_of(path))
            return self._item(source, path, top, document)
        except (OSError, MarkdownError) as error:
            return _refused(source, error)

    def _item(self, source: str, path: Path, top: Path, document: Document) -> Item:
        fields, unknown = document.fields, document.unknown
        name, named_date = _undated(path.absolute().parent.name if path.stem == "index" else path.stem)
        old_path = next((value for key in PATH_NAMES if (value := _path(unknown.get(key)))), "")
        last = re.sub(r"(^|/)index$", "", re.sub(r"\.html?$", "", old_path)).strip("/").rpartition("/")[2]
        fields["slug"] = make_slug(fields.get("slug") or unquote(last) or shown(name), self.slug_of)
        fields.setdefault("title", _title(shown(name)))
        if "published_at" not in fields and (day := named_date or _date_in(old_path)):
            fields["published_at"] = day
        if "status" not in fields:
            if {top.absolute().name, *path.parent.parts[len(top.parts) :]} & set(DRAFT_FOLDERS):
                fields["status"] = "draft"
            elif "published_at" in fields:
                fields["status"] = "published"
        if tags := _taxonomies(unknown):
            fields["tags"] = fields.get("tags", []) + tags
        item = make_item(
            source,
            fields,
            created_at=_created_at(document),
            dropped=tuple(key for key in unknown if key not in PATH_NAMES and not (tags and key == "taxonomies")),
            lines=document.lines,
            now=self.now,
        )
        return item._replace(number=document.number)

    def _find_in_export(self, path: Path, posts: Callable[[Path], Iterator[dict[str, Any]]]) -> Iterator[Found]:
        source = shown(str(path))
        try:
            for post in posts(path):
                offset = self.spool.tell()
                self.spool.write(json.dumps(post).encode() + b"\n")
                when = post["created_at"] or post["published_at"] or LAST
                yield Found(when, 0, partial(self._read_spooled, source, offset))
        except (OSError, MarkdownError) as error:
            refused = _refused(source, error)
            yield Found(LAST, 0, lambda: refused)

    def _read_spooled(self, file: str, offset: int) -> Item | Refused:
        self.spool.seek(offset)
        post = json.loads(self.spool.readline())
        html, bare, created_at = post.pop("html"), post.pop("bare", False), post.pop("created_at")
        number = post.pop("id")
        post["slug"] = make_slug(post["slug"] or post["title"] or f"post-{number}", self.slug_of)
        source = f"{file} ({post['slug']})" if post["title"] else f"{file} ({post['slug']}, id {number})"
        post["title"] = post["title"] or _title(post["slug"])
        try:
            post["content"] = markdown_of(html, bare=bare) if html else post.get("content", "")
        except RecursionError:
            return Refused(source, None, "its HTML is nested too deep")
        fields = {name: value for name, value in post.items() if value}
        return make_item(source, fields, created_at=created_at or None, now=self.now)


@contextmanager
def open_sources(paths: Iterable[Path], *, now: float, slug_of: Callable[[str], str]) -> Iterator[Sources]:
    """Find the posts in files and folders. `slug_of` makes a slug of a text; `now` is a Unix time."""
    with TemporaryFile() as spool:
        yield Sources(paths, rfc3339(now), slug_of, spool)


def walk(folder: Path) -> Iterator[Path]:
    """Find the Markdown files below a folder, in the order of their names."""
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in NOT_ENTERED)
        for name in sorted(names):
            path = Path(parent, name)
            if not name.startswith(".") and path.suffix.lower() in EXTENSIONS and path.stem not in NOT_POSTS:
                yield path


def _refused(source: str, error: OSError | MarkdownError) -> Refused:
    if isinstance(error, MarkdownError):
        return Refused(source, error.line, error.reason)
    if isinstance(error, FileNotFoundError):
        return Refused(source, None, "no such file or folder")
    return Refused(source, None, error.strerror or "cannot be read")


def _bytes_of(path: Path) -> bytes:
    if path.exists():
        if path.suffix.lower() not in EXTENSIONS:
            raise MarkdownError(f"must be a folder, or end in {', '.join((*EXTENSIONS, *EXPORTS))}")
        if not path.is_file():
            raise MarkdownError("must be a regular file")
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise MarkdownError(f"must have at most {MAX_BYTES // 1024**2} MiB")
    return data


def _undated(name: str) -> tuple[str, str]:
    """Split the name of a file into what follows a leading date, and that date as a time."""
    match = DATED_NAME.fullmatch(name)
    day = _midnight(match[1]) if match else ""
    return (match[2], day) if match and day else (name, "")


def _title(name: str) -> str:
    """Make a title of the name of a file: one with white space is a title already, as in Obsidian, and a day."""
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
    """Return the value of a permalink where it is a path, not a pattern or the name of a style."""
    if not isinstance(value, str) or value in PATH_STYLES or "{" in value:
        return ""
    path = re.sub(r"^[a-z]+://[^/]*|[?#].*", "", value)
    return "" if re.search("(^|/|-):[a-z]", path) else path


def _date_in(path: str) -> str:
    match = DATE_IN_PATH.search(path)
    return _midnight("-".join(match.groups())) if match else ""


def _taxonomies(unknown: Mapping[str, Any]) -> list[str]:
    """Return the tags and categories as Zola has them."""
    taxonomies = unknown.get("taxonomies")
    if not isinstance(taxonomies, dict):
        return []
    lists = [names for name in ("tags", "categories") if isinstance(names := taxonomies.get(name), list)]
    return [name for names in lists for name in names if isinstance(name, str) and name.strip()]


def _created_at(document: Document) -> str | None:
    try:
        return rfc3339_of(str(document.created_at)) if document.created_at else None
    except ValueError as error:
        raise MarkdownError(f"`created_at` {error}", document.lines["created_at"]) from None


def make_item(
    source: str,
    fields: dict[str, Any],
    *,
    created_at: str | None,
    dropped: tuple[str, ...] = (),
    lines: Mapping[str, int] = {},
    now: str,
) -> Item:
    """Make an item of what was read, with what follows from the times and `now`, all RFC 3339 in UTC.

    What is published at a time to come is scheduled, what was scheduled for a time that is past is published, and what
    is neither keeps no time to come.
    """
    status, published_at = fields.get("status"), fields.get("published_at", "")
    if status in ("published", "scheduled") and published_at:
        fields["status"] = "scheduled" if published_at > now else "published"
    elif published_at > now:
        del fields["published_at"]
    if "cover_image" in fields and not ABSOLUTE_URL.fullmatch(fields["cover_image"]):
        del fields["cover_image"]
        dropped = (*dropped, "cover_image")
    made = next((time for time in (created_at, published_at) if time and time <= now), None)
    return Item(source, fields, made, dropped, lines)


def make_slug(text: str, slug_of: Callable[[str], str]) -> str:
    """Return `text` where it is a slug, else the one that `slug_of` makes of it."""
    return text if is_slug(text) else slug_of(text)


def shown(text: str) -> str:
    """Return a text, a file's name say, as it can be shown on a terminal."""
    if text.isprintable():
        return text
    return "".join(
        "\ufffd" if unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") else character for character in text
    )
