"""Responses with all of their headers, CORS, and errors.

Every failure is answered with {"error": <status>, "message": <text for a person>}.
"""

import json
import logging
import secrets
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlencode

import flask
from marshmallow import ValidationError
from werkzeug import datastructures, exceptions
from werkzeug.http import HTTP_STATUS_CODES
from xxhash import xxh3_128_hexdigest

from blogapi.files.markdown import render
from blogapi.post import is_slug, sentences
from blogapi.storage import errors
from blogapi.storage.documents import dump, etag
from blogapi.web.request import JSON, READS, Request, current_request, prefers_markdown

Pairs = Iterable[tuple[str, str]]
STATUS_LINES = {code: f"{code} {name.upper()}" for code, name in HTTP_STATUS_CODES.items()}
PRIVATE = "private, no-cache"  # Only the client may keep it, and must ask each time whether it is still valid.
ALLOW_ORIGIN = "Access-Control-Allow-Origin"
EXPOSED = "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Link, ETag, Location, Retry-After"
PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, If-Match, If-None-Match, Idempotency-Key",
    "Access-Control-Max-Age": "7200",  # seconds; the maximum in Chromium
}
MAX_MESSAGE = 500
MESSAGES = {404: "no such path", 500: "internal error; the log says more"}
POSTS = "/v1/posts/"

log = logging.getLogger(__name__)


class ValidHeaders(datastructures.Headers):
    """Headers that are known to be valid: Werkzeug would check each of them."""

    def __init__(self, pairs: list[tuple[str, str]]):
        self._list = pairs


class Response(flask.Response):
    """A response that is sent unchanged: Werkzeug would check for missing headers."""

    default_mimetype = None

    def __call__(self, environ: dict[str, Any], start_response: Callable) -> Iterable[bytes]:
        start_response(self.status, self.headers.to_wsgi_list())
        return [] if environ["REQUEST_METHOD"] == "HEAD" else self.response


def respond(
    request: Request,
    content: bytes,
    content_type: str,
    status: int = 200,
    headers: Pairs = (),
    vary: str = "",
    cache_control: str = PRIVATE,
) -> Response:
    """Create a response with these headers and those that every response has."""
    quota = request.quota or request.service.limiter.peek()
    pairs = [
        ("Content-Type", content_type),
        ("Content-Length", str(len(content))),
        *headers,
        ("Cache-Control", cache_control),
        *quota.headers,
    ]
    if status in (204, 304):
        del pairs[:2]
    origins = request.service.config.cors_origins
    if origins and is_covered(request.path):
        found = cors_headers(origins, request.environ.get("HTTP_ORIGIN"))
        vary = ", ".join(filter(None, (vary, found.pop("Vary", ""))))
        pairs += found.items()
    if vary:
        pairs.append(("Vary", vary))
    return Response([content], STATUS_LINES[status], ValidHeaders(pairs))


def json_response(request: Request, content: Any, status: int = 200, headers: Pairs = (), **options: str) -> Response:
    """Answer with JSON."""
    return respond(request, f"{dump(content)}\n".encode(), JSON, status, headers, **options)


def tagged_response(
    request: Request, content: bytes, tag: str, content_type: str = JSON, headers: Pairs = (), **options: Any
) -> Response:
    """Answer with an entity tag; with 304 if the client has this version already (RFC 9110, section 13.1.2)."""
    reads = "HTTP_IF_NONE_MATCH" in request.environ and request.method in READS
    if reads and request.if_none_match.contains_weak(tag):
        content, options["status"] = b"", 304
    return respond(request, content, content_type, headers=[("ETag", f'"{tag}"'), *headers], **options)


def post_response(request: Request, document: bytes, **options: Any) -> Response:
    """Answer with a post as JSON, and its entity tag."""
    return tagged_response(request, document + b"\n", etag(document), **options)


def created(request: Request, post_id: int, document: bytes) -> Response:
    """Answer with a new post."""
    return post_response(request, document, status=201, headers=[("Location", request.address(f"{POSTS}{post_id}"))])


def file_response(request: Request, document: bytes) -> Response:
    """Answer with a post as JSON, or as a Markdown file, with an entity tag of its own, if the client prefers that."""
    if not prefers_markdown(request):
        return post_response(request, document, vary="Accept")
    fields = json.loads(document)
    file = render(fields)
    name = ("Content-Disposition", f'inline; filename="{fields["slug"]}.md"')
    return tagged_response(request, file, etag(file), "text/markdown; charset=utf-8", [name], vary="Accept")


def list_response(request: Request, content: bytes, cursor: Any, name: str = "before") -> Response:
    """Answer with a page of a list as JSON, a Link to the next one, and an entity tag that changes with both.

    The Link (RFC 8288) repeats the query, with `name` at the cursor, which is None after the last page. It is
    path-absolute, and never built from Host.
    """
    tag = xxh3_128_hexdigest(content)  # SHA-256 would take eight times as long, a tenth of a list.
    if cursor is None:
        return tagged_response(request, content, tag)
    link = _link(request.address(request.path), tuple(request.query.items()), name, str(cursor))
    return tagged_response(request, content, xxh3_128_hexdigest((tag + link).encode()), headers=[("Link", link)])


@lru_cache(maxsize=256)  # Encoding a query takes as long as finding a page.
def _link(path: str, query: tuple[tuple[str, Any], ...], name: str, cursor: str) -> str:
    return f'<{path}?{urlencode({**dict(query), name: cursor}, quote_via=quote, safe="")}>; rel="next"'


def no_content(request: Request, headers: Pairs = ()) -> Response:
    """Answer 204."""
    return respond(request, b"", JSON, 204, headers)


# CORS (the CORS protocol of the Fetch standard)


def is_preflight(request: Request) -> bool:
    """Return whether a request is the preflight of a page that may call the API."""
    origin = request.environ.get("HTTP_ORIGIN")
    if not origin or not is_covered(request.path) or "HTTP_ACCESS_CONTROL_REQUEST_METHOD" not in request.environ:
        return False
    return ALLOW_ORIGIN in cors_headers(request.service.config.cors_origins, origin)


def is_covered(path: str) -> bool:
    """Return whether a path is one of the API itself."""
    return f"{path}/".startswith("/v1/")


def cors_headers(origins: Collection[str], origin: str | None) -> dict[str, str]:
    """Return the headers that say whether pages of an origin may read an answer; "*" among `origins` means all."""
    if "*" in origins:
        return {ALLOW_ORIGIN: "*", "Access-Control-Expose-Headers": EXPOSED}
    vary = {"Vary": "Origin"} if origins else {}
    return vary | {ALLOW_ORIGIN: origin, "Access-Control-Expose-Headers": EXPOSED} if origin in origins else vary


# Errors


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
    fields = error.normalized_messages().items()
    said = [sentence + line_of(field) for field, messages in fields for sentence in sentences({field: messages})]
    return error_response(exceptions.BadRequest("; ".join(said)))


def refused(error: errors.Conflict | errors.KeyName | errors.NotFound) -> Response:
    """Answer what the storage refuses: 404 if nothing is found, else 400: a value conflicts with others or the time."""
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
