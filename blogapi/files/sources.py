"""Folders of Markdown files and exports: the posts in them, in the order of their dates, ready to be stored."""

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.parse import unquote

from blogapi.clock import rfc3339
from blogapi.files.content import absolute, markdown_of, not_portable, with_absolute_images
from blogapi.files.exports import EXPORTS
from blogapi.files.front_matter import MarkdownError, rfc3339_of, shown
from blogapi.files.markdown import MAX_FILE_BYTES, NAMES, Document, parse, path_of, read_other_names
from blogapi.post import is_slug

EXTENSIONS = (".md", ".markdown", ".mdx")
# Folders of built or installed files. Hidden folders are not entered either.
NOT_ENTERED = ("node_modules", "bower_components", "vendor", "_site")
SECTION = "_index"  # the page of a whole section in Hugo and Zola
DRAFT_FOLDERS = {"_drafts", "drafts"}
LAST = "~"  # after every time
ABSOLUTE_URL = re.compile(r"https?://\S+", re.IGNORECASE)
DATED_NAME = re.compile(r"\d{4}-\d\d-\d\d-.", re.ASCII | re.DOTALL)
DATE_IN_PATH = re.compile(r"(?:^|/)(\d{4}/\d\d/\d\d)(?:/|$)", re.ASCII)

SlugOf = Callable[[str], str]  # makes a slug from a text


class Item(NamedTuple):
    """A post that was read."""

    source: str  # the name of the file, for messages
    fields: dict[str, Any]  # the fields of a post, with a `slug`, as in JSON. Not validated yet
    created_at: str | None  # RFC 3339; None: now
    dropped: tuple[str, ...] = ()  # the names of values that have no place in a post
    document: Document = Document({})  # its file, if it has one of its own
    old_paths: tuple[str, ...] = ()  # the former addresses
    notes: Mapping[str, int | None] = {}  # what its author should look at, each with its first line


class Refused(NamedTuple):
    """A file or a post that cannot be read."""

    source: str
    line: int | None
    reason: str

    def __str__(self) -> str:
        return f"{self.source}:{self.line}: {self.reason}" if self.line else f"{self.source}: {self.reason}"


class Found(NamedTuple):
    """A post that can be read, or the reason why it cannot."""

    read: Callable[[], Item | Refused]
    when: str = LAST
    number: int = 0
    slug: str = ""  # the slug that it gets; empty if it is refused
    parents: tuple[str, ...] = ()  # the names that go in front of the slug if other posts have it, too


