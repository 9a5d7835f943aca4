"""A folder in which files are read and written safely."""

import fcntl
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path, PurePosixPath
from stat import S_IMODE, S_ISREG
from typing import IO

from blogapi.wings.markdown.files import MAX_FILE_BYTES
from blogapi.wings.transfer.paths import exists


class Folder:
    """An open folder, whose path may later lead elsewhere. Links in it are not followed. Raises OSError."""

    def __init__(self, path: Path, parent: "Folder | None" = None):
        self.path = path
        try:
            if parent:
                self.file: int = os.open(path.name, os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent.file)
            else:
                self.file = os.open(path, os.O_DIRECTORY)
        except NotADirectoryError as error:
            which = f"{path} " if parent else ""
            raise OSError(error.errno, f"{which}must be a folder, and not a link") from error

    def lock(self) -> None:
        """Lock the folder until it is closed. Raises BlockingIOError if it is locked already."""
        fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def close(self) -> None:
        """Close the folder."""
        os.close(self.file)

    def below(self, name: str, create: bool = False) -> "Folder":
        """Open a folder in this folder."""
        if create:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=self.file)
        return Folder(self.path / name, self)

    def state(self, name: str) -> os.stat_result:
        """Return the state of a file or link."""
        return os.stat(name, dir_fd=self.file, follow_symlinks=False)

    def open(self, name: str, mode: str) -> IO[bytes]:
        """Open a file; refuse a link."""
        flags = os.O_NOFOLLOW | os.O_NONBLOCK  # A pipe would wait for its other end.
        return open(name, mode, opener=lambda path, more: os.open(path, more | flags, 0o666, dir_fd=self.file))

    @contextmanager
    def replacing(self, name: str) -> Iterator[IO[bytes]]:
        """Open a new file that replaces another atomically after the block; if the block fails, nothing changes."""
        part = f".{name}.part"
        self.remove(part)  # left by a command that was killed
        try:
            with self.open(part, "xb") as file:
                yield file
            os.replace(part, name, src_dir_fd=self.file, dst_dir_fd=self.file)
        finally:
            self.remove(part)

    def write(self, name: str, pieces: Iterable[bytes], when: str, is_same: Callable[[IO[bytes]], bool]) -> str:
        """Replace a file atomically and set its time, unless it is a regular file with the same bytes."""
        mode = 0
        with suppress(OSError):
            if S_ISREG(mode := self.state(name).st_mode):
                with self.open(name, "rb") as file:
                    if is_same(file):
                        return "unchanged"
        seconds = datetime.fromisoformat(when).timestamp()
        with self.replacing(name) as file:
            file.writelines(pieces)
            file.flush()
            os.utime(file.fileno(), (seconds, seconds))
            if S_ISREG(mode):
                os.fchmod(file.fileno(), S_IMODE(mode))
        return "written"

    def write_bytes(self, name: str, data: bytes, when: str) -> str:
        """Replace a file like `write`."""
        return self.write(name, [data], when, lambda file: file.read(len(data) + 1) == data)

    def remove(self, name: str) -> str:
        """Remove a file or link if it exists."""
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.file)
        return "deleted"

    def exists(self, name: str) -> bool:
        """Return whether anything has this name, or its folder cannot be read."""
        return exists(name, self.file)

    @contextmanager
    def place(self, name: str, create: bool = False) -> Iterator[tuple["Folder", str]]:
        """Open the folder of a file without following links; yield it and the file's name in it. Raises OSError."""
        folder, (*folders, last) = self, PurePosixPath(name).parts
        with ExitStack() as opened:
            for part in folders:
                folder = opened.enter_context(closing(folder.below(part, create)))
            yield folder, last

    def read_bytes(self, name: str) -> bytes:
        """Read a file that is not a link. Raises OSError."""
        with self.place(name) as (folder, last), folder.open(last, "rb") as file:
            return file.read(MAX_FILE_BYTES + 1)
