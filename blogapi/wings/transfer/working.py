"""A folder of Markdown files that is synced with the posts of a service: the files, and the recorded state of each."""

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta, tzinfo
from pathlib import Path, PurePosixPath
from tempfile import TemporaryFile
from typing import Any

from marshmallow import ValidationError, fields

from blogapi.clock import earlier, rfc3339
from blogapi.documents import FIELDS, INPUT_FIELDS, REQUIRED, is_slug
from blogapi.posts import storage as posts
from blogapi.posts.schemas import PostSchema
from blogapi.storage.errors import Rejected
from blogapi.wings.markdown.files import MAX_FILE_BYTES
from blogapi.wings.transfer.folder import ADDRESS, Folder
from blogapi.wings.transfer.images import MARKDOWN_SUFFIXES, LocalImages
from blogapi.wings.transfer.importer import checked, schema
from blogapi.wings.transfer.items import Item
from blogapi.wings.transfer.remote import LISTED, Left, Post, Remote, RemoteError
from blogapi.wings.transfer.sources import Sources

STATE = ".blogapi.json"
MAX_STATE_BYTES = 64 * 1024**2  # the state of more than 100,000 files
MINE = ".mine.md"  # the end of the name of a file that a pull has kept aside
SECOND = timedelta(seconds=1)
WAYS_OUT = "push --force keeps the file, pull --theirs the post"
CLEARED = ("title", "content", "excerpt", "tags", "cover_image", "params")  # by a PUT that leaves them out

Entry = dict[str, Any]  # what is known about a post and, in the state, about its file: see EntrySchema
Result = tuple[str, str, str]  # what was done with a file, its name, and a message for the user


class EntrySchema(PostSchema):
    """An Entry in the state: the fields that a file can lack, and digests of the post and the file."""

    etag, said, sha256 = fields.String(), fields.String(), fields.String()  # the last is that of the file

    class Meta:
        fields = (*(name for name in FIELDS if name not in CLEARED), "etag", "said", "sha256")

    def on_bind_field(self, field_name: str, field_obj: fields.Field) -> None:
        field_obj.required, field_obj.allow_none = field_name in REQUIRED | {"etag", "said", "sha256"}, False


ENTRY = EntrySchema()


def meaning(post: Post) -> str:
    """Return a digest of a post, ignoring line endings and image hosts; a scheduled post counts as published."""
    said = {name: post[name] for name in INPUT_FIELDS if post.get(name) not in (None, [], {})}
    said["content"] = said["content"].replace("\r\n", "\n")
    said["status"] = "published" if said["status"] == "scheduled" else said["status"]
    data = ADDRESS.sub(rb"images/\1", json.dumps(said, sort_keys=True).encode())
    return hashlib.sha256(data).hexdigest()[:32]


def entry_of(post: Post, etag: str) -> Entry:
    """Return what to remember of a post."""
    return {name: post[name] for name in post if name not in CLEARED} | {"etag": etag, "said": meaning(post)}


@dataclass(eq=False)
class Files(Sources):
    """The posts in the files of a folder, without links and without files that a pull has kept aside."""

    sha256: dict[str, str] = field(default_factory=dict, init=False)  # of each file that was read

    def _why_not(self, file: Path) -> str:
        if file.name.endswith(MINE):
            return "file that a pull kept aside"
        if any((folder / STATE).exists() for folder in file.parents if self.paths[0] in folder.parents):
            return "file of another folder that is kept in sync"
        return "link" if file.is_symlink() else super()._why_not(file)

    def _item_of_file(self, data: bytes, path: Path, top: Path) -> Item | None:
        self.sha256[path.relative_to(top).as_posix()] = hashlib.sha256(data).hexdigest()
        return super()._item_of_file(data, path, top)

    def item_of(self, name: str, data: bytes) -> Item:
        """Return the post that a file would contain with these bytes. Raises MarkdownError, ValidationError."""
        item = super()._item_of_file(data, self.paths[0] / name, self.paths[0])
        assert item  # No post has the status "trash".
        slug = item.fields.pop("slug")  # It can be inferred from the file name, and be invalid.
        return replace(item, fields=schema.load(item.fields) | {"slug": slug})


