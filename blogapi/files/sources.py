"""Folders of Markdown files and exports: the posts in them, in the order of their dates, ready to be stored."""

import os
import pickle
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.parse import unquote, urljoin

from blogapi.clock import rfc3339
from blogapi.files.exports import EXPORTS, markdown_of
from blogapi.files.front_matter import MarkdownError, shown
from blogapi.files.markdown import MAX_FILE_BYTES, NAMES, Document, parse, path_of, read_other_names
from blogapi.post import URL, is_slug

EXTENSIONS = (".md", ".markdown", ".mdx")
# Folders of built or installed files. Hidden folders are not entered either.
NOT_ENTERED = ("node_modules", "bower_components", "vendor", "_site")
SECTION = "_index"  # the page of a whole section in Hugo and Zola
DRAFT_FOLDERS = {"_drafts", "drafts"}
LAST = "~"  # after every time
DATE_IN_PATH = re.compile(r"(?:^|/)(\d{4}/\d\d/\d\d)(?:/|$)", re.ASCII)

# Code, in which nothing counts. A fence that is never closed ends with the text, so that each text is searched once.
FENCE = r"^[ ]{0,3}(?P<fence>`{3,}|~{3,})[^\n]*\n(?s:.*?)(?:^[ ]{0,3}(?P=fence)[`~]*[ \t]*$|\Z)"
INLINE = r"`[^`\n]+`"
# Relative addresses of images: in elements, in Markdown, and in definitions of references.
RELATIVE = r"(?![a-z][a-z0-9+.-]*:|//|[#{])"
IMAGE = (
    r"(?P<before><img\b[^<>]*?\bsrc\s*=\s*[\"']?|!\[[^\]\[\n]*\]\(\s*<?"
    r"|^[ ]{0,3}\[[^\]\[\n]+\]:[ \t]*<?(?=[^\s<>]+\.(?:avif|gif|jpe?g|png|svg|webp)))"
    rf"(?P<address>{RELATIVE}[^\s\"'<>()]+)"
)
CODE_OR_IMAGE = re.compile(f"{FENCE}|{INLINE}|{IMAGE}", re.MULTILINE | re.IGNORECASE)
CODE = re.compile(f"{FENCE}|{INLINE}", re.MULTILINE)
# Constructs that work on one site only.
NOT_PORTABLE = {
    "relative images": re.compile(IMAGE, re.MULTILINE | re.IGNORECASE),
    "shortcodes": re.compile(r"\{\{|\{%|\[gallery\b|\[/[a-z][\w-]*\]|\[[a-z][\w-]*\s+[\w-]+=[^\[\]]*\]"),
    "wiki links": re.compile(r"\[\[[^\[\]\n]+\]\]"),
    "links to files": re.compile(r"\]\((?![a-z]+:)[^\s()]+\.mdx?[#)]"),
    "HTML": re.compile(r"</?[a-z][\w.-]*(?:\s[^<>]*)?/?>", re.IGNORECASE),
}


class Item(NamedTuple):
    """A post that was read."""

    source: str  # the name of the file, for messages
    fields: dict[str, Any]  # the fields of a post, with a `slug`, as in JSON. Not validated yet
    created_at: str | None  # RFC 3339; None: now
    dropped: tuple[str, ...] = ()  # the names of values that have no place in a post
    document: Document = Document({})  # its file, if it has one of its own
    old_paths: tuple[str, ...] = ()  # the former addresses
    notes: Mapping[str, int | None] = {}  # what its author should look at, each with its first line
    parents: tuple[str, ...] = ()  # the names that go in front of its slug if other posts have it, too


class Refused(NamedTuple):
    """A file or a post that cannot be read."""

    source: str
    line: int | None
    reason: str

    def __str__(self) -> str:
        place = f"{self.source}:{self.line}" if self.line else self.source
        return shown(f"{place}: {self.reason}")


class Found(NamedTuple):
    """The place of an item in the spool, with its order and slug."""

    offset: int
    when: str = LAST
    number: int = 0
    slug: str = ""  # the slug that it gets; empty if it is refused
    parents: tuple[str, ...] = ()


