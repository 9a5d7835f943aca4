"""The declaration of an operation, on its view: everything that its description says."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from flask import Response
from marshmallow import Schema

from blogapi.storage.models import FULL
from blogapi.web.application import blueprint
from blogapi.web.request import JSON, current_request, load_query
from blogapi.web.schemas.fields import NoQuerySchema

no_query = NoQuerySchema()


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
    query: Schema = no_query
    body: Schema | None = None
    content_types: tuple[str, ...] = (JSON,)  # of the body
    request_headers: tuple[str, ...] = ()  # names of components
    errors: tuple[int, ...] = ()  # in addition to those that any operation may answer
    scopes: tuple[str, ...] = (FULL,)  # of the keys that may do it


def operation(
    rule: str, answer: Answer, also: tuple[str, str] = ("", ""), **declared: Any
) -> Callable[[Callable], Callable]:
    """Register a view for a rule such as "GET /v1/posts", and declare its Operation.

    `also` is the name and the path of a second route to the same operation. The view gets the request, whose `query` is
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
        for name, each in ((view.__name__, path), also):
            if name:
                blueprint.add_url_rule(each, name, view_of_operation, methods=[method])
        return view_of_operation

    return declare
