"""The floor: a bare Flask view that returns prepared bytes, and a bare WSGI function that does the same."""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from flask import Flask, Response

bodies = Path(os.environ["BODIES"])
page = (bodies / "page.json").read_bytes()
post = (bodies / "post.json").read_bytes()
app = Flask(__name__)


@app.get("/v1/posts")
def list_posts() -> Response:
    return Response(page, mimetype="application/json")


@app.get("/v1/posts/1")
def get_post() -> Response:
    return Response(post, mimetype="application/json")


def function(environ: dict, start_response: Callable) -> Iterable[bytes]:
    """Answer every request with the page."""
    start_response("200 OK", [("Content-Type", "application/json"), ("Content-Length", str(len(page)))])
    return [page]
