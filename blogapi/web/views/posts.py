"""The posts: list, create, get, change, put, delete."""

import json
from collections.abc import Hashable
from typing import Any

from flask import Response, g
from marshmallow import ValidationError
from werkzeug.exceptions import NotFound

from blogapi.files.markdown import render
from blogapi.post import PostChangeSchema, PostInputSchema, PostSchema, PutPostSchema, is_slug
from blogapi.storage import pages, posts
from blogapi.storage.documents import etag
from blogapi.storage.models import SCOPES
from blogapi.storage.search import queries as search
from blogapi.web.openapi.operation import MERGE_PATCH, Answer, operation
from blogapi.web.preconditions import idempotency_key, precondition
from blogapi.web.request import load_body, load_parsed, parse_body
from blogapi.web.responses import (
    JSON,
    MARKDOWN,
    list_response,
    next_link,
    no_content,
    post_response,
    prefers_markdown,
    tagged_response,
)
from blogapi.web.schemas.posts import ListedPostSchema, ListQuerySchema
from blogapi.web.scope import in_scope, published_only
from blogapi.web.service import database

post_schema = PostSchema()


@operation(
    "GET /v1/posts",
    Answer(200, "The posts, in order.", ListedPostSchema(many=True, partial=True), headers=("Link", "ETag")),
    query=ListQuerySchema(),
    request_headers=("If-None-Match",),
    scopes=SCOPES,
)
def list_posts() -> Response:
    """List posts, newest first.

    At most `limit` of them, and none after the one that brings them past 4 MiB, or past 32 MiB of posts of which only
    some `fields` are answered: `Link` leads on to those that follow.
    """
    query = g.query
    asked = in_scope(query)
    page = pages.PostPage([], None) if asked is None else find_page(asked, g.api_key)
    content = b"[%b]\n" % b",".join(page.documents)
    link = None if page.before is None else next_link("/v1/posts", query | {"before": page.before})
    return list_response(content, link)


def find_page(query: dict[str, Any], client: Hashable) -> pages.PostPage:
    """Return a page of a list; a search that may take long is made in a thread, and others are answered meanwhile."""
    db = database()
    if "q" not in query:
        return pages.page(db, **query)
    if search.is_quick(db, query):
        return search.page(db, **query)
    return db.read_in_thread(client, search.page, **query)


@operation(
    "POST /v1/posts",
    Answer(201, "The new post.", post_schema, headers=("Location", "ETag")),
    body=PostInputSchema(),
    content_types=(JSON, MARKDOWN),
    request_headers=("Idempotency-Key",),
)
def create_post() -> Response:
    """Create a post.

    A draft, unless it says otherwise. A Markdown file is taken as well, as `text/markdown`: its front matter has the
    same names as the fields.
    """
    fields = load_body()
    post = database().write(posts.add_once, fields, idempotency_key())
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
    """Get a post, as JSON or as a Markdown file.

    As the file for those who prefer `text/markdown` in `Accept`.
    """
    find = posts.find_published if published_only() else posts.find
    document = find(database(), post)
    precondition()(document)
    if prefers_markdown():
        fields = json.loads(document)
        file = render(fields)
        response = tagged_response(file, etag(file), MARKDOWN)
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
    """Change what the body names of a post.

    `application/merge-patch+json` is taken as well. What is to be `scheduled` needs a `published_at` that is to come;
    what is to be `published` gets one if it has none.
    """
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
    """Make the post with a slug be what the body says, creating it where it is missing.

    What is the same already is left alone. A Markdown file is taken as well: `curl -T FILE` with
    `Content-Type: text/markdown`.
    """
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
    if outcome == "created":
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
    """Delete a post.

    Its slug is free again, its id is not.
    """
    database().write(posts.delete, post, precondition())
    return no_content()
