"""What views answer with."""

import json
import re
from typing import Any
from urllib.parse import quote, urlencode

from flask import Response, request
from werkzeug.datastructures import MIMEAccept
from werkzeug.http import parse_accept_header

from blogapi.storage.documents import etag

JSON = "application/json"
MARKDOWN = "text/markdown"
CHARSET = re.compile(r';[ \t]*charset="?utf-?8"?')  # what is answered has it, so it decides nothing


def json_response(content: Any, status: int = 200, **headers: str) -> Response:
    """Answer with JSON."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return Response(text, status, headers, mimetype=JSON)


def post_response(content: bytes, status: int = 200, mimetype: str = JSON, **headers: str) -> Response:
    """Answer with a post and its entity tag; 304 where that is what the client has."""
    return conditional(content, etag(content), status, mimetype, **headers)


def conditional(content: bytes, entity_tag: str, status: int = 200, mimetype: str = JSON, **headers: str) -> Response:
    """Answer with a strong entity tag; 304 where that is what the client has (RFC 9110, section 13.1.2)."""
    reads = request.environ["REQUEST_METHOD"] in ("GET", "HEAD")
    if reads and "HTTP_IF_NONE_MATCH" in request.environ and request.if_none_match.contains_weak(entity_tag):
        content, status = b"", 304
    return Response(content, status, {"ETag": f'"{entity_tag}"', **headers}, mimetype=mimetype)


def prefers_markdown() -> bool:
    """Return whether the client prefers Markdown to JSON (RFC 9110, section 12.5.1).

    Who names it beside `*/*` prefers it.
    """
    header = request.environ.get("HTTP_ACCEPT", "").lower()
    if "text/" not in header:  # Parsing what curl sends would take a tenth.
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
