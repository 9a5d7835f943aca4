"""The WSGI application, a leaner Flask, and its factory."""

import os
import time
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any

from flask import Flask, Response, appcontext_tearing_down, request_finished, request_started, request_tearing_down
from flask.ctx import RequestContext
from flask.globals import request_ctx
from flask.sessions import NullSession
from werkzeug.exceptions import HTTPException
from werkzeug.routing import MapAdapter, Rule

from blogapi.config import Config
from blogapi.storage.loop import BLOCKING, Loop
from blogapi.web.access import guard
from blogapi.web.errors import HANDLERS
from blogapi.web.micropub import blueprint as micropub
from blogapi.web.owner import blueprint as owner
from blogapi.web.request import Request, current_request
from blogapi.web.service import EXTENSION, Service
from blogapi.web.views import blueprint

NULL_SESSION = NullSession()  # raises an error on any write


@lru_cache(maxsize=256)  # Finding a route takes as long as finding a post.
def find_route(routes: MapAdapter, path: str, method: str) -> tuple[Rule, dict[str, Any]]:
    """Return the route of a path and a method, and its arguments; raise the HTTPException of a router."""
    return routes.match(path, method, return_rule=True)


class Context(RequestContext):
    """The context of a request. Routes are remembered by path and method."""

    def match_request(self) -> None:
        request = self.request
        try:
            request.url_rule, arguments = find_route(self.url_adapter, request.path, request.method)
            request.info.endpoint = request.url_rule.endpoint
            request.view_args = {**arguments}
        except HTTPException as error:
            request.routing_exception = error


class Application(Flask):
    """Flask without sessions, with the guard before every request. Unused hooks and signals cost nothing."""

    @cached_property
    def routes(self) -> MapAdapter:
        """The routes. None depends on Host, which Werkzeug would check."""
        return self.url_map.bind("localhost")

    @cached_property
    def hooked(self) -> set[str | None]:
        """The blueprints that have hooks, and None if the application has some."""
        return {*self.url_value_preprocessors, *self.before_request_funcs, *self.after_request_funcs}

    def create_url_adapter(self, request: Request | None) -> MapAdapter | None:
        return request and self.routes

    def request_context(self, environ: dict[str, Any]) -> Context:
        """Return the context of a request, which knows the service."""
        service = self.extensions[EXTENSION]
        if service.config.prefix:
            environ["PATH_INFO"] = service.config.without_prefix(environ["PATH_INFO"])
        return Context(self, environ, Request(environ, service), NULL_SESSION)

    def full_dispatch_request(self) -> Response:
        """Answer the current request. Flask does it if there are hooks or receivers of its signals."""
        self._got_first_request = True  # Flask refuses hooks from now on.
        is_hooked = not self.hooked.isdisjoint((None, *current_request().blueprints))
        if is_hooked or request_started.receivers or request_finished.receivers:
            return super().full_dispatch_request()
        try:
            answer = guard() or self.dispatch_request()
        except Exception as error:
            answer = self.handle_user_exception(error)
        if isinstance(answer, Response) and not request_ctx._after_request_functions:
            return answer
        return self.finalize_request(answer)

    def preprocess_request(self) -> Any:
        return guard() or super().preprocess_request()

    def do_teardown_request(self, *error: BaseException | None) -> None:
        if self.teardown_request_funcs or request_tearing_down.receivers:
            super().do_teardown_request(*error)

    def do_teardown_appcontext(self, *error: BaseException | None) -> None:
        if self.teardown_appcontext_funcs or appcontext_tearing_down.receivers:
            super().do_teardown_appcontext(*error)


blueprint.register_blueprint(micropub)
blueprint.register_blueprint(owner)


def create_app(config: Config | None = None, clock: Callable[[], float] = time.time, loop: Loop = BLOCKING) -> Flask:
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
