"""The WSGI application that gunicorn's worker loads, with its connection handler and background work.

gevent must already have patched the standard library, so gunicorn's master must not import this module.
"""

import os
import sys
from dataclasses import replace

from gevent import monkey

from blogapi import create_app
from blogapi.api.service import EXTENSION
from blogapi.config import Config
from blogapi.server.background import Background
from blogapi.server.handler import Handler
from blogapi.server.start import OTHER_WORKERS
from blogapi.server.threads import EventLoop, SharedDatabase

if not monkey.is_module_patched("socket"):  # It is gunicorn's master, with --preload.
    sys.exit(OTHER_WORKERS)
# The master has set up the database. If it is missing when a worker is replaced, its disk is.
config = replace(Config.from_environ(os.environ), create=False)
app = create_app(config, loop=EventLoop(), database_class=SharedDatabase)
service = app.extensions[EXTENSION]
app.extensions["handler"] = Handler(app, service)
app.extensions["background"] = Background(service)
