"""Folders of Markdown files and exports: the posts in them, in the order of their dates, ready to be stored."""

import os
import pickle
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import UTC, tzinfo
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.parse import unquote

from blogapi.api.schemas import URL
from blogapi.clock import rfc3339
from blogapi.documents import is_slug
from blogapi.wings.images.rebase import each_text
from blogapi.wings.markdown.files import FIELD_NAMES, MAX_FILE_BYTES, MarkdownFile, parse
from blogapi.wings.markdown.front_matter import MarkdownError, shown
from blogapi.wings.markdown.html import markdown_of
from blogapi.wings.transfer import ghost, permalinks, wordpress
from blogapi.wings.transfer.bounds import Note, shorten
from blogapi.wings.transfer.content import absolute, host_of, not_portable, with_images, without_controls
from blogapi.wings.transfer.images import MARKDOWN_SUFFIXES, LocalImages, Placement, open_below, real_folders
from blogapi.wings.transfer.names import date_names, has_data_file, language_of, midnight, name_and_day, title_of
from blogapi.wings.transfer.permalinks import Site
from blogapi.wings.transfer.slugs import LAST, SpoolEntry, distinct, valid_slug

# The readers of exports, by the extension of the file.
EXPORTS: dict[str, Callable[[Path, tzinfo], Iterator[dict[str, Any]]]] = {
    ".xml": wordpress.read_posts,
    ".json": lambda path, zone: ghost.read_posts(path),  # Its times are UTC.
}
# Folders of built or installed files. Hidden folders are not entered either.
NOT_ENTERED = ("node_modules", "bower_components", "vendor", "_site")
SECTION = "_index"  # the page of a whole section in Hugo and Zola
DRAFT_FOLDERS = {"_drafts", "drafts"}
JEKYLL_FOLDERS = {"_posts", "_drafts"}
# These are never put in front of a slug.
MEANINGLESS_FOLDERS = {*DRAFT_FOLDERS, *JEKYLL_FOLDERS, "posts", "content", "src"}
# Files of posts that are not read, and exports, which are read by their own path
OTHER_SUFFIXES = (".html", ".textile", ".mkd", ".mkdn", ".mkdown", ".rst", ".org", ".adoc", ".ipynb", *EXPORTS)
DATE_IN_PATH = re.compile(r"(?:^|/)(\d{4}/\d\d/\d\d)(?:/|$)", re.ASCII)


class Item(NamedTuple):
    """A post that was read."""

    source: str  # the name of the file, for messages
    fields: dict[str, Any]  # the fields of a post, with a `slug`, as in JSON. Not validated yet
    created_at: str | None  # RFC 3339; None: now
    file: MarkdownFile = MarkdownFile({})  # its file, if it has one of its own
    old_paths: tuple[str, ...] = ()  # the former addresses
    own_path: str = ""  # that of its file below the folder that was given
    notes: Mapping[str, Note] = {}  # from `report.NOTES`, for its author
    parents: tuple[str, ...] = ()  # the names that go in front of its slug if other posts have it, too
    images: tuple[str, ...] = ()  # the files of the images that it shows, to be stored before it
    missing: int = 0  # images that were not found
    front: str = ""  # what goes in front of its slug first of all: its language, or the path in its front matter


class Failure(NamedTuple):
    """A file or a post that cannot be imported."""

    source: str
    line: int | None
    reason: str

    def __str__(self) -> str:
        place = f"{self.source}:{self.line}" if self.line else self.source
        return shown(f"{place}: {self.reason}")


