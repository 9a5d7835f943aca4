"""Disk space reserved for deletions, which need some before they free more."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

RESERVED_BYTES = 4 * 1024 * 1024  # enough for the checkpoint before a deletion, which can be as large as the -wal
ROOM_BYTES = 2 * 1024 * 1024  # always left for other programs
CHUNK_BYTES = 64 * 1024


class Reserve:
    """A file without a name, which disappears with its process. It exists from the first `keep`."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._file: int | None = None

    def keep(self, room: int = ROOM_BYTES) -> None:
        """Take as much space as is free, and leave some room."""
        if self._file is None:
            self._file, name = tempfile.mkstemp(dir=self._folder)
            os.unlink(name)
        size = os.fstat(self._file).st_size
        goal = min(RESERVED_BYTES, size + shutil.disk_usage(self._folder).free - room)
        with suppress(OSError):  # Another program took the space.
            while size < goal:
                size += os.write(self._file, os.urandom(CHUNK_BYTES))  # Some file systems compress zeros to nothing.

    @contextmanager
    def released(self, room: int = ROOM_BYTES) -> Iterator[None]:
        """Free the space for a block; then keep it again, and leave some room."""
        if self._file is not None:
            os.lseek(self._file, 0, os.SEEK_SET)
            os.ftruncate(self._file, 0)
        try:
            yield
        finally:
            if self._file is not None:
                self.keep(room)

    def close(self) -> None:
        """Free the space for good."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
