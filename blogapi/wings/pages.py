"""Serve the health check and static files."""

import gzip
import mimetypes
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from flask import Blueprint, Response

from blogapi.api.access import for_strangers
from blogapi.api.request import request
from blogapi.api.responses import json_response, tagged_response
from blogapi.documents import hash_of
from blogapi.search import index

# Allows only files from this service. Swagger UI needs data: URLs for its icons.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
PAGE_HEADERS = [("Content-Security-Policy", POLICY), ("X-Content-Type-Options", "nosniff")]
views = Blueprint("pages", __name__)


@views.get("/healthz")
@for_strangers
def healthz() -> Response:
    """Check the database. `indexed_percent` reports the progress of a rebuild of the search index."""
    request.database.check()
    percent = index.indexed_percent(request.database)
    state = {"status": "ok"} | ({} if percent is None else {"indexed_percent": percent})
    return json_response(request, state, cache_control="no-store")


@views.get("/readyz")
@for_strangers
def readyz() -> Response:
    """Report that the service accepts requests, even if its database fails. While draining, the server returns 503."""
    return json_response(request, {"status": "ok"}, cache_control="no-store")


def add_static(blueprint: Blueprint, prefix: str, files: Iterable[Path]) -> None:
    """Serve each file at `{prefix}/{file name}`. No API key is needed."""
    paths = {file.name: file for file in files}

    @for_strangers
    def send_file() -> Response:
        return send_static(paths[request.path.rpartition("/")[2]])

    for name in paths:
        blueprint.add_url_rule(f"{prefix}/{name}", view_func=send_file)


def send_static(path: Path) -> Response:
    """Send a file, with a Content Security Policy that keeps it from loading anything from other servers."""
    file = load_static(path, request.accept_encodings["gzip"] > 0)
    return tagged_response(request, **file, vary="Accept-Encoding", cache_control="no-cache")


@cache
def load_static(path: Path, compressed: bool) -> dict[str, Any]:
    """Return the arguments for a file's response. They are cached: files do not change while the service runs."""
    content, headers = path.read_bytes(), PAGE_HEADERS
    content_type, tag = f"{mimetypes.guess_type(path)[0]}; charset=utf-8", hash_of(content)
    if compressed:
        content, tag = gzip.compress(content, compresslevel=6, mtime=0), f"{tag}-gzip"
        headers = [*headers, ("Content-Encoding", "gzip")]
    return {"content": content, "tag": tag, "content_type": content_type, "headers": headers}
