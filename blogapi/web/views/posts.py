"""The posts: list, create, get, change, delete."""

from flask import Response, g

from blogapi.storage import idempotency, posts
from blogapi.web.context import database
from blogapi.web.openapi.operation import MERGE_PATCH, Answer, operation
from blogapi.web.preconditions import idempotency_key, precondition
from blogapi.web.request import load_body
from blogapi.web.responses import JSON, next_link, no_content, post_response
from blogapi.web.schemas.posts import ListQuerySchema, NewPostSchema, PostChangeSchema, PostSchema

post_schema = PostSchema()


@operation(
    "GET /v1/posts",
    Answer(200, "The posts, newest first.", PostSchema(many=True), headers=("Link",)),
    query=ListQuerySchema(),
)
def list_posts() -> Response:
    """List posts, newest first."""
    query = g.query
    page = posts.page(database(), **query)
    response = Response(b"[%b]" % b",".join(page.documents), mimetype=JSON)
    if page.last is not None:
        response.headers["Link"] = next_link("/v1/posts", query | {"before": page.last})
    return response


@operation(
    "POST /v1/posts",
    Answer(201, "The new post.", post_schema, headers=("Location", "ETag")),
    body=NewPostSchema(),
    request_headers=("Idempotency-Key",),
)
def create_post() -> Response:
    """Create a post."""
    post = database().write(idempotency.add_post, load_body(), idempotency_key())
    return post_response(post.document, 201, Location=f"/v1/posts/{post.id}")


@operation(
    "GET /v1/posts/<id:post_id>",
    Answer(200, "The post.", post_schema, headers=("ETag",)),
    request_headers=("If-None-Match",),
    errors=(404,),
)
def get_post(post_id: int) -> Response:
    """Get a post."""
    document = posts.find(database(), post_id)
    precondition()(document)
    return post_response(document)


@operation(
    "PATCH /v1/posts/<id:post_id>",
    Answer(200, "The post as it is now.", post_schema, headers=("ETag",)),
    body=PostChangeSchema(partial=True),
    content_types=(JSON, MERGE_PATCH),
    request_headers=("If-Match",),
    errors=(404, 412),
)
def change_post(post_id: int) -> Response:
    """Change what the body names of a post."""
    posts.find(database(), post_id)  # a path that names no post is judged before the body
    return post_response(database().write(posts.change, post_id, load_body(), precondition()))


@operation(
    "DELETE /v1/posts/<id:post_id>",
    Answer(204, "The post is deleted."),
    request_headers=("If-Match",),
    errors=(404, 412),
)
def delete_post(post_id: int) -> Response:
    """Delete a post."""
    database().write(posts.remove, post_id, precondition())
    return no_content()