class Sources:
    """The posts in files and folders, each an Item or Failure, in the order of their dates; those without come last.

    They are read at once, and kept in the file `spool`: their number and slugs are known before the first is yielded,
    and the memory that this takes does not grow with the contents. `now` is a Unix time. With `pages`, there are also
    the pages of exports. Addresses of images lead to those of `images`; other relative ones belong to `site`, if given.
    The names in `drop` are left out of `params`. A `permalink` is the pattern of the former addresses, and `post_url`
    that of the present ones. Times without an offset are of the `zone`, unless the site's configuration names another.
    """

    def __init__(
        self,
        paths: Iterable[Path],
        spool: IO,
        now: float,
        *,
        pages: bool = False,
        site: str = "",
        images: LocalImages | None = None,
        drop: Collection[str] = (),
        permalink: str = "",
        post_url: str = "",
        zone: tzinfo = UTC,
    ):
        self.spool = spool
        self.now = rfc3339(now)
        self.kinds = ("post", "page") if pages else ("post",)
        self.site = site.rstrip("/")
        self.images = images
        self.drop = drop
        self.permalink = permalink
        self.post_url = re.sub("^https?://[^/]*", "", post_url)
        self.zone = zone
        self.left_out: Counter[str] = Counter()  # everything else, by its kind
        self.hosts: Counter[str] = Counter()  # of the images that are elsewhere
        self.files: set[str] = set()
        paths = list(paths)
        self.roots = real_folders(paths)
        found = [self._spool(item) for path in paths for item in self._find(path)]
        self.found = sorted(distinct(found), key=lambda found: (found.when, found.number))

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Item | Failure]:
        sources: dict[str, str] = {}
        self.slugs = {found.slug for found in self.found}
        self.addresses = {*self.slugs}
        for found in self.found:
            self.spool.seek(found.offset)
            item = pickle.load(self.spool)
            yield self._with_slug(item, found.slug, sources) if isinstance(item, Item) else item

    def _with_slug(self, item: Item, slug: str, sources: dict[str, str]) -> Item | Failure:
        """Return an item with its slug, its content in Markdown, and notes for its author."""
        if slug in sources:
            reason = f"{sources[slug]} has the slug {slug}, too: one of them needs a `slug` of its own"
            return Failure(item.source, item.file.line_of("slug"), reason)
        fields, first = item.fields, item.file.content_line
        notes = {**item.notes}
        old_paths = item.old_paths
        if slug != fields["slug"]:
            notes["other slugs"] = item.file.line_of("slug")
            if slug != valid_slug(fields["slug"]):  # Other posts have that one, too.
                old_paths = (*old_paths, item.own_path or f"/{fields['slug']}")
        if html := fields.pop("html", ""):
            try:
                item = self._with_images(item._replace(fields={"content": markdown_of(html)}))
            except MarkdownError as error:
                return Failure(item.source, None, error.reason)
            fields |= item.fields
            notes |= item.notes
        notes |= {name: first and first + line - 1 for name, line in not_portable(fields.get("content", "")).items()}
        if former := fields.get("former_slugs"):
            fields["former_slugs"] = [each for each in former if each not in self.slugs]
        sources[slug] = item.source
        own = [path for path in old_paths if _address(path) == slug or _address(path) not in self.addresses]
        notes |= {"shared addresses": None} if len(own) < len(old_paths) else {}
        self.addresses.update(map(_address, own))
        return item._replace(
            fields=fields | {"slug": slug}, notes=notes, parents=(), front="", own_path="", old_paths=tuple(own)
        )

    def _spool(self, item: Item | Failure) -> SpoolEntry:
        offset = self.spool.tell()
        pickle.dump(item, self.spool)
        if isinstance(item, Failure):
            return SpoolEntry(offset)
        when = item.created_at or item.fields.get("published_at", LAST)
        return SpoolEntry(offset, when, item.file.number, valid_slug(item.fields["slug"]), item.parents, item.front)

    def _find(self, path: Path) -> Iterator[Item | Failure]:
        """Read a file, or all below a folder, those of each folder in the order of their names."""
        if not path.is_dir():
            yield from self._read(path, path.absolute().parent, ("/",))
            return
        folders = [path]
        for folder in folders:
            try:
                os.stat(f"{folder}/.")  # From Python 3.14 on, is_dir() does not tell that it may not look.
                entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
                below = [entry for entry in entries if entry.is_dir() and not entry.is_symlink()]
                files = [entry for entry in entries if entry.suffix.lower() in MARKDOWN_SUFFIXES and not entry.is_dir()]
                for entry in entries:
                    if entry.suffix.lower() in OTHER_SUFFIXES and not entry.is_dir():
                        self.left_out[f"file in {entry.suffix.lower()}"] += 1
            except OSError as error:
                yield _failure(folder, error)
                continue
            folders += [entry for entry in below if entry.name not in NOT_ENTERED]
            for file in files:
                if file.name.partition(".")[0] == SECTION:
                    self.left_out["page of a section"] += 1
                elif file.is_symlink() and not os.path.realpath(file).startswith(self.roots):
                    self.left_out["link out of the folders"] += 1
                else:
                    yield from self._read(file, path, self.roots)

    def _read(self, path: Path, top: Path, roots: tuple[str, ...]) -> Iterator[Item | Failure]:
        """Read a file in one of the folders `roots`, once even if several paths lead to it."""
        if (resolved := os.path.realpath(path)) in self.files:
            return
        self.files.add(resolved)
        try:
            readable = (*MARKDOWN_SUFFIXES, *EXPORTS)
            if path.exists() and not (path.is_file() and path.suffix.lower() in readable):  # A pipe might never end.
                raise MarkdownError(f"must be a folder, or a regular file that ends in {', '.join(readable)}")
            if path.suffix.lower() in EXPORTS:
                yield from self._read_export(path)
            elif path.stat().st_size > MAX_FILE_BYTES:
                raise MarkdownError(f"must have at most {MAX_FILE_BYTES // 1024**2} MiB")
            else:
                is_jekyll = not JEKYLL_FOLDERS.isdisjoint(path.absolute().parts[:-1])
                with open_below(path, roots) as opened:
                    data = opened.read(MAX_FILE_BYTES)
                site = permalinks.site_of(path.parent.absolute(), self.zone)
                file = parse(data, divides_tags=is_jekyll, zone=site.zone)
                if file.fields.get("status") == "trash":
                    self.left_out["post (trash)"] += 1
                else:
                    yield self._item_of_file(file, path, top, is_jekyll, site)
        except (OSError, MarkdownError) as error:
            yield _failure(path, error)

    def _read_export(self, path: Path) -> Iterator[Item | Failure]:
        for post in EXPORTS[path.suffix.lower()](path, self.zone):
            if post["kind"] not in self.kinds:
                self.left_out[post["kind"]] += 1
            elif "error" in post:
                yield Failure(f"{path} ({post['slug'] or 'id ' + post['id']})", None, post["error"])
            else:
                self.left_out["comment"] += post.get("comments", 0)
                yield self._item_of_export(path, post)

    def _item_of_file(self, file: MarkdownFile, path: Path, top: Path, is_jekyll: bool, site: Site) -> Item:
        fields = file.fields
        paths, aliases = permalinks.read_paths(file.others)
        address = paths[0] if paths else ""
        above, last = permalinks.parted(address)
        name, day = name_and_day(path, site.zone)
        fields.setdefault("slug", unquote(last) or shown(name))
        fields.setdefault("title", title_of(shown(name)))
        if not day and (match := DATE_IN_PATH.search(address)):
            day = midnight(match[1], site.zone)
        if day and not file.is_exported:
            fields.setdefault("published_at", day)
        folders = path.parent.parts[len(top.parts) :]
        if DRAFT_FOLDERS & {top.absolute().name, *folders} and not file.is_exported:
            fields.setdefault("status", "draft")
        elif "published_at" in fields:
            fields.setdefault("status", "published")
        parents = path.absolute().parts[1 : -2 if path.stem.partition(".")[0] == "index" else -1]
        parents = tuple(name for name in parents if name not in MEANINGLESS_FOLDERS)
        own_path = "/".join(("", *(folder for folder in folders if folder not in MEANINGLESS_FOLDERS), name))
        notes: dict[str, Note] = {**without_controls(fields)}
        if str(file.values.get("status")).lower() == "private":
            notes["private posts"] = file.line_of("status")
        if site.is_zone_unknown:
            notes["time zones"] = None
        if not {"status", "published_at"} & fields.keys() and has_data_file(path.absolute().parent):
            notes["undated"] = None
        front = language_of(path, file.values) or above
        item = Item(str(path), fields, file.created_at, file, (*paths, *aliases), own_path, notes, parents, front=front)
        item = self._completed(self._with_images(item, path.parent, top))
        is_dated = fields.get("status") == "published" and "published_at" in fields
        if not paths and (is_jekyll or self.permalink) and is_dated:
            address = permalinks.address_by_pattern(file, path.parent, name, self.permalink, site)
            item = item._replace(old_paths=(address, *item.old_paths))
        addresses = [address or permalinks.address_of_file(path, folders), self.post_url]
        if former := permalinks.former_slugs(aliases, filter(None, addresses)):
            item.fields["former_slugs"] = [*item.fields.get("former_slugs", ()), *former]
        return item

    def _item_of_export(self, file: Path, post: dict[str, Any]) -> Item:
        slug = post["slug"] or valid_slug(post["title"] or f"post-{post['id']}")
        fields = {name: value for name in (*FIELD_NAMES, "content", "html") if (value := post.get(name))}
        fields = {"slug": slug, "title": title_of(slug)} | fields
        name = valid_slug(slug) + ("" if post["title"] else f", id {post['id']}")
        paths = tuple(filter(None, map(permalinks.path_of, (post.get("path"), *post.get("older", ())))))
        source, notes = f"{file} ({name})", dict.fromkeys(post.get("notes", ())) | without_controls(fields)
        item = Item(source, fields, post["created_at"], old_paths=paths, notes=notes, parents=(post["id"],))
        return self._completed(self._with_images(item))

    def _with_images(self, item: Item, folder: Path | None = None, top: Path | None = None) -> Item:
        """Let the addresses of images lead to those that will be stored; make other relative ones absolute."""
        fields, notes, first = item.fields, {**item.notes}, item.file.content_line
        placement = self.images.place(fields, folder, top) if self.images else None
        below = "/".join(folder.parts[len(top.parts) :]) if folder and top else ""
        place = partial(self._place_image, placement, below)
        if "content" in fields:
            embedded = (placement.embedded,) if placement else ()
            fields["content"], line = with_images(fields["content"], place, *embedded)
            notes |= {"relative images": first and first + line - 1} if line else {}
        if "cover_image" in fields:
            fields["cover_image"] = place(fields["cover_image"])
        if placement is None:
            return item._replace(notes=notes)
        if "params" in fields:
            fields["params"] = each_text(fields["params"], placement.in_params)
        notes |= {"lost images": None} if placement.is_lost else {}
        notes |= {"images in params": None} if placement.lacks_params else {}
        missing = item.missing + len(placement.missing)
        return item._replace(images=(*item.images, *placement.files), notes=notes, missing=missing)

    def _place_image(self, placement: Placement | None, folder: str, address: str) -> str:
        """Return the address of an image: stored, else absolute if the site is known. Count its host if not ours."""
        address = absolute(placement.placed(address) if placement else address, self.site, folder)
        host = host_of(address)
        if host and not (self.images and address.startswith(f"{self.images.url}/")):
            self.hosts[host] += 1
        return address

    def _completed(self, item: Item) -> Item:
        """Complete a post: its date decides whether it is scheduled or published; others keep no date in the future."""
        fields, notes = item.fields, {**item.notes}
        published_at = fields.get("published_at", "")
        if fields.get("status") == "published" and not published_at:
            names = date_names(item.file)
            kind = "no dates" if item.file.lines else "no dates in exports"
            notes[kind] = (item.file.line_of(names[0]), ", ".join(names)) if names else None
        if fields.get("status") in ("published", "scheduled") and published_at:
            fields["status"] = "scheduled" if published_at > self.now else "published"
        elif published_at > self.now:
            del fields["published_at"]
            notes["dates to come"] = item.file.line_of("published_at")
        cover, params = fields.pop("cover_image", ""), fields.get("params", {})
        if re.fullmatch(URL, cover):
            fields["cover_image"] = cover
        elif cover:
            notes["covers"] = item.file.line_of("cover_image")
            if cover not in params.values():
                params = params | {item.file.sources.get("cover_image", "cover_image"): cover}
        if params:
            fields["params"] = {name: value for name, value in params.items() if name not in self.drop}
        notes |= shorten(fields, item.file)
        created_at = next((time for time in (item.created_at, published_at) if time and time <= self.now), None)
        old_paths = item.old_paths if is_slug(fields["slug"]) else (f"/{fields['slug']}", *item.old_paths)
        return item._replace(created_at=created_at, notes=notes, old_paths=old_paths)


def _address(path: str) -> str:
    return unquote(path, errors="surrogateescape").strip("/")


def _failure(path: Path, error: OSError | MarkdownError) -> Failure:
    if isinstance(error, MarkdownError):
        return Failure(str(path), error.line, error.reason)
    reason = "no such file or folder" if isinstance(error, FileNotFoundError) else error.strerror
    return Failure(str(path), None, reason or "cannot be read")
