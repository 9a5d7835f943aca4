"""Unpack the zip archives that are given to an import."""

import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import BadZipFile, ZipFile

MAX_FILES = 50_000
MAX_UNPACKED_BYTES = 2 * 1024**3  # of all files together
MAX_RATIO = 200  # of these bytes to those of the archive


@contextmanager
def unpacked(paths: Iterable[Path]) -> Iterator[dict[Path, Path]]:
    """Yield the given paths by the paths to read: for a zip archive, a temporary folder of its files.

    An archive that is damaged or too large is not unpacked: its own path is read.
    """
    with TemporaryDirectory() as folder:
        top = os.path.realpath(folder)
        yield {_unpack(path, Path(top, str(number), path.stem)): path for number, path in enumerate(paths)}


def _unpack(path: Path, folder: Path) -> Path:
    if path.suffix.lower() != ".zip" or not path.is_file():
        return path
    try:
        with ZipFile(path) as archive:
            sizes = [file.file_size for file in archive.infolist()]
            if len(sizes) > MAX_FILES or sum(sizes) > min(MAX_UNPACKED_BYTES, MAX_RATIO * path.stat().st_size):
                return path
            archive.extractall(folder)  # writes no more than these sizes, and nothing outside the folder
    except (BadZipFile, OSError, RuntimeError, ValueError, zlib.error):  # damaged, encrypted, or with strange names
        return path
    return folder
