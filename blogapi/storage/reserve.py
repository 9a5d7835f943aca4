"""Disk space that is kept for deletions, which need some before they free more."""

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

RESERVED_BYTES = 4 * 1024 * 1024  # enough for the checkpoint before a deletion, which can take as much as the -wal has
ROOM_BYTES = 2 * 1024 * 1024  # always left to other programs
CHUNK_BYTES = 64 * 1024


class Reserve:
    """A file without a name, which disappears with its process."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._file, name = tempfile.mkstemp(dir=folder)
        os.unlink(name)

    def keep(self) -> None:
        """Take as much space as there is room for."""
        size = os.fstat(self._file).st_size
        wanted = min(RESERVED_BYTES, size + shutil.disk_usage(self._folder).free - ROOM_BYTES)
        with suppress(OSError):  # Another program was faster.
            while size < wanted:
                size += os.write(self._file, os.urandom(CHUNK_BYTES))  # Some file systems compress zeros to nothing.

    def release(self) -> None:
        """Free the space."""
        os.lseek(self._file, 0, os.SEEK_SET)
        os.ftruncate(self._file, 0)

    def close(self) -> None:
        """Free the space for good."""
        os.close(self._file)
