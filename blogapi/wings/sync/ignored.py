"""Which Markdown files of a synced folder are not posts: ignored ones, and copies that programs make of conflicts."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import PurePosixPath

from pathspec import GitIgnoreSpec

from blogapi.wings.sync.client import RemoteError

MINE = ".mine.md"  # the end of the name of a file that a pull has kept aside
GIT, OWN = ".gitignore", ".blogapiignore"
MAX_BYTES = 64 * 1024  # limit for an ignore file
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
TITLE = re.compile(rb"^(?:title\b|# ).*", re.MULTILINE)
BEGINNING = 60  # bytes


class Ignored:
    """The ignored files of a folder. `read` returns the bytes of a file in it, and `exists` whether there is one."""

    def __init__(self, read: Callable[[str], bytes], exists: Callable[[str], bool], with_git: bool):
        self.read, self.exists = read, exists
        self.files = (GIT, OWN) if with_git else (OWN,)  # The last one that matches decides.
        self._specs = cache(self._read_specs)
        self._is_in_ignored = cache(self._find_above)

    def why(self, name: str) -> str:
        """Return why a file is left out, as a kind of file; "" if it is not."""
        path = PurePosixPath(name)
        if path.name.endswith(MINE):
            return "file that a pull kept aside"
        copied = COPIED.fullmatch(path.stem)
        if IN_CONFLICT.search(path.stem):
            return "duplicate from a conflict"
        if copied and self.exists(str(path.with_name(copied[1] + path.suffix))):
            return "duplicate of another file"
        numbered = NUMBERED.fullmatch(path.stem)
        if numbered and self._is_alike(name, str(path.with_name(numbered[1] + path.suffix))):
            return "duplicate of another file"
        return "file to ignore" if self._is_in_ignored(str(path.parent)) or self._find(name) else ""

    def _is_alike(self, *names: str) -> bool:
        """Return whether files have the same title or, without one, begin with the same bytes."""
        try:
            texts = [self.read(name) for name in names]
        except OSError:
            return False
        titles = [title[0] if (title := TITLE.search(text)) else text[:BEGINNING] for text in texts]
        return len({*titles}) == 1

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
        return list(self._each_spec(folder))

    def _each_spec(self, folder: str) -> Iterator[GitIgnoreSpec]:
        for file in self.files:
            name = f"{folder}/{file}" if folder else file
            if self.exists(name):
                try:
                    data = self.read(name)
                    if len(data) > MAX_BYTES:
                        raise ValueError(f"must have at most {MAX_BYTES // 1024} KiB")
                    yield GitIgnoreSpec.from_lines(data.decode().splitlines())
                except (OSError, ValueError) as error:  # Otherwise, what it ignores would be sent.
                    raise RemoteError(f"{name} cannot be used: {getattr(error, 'strerror', None) or error}") from None
