"""blogapi: a JSON HTTP API for managing the posts of a blog."""

import logging
import os
import time
from collections.abc import Callable
from contextlib import nullcontext

from flask import Flask, Request
from peewee import DatabaseError
from werkzeug.routing import MapAdapter

from blogapi import errors, limiter
from blogapi.clock import rfc3339
from blogapi.config import Config
from blogapi.db import database
from blogapi.models import Post
from blogapi.views import blueprint

log = logging.getLogger(__name__)


class Application(Flask):
    """Flask without a look at Host, which nothing here depends on."""

    def create_url_adapter(self, request: Request | None) -> MapAdapter | None:
        """Bind the routes to the path and method alone: Werkzeug would parse and check Host, 4 % of a small request."""
        if request is None:  # an application context by itself, which needs no routes
            return None
        return MapAdapter(self.url_map, "localhost", "/", "", "http", request.path, request.method)


def create_app(config: Config | None = None, clock: Callable[[], float] = time.time) -> Flask:
    """Make the WSGI application, by default with the settings of the environment.

    Opens the database, which is set up where it is missing; raises peewee.DatabaseError if it cannot be used.
    """
    config = config or Config.from_environ(os.environ)
    app = Application(__name__, static_folder=None)
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False  # OPTIONS is a method like any other that is not allowed: 405
    app.url_map.merge_slashes = False  # Flask would redirect /v1//posts, in HTML
    # timeout(seconds) bounds its block in time where the server can do that; by itself nothing does.
    app.extensions.update(config=config, clock=clock, timeout=nullcontext)
    database.open(config.database)
    try:
        database.write(lambda: Post.publish_due(rfc3339(clock())))
    except DatabaseError as error:  # Reads see to it themselves, and the next write will do it.
        log.warning("scheduled posts are not turned over yet: %s", error)
    errors.init_app(app)
    limiter.init_app(app, config.rate_limit, clock)
    app.register_blueprint(blueprint)
    return app
