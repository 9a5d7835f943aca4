"""Read the posts in folders of Markdown files and in exports, in the order of their dates, ready to be stored."""

import os
import pickle
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.parse import unquote, urlsplit

from blogapi.api.schemas import URL
from blogapi.clock import rfc3339
from blogapi.documents import MAX_FORMER_SLUGS, is_slug
from blogapi.wings.markdown.files import FIELD_NAMES, MAX_FILE_BYTES, MarkdownFile, parse
from blogapi.wings.markdown.front_matter import MarkdownError, moment_of, shown
from blogapi.wings.markdown.html import markdown_of
from blogapi.wings.markdown.public import PLAIN_DRAFTS, Inherited, is_public, without_passwords
from blogapi.wings.transfer import ghost, names, permalinks, wordpress
from blogapi.wings.transfer.bounds import Note, shorten
from blogapi.wings.transfer.content import without_controls
from blogapi.wings.transfer.images import MARKDOWN_SUFFIXES, LocalImages, Placement, open_below, real_folders
from blogapi.wings.transfer.inherited import SCRIPTS, inherited_by
from blogapi.wings.transfer.names import SpoolEntry
from blogapi.wings.transfer.sites import bound_of, site_of

# The readers of exports, by file extension
EXPORTS: dict[str, Callable[[Path, tzinfo], Iterator[dict[str, Any]]]] = {
    ".xml": wordpress.read_posts,
    ".json": lambda path, zone: ghost.read_posts(path),  # Its times are UTC.
}
READABLE = (*MARKDOWN_SUFFIXES, *EXPORTS)
# In a folder, these are counted and not read: posts in other formats, and exports, which are given by their own path
OTHER_SUFFIXES = (".html", ".textile", ".mkd", ".mkdn", ".mkdown", ".rst", ".org", ".adoc", ".ipynb", *EXPORTS)
# Folders of built or installed files, which are skipped like hidden ones
NOT_ENTERED = ("node_modules", "bower_components", "vendor", "_site")
SECTION = "_index"  # the page of a whole section in Hugo and Zola
JEKYLL_FOLDERS = {"_posts", "_drafts"}
MEANINGLESS_FOLDERS = {*names.DRAFT_FOLDERS, *JEKYLL_FOLDERS, "posts", "content", "src"}  # never part of a slug
NO_FILE = MarkdownFile({})


@dataclass
class Item:
    """A post that was read."""

    source: str  # name of the file, for messages
    fields: dict[str, Any]  # fields of a post, with a `slug`, as in JSON; not validated yet
    created_at: str | None  # RFC 3339; None: now
    file: MarkdownFile = NO_FILE  # the Markdown file, unless the post is from an export
    old_paths: tuple[str, ...] = ()  # former addresses
    own_path: str = field(default="", compare=False)  # path of the file below the folder that was given
    notes: dict[str, Note] = field(default_factory=dict)  # for the author, by keys of `report.NOTES`
    parents: tuple[str, ...] = field(default=(), compare=False)  # go in front of a slug that other posts have, too
    images: tuple[str, ...] = ()  # files of the images in the post, which are stored before it
    missing: tuple[str, ...] = ()  # addresses of images that were not found
    zone: tzinfo = field(default=UTC, compare=False)  # of its site
    front: str = field(default="", compare=False)  # goes there first: the language, or the folder of its own address


class Failure(NamedTuple):
    """A file or a post that cannot be imported."""

    source: str
    line: int | None
    reason: str

    @classmethod
    def of(cls, path: Path, error: OSError | MarkdownError) -> "Failure":
        """Return the failure to read a file."""
        if isinstance(error, MarkdownError):
            return cls(str(path), error.line, error.reason)
        reason = "no such file or folder" if isinstance(error, FileNotFoundError) else error.strerror
        return cls(str(path), None, reason or "cannot be read")

    def __str__(self) -> str:
        place = f"{self.source}:{self.line}" if self.line else self.source
        return shown(f"{place}: {self.reason}")


