"""Operations: each is declared on its view, with everything that its description says."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

from flask import Response
from flask.sansio.scaffold import Scaffold
from marshmallow import Schema
from werkzeug.routing import BaseConverter

from blogapi.api.request import JSON, Request, current_request, load_query
from blogapi.api.schemas import StrictSchema, parameters
from blogapi.documents import ID
from blogapi.storage.models import FULL, MAX_ID
from blogapi.text import CONTROL_OR_BREAK, WHITE_SPACE, fold

# Parameters of paths


class IdConverter(BaseConverter):
    """An id, only in the form that the service writes; anything else matches nothing."""

    regex = ID

    def to_python(self, value: str) -> int:
        return int(value) if int(value) <= MAX_ID else 0  # no row has it


class TagConverter(BaseConverter):
    """A tag, which may have slashes. It is folded."""

    regex = r"[\s\S]+"
    part_isolating = False

    def to_python(self, value: str) -> str:
        return "" if CONTROL_OR_BREAK.search(value) else fold(value.strip(WHITE_SPACE))  # No post carries "".


# `slug` and `delivery_id` match any text; their names choose the parameters of the description.
CONVERTERS = {
    "id": IdConverter,
    "tag": TagConverter,
    "slug": BaseConverter,
    "delivery_id": BaseConverter,
}


# Declarations

View = TypeVar("View", bound=Callable)
NO_QUERY = parameters()


@dataclass(frozen=True)
class Answer:
    """The successful answer of an operation."""

    status: int
    description: str
    schema: StrictSchema | None = None
    headers: tuple[str, ...] = ()  # keys of components.headers in docs/static/openapi.yaml
    content_types: tuple[str, ...] = (JSON,)


@dataclass(frozen=True)
class Operation:
    """The input and output of a view."""

    method: str
    answer: Answer
    creates: Answer | None = None  # if it can create something
    query: Schema = NO_QUERY
    body: StrictSchema | None = None
    content_types: tuple[str, ...] = (JSON,)  # of the body
    parse_file: Callable[[Request], dict[str, Any]] | None = None  # of a body that is not JSON
    request_headers: tuple[str, ...] = ()  # keys of components.parameters, besides If-None-Match
    scopes: tuple[str, ...] = (FULL,)  # of the keys that may do it


class Views:
    """The views of a module and their routes, until `register` adds them to an application or a blueprint."""

    def __init__(self) -> None:
        self._routes: list[tuple[str, str, Callable, Sequence[str]]] = []

    def register(self, app: Scaffold) -> None:
        """Add the routes in the order of the module."""
        for path, endpoint, view, methods in self._routes:
            app.add_url_rule(path, endpoint, view, methods=methods)

    def add(self, path: str, view: Callable, methods: Sequence[str], endpoint: str = "") -> None:
        """Add a view; its endpoint is by default its name."""
        self._routes.append((path, endpoint or view.__name__, view, methods))

    def route(self, path: str, *methods: str) -> Callable[[View], View]:
        """Add the decorated view."""

        def decorate(view: View) -> View:
            self.add(path, view, methods)
            return view

        return decorate

    def get(self, path: str) -> Callable[[View], View]:
        """Add the decorated view for GET and HEAD."""
        return self.route(path, "GET")

    def post(self, path: str) -> Callable[[View], View]:
        """Add the decorated view for POST."""
        return self.route(path, "POST")

    def operation(
        self, rule: str, answer: Answer, *, also: str = "", **declared: Any
    ) -> Callable[[Callable], Callable]:
        """Add the decorated view for a rule such as "GET /v1/posts", and declare its Operation.

        `also` is a second path, by slug. The view gets the request, whose `query` is loaded: a parameter that is not
        declared is refused, as a typo must not delete every post.
        """
        method, path = rule.split()
        declaration = Operation(method, answer, **declared)

        def decorate(view: Callable[..., Response]) -> Callable[..., Response]:
            @wraps(view)
            def view_of_operation(**arguments: Any) -> Response:
                request = current_request()
                request.operation = declaration
                request.query = load_query(declaration.query, request.environ.get("QUERY_STRING", ""))
                return view(request, **arguments)

            view_of_operation.operation = declaration  # type: ignore[attr-defined]
            self.add(path, view_of_operation, (method,))
            if also:
                self.add(also, view_of_operation, (method,), f"{view.__name__}_by_slug")
            return view_of_operation

        return decorate
