"""blogapi: a JSON HTTP API for managing the posts of a blog."""

import os
import time
from collections.abc import Callable

from flask import Flask

from blogapi import errors, limiter
from blogapi.config import Config
from blogapi.db import database
from blogapi.views import PostIdConverter, blueprint


def create_app(config: Config | None = None, clock: Callable[[], float] = time.time) -> Flask:
    """Make the WSGI application, by default with the settings of the environment.

    Opens the database, which is set up where it is missing; raises peewee.DatabaseError if it cannot be used.
    """
    config = config or Config.from_environ(os.environ)
    app = Flask(__name__, static_folder=None)
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False  # OPTIONS is a method like any other that is not allowed: 405
    app.url_map.merge_slashes = False  # //v1/posts is another path, not one to be redirected
    app.url_map.converters["post_id"] = PostIdConverter
    app.extensions.update(config=config, clock=clock)
    database.open(config.database)
    errors.init_app(app)
    limiter.init_app(app, config.rate_limit, clock)
    app.register_blueprint(blueprint)
    return app