class Sources:
    """The posts in files and folders, each an Item or Refused, in the order of their dates; those without come last.

    They are read at once, and kept in the file `spool`: their number and slugs are known before the first is yielded,
    and the memory that this takes does not grow with the contents. `now` is a Unix time. With `pages`, there are also
    the pages of exports; relative addresses of images belong to `site` if it is given.
    """

    def __init__(
        self, paths: Iterable[Path], spool: IO, now: float, slug_of: Callable, pages: bool = False, site: str = ""
    ):
        self.spool = spool
        self.now = rfc3339(now)
        self.slug_of = lambda text: text if is_slug(text) else slug_of(text)
        self.kinds = ("post", "page") if pages else ("post",)
        self.site = site.rstrip("/")
        self.left_out: Counter[str] = Counter()  # everything else, by its kind
        self.files: set[str] = set()
        found = [self._kept(item) for path in paths for item in self._find(path)]
        self.found = sorted(self._distinct(found), key=lambda found: (found.when, found.number))

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Item | Refused]:
        sources: dict[str, str] = {}
        for found in self.found:
            self.spool.seek(found.offset)
            item = pickle.load(self.spool)
            if isinstance(item, Item):
                item = self._finished(item, found.slug, sources)
            yield item

    def _finished(self, item: Item, slug: str, sources: dict[str, str]) -> Item | Refused:
        """Return an item with its slug, its content in Markdown, and notes for its author."""
        if slug in sources:
            reason = f"{sources[slug]} has the slug {slug}, too: one of them needs a `slug` of its own"
            return Refused(item.source, item.document.line_of("slug"), reason)
        fields, first = item.fields, item.document.content_line
        notes = {"other slugs": item.document.line_of("slug")} if slug != fields["slug"] else {}
        if html := fields.pop("html", ""):
            try:
                fields["content"] = with_absolute_images(markdown_of(html), self.site)
            except MarkdownError as error:
                return Refused(item.source, None, error.reason)
        notes |= {name: first and first + line - 1 for name, line in not_portable(fields.get("content", "")).items()}
        sources[slug] = item.source
        return item._replace(fields=fields | {"slug": slug}, notes=notes, parents=())

    def _kept(self, item: Item | Refused) -> Found:
        offset = self.spool.tell()
        pickle.dump(item, self.spool)
        if isinstance(item, Refused):
            return Found(offset)
        when = item.created_at or item.fields.get("published_at", LAST)
        return Found(offset, when, item.document.number, self.slug_of(item.fields["slug"]), item.parents)

    def _distinct(self, found: list[Found]) -> list[Found]:
        """Put the last folders of their paths in front of slugs that several posts have, until they differ; or the day.

        Posts that even then have the same slug have none in front.
        """
        slugs = [each.slug for each in found]
        for depth in range(1, 2 + max((len(each.parents) for each in found), default=0)):
            counts = Counter(slugs)
            for index, each in enumerate(found):
                if each.slug and counts[slugs[index]] > 1:
                    front = each.parents[-depth:] if depth <= len(each.parents) else (each.when[:10],)
                    slugs[index] = self.slug_of(" ".join((*front, each.slug)))
        counts = Counter(slugs)
        return [each if counts[slug] > 1 else each._replace(slug=slug) for each, slug in zip(found, slugs, strict=True)]

    def _find(self, path: Path) -> Iterator[Item | Refused]:
        """Read a file, or all below a folder, those of each folder in the order of their names."""
        if not path.is_dir():
            yield from self._read(path, path.absolute().parent)
            return
        folders = [path]
        for folder in folders:
            try:
                entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
                below = [entry for entry in entries if entry.is_dir() and not entry.is_symlink()]
                files = [entry for entry in entries if entry.suffix.lower() in EXTENSIONS and not entry.is_dir()]
            except OSError as error:
                yield _refusal(folder, error)
                continue
            folders += [entry for entry in below if entry.name not in NOT_ENTERED]
            for file in files:
                if file.name.partition(".")[0] == SECTION:
                    self.left_out["page of a section"] += 1
                else:
                    yield from self._read(file, path)

    def _read(self, path: Path, top: Path) -> Iterator[Item | Refused]:
        """Read a file, once however many paths lead to it."""
        if (resolved := os.path.realpath(path)) in self.files:
            return
        self.files.add(resolved)
        try:
            known = (*EXTENSIONS, *EXPORTS)
            if path.exists() and not (path.is_file() and path.suffix.lower() in known):  # A pipe might never end.
                raise MarkdownError(f"must be a folder, or a regular file that ends in {', '.join(known)}")
            if path.suffix.lower() in EXPORTS:
                yield from self._read_export(path)
            elif path.stat().st_size > MAX_FILE_BYTES:
                raise MarkdownError(f"must have at most {MAX_FILE_BYTES // 1024**2} MiB")
            else:
                yield self._item_of_file(parse(path.read_bytes()), path, top)
        except (OSError, MarkdownError) as error:
            yield _refusal(path, error)

    def _read_export(self, path: Path) -> Iterator[Item | Refused]:
        for post in EXPORTS[path.suffix.lower()](path):
            if post["kind"] not in self.kinds:
                self.left_out[post["kind"]] += 1
            elif "error" in post:
                yield Refused(f"{path} ({post['slug'] or 'id ' + post['id']})", None, post["error"])
            else:
                self.left_out["comment"] += post.get("comments", 0)
                yield self._item_of_export(path, post)

    def _item_of_file(self, document: Document, path: Path, top: Path) -> Item:
        fields = document.fields
        paths, aliases, dropped = read_other_names(document.unknown)
        address = paths[0] if paths else ""
        last = re.sub(r"(^|/)index$", "", re.sub(r"\.html?$", "", address)).strip("/").rpartition("/")[2]
        name, day = _name(path)
        fields.setdefault("slug", unquote(last) or shown(name))
        fields.setdefault("title", _title(shown(name)))
        if not day and (match := DATE_IN_PATH.search(address)):
            day = _midnight(match[1].replace("/", "-"))
        if day and not document.is_exported:
            fields.setdefault("published_at", day)
        folders = path.parent.parts[len(top.parts) :]
        if DRAFT_FOLDERS & {top.absolute().name, *folders}:
            fields.setdefault("status", "draft")
        elif "published_at" in fields:
            fields.setdefault("status", "published")
        parents = path.absolute().parts[1 : -2 if path.stem.partition(".")[0] == "index" else -1]
        old_paths = (*paths, *aliases)
        item = Item(str(path), fields, document.created_at, dropped, document, old_paths, parents=parents)
        return self._completed(item, "/".join(folders))

    def _item_of_export(self, file: Path, post: dict[str, Any]) -> Item:
        slug = post["slug"] or self.slug_of(post["title"] or f"post-{post['id']}")
        fields = {name: value for name in (*NAMES, "content", "html") if (value := post.get(name))}
        fields = {"slug": slug, "title": _title(slug)} | fields
        name = self.slug_of(slug) + ("" if post["title"] else f", id {post['id']}")
        paths = tuple(filter(None, [path_of(post.get("path"))]))
        item = Item(f"{file} ({name})", fields, post["created_at"], old_paths=paths, parents=(post["id"],))
        return self._completed(item)

    def _completed(self, item: Item, folder: str = "") -> Item:
        """Complete a post: its date decides whether it is scheduled or published; others keep no date in the future."""
        fields, dropped = item.fields, item.dropped
        published_at = fields.get("published_at", "")
        if fields.get("status") in ("published", "scheduled") and published_at:
            fields["status"] = "scheduled" if published_at > self.now else "published"
        elif published_at > self.now:
            del fields["published_at"]
            dropped += ("published_at in the future",)
        if "content" in fields:
            fields["content"] = with_absolute_images(fields["content"], self.site, folder)
        cover = absolute(fields.pop("cover_image", ""), self.site, folder)
        if re.fullmatch(URL, cover):
            fields["cover_image"] = cover
        elif cover:
            dropped += (item.document.sources.get("cover_image", "cover_image"),)
        created_at = next((time for time in (item.created_at, published_at) if time and time <= self.now), None)
        old_paths = item.old_paths if is_slug(fields["slug"]) else (f"/{fields['slug']}", *item.old_paths)
        return item._replace(created_at=created_at, dropped=dropped, old_paths=old_paths)


