"""What is outside /v1: the service's health, its metrics, the description of the API, and a page to read it on."""

import gzip
import json
import mimetypes
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from flask import Response, current_app, redirect, request
from prometheus_client import CONTENT_TYPE_LATEST
from werkzeug.exceptions import NotFound

from blogapi.storage.documents import etag
from blogapi.web.blueprint import blueprint
from blogapi.web.guard import PUBLIC
from blogapi.web.openapi.description import describe
from blogapi.web.responses import JSON, json_response, tagged_response
from blogapi.web.service import database, service

ADDRESSES = {
    "posts": "/v1/posts",
    "tags": "/v1/tags",
    "webhooks": "/v1/webhooks",
    "description": "/openapi.json",
    "documentation": "/docs",
    "health": "/healthz",
}
STATIC = Path(__file__).resolve().parent.parent / "static"
SWAGGER_UI = Path(str(files("flask_swagger_ui"))) / "dist"
# Nothing but what the service itself sends. Swagger UI draws its icons from data: addresses.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@blueprint.get("/")
def index() -> Response:
    """Lead a browser to the reference page; name the addresses to anything else."""
    if request.accept_mimetypes.best_match([JSON, "text/html"]) == "text/html":
        response = redirect("/docs")
    else:
        response = json_response(ADDRESSES)
    response.vary.add("Accept")
    return response


@blueprint.get("/healthz")
def healthz() -> Response:
    """Return whether the service can do its work."""
    database().check()
    response = json_response({"status": "ok"})
    response.cache_control.no_store = True
    return response


@blueprint.get("/metrics")
def metrics() -> Response:
    """Tell Prometheus how much is done, and how fast. Unlike the rest of this module, for who has a key."""
    return Response(service().metrics.text(), content_type=CONTENT_TYPE_LATEST)


@blueprint.get("/openapi.json")
def openapi() -> Response:
    """Describe the API."""
    content = description()
    response = tagged_response(content, etag(content), JSON)
    response.cache_control.no_cache = True
    return response


@blueprint.get("/docs")
def docs() -> Response:
    """Show the description as a page."""
    return page(STATIC / "docs.html")


@blueprint.get("/docs/<name>")
def docs_file(name: str) -> Response:
    """Send a file of the page."""
    if request.path not in PUBLIC:
        raise NotFound
    return page((STATIC if name.startswith("docs.") else SWAGGER_UI) / name)


class Page(NamedTuple):
    """A file of the page, as it is sent to everybody who asks."""

    content: bytes
    compressed: bytes
    etag: str


def page(path: Path) -> Response:
    """Send a file that may load nothing from elsewhere."""
    page, mimetype = load_page(path), mimetypes.guess_type(path)[0]
    if request.accept_encodings["gzip"] > 0:
        response = tagged_response(page.compressed, f"{page.etag}-gzip", mimetype)
        response.content_encoding = "gzip"
    else:
        response = tagged_response(page.content, page.etag, mimetype)
    response.vary.add("Accept-Encoding")
    response.cache_control.no_cache = True
    response.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


@cache
def load_page(path: Path) -> Page:
    """Read and compress a file; it never changes while the service runs."""
    content = path.read_bytes()
    return Page(content, gzip.compress(content, compresslevel=6, mtime=0), etag(content))


@cache
def description() -> bytes:
    """Return the description as JSON; it never changes while the service runs."""
    return f"{json.dumps(describe(current_app))}\n".encode()
