"""Record the state of a synced folder in a journal: a line about the folder, then a line per change to an entry."""

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import IO, Any

from marshmallow import ValidationError, fields

from blogapi.clock import later
from blogapi.documents import REQUIRED, STAYING
from blogapi.posts.schemas import PostSchema
from blogapi.wings.sync.client import MAX_POSTS, RemoteError
from blogapi.wings.transfer.folder import MARKDOWN_SUFFIXES, Folder, reason_of

STATE = ".blogapi.json"
MAX_STATE_BYTES = 2 * MAX_POSTS * 700  # maximum size of a state, enough for two long lines per post
MAX_COPIES = 100  # keep at most this many copies of states in the user's state folder
WAY_OUT = "delete it to compare all files with the posts"
POST_FIELDS = *STAYING, "etag", "fingerprint", "images"
FILE_FIELDS = "sha256", "file_slug", "file_former_slugs", "file_status"
DAMAGE = (ValueError, KeyError, TypeError, AttributeError, RecursionError, ValidationError)

Entry = dict[str, Any]  # the record of a file and its post: see EntrySchema


class EntrySchema(PostSchema):
    """An Entry in the state: POST_FIELDS, FILE_FIELDS, and when the post was `seen`.

    `file_slug` and `file_former_slugs` are the slugs in the file, if they differ from those of the post. `file_status`
    is "" if the file contains none. `images` are the base URLs of the post's images. These fields are optional.
    """

    always = REQUIRED | {"etag", "fingerprint", "sha256", "seen"}
    etag, fingerprint, sha256, file_slug, file_status, seen = (fields.String() for _ in range(6))
    file_former_slugs, images = fields.List(fields.String()), fields.List(fields.String())

    class Meta:
        fields = (*POST_FIELDS, *FILE_FIELDS, "seen")


ENTRY_SCHEMA = EntrySchema()


def identity(post: Entry) -> tuple[str, str]:
    """Return the identity of a post. The id is not enough, because other or restored databases reuse it."""
    return post["id"], post["created_at"]


