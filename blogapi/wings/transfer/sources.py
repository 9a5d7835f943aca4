"""Read the posts in Markdown folders and in exports, and prepare them for storage, sorted by date."""

import hashlib
import json
import os
import pickle
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from functools import cache, partial
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from blogapi.clock import rfc3339
from blogapi.markdown.files import MAX_FILE_BYTES, MarkdownFile, ReadOptions, parse
from blogapi.markdown.front_matter import MarkdownError, shown
from blogapi.markdown.html import markdown_of
from blogapi.markdown.programs import HUGO_CONFIGS, OURS, SCRIPTS
from blogapi.wings.transfer import feeds, names
from blogapi.wings.transfer.completion import complete, hide_unless_public, move_unknown_status, note_dates
from blogapi.wings.transfer.content import without_controls
from blogapi.wings.transfer.folder import MARKDOWN_SUFFIXES, open_below, read_text, real_folders
from blogapi.wings.transfer.formats import BY_PATH, NOT_AN_EXPORT, READABLE, READERS, advice_on, is_part
from blogapi.wings.transfer.images import LocalImages, Placement
from blogapi.wings.transfer.inherited import inherited_by, is_settings, values_of_file
from blogapi.wings.transfer.items import ExportedPost, Failure, Item, LeftOut, Note, NoteDetails
from blogapi.wings.transfer.names import SpoolEntry, TakenUrls, valid_slug, with_distinct_slugs
from blogapi.wings.transfer.sites import Site, bound_of, files_in, site_of

OUR_FILES = ".blogapi"  # prefix of the state files that a push or pull writes
# Folders of build output and dependencies; skipped, like hidden folders
SKIPPED_FOLDERS = ("node_modules", "bower_components", "vendor", "_site")
TEMPLATES = "archetypes"  # Hugo's folder of templates for new posts
SECTION_INDEX = "_index"  # in Hugo and Zola, the page that introduces a section


def folder_left_out(folder: Path) -> LeftOut | None:
    """Describe a folder that is not read. Return None for any other folder."""
    kind = "folder reached through a link" if folder.is_symlink() else ""
    if folder.name in SKIPPED_FOLDERS or (folder.name == TEMPLATES and any(files_in(folder.parent, HUGO_CONFIGS))):
        kind = f"folder called {folder.name}"
    if folder.name.startswith("."):
        kind = "folder with a name that begins with a dot"
    return LeftOut(kind, str(folder)) if kind else None


MAX_ADVISED = 100  # at most this many unread files of each kind are examined to give advice
# Markers that WordPress and Ghost put before members-only text
PAYWALL = re.compile(
    r"<!-- ?(?:wp:)?[\w/-]*(?:premium-content|paywall|members?-only|restrict|subscriber)[\w/-]*"
    r"|\[(?:[\w-]*(?:restrict|member|paywall|premium|subscriber|protected)[\w-]*|private|hide)\b[^\]\n]{0,40}",
    re.IGNORECASE,
)
MEANINGLESS_FOLDERS = {*names.DRAFT_FOLDERS, "_posts", "posts", "content", "source", "src"}  # never part of a slug


