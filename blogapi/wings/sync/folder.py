"""Decide which files in a synced folder are posts, and read, write and remove files."""

import hashlib
import os
import re
import time
from collections.abc import Callable, Collection, Container
from datetime import tzinfo
from functools import cache, partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryFile
from typing import Any, NamedTuple
from unicodedata import normalize

from pathspec import GitIgnoreSpec

from blogapi.clock import rfc3339
from blogapi.documents import is_slug
from blogapi.markdown.front_matter import MarkdownError
from blogapi.wings.sync.client import Conflict, NotSynced, Post, RemoteError
from blogapi.wings.sync.state import FILE_FIELDS, POST_FIELDS, STATE, Entry, SyncState, synced_folder
from blogapi.wings.transfer.folder import Folder, reason_of
from blogapi.wings.transfer.images import IMAGE_ERRORS, LocalImages
from blogapi.wings.transfer.importer import Checked, checked
from blogapi.wings.transfer.items import Failure, Item
from blogapi.wings.transfer.sources import Sources

CHANGING = "it is changing right now"
MINE = ".mine.md"  # suffix of a file that a pull set aside
GIT_FILE, OWN_FILE = ".gitignore", ".blogapiignore"
MAX_IGNORE_BYTES = 64 * 1024  # maximum size of an ignore file
# The words for "conflict" and "copy" in the languages that the programs below use
CONFLICT = "[ck]onfli[ckt]|modstrid|конфликт|競合|冲突|衝突|충돌"
COPY = "copy|copie|copia|cópia|kopie|kopia|kopi|копия|コピー|副本"
IN_CONFLICT = re.compile(
    r"(?:\.sync-|_)conflict-\d{8}-\d{6}"  # Syncthing, ownCloud
    r"|\.conflict\d*(?=\.|$)"  # rclone, Resilio
    r"|_(?:BASE|LOCAL|REMOTE|BACKUP)_\d+$"  # git mergetool
    r"|[(（][^()]*(?:conflicted copy|case conflict|SFConflict)[^()]*[)）]"  # Dropbox, Nextcloud, Obsidian, Seafile
    rf"|[(（](?=[^()]*\d{{4}})[^()]*(?:{CONFLICT})[^()]*[)）]",  # the same programs in other languages; unison
    re.IGNORECASE,
)
# Copies that browsers and file managers make alongside the original
COPIED = re.compile(
    rf"(.+?)(?: ?\(\d{{1,3}}\)| \((?:{COPY})(?: \d+)?\)| - (?:{COPY})(?: \(\d+\))?| (?:{COPY})(?: \d+)?"
    rf"| [(（][^()]*(?:{CONFLICT})[^()]*[)）])",
    re.IGNORECASE,
)
# Copies that iCloud and OneDrive make. They have the original's title or, without a title, begin with the same text.
NUMBERED = re.compile(r"(.+?)(?: \d{1,2}|-(?:DESKTOP|LAPTOP)-[A-Z0-9]{7,8})")
TITLE_LINE = re.compile(rb"^(?:title\b|# ).*", re.MULTILINE)
BEGINNING = 60  # bytes
EXAMPLE_SITE = re.compile(r"(?:.*/)?themes/[^/]+/exampleSite/.*")  # example sites in Hugo's themes
# Lines that git writes around a conflict
MARKS = re.compile(rb"^(?:<{7} |={7}\r?$|>{7} )", re.MULTILINE)
SET_ASIDE = re.compile(r"\.(?:\.path|conflict)\d+")  # In a conflict, rclone adds this to the names of both versions.


class Result(NamedTuple):
    outcome: str
    name: str  # sometimes with a line number
    reason: str = ""


def failed(failure: Failure, outcome: str = "failed") -> Result:
    return Result(outcome, f"{failure.source}:{failure.line}" if failure.line else failure.source, failure.reason)


