"""The configuration of gunicorn."""

import os
import sys

from blogapi.config import Config
from blogapi.server import log, start, worker

log.open_standard_files()  # before gunicorn opens anything

try:
    _config = Config.from_environ(os.environ)
except ValueError as error:
    sys.exit(f"blogapi: {error}")

wsgi_app = "blogapi.server.app:app"
bind = f"[{_config.host}]:{_config.port}" if ":" in _config.host else f"{_config.host}:{_config.port}"
workers = _config.web_concurrency  # on SQLite 1: the rate limit is exact because one process counts
worker_class = start.WORKER
logger_class = "blogapi.server.log.ServerLogger"
timeout = 30  # seconds without a turn of the main loop, after which the worker is killed and replaced
on_starting, when_ready, on_exit, worker_exit = start.on_starting, start.when_ready, start.on_exit, worker.worker_exit
graceful_timeout = 5  # seconds; the worker itself gives up after 4
control_socket_disable = True  # it would be in the user's home, and two servers would fight over it
