"""The WSGI application and its factory."""

import os
import time
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

import flask
from flask import Flask
from werkzeug.routing import Map, MapAdapter, Rule

from blogapi import env_file
from blogapi.api.access import protect
from blogapi.api.operations import CONVERTERS
from blogapi.api.request import Request
from blogapi.api.service import EXTENSION, SERVICE, Service
from blogapi.config import Config
from blogapi.posts import due
from blogapi.storage.database import Database
from blogapi.storage.engine import BLOCKING, Loop
from blogapi.wings.install import create_blueprint
from blogapi.wings.search import index


class Routes(MapAdapter):
    """Finds routes, and caches them, because finding a route takes as long as finding a post."""

    def match(self, *_: Any, **__: Any) -> tuple[Rule, dict[str, Any]]:
        rule, arguments = find_route(self.map, self.path_info, self.default_method)
        return rule, {**arguments}


@lru_cache(maxsize=256)
def find_route(url_map: Map, path: str, method: str) -> tuple[Rule, Mapping[str, Any]]:
    """Return the route for a path and method, and its arguments. Raises the router's HTTPException."""
    return MapAdapter(url_map, "localhost", "/", "", "http", path, method).match(return_rule=True)


class Application(Flask):
    """A Flask application with our request class and cached routes."""

    request_class = Request

    def wsgi_app(self, environ: dict[str, Any], start_response: Callable) -> Iterable[bytes]:
        environ[SERVICE] = service = self.extensions[EXTENSION]
        if service.config.prefix:
            environ["PATH_INFO"] = service.config.without_prefix(environ["PATH_INFO"])
        return super().wsgi_app(environ, start_response)

    def ensure_sync(self, func: Callable) -> Callable:
        return func  # No view is async, so Flask's check on each request is skipped.

    def create_url_adapter(self, request: flask.Request | None) -> MapAdapter | None:
        if request is None:
            return None
        # No route depends on the Host header, so it is not checked here.
        return Routes(self.url_map, "localhost", "/", "", "http", request.path, request.method)


def create_app(
    config: Config | None = None,
    clock: Callable[[], float] = time.time,
    loop: Loop = BLOCKING,
    database_class: type[Database] = Database,
) -> Flask:
    """Create the WSGI application. Without `config`, its settings come from the environment and the settings file.

    Opens the database, and sets it up if it is empty. Outside our server, where the loop is not cooperative, this also
    rebuilds a missing search index before it returns. Raises Unavailable.
    """
    if config is None:
        env_file.load()
        config = Config.from_environ(os.environ)
    app = Application("blogapi", static_folder=None)
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False  # OPTIONS gets 405, like every other unsupported method
    app.url_map.merge_slashes = False  # Otherwise, Flask would redirect /v1//posts, in HTML.
    app.extensions[EXTENSION] = service = Service.open(config, clock, loop, database_class)
    if not loop.is_cooperative:  # Our server rebuilds the index in the background.
        for _ in index.rebuild(service.database):
            pass
    app.url_map.converters.update(CONVERTERS)
    app.register_blueprint(create_blueprint(config))
    protect(app, due.publish_for_request)
    return app
