"""A copy of a SQLite database, as one file."""

import errno
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from blogapi.storage.errors import Unavailable
from blogapi.storage.upgrades import APPLICATION_ID


def write_backup(connection: sqlite3.Connection, path: Path) -> None:
    """Write a consistent copy of the database of `connection` to `path`, of mode 0600.

    Raises FileExistsError rather than overwrite; OSError, sqlite3.Error, or Unavailable if the copy is not sound.
    Half a copy never has the name `path`.
    """
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise Unavailable("it belongs to another program")
    with new_file(path) as part:
        connection.execute("VACUUM INTO ?", (part,))


@contextmanager
def new_file(path: Path) -> Iterator[str]:
    """Give the name of an empty file, of mode 0600, which is to be made a database and is called `path` at the end.

    Raises FileExistsError rather than overwrite; OSError, sqlite3.Error, or Unavailable if it is not sound.
    """
    if os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    file, part = tempfile.mkstemp(prefix=f"{path.name}.", suffix=".part", dir=path.parent)  # of mode 0600
    os.close(file)
    try:
        yield part
        with closing(sqlite3.connect(part)) as copy:
            found = copy.execute("PRAGMA integrity_check(1)").fetchone()[0]
        if found != "ok":
            raise Unavailable(f"the database is damaged: {found}")
        _sync(part)
        try:
            os.link(part, path)  # Where it can be had, this is one step, and overwrites nothing.
        except PermissionError:  # There are no links on this file system.
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            os.replace(part, path)
        _sync(path.parent)
    finally:
        Path(part).unlink(missing_ok=True)


def _sync(path: str | Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
