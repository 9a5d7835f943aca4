"""What a key may do: the decorator that forbids the rest, and the part of the posts that there is for it."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from flask import current_app, g, request
from werkzeug.exceptions import Forbidden

from blogapi.storage.models import FULL, PUBLISHED_ONLY, READ_ONLY

READS = ("GET", "HEAD")
MESSAGES = {
    READ_ONLY: "this key is read-only: it may GET and HEAD posts and tags",
    PUBLISHED_ONLY: "this key is published-only: it may GET and HEAD published posts and their tags",
}


def permission_required(view: Callable) -> Callable:
    """Answer 403 in place of `view` for what the key may not do: any method but GET and HEAD, whatever the path.

    These two it may where the operation says so; where there is none, it is told that.
    """

    @wraps(view)
    def permitted(*args: Any, **kwargs: Any) -> Any:
        if g.scope != FULL and not is_permitted():
            raise Forbidden(MESSAGES[g.scope])
        return view(*args, **kwargs)

    return permitted


def is_permitted() -> bool:
    """Return whether the request is one that a key of its scope may make."""
    if request.method not in READS:
        return False
    if request.endpoint is None:
        return True  # The router says what is wrong.
    operation = getattr(current_app.view_functions[request.endpoint], "operation", None)
    return operation is not None and g.scope in operation.scopes


def published_only() -> bool:
    """Return whether there are only published posts for the key."""
    return g.scope == PUBLISHED_ONLY


def in_scope(query: dict[str, Any]) -> dict[str, Any] | None:
    """Return the query of a list, which has a status, as far as there is something for the key; None where nothing is.

    What leads on to the next page is made of the query as it came.
    """
    if not published_only():
        return query
    return query | {"status": "published"} if query.get("status", "published") == "published" else None
