"""A folder of Markdown files that is synced with the posts of a service: both sides, and all changes to the folder."""

import hashlib
import os
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import tzinfo
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from blogapi.clock import rfc3339
from blogapi.wings.sync.ancestry import Ancestry
from blogapi.wings.sync.client import Conflict, NotSynced, RemoteError
from blogapi.wings.sync.files import read_files
from blogapi.wings.sync.matching import PostList, duplicates, match, renamed
from blogapi.wings.sync.remote import LISTED_FIELDS, Post, Remote
from blogapi.wings.sync.state import Entry, SyncState, entry_of, identity, synced_folder
from blogapi.wings.transfer.folder import Folder, reason_of
from blogapi.wings.transfer.images import IMAGE_ERRORS, LocalImages

CHANGING = "it is changing right now"
MAX_GONE = 5  # files or posts; if more and over half of all are gone, nothing is deleted


class Result(NamedTuple):
    """What was done with a file, for the output."""

    outcome: str
    name: str  # perhaps with the number of a line
    reason: str = ""


class WorkingFolder:
    """A folder and its state, with the posts of a service as they were listed and the files as they were read.

    Raises RemoteError if the folder belongs to another service, or is part of a synced folder.
    """

    def __init__(
        self,
        folder: Folder,
        state: SyncState,
        remote: Remote,
        zone: tzinfo,  # zone of times without an offset
        *,
        only: frozenset[str],  # the files to sync; all if empty
        moves: bool,  # whether the folder may belong to another service
        dry_run: bool,
        static: Path | None,  # the folder of images whose addresses begin with a slash
        with_git: bool,  # whether .gitignore counts, too
    ):
        self.folder, self.state, self.remote, self.only, self.dry_run = folder, state, remote, only, dry_run
        self.top, self.client, self.entries, self.static = folder.path, remote.client, state.entries, static
        self._refuse_other_folders(moves)
        self.posts = self._list_posts(moves)
        # Until images are uploaded, their addresses begin with that of the service.
        self.images = LocalImages([self.top], self.client.address, static, is_stored=bool)
        self.files = read_files(folder, self.images, zone, self.client.now, with_git)
        self.items, self.sha256 = self.files.items, self.files.sha256
        renames = self._update_entries()
        self.holders = {identity(entry): name for name, entry in self.entries.items()}  # names by posts
        self.ancestry = Ancestry(self.entries.values(), self.posts, remote)
        self._mark_as_seen()
        self.post_of, self.heirs = match(self.entries, self.items, self.posts, folder.exists)
        if not dry_run:  # before anything else changes: it fails if the folder is read-only
            state.start(self.client.address, str(zone), rfc3339(self.client.now), bool(renames))
        self.results = [Result("renamed", name, f"was {old}") for name, old in renames.items()]
        self.results += [self.failed(each.source, each.reason, each.line) for each in self.files.failures]

    def _refuse_other_folders(self, moves: bool) -> None:
        if self.state.remote not in ("", self.client.address) and not moves:
            way = f"--move-to {self.client.address} connects it with that address"
            raise RemoteError(f"{self.top} belongs to {self.state.remote}: {way}")
        if (parent := synced_folder(self.top)) not in (None, Path(os.path.realpath(self.top))):
            raise RemoteError(f"{self.top} is part of {parent}, which is kept in sync: give {parent} instead")

    def _list_posts(self, moves: bool) -> PostList:
        """List the posts. If none is recorded, forget all entries if the folder `moves`, else raise RemoteError."""
        posts = PostList(self.remote.posts(fields=",".join(LISTED_FIELDS)))
        if not any(map(posts.find, self.entries.values())):
            if self.entries and posts.by_id and not moves and self.remote.scope != "published-only":
                way = f"--move-to {self.client.address} compares all files with it"
                raise RemoteError(f"{self.client.address} has none of these posts: {way}")
            if moves:
                self.entries.clear()
        return posts

    def _update_entries(self) -> dict[str, str]:
        """Adapt the entries to the files that exist; return the old names of renamed files."""
        exists, skipped = self.folder.exists, self.state.skipped
        self.state.skipped = {name: digest for name, digest in skipped.items() if exists(name)}
        for name in duplicates(self.entries, self.sha256):
            del self.entries[name]
        renames = renamed(self.entries, self.items, self.sha256, exists)
        for name, old in renames.items():
            self.entries[name] = self.entries.pop(old)
        if self.state.is_foreign:  # Its files may not have arrived yet.
            for name in [name for name, entry in self.entries.items() if self.sha256.get(name) != entry["sha256"]]:
                del self.entries[name]
        return renames

    def _mark_as_seen(self) -> None:
        for entry in filter(self.posts.is_as_recorded, self.entries.values()):
            entry["seen"] = rfc3339(self.client.now)

    def record(self, name: str, known: Entry, sha256: str = "") -> None:
        """Record that a file and its post now have the same content."""
        if not self.dry_run:
            added = {"sha256": sha256 or self.sha256[name], "seen": rfc3339(self.client.now)}
            self.state.put(name, known | added)
            self.holders[identity(known)] = name

    def forget(self, name: str) -> None:
        """Forget a file whose post is gone, too."""
        if not self.dry_run:
            self.state.put(name, None)

    def wanted(self, names: Iterable[str]) -> list[str]:
        """Return those of these files that the user wants to sync."""
        return [name for name in names if not self.only or name in self.only]

    def with_posts(self, names: Iterable[str]) -> Iterator[tuple[str, Post | None, Entry | None]]:
        """Yield each file with its post, if that must be fetched, and what to remember of it; None if it is gone."""
        without, to_fetch = [], defaultdict(list)
        for name in names:
            entry, listed = self.entries.get(name), self.post_of.get(name)
            if entry and self.posts.is_as_recorded(entry):
                yield name, None, entry
            elif listed:
                to_fetch[listed["id"]].append(name)
            else:
                without.append(name)
        for post, etag in self.remote.look(to_fetch.keys()):
            for name in to_fetch.pop(post["id"], ()):
                yield name, post, entry_of(post, etag)
        for name in (*chain(*to_fetch.values()), *without):
            yield name, None, None

    def refuse_many(self, gone: Collection[str], others: Collection, what: str) -> None:
        """Refuse to delete most posts or files: a disk may be missing. Raises RemoteError."""
        if (len(gone) > MAX_GONE or not others) and 2 * len(gone) > len(self.entries):
            raise RemoteError(f"{len(gone)} of {len(self.entries)} {what} are gone: if that is right, use --delete-all")

    # Files

    def bytes_of(self, name: str) -> bytes:
        """Return the bytes of a file that was read before. Raises OSError, and Conflict if it has changed since."""
        data = self.folder.read_bytes(name)
        if hashlib.sha256(data).hexdigest() != self.sha256.get(name):
            raise Conflict(CHANGING)
        return data

    def write(self, name: str, data: bytes) -> None:
        """Replace a file, except in a dry run. Raises OSError, and Conflict if it has changed since it was read."""
        if self.folder.exists(name):
            self.bytes_of(name)
        elif name in self.sha256:
            raise Conflict(CHANGING)
        if not self.dry_run:
            self.state.begin()
            with self.folder.place(name, create=True) as (folder, last):
                folder.write_bytes(last, data, rfc3339(time.time()))  # An older time would hide the change from rsync.
            self.sha256[name] = hashlib.sha256(data).hexdigest()

    def remove(self, name: str) -> None:
        """Remove a file, except in a dry run. Raises OSError, and Conflict if it has changed since it was read."""
        self.bytes_of(name)
        if not self.dry_run:
            self.state.begin()
            with self.folder.place(name) as (folder, last):
                folder.remove(last)

    def image_names(self, files: Iterable[str]) -> dict[str, str]:
        """Return image files by the names that the images have on the service."""
        return {os.path.basename(self.images.address_of(file)): file for file in files}

    # Results

    def attempt(self, act: Callable[..., Result], name: str, *arguments: Any) -> Result:
        """Return the result for a file: "conflict", "failed" or "skipped" if it is left as it is. Raises OSError."""
        try:
            return act(name, *arguments)
        except Conflict as error:
            return Result("conflict", name, str(error))
        except NotSynced as error:
            return self.failed(name, str(error))
        except IMAGE_ERRORS as error:
            return self.failed(name, reason_of(error))

    def failed(self, name: str, reason: str, line: int | None = None) -> Result:
        """Return the result for a file that cannot be read or written: "skipped" if these bytes failed before."""
        digest = self.sha256.get(name) or hashlib.sha256(os.fsencode(reason)).hexdigest()
        is_known = self.state.skipped.get(name) == digest
        if not is_known and not self.dry_run:
            self.state.put(name, digest)
        return Result("skipped" if is_known else "failed", f"{name}:{line}" if line else name, reason)
