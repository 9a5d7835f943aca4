"""Start the server: check that it can run, and define the hooks that gunicorn's master runs."""

import fcntl
import gc
import os
import resource
import signal
import socket
import struct
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from blogapi.config import Config
from blogapi.engines import engine_for
from blogapi.storage.errors import Unavailable

SETTINGS = "python:blogapi.server.gunicorn_conf"
WORKER = "blogapi.server.worker.Worker"
OTHER_WORKERS = (
    "blogapi: gunicorn must use blogapi's worker class, and WEB_CONCURRENCY workers; otherwise, the rate limit would "
    "be multiplied. See GUNICORN_CMD_ARGS and the command line"
)
MIN_FILES = 256  # at least this many open files must be allowed
MAC_FILES = 10_240  # highest limit on open files that macOS accepts by default
STOP_SIGNALS = signal.SIGTERM, signal.SIGINT, signal.SIGQUIT
GROUP_AND_OTHERS = 0o077  # mode bits for everyone except the owner
# A struct flock: a write lock on one byte beyond those that SQLite locks (from 2**30 on)
LOCK = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 2**30 + 1024, 1, 0)
LOCK_SECONDS = 3.0  # longest wait for the lock; the worker of a killed master keeps it for another second


def on_starting(server: Any) -> None:
    """Check that the service can run as configured. Otherwise, exit with a one-line reason."""
    config = Config.from_environ(os.environ)
    database = config.database
    worker_class = server.cfg.settings["worker_class"].get()
    if server.cfg.workers != config.web_concurrency or server.cfg.preload_app or worker_class != WORKER:
        sys.exit(OTHER_WORKERS)
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if 0 <= files < MIN_FILES:
        sys.exit(f"blogapi: the limit on open files must be at least {MIN_FILES}, not {files}; see ulimit -Hn")
    try:
        engine = engine_for(database)
        # The worker also opens the database, but a failure there would print a traceback.
        engine.open(config.create, upgrade=True)
        engine.close()
        if isinstance(database, Path):
            server.database_lock = lock(database)  # waits until the worker of a killed server has ended
        for address in server.cfg.address:
            refuse_taken_address(*address)
        if isinstance(database, Path):
            host, port = server.cfg.address[0]
            url_file(database).write_text(replace(config, host=host, port=port).base_url, encoding="utf-8")
            if database.stat().st_mode & GROUP_AND_OTHERS:
                server.log.warning("other users can read the database: chmod 600 %s", database)
    except (OSError, Unavailable, ValueError) as error:
        sys.exit(f"blogapi: {error}")
    allow_files(files)


def allow_files(limit: int) -> None:
    """Raise the limit on open files for this process, because every connection needs one."""
    for files in (limit, MAC_FILES):
        with suppress(OSError, ValueError):  # macOS reports an unlimited maximum, but refuses to set it.
            resource.setrlimit(resource.RLIMIT_NOFILE, (files, limit))
            return


def on_exit(server: Any) -> None:
    """Remove the URL file."""
    database = Config.from_environ(os.environ).database
    if isinstance(database, Path):
        url_file(database).unlink(missing_ok=True)


def url_file(database: Path) -> Path:
    """Return the path of the URL file, where commands find the URL of the running server."""
    return database.with_name(f"{database.name}.url")


def url_of_server(config: Config) -> str:
    """Return BLOGAPI_URL or, because the server may have been started with another port, the URL in the URL file."""
    if not config.url and isinstance(config.database, Path):
        with suppress(OSError):
            return url_file(config.database).read_text(encoding="utf-8")
    return config.base_url


def when_ready(server: Any) -> None:
    """Ignore the signals that would make gunicorn run two workers at once, and prepare memory for the fork."""

    def ignore(number: int, frame: Any) -> None:
        server.log.warning("%s is ignored; restart the service instead", signal.Signals(number).name)

    for number in (signal.SIGHUP, signal.SIGUSR2, signal.SIGTTIN, signal.SIGTTOU):
        signal.signal(number, ignore)
    os.register_at_fork(  # Otherwise, a new worker would lose a stop signal that arrives before its handlers are set.
        before=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS),
        after_in_parent=lambda: signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS),
    )
    gc.freeze()  # Otherwise, a garbage collection would write to all memory that the worker shares with this process.
    gc.disable()  # The worker enables it again once it has loaded the application.


def refuse_taken_address(host: str, port: int) -> None:
    """Raise OSError if the address is taken. gunicorn itself would retry for five seconds before it fails."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen()
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", "not a valid host name")
        raise OSError(f"cannot listen on {host} port {port}: {reason}; set HOST or PORT") from error


def lock(path: Path) -> int:
    """Keep a second server from using the database at `path`. Return the open file that holds the lock.

    The lock lasts until this process and its worker have ended. On Linux, it is a lock on a byte of the database file
    that SQLite does not use. It belongs to the open file, which the worker inherits. That file must not be closed,
    because closing it would drop SQLite's own locks. On other systems, a separate file next to the database is locked.
    Raises OSError if another server holds the lock.
    """
    if path.stat().st_nlink > 1:
        raise OSError(f"the database {path} has several names (hard links): remove the other names, or use a copy")
    in_database = hasattr(fcntl, "F_OFD_SETLK")
    file = os.open(path if in_database else f"{path.resolve()}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + LOCK_SECONDS
    while True:
        try:
            if in_database:
                fcntl.fcntl(file, fcntl.F_OFD_SETLK, LOCK)
            else:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return file
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise OSError(f"another server is using the database {path}") from None
        time.sleep(0.05)
