"""What views answer with."""

import json
from typing import Any
from urllib.parse import quote, urlencode

from flask import Response, request

from blogapi.storage.documents import etag

JSON = "application/json"


def json_response(content: Any, status: int = 200, **headers: str) -> Response:
    """Answer with JSON."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    return Response(text, status, headers, mimetype=JSON)


def post_response(document: bytes, status: int = 200, **headers: str) -> Response:
    """Answer with a post and its entity tag; 304 where that is what the client has (RFC 9110, section 13.1.2)."""
    tag = etag(document)
    if request.method in ("GET", "HEAD") and request.if_none_match.contains_weak(tag):
        document, status = b"", 304
    response = Response(document, status, headers, mimetype=JSON)
    response.set_etag(tag)
    return response


def next_link(path: str, query: dict[str, Any]) -> str:
    """Return the Link header that leads on (RFC 8288): path-absolute, and never made from Host."""
    return f'<{path}?{urlencode(query, quote_via=quote, safe="")}>; rel="next"'


def no_content() -> Response:
    """Answer 204, without the Content-Type that Flask gives every answer."""
    response = Response(status=204)
    del response.headers["Content-Type"]
    return response
