"""Reserve disk space for deleting data, because a deletion needs some space before it frees more."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

RESERVED_BYTES = 4 * 1024 * 1024  # enough for the checkpoint that is made before data is deleted
ROOM_BYTES = 2 * 1024 * 1024  # left free for other programs
CHUNK_BYTES = 64 * 1024


class Reserve:
    """An unnamed file that occupies the reserved space. `keep` creates it, and it disappears when the process ends."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._file: int | None = None

    def keep(self, room: int = ROOM_BYTES) -> None:
        """Grow the file to RESERVED_BYTES, but leave `room` bytes of the disk free."""
        if self._file is None:
            self._file, name = tempfile.mkstemp(dir=self._folder)
            os.unlink(name)
        size = os.fstat(self._file).st_size
        goal = min(RESERVED_BYTES, size + shutil.disk_usage(self._folder).free - room)
        with suppress(OSError):  # Another program has taken the space in the meantime.
            while size < goal:
                size += os.write(self._file, os.urandom(CHUNK_BYTES))  # Some file systems compress zeros to nothing.

    @contextmanager
    def released(self, room: int = ROOM_BYTES) -> Iterator[None]:
        """Free the reserved space during a block, and reserve it again afterwards, leaving `room` bytes free."""
        if self._file is not None:
            os.lseek(self._file, 0, os.SEEK_SET)
            os.ftruncate(self._file, 0)
        try:
            yield
        finally:
            if self._file is not None:
                self.keep(room)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
