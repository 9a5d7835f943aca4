"""A folder of Markdown files that is kept the same as the posts of a service: its files, and what is known of each."""

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import tzinfo
from pathlib import Path, PurePosixPath
from tempfile import TemporaryFile
from typing import IO, Any, cast

from blogapi.clock import rfc3339
from blogapi.config import Config
from blogapi.documents import INPUT_FIELDS, is_slug
from blogapi.posts import storage as posts
from blogapi.storage.errors import Rejected
from blogapi.wings.markdown.files import MAX_FILE_BYTES, parse
from blogapi.wings.transfer.folder import ADDRESS, Folder
from blogapi.wings.transfer.images import MARKDOWN_SUFFIXES, LocalImages
from blogapi.wings.transfer.importer import checked, schema
from blogapi.wings.transfer.permalinks import site_of
from blogapi.wings.transfer.remote import LISTED, Left, Post, Remote, RemoteError
from blogapi.wings.transfer.sources import JEKYLL_FOLDERS, Failure, Item, Sources

STATE = ".blogapi.json"
MAX_STATE_BYTES = 256 * 1024**2
MINE = ".mine.md"  # the end of the name of a file that a pull has kept aside
CLEARED = ("title", "content", "excerpt", "tags", "cover_image", "params")  # by a PUT that leaves them out
KNOWN = ("id", "slug", "status", "created_at", "updated_at", "etag", "said", "sha256")  # of every Entry in the state

# What is known of a post: the fields that are not CLEARED, its `etag`, and the digest of what it `said`. In the state,
# also the `sha256` of its file, and whether it is `fresh`: another change in the second of `updated_at` would not show.
Entry = dict[str, Any]
Result = tuple[str, str, str]  # what was done with a file, its name, and what a person should know


def meaning(post: Post) -> str:
    """Return a digest of what a post says: with any line ends, on any host, and also once its time has come."""
    said = {name: post[name] for name in INPUT_FIELDS if post.get(name) not in (None, [], {})}
    said["content"] = said["content"].replace("\r\n", "\n")
    said["status"] = "published" if said["status"] == "scheduled" else said["status"]
    data = ADDRESS.sub(rb"images/\1", json.dumps(said, sort_keys=True).encode())
    return hashlib.sha256(data).hexdigest()[:32]


def entry_of(post: Post, etag: str) -> Entry:
    """Return what is to be known of a post."""
    return {name: post[name] for name in post if name not in CLEARED} | {"etag": etag, "said": meaning(post)}


class Files(Sources):
    """The posts in the files of a folder, without links and without what a pull has kept aside."""

    def __init__(self, top: Path, spool: IO, now: float, images: LocalImages, zone: tzinfo):
        self.sha256: dict[str, str] = {}  # of each file, before it is read
        super().__init__([top], spool, now, images=images, zone=zone)

    def _read(self, path: Path, top: Path, roots: tuple[str, ...]) -> Iterator[Item | Failure]:
        if path.is_symlink() or path.name.endswith(MINE):
            self.left_out["link" if path.is_symlink() else "file that a pull kept aside"] += 1
            return
        with suppress(OSError), path.open("rb") as file:
            self.sha256[path.relative_to(top).as_posix()] = hashlib.file_digest(file, "sha256").hexdigest()
        yield from super()._read(path, top, roots)

    def item_of(self, path: Path, top: Path, data: bytes) -> Item:
        """Return what a file would say with these bytes. Raises MarkdownError, ValidationError."""
        is_jekyll = not JEKYLL_FOLDERS.isdisjoint(path.absolute().parts[:-1])
        site = site_of(path.parent.absolute(), self.zone)
        file = parse(data, divides_tags=is_jekyll, zone=site.zone)
        item = self._item_of_file(file, path, top, is_jekyll, site)
        slug = item.fields.pop("slug")  # It can still be the name of the file.
        return item._replace(fields=schema.load(item.fields) | {"slug": slug})


class FolderImages(LocalImages):
    """The images in a folder. Until they are uploaded, their addresses begin with that of the service."""

    def is_stored(self, image_id: str) -> bool:
        return True