class Ignored:
    """Decides which files of a folder are left out. Synced files never count as copies."""

    def __init__(self, folder: Folder, with_git: bool, synced: Container[str]):
        self.folder, self.synced = folder, synced
        self.files = (GIT_FILE, OWN_FILE) if with_git else (OWN_FILE,)  # The last matching pattern wins.
        self._spec = cache(self._read_spec)
        self._is_ignored = cache(self._find_ignored)
        self._why_separate = cache(self._find_separate)

    def why(self, name: str) -> str:
        """Return why a file is left out, as a noun phrase for the report, or "" if it is not."""
        path = PurePosixPath(name)
        if (self.folder.path / name).is_symlink():
            return "link"
        if path.name.endswith(MINE):
            return "file that a pull set aside"
        if self._is_ignored(name):
            return "file excluded by an ignore file"
        return "" if name in self.synced else self._why_separate(str(path.parent)) or self._why_copied(name, path)

    def _why_copied(self, name: str, path: PurePosixPath) -> str:
        if IN_CONFLICT.search(path.stem):
            return "duplicate made in a conflict"
        copied, numbered = COPIED.fullmatch(path.stem), NUMBERED.fullmatch(path.stem)
        if (copied and self.folder.exists(str(path.with_name(copied[1] + path.suffix)))) or (
            numbered and self._is_alike(name, str(path.with_name(numbered[1] + path.suffix)))
        ):
            return "duplicate of another file"
        return "file from a theme's example site" if EXAMPLE_SITE.fullmatch(name) else ""

    def _is_alike(self, *names: str) -> bool:
        """Return whether files have the same title or, without a title, begin with the same bytes."""
        try:
            texts = [self.folder.read_bytes(name) for name in names]
        except OSError:
            return False
        titles = [title[0] if (title := TITLE_LINE.search(text)) else text[:BEGINNING] for text in texts]
        return len({*titles}) == 1

    def _find_separate(self, folder: str) -> str:
        """Describe the files of a folder that is synced or checked out separately. Return "" for any other folder."""
        if folder == ".":
            return ""
        if self.folder.exists(f"{folder}/{STATE}"):
            return "file in another synced folder"
        if self._is_checkout(f"{folder}/.git"):
            return "file in another checkout"
        return self._why_separate(str(PurePosixPath(folder).parent))

    def _is_checkout(self, git: str) -> bool:
        """Return whether a folder is a clone or a worktree, but not a submodule."""
        try:
            repository = self.folder.read_bytes(git)
        except OSError:
            return (self.folder.path / git).is_dir()
        return b"/modules/" not in repository or b"/worktrees/" in repository

    def _find_ignored(self, name: str) -> bool:
        """Return whether the ignore files exclude a path or a folder above it. The path of a folder ends in a slash."""
        *above, _ = parts = PurePosixPath(name).parts
        is_ignored = None
        for depth in range(len(parts)):
            below = normalize("NFC", "/".join(parts[depth:])) + "/" * name.endswith("/")
            decision = self._spec(parts[:depth]).check_file(below).include
            is_ignored = is_ignored if decision is None else decision
        return bool(is_ignored) or bool(above and self._is_ignored(f"{'/'.join(above)}/"))

    def _read_spec(self, folder: tuple[str, ...]) -> GitIgnoreSpec:
        """Return the patterns in the ignore files of a folder. Raises RemoteError."""
        spec = GitIgnoreSpec([])
        for name in filter(self.folder.exists, ("/".join((*folder, file)) for file in self.files)):
            try:
                data = self.folder.read_bytes(name)
                if len(data) > MAX_IGNORE_BYTES:
                    raise ValueError(f"must have at most {MAX_IGNORE_BYTES // 1024} KiB")
                text = normalize("NFC", data.decode("utf-8-sig")).replace("\r\n", "\n")
                spec += GitIgnoreSpec.from_lines(text.split("\n"))
            except (OSError, ValueError) as error:  # Stop, because ignored files would otherwise be sent.
                raise RemoteError(f"{name} cannot be used: {reason_of(error)}") from None
        return spec


def refuse_unfinished(recorded: Container[str], data: bytes) -> None:
    """Raise MarkdownError if a crash or a merge has left a file unfinished, unless its digest is `recorded`."""
    if hashlib.sha256(data).hexdigest() in recorded:
        return
    if b"\0" in data:
        raise MarkdownError("contains NUL bytes, probably left by a crash: restore it")
    marks = [*MARKS.finditer(data)]
    if conflict := re.search(b"<=+>", b"".join(mark[0][:1] for mark in marks)):
        line = data.count(b"\n", 0, marks[conflict.start()].start()) + 1
        raise MarkdownError("contains git conflict markers: resolve the conflict, or indent them", line)


