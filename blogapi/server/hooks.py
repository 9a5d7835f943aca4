"""The hooks that gunicorn calls: one server, with one worker, has the database, and ends cleanly."""

import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

from blogapi.config import Config
from blogapi.server.lock import lock
from blogapi.server.log import LogWriter
from blogapi.server.start import refuse_taken_address
from blogapi.server.worker import Worker
from blogapi.storage.engine import engine_for
from blogapi.storage.errors import Unavailable
from blogapi.web.service import EXTENSION

OTHERS = 0o077  # the permissions of everybody but the owner


def on_starting(server: Any) -> None:
    """Refuse to start, in one line, where the service could not keep its promises."""
    config = Config.from_environ(os.environ)
    if server.cfg.workers != config.web_concurrency or server.cfg.preload_app or server.cfg.worker_class is not Worker:
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
        engine.open()  # Here a failure is one line and an exit; in the worker, a traceback.
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


def worker_exit(server: Any, worker: Worker) -> None:
    """End the worker without a trace: no -wal, and nothing left to an interpreter that gevent has patched."""
    if worker.pid != os.getpid():  # gunicorn's master calls it for a worker that has gone unnoticed.
        return
    status = getattr(sys.exc_info()[1], "code", 1)  # gunicorn ends a worker by SystemExit.
    try:
        if worker.booted:
            worker.wsgi.extensions[EXTENSION].database.close()
    finally:
        if isinstance(sys.stderr, LogWriter):
            sys.stderr.drain()
        os._exit(status if isinstance(status, int) else 1)