class WorkingFolder:
    """A folder, locked until it is closed, and its state. Raises RemoteError if it belongs to another service."""

    def __init__(self, top: Path, remote: Remote, force: bool, dry_run: bool, zone: tzinfo):
        self.top, self.remote, self.force, self.dry_run, self.zone = top, remote, force, dry_run, zone
        self.items: dict[str, Item] = {}
        self.results: list[Result] = []  # of files that cannot be read, or have other names now
        self.entries: dict[str, Entry] = {}  # of the files that were the same as their posts
        self._saved = self._took = 0.0
        with ExitStack() as opened:
            self.folder = Folder(top)
            opened.callback(self.folder.close)
            try:
                fcntl.flock(self.folder.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise RemoteError(f"another push or pull of {top} is running") from None
            self._load()
            self.opened = opened.pop_all()

    # The state

    def _load(self) -> None:
        try:
            with self.folder.open(STATE, "rb") as file:
                state = json.loads(file.read(MAX_STATE_BYTES))
            address, self.entries = state["remote"], state["files"]
            if not all(is_entry(name, entry) for name, entry in self.entries.items()):
                raise ValueError
        except FileNotFoundError:
            return
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            reason = "is damaged: delete it, and all files are compared with the posts"
            raise RemoteError(f"{self.top / STATE} {reason}") from None
        if address != self.remote.address:
            self._forget(f"{self.top} belongs to {address}; --force lets it belong to {self.remote.address}")

    def _forget(self, why_not: str) -> None:
        if not self.force:
            raise RemoteError(why_not)
        self.entries = {}

    def save(self, at_once: bool = True) -> None:
        """Write the state; if not at once, so seldom that it takes at most a tenth of the time."""
        begun = time.monotonic()
        if self.dry_run or not (at_once or begun - self._saved > 10 * self._took):
            return
        state = {"remote": self.remote.address, "files": self.entries}
        data = json.dumps(state).encode()  # in ASCII, as a name can be no UTF-8
        self.folder.write(STATE, [data], rfc3339(time.time()), lambda file: file.read(len(data) + 1) == data)
        self._saved = time.monotonic()
        self._took = self._saved - begun

    def note(self, name: str, known: Entry, sha256: str = "", at_once: bool = True) -> None:
        """Note that a file and a post say the same."""
        fresh = {"fresh": True} if known["updated_at"] >= rfc3339(self.remote.now) else {}
        self.entries[name] = known | {"sha256": sha256 or self.files.sha256[name]} | fresh
        self.save(at_once)

    def forget(self, name: str) -> None:
        """Forget a file that is gone on both sides."""
        if not self.dry_run:
            del self.entries[name]
            self.save(at_once=False)

    # Both sides

    def read(self) -> None:
        """List the posts, and read the files, at the time by the clock of the service."""
        self.posts = {post["id"]: post for post in self.remote.posts(fields=",".join(LISTED))}
        self.by_slug = {post["slug"]: post for post in self.posts.values()}
        is_there = [self.listed(entry) for entry in self.entries.values()]
        if not any(is_there) and any(entry["id"] in self.posts for entry in self.entries.values()):
            self._forget(f"{self.remote.address} has another database now: --force compares all files with it")
        self.images = FolderImages(cast(Any, None), [self.top], None, Config(url=self.remote.address), dry_run=True)
        with TemporaryFile() as spool:
            self.files = Files(self.top, spool, self.remote.now, self.images, self.zone)
            for item in self.files:
                found = checked(item)
                if isinstance(found, Item):
                    self.items[Path(found.source).relative_to(self.top).as_posix()] = found
                else:
                    self.results += [("failed", str(failure), "") for failure in found]
        self._follow_names()
        self.save()  # before anything else changes: it fails if the folder cannot be written

    def _follow_names(self) -> None:
        """Find files under other names: those of the same bytes, or with the id and slug of the post."""
        gone = {name: entry for name, entry in self.entries.items() if not self.exists(name)}
        by_sha256 = {entry["sha256"]: name for name, entry in gone.items()}
        by_post = {(entry["id"], entry["slug"]): name for name, entry in gone.items()}
        for name in self.items.keys() - self.entries.keys() if gone else ():
            values = self.items[name].file.values
            post = str(values.get("id")), str(values.get("slug"))
            old = by_sha256.get(self.files.sha256[name]) or by_post.get(post)
            if old in gone:
                self.entries[name] = self.entries.pop(old)
                self.results.append(("renamed", name, f"was {old}"))
                del gone[old]

    def listed(self, entry: Entry) -> Post | None:
        """Return the post of a file as it is listed: in another database, its id is that of another post."""
        post = self.posts.get(entry["id"])
        return post if post and is_same_post(post, entry) else None

    def is_as_known(self, entry: Entry | None, listed: Post | None) -> bool:
        """Return whether a post has not changed since it was noted."""
        return bool(entry and listed and entry["updated_at"] == listed["updated_at"] and "fresh" not in entry)

    def exists(self, name: str) -> bool:
        """Return whether there is a file of this name, or anything else."""
        return os.path.lexists(self.top / name)

    @contextmanager
    def place(self, name: str, create: bool = False) -> Iterator[tuple[Folder, str]]:
        """Open the folder of a file, following no link; yield it and the file's name there. Raises OSError."""
        folder, (*above, last) = self.folder, PurePosixPath(name).parts
        with ExitStack() as opened:
            for part in above:
                if create:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=folder.file)
                folder = opened.enter_context(closing(Folder(folder.path / part, folder)))
            yield folder, last

    def bytes_of(self, name: str) -> bytes:
        """Return the bytes of a file that was read. Raises OSError; Left if they are others now."""
        with self.place(name) as (folder, last), folder.open(last, "rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
        if hashlib.sha256(data).hexdigest() != self.files.sha256.get(name):
            raise Left("conflict", "it changes at this moment")
        return data

    # What they say

    def fields(self, name: str, item: Item | None = None) -> Post:
        """Return what a file says: a slug only if its front matter has one, as a file can get another name."""
        item = item or self.items[name]
        fields = {field: value for field, value in item.fields.items() if field != "slug"}
        own = str(item.file.values.get("slug", ""))
        is_own = own == item.fields["slug"] or (name in self.entries and is_slug(own))
        return fields | ({"slug": own} if own and is_own else {})

    def says(self, fields: Post, known: Entry) -> str:
        """Return the digest of what a post would say after a push of these fields; nothing if it is refused."""
        now = rfc3339(self.remote.now)
        if known["status"] == "scheduled" and known.get("published_at", "") <= now:
            known = known | {"status": "published"}
        with suppress(Rejected):
            return meaning(posts.as_put(known, fields, now))
        return ""

    def has_changed(self, name: str) -> bool:
        """Return whether a known file says something else than its post did."""
        entry = self.entries[name]
        return name not in self.items or self.says(self.fields(name), entry) != entry["said"]

    def compare(self, name: str, there: Entry) -> str:
        """Return whether a file and its post are the "same", or what has changed since: "here", "there" or both."""
        entry = self.entries.get(name)
        if name in self.items and self.says(self.fields(name), there) == there["said"]:
            return "same"
        if not entry:
            return f"the post {there['slug']} says something else"
        if entry["said"] == there["said"]:
            return "here"
        if there["updated_at"] < entry["updated_at"]:
            return "the post is older than it was: push --force keeps the file, pull --theirs the post"
        return "it has changed here and there" if self.has_changed(name) else "there"


def is_same_post(one: Entry, other: Entry) -> bool:
    """Return whether two entries or posts are about the same post: another database has the same ids."""
    return (one["id"], one["created_at"]) == (other["id"], other["created_at"])


def is_entry(name: str, entry: Entry) -> bool:
    """Return whether this can be in a state: about a Markdown file that is not hidden, in the folder."""
    is_hidden = "\0" in name or any(part.startswith(".") or not part for part in name.split("/"))
    return name.endswith(MARKDOWN_SUFFIXES) and not is_hidden and all(isinstance(entry[each], str) for each in KNOWN)