class WorkingFolder:
    """A folder, its state, and its files as they were read. Raises RemoteError for an invalid ignore file."""

    def __init__(
        self,
        folder: Folder,
        state: SyncState,
        url: str,  # the service's URL
        now: float,  # Unix time
        *,
        zone: tzinfo,  # time zone for times without an offset
        only: frozenset[str],  # the files to sync; empty means all
        static: Path | None,  # the folder of images whose URLs begin with a slash
        with_git: bool,  # whether to apply .gitignore
        publish: bool = False,  # whether to publish dated posts even if their program is unknown
    ):
        self.folder, self.state, self.only, self.static, self.now = folder, state, only, static, now
        self.top, self.exists, self.entries, self.dry_run = folder.path, folder.exists, state.entries, state.dry_run
        # Until images are uploaded, their URLs begin with the service's URL.
        self.images = LocalImages([self.top], url, static, is_stored=bool)
        # A recorded file may contain conflict markers because a pull wrote a post that contains them.
        check = partial(refuse_unfinished, {entry["sha256"] for entry in self.entries.values()})
        read = partial(Sources, [self.top], zone=zone, publish=publish, images=self.images, is_movable=True)
        ignored = Ignored(folder, with_git, self.entries)
        with TemporaryFile() as spool:
            self.sources = read(spool, now, skip=lambda path: ignored.why(self._name_of(str(path))), check=check)
            self._sort([*map(checked, self.sources)])

    def _sort(self, posts: list[Checked]) -> None:
        """Sort files into posts, failures, and files to leave out."""
        # path within the folder -> the post in the file, for readable files
        self.items = {self._name_of(post.source): post for post in posts if isinstance(post, Item)}
        failures = [failure for post in posts if isinstance(post, list) for failure in post]
        name = self._name_of
        self.failures = [each._replace(source=name(each.source), reason=name(each.reason)) for each in failures]
        self.sha256 = {self._name_of(path): digest for path, digest in self.sources.sha256.items()}
        self.unreadable = {failure.source: self.sha256.get(failure.source, failure.reason) for failure in self.failures}
        unread = self.sources.unread.items()
        self.left_out = {self._name_of(path): kind for kind, paths in unread for path in paths}
        self.set_aside = {SET_ASIDE.sub("", name) for name in self.left_out}

    def _name_of(self, path: str) -> str:
        return path.removeprefix(os.path.join(self.top, ""))

    def bytes_of(self, name: str) -> bytes:
        """Return the bytes of a file that was read before. Raises OSError, and Conflict if the file has changed."""
        data = self.folder.read_bytes(name)
        if hashlib.sha256(data).hexdigest() != self.sha256.get(name):
            raise Conflict(CHANGING)
        return data

    def write(self, name: str, data: bytes) -> None:
        """Replace a file, except in a dry run. Raises OSError, and Conflict if it has changed since it was read."""
        if self.exists(name):
            self.bytes_of(name)
        elif name in self.sha256:
            raise Conflict(CHANGING)
        if not self.dry_run:
            self.state.begin()
            with self.folder.place(name, create=True) as (folder, last):
                folder.write_bytes(last, data, rfc3339(time.time()))  # An older time could hide the change from rsync.
            self.sha256[name] = hashlib.sha256(data).hexdigest()
            self.items.pop(name, None)

    def remove(self, name: str) -> None:
        """Remove a file, except in a dry run. Raises OSError, and Conflict if it has changed since it was read."""
        self.bytes_of(name)
        if not self.dry_run:
            self.state.begin()
            with self.folder.place(name) as (folder, last):
                folder.remove(last)

    def record(self, name: str, post: Post) -> None:
        """Record that a file and its post now have the same content."""
        known = self.entries.get(name, {})
        said = {"status": known.get("file_status")}  # A pull writes the post's slugs.
        if item := self.items.get(name):
            former = item.fields.get("former_slugs", known.get("file_former_slugs"))
            status = None if "status" in item.file.sources else ""
            said = {"slug": slug_in(item) or post["slug"], "former_slugs": former, "status": status}
        own = {f"file_{field}": value for field, value in said.items() if value not in (None, post.get(field, []))}
        self.record_post(name, post, own | {"sha256": self.sha256[name]})

    def record_post(self, name: str, post: Post, own: Entry) -> None:
        """Record a post, and the FILE_FIELDS in `own`."""
        of_post = {key: post[key] for key in POST_FIELDS if key in post}
        of_file = {key: own[key] for key in FILE_FIELDS if key in own}
        self.state.put(name, of_post | of_file | {"seen": rfc3339(self.now)})

    def record_bytes(self, name: str) -> None:
        """Record the new digest of a file that still means the same, so that a later rename is recognized."""
        self.state.put(name, self.entries[name] | {"sha256": self.sha256[name]})

    def image_names(self, files: Collection[str]) -> dict[str, str]:
        """Return a dict that maps names of images on the service to image files."""
        return {os.path.basename(self.images.url_of(file)): file for file in files}

    # Results

    def attempt(self, act: Callable[..., Result], name: str, *arguments: Any) -> Result:
        """Return the result of `act` for a file, or a "conflict" or "failed" result if `act` raises an exception."""
        try:
            return act(name, *arguments)
        except (NotSynced, *IMAGE_ERRORS) as error:
            return Result("conflict" if isinstance(error, Conflict) else "failed", name, reason_of(error))


def slug_in(item: Item) -> str:
    """Return the slug in a file's front matter, or "" if it has no valid slug."""
    slug = str(item.file.values.get("slug", ""))
    return slug if is_slug(slug) else ""


def refuse_other_folders(folder: Path, state: SyncState, url: str, moves: bool) -> None:
    """Raise RemoteError for a folder inside a synced one, or for a folder of another service unless `moves` is true."""
    if state.remote not in ("", url) and not moves:
        raise RemoteError(f"{folder} belongs to {state.remote}: --move-to {url} connects it to that URL")
    if (parent := synced_folder(folder)) not in (None, Path(os.path.realpath(folder))):
        raise RemoteError(f"{folder} is part of {parent}, which is already synced: pass {parent} instead")
