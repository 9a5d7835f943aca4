"""A folder of Markdown files that is synced with the posts of a service: both sides, and what to do with each file."""

import hashlib
import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from datetime import tzinfo
from functools import cache
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from blogapi.clock import rfc3339
from blogapi.wings.sync.client import NotSynced, RemoteError
from blogapi.wings.sync.ignored import Ignored
from blogapi.wings.sync.remote import LISTED, Post, Remote
from blogapi.wings.sync.state import STATE, Entry, SyncState, entry_of, identity, synced_folder
from blogapi.wings.transfer.folder import Folder
from blogapi.wings.transfer.images import IMAGE_ERRORS, LocalImages
from blogapi.wings.transfer.importer import checked
from blogapi.wings.transfer.items import Failure, Item
from blogapi.wings.transfer.paths import reason_of
from blogapi.wings.transfer.sources import Sources

CHANGING = "it is changing right now"
MANY = 5  # files or posts; if more and over half of all are gone, nothing is deleted

Result = tuple[str, str, str]  # what was done with a file, its name, and a message for the user


@dataclass
class WorkingFolder:
    """A folder and its state. Raises RemoteError if it belongs to another service, or is part of a synced folder."""

    folder: Folder
    state: SyncState
    remote: Remote
    zone: tzinfo  # zone of times without an offset
    only: frozenset[str] = frozenset()  # the files to sync; all if empty
    moves: bool = False  # whether the folder may belong to another service
    dry_run: bool = False
    static: Path | None = None  # the folder of images whose addresses begin with a slash
    with_git: bool = True  # whether .gitignore counts, too

    def __post_init__(self) -> None:
        self.top, self.client, self.entries = self.folder.path, self.remote.client, self.state.entries
        self.prefix = os.path.join(self.top, "")  # of the paths of files
        self.items: dict[str, Item] = {}  # keys are the names of files, as below
        self.left_out: dict[str, str] = {}  # why
        self.results: list[Result] = []  # results for files that cannot be read or were renamed
        # Until images are uploaded, their addresses begin with that of the service.
        self.images = LocalImages([self.top], self.client.address, self.static, is_stored=bool)
        self.is_of_another = cache(self._is_of_another)
        self.ignored = Ignored(self.folder.read_bytes, self.folder.exists, self.with_git)
        if self.state.remote not in ("", self.client.address) and not self.moves:
            way = f"--move-to {self.client.address} connects it with that address"
            raise RemoteError(f"{self.top} belongs to {self.state.remote}: {way}")
        if (parent := synced_folder(self.top)) not in (None, Path(os.path.realpath(self.top))):
            raise RemoteError(f"{self.top} is part of {parent}, which is kept in sync: give {parent} instead")

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

    def is_wanted(self, name: str) -> bool:
        """Return whether the user wants something to be done with this file."""
        return not self.only or name in self.only

    # Both sides

    def read(self) -> None:
        """List the posts of the service and read the files."""
        self.posts = {post["id"]: post for post in self.remote.posts(fields=",".join(LISTED))}
        if not any(map(self.listed, self.entries.values())):
            if self.entries and self.posts and not self.moves and self.remote.scope != "published-only":
                way = f"--move-to {self.client.address} compares all files with it"
                raise RemoteError(f"{self.client.address} has none of these posts: {way}")
            if self.moves:
                self.entries.clear()
        self._read_files()
        self._keep_one_each()
        self._follow_names()
        if self.state.is_foreign:  # Its files may not have arrived yet.
            for name in [name for name, entry in self.entries.items() if self.sha256.get(name) != entry["sha256"]]:
                del self.entries[name]
        self.holders = {identity(entry): name for name, entry in self.entries.items()}  # names by posts
        self._find_proofs()
        self._find_posts()
        if not self.dry_run:  # before anything else changes: it fails if the folder is read-only
            is_changed = bool(self.results)  # Files were renamed.
            self.state.start(self.client.address, str(self.zone), rfc3339(self.client.now), is_changed)
        for failure in self.unread:
            reason = failure.reason.removeprefix(self.prefix)  # It can begin with the name of another file.
            self.results.append(self.failed(self._name_of(failure.source), reason, failure.line))

    def _find_proofs(self) -> None:
        """Find the recorded versions that are still current: since they were seen, no older backup was restored.

        So the database still has every version that is older than one of them, and was not seen before it.
        """
        self.proofs: dict[str, str] = {}  # for each time at which some were seen, when the latest of them was written
        for entry in filter(self.is_as_known, self.entries.values()):
            self.add_proof(entry)
            entry["seen"] = rfc3339(self.client.now)

    def add_proof(self, entry: Entry) -> None:
        """Remember that the database still has the recorded version of a post."""
        self.proofs[entry["seen"]] = max(self.proofs.get(entry["seen"], ""), entry["updated_at"])

    def _read_files(self) -> None:
        options: dict[str, Any] = {"images": self.images, "zone": self.zone, "skip": self._skipped, "is_movable": True}
        with TemporaryFile() as spool:
            self.sources = Sources([self.top], spool, self.client.now, **options)
            self.sha256 = {self._name_of(path): digest for path, digest in self.sources.sha256.items()}
            self.unread: list[Failure] = []
            for found in map(checked, self.sources):
                if isinstance(found, Item):
                    self.items[self._name_of(found.source)] = found
                else:
                    self.unread += found
        self.state.skipped = {name: why for name, why in self.state.skipped.items() if self.folder.exists(name)}

    def _name_of(self, path: str) -> str:
        return path.removeprefix(self.prefix)

    def _skipped(self, file: Path) -> str:
        """Return why a file is not read, as a kind of file."""
        name = self._name_of(str(file))
        why = self.ignored.why(name)
        if self.is_of_another(os.path.dirname(name)):
            why = "file of another folder that is kept in sync"
        elif file.is_symlink():
            why = "link"
        if why:
            self.left_out[name] = why
        return why

    def _is_of_another(self, folder: str) -> bool:
        """Return whether a folder below this one is part of one that is kept in sync itself."""
        above = os.path.dirname(folder)
        return folder != "" and (self.folder.exists(f"{folder}/{STATE}") or self.is_of_another(above))

    def _keep_one_each(self) -> None:
        """Keep one entry for each post: states of two clones that git merged can know its file by two names."""
        trust = {
            name: (self.sha256.get(name) == each["sha256"], name in self.sha256) for name, each in self.entries.items()
        }
        kept = {identity(self.entries[name]): name for name in sorted(trust, key=trust.__getitem__)}
        for name in trust.keys() - kept.values():
            del self.entries[name]

    def _follow_names(self) -> None:
        """Recognize renamed files: by their bytes, by the post that their front matter names, or by its slug."""
        gone = {name: entry for name, entry in self.entries.items() if not self.folder.exists(name)}
        keys = {key: name for name, entry in gone.items() for key in (entry["slug"], identity(entry), entry["sha256"])}
        for name in sorted(self.items.keys() - self.entries.keys()) if gone else ():
            old = next((keys[key] for key in (self.sha256[name], *self._named(name)) if keys.get(key) in gone), None)
            if old:
                self.entries[name] = self.entries.pop(old)
                self.results.append(("renamed", name, f"was {old}"))
                del gone[old]

    def _named(self, name: str) -> Iterator[Any]:
        """Yield the identity and the slug in the front matter of a file."""
        file = self.items[name].file
        if file.number and file.created_at:
            yield str(file.number), file.created_at
        if "slug" in file.sources:
            yield self.items[name].fields["slug"]

    def _find_posts(self) -> None:
        """Find the listed post of each file: that of its entry, the one it names, or the one that has or had its slug.

        A post without a file gets a name for one.
        """
        self.heirs: dict[str, str] = {}  # new files with the slugs of the posts of those that are gone
        self.by_slug = {post["slug"]: post for post in self.posts.values()}
        by_identity = {identity(post): post for post in self.posts.values()}
        without = [post for post in self.posts.values() if identity(post) not in self.holders]
        by_former = {slug: post for post in without for slug in post.get("former_slugs", ())}
        new = [name for name in self.items if name not in self.entries]
        named = Counter(key for name in new for key in self._named(name))
        self.post_of = {name: self.listed(entry) for name, entry in self.entries.items()}
        for name in new:
            free = [key for key in self._named(name) if key in by_identity and key not in self.holders]
            own = [by_identity[key] for key in free if named[key] == 1]
            slug = self.items[name].fields["slug"]
            self.post_of[name] = own[0] if own else self.by_slug.get(slug) or by_former.get(slug)
            if (post := self.post_of[name]) and not self.folder.exists(
                holder := self.holders.get(identity(post), name)
            ):
                self.heirs[holder] = name
        with_file = {post["id"] for post in self.post_of.values() if post}
        for post_id, post in self.posts.items():
            if post_id not in with_file:
                name = f"{post['slug']}.md"
                while name in self.post_of:
                    name = f"{name.removesuffix('.md')}-{post_id}.md"
                self.post_of[name] = post

    def listed(self, entry: Entry) -> Post | None:
        """Return the post of an entry from the list; in another database, its id belongs to another post."""
        post = self.posts.get(entry["id"])
        return post if post and identity(post) == identity(entry) else None

    def is_as_known(self, entry: Entry | None) -> bool:
        """Return whether a post has not changed since its entry was written, or maybe in the same second."""
        listed = self.listed(entry) if entry else None
        return bool(entry and listed and listed["updated_at"] == entry["updated_at"] < entry["seen"])

    def with_posts(self, names: Iterable[str]) -> Iterator[tuple[str, Post | None, Entry | None]]:
        """Yield each file with its post, if that must be fetched, and what to remember of it; None if it is gone."""
        without, wanted = [], defaultdict(list)
        for name in names:
            entry, listed = self.entries.get(name), self.post_of.get(name)
            if self.is_as_known(entry):
                yield name, None, entry
            elif listed:
                wanted[listed["id"]].append(name)
            else:
                without.append(name)
        for post, etag in self.remote.look(wanted.keys()):
            for name in wanted.pop(post["id"], ()):
                yield name, post, entry_of(post, etag)
        for name in (*chain(*wanted.values()), *without):
            yield name, None, None

    def refuse_many(self, gone: Collection[str], others: Collection, what: str) -> None:
        """Refuse to delete what belongs to most of the files, as if a disk was missing. Raises RemoteError."""
        if (len(gone) > MANY or not others) and 2 * len(gone) > len(self.entries):
            raise RemoteError(f"{len(gone)} of {len(self.entries)} {what} are gone: if that is right, use --delete-all")

    # Files

    def bytes_of(self, name: str) -> bytes:
        """Return the bytes of a file that was read before. Raises OSError, and NotSynced if it has changed since."""
        data = self.folder.read_bytes(name)
        if hashlib.sha256(data).hexdigest() != self.sha256.get(name):
            raise NotSynced("conflict", CHANGING)
        return data

    def write(self, name: str, data: bytes) -> None:
        """Replace a file, except in a dry run. Raises OSError, and NotSynced if it has changed since it was read."""
        if self.folder.exists(name):
            self.bytes_of(name)
        elif name in self.sha256:
            raise NotSynced("conflict", CHANGING)
        if not self.dry_run:
            self.state.begin()
            with self.folder.place(name, create=True) as (folder, last):
                folder.write_bytes(last, data, rfc3339(time.time()))  # An older time would hide the change from rsync.
            self.sha256[name] = hashlib.sha256(data).hexdigest()

    def remove(self, name: str) -> None:
        """Remove a file, except in a dry run. Raises OSError, and NotSynced if it has changed since it was read."""
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
        except NotSynced as left:
            what, why = left.args
        except IMAGE_ERRORS as error:
            what, why = "failed", reason_of(error)
        return self.failed(name, why) if what == "failed" else (what, name, why)

    def failed(self, name: str, why: str, line: int | None = None) -> Result:
        """Return the result for a file that cannot be read or written: "skipped" if that was said of these bytes."""
        digest = self.sha256.get(name) or hashlib.sha256(os.fsencode(why)).hexdigest()
        is_known = self.state.skipped.get(name) == digest
        if not is_known and not self.dry_run:
            self.state.put(name, digest)
        return "skipped" if is_known else "failed", f"{name}:{line}" if line else name, why