class Sources:
    """The posts in files and folders, each an Item or Refused, in the order of their dates; those without come last.

    Their number is known before they are read. The posts of exports wait in the file `spool`, so that the memory that
    this takes does not grow with the contents. `now` is a Unix time. With `pages`, there are also the pages of
    exports; relative addresses of images belong to `site` if it is given.
    """

    def __init__(
        self, paths: Iterable[Path], spool: IO[bytes], now: float, slug_of: SlugOf, pages: bool = False, site: str = ""
    ):
        self.spool = spool
        self.now = rfc3339(now)
        self.slug_of = lambda text: text if is_slug(text) else slug_of(text)
        self.kinds = ("post", "page") if pages else ("post",)
        self.site = site.rstrip("/")
        self.left_out: Counter[str] = Counter()  # everything else, by its kind
        self.files: set[str] = set()
        found = [found for path in paths for found in self._find(path)]
        self.found = sorted(self._distinct(found), key=lambda found: (found.when, found.number))

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Item | Refused]:
        sources: dict[str, str] = {}
        for found in self.found:
            item = found.read()
            if isinstance(item, Refused):
                yield item
            elif found.slug in sources:
                reason = f"{sources[found.slug]} has the slug {found.slug}, too: one of them needs a `slug` of its own"
                yield Refused(item.source, item.document.line_of("slug"), reason)
            else:
                sources[found.slug] = item.source
                yield _annotated(item, found.slug)

    def _distinct(self, found: list[Found]) -> list[Found]:
        """Put the last folders of their paths in front of slugs that several posts have, until they differ; or the day.

        Posts that even then have the same slug have none in front.
        """
        slugs = [each.slug for each in found]
        for depth in range(1, 2 + max((len(each.parents) for each in found), default=0)):
            counts = Counter(filter(None, slugs))
            if max(counts.values(), default=1) == 1:
                break
            for index, each in enumerate(found):
                if counts[slugs[index]] > 1:
                    front = each.parents[-depth:] if depth <= len(each.parents) else (each.when[:10],)
                    slugs[index] = self.slug_of(" ".join((*front, each.slug)))
        counts = Counter(slugs)
        return [each if counts[slug] > 1 else each._replace(slug=slug) for each, slug in zip(found, slugs, strict=True)]

    def _find(self, path: Path) -> Iterator[Found]:
        if path.is_dir():
            yield from self._find_below(path)
        elif path.suffix.lower() in EXPORTS:
            yield from self._find_in_export(path)
        else:
            yield from self._find_file(path, path.absolute().parent)

    def _find_below(self, top: Path) -> Iterator[Found]:
        """Find the Markdown files below a folder, those of each folder in the order of their names."""
        folders = [str(top)]
        while folders:
            folder = folders.pop()
            try:
                entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
            except OSError as error:
                yield Found(partial(_refusal, folder, error))
                continue
            entries = [entry for entry in entries if not entry.name.startswith(".")]
            below = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
            folders += [entry.path for entry in reversed(below) if entry.name not in NOT_ENTERED]
            files = [Path(entry.path) for entry in entries if not entry.is_dir(follow_symlinks=False)]
            for path in [path for path in files if path.suffix.lower() in EXTENSIONS]:
                if path.name.partition(".")[0] == SECTION:
                    self.left_out["page of a section"] += 1
                else:
                    yield from self._find_file(path, top)

    def _find_file(self, path: Path, top: Path) -> Iterator[Found]:
        """Find a file, once however many paths lead to it."""
        if (resolved := os.path.realpath(path)) in self.files:
            return
        self.files.add(resolved)
        read = partial(_read, str(path), self._item_of_file, path, top)
        item = read()
        if isinstance(item, Refused):
            yield Found(lambda: item)
        else:
            parents = path.absolute().parent.parts[1:]
            when = item.created_at or item.fields.get("published_at") or LAST
            is_index = path.stem.partition(".")[0] == "index"
            yield Found(read, when, item.document.number, item.fields["slug"], parents[:-1] if is_index else parents)

    def _find_in_export(self, path: Path) -> Iterator[Found]:
        try:
            _check_regular(path)
            for post in EXPORTS[path.suffix.lower()](path):
                if post["kind"] not in self.kinds:
                    self.left_out[post["kind"]] += 1
                elif "error" in post:
                    name = post["slug"] or f"id {post['id']}"
                    yield Found(partial(Refused, shown(f"{path} ({name})"), None, post["error"]))
                else:
                    self.left_out["comment"] += post["comments"]
                    slug = self.slug_of(post["slug"] or post["title"] or f"post-{post['id']}")
                    read = partial(_read, f"{path} ({slug})", self._item_of_export, path, self.spool.tell(), slug)
                    self.spool.write(json.dumps(post).encode() + b"\n")
                    when = post["created_at"] or post["published_at"] or LAST
                    yield Found(read, when, 0, slug, (post["id"],))
        except (OSError, MarkdownError) as error:
            yield Found(partial(_refusal, str(path), error))

    def _item_of_file(self, path: Path, top: Path) -> Item:
        document = parse(_bytes_of(path))
        fields = document.fields
        paths, aliases, tags, dropped = read_other_names(document.unknown)
        address = paths[0] if paths else ""
        name, day = _undated(_name(path))
        last = re.sub(r"(^|/)index$", "", re.sub(r"\.html?$", "", address)).strip("/").rpartition("/")[2]
        fields.setdefault("slug", unquote(last) or shown(name))
        fields.setdefault("title", _title(shown(name)))
        if not document.is_exported and (day := day or _day_in(address)):
            fields.setdefault("published_at", day)
        folders = path.parent.parts[len(top.parts) :]
        if DRAFT_FOLDERS & {top.absolute().name, *folders}:
            fields.setdefault("status", "draft")
        elif "published_at" in fields:
            fields.setdefault("status", "published")
        if tags:
            fields["tags"] = fields.get("tags", []) + tags
        item = Item(shown(str(path)), fields, _created_at(document), dropped, document, (*paths, *aliases))
        return self._completed(item, "/".join(folders))

    def _item_of_export(self, file: Path, offset: int, slug: str) -> Item:
        self.spool.seek(offset)
        post = json.loads(self.spool.readline())
        content = markdown_of(post["html"], bare=post.get("bare", False)) if post["html"] else post.get("content", "")
        values = post | {"slug": post["slug"] or slug, "title": post["title"] or _title(slug), "content": content}
        fields = {name: value for name, value in values.items() if name in (*NAMES, "content") and value}
        source = f"{file} ({slug})" if post["title"] else f"{file} ({slug}, id {post['id']})"
        old_path = path_of(post.get("path"))
        item = Item(shown(source), fields, post["created_at"], old_paths=(old_path,) if old_path else ())
        return self._completed(item)

    def _completed(self, item: Item, folder: str = "") -> Item:
        """Complete a post.

        A post published in the future is scheduled, and one scheduled for the past is published. A post with another
        status keeps no time in the future.
        """
        fields, dropped, old_slug = item.fields, item.dropped, item.fields["slug"]
        published_at = fields.get("published_at", "")
        if fields.get("status") in ("published", "scheduled") and published_at:
            fields["status"] = "scheduled" if published_at > self.now else "published"
        elif published_at > self.now:
            del fields["published_at"]
            dropped += ("published_at in the future",)
        cover = fields.pop("cover_image", "")
        if self.site:
            fields["content"] = with_absolute_images(fields.get("content", ""), self.site, folder)
            cover = cover and absolute(cover, self.site, folder)
        if ABSOLUTE_URL.fullmatch(cover):
            fields["cover_image"] = cover
        elif cover:
            dropped += (item.document.sources.get("cover_image", "cover_image"),)
        created_at = next((time for time in (item.created_at, published_at) if time and time <= self.now), None)
        fields["slug"] = self.slug_of(old_slug)
        item = item._replace(created_at=created_at, dropped=dropped)
        if fields["slug"] == old_slug:
            return item
        notes = {"other slugs": item.document.line_of("slug")}
        return item._replace(old_paths=(f"/{old_slug}", *item.old_paths), notes=notes)


