"""The blueprint of all views, and the guard that stands before them."""

import json

from flask import Blueprint, Response, request
from flask.blueprints import BlueprintSetupState
from werkzeug.exceptions import NotFound
from werkzeug.routing import BaseConverter

from blogapi.auth import key_required
from blogapi.body import load_query
from blogapi.fields import ID, MAX_ID
from blogapi.limiter import rate_limited
from blogapi.schemas import NoQuery

JSON = "application/json"
PAGES = {"/docs", "/docs/docs.js", "/docs/swagger-ui.css", "/docs/swagger-ui-bundle.js"}
PUBLIC = {"/", "/healthz", "/openapi.json", *PAGES}  # the paths outside /v1 that need no key
QUERIED = {"api.list_posts"}  # the endpoints that load a query

blueprint = Blueprint("api", __name__)
no_query = NoQuery()


class IdConverter(BaseConverter):
    """An id in a path, only as the service writes it; anything else names nothing."""

    regex = ID

    def to_python(self, value: str) -> int:
        return int(value) if int(value) <= MAX_ID else 0  # which nothing has


@blueprint.record
def add_converter(state: BlueprintSetupState) -> None:
    """Let routes speak of an id."""
    state.app.url_map.converters["id"] = IdConverter


@blueprint.before_app_request
def guard() -> None:
    """Stand before everything, unknown paths too: a new view is protected without anyone having to remember it."""
    if request.path not in PUBLIC:  # the path that the router sees, without repeated slashes at its beginning
        admit()
    try:
        request.environ["PATH_INFO"].encode("latin-1").decode()
    except UnicodeDecodeError:  # The router would see U+FFFD in its place, which can be the name of a tag.
        raise NotFound from None


@key_required
@rate_limited
def admit() -> None:
    """Let a request pass that carries a key and is within its limit."""


@blueprint.before_request
def refuse_query() -> None:
    """Refuse parameters wherever an operation has none: a typo must not make a script delete every post."""
    if request.endpoint not in QUERIED and request.path not in PUBLIC:
        load_query(no_query)


def json_response(body: dict | list, status: int = 200, **headers: str) -> Response:
    """Answer with JSON."""
    content = json.dumps(body, ensure_ascii=False, separators=(",", ":"))
    return Response(content, status, headers, mimetype=JSON)


def no_content() -> Response:
    """Answer 204, without the Content-Type that Flask gives every answer."""
    response = Response(status=204)
    del response.headers["Content-Type"]
    return response
