"""The lock that keeps a second server off a database."""

import fcntl
import os
import time
from pathlib import Path

TIMEOUT_SECONDS = 3.0  # the worker of a master that was killed lives on for a second


def lock(path: Path) -> int:
    """Return a file whose lock keeps a second server off the database at `path`, until this process and its worker end.

    The lock (flock) is on a file of its own: one on the database would go with whatever file is moved into its place,
    and closing that file would drop the locks that SQLite has on it. It has the database's name, so that must be the
    only one. Raises OSError if it is not, or if another server has the lock.
    """
    if path.is_file() and path.stat().st_nlink > 1:
        raise OSError(f"the database {path} has more than one name (hard link): remove the others, or copy it")
    try:
        file = os.open(f"{os.path.realpath(path)}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise OSError(f"cannot lock the database {path}: {error.strerror}") from error
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise OSError(f"another server is using the database {path}") from None
        time.sleep(0.05)
