"""gunicorn's configuration."""

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
workers = _config.web_concurrency  # 1 on SQLite, where one process counts the rate limit
worker_class = start.WORKER
loglevel = _config.log_level
logger_class = "blogapi.server.log.ServerLogger"
timeout = 30  # seconds; a worker whose main loop stands still for this long is replaced
on_starting, when_ready, on_exit, worker_exit = start.on_starting, start.when_ready, start.on_exit, worker.worker_exit
graceful_timeout = _config.drain_seconds + 5  # seconds; the worker itself gives up after 4, once it has drained
control_socket_disable = True  # two servers would compete for the socket in the user's home
