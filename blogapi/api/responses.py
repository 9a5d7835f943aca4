"""Create responses with all their headers."""

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, cast
from urllib.parse import quote, urlencode

import flask
from werkzeug import datastructures
from werkzeug.http import HTTP_STATUS_CODES

from blogapi.api.operations import JSON
from blogapi.api.request import READ_METHODS, Request
from blogapi.documents import dump, etag_of, hash_of
from blogapi.paging import Page

POSTS_PATH = "/v1/posts/"
Pairs = Iterable[tuple[str, str]]
STATUS_LINES = {code: f"{code} {name.upper()}" for code, name in HTTP_STATUS_CODES.items()}
PRIVATE = "private, no-cache"  # Only the client may cache a response, and it must revalidate it on each use.


class ValidHeaders(datastructures.Headers):
    """Headers that are known to be valid, so that Werkzeug does not check them."""

    def __init__(self, pairs: list[tuple[str, str]]):
        self._list = pairs


class Response(flask.Response):
    """A response that is created with all its headers, so that Werkzeug does not look for missing ones."""

    default_mimetype = None

    def __call__(self, environ: dict[str, Any], start_response: Callable) -> Iterable:
        start_response(self.status, self.headers.to_wsgi_list())
        return [] if environ["REQUEST_METHOD"] == "HEAD" else self.response


def redirect(location: str, status: int = 302) -> flask.Response:
    return cast(flask.Response, flask.redirect(location, status))


def respond(
    request: Request,
    content: bytes,
    content_type: str,
    status: int = 200,
    headers: Pairs = (),
    vary: str = "",
    cache_control: str = PRIVATE,
) -> Response:
    """Create a response with these headers and the common ones."""
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
    if vary:
        pairs.append(("Vary", vary))
    return Response([content], STATUS_LINES[status], ValidHeaders(pairs))


def json_response(request: Request, content: Any, status: int = 200, headers: Pairs = (), **options: str) -> Response:
    return respond(request, f"{dump(content)}\n".encode(), JSON, status, headers, **options)


def tagged_response(
    request: Request, content: bytes, tag: str, content_type: str = JSON, headers: Pairs = (), **options: Any
) -> Response:
    """Return a response with an entity tag, or a 304 if the client has this version (RFC 9110, section 13.1.2)."""
    reads = "HTTP_IF_NONE_MATCH" in request.environ and request.method in READ_METHODS
    if reads and request.if_none_match.contains_weak(tag):
        content, options["status"] = b"", 304
    return respond(request, content, content_type, headers=[("ETag", f'"{tag}"'), *headers], **options)


def document_response(request: Request, document: bytes, **options: Any) -> Response:
    """Return a post, a proposal or an image as JSON, with its entity tag."""
    return tagged_response(request, document + b"\n", etag_of(document), **options)


def created_response(request: Request, post_id: int, document: bytes) -> Response:
    location = ("Location", request.with_prefix(f"{POSTS_PATH}{post_id}"))
    return document_response(request, document, status=201, headers=[location])


def list_response(request: Request, page: Page[bytes, Any], name: str = "before", path: str | None = None) -> Response:
    """Return a page of JSON objects, with a Link to the next page, if any, and an entity tag that covers both.

    The Link (RFC 8288) repeats the query with `name` set to the cursor. It is path-absolute and never built from the
    Host header.
    """
    content = b"[%b]\n" % b",".join(page.items)
    tag = hash_of(content)
    if page.next is None:
        return tagged_response(request, content, tag)
    link = _link(request.with_prefix(path or request.path), tuple(request.query.items()), name, str(page.next))
    return tagged_response(request, content, hash_of((tag + link).encode()), headers=[("Link", link)])


@lru_cache(maxsize=256)  # Encoding a query takes as long as finding a page.
def _link(path: str, query: tuple[tuple[str, Any], ...], name: str, cursor: str) -> str:
    return f'<{path}?{urlencode({**dict(query), name: cursor}, quote_via=quote, safe="")}>; rel="next"'


def no_content(request: Request, headers: Pairs = ()) -> Response:
    return respond(request, b"", JSON, 204, headers)