class SyncState:
    """Maps file names to entries. A change only appends a line, however many entries there are.

    A state is valid only where it was written, because a sync program or a backup can separate it from its files. The
    user's state folder contains a copy of the state that was last written here. `reconcile` compares the two. A state
    file other than STATE may be in a repository with its files. Raises RemoteError if the state is damaged.
    """

    def __init__(self, folder: Folder, name: str, dry_run: bool):
        self.folder, self.name, self.dry_run = folder, name, dry_run
        self.remote = self.zone = ""  # "" in a new state; version 1.2 did not write a zone
        self.id = ""  # the folder's random id
        self.seen = ""  # default `seen` of entries, so that only one line changes when all posts are seen again
        self.entries: dict[str, Entry] = {}
        self.unreadable: dict[str, str] = {}  # the digest of each failed file, or the reason if it has no digest
        self.is_foreign = False  # whether the state was written elsewhere, where files may differ
        self._own: dict[str, Entry] = {}  # the entries last written here, if they may differ from `entries`
        self._journal: IO[bytes] | None = None
        with suppress(FileNotFoundError), folder.open(name, "rb") as file:
            data, status = file.read(MAX_STATE_BYTES + 1), os.fstat(file.fileno())
            head, self.entries = self._read(data)
            self.remote, self.zone, self.id = (str(head.get(key, "")) for key in ("remote", "zone", "id"))
            self.unreadable = head.get("unreadable", {})
            is_here = not head.get("places") or self._place(status) in head["places"] or name != STATE
            self._compare_with_own(data, status.st_mtime_ns, is_here)

    def _compare_with_own(self, data: bytes, time_ns: int, is_here: bool) -> None:
        """Decide whether the state was written here. If the copy in the user's state folder differs, read the copy."""
        self.is_foreign = not is_here
        with suppress(OSError, RuntimeError, RemoteError):
            file = self._own_file()
            own, own_time_ns = file.read_bytes(), file.stat().st_mtime_ns
            is_merged = b"\n{" in data  # If git has merged two states, both of their first lines are here.
            is_last = self.name == STATE and not is_merged and data.partition(b"\n")[0] == own.partition(b"\n")[0]
            self._own = {} if is_last else self._read(own)[1]
            # Some disks renumber files. The modification time then shows that the file is the same.
            self.is_foreign = self.is_foreign and own_time_ns != time_ns if is_last else self.name == STATE

    def _read(self, data: bytes) -> tuple[dict[str, Any], dict[str, Entry]]:
        file = self.folder.path / self.name
        if len(data) > MAX_STATE_BYTES:
            raise RemoteError(f"{file} is too large: {WAY_OUT}")
        try:
            return _parse(data)
        except DAMAGE:
            raise RemoteError(f"{file} is damaged: {WAY_OUT}") from None

    def _place(self, file: os.stat_result) -> str:
        """Return the inode numbers of the folder and of a file in it. Copies have different numbers."""
        return f"{os.fstat(self.folder.file).st_ino}-{file.st_ino}"

    def reconcile(self, sha256: Mapping[str, str]) -> None:
        """Keep only the entries that can be trusted. `sha256` contains the digests of the files."""
        own = {identity(entry): entry for entry in self._own.values()}
        there = {**self.entries}
        self.entries.clear()
        for name, entry in there.items():
            if trusted := self._trusted(name, entry, own.get(identity(entry)), sha256.get(name, "")):
                self.entries[name] = trusted
        if self.is_foreign:  # A file that still exists here may have been deleted elsewhere.
            known = {*map(identity, self.entries.values())}
            for name, entry in self._own.items():
                if identity(entry) not in known and sha256.get(name) == entry["sha256"]:
                    self.entries.setdefault(name, entry)

    def _trusted(self, name: str, there: Entry, here: Entry | None, digest: str) -> Entry | None:
        """Return the entry to trust for a file: the folder's, the one last written here, or None for neither."""
        if not self.is_foreign:  # If git reverted both file and state, nothing shows which version to keep.
            is_reverted = here and here["updated_at"] > there["updated_at"] and digest == there["sha256"]
            return None if is_reverted else there
        if here and digest == here["sha256"] != there["sha256"]:
            return here
        # If the file was edited, its last synced version is known for certain only if both entries agree.
        is_certain = here and here is self._own.get(name) and here["fingerprint"] == there["fingerprint"]
        return there if is_certain or digest == there["sha256"] else None

    def start(self, remote: str, zone: str, unreadable: dict[str, str], seen: str, is_changed: bool) -> None:
        """Write the state if it has changed. Otherwise, `begin` writes it before a change. Raises RemoteError."""
        before = self.remote, self.zone, self.unreadable
        is_changed = is_changed or self.is_foreign or before != (remote, zone, unreadable)
        self.remote, self.zone, self.unreadable, self.seen = remote, zone, unreadable, seen
        if is_changed and not self.dry_run:
            self.begin()

    def begin(self) -> IO[bytes]:
        """Write all entries and open the journal, once. Call this before a change, because the disk may be full."""
        if self._journal:
            return self._journal
        with self._write_errors(), self.folder.replacing(self.name) as file:
            head: dict[str, Any] = {"remote": self.remote, "zone": self.zone, "unreadable": self.unreadable}
            head["seen"] = self.seen
            if self.name == STATE:
                self.id = self.id or secrets.token_hex(16)
                head |= {"id": self.id, "places": [self._place(os.fstat(file.fileno()))]}
            file.write(_line(head))
            for name, entry in self.entries.items():
                is_default = entry["seen"] == self.seen
                file.write(_line((name, {key: entry[key] for key in entry if key != "seen" or not is_default})))
            file.flush()
            os.fsync(file.fileno())
        self._journal = self.folder.open(self.name, "ab")
        self._copy()
        return self._journal

    @contextmanager
    def _write_errors(self) -> Iterator[None]:
        """Raise RemoteError in place of an OSError from writing the state, so that the command stops at once."""
        try:
            yield
        except OSError as error:
            raise RemoteError(f"{self.folder.path}: {reason_of(error)}") from None

    def put(self, name: str, entry: Entry | None) -> None:
        """Record a file, or forget it if `entry` is None. A dry run does nothing."""
        if self.dry_run:
            return
        known, ignored = self.entries.get(name, {}), {"seen": "", "etag": "", "file_status": ""}
        is_minor = entry and known | ignored == entry | ignored  # not worth a commit if the state is in a repository
        journal = None if is_minor and self.name != STATE and not self._journal else self.begin()
        self.entries.pop(name, None)
        if entry:
            self.entries[name] = entry
        if journal:
            with self._write_errors():
                journal.write(_line((name, entry)))
                journal.flush()

    def close(self) -> None:
        """Close the journal, and copy it to the user's state folder."""
        if self._journal:
            self._journal.close()
            self._copy()

    def _copy(self) -> None:
        """Copy the journal and its time to the user's state folder, if possible, and remove the oldest copies."""
        with suppress(OSError, RuntimeError):
            path = self._own_file()
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with (
                closing(Folder(path.parent)) as own,
                self.folder.open(self.name, "rb") as file,
                own.replacing(path.name) as copy,
            ):
                shutil.copyfileobj(file, copy)
                copy.flush()
                os.utime(copy.fileno(), ns=(os.fstat(file.fileno()).st_mtime_ns,) * 2)
            for old in sorted(path.parent.glob("*.json"), key=lambda file: file.stat().st_mtime)[:-MAX_COPIES]:
                old.unlink()

    def _own_file(self) -> Path:
        """Return the path of the copy, which depends on the folder's path. Raises RuntimeError if there is no home."""
        top = os.environ.get("XDG_STATE_HOME", "")
        folder = Path(top) if os.path.isabs(top) else Path("~/.local/state").expanduser()
        key = f"{self.id} {os.path.join(os.path.realpath(self.folder.path), self.name)}"
        return folder / "blogapi" / f"{hashlib.sha256(os.fsencode(key)).hexdigest()[:32]}.json"