def _refusal(path: Path, error: OSError | MarkdownError) -> Refused:
    if isinstance(error, MarkdownError):
        return Refused(str(path), error.line, error.reason)
    reason = "no such file or folder" if isinstance(error, FileNotFoundError) else error.strerror
    return Refused(str(path), None, reason or "cannot be read")


def _name(path: Path) -> tuple[str, str]:
    """Return the name of a file, or of the folder of `index.md`, without a leading date, and that date as a time."""
    stem, dot, language = path.stem.partition(".")
    of_folder = path.absolute().parent.name + (dot + language).replace(".", "-")  # index.en.md: its language, too
    name = of_folder if stem == "index" else path.stem
    day = _midnight(name[:10]) if name[10:11] == "-" and name[11:] else ""
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


def absolute(address: str, site: str, folder: str = "") -> str:
    """Return the URL of an image in a folder of a site, if one is given. An address that is not relative stays."""
    if not site or not re.match(f"{RELATIVE}.", address, re.IGNORECASE):
        return address
    return f"{site}{address}" if address.startswith("/") else urljoin(f"{site}/{folder}/", address)


def with_absolute_images(content: str, site: str, folder: str = "") -> str:
    """Make the addresses of the images in Markdown absolute, if a site is given."""

    def replaced(match: re.Match[str]) -> str:
        return match["before"] + absolute(match["address"], site, folder) if match["address"] else match[0]

    return CODE_OR_IMAGE.sub(replaced, content) if site else content


def not_portable(content: str) -> dict[str, int]:
    """Return the kinds of constructs in Markdown that work only on the old site, each with its first line."""
    content = CODE.sub(lambda match: "\n" * match[0].count("\n"), content)
    found = {name: match for name, pattern in NOT_PORTABLE.items() if (match := pattern.search(content))}
    return {name: content.count("\n", 0, match.start()) + 1 for name, match in found.items()}
