"""What a folder remembers of its last sync: a journal with one line for each file, and a first line on the folder."""

import hashlib
import json
import os
import socket
from datetime import timedelta
from errno import EACCES
from itertools import chain
from pathlib import Path
from typing import IO, Any

from marshmallow import ValidationError, fields

from blogapi.clock import later
from blogapi.documents import INPUT_FIELDS, REQUIRED, STAYING
from blogapi.posts.schemas import PostSchema
from blogapi.wings.sync.client import RemoteError
from blogapi.wings.sync.remote import MAX_POSTS, Post
from blogapi.wings.transfer.folder import MARKDOWN_SUFFIXES, Folder
from blogapi.wings.transfer.images import IMAGE_ADDRESS

STATE = ".blogapi.json"
MAX_STATE_BYTES = 2 * MAX_POSTS * 700  # twice as many lines as posts, each longer than most
WAY_OUT = "delete it, and all files are compared with the posts"
ADDED_FIELDS = ("etag", "fingerprint", "seen", "sha256")  # the last is that of the file
DAMAGE = (ValueError, KeyError, TypeError, AttributeError, RecursionError, ValidationError)

Entry = dict[str, Any]  # what is known about a post and, in the state, about its file: see EntrySchema


class EntrySchema(PostSchema):
    """An Entry in the state: the fields of a post that its file can lack, and ADDED_FIELDS."""

    etag, fingerprint, seen, sha256 = fields.String(), fields.String(), fields.String(), fields.String()

    class Meta:
        fields = (*STAYING, *ADDED_FIELDS)

    def on_bind_field(self, field_name: str, field_obj: fields.Field) -> None:
        field_obj.required, field_obj.allow_none = field_name in REQUIRED | {*ADDED_FIELDS}, False


ENTRY_SCHEMA = EntrySchema()


def fingerprint(post: Post) -> str:
    """Return a digest of what a post says, ignoring line endings and image hosts; scheduled counts as published."""
    fields = {name: post[name] for name in INPUT_FIELDS if post.get(name) not in (None, [], {})}
    fields["content"] = fields["content"].replace("\r\n", "\n")
    fields["status"] = "published" if fields["status"] == "scheduled" else fields["status"]
    data = IMAGE_ADDRESS.sub(rb"images/\1", json.dumps(fields, sort_keys=True).encode())
    return hashlib.sha256(data).hexdigest()[:32]


def entry_of(post: Post, etag: str) -> Entry:
    """Return what to remember of a post."""
    kept = {name: post[name] for name in post if name in STAYING}
    return kept | {"etag": etag, "fingerprint": fingerprint(post)}


def identity(post: Entry) -> tuple[str, str]:
    """Return what no other post has. The id is not enough: another database, or a restored one, uses the same."""
    return post["id"], post["created_at"]


