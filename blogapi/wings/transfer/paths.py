"""Open files of an import, and no others."""

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO

MARKDOWN_SUFFIXES = (".md", ".markdown", ".mdx")


def real_folders(paths: Iterable[Path]) -> tuple[str, ...]:
    """Return the real paths of the folders among these paths, each with a slash at its end."""
    return tuple(os.path.join(os.path.realpath(path), "") for path in paths if path.is_dir())


def exists(path: Path | str, folder: int | None = None) -> bool:
    """Return whether a file exists, or its folder cannot be read. The path may be relative to an open folder."""
    try:
        os.lstat(path, dir_fd=folder)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


@contextmanager
def open_below(path: Path | str, roots: tuple[str, ...]) -> Iterator[BinaryIO]:
    """Open a regular file below one of the folders `roots`, safely even if a link replaces it. Raises OSError."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:  # for a pipe
        real, state = os.path.realpath(path), os.fstat(file.fileno())
        if not (S_ISREG(state.st_mode) and real.startswith(roots) and os.path.samestat(state, os.stat(real))):
            raise OSError(errno.EPERM, "it is not a file in the folders that were given")
        yield file


def reason_of(error: Exception) -> str:
    """Return the reason for an error, without the name of the file."""
    return getattr(error, "strerror", None) or str(error)