@dataclass(eq=False)
class Sources:
    """The posts in files and folders, as Items and Failures sorted by date. Posts without a date come last.

    All posts are read and written to the file `spool` before the first one is yielded. By then, their number and their
    slugs are known. Memory use does not grow with the content of the posts.
    """

    paths: Sequence[Path]
    spool: IO
    now: float  # Unix time
    faults: Mapping[Path, str] = field(default_factory=dict)  # path that cannot be read -> the reason
    pages: bool = False  # whether to read the pages in exports
    site: str | None = None  # base URL for the relative URLs of missing images
    images: LocalImages | None = None
    publish: bool = False  # whether to publish dated posts even if their program is unknown
    drop: Collection[str] = ()  # names to leave out of params
    permalink: str = ""  # pattern of the posts' old URLs
    post_url: str = ""  # pattern of the posts' current URLs
    date_from: str = ""  # name in front matter to read the date from if a file has no other date
    zone: tzinfo = UTC  # time zone for times without an offset, unless the site's configuration sets another
    skip: Callable[[Path], str] = lambda path: ""  # returns why a Markdown file is left out (a noun phrase), or ""
    is_movable: bool = False  # whether slugs must stay the same if the folder moves or other files change
    check: Callable[[bytes], None] = lambda data: None  # raises MarkdownError for bytes that are not a post
    sha256: dict[str, str] = field(default_factory=dict, init=False)  # path of a Markdown file -> hash
    left_out: Counter[str] = field(default_factory=Counter, init=False)  # kind -> count
    # kind -> files and folders that were not read
    unread: dict[str, list[str]] = field(default_factory=partial(defaultdict, list), init=False)
    recognized: dict[str, None] = field(default_factory=dict, init=False)  # programs, and how each was recognized
    unread_settings: dict[str, None] = field(default_factory=dict, init=False)  # configurations not read, and why
    hosts: Counter[str] = field(default_factory=Counter, init=False)  # other host -> number of images on it

    def __post_init__(self) -> None:
        self.roots = real_folders(self.paths)
        self.files: set[str] = set()
        self.real_folder = cache(os.path.realpath)
        self.taken: set[str] = set()  # real paths of other files that posts use, such as images
        entries = [self._spool(item) for path in self.paths for item in self._find(path)]
        self.unread = {kind: left for kind, files in self.unread.items() if (left := self._not_taken(files))}
        distinct = entries if self.is_movable else with_distinct_slugs(entries)
        self.entries = sorted(distinct, key=lambda entry: (entry.when, entry.number))

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[Item | Failure]:
        taken = TakenUrls(entry.slug for entry in self.entries)
        for entry in self.entries:
            self.spool.seek(entry.offset)
            item = pickle.load(self.spool)
            taken = TakenUrls([entry.slug]) if self.is_movable else taken  # A push chooses slugs itself.
            yield taken.assign(item, entry.slug) if isinstance(item, Item) else item

    def _not_taken(self, files: list[str]) -> list[str]:
        return [file for file in files if os.path.realpath(file) not in self.taken and not is_settings(Path(file))]

    def _spool(self, item: Item | Failure) -> SpoolEntry:
        offset = self.spool.tell()
        pickle.dump(item, self.spool)
        return SpoolEntry(offset) if isinstance(item, Failure) else SpoolEntry.of(item, offset)

    def _find(self, top: Path) -> Iterator[Item | Failure]:
        """Read a file, or all files in and under a folder. Within a folder, files are sorted by name."""
        if not top.is_dir():
            yield from self._read(top, top.absolute().parent, ("/",))
            return
        folders = [top]
        for folder in folders:
            try:
                os.stat(f"{folder}/.")  # raises PermissionError, which is_dir() hides since Python 3.14
                entries = sorted((not path.is_dir(), path) for path in folder.iterdir())  # folders first
            except OSError as error:
                yield Failure.of(folder, error)
                continue
            for is_file, path in entries:
                if is_file and path.name.startswith(OUR_FILES):
                    continue
                left_out = self._file_left_out(path) if is_file else folder_left_out(path)
                if left_out and left_out.path:
                    self.unread[left_out.kind].append(left_out.path)
                elif left_out:
                    self.left_out[left_out.kind] += 1
                elif is_file:
                    yield from self._read(path, top, self.roots)
                else:
                    folders.append(path)

    def _file_left_out(self, file: Path) -> LeftOut | None:
        """Describe a file in a folder that is not read. Return None for any other file."""
        suffix = file.suffix.lower()
        if file.name.startswith("."):
            return LeftOut("file with a name that begins with a dot")
        if suffix not in MARKDOWN_SUFFIXES and (self.is_movable or not is_part(file)):
            kind = f"file with the extension {file.suffix}" if suffix else "file without an extension"
            return LeftOut(kind, str(file))
        if file.name.partition(".")[0] == SECTION_INDEX:
            return LeftOut("page of a section")
        if kind := self.skip(file):
            return LeftOut(kind, str(file))
        is_outside = file.is_symlink() and not os.path.realpath(file).startswith(self.roots)
        return LeftOut("link to a target outside the folders") if is_outside else None

    def _read(self, path: Path, top: Path, roots: tuple[str, ...]) -> Iterator[Item | Failure]:
        """Read a file in one of the folders `roots`, unless it has already been read through another path."""
        is_link = path.is_symlink()
        resolved = os.path.realpath(path) if is_link else os.path.join(self.real_folder(path.parent), path.name)
        if resolved in self.files:
            return
        self.files.add(resolved)
        try:
            if path in self.faults:
                raise MarkdownError(self.faults[path])
            if path.exists() and not (path.is_file() and path.suffix.lower() in READABLE):  # A pipe might never end.
                raise MarkdownError(f"must be a folder, or a regular file that ends in {', '.join(READABLE)}")
            if path.suffix.lower() in READERS:
                yield from self._read_export(path)
                return
            with open_below(path, roots) as opened:
                data = opened.read(MAX_FILE_BYTES + 1)
            if len(data) > MAX_FILE_BYTES:
                raise MarkdownError(f"must have at most {MAX_FILE_BYTES // 1024**2} MiB")
            self.sha256[str(path)] = hashlib.sha256(data).hexdigest()
            self.check(data)
            if item := self.item_of(data, path, top):
                yield item
        except (OSError, MarkdownError) as error:
            way = advice_on(path) if str(error).startswith(NOT_AN_EXPORT) else ""
            is_helpful = way and not way.endswith(BY_PATH)
            yield Failure.of(path, MarkdownError(f"not read, because this is {way}") if is_helpful else error)

    def advice(self) -> Iterator[str]:
        """Yield one piece of advice for each format of the files that were not read."""
        files = [Path(path) for paths in self.unread.values() for path in paths[:MAX_ADVISED]]
        ways = {way: file for file in files if file.is_file() and (way := advice_on(file))}
        yield from (f"{file}: {way}" for way, file in ways.items())

    def _read_export(self, path: Path) -> Iterator[Item | Failure]:
        for post in READERS[path.suffix.lower()](path, self.zone):
            if post is feeds.PARTIAL:
                self.unread_settings[f"posts older than those in {path} (a feed often has only the latest)"] = None
            elif isinstance(post, LeftOut) or (post.kind == "page" and not self.pages):
                self.left_out[post.kind] += 1
            elif post.error:
                yield Failure(f"{path} ({post.fields['slug'] or f'id {post.id}'})", None, post.error)
            else:
                if post.file:
                    self.taken.add(os.path.realpath(post.file))
                self.left_out["comment"] += post.comments
                yield self._item_of_export(path, post)

    def item_of(self, data: bytes, path: Path, top: Path) -> Item | None:
        """Return the post in a Markdown file under `top`, or None if its status is `trash`. Raises MarkdownError."""
        place, bound = Path(os.path.abspath(path)), bound_of(top)
        site = site_of(place.parent, bound, self.zone)
        self.recognized |= {site.recognized: None} if site.recognized else {}
        self.unread_settings |= {site.unread: None} if site.unread else {}
        options = ReadOptions(program=site.program, zone=site.zone, date_from=self.date_from)
        file = parse(self._with_meta(data, path), options)
        if file.program not in (site.program, OURS):
            self.recognized[f"{file.program.name}, by the names in front matter"] = None
        if file.fields.get("status") == "trash":
            self.left_out["post (trash)"] += 1
            return None
        folders = path.parent.parts[len(top.parts) :]
        item, name = self._infer(file, path, top, folders, site)
        by_pattern = site.url_of(file, path.parent, name, self.permalink or site.pattern, rfc3339(self.now))
        self._hide_unless_public(item, place, bound, site)
        assets = [path.with_suffix("")] if file.program.has_asset_folders else []
        self._place_images(item, top, [path.parent, *assets])
        complete(item, rfc3339(self.now), self.drop)
        self._add_old_urls(item, by_pattern, names.url_of_file(path, folders))
        return item

    def _with_meta(self, data: bytes, path: Path) -> bytes:
        """Return the bytes of a file. If another file contains its headers (Nikola, Harp), put them first."""
        if data.startswith((b"---", b"+++", b"..")):
            return data
        beside, roots = path.with_suffix(".meta"), self.roots or real_folders([path.parent])
        if os.path.isfile(beside):  # False, not an error, if the name is too long
            self.taken.add(os.path.realpath(beside))
            return read_text(beside, roots).rstrip().encode() + b"\n\n" + data
        values = values_of_file(path, roots)
        return json.dumps(values).encode() + b"\n\n" + data if values else data

    def _infer(
        self, file: MarkdownFile, path: Path, top: Path, folders: tuple[str, ...], site: Site
    ) -> tuple[Item, str]:
        """Use the path to fill in what the front matter lacks. Return the post, and the file name without a date."""
        url = next(iter(names.read_paths(file.others)[0]), "")
        placed = Path(*folders, path.name) if self.is_movable else path.absolute().relative_to("/")
        publish = self.publish or site.program.publishes_by_date or file.is_exported
        item = Item(str(path), file.fields, file.created_at, file, zone=site.zone)
        name = names.infer(item, site.without_language(placed), folders, top.absolute().name, url, publish)
        item.own_path = "/".join(("", *_meaningful(folders), name))
        is_index = path.stem.partition(".")[0] in site.program.index_names
        item.parents = _meaningful(placed.parts[: -2 if is_index else -1])
        item.slug_prefix = names.language_of(path, file.values) or names.split_url(url)[0]
        item.notes = {**without_controls(item.fields), **item.notes}
        item.notes |= {Note.TIME_ZONES: None} if site.is_zone_unknown else {}
        return item, name

    def _hide_unless_public(self, item: Item, place: Path, bound: Path, site: Site) -> None:
        """Turn a post into a draft if its file, a folder or its site hides it. Note any dates that were not read."""
        values, inherited = item.file.values, []
        if item.file.is_exported:  # An export contains the status, so ignore `params` and folders.
            values = {name: value for name, value in values.items() if name != "params"}
        else:
            inherited = [*inherited_by(place, bound, site, item.fields.get("tags", ()))]
        scripts = [entry.source for entry in inherited if entry.source.rpartition(".")[2] in SCRIPTS]
        self.unread_settings |= {f"{name} (a script: only its literal values are read)": None for name in scripts}
        note_dates(item, inherited, place.relative_to(bound))
        if not self.is_movable:  # A push refuses an unknown status, because a misspelt one would hide the post.
            move_unknown_status(item)
        hide_unless_public(item, values, inherited, rfc3339(self.now))

    def _add_old_urls(self, item: Item, by_pattern: str, by_name: str) -> None:
        """Add a post's old URLs, and the former slugs found in its aliases."""
        paths, aliases = names.read_paths(item.file.others)
        own = paths or [path for path in (by_pattern,) if path]
        item.old_paths = (*own, *item.old_paths, *aliases)
        urls = next(iter(own), by_name), urlsplit(self.post_url).path
        if former := names.former_slugs(aliases, filter(None, urls)):
            item.fields["former_slugs"] = [*item.fields.get("former_slugs", ()), *former]

    def _item_of_export(self, file: Path, post: ExportedPost) -> Item | Failure:
        params = {name: value for name, value in post.fields.get("params", {}).items() if value not in ("", [])}
        fields = {name: value for name, value in (post.fields | {"params": params}).items() if value}
        slug = fields.setdefault("slug", valid_slug(fields.get("title", f"post-{post.id}")))
        source = f"{file} ({valid_slug(slug)}{'' if 'title' in fields else f', id {post.id}'})"
        notes: dict[Note, NoteDetails] = {Note.BLOCKS: None} if post.has_missing_blocks else {}
        notes |= without_controls(fields)
        html = fields.pop("html", "")
        try:
            fields |= {"content": markdown_of(html)} if html else {}
        except MarkdownError as error:
            return Failure(source, None, error.reason)
        if "title" not in fields:
            fields["title"], note = names.title_of(fields.get("content", ""), shown(slug))
            notes[note] = None
        paths = tuple(filter(None, map(names.path_of, post.paths)))
        item = Item(source, fields, post.created_at, old_paths=paths, notes=notes, parents=(post.id,))
        if post.date_text and fields.get("status") in ("published", "scheduled") and "published_at" not in fields:
            fields["status"] = "draft"
            item.notes[Note.UNREAD_DATES] = None, shown(post.date_text[:40])
        paywall = {"paywall": match[0]} if (match := PAYWALL.search(html)) else {}
        hide_unless_public(item, {**paywall, **post.values}, (), rfc3339(self.now))
        self._place_images(item)
        complete(item, rfc3339(self.now), self.drop)
        return item

    def _place_images(self, item: Item, top: Path | None = None, folders: Sequence[Path] = ()) -> None:
        """Give the images that were found their new URLs, and make other relative URLs absolute."""
        placement = Placement(self.images, self.site, self.hosts, top, folders)
        notes, first = placement.replace(item.fields), item.file.content_line
        item.notes |= {name: line and first and first + line - 1 for name, line in notes.items()}
        item.images = tuple(placement.files)
        self.taken.update(item.images)
        item.missing = tuple(placement.missing) if self.images else ()


def _meaningful(folders: Iterable[str]) -> tuple[str, ...]:
    return tuple(name for name in folders if name not in MEANINGLESS_FOLDERS)
