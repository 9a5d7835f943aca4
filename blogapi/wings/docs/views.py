"""Serve the metrics, the API description, and the page that shows it, all outside /v1."""

import json
from functools import cache
from importlib.resources import files
from pathlib import Path

from flask import Blueprint, Response, current_app
from prometheus_client import CONTENT_TYPE_LATEST

from blogapi.api.access import for_scopes, for_strangers
from blogapi.api.operations import JSON
from blogapi.api.request import request
from blogapi.api.responses import json_response, redirect, respond, tagged_response
from blogapi.documents import hash_of
from blogapi.storage.keys import READ_SCOPES
from blogapi.wings.docs.metrics import Metrics
from blogapi.wings.docs.openapi import describe
from blogapi.wings.pages import add_static, send_static

PATHS = {
    "posts": "/v1/posts",
    "tags": "/v1/tags",
    "images": "/v1/images",
    "webhooks": "/v1/webhooks",
    "micropub": "/micropub",
    "description": "/openapi.json",
    "documentation": "/docs",
    "health": "/healthz",
}
STATIC = Path(__file__).resolve().parent / "static"
SWAGGER_UI = Path(str(files("flask_swagger_ui"))) / "dist"
FILES = [STATIC / "docs.css", STATIC / "docs.js", SWAGGER_UI / "swagger-ui.css", SWAGGER_UI / "swagger-ui-bundle.js"]
views = Blueprint("docs", __name__)


@views.get("/")
@for_strangers
def index() -> Response:
    """Redirect browsers to the reference page. For other clients, list the service's URLs."""
    if request.accept_mimetypes.best_match([JSON, "text/html"]) != "text/html":
        paths = {name: request.with_prefix(path) for name, path in PATHS.items()}
        return json_response(request, paths, vary="Accept", cache_control="no-cache")
    response = redirect(request.with_prefix("/docs"))
    response.vary.add("Accept")
    return response


@views.get("/metrics")
@for_scopes(*READ_SCOPES)
def metrics() -> Response:
    """Return the metrics for Prometheus."""
    return respond(request, Metrics(request.service).text(), CONTENT_TYPE_LATEST)


@views.get("/openapi.json")
@for_strangers
def openapi() -> Response:
    """Return the description of the API."""
    content = description(request.service.config.url or request.with_prefix(""))
    headers = [("Access-Control-Allow-Origin", "*")]  # for tools that run in a browser
    return tagged_response(request, content, hash_of(content), JSON, headers, cache_control="no-cache")


@views.get("/docs")
@for_strangers
def docs() -> Response:
    """Show the reference page."""
    return send_static(STATIC / "docs.html")


@views.get("/docs/")
@for_strangers
def docs_with_slash() -> Response:
    """Redirect to /docs, because the relative URLs in the page only work there."""
    return redirect(request.with_prefix("/docs"))


add_static(views, "/docs", FILES)


@cache
def description(server: str) -> bytes:
    """Return the description as JSON. It is cached, because it does not change while the service runs."""
    return f"{json.dumps(describe(current_app, server))}\n".encode()
