"""The factory of the WSGI application."""

import os
import time
from collections.abc import Callable

from flask import Flask

from blogapi.config import Config
from blogapi.storage import PLAIN, Loop
from blogapi.web.application import Application
from blogapi.web.owner import blueprint as owner
from blogapi.web.responses import HANDLERS
from blogapi.web.service import EXTENSION, Service
from blogapi.web.views import blueprint

blueprint.register_blueprint(owner)


def create_app(config: Config | None = None, clock: Callable[[], float] = time.time, loop: Loop = PLAIN) -> Flask:
    """Create the WSGI application, by default configured by the environment.

    Opens the database, which is set up if it is empty; raises Unavailable if it cannot be used.
    """
    config = config or Config.from_environ(os.environ)
    app = Application("blogapi", static_folder=None)
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False  # OPTIONS is a method like any other that is not allowed: 405
    app.url_map.merge_slashes = False  # Flask would redirect /v1//posts, in HTML
    app.extensions[EXTENSION] = Service.open(config, clock, loop)
    for error, handler in HANDLERS.items():
        app.register_error_handler(error, handler)
    app.register_blueprint(blueprint)
    return app
