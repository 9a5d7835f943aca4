"""Serve the endpoints for posts."""

from collections.abc import Callable
from functools import partial
from typing import Any

from flask import Response
from marshmallow import ValidationError
from werkzeug import exceptions

from blogapi.api.access import scoped_query
from blogapi.api.operations import ResponseSpec
from blogapi.api.request import JSON_TYPES, Request, load_body
from blogapi.api.responses import POSTS_PATH, created_response, document_response, list_response, no_content
from blogapi.api.schemas import choice, parameters, query_flag
from blogapi.api.views import Views
from blogapi.documents import is_slug, slug_in
from blogapi.markdown.http import POST_TYPES, parse_file, post_or_file_response
from blogapi.paging import Page
from blogapi.posts import idempotency, lists, schemas
from blogapi.posts import storage as posts
from blogapi.search import index
from blogapi.storage.keys import WRITE_SCOPES
from blogapi.storage.models import SCOPES

A_SLUG = ": a slug has lower-case letters a-z, digits and single hyphens between them, at most 100"
CHANGED_POST = ResponseSpec(200, "The updated post.", schemas.PostSchema(), ("ETag",))
NEW_POST = ResponseSpec(201, "The new post.", schemas.PostSchema(), ("Location", "ETag"))
POSTS_OR_SUMMARIES = {"type": "array", "items": {"anyOf": [schemas.PostSchema(), schemas.PostSummarySchema()]}}
LIST_HEADERS = ("Link", "ETag")
WHOLE_POST: dict[str, Any] = {  # declarations shared by the operations that receive a whole post
    "query": parameters(unknown=choice(("params",), "With a Markdown file: keep unknown names in `params`.")),
    "content_types": POST_TYPES,
    "parse_file": parse_file,
    "scopes": WRITE_SCOPES,
}
views = Views("posts", __name__)


@views.operation(
    "GET /v1/posts",
    ResponseSpec(200, "The posts, in order: with `fields`, summaries.", POSTS_OR_SUMMARIES, LIST_HEADERS),
    query=schemas.ListQuerySchema(),
    scopes=SCOPES,
)
def list_posts(request: Request) -> Response:
    """List posts, newest first.

    Posts are complete, including their content, unless `fields` lists the fields that you need. A page has at most
    `limit` posts, or fewer if the posts are large. If there are more, the `Link` header contains the URL of the next
    page: the same query, with `before` set to the `id` of the last post on this page. With another `sort`, `before` is
    the time of that post (or `title` or `text`), an underscore and its `id`.
    """
    query = scoped_query(request)
    page = Page([], None) if query is None else lists.list_page(request.database, query, request.client)
    return list_response(request, page)


def load_post(request: Request, check_exists: Callable[[], Any] | None = None) -> dict[str, Any]:
    """Load the body with `load_body`, and prepare the search index for a large post."""
    fields = load_body(request, check_exists)
    index.prepare(request.database, fields.get("content", ""))
    return fields


@views.operation(
    "POST /v1/posts", NEW_POST, body=schemas.NewPostSchema(), request_headers=("Idempotency-Key",), **WHOLE_POST
)
def create_post(request: Request) -> Response:
    """Create a post.

    By default, the post is a draft. The body can also be a Markdown file, whose front matter uses the field names.
    """
    fields, key = load_post(request), idempotency.key_of(request)
    add = partial(idempotency.add_once, key=key) if key else posts.add
    post = request.database.write(add, fields, request.author)
    return created_response(request, post.id, post.document)


@views.operation(
    "GET /v1/posts/<id:post>",
    ResponseSpec(200, "The post.", schemas.PostSchema(), ("ETag", "Content-Location"), POST_TYPES),
    scopes=SCOPES,
)
def get_post(request: Request, post: posts.PostRef) -> Response:
    """Get a post, as JSON or as a Markdown file.

    To get the file, prefer `text/markdown` in `Accept`. If the path has a former slug, the response has a
    `Content-Location` with the current one.
    """
    document = posts.get(request.database, post, request.published_only)
    request.check_preconditions(document)
    headers = []
    if isinstance(post, str) and post != (slug := slug_in(document)):
        headers.append(("Content-Location", request.with_prefix(f"{POSTS_PATH}by-slug/{slug}")))
    return post_or_file_response(request, document, headers)


@views.operation(
    "PATCH /v1/posts/<id:post>",
    CHANGED_POST,
    body=schemas.PostChangeSchema(partial=True),
    content_types=JSON_TYPES,
    request_headers=("If-Match",),
    scopes=WRITE_SCOPES,
)
def change_post(request: Request, post: posts.PostRef) -> Response:
    """Change some fields of a post.

    A `scheduled` post needs a `published_at` in the future; a `published` one without a date gets the current time.
    """
    changes = load_post(request, lambda: posts.id_of(request.database, post))
    changed = request.database.write(posts.change, post, changes, request.author, request.check_preconditions)
    return document_response(request, changed.document)


@views.operation(
    "PUT /v1/posts/by-slug/<slug:post>",
    CHANGED_POST,
    creates=NEW_POST,
    body=schemas.PostInputSchema(),
    request_headers=("If-Match", "If-None-Match"),
    **WHOLE_POST,
)
def put_post(request: Request, post: str) -> Response:
    """Create the post with a slug, or replace it.

    If the post is already the same, nothing is written. The body can also be a Markdown file. A former slug is refused,
    and the error message contains the current slug of the post.
    """
    if not is_slug(post):
        meant = post.removesuffix(".md")  # curl -T appends the file's name
        hint = f"; did you mean {request.with_prefix(f'{POSTS_PATH}by-slug/{meant}')}?" if is_slug(meant) else A_SLUG
        raise exceptions.NotFound(f"no such path{hint}")
    fields = load_post(request)
    if fields.pop("slug", post) != post:
        raise ValidationError("must match the path, or be left out", "slug")
    put = request.database.write(posts.put, post, fields, request.author, request.check_preconditions)
    if put.outcome == "created":
        return created_response(request, put.id, put.document)
    return document_response(request, put.document)


@views.operation(
    "PUT /v1/posts/<id:post>",
    CHANGED_POST,
    body=schemas.PostInputSchema(),
    request_headers=("If-Match", "If-None-Match"),
    **WHOLE_POST,
)
def replace_post(request: Request, post: int) -> Response:
    """Replace a post.

    The post keeps its slug if the body contains none. If the post is already the same, nothing is written. The body can
    also be a Markdown file.
    """
    put = request.database.write(posts.put, post, load_post(request), request.author, request.check_preconditions)
    return document_response(request, put.document)


@views.operation(
    "DELETE /v1/posts/<id:post>",
    ResponseSpec(204, "The post is deleted."),
    request_headers=("If-Match",),
    query=parameters(permanent=query_flag("`true`: delete the post and its revisions for good at once.")),
    scopes=WRITE_SCOPES,
)
def delete_post(request: Request, post: posts.PostRef) -> Response:
    """Delete a post.

    The post stays in the trash for 30 days by default. With `permanent=true`, it is deleted for good. Other posts can
    then use its slugs, but its id is never reused.
    """
    permanent = request.query.get("permanent", False)
    write = request.database.write_freeing if permanent else request.database.write
    write(posts.delete, post, request.author, request.check_preconditions, permanent=permanent)
    return no_content(request)