def _parse(data: bytes) -> tuple[dict[str, Any], dict[str, Entry]]:
    """Return the first line of a state, and the entries. Raises one of DAMAGE."""
    first, *rest = data.split(b"\n")
    head = json.loads(first)
    if [*map(type, (head["remote"], head.get("places", []), head.get("unreadable", {})))] != [str, list, dict]:
        raise ValueError
    entries = {  # Version 1.2 did not record when it had seen a post.
        name: entry | {"seen": later(entry["updated_at"], timedelta(seconds=1))}
        for name, entry in head.get("files", {}).items()
    }
    lines = [json.loads(line) for line in rest[:-1]]  # The last line is empty or incomplete.
    heads = [head, *(line for line in lines if isinstance(line, dict))]  # Git may have merged two states.
    seen = {"seen": min(line["seen"] for line in heads)} if "seen" in head else {}
    for name, line in (line for line in lines if isinstance(line, list)):
        if isinstance(line, str):  # Version 1.3 wrote this for an unreadable file.
            continue
        known = entries.pop(name, None)
        if line:
            is_older = known and len(heads) > 1 and line["updated_at"] < known["updated_at"]
            entries[name] = known if is_older else seen | line
    new_names = {"said": "fingerprint"}  # older versions called it `said`
    renamed = ((name, {new_names.get(key, key): entry[key] for key in entry}) for name, entry in entries.items())
    return head, {checked_name(name): ENTRY_SCHEMA.load(entry) for name, entry in renamed}


def _line(value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"  # ASCII, because file names may not be UTF-8


def synced_folder(path: Path) -> Path | None:
    """Return the nearest synced folder, if any: `path` itself, or a folder above it."""
    path = Path(os.path.realpath(path))
    return next((folder for folder in (path, *path.parents) if os.path.isfile(folder / STATE)), None)


def checked_name(name: str) -> str:
    """Return a name from a state. Raises ValueError unless it can belong to a visible Markdown file."""
    is_hidden = "\0" in name or any(part.startswith(".") or not part for part in name.split("/"))
    if is_hidden or not name.lower().endswith(MARKDOWN_SUFFIXES):
        raise ValueError
    return name