@dataclass(eq=False)
class Sources:
    """The posts in files and folders, each an Item or Failure, sorted by date. Those without a date come last.

    All are read at once and kept in the file `spool`: their number and slugs are known before the first is yielded, and
    memory does not grow with their contents.
    """

    paths: Sequence[Path]
    spool: IO
    now: float  # Unix time
    pages: bool = False  # whether the pages of exports are read, too
    site: str | None = None  # goes in front of relative addresses of images that are not found
    images: LocalImages | None = None
    drop: Collection[str] = ()  # names that params lose
    permalink: str = ""  # the pattern of former addresses
    post_url: str = ""  # the pattern of present addresses
    zone: tzinfo = UTC  # of times without an offset, unless the site's configuration names another
    left_out: Counter[str] = field(default_factory=Counter, init=False)  # what is not imported, by kind
    unread: defaultdict[str, list[str]] = field(default_factory=partial(defaultdict, list), init=False)  # by kind
    recognized: dict[str, None] = field(default_factory=dict, init=False)  # programs, and the files that showed them
    unread_settings: dict[str, None] = field(default_factory=dict, init=False)  # configurations, and why
    hosts: Counter[str] = field(default_factory=Counter, init=False)  # images on other hosts, by host

    def __post_init__(self) -> None:
        self.roots = real_folders(self.paths)
        self.files: set[str] = set()
        found = [self._spool(item) for path in self.paths for item in self._find(path)]
        self.found = sorted(names.distinct(found), key=lambda found: (found.when, found.number))

    def __len__(self) -> int:
        return len(self.found)

    def __iter__(self) -> Iterator[Item | Failure]:
        self.sources: dict[str, str] = {}  # by slug
        self.slugs = {found.slug for found in self.found}
        self.addresses = {*self.slugs}
        for found in self.found:
            self.spool.seek(found.offset)
            item = pickle.load(self.spool)
            yield self._with_slug(item, found.slug) if isinstance(item, Item) else item

    def _with_slug(self, item: Item, slug: str) -> Item | Failure:
        """Return an item with its final slug, and without former slugs and addresses that other posts have."""
        fields, notes, old_paths, line_of = item.fields, item.notes, item.old_paths, item.file.line_of
        if slug in self.sources:
            reason = f"{self.sources[slug]} has the slug {slug}, too: one of them needs a `slug` of its own"
            return Failure(item.source, line_of("slug"), reason)
        self.sources[slug] = item.source
        if slug != fields["slug"]:
            notes["other slugs"] = line_of("slug")
            if slug != names.valid_slug(fields["slug"]):  # Other posts have that one, too.
                old_paths = (*old_paths, item.own_path or f"/{fields['slug']}")
        if former := dict.fromkeys(fields.get("former_slugs", ())):
            fields["former_slugs"] = [each for each in former if each not in self.slugs][:MAX_FORMER_SLUGS]
            if len(former) > len(fields["former_slugs"]):
                notes["former slugs"] = line_of("former_slugs")
        own = tuple(path for path in old_paths if _address(path) == slug or _address(path) not in self.addresses)
        if len(own) < len(old_paths):
            notes["shared addresses"] = None
        self.addresses.update(map(_address, own))
        fields["slug"], item.old_paths = slug, own
        return item

    def _spool(self, item: Item | Failure) -> SpoolEntry:
        offset = self.spool.tell()
        pickle.dump(item, self.spool)
        if isinstance(item, Failure):
            return SpoolEntry(offset)
        when = item.created_at or item.fields.get("published_at", names.LAST)
        slug = names.valid_slug(item.fields["slug"])
        day = when if when == names.LAST else moment_of(when, UTC).astimezone(item.zone).date().isoformat()
        is_given = "slug" in item.file.sources
        return SpoolEntry(offset, when, item.file.number, slug, item.parents, item.front, day, is_given)

    def _find(self, path: Path) -> Iterator[Item | Failure]:
        """Read a file, or all files below a folder, folder by folder and sorted by name."""
        if not path.is_dir():
            yield from self._read(path, path.absolute().parent, ("/",))
            return
        folders = [path]
        for folder in folders:
            try:
                os.stat(f"{folder}/.")  # From Python 3.14 on, is_dir() hides a missing permission.
                entries = sorted(folder.iterdir())
                below = [entry for entry in entries if entry.is_dir()]
            except OSError as error:
                yield Failure.of(folder, error)
                continue
            for entry in below:
                if reason := why_not_entered(entry):
                    self.unread[reason].append(str(entry))
                else:
                    folders.append(entry)
            for file in sorted({*entries} - {*below}):
                yield from self._find_file(file, path)

    def _find_file(self, file: Path, top: Path) -> Iterator[Item | Failure]:
        suffix = file.suffix.lower()
        if suffix in OTHER_SUFFIXES and not file.name.startswith("."):
            self.unread[f"file in {suffix}"].append(str(file))
        elif file.name.startswith("."):
            self.left_out["file beginning with a dot"] += suffix in MARKDOWN_SUFFIXES
        elif suffix in MARKDOWN_SUFFIXES:
            if reason := self._why_not(file):
                self.left_out[reason] += 1
            else:
                yield from self._read(file, top, self.roots)

    def _why_not(self, file: Path) -> str:
        """Return why a Markdown file in a folder is left out, as a kind of file; "" if it is read."""
        if file.name.partition(".")[0] == SECTION:
            return "page of a section"
        is_outside = file.is_symlink() and not os.path.realpath(file).startswith(self.roots)
        return "link out of the folders" if is_outside else ""

    def _read(self, path: Path, top: Path, roots: tuple[str, ...]) -> Iterator[Item | Failure]:
        """Read a file in one of the folders `roots`; only once if several paths lead to it."""
        if (resolved := os.path.realpath(path)) in self.files:
            return
        self.files.add(resolved)
        try:
            if path.exists() and not (path.is_file() and path.suffix.lower() in READABLE):  # A pipe might never end.
                raise MarkdownError(f"must be a folder, or a regular file that ends in {', '.join(READABLE)}")
            if path.suffix.lower() in EXPORTS:
                yield from self._read_export(path)
                return
            with open_below(path, roots) as opened:
                data = opened.read(MAX_FILE_BYTES + 1)
            if len(data) > MAX_FILE_BYTES:
                raise MarkdownError(f"must have at most {MAX_FILE_BYTES // 1024**2} MiB")
            if item := self._item_of_file(data, path, top):
                yield item
        except (OSError, MarkdownError) as error:
            yield Failure.of(path, error)

    def _read_export(self, path: Path) -> Iterator[Item | Failure]:
        for post in EXPORTS[path.suffix.lower()](path, self.zone):
            if post["kind"] != "post" and not (post["kind"] == "page" and self.pages):
                self.left_out[post["kind"]] += 1
            elif "error" in post:
                yield Failure(f"{path} ({post['slug'] or 'id ' + post['id']})", None, post["error"])
            else:
                self.left_out["comment"] += post.get("comments", 0)
                yield self._item_of_export(path, post)

    def _item_of_file(self, data: bytes, path: Path, top: Path) -> Item | None:
        """Return the post in a Markdown file below `top`; None if it was in the trash. Raises MarkdownError."""
        place, bound = Path(os.path.abspath(path)), bound_of(top)
        site = site_of(place.parent, bound, self.zone)
        self.recognized |= {site.recognized: None} if site.recognized else {}
        self.unread_settings |= {site.unread: None} if site.unread else {}
        is_jekyll = not JEKYLL_FOLDERS.isdisjoint(path.absolute().parts[:-1])
        file = parse(data, divides_tags=is_jekyll, zone=site.zone)
        if file.fields.get("status") == "trash":
            self.left_out["post (trash)"] += 1
            return None
        folders = path.parent.parts[len(top.parts) :]
        address = next(iter(permalinks.read_paths(file.others)[0]), "")
        name = names.infer(file, path, {top.absolute().name, *folders}, address, site.zone)
        item = Item(
            str(path),
            file.fields,
            file.created_at,
            file,
            own_path="/".join(("", *_meaningful(folders), name)),
            notes=names.notes_of(file, path, site),
            parents=_meaningful(path.absolute().parts[1 : -2 if path.stem.partition(".")[0] == "index" else -1]),
            zone=site.zone,
            front=names.language_of(path, file.values) or permalinks.parted(address)[0],
        )
        is_past = file.fields.get("published_at", names.LAST) <= rfc3339(self.now)
        pattern = self.permalink or (site.pattern if is_jekyll else "") if is_past else ""
        of_pattern = pattern, site.folder, site.zone
        by_pattern = permalinks.address_by_pattern(file, path.parent, name, *of_pattern) if pattern else ""
        if file.is_exported:  # Its status is that of the post here, whatever its folder and its `params` say.
            self._hide(item, {name: value for name, value in file.values.items() if name != "params"})
        else:
            inherited = [*inherited_by(place, bound, site)]
            scripts = [each.source for each in inherited if each.source.endswith(SCRIPTS)]
            self.unread_settings |= {f"{name} (a script: only plain values in it count)": None for name in scripts}
            self._hide(item, file.values, inherited)
        self._place_images(item, path.parent, top)
        self._complete(item)
        self._add_addresses(item, by_pattern, permalinks.address_of_file(path, folders))
        return item

    def _hide(self, item: Item, values: Mapping[str, Any], inherited: Iterable[Inherited] = ()) -> None:
        """Make a post a draft unless it was public, and remove passwords from it."""
        fields = item.fields
        if "params" in fields:
            fields["params"] = without_passwords(fields["params"])
        is_shown, why = is_public(values, inherited, rfc3339(self.now))
        if is_shown:
            return
        if why.lower() not in PLAIN_DRAFTS:
            item.notes["hidden"] = item.file.line_of(why.partition(":")[0]), why
        if fields.get("status") != "archived":
            fields["status"] = "draft"

    def _add_addresses(self, item: Item, by_pattern: str, by_name: str) -> None:
        """Add the old addresses of a post, and the former slugs in its aliases."""
        paths, aliases = permalinks.read_paths(item.file.others)
        own = paths or [path for path in (by_pattern,) if path]
        item.old_paths = (*own, *item.old_paths, *aliases)
        addresses = next(iter(own), by_name), urlsplit(self.post_url).path
        if former := permalinks.former_slugs(aliases, filter(None, addresses)):
            item.fields["former_slugs"] = [*item.fields.get("former_slugs", ()), *former]

    def _item_of_export(self, file: Path, post: dict[str, Any]) -> Item | Failure:
        slug = post["slug"] or names.valid_slug(post["title"] or f"post-{post['id']}")
        fields = {name: value for name in (*FIELD_NAMES, "content", "html") if (value := post.get(name))}
        fields = {"slug": slug, "title": names.title_of(slug)} | fields
        name = names.valid_slug(slug) + ("" if post["title"] else f", id {post['id']}")
        paths = tuple(filter(None, map(permalinks.path_of, (post.get("path"), *post.get("older", ())))))
        source, notes = f"{file} ({name})", dict.fromkeys(post.get("notes", ())) | without_controls(fields)
        try:
            if html := fields.pop("html", ""):
                fields["content"] = markdown_of(html)
        except MarkdownError as error:
            return Failure(source, None, error.reason)
        item = Item(source, fields, post["created_at"], old_paths=paths, notes=notes, parents=(post["id"],))
        self._hide(item, post["values"])
        self._place_images(item)
        self._complete(item)
        return item

    def _place_images(self, item: Item, folder: Path | None = None, top: Path | None = None) -> None:
        """Replace the addresses of images with those of the service; make other relative ones absolute."""
        placement = Placement(self.images, self.site, self.hosts, folder, top)
        notes, first = placement.replace(item.fields), item.file.content_line
        item.notes |= {name: line and first and first + line - 1 for name, line in notes.items()}
        item.images = tuple(placement.files)
        item.missing = tuple(placement.missing) if self.images else ()

    def _complete(self, item: Item) -> None:
        """Determine the status and the dates of a post, and bring its fields within their bounds.

        A post with a date in the future is scheduled, if it was to be published; else it loses the date.
        """
        fields, notes, now = item.fields, item.notes, rfc3339(self.now)
        published_at = fields.get("published_at", "")
        if fields.get("status") == "published" and not published_at:
            dates = names.date_names(item.file)
            kind = "no dates" if item.file.lines else "no dates in exports"
            notes[kind] = (item.file.line_of(dates[0]), ", ".join(dates)) if dates else None
        if fields.get("status") in ("published", "scheduled") and published_at:
            fields["status"] = "scheduled" if published_at > now else "published"
        elif published_at > now:
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
        item.created_at = next((time for time in (item.created_at, published_at) if time and time <= now), None)
        if not is_slug(fields["slug"]):
            item.old_paths = (f"/{fields['slug']}", *item.old_paths)


def why_not_entered(folder: Path) -> str:
    """Return why a folder is not entered, as a kind of folder; "" if it is."""
    if folder.name.startswith("."):
        return "folder beginning with a dot"
    if folder.name in NOT_ENTERED:
        return f"folder called {folder.name}"
    return "folder behind a link" if folder.is_symlink() else ""


def _address(path: str) -> str:
    return unquote(path, errors="surrogateescape").strip("/")


def _meaningful(folders: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in folders if name not in MEANINGLESS_FOLDERS)
