"""The views of a module: their routes, and the operations they declare."""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar

from flask import Blueprint, Response

from blogapi.api.operations import Answer, Operation
from blogapi.api.request import READ_METHODS, current_request, has_body, load_query, read_body

View = TypeVar("View", bound=Callable)


class Views:
    """The views of a module and their routes, until `register` adds them to a blueprint."""

    def __init__(self) -> None:
        self._routes: list[tuple[str, str, Callable, Sequence[str]]] = []

    def register(self, blueprint: Blueprint) -> None:
        """Add the routes in the order in which the module defines them."""
        for path, endpoint, view, methods in self._routes:
            blueprint.add_url_rule(path, endpoint, view, methods=methods)

    def add(self, path: str, view: Callable, methods: Sequence[str], endpoint: str = "") -> None:
        """Add a view. Its endpoint is its name unless given."""
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

    def operation(self, rule: str, answer: Answer, *, also: str = "", **declared: Any) -> Callable[[View], View]:
        """Add the decorated view for a rule such as "GET /v1/posts", and declare its Operation.

        `also` is a second path, by slug. The view receives the request with its `query` loaded. Other parameters are
        refused, because a typo must not delete every post.
        """
        method, path = rule.split()
        declaration = Operation(method, answer, **declared)
        reads_no_body = declaration.body is None and method not in READ_METHODS

        def decorate(view: View) -> View:
            @wraps(view)
            def view_of_operation(**arguments: Any) -> Response:
                request = current_request()
                request.operation = declaration
                request.query = load_query(declaration.query, request.environ.get("QUERY_STRING", ""))
                if reads_no_body and has_body(request):
                    read_body(request)  # A change begins when all of its request has arrived.
                return view(request, **arguments)

            vars(view_of_operation)["operation"] = declaration
            self.add(path, view_of_operation, (method,))
            if also:
                self.add(also, view_of_operation, (method,), f"{view.__name__}_by_slug")
            return view

        return decorate
