"""The posts: list, create, get, change, delete."""

import hashlib
import re
from collections.abc import Callable
from urllib.parse import quote

from flask import Response, g, request
from marshmallow import ValidationError
from werkzeug.exceptions import PreconditionFailed

from blogapi.body import load_body, load_query, read_json
from blogapi.clock import timestamp
from blogapi.db import database
from blogapi.models import Idempotency, Post
from blogapi.models.posts import etag
from blogapi.schemas import ListQuery, NewPost, PostChange
from blogapi.views.guard import JSON, blueprint, no_content

new_post = NewPost()
post_change = PostChange(partial=True)
list_query = ListQuery()


@blueprint.get("/v1/posts")
def list_posts() -> Response:
    """List posts, newest first."""
    query = load_query(list_query)
    posts, last = Post.page(timestamp(), **query)
    response = Response(b"[%b]" % b",".join(posts), mimetype=JSON)
    if last is not None:
        response.headers["Link"] = next_link(**query | {"before": last})
    return response


@blueprint.post("/v1/posts")
def create_post() -> Response:
    """Create a post."""
    body = read_json()
    fields = load_body(new_post, body)
    time = timestamp()
    once = idempotency(body, time)
    post_id, post = database.write(lambda: Post.add_once(fields, time, once) if once else Post.add(fields, time))
    return answer(post, 201, Location=f"/v1/posts/{post_id}")


@blueprint.get("/v1/posts/<id:post_id>")
def get_post(post_id: int) -> Response:
    """Get a post."""
    post = Post.find(post_id, timestamp())
    matcher()(post)
    if request.if_none_match.contains_weak(etag(post)):
        return answer(b"", 304, etag(post))
    return answer(post)


@blueprint.patch("/v1/posts/<id:post_id>")
def change_post(post_id: int) -> Response:
    """Change what the body names of a post."""
    Post.find(post_id, timestamp())  # a path that names no post is judged before the body
    changes = load_body(post_change, read_json("application/merge-patch+json"))
    time, matches = timestamp(), matcher()
    return answer(database.write(lambda: Post.change(post_id, changes, time, matches)))


@blueprint.delete("/v1/posts/<id:post_id>")
def delete_post(post_id: int) -> Response:
    """Delete a post."""
    time, matches = timestamp(), matcher()
    database.write(lambda: Post.remove(post_id, time, matches))
    return no_content()


def answer(post: bytes, status: int = 200, tag: str | None = None, **headers: str) -> Response:
    """Answer with a post and its entity tag."""
    response = Response(post, status, headers, mimetype=JSON)
    response.set_etag(tag or etag(post))
    return response


def matcher() -> Callable[[bytes], None]:
    """Return what raises PreconditionFailed for a post that the request is not meant for (RFC 9110, section 13.1)."""
    wanted = request.if_match if "If-Match" in request.headers else None
    unwanted = request.if_none_match if request.method not in ("GET", "HEAD") else None

    def match(post: bytes) -> None:
        if wanted is not None and not wanted.contains(etag(post)):
            raise PreconditionFailed("If-Match: the post has been changed since; get it again")
        if unwanted is not None and unwanted.contains_weak(etag(post)):
            raise PreconditionFailed("If-None-Match: the post still has this entity tag")

    return match


def idempotency(body: bytes, time: str) -> Idempotency | None:
    """Return what is to be remembered of a request with an Idempotency-Key, None where it has none."""
    name = request.environ.get("HTTP_IDEMPOTENCY_KEY")
    if name is None:
        return None
    if not re.fullmatch("[\x21-\x7e]{1,255}", name):
        raise ValidationError("must have 1 to 255 visible ASCII characters", "Idempotency-Key")
    return Idempotency(
        digest=g.api_key,
        name=name,
        request=hashlib.sha256(body).digest(),
        created_at=time,
    )


def next_link(before: int, limit: int, status: str | None = None, tag: str | None = None) -> str:
    """Return the Link header that leads on (RFC 8288), path-absolute and with the same filters."""
    filters = f"limit={limit}"
    if status is not None:
        filters += f"&status={status}"
    if tag is not None:
        filters += f"&tag={quote(tag, safe='')}"
    return f'</v1/posts?{filters}&before={before}>; rel="next"'