def _annotated(item: Item, slug: str) -> Item:
    """Return an item with the slug that it gets, and notes for its author."""
    notes, first = dict(item.notes), item.document.content_line
    if slug != item.fields["slug"]:
        notes["other slugs"] = item.document.line_of("slug")
    for name, line in not_portable(item.fields.get("content", "")).items():
        notes[name] = first and first + line - 1
    return item._replace(fields=item.fields | {"slug": slug}, notes=notes)


def _read(source: str, read: Callable[..., Item], *arguments: Any) -> Item | Refused:
    try:
        return read(*arguments)
    except (OSError, MarkdownError) as error:
        return _refusal(source, error)


def _refusal(source: str, error: OSError | MarkdownError) -> Refused:
    if isinstance(error, MarkdownError):
        return Refused(shown(source), error.line, error.reason)
    reason = "no such file or folder" if isinstance(error, FileNotFoundError) else error.strerror
    return Refused(shown(source), None, reason or "cannot be read")


def _check_regular(path: Path) -> None:
    """Raise MarkdownError for a device or a pipe, which might never end."""
    if path.exists() and not path.is_file():
        raise MarkdownError("must be a regular file")


def _bytes_of(path: Path) -> bytes:
    if path.exists() and path.suffix.lower() not in EXTENSIONS:
        raise MarkdownError(f"must be a folder, or end in {', '.join((*EXTENSIONS, *EXPORTS))}")
    _check_regular(path)
    with path.open("rb") as file:
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise MarkdownError(f"must have at most {MAX_FILE_BYTES // 1024**2} MiB")
    return data


def _name(path: Path) -> str:
    """Return the name of a file, or of its folder for `index.md`, with the language for `index.en.md`."""
    stem, dot, language = path.stem.partition(".")
    return path.absolute().parent.name + (dot + language).replace(".", "-") if stem == "index" else path.stem


def _undated(name: str) -> tuple[str, str]:
    """Split the name of a file into what follows a leading date, and that date as a time."""
    day = _midnight(name[:10]) if DATED_NAME.match(name) else ""
    return (name[11:], day) if day else (name, "")


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


def _day_in(path: str) -> str:
    match = DATE_IN_PATH.search(path)
    return _midnight(match[1].replace("/", "-")) if match else ""


def _created_at(document: Document) -> str:
    try:
        return rfc3339_of(str(document.created_at)) if document.created_at else ""
    except ValueError as error:
        raise MarkdownError(f"`created_at` {error}", document.lines["created_at"]) from None
