"""What views answer with."""

import json
import re
from typing import Any
from urllib.parse import quote, urlencode

from flask import Response, request
from werkzeug.datastructures import MIMEAccept
from werkzeug.http import parse_accept_header
from xxhash import xxh3_128_hexdigest

from blogapi.storage.documents import etag

JSON = "application/json"
MARKDOWN = "text/markdown"
CHARSET = re.compile(r';[ \t]*charset="?utf-?8"?')  # what is answered has it, so it decides nothing


def json_response(content: Any, status: int = 200, **headers: str) -> Response:
    """Answer with JSON."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return Response(f"{text}\n", status, headers, mimetype=JSON)


def post_response(document: bytes, status: int = 200, **headers: str) -> Response:
    """Answer with a post as JSON, and its entity tag."""
    return tagged_response(document + b"\n", etag(document), JSON, status, **headers)


def list_response(content: bytes, link: str | None) -> Response:
    """Answer with a list as JSON, and its entity tag, which changes with the Link that leads on, too."""
    tag = xxh3_128_hexdigest(content)  # SHA-256 would take eight times as long, a tenth of a list.
    if link is None:
        return tagged_response(content, tag, JSON)
    return tagged_response(content, xxh3_128_hexdigest((tag + link).encode()), JSON, Link=link)


def tagged_response(content: bytes, tag: str, mimetype: str | None, status: int = 200, **headers: str) -> Response:
    """Answer with an entity tag; 304 where that is what the client has (RFC 9110, section 13.1.2)."""
    reads = request.environ["REQUEST_METHOD"] in ("GET", "HEAD")
    if reads and "HTTP_IF_NONE_MATCH" in request.environ and request.if_none_match.contains_weak(tag):
        content, status = b"", 304
    response = Response(content, status, mimetype=mimetype)
    response.headers["ETag"] = f'"{tag}"'
    for name, value in headers.items():  # Given to Response, they would take 3 µs, of about 100 for a list.
        response.headers[name] = value
    return response


def prefers_markdown() -> bool:
    """Return whether the client prefers Markdown to JSON (RFC 9110, section 12.5.1).

    Who names it beside `*/*` prefers it.
    """
    header = request.environ.get("HTTP_ACCEPT", "").lower()
    if "text/" not in header and ";" not in header:  # Parsing what curl sends would take a tenth.
        return False
    return parse_accept_header(CHARSET.sub("", header), MIMEAccept).best_match([JSON, MARKDOWN]) == MARKDOWN


def next_link(path: str, query: dict[str, Any]) -> str:
    """Return the Link header that leads on (RFC 8288): path-absolute, and never made from Host."""
    return f'<{path}?{urlencode(query, quote_via=quote, safe="")}>; rel="next"'


def no_content() -> Response:
    """Answer 204, without the Content-Type that Flask gives every answer."""
    response = Response(status=204)
    del response.headers["Content-Type"]
    return response
