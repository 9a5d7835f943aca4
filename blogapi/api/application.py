"""Adapt Flask: use our request class, and cache routes."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache, partial
from typing import Any

import flask
from flask import Flask
from werkzeug.routing import Map, MapAdapter, Rule

from blogapi.api.request import Request
from blogapi.api.service import EXTENSION, SERVICE


class Routes(MapAdapter):
    """Finds routes, and caches them, because finding a route takes as long as finding a post."""

    def match(self, *_: Any, **__: Any) -> tuple[Rule, dict[str, Any]]:
        rule, arguments = find_route(self.map, self.path_info, self.default_method)
        return rule, {**arguments}


@lru_cache(maxsize=256)
def find_route(url_map: Map, path: str, method: str) -> tuple[Rule, Mapping[str, Any]]:
    """Return the route for a path and method, and its arguments. Raises the router's HTTPException."""
    return MapAdapter(url_map, "localhost", "/", "", "http", path, method).match(return_rule=True)


class LazyRule(Rule):
    """A route that compiles its functions for building URLs when `url_for` first needs them. No view calls it."""

    def _compile_builder(self, *arguments: Any, **options: Any) -> Callable[..., tuple[str, str]]:
        compiled = cache(partial(super()._compile_builder, *arguments, **options))
        return lambda *this, **values: compiled()(*this, **values)


class Application(Flask):
    request_class = Request
    url_rule_class = LazyRule  # Compiling the functions of all routes took a tenth of each start.

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
