"""Folders of Markdown files and exports: the posts in them, in the order of their dates."""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

from blogapi.clock import rfc3339
from blogapi.files.exports import EXPORTS
from blogapi.files.front_matter import MarkdownError
from blogapi.files.items import (
    Item,
    Refused,
    Setting,
    item_of_export,
    item_of_file,
    looked_through,
    shown,
    slug_in_export,
)
from blogapi.files.markdown import parse

EXTENSIONS = (".md", ".markdown", ".mdx")
# Folders of built or installed files. Hidden folders are not entered either.
NOT_ENTERED = ("node_modules", "bower_components", "vendor", "_site")
# The page of a whole section in Hugo and Zola.
NOT_POSTS = ("_index",)
MAX_BYTES = 4 * 1024 * 1024
LAST = "~"  # after every time


class Found(NamedTuple):
    """A post that can be read."""

    when: str
    number: int
    slug: str  # the slug that it gets; empty if it is refused
    parents: tuple[str, ...]  # the names that go in front of the slug if other posts have it, too
    read: Callable[[], Item | Refused]


class Sources:
    """The posts in files and folders, each an Item or Refused, in the order of their dates; those without come last.

    Their number is known before they are read. The memory that this takes does not grow with their contents.
    """

    def __init__(self, paths: Iterable[Path], setting: Setting, spool: IO[bytes], pages: bool):
        self.setting = setting
        self.spool = spool
        self.kinds = ("post", "page") if pages else ("post",)
        self.left_out: Counter[str] = Counter()  # everything else, by its kind
        self.files: set[Path] = set()
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
                yield Refused(item.source, item.line_of("slug"), reason)
            else:
                sources[found.slug] = item.source
                yield looked_through(item, found.slug)

    def _distinct(self, found: list[Found]) -> list[Found]:
        """Put the last folders of their paths in front of slugs that several posts have, until they differ."""
        slugs = [each.slug for each in found]
        for depth in range(1, 1 + max((len(each.parents) for each in found), default=0)):
            counts = Counter(filter(None, slugs))
            if max(counts.values(), default=1) == 1:
                break
            for index, each in enumerate(found):
                if counts[slugs[index]] > 1:
                    slugs[index] = self.setting.slug_of(" ".join((*each.parents[-depth:], each.slug)))
        counts = Counter(slugs)
        return [each if counts[slug] > 1 else each._replace(slug=slug) for each, slug in zip(found, slugs, strict=True)]

    def _find(self, path: Path) -> Iterator[Found]:
        if path.is_dir():
            yield from self._find_below(path)
        elif posts := EXPORTS.get(path.suffix.lower()):
            yield from self._find_in_export(path, posts)
        else:
            yield from self._find_file(path, path.absolute().parent)

    def _find_below(self, top: Path) -> Iterator[Found]:
        """Find the Markdown files below a folder, those of each folder in the order of their names."""
        folders = [str(top)]
        while folders:
            folder = folders.pop()
            try:
                entries = sorted(os.scandir(folder), key=lambda entry: entry.name, reverse=True)
            except OSError as error:
                yield _refused(folder, error)
                continue
            entries = [entry for entry in entries if not entry.name.startswith(".")]
            below = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
            folders += [entry.path for entry in below if entry.name not in NOT_ENTERED]
            files = [entry for entry in reversed(entries) if not entry.is_dir(follow_symlinks=False)]
            for path in [Path(entry.path) for entry in files]:
                if path.suffix.lower() in EXTENSIONS and path.stem in NOT_POSTS:
                    self.left_out["page of a section"] += 1
                elif path.suffix.lower() in EXTENSIONS:
                    yield from self._find_file(path, top)

    def _find_file(self, path: Path, top: Path) -> Iterator[Found]:
        """Find a file, once however many paths lead to it."""
        if (resolved := path.resolve()) in self.files:
            return
        self.files.add(resolved)
        item = self._read_file(path, top)
        if isinstance(item, Refused):
            yield Found(LAST, 0, "", (), lambda: item)
        else:
            parents = path.absolute().parent.parts[1:]
            when = item.created_at or item.fields.get("published_at") or LAST
            is_index = path.stem.partition(".")[0] == "index"
            read = partial(self._read_file, path, top)
            yield Found(when, item.number, item.fields["slug"], parents[:-1] if is_index else parents, read)

    def _read_file(self, path: Path, top: Path) -> Item | Refused:
        try:
            return item_of_file(path, top, parse(_bytes_of(path)), self.setting)
        except (OSError, MarkdownError) as error:
            return _refusal(str(path), error)

    def _find_in_export(self, path: Path, posts: Callable[[Path], Iterator[dict[str, Any]]]) -> Iterator[Found]:
        try:
            _check_regular(path)
            for post in posts(path):
                if post["kind"] not in self.kinds:
                    self.left_out[post["kind"]] += 1
                elif "error" in post:
                    yield _refused(f"{path} (id {post['id']})", MarkdownError(post["error"]))
                else:
                    self.left_out["comment"] += post["comments"]
                    offset = self.spool.tell()
                    self.spool.write(json.dumps(post).encode() + b"\n")
                    when = post["created_at"] or post["published_at"] or LAST
                    slug = slug_in_export(post, self.setting)
                    yield Found(when, 0, slug, (post["id"],), partial(self._read_spooled, str(path), offset))
        except (OSError, MarkdownError) as error:
            yield _refused(str(path), error)

    def _read_spooled(self, file: str, offset: int) -> Item | Refused:
        self.spool.seek(offset)
        post = json.loads(self.spool.readline())
        try:
            return item_of_export(file, post, self.setting)
        except MarkdownError as error:
            return _refusal(f"{file} ({slug_in_export(post, self.setting)})", error)


@contextmanager
def open_sources(
    paths: Iterable[Path], *, now: float, slug_of: Callable[[str], str], pages: bool = False, site: str = ""
) -> Iterator[Sources]:
    """Find the posts in files and folders, with `pages` also the pages in exports.

    `now` is a Unix time, `slug_of` makes a slug from a text, relative addresses of images belong to `site` if it is
    given.
    """
    with TemporaryFile() as spool:
        yield Sources(paths, Setting(rfc3339(now), slug_of, site.rstrip("/")), spool, pages)


def _refused(source: str, error: OSError | MarkdownError) -> Found:
    refusal = _refusal(source, error)
    return Found(LAST, 0, "", (), lambda: refusal)


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
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise MarkdownError(f"must have at most {MAX_BYTES // 1024**2} MiB")
    return data
