"""The operations: each loads what the request carries, calls one method of a model, and answers."""

from urllib.parse import quote

from flask import Blueprint, Response, request
from werkzeug.routing import BaseConverter, ValidationError

from blogapi.auth import key_required
from blogapi.body import load_body, load_query
from blogapi.clock import now, rfc3339
from blogapi.db import database
from blogapi.limiter import rate_limited
from blogapi.models import Post
from blogapi.schemas import MAX_ID, ListQuery, NewPost, NoQuery

JSON = "application/json"
PUBLIC = {"/healthz"}  # the paths outside /v1 that need no key
QUERIED = {"api.list_posts"}  # the endpoints that load a query

blueprint = Blueprint("api", __name__)
new_post = NewPost()
list_query = ListQuery()
no_query = NoQuery()


class PostIdConverter(BaseConverter):
    """The id of a post in a path, only as the service writes it; anything else is no path of ours."""

    regex = "[1-9][0-9]{0,18}"

    def to_python(self, value: str) -> int:
        if int(value) > MAX_ID:
            raise ValidationError
        return int(value)


@blueprint.before_app_request
def guard() -> None:
    """Stand before everything, unknown paths too: a new view is protected without anyone having to remember it."""
    if request.path not in PUBLIC:  # the path that the router sees, without repeated slashes at its beginning
        admit()


@key_required
@rate_limited
def admit() -> None:
    """Let a request pass that carries a key and is within its limit."""


@blueprint.before_request
def refuse_query() -> None:
    """Refuse parameters wherever an operation has none: a typo must not make a script delete every post."""
    if request.endpoint not in QUERIED and request.path not in PUBLIC:
        load_query(no_query)


@blueprint.get("/v1/posts")
def list_posts() -> Response:
    """List posts, newest first."""
    query = load_query(list_query)
    posts, last = Post.page(**query)
    response = Response(b"[%b]" % b",".join(posts), mimetype=JSON)
    if last is not None:
        response.headers["Link"] = next_link(**query | {"before": last})
    return response


@blueprint.post("/v1/posts")
def create_post() -> Response:
    """Create a post."""
    fields = load_body(new_post)
    time = rfc3339(now())
    post_id, post = database.write(lambda: Post.add(fields, time))
    return Response(post, 201, {"Location": f"/v1/posts/{post_id}"}, mimetype=JSON)


@blueprint.delete("/v1/posts/<post_id:post_id>")
def delete_post(post_id: int) -> Response:
    """Delete a post."""
    database.write(lambda: Post.remove(post_id))
    response = Response(status=204)
    del response.headers["Content-Type"]  # Flask gives every answer one
    return response


@blueprint.get("/healthz")
def healthz() -> Response:
    """Tell whether the service can do its work."""
    database.check()
    return Response(b'{"status":"ok"}', mimetype=JSON)


def next_link(limit: int, status: str | None, tag: str | None, before: int) -> str:
    """Return the Link header that leads on (RFC 8288), path-absolute and with the same filters."""
    filters = f"limit={limit}"
    if status is not None:
        filters += f"&status={status}"
    if tag is not None:
        filters += f"&tag={quote(tag, safe='')}"
    return f'</v1/posts?{filters}&before={before}>; rel="next"'
