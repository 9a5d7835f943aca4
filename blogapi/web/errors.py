"""Errors: each failure is answered with {"error": <status>, "message": <text for a person>}."""

import logging
import secrets

from marshmallow import ValidationError
from werkzeug import exceptions

from blogapi.post import is_slug, sentences
from blogapi.storage import errors
from blogapi.storage.documents import dump
from blogapi.web.request import JSON, Request, current_request
from blogapi.web.responses import POSTS, Response, respond

MAX_MESSAGE = 500
MESSAGES = {404: "no such path", 500: "internal error; the log says more"}

log = logging.getLogger(__name__)


def error_body(status: int, message: str) -> bytes:
    """Return the Error as JSON, its message cut to 500 characters, without anything unprintable."""
    if len(message) > MAX_MESSAGE:
        message = message[: MAX_MESSAGE - 1] + "…"
    printable = "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in message)
    return f"{dump({'error': status, 'message': printable})}\n".encode()


def error_response(error: exceptions.HTTPException) -> Response:
    """Answer an HTTP error; Allow, WWW-Authenticate and Retry-After stay as the exception has them."""
    request = current_request()
    own = error.description != type(error).description
    message = error.description if own else message_for(request, error)
    if error.code in (500, 503):
        message = with_id(message)
        request.cause = f"{request.cause}: {message}" if request.cause else message
    headers = [(name, value) for name, value in error.get_headers() if name != "Content-Type"]
    return respond(request, error_body(error.code, message), JSON, error.code, headers)


def message_for(request: Request, error: exceptions.HTTPException) -> str:
    """Return the message for an error of the router."""
    name = request.path.removeprefix(POSTS)
    if error.code == 404 and request.path != name and is_slug(name) and not name.isdigit():
        address = request.address(f"{POSTS}by-slug/{name}")
        return f"no such path: a post's id is a number; by its slug, a post is at {address}"
    if isinstance(error, exceptions.MethodNotAllowed) and error.valid_methods:
        error.valid_methods = sorted(error.valid_methods)  # in the same order in each process, also in Allow
        return f"this path allows {', '.join(error.valid_methods)}"
    return MESSAGES.get(error.code, error.name)


def with_id(message: str) -> str:
    """Return a message with an id that the log has, too."""
    return f"{message} (id {secrets.token_hex(4)})"


def invalid(error: ValidationError) -> Response:
    """Answer 400 with every field that is wrong, and what would be right."""
    error.__traceback__ = None  # marshmallow's frame refers to the error: a cycle that would keep 4 MB for a while
    said = [sentence + line_of(field) for field, sentence in sentences(error)]
    return error_response(exceptions.BadRequest("; ".join(said)))


def refused(error: errors.Conflict | errors.KeyName | errors.NotFound) -> Response:
    """Answer a refusal of the storage: 404 if nothing is found, else 400: a value conflicts with others or the time."""
    kind = exceptions.NotFound if isinstance(error, errors.NotFound) else exceptions.BadRequest
    return error_response(kind(str(error) + line_of(getattr(error, "field", ""))))


def line_of(field: str) -> str:
    """Return the line of a field in the Markdown file that was sent, in words."""
    file = current_request().file
    line = file and file.line_of(field)
    return f" (line {line})" if line else ""


def unavailable(error: errors.Unavailable) -> Response:
    """Answer 503 if the database fails; the request's line in the log says why."""
    current_request().cause = str(error)
    if error.maybe_changed:
        message = "the commit failed and may have been carried out: check before you try again"
    elif error.retry_after:
        message = "the database is busy; nothing was changed"
    else:
        message = "the database is not available; nothing was changed"
    return error_response(exceptions.ServiceUnavailable(message, retry_after=error.retry_after))


def out_of_memory(error: MemoryError) -> Response:
    """Answer 503: memory may be free again soon. What was done before that is unknown."""
    current_request().cause = "out of memory"
    message = "the service is out of memory; a change may have been carried out: check before you try again"
    return error_response(exceptions.ServiceUnavailable(message, retry_after=errors.RETRY_SECONDS))


def crash(error: Exception) -> Response:
    """Answer 500; the log gets the traceback."""
    response = error_response(exceptions.InternalServerError())
    log.exception(current_request().cause)
    return response


HANDLERS = {
    exceptions.HTTPException: error_response,
    ValidationError: invalid,
    errors.Conflict: refused,
    errors.KeyName: refused,
    errors.NotFound: refused,
    errors.Unavailable: unavailable,
    MemoryError: out_of_memory,
    Exception: crash,
}