class SyncState:
    """The entries by the names of files. Each change is appended, so writing it does not depend on their number.

    A state in another file than STATE belongs to no place: it may be kept in a repository, together with the files.
    Raises RemoteError if it is damaged.
    """

    def __init__(self, folder: Folder, name: str = STATE):
        self.folder, self.name = folder, name
        self.remote = self.zone = ""  # "" in a new state; a state of version 1.2 has no zone
        self.seen = ""  # the default for entries, so that one line changes when all were seen again
        self.entries: dict[str, Entry] = {}
        self.skipped: dict[str, str] = {}  # digests of the files that failed before, and are skipped now
        self.is_foreign = False  # whether it was written elsewhere: the files may be older than it says
        self._journal: IO[bytes] | None = None
        try:
            with folder.open(name, "rb") as file:
                data = file.read(MAX_STATE_BYTES + 1)
                if len(data) > MAX_STATE_BYTES:
                    raise RemoteError(f"{folder.path / name} is too large: {WAY_OUT}")
                self._load(data, self._places(file))
        except FileNotFoundError:
            return
        except DAMAGE:
            raise RemoteError(f"{folder.path / name} is damaged: {WAY_OUT}") from None

    def _load(self, data: bytes, places: list[str]) -> None:
        first, *lines = data.split(b"\n")
        head = json.loads(first)
        self.remote, self.zone = str(head["remote"]), str(head.get("zone", ""))
        self.is_foreign = "places" in head and self.name == STATE and not {*head["places"]} & {*places}
        for name, entry in head.get("files", {}).items():  # of version 1.2, which did not know when it saw a post
            self._set(checked_name(name), _loaded(entry | {"seen": later(entry["updated_at"], timedelta(seconds=1))}))
        found = [json.loads(line) for line in lines[:-1]]  # The last one is empty, or was not written to its end.
        heads = [head, *(each for each in found if isinstance(each, dict))]  # Git can merge those of two clones.
        seen = {"seen": min(each["seen"] for each in heads)} if "seen" in head else {}
        for name, entry in (each for each in found if isinstance(each, list)):
            if isinstance(entry, str):
                self._set(name.replace("\0", ""), entry)  # of a folder, perhaps
            else:
                self._set(checked_name(name), entry and _loaded(seen | entry))

    def _places(self, file: IO[bytes]) -> list[str]:
        """Return two names for where the state is. A copy has neither; containers may change one, disks the other."""
        numbers = os.fstat(self.folder.file).st_ino, os.fstat(file.fileno()).st_ino
        return ["{}-{}".format(*numbers), f"{socket.gethostname()}:{os.path.realpath(self.folder.path)}"]

    def start(self, remote: str, zone: str, seen: str, is_changed: bool) -> None:
        """Write all entries if they have changed; if not, `begin` does so before a change. Raises OSError."""
        is_changed = is_changed or self.is_foreign or (remote, zone) != (self.remote, self.zone)
        self.remote, self.zone, self.seen = remote, zone, seen
        if is_changed:
            self.begin()
        elif not os.access(".", os.W_OK, dir_fd=self.folder.file):
            raise PermissionError(EACCES, os.strerror(EACCES))

    def begin(self) -> IO[bytes]:
        """Write all entries and open the journal, once. Do so before a change: the disk may be full. Raises OSError."""
        if self._journal:
            return self._journal
        with self.folder.replacing(self.name) as file:
            places = self._places(file) if self.name == STATE else []
            head = {"remote": self.remote, "zone": self.zone, "seen": self.seen, "places": places}
            entries = ((name, self._shortened(entry)) for name, entry in self.entries.items())
            file.writelines(map(_line, chain((head,), entries, self.skipped.items())))
            file.flush()
            os.fsync(file.fileno())
        self._journal = self.folder.open(self.name, "ab")
        return self._journal

    def _shortened(self, entry: Entry) -> Entry:
        return {key: entry[key] for key in entry if key != "seen" or entry[key] != self.seen}

    def put(self, name: str, entry: Entry | str | None) -> None:
        """Remember a file, or the digest of one that is left as it is; without an entry, forget it. Raises OSError."""
        if isinstance(entry, dict) and self._is_kept(name, entry):
            self._set(name, entry)
            return
        journal = self.begin()
        self._set(name, entry)
        journal.write(_line((name, entry)))
        journal.flush()

    def _is_kept(self, name: str, entry: Entry) -> bool:
        """Return whether the file can stay as it is, because only the time differs at which a post was seen.

        If it had been seen in the second of its change, the new time is written, but not to a file in a repository.
        """
        known = self.entries.get(name, {})
        is_same = {**known, "seen": "", "etag": ""} == {**entry, "seen": "", "etag": ""}
        is_unimportant = self.name != STATE and not self._journal
        return is_same and (is_unimportant or known["updated_at"] < known["seen"])

    def _set(self, name: str, entry: Entry | str | None) -> None:
        for known in (self.skipped,) if isinstance(entry, str) else (self.skipped, self.entries):
            known.pop(name, None)
        if isinstance(entry, str):
            self.skipped[name] = entry
        elif entry:
            self.entries[name] = entry

    def close(self) -> None:
        """Close the journal."""
        if self._journal:
            self._journal.close()


def _loaded(entry: dict[str, Any]) -> Entry:
    """Return a valid entry; `said` is what its fingerprint was called before."""
    return ENTRY_SCHEMA.load({"fingerprint" if name == "said" else name: entry[name] for name in entry})


def _line(value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"  # ASCII: a file name need not be UTF-8


def synced_folder(path: Path) -> Path | None:
    """Return the nearest folder that is kept in sync: this one, or one above it."""
    path = Path(os.path.realpath(path))
    return next((each for each in (path, *path.parents) if os.path.isfile(each / STATE)), None)


def checked_name(name: str) -> str:
    """Return a name from a state, which must be that of a visible Markdown file in the folder. Raises ValueError."""
    is_hidden = "\0" in name or any(part.startswith(".") or not part for part in name.split("/"))
    if is_hidden or not name.lower().endswith(MARKDOWN_SUFFIXES):
        raise ValueError
    return name
