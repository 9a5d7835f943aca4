"""The declaration of an operation, which stands on its view and says all that its description says."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from flask import Response, g
from marshmallow import Schema

from blogapi.storage.models import FULL
from blogapi.web.blueprint import blueprint
from blogapi.web.request import load_query
from blogapi.web.responses import JSON
from blogapi.web.schemas.fields import NoQuerySchema

MERGE_PATCH = "application/merge-patch+json"  # RFC 7396
no_query = NoQuerySchema()


@dataclass(frozen=True)
class Answer:
    """What an operation answers when it succeeds."""

    status: int
    description: str
    schema: Schema | None = None
    headers: tuple[str, ...] = ()  # names of components
    content_types: tuple[str, ...] = (JSON,)


@dataclass(frozen=True)
class Operation:
    """What a view takes and answers."""

    method: str
    answer: Answer
    creates: Answer | None = None  # where it makes something
    query: Schema = no_query
    body: Schema | None = None
    content_types: tuple[str, ...] = (JSON,)  # of the body
    request_headers: tuple[str, ...] = ()  # names of components
    errors: tuple[int, ...] = ()  # beside those that any operation may answer
    scopes: tuple[str, ...] = (FULL,)  # of the keys that may do it


def operation(
    rule: str, answer: Answer, also: tuple[str, str] = ("", ""), **declared: Any
) -> Callable[[Callable], Callable]:
    """Make a function the view of a rule such as "GET /v1/posts", and declare its Operation.

    `also` is the name and the path of another way to the same operation. `g.query` has the query, loaded; a parameter
    that is not declared is refused: a typo must not delete every post.
    """
    method, path = rule.split()

    def declare(view: Callable) -> Callable:
        operation = Operation(method, answer, **declared)

        @wraps(view)
        def view_of_operation(**arguments: Any) -> Response:
            g.query = load_query(operation.query)
            if operation.body:
                g.operation = operation
            return view(**arguments)

        view_of_operation.operation = operation
        for name, each in ((view.__name__, path), also):
            if name:
                blueprint.add_url_rule(each, name, view_of_operation, methods=[method])
        return view_of_operation

    return declare
