"""Operations: each is declared on its view, with everything that its description says."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from flask import Blueprint, Response
from marshmallow import Schema
from werkzeug.routing import BaseConverter

from blogapi.api.request import JSON, Request, current_request, load_query
from blogapi.api.schemas import parameters
from blogapi.posts.documents import ID
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
blueprint = Blueprint("api", __name__)  # of the API; those of Micropub and of the owner's page are nested in it
blueprint.record(lambda state: state.app.url_map.converters.update(CONVERTERS))


# Declarations

NO_QUERY = parameters()


@dataclass(frozen=True)
class Answer:
    """The successful answer of an operation."""

    status: int
    description: str
    schema: Schema | None = None
    headers: tuple[str, ...] = ()  # keys of components.headers in docs/static/openapi.yaml
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
    parse_file: Callable[[Request], dict[str, Any]] | None = None  # of a body that is not JSON
    request_headers: tuple[str, ...] = ()  # keys of components.parameters, besides If-None-Match
    scopes: tuple[str, ...] = (FULL,)  # of the keys that may do it


def operation(rule: str, answer: Answer, **declared: Any) -> Callable[[Callable], Callable]:
    """Register a view for a rule such as "GET /v1/posts", and declare its Operation.

    A path with the id of a post gets a second route, by slug. The view gets the request, whose `query` is
    loaded: a parameter that is not declared is refused, as a typo must not delete every post.
    """
    method, path = rule.split()

    def declare(view: Callable) -> Callable:
        declaration = Operation(method, answer, **declared)

        @wraps(view)
        def view_of_operation(**arguments: Any) -> Response:
            request = current_request()
            request.operation = declaration
            request.query = load_query(declaration.query, request.environ.get("QUERY_STRING", ""))
            return view(request, **arguments)

        view_of_operation.operation = declaration
        blueprint.add_url_rule(path, view.__name__, view_of_operation, methods=[method])
        by_slug = path.replace("/v1/posts/<id:post>", "/v1/posts/by-slug/<slug:post>")
        if by_slug != path:
            blueprint.add_url_rule(by_slug, f"{view.__name__}_by_slug", view_of_operation, methods=[method])
        return view_of_operation

    return declare
