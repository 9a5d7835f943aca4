"""The application: Flask without what an API never uses, and how its views are declared."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache, wraps
from inspect import iscoroutinefunction
from typing import Any

from flask import Blueprint, Flask, Response, request_finished, request_started, request_tearing_down
from flask.blueprints import BlueprintSetupState
from flask.ctx import RequestContext
from flask.globals import request_ctx
from flask.sessions import NullSession
from marshmallow import Schema
from werkzeug.exceptions import HTTPException
from werkzeug.routing import BaseConverter, MapAdapter, Rule

from blogapi.post import CONTROL_OR_BREAK, ID, SLUG, WHITE_SPACE, fold
from blogapi.storage.models import FULL, MAX_ID
from blogapi.web.access import guard
from blogapi.web.request import JSON, Request, current_request, load_query
from blogapi.web.schemas import parameters
from blogapi.web.service import EXTENSION

DELIVERY_ID = "msg_[A-Za-z0-9_-]{22}"
NO_SESSION = NullSession()  # raises an error on any write
is_async = lru_cache(maxsize=1024)(iscoroutinefunction)


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
            request.view_args = {**arguments}
        except HTTPException as error:
            request.routing_exception = error


class Application(Flask):
    """Flask without sessions, with the guard before every request. Unused hooks and signals cost nothing."""

    def ensure_sync(self, func: Callable) -> Callable:
        return self.async_to_sync(func) if is_async(func) else func

    @cached_property
    def routes(self) -> MapAdapter:
        """The routes. None depends on Host, which Werkzeug would check."""
        return self.url_map.bind("localhost")

    def create_url_adapter(self, request: Request | None) -> MapAdapter | None:
        return request and self.routes

    def request_context(self, environ: dict[str, Any]) -> Context:
        """Return the context of a request, which knows the service.

        The prefix of its path is removed if a proxy has left it there.
        """
        service = self.extensions[EXTENSION]
        prefix, path = service.config.prefix, environ["PATH_INFO"]
        if prefix and f"{path}/".startswith(f"{prefix}/"):
            environ["PATH_INFO"] = path[len(prefix) :]
        return Context(self, environ, Request(environ, service), NO_SESSION)

    def full_dispatch_request(self) -> Response:
        """Answer the current request. Flask does it if there are hooks or receivers of its signals."""
        names = {None, *current_request().blueprints}
        hooks = (self.url_value_preprocessors, self.before_request_funcs, self.after_request_funcs)
        if request_started.receivers or request_finished.receivers or not all(map(names.isdisjoint, hooks)):
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


# The views outside the owner's page

blueprint = Blueprint("api", __name__)


class IdConverter(BaseConverter):
    """An id, only in the form that the service writes; anything else matches nothing."""

    regex = ID
    described = ("The id, as the service gave it.", {"type": "string", "pattern": f"^{ID}$"})

    def to_python(self, value: str) -> int:
        return int(value) if int(value) <= MAX_ID else 0  # which nothing has


class SlugConverter(BaseConverter):
    """The slug of a post; any other text matches nothing."""

    described = ("The slug: at most 100 characters.", {"type": "string", "pattern": f"^{SLUG}$", "maxLength": 100})


class DeliveryIdConverter(BaseConverter):
    """The id of a delivery."""

    described = (
        "The id of the delivery, which is its `webhook-id`.",
        {"type": "string", "pattern": f"^{DELIVERY_ID}$"},
    )


class TagConverter(BaseConverter):
    """A tag, which may have slashes. It is folded."""

    regex = r"[\s\S]+"
    part_isolating = False
    described = ("The name, percent-encoded; letter case does not matter.", {"type": "string", "minLength": 1})

    def to_python(self, value: str) -> str:
        return "" if CONTROL_OR_BREAK.search(value) else fold(value.strip(WHITE_SPACE))  # No post carries "".


CONVERTERS = {"id": IdConverter, "slug": SlugConverter, "delivery_id": DeliveryIdConverter, "tag": TagConverter}


@blueprint.record
def add_converters(state: BlueprintSetupState) -> None:
    """Register the converters."""
    state.app.url_map.converters.update(CONVERTERS)


# The declaration of an operation, on its view: everything that its description says

NO_QUERY = parameters()


@dataclass(frozen=True)
class Answer:
    """The successful answer of an operation."""

    status: int
    description: str
    schema: Schema | None = None
    headers: tuple[str, ...] = ()  # names of components
    content_types: tuple[str, ...] = (JSON,)


@dataclass(frozen=True)
class Operation:
    """The input and output of a view."""

    method: str
    answer: Answer
    creates: Answer | None = None  # if it can create something
    query: Schema = NO_QUERY
    body: Schema | None = None
    content_types: tuple[str, ...] = (JSON,)  # of the body
    request_headers: tuple[str, ...] = ()  # names of components, besides If-None-Match for a GET whose answer has ETag
    scopes: tuple[str, ...] = (FULL,)  # of the keys that may do it


def operation(rule: str, answer: Answer, **declared: Any) -> Callable[[Callable], Callable]:
    """Register a view for a rule such as "GET /v1/posts", and declare its Operation.

    If an id in the path names a post, a slug does so in a second route. The view gets the request, whose `query` is
    loaded: a parameter that is not declared is refused, as a typo must not delete every post.
    """
    method, path = rule.split()

    def declare(view: Callable) -> Callable:
        operation = Operation(method, answer, **declared)

        @wraps(view)
        def view_of_operation(**arguments: Any) -> Response:
            request = current_request()
            request.operation = operation
            request.query = load_query(operation.query, request.environ["QUERY_STRING"])
            return view(request, **arguments)

        view_of_operation.operation = operation
        blueprint.add_url_rule(path, view.__name__, view_of_operation, methods=[method])
        by_slug = path.replace("/v1/posts/<id:post>", "/v1/posts/by-slug/<slug:post>")
        if by_slug != path:
            blueprint.add_url_rule(by_slug, f"{view.__name__}_by_slug", view_of_operation, methods=[method])
        return view_of_operation

    return declare
