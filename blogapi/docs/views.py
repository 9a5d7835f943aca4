"""Views outside /v1: the health of the service, its metrics, the description of the API, and a page to read it."""

import gzip
import json
import mimetypes
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from flask import Response, current_app, redirect, request
from prometheus_client import CONTENT_TYPE_LATEST
from werkzeug.exceptions import NotFound

from blogapi.api.access import PUBLIC
from blogapi.api.operations import blueprint
from blogapi.api.request import JSON, etag_of
from blogapi.api.responses import json_response, respond, tagged_response
from blogapi.docs.metrics import Metrics
from blogapi.docs.openapi import describe

ADDRESSES = {
    "posts": "/v1/posts",
    "tags": "/v1/tags",
    "webhooks": "/v1/webhooks",
    "description": "/openapi.json",
    "documentation": "/docs",
    "health": "/healthz",
}
STATIC = Path(__file__).resolve().parent / "static"
SWAGGER_UI = Path(str(files("flask_swagger_ui"))) / "dist"
# Only files that the service itself sends. Swagger UI draws its icons from data: addresses.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
PAGE_HEADERS = [("Content-Security-Policy", POLICY), ("X-Content-Type-Options", "nosniff")]


@blueprint.get("/")
def index() -> Response:
    """Redirect a browser to the reference page; list the addresses for any other client."""
    if request.accept_mimetypes.best_match([JSON, "text/html"]) != "text/html":
        addresses = {name: request.address(path) for name, path in ADDRESSES.items()}
        return json_response(request, addresses, vary="Accept", cache_control="no-cache")
    response = redirect(request.address("/docs"))
    response.vary.add("Accept")
    return response


@blueprint.get("/healthz")
def healthz() -> Response:
    """Return whether the service works."""
    request.database.check()
    return json_response(request, {"status": "ok"}, cache_control="no-store")


@blueprint.get("/metrics")
def metrics() -> Response:
    """Return the metrics for Prometheus. Unlike the rest of this module, it needs a key."""
    return respond(request, Metrics(request.service).text(), CONTENT_TYPE_LATEST)


@blueprint.get("/openapi.json")
def openapi() -> Response:
    """Return the description of the API."""
    content = description(request.service.config.public_url or request.address(""))
    headers = [("Access-Control-Allow-Origin", "*")]  # Tools that run in a browser read it.
    return tagged_response(request, content, etag_of(content), JSON, headers, cache_control="no-cache")


@blueprint.get("/docs")
def docs() -> Response:
    """Show the description as a page."""
    return page(STATIC / "docs.html")


@blueprint.get("/docs/")
def docs_with_slash() -> Response:
    """Redirect to the page, whose relative addresses need its own."""
    return redirect(request.address("/docs"))


@blueprint.get("/docs/<name>")
def docs_file(name: str) -> Response:
    """Send a file of the page."""
    if request.path not in PUBLIC:
        raise NotFound
    return page((STATIC if name.startswith("docs.") else SWAGGER_UI) / name)


def page(path: Path) -> Response:
    """Send a file, which may load nothing from elsewhere."""
    file = load_page(path, request.accept_encodings["gzip"] > 0)
    return tagged_response(request, **file, vary="Accept-Encoding", cache_control="no-cache")


@cache
def load_page(path: Path, compressed: bool) -> dict[str, Any]:
    """Return what a response with a file has; it never changes while the service runs."""
    content, headers = path.read_bytes(), PAGE_HEADERS
    content_type, tag = f"{mimetypes.guess_type(path)[0]}; charset=utf-8", etag_of(content)
    if compressed:
        content, tag = gzip.compress(content, compresslevel=6, mtime=0), f"{tag}-gzip"
        headers = [*headers, ("Content-Encoding", "gzip")]
    return {"content": content, "tag": tag, "content_type": content_type, "headers": headers}


@cache
def description(server: str) -> bytes:
    """Return the description as JSON; it never changes while the service runs."""
    return f"{json.dumps(describe(current_app, server))}\n".encode()
