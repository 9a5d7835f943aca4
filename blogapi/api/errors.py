"""Errors: each failure is answered with {"error": <status>, "message": <text for a person>}."""

import logging
import secrets
from collections.abc import Callable
from difflib import get_close_matches

from flask import current_app
from marshmallow import ValidationError
from werkzeug import exceptions

from blogapi.api.access import FORBIDDEN
from blogapi.api.request import JSON, Request, current_request
from blogapi.api.responses import POSTS, Response, respond
from blogapi.api.schemas import sentences
from blogapi.documents import dump, is_slug
from blogapi.storage import errors
from blogapi.storage.models import DRAFTS_ONLY

MAX_MESSAGE = 500
HTML = "text/html; charset=utf-8"
RESOURCES = ("posts", "tags", "trash", "images", "webhooks")
MESSAGES = {404: "no such path", 500: "internal error; the log says more"}

log = logging.getLogger(__name__)


def error_body(status: int, message: str) -> bytes:
    """Return the Error as JSON."""
    return f"{dump({'error': status, 'message': printable(message)})}\n".encode()


def printable(message: str) -> str:
    """Return a message cut to 500 characters, without anything unprintable."""
    if len(message) > MAX_MESSAGE:
        message = message[: MAX_MESSAGE - 1] + "…"
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in message)


def error_response(error: exceptions.HTTPException) -> Response:
    """Answer an HTTP error; Allow, WWW-Authenticate and Retry-After stay as the exception has them."""
    request = current_request()
    if isinstance(error, exceptions.MethodNotAllowed) and error.valid_methods:
        error.valid_methods = sorted(error.valid_methods)  # in the same order in each process, also in Allow
    code = error.code or 500
    message = error.description if error.description != type(error).description else None
    message = message or message_for(request, error)
    if code in (500, 503):
        message = with_id(message)
        request.info.cause = f"{request.info.cause}: {message}" if request.info.cause else message
    headers = [(name, value) for name, value in error.get_headers() if name != "Content-Type"]
    if request.error_page:
        page = request.error_page(code, printable(message)).encode()
        return respond(request, page, HTML, code, headers, cache_control="no-store")
    return respond(request, error_body(code, message), JSON, code, headers)


def message_for(request: Request, error: exceptions.HTTPException) -> str:
    """Return the message for an error of the router."""
    name = request.path.removeprefix(POSTS)
    if error.code == 404 and (path := meant_path(request)):
        return f"no such path; did you mean {request.address(path)}?"
    if error.code == 404 and request.path != name and is_slug(name) and not name.isdigit():
        address = request.address(f"{POSTS}by-slug/{name}")
        return f"no such path: a post's id is a number; by its slug, a post is at {address}"
    if isinstance(error, exceptions.MethodNotAllowed) and error.valid_methods:
        return f"this path allows {', '.join(error.valid_methods)}"
    return MESSAGES.get(error.code or 500, error.name)


def meant_path(request: Request) -> str:
    """Return the path of an operation that a path almost is: without /v1, in singular, or with a slash at its end."""
    first, *others = request.path.strip("/").removeprefix("v1/").split("/")
    for resource in get_close_matches(first[:20].lower(), RESOURCES, n=1, cutoff=0.75):
        path = "/".join(["/v1", resource, *others])
        try:
            if path != request.path and current_app.url_map.bind("localhost").match(path, request.method):
                return path
        except exceptions.HTTPException:
            pass
    return ""


def with_id(message: str) -> str:
    """Return a message with an id that the log has, too."""
    return f"{message} (id {secrets.token_hex(4)})"


def invalid(error: ValidationError) -> Response:
    """Answer 400 with every field that is wrong, and what would be right."""
    error.__traceback__ = None  # marshmallow's frame refers to the error: a cycle that would keep 4 MB for a while
    said = [sentence + line_of(field) for field, sentence in sentences(error)]
    return error_response(exceptions.BadRequest("; ".join(said)))


def rejected(error: errors.Rejected | errors.InvalidKeyName | errors.NotFound) -> Response:
    """Answer a refusal of the storage: 404 if nothing is found, else 400: a value conflicts with others or the time."""
    if isinstance(error, errors.NotFound):
        return error_response(exceptions.NotFound(str(error)))
    return error_response(exceptions.BadRequest(f"{error}{line_of(getattr(error, 'field', ''))}"))


def not_permitted(error: errors.NotPermitted) -> Response:
    """Answer 403 if a key that may write drafts only would write another post."""
    return error_response(exceptions.Forbidden(f"{FORBIDDEN[DRAFTS_ONLY]}; {error}"))


def line_of(field: str) -> str:
    """Return the line of a field in the Markdown file that was sent, in words."""
    file = current_request().file
    line = file and file.line_of(field)
    return f" (line {line})" if line else ""


def unavailable(error: errors.Unavailable) -> Response:
    """Answer 503 if the database fails; the request's line in the log says why."""
    current_request().info.cause = str(error)
    if error.maybe_changed:
        message = "the commit failed and may have been carried out: check before you try again"
    else:
        reason = error.reason or f"the database is {'busy' if error.retry_after else 'not available'}"
        message = f"{reason}; nothing was changed"
    return error_response(exceptions.ServiceUnavailable(message, retry_after=error.retry_after))


def out_of_memory(error: MemoryError) -> Response:
    """Answer 503: memory may be free again soon. What was done before that is unknown."""
    current_request().info.cause = "out of memory"
    message = "the service is out of memory; a change may have been carried out: check before you try again"
    return error_response(exceptions.ServiceUnavailable(message, retry_after=errors.RETRY_SECONDS))


def crash(error: Exception) -> Response:
    """Answer 500; the log gets the traceback."""
    response = error_response(exceptions.InternalServerError())
    log.exception(current_request().info.cause)
    return response


HANDLERS: dict[type[Exception], Callable[..., Response]] = {
    exceptions.HTTPException: error_response,
    ValidationError: invalid,
    errors.Rejected: rejected,
    errors.NotPermitted: not_permitted,
    errors.InvalidKeyName: rejected,
    errors.NotFound: rejected,
    errors.Unavailable: unavailable,
    MemoryError: out_of_memory,
    Exception: crash,
}
