"""The hooks that gunicorn calls: one server, with one worker, has the database, and ends cleanly."""

import os
import resource
import signal
import socket
import sys
from typing import Any

from blogapi.config import Config
from blogapi.db import database
from blogapi.server.lock import lock
from blogapi.server.worker import Worker


def on_starting(server: Any) -> None:
    """Refuse to start, in one line, where the service could not keep its promises."""
    config = Config.from_environ(os.environ)
    if server.cfg.workers != 1 or server.cfg.preload_app or server.cfg.worker_class is not Worker:
        sys.exit(
            "blogapi: must run as one worker of its own class, or the rate limit would be multiplied; "
            "see WEB_CONCURRENCY, GUNICORN_CMD_ARGS and the command line"
        )
    try:
        server.database_lock = lock(config.database)  # First: a killed server's worker has the address, too.
        for address in server.cfg.address:
            refuse_taken_address(*address)
        database.open(config.database)  # Here a failure is one line and an exit; in the worker, a traceback.
        database.close()
    except Exception as error:
        sys.exit(f"blogapi: {error}")
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # Every connection takes a file.


def when_ready(server: Any) -> None:
    """Ignore the signals that would run two workers side by side, each with counts of its own."""

    def ignore(number: int, frame: Any) -> None:
        os.write(2, f"blogapi: {signal.Signals(number).name} is ignored; restart the service instead\n".encode())

    for number in (signal.SIGHUP, signal.SIGUSR2, signal.SIGTTIN, signal.SIGTTOU):
        signal.signal(number, ignore)


def worker_exit(server: Any, worker: Worker) -> None:
    """End the worker without a trace: no -wal, and nothing left to an interpreter that gevent has patched."""
    if worker.booted:
        if not database.is_closed():
            database.close()
        os._exit(0)


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