class WorkingFolder:
    """A folder, locked until it is closed, and its state.

    Raises RemoteError if it is locked already, or belongs to another service.
    """

    def __init__(self, folder: Folder, remote: Remote, force: bool, dry_run: bool, zone: tzinfo):
        self.folder, self.top, self.remote, self.zone = folder, folder.path, remote, zone
        self.force, self.dry_run = force, dry_run
        self.items: dict[str, Item] = {}  # by the names of files, like those below
        self.entries: dict[str, Entry] = {}  # of files that matched their posts at the last sync
        self.results: list[Result] = []  # of files that cannot be read or were renamed
        self._saved = self._took = 0.0
        # Until images are uploaded, their addresses begin with that of the service.
        self.images = LocalImages([self.top], remote.address, None, is_stored=bool)
        try:
            fcntl.flock(folder.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RemoteError(f"another push or pull of {self.top} is running") from None
        self._load()

    # The state

    def _load(self) -> None:
        try:
            with self.folder.open(STATE, "rb") as file:
                state = json.loads(file.read(MAX_STATE_BYTES))
            address = state["remote"]
            self.entries = {checked_name(name): ENTRY.load(entry) for name, entry in state["files"].items()}
        except FileNotFoundError:
            return
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, ValidationError):
            reason = "is damaged: delete it, and all files are compared with the posts"
            raise RemoteError(f"{self.top / STATE} {reason}") from None
        if address != self.remote.address and not self.force:
            raise RemoteError(f"{self.top} belongs to {address}: pull --force connects it with {self.remote.address}")

    def save(self, at_once: bool = True) -> None:
        """Write the state: at once, or so rarely that writing takes at most a tenth of the time."""
        begun = time.monotonic()
        if self.dry_run or not (at_once or begun - self._saved > 10 * self._took):
            return
        state = {"remote": self.remote.address, "files": self.entries}
        self.write(STATE, json.dumps(state).encode(), rfc3339(time.time()))  # ASCII: a file name need not be UTF-8
        self._saved = time.monotonic()
        self._took = self._saved - begun

    def record(self, name: str, known: Entry, sha256: str = "", at_once: bool = True) -> None:
        """Record that a file and its post now have the same content."""
        # Another change in this second would not show in `updated_at`: an earlier time makes the next run look again.
        updated_at = min(known["updated_at"], earlier(rfc3339(self.remote.now), SECOND))
        self.entries[name] = known | {"sha256": sha256 or self.files.sha256[name], "updated_at": updated_at}
        self.save(at_once)

    def forget(self, name: str) -> None:
        """Forget a file that is gone on both sides."""
        if not self.dry_run:
            del self.entries[name]
            self.save(at_once=False)

    # Both sides

    def read(self) -> None:
        """List the posts of the service and read the files."""
        self.posts = {post["id"]: post for post in self.remote.posts(fields=",".join(LISTED))}
        self.by_slug = {post["slug"]: post for post in self.posts.values()}
        if self.entries and self.posts and not any(map(self.listed, self.entries.values())):
            if not self.force:
                raise RemoteError(f"{self.remote.address} has none of these posts: --force compares all files with it")
            self.entries = {}
        with TemporaryFile() as spool:
            self.files = Files([self.top], spool, self.remote.now, images=self.images, zone=self.zone)
            for found in map(checked, self.files):
                if isinstance(found, Item):
                    self.items[Path(found.source).relative_to(self.top).as_posix()] = found
                else:
                    self.results += [("failed", str(failure), "") for failure in found]
        self._follow_names()
        self.save()  # before anything else changes: it fails if the folder is read-only

    def _follow_names(self) -> None:
        """Recognize renamed files: by their bytes, or by the id in their front matter."""
        gone = {name: entry for name, entry in self.entries.items() if not self.exists(name)}
        by_sha256 = {entry["sha256"]: name for name, entry in gone.items()}
        by_id = {entry["id"]: name for name, entry in gone.items()}
        for name in self.items.keys() - self.entries.keys() if gone else ():
            old = by_sha256.get(self.files.sha256[name]) or by_id.get(str(self.items[name].file.values.get("id")))
            if old in gone:
                self.entries[name] = self.entries.pop(old)
                self.results.append(("renamed", name, f"was {old}"))
                del gone[old]

    def listed(self, entry: Entry) -> Post | None:
        """Return the post of an entry from the list; in another database, its id belongs to another post."""
        post = self.posts.get(entry["id"])
        return post if post and is_same_post(post, entry) else None

    def is_as_known(self, entry: Entry | None, listed: Post | None) -> bool:
        """Return whether a post has not changed since its entry was written."""
        return bool(entry and listed and entry["updated_at"] == listed["updated_at"])

    def exists(self, name: str) -> bool:
        """Return whether a file, or anything else, has this name, or may have it: its folder cannot be read."""
        try:
            os.lstat(self.top / name)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True
        return True

    @contextmanager
    def place(self, name: str, create: bool = False) -> Iterator[tuple[Folder, str]]:
        """Open the folder of a file without following links; yield it and the file's name in it. Raises OSError."""
        folder, (*above, last) = self.folder, PurePosixPath(name).parts
        with ExitStack() as opened:
            for part in above:
                folder = opened.enter_context(closing(folder.below(part, create)))
            yield folder, last

    def read_bytes(self, name: str) -> bytes:
        """Read a file that is not a link. Raises OSError."""
        with self.place(name) as (folder, last), folder.open(last, "rb") as file:
            return file.read(MAX_FILE_BYTES + 1)

    def bytes_of(self, name: str) -> bytes:
        """Return the bytes of a file that was read before. Raises OSError, and Left if it has changed since."""
        data = self.read_bytes(name)
        if hashlib.sha256(data).hexdigest() != self.files.sha256.get(name):
            raise Left("conflict", "it is changing right now")
        return data

    def write(self, name: str, data: bytes, when: str) -> None:
        """Replace a file, with a time, unless this is a dry run. Raises OSError."""
        if not self.dry_run:
            with self.place(name, create=True) as (folder, last):
                folder.write_bytes(last, data, when)

    def image_names(self, files: Iterable[str]) -> dict[str, str]:
        """Return image files by the names that the images have on the service."""
        return {os.path.basename(self.images.address_of(file)): file for file in files}

    def remove(self, name: str) -> None:
        """Remove a file, unless this is a dry run. Raises OSError."""
        if not self.dry_run:
            with self.place(name) as (folder, last):
                folder.remove(last)

    # Comparison

    def fields(self, name: str, item: Item | None = None) -> Post:
        """Return the fields of a file. The slug counts only if it is in the front matter: files may be renamed."""
        item = item or self.items[name]
        fields = {field: value for field, value in item.fields.items() if field != "slug"}
        own = str(item.file.values.get("slug", ""))
        is_own = own == item.fields["slug"] or (name in self.entries and is_slug(own))
        return fields | ({"slug": own} if own and is_own else {})

    def says(self, fields: Post, known: Entry) -> str:
        """Return the digest that a post would have after a push of these fields; "" if they would be refused."""
        now = rfc3339(self.remote.now)
        if known["status"] == "scheduled" and known.get("published_at", "") <= now:
            known = known | {"status": "published"}
        with suppress(Rejected):
            return meaning(posts.as_put(known, fields, now))
        return ""

    def has_changed(self, name: str) -> bool:
        """Return whether a known file differs from its post at the last sync."""
        entry = self.entries[name]
        return name not in self.items or self.says(self.fields(name), entry) != entry["said"]

    def compare(self, name: str, there: Entry) -> str:
        """Return "same", or the side that has changed ("here": the file, "there": the post), or why they conflict."""
        entry = self.entries.get(name)
        if name in self.items and self.says(self.fields(name), there) == there["said"]:
            return "same"
        if not entry:
            return f"the post {there['slug']} differs from the file: {WAYS_OUT}"
        if entry["said"] == there["said"]:
            return "here"
        if there["updated_at"] < entry["updated_at"]:
            return f"the post is older than it was: {WAYS_OUT}"
        return f"it has changed on both sides: {WAYS_OUT}" if self.has_changed(name) else "there"


def is_same_post(one: Entry, other: Entry) -> bool:
    """Return whether two entries or posts belong to the same post: another database uses the same ids."""
    return (one["id"], one["created_at"]) == (other["id"], other["created_at"])


def checked_name(name: str) -> str:
    """Return a name from a state, which must be that of a visible Markdown file in the folder. Raises ValueError."""
    is_hidden = "\0" in name or any(part.startswith(".") or not part for part in name.split("/"))
    if is_hidden or not name.lower().endswith(MARKDOWN_SUFFIXES):
        raise ValueError
    return name
