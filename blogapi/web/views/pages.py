"""What is outside /v1: the service's health, the description of the API, and a page to read it on."""

import json
from functools import cache
from importlib.resources import files
from pathlib import Path

from flask import Response, current_app, redirect, request, send_from_directory
from werkzeug.exceptions import NotFound

from blogapi.web.blueprint import blueprint
from blogapi.web.context import database
from blogapi.web.guard import PUBLIC
from blogapi.web.openapi.description import describe
from blogapi.web.responses import JSON

ADDRESSES = {
    "posts": "/v1/posts",
    "tags": "/v1/tags",
    "webhooks": "/v1/webhooks",
    "description": "/openapi.json",
    "documentation": "/docs",
    "health": "/healthz",
}
STATIC = Path(__file__).resolve().parent.parent / "static"
SWAGGER_UI = str(files("flask_swagger_ui") / "dist")
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
        response = Response(json.dumps(ADDRESSES), mimetype=JSON)
    response.vary.add("Accept")
    return response


@blueprint.get("/healthz")
def healthz() -> Response:
    """Tell whether the service can do its work."""
    database().check()
    return Response(b'{"status":"ok"}', mimetype=JSON)


@blueprint.get("/openapi.json")
def openapi() -> Response:
    """Describe the API."""
    return Response(description(), mimetype=JSON)


@blueprint.get("/docs")
def docs() -> Response:
    """Show the description as a page."""
    return page(str(STATIC), "docs.html")


@blueprint.get("/docs/<name>")
def docs_file(name: str) -> Response:
    """Send a file of the page."""
    if request.path not in PUBLIC:
        raise NotFound
    return page(str(STATIC) if name == "docs.js" else SWAGGER_UI, name)


def page(folder: str, name: str) -> Response:
    """Send a file that may load nothing from elsewhere."""
    response = send_from_directory(folder, name)
    response.headers["Content-Security-Policy"] = CONTENT_SECURITY_POLICY
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response


@cache
def description() -> str:
    """Return the description as JSON; it never changes while the service runs."""
    return json.dumps(describe(current_app))
