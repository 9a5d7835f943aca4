"""Build error responses. Their body is {"error": <status>, "message": <string for a person>}."""

import logging
import re
import secrets
from difflib import get_close_matches

from flask import Blueprint, current_app
from marshmallow import ValidationError
from werkzeug import exceptions

from blogapi.api.access import why_forbidden
from blogapi.api.operations import JSON
from blogapi.api.request import Request, current_request
from blogapi.api.responses import POSTS_PATH, Response, respond
from blogapi.api.schemas import sentences
from blogapi.documents import dump, is_slug
from blogapi.storage.errors import RETRY_SECONDS, BadKeyName, DoesNotExist, NotPermitted, Rejected, Unavailable
from blogapi.storage.models import DRAFTS_ONLY

MAX_MESSAGE = 500
HTML = "text/html; charset=utf-8"
# The part that clients may write before the name of a resource, as in /api/v1/posts or /v2/posts
BEFORE_RESOURCE = re.compile("/*(?:(?:api|v[0-9])/+)*", re.IGNORECASE)
MESSAGES = {404: "no such path", 500: "internal error; see the log for details"}

errors = Blueprint("errors", __name__)
log = logging.getLogger(__name__)


def error_body(status: int, message: str) -> bytes:
    return f"{dump({'error': status, 'message': printable(message)})}\n".encode()


def printable(message: str) -> str:
    """Return a message without unprintable characters, truncated to MAX_MESSAGE."""
    if len(message) > MAX_MESSAGE:
        message = message[: MAX_MESSAGE - 1] + "…"
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in message)


@errors.app_errorhandler(exceptions.HTTPException)
def error_response(error: exceptions.HTTPException) -> Response:
    """Return a response for an HTTP error, with the exception's headers (Allow, WWW-Authenticate, Retry-After)."""
    request = current_request()
    if isinstance(error, exceptions.MethodNotAllowed) and error.valid_methods:
        error.valid_methods = sorted(error.valid_methods)  # keeps the order in Allow from varying
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
    """Return the message for an error that the router raised."""
    name = request.path.removeprefix(POSTS_PATH).removesuffix(".md").lower()  # curl -T appends the file's name
    if error.code == 404 and (path := meant_path(request)):
        return f"no such path; did you mean {request.with_prefix(path)}?"
    if error.code == 404 and request.path.startswith(POSTS_PATH) and is_slug(name) and not name.isdigit():
        by_slug = request.with_prefix(f"{POSTS_PATH}by-slug/{name}")
        return f"no such path: a post's id is a number; by its slug, a post is at {by_slug}"
    if isinstance(error, exceptions.MethodNotAllowed) and error.valid_methods:
        return f"this path allows {', '.join(error.valid_methods)}"
    return MESSAGES.get(error.code or 500, error.name)


def meant_path(request: Request) -> str:
    """Return the path (with /v1 and no final slash, spelled correctly) that the client probably meant, or ""."""
    first, *others = BEFORE_RESOURCE.sub("", request.path, count=1).rstrip("/").split("/")
    resources = {rule.rule.split("/")[2] for rule in current_app.url_map.iter_rules() if rule.rule.startswith("/v1/")}
    for resource in get_close_matches(first[:20].lower(), sorted(resources), n=1, cutoff=0.75):
        path = "/".join(["/v1", resource, *others])
        try:
            if path != request.path and current_app.url_map.bind("localhost").match(path, request.method):
                return path
        except exceptions.HTTPException:
            pass
    return ""


def with_id(message: str) -> str:
    """Return a message with an id that also appears in the log."""
    return f"{message} (id {secrets.token_hex(4)})"


@errors.app_errorhandler(ValidationError)
def invalid(error: ValidationError) -> Response:
    """Return a 400 that lists each invalid field and says what its value must be."""
    error.__traceback__ = None  # breaks a cycle through marshmallow's frame that would keep 4 MB alive
    messages = [sentence + line_of(field) for field, sentence in sentences(error)]
    return error_response(exceptions.BadRequest("; ".join(messages)))


@errors.app_errorhandler(DoesNotExist)
def not_found(error: DoesNotExist) -> Response:
    return error_response(exceptions.NotFound(str(error)))


@errors.app_errorhandler(Rejected)
@errors.app_errorhandler(BadKeyName)
def rejected(error: Rejected | BadKeyName) -> Response:
    """Return a 400 for a value that conflicts with stored data."""
    return error_response(exceptions.BadRequest(f"{error}{line_of(getattr(error, 'field', ''))}"))


@errors.app_errorhandler(NotPermitted)
def not_permitted(error: NotPermitted) -> Response:
    """Return a 403 if a drafts-only key tries to write a post that is not a draft."""
    return error_response(exceptions.Forbidden(f"{why_forbidden(DRAFTS_ONLY)}; {error}"))


def line_of(field: str) -> str:
    """Return " (line N)" for a field of the request's Markdown file, or "" if its line is unknown."""
    file = current_request().file
    line = file and file.line_of(field)
    return f" (line {line})" if line else ""


@errors.app_errorhandler(Unavailable)
def unavailable(error: Unavailable) -> Response:
    """Return a 503 for a database failure; the request's log line gives the reason."""
    current_request().info.cause = str(error)
    if error.maybe_changed:
        message = "the commit failed and may still have taken effect; check before retrying"
    else:
        reason = error.reason or f"the database is {'busy' if error.retry_after else 'not available'}"
        message = f"{reason}; nothing was changed"
    return error_response(exceptions.ServiceUnavailable(message, retry_after=error.retry_after))


@errors.app_errorhandler(MemoryError)
def out_of_memory(error: MemoryError) -> Response:
    """Return a 503, because memory may soon be free again. A change may already have taken effect."""
    current_request().info.cause = "out of memory"
    message = "the service is out of memory; a change may have taken effect; check before retrying"
    return error_response(exceptions.ServiceUnavailable(message, retry_after=RETRY_SECONDS))


@errors.app_errorhandler(Exception)
def crash(error: Exception) -> Response:
    """Return a 500, and log the traceback."""
    response = error_response(exceptions.InternalServerError())
    log.exception(current_request().info.cause)
    return response
