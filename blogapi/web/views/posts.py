"""The posts: list, create, get, change, put, delete."""

import json

from flask import Response, g
from marshmallow import ValidationError
from werkzeug.exceptions import NotFound

from blogapi.files.markdown import render
from blogapi.storage import idempotency, lists, posts
from blogapi.storage.models import SCOPES
from blogapi.web.context import database
from blogapi.web.openapi.operation import MERGE_PATCH, Answer, operation
from blogapi.web.preconditions import idempotency_key, precondition
from blogapi.web.request import load_body, load_parsed, parse_body
from blogapi.web.responses import JSON, MARKDOWN, next_link, no_content, post_response, prefers_markdown
from blogapi.web.schemas.posts import (
    ListQuerySchema,
    NewPostSchema,
    PostChangeSchema,
    PostSchema,
    PutPostSchema,
    is_slug,
)
from blogapi.web.scope import in_scope, published_only

post_schema = PostSchema()


@operation(
    "GET /v1/posts",
    Answer(200, "The posts, newest first.", PostSchema(many=True), headers=("Link",)),
    query=ListQuerySchema(),
    scopes=SCOPES,
)
def list_posts() -> Response:
    """List posts, newest first."""
    query = g.query
    asked = in_scope(query)
    page = lists.Page([], None) if asked is None else lists.page(database(), **asked)
    response = Response(b"[%b]" % b",".join(page.documents), mimetype=JSON)
    if page.last is not None:
        response.headers["Link"] = next_link("/v1/posts", query | {"before": page.last})
    return response


@operation(
    "POST /v1/posts",
    Answer(201, "The new post.", post_schema, headers=("Location", "ETag")),
    body=NewPostSchema(),
    content_types=(JSON, MARKDOWN),
    request_headers=("Idempotency-Key",),
)
def create_post() -> Response:
    """Create a post."""
    fields = load_body()
    post = database().write(idempotency.add_post, fields, idempotency_key())
    return post_response(post.document, 201, Location=f"/v1/posts/{post.id}")


@operation(
    "GET /v1/posts/<id:post>",
    Answer(200, "The post.", post_schema, headers=("ETag",), content_types=(JSON, MARKDOWN)),
    also=("get_post_by_slug", "/v1/posts/by-slug/<slug:post>"),
    request_headers=("If-None-Match",),
    errors=(404,),
    scopes=SCOPES,
)
def get_post(post: int | str) -> Response:
    """Get a post, as JSON or as a Markdown file."""
    find = posts.find_published if published_only() else posts.find
    document = find(database(), post)
    precondition()(document)
    if prefers_markdown():
        fields = json.loads(document)
        response = post_response(render(fields), mimetype=MARKDOWN)
        response.headers["Content-Disposition"] = f'inline; filename="{fields["slug"]}.md"'
    else:
        response = post_response(document)
    response.headers["Vary"] = "Accept"
    return response


@operation(
    "PATCH /v1/posts/<id:post>",
    Answer(200, "The post as it is now.", post_schema, headers=("ETag",)),
    also=("change_post_by_slug", "/v1/posts/by-slug/<slug:post>"),
    body=PostChangeSchema(partial=True),
    content_types=(JSON, MERGE_PATCH),
    request_headers=("If-Match",),
    errors=(404, 412),
)
def change_post(post: int | str) -> Response:
    """Change what the body names of a post."""
    posts.must_exist(database(), post)  # a path that names no post is judged before the body
    return post_response(database().write(posts.change, post, load_body(), precondition()))


@operation(
    "PUT /v1/posts/by-slug/<slug:post>",
    Answer(200, "The post as it is now; where it was like that already, nothing is written.", post_schema, ("ETag",)),
    creates=Answer(201, "The new post.", post_schema, headers=("Location", "ETag")),
    body=PutPostSchema(),
    content_types=(JSON, MARKDOWN),
    request_headers=("If-Match", "If-None-Match"),
    errors=(404, 412),
)
def put_post(post: str) -> Response:
    """Make the post with a slug be what the body says, creating it where it is missing."""
    if not is_slug(post):
        raise NotFound(
            "no such path: a slug has lower-case letters a-z, digits and single hyphens between them, at most 100"
        )
    body, check = parse_body(), precondition()
    same = posts.find_same(database(), post, body)  # which is valid, then: most files of a folder take this way
    if same:
        check(same)
        return post_response(same)
    fields = load_parsed(body)
    if fields.pop("slug", post) != post:
        raise ValidationError("must be the one in the path, or left out", "slug")
    (post_id, document), outcome = database().write(posts.put, post, fields, check)
    if outcome == "made":
        return post_response(document, 201, Location=f"/v1/posts/{post_id}")
    return post_response(document)


@operation(
    "DELETE /v1/posts/<id:post>",
    Answer(204, "The post is deleted."),
    also=("delete_post_by_slug", "/v1/posts/by-slug/<slug:post>"),
    request_headers=("If-Match",),
    errors=(404, 412),
)
def delete_post(post: int | str) -> Response:
    """Delete a post."""
    database().write(posts.remove, post, precondition())
    return no_content()
