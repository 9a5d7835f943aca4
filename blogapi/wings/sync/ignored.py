"""Which Markdown files of a synced folder are not posts, such as ignored ones and copies of conflicts."""

import re
from functools import cache
from pathlib import PurePosixPath

from pathspec import GitIgnoreSpec

from blogapi.wings.sync.client import RemoteError
from blogapi.wings.sync.state import STATE
from blogapi.wings.transfer.folder import Folder, reason_of

MINE = ".mine.md"  # suffix of a file that a pull kept aside
GIT_FILE, OWN_FILE = ".gitignore", ".blogapiignore"
MAX_IGNORE_BYTES = 64 * 1024  # limit for an ignore file
# By Syncthing, ownCloud, Resilio; by Dropbox, Nextcloud, Obsidian, Seafile
IN_CONFLICT = re.compile(
    r"(?:\.sync-|_)conflict-\d{8}-\d{6}|\.conflict(?=\.|$)"
    r"|\([^()]*(?:conflicted copy|case conflict|SFConflict)[^()]*\)",
    re.IGNORECASE,
)
# By browsers and file managers, if the file without this is there, too
COPIED = re.compile(r"(.+?)(?: ?\(\d{1,3}\)| \(copy(?: \d+)?\)| - Copy(?: \(\d+\))?| copy(?: \d+)?)", re.IGNORECASE)
# By iCloud and OneDrive, if the file without this is there and has the same title, or without one, begins alike
NUMBERED = re.compile(r"(.+?)(?: \d{1,2}|-(?:DESKTOP|LAPTOP)-[A-Z0-9]{7})")
TITLE_LINE = re.compile(rb"^(?:title\b|# ).*", re.MULTILINE)
BEGINNING = 60  # bytes


class Ignored:
    """The files of a folder that are left out."""

    def __init__(self, folder: Folder, with_git: bool):
        self.folder = folder
        self.files = (GIT_FILE, OWN_FILE) if with_git else (OWN_FILE,)  # The last one that matches decides.
        self._specs = cache(self._read_specs)
        self._is_in_ignored = cache(self._find_above)
        self._is_of_another = cache(self._find_state_above)

    def why(self, name: str) -> str:
        """Return why a file is left out, as a kind of file; "" if it is not."""
        path = PurePosixPath(name)
        if self._is_of_another(str(path.parent)):
            return "file of another folder that is kept in sync"
        if (self.folder.path / name).is_symlink():
            return "link"
        if path.name.endswith(MINE):
            return "file that a pull kept aside"
        copied = COPIED.fullmatch(path.stem)
        if IN_CONFLICT.search(path.stem):
            return "duplicate from a conflict"
        if copied and self.folder.exists(str(path.with_name(copied[1] + path.suffix))):
            return "duplicate of another file"
        numbered = NUMBERED.fullmatch(path.stem)
        if numbered and self._is_alike(name, str(path.with_name(numbered[1] + path.suffix))):
            return "duplicate of another file"
        return "file to ignore" if self._is_in_ignored(str(path.parent)) or self._find(name) else ""

    def _is_alike(self, *names: str) -> bool:
        """Return whether files have the same title or, without one, begin with the same bytes."""
        try:
            texts = [self.folder.read_bytes(name) for name in names]
        except OSError:
            return False
        titles = [title[0] if (title := TITLE_LINE.search(text)) else text[:BEGINNING] for text in texts]
        return len({*titles}) == 1

    def _find_state_above(self, folder: str) -> bool:
        """Return whether a folder below this one is part of one that is kept in sync itself."""
        above = str(PurePosixPath(folder).parent)
        return folder != "." and (self.folder.exists(f"{folder}/{STATE}") or self._is_of_another(above))

    def _find_above(self, folder: str) -> bool:
        """Return whether the ignore files ignore a folder, or one above it."""
        above = str(PurePosixPath(folder).parent)
        return folder != "." and (self._is_in_ignored(above) or self._find(f"{folder}/"))

    def _find(self, name: str) -> bool:
        """Return whether the ignore files in the folders above a file, or folder, ignore it."""
        parts, found = PurePosixPath(name).parts, None
        for depth in range(len(parts)):
            below = "/".join(parts[depth:]) + "/" * name.endswith("/")
            for spec in self._specs("/".join(parts[:depth])):
                decision = spec.check_file(below).include
                found = found if decision is None else decision
        return bool(found)

    def _read_specs(self, folder: str) -> list[GitIgnoreSpec]:
        names = [f"{folder}/{file}" if folder else file for file in self.files]
        return [self._read_spec(name) for name in names if self.folder.exists(name)]

    def _read_spec(self, name: str) -> GitIgnoreSpec:
        try:
            data = self.folder.read_bytes(name)
            if len(data) > MAX_IGNORE_BYTES:
                raise ValueError(f"must have at most {MAX_IGNORE_BYTES // 1024} KiB")
            return GitIgnoreSpec.from_lines(data.decode().splitlines())
        except (OSError, ValueError) as error:  # Otherwise, what it ignores would be sent.
            raise RemoteError(f"{name} cannot be used: {reason_of(error)}") from None
