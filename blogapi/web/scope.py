"""What a key may do, and the part of the posts that there is for it."""

from typing import Any

from flask import current_app, request
from werkzeug.exceptions import Forbidden

from blogapi.storage.models import PUBLISHED_ONLY, READ_ONLY

READS = ("GET", "HEAD")
MESSAGES = {
    READ_ONLY: "this key is read-only: it may GET and HEAD posts and tags",
    PUBLISHED_ONLY: "this key is published-only: it may GET and HEAD published posts and their tags",
}


def check_permission() -> None:
    """Raise Forbidden for what a key that may do less must not: any method but GET and HEAD, whatever the path.

    These two it may where the operation says so; where there is none, the router says what is wrong.
    """
    permitted = request.method in READS
    if permitted and request.endpoint is not None:
        operation = getattr(current_app.view_functions[request.endpoint], "operation", None)
        permitted = operation is not None and scope() in operation.scopes
    if not permitted:
        raise Forbidden(MESSAGES[scope()])


def scope() -> str:
    """Return what the key of the request may do, one of SCOPES."""
    return request.environ["blogapi.scope"]


def published_only() -> bool:
    """Return whether there are only published posts for the key."""
    return scope() == PUBLISHED_ONLY


def in_scope(query: dict[str, Any]) -> dict[str, Any] | None:
    """Return the query of a list, which has a status, as far as there is something for the key; None where nothing is.

    What leads on to the next page is made of the query as it came.
    """
    if not published_only():
        return query
    return query | {"status": "published"} if query.get("status", "published") == "published" else None
