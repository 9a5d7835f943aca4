"""Declare operations together with their routes."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from flask import Blueprint, Response

from blogapi.api.operations import Operation, ResponseSpec
from blogapi.api.request import READ_METHODS, current_request, has_body, load_query, read_body

View = TypeVar("View", bound=Callable)


class Views(Blueprint):
    """A blueprint with operations."""

    def operation(self, rule: str, response: ResponseSpec, **declared: Any) -> Callable[[View], View]:
        """Register the decorated view for a rule such as "GET /v1/posts", and declare its Operation.

        A path with a post's id also exists with its slug. The view receives the request with its `query` loaded.
        Unknown parameters are refused, so that a typo in the name of a filter does not affect other posts.
        """
        method, path = rule.split()
        by_slug = path.replace("/posts/<id:post>", "/posts/by-slug/<slug:post>")
        declaration = Operation(method, response, **declared)
        reads_no_body = declaration.body is None and method not in READ_METHODS

        def decorate(view: View) -> View:
            @wraps(view)
            def view_of_operation(**arguments: Any) -> Response:
                request = current_request()
                request.operation = declaration
                request.query = load_query(declaration.query, request.environ.get("QUERY_STRING", ""))
                if reads_no_body and has_body(request):
                    read_body(request)  # so that a change begins only after the whole request has arrived
                return view(request, **arguments)

            vars(view_of_operation).update(operation=declaration, scopes=declaration.scopes)
            self.add_url_rule(path, view.__name__, view_of_operation, methods=[method])
            if by_slug != path and method != "PUT":  # A PUT by slug is another operation, because it can create a post.
                self.add_url_rule(by_slug, f"{view.__name__}_by_slug", view_of_operation, methods=[method])
            return view

        return decorate
