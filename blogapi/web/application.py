"""The application: Flask without what an API never uses."""

from functools import lru_cache
from typing import Any

from flask import Flask
from flask.ctx import RequestContext
from flask.sessions import NullSession
from werkzeug.routing import MapAdapter

from blogapi.web.request import Request
from blogapi.web.service import EXTENSION

NO_SESSION = NullSession()  # raises an error on any write


class Application(Flask):
    """Flask without sessions, and without work that would be repeated for every request."""

    ensure_sync = lru_cache(maxsize=1024)(Flask.ensure_sync)

    def request_context(self, environ: dict[str, Any]) -> RequestContext:
        """Return the context of a request, which knows the service.

        The prefix of its path is removed if a proxy has left it there.
        """
        service = self.extensions[EXTENSION]
        prefix, path = service.config.prefix, environ["PATH_INFO"]
        if prefix and f"{path}/".startswith(f"{prefix}/"):
            environ["PATH_INFO"] = path[len(prefix) :]
        request = Request(environ)
        request.service = service
        return RequestContext(self, environ, request, NO_SESSION)

    def create_url_adapter(self, request: Request | None) -> MapAdapter | None:
        """Bind the routes to path and method alone: no route depends on Host, which Werkzeug would check."""
        if request is None:  # an application context of its own, which needs no routes
            return None
        return MapAdapter(self.url_map, "localhost", "/", "", "http", request.path, request.method)
