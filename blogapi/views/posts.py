"""The posts: list, create, delete."""

from urllib.parse import quote

from flask import Response
from flask.blueprints import BlueprintSetupState
from werkzeug.routing import BaseConverter, ValidationError

from blogapi.body import load_body, load_query
from blogapi.clock import now, rfc3339
from blogapi.db import database
from blogapi.models import Post
from blogapi.schemas import MAX_ID, POST_ID, ListQuery, NewPost
from blogapi.views.guard import blueprint

JSON = "application/json"

new_post = NewPost()
list_query = ListQuery()


class PostIdConverter(BaseConverter):
    """The id of a post in a path, only as the service writes it; anything else is no path of ours."""

    regex = POST_ID

    def to_python(self, value: str) -> int:
        if int(value) > MAX_ID:
            raise ValidationError
        return int(value)


@blueprint.record
def add_converter(state: BlueprintSetupState) -> None:
    """Let the routes below speak of a post_id."""
    state.app.url_map.converters["post_id"] = PostIdConverter


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


def next_link(before: int, limit: int, status: str | None = None, tag: str | None = None) -> str:
    """Return the Link header that leads on (RFC 8288), path-absolute and with the same filters."""
    filters = f"limit={limit}"
    if status is not None:
        filters += f"&status={status}"
    if tag is not None:
        filters += f"&tag={quote(tag, safe='')}"
    return f'</v1/posts?{filters}&before={before}>; rel="next"'
