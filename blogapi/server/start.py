"""The start of the server: what must hold before it serves, and the hooks of gunicorn's master."""

import fcntl
import os
import resource
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

from blogapi.config import Config
from blogapi.storage.engine import engine_for
from blogapi.storage.errors import Unavailable

SETTINGS = "python:blogapi.gunicorn_conf"
WORKER = "blogapi.server.worker.Worker"
OTHERS = 0o077  # the permissions of everybody but the owner
LOCK_SECONDS = 3.0  # the worker of a master that was killed lives on for a second


def become_server() -> NoReturn:
    """Replace this process by gunicorn: it has imported modules that gevent must patch first."""
    os.execv(sys.executable, [sys.executable, "-m", "gunicorn", "--config", SETTINGS])


def on_starting(server: Any) -> None:
    """Refuse to start, in one line, if the service could not keep its promises."""
    config = Config.from_environ(os.environ)
    given = server.cfg.settings["worker_class"].get()
    if server.cfg.workers != config.web_concurrency or server.cfg.preload_app or given != WORKER:
        sys.exit(
            "blogapi: must run as one worker of its own class, or the rate limit would be multiplied; "
            "see WEB_CONCURRENCY, GUNICORN_CMD_ARGS and the command line"
        )
    try:
        if isinstance(config.database, Path):
            server.database_lock = lock(config.database)  # First: a killed server's worker has the address, too.
        for address in server.cfg.address:
            refuse_taken_address(*address)
        engine = engine_for(config.database)
        engine.open()  # A failure here is one line and an exit; in the worker, a traceback.
        engine.close()
    except (OSError, Unavailable, ValueError) as error:
        sys.exit(f"blogapi: {error}")
    if isinstance(config.database, Path) and os.stat(config.database).st_mode & OTHERS:
        server.log.warning("others may read the database: chmod 600 %s", config.database)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # Every connection takes a file.


def when_ready(server: Any) -> None:
    """Ignore the signals that would run two workers side by side, each with counts of its own."""

    def ignore(number: int, frame: Any) -> None:
        server.log.warning("%s is ignored; restart the service instead", signal.Signals(number).name)

    for number in (signal.SIGHUP, signal.SIGUSR2, signal.SIGTTIN, signal.SIGTTOU):
        signal.signal(number, ignore)


def refuse_taken_address(host: str, port: int) -> None:
    """Raise OSError if the address cannot be listened on. gunicorn would try for five seconds."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen()
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", "no valid name of a host")
        raise OSError(f"cannot listen on {host} port {port}: {reason}; set HOST or PORT") from error


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
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise OSError(f"another server is using the database {path}") from None
        time.sleep(0.05)
