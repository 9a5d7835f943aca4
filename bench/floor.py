"""The yardstick: a bare Flask view that returns ready bytes."""

import os
from pathlib import Path

from flask import Flask, Response

body = Path(os.environ["BODY"]).read_bytes()
app = Flask(__name__)


@app.get("/v1/posts")
def list_posts() -> Response:
    return Response(body, mimetype="application/json")
