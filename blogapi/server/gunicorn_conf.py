"""Configure gunicorn."""

import os
import sys

from blogapi import env_file
from blogapi.config import Config
from blogapi.server import log, start, worker

log.open_standard_files()  # before gunicorn opens anything

try:
    env_file.load()
    _config = Config.from_environ(os.environ)
except (OSError, ValueError) as error:
    sys.exit(f"blogapi: {error}")

wsgi_app = "blogapi.server.handler:load()"
bind = f"[{_config.host}]:{_config.port}" if ":" in _config.host else f"{_config.host}:{_config.port}"
workers = _config.web_concurrency  # 1 on SQLite, where each process would count requests separately
worker_class = start.WORKER
loglevel = _config.log_level
logger_class = "blogapi.server.log.ServerLogger"
timeout = 30  # seconds; a worker whose main loop makes no progress for this long is replaced
on_starting, when_ready, on_exit, worker_exit = start.on_starting, start.when_ready, start.on_exit, worker.worker_exit
graceful_timeout = _config.drain_seconds + 5  # seconds; more than the worker's own limit, worker.SHUTDOWN_SECONDS
control_socket_disable = True  # Otherwise, two servers would compete for the same socket in the user's home folder.
