"""Serve the endpoints for revisions and the trash."""

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from flask import Response
from marshmallow import fields
from werkzeug import exceptions

from blogapi.api.errors import error_response
from blogapi.api.operations import ResponseSpec
from blogapi.api.request import Request, current_request
from blogapi.api.responses import POSTS_PATH, document_response, list_response, no_content
from blogapi.api.schemas import StrictSchema, Time, cursor, doc, matching, page_size, parameters, parse_id, parsed_by
from blogapi.api.views import Views
from blogapi.documents import EXAMPLE_WITHOUT_CONTENT, ID_PATTERN, WITHOUT_CONTENT, dump
from blogapi.markdown.http import POST_TYPES, post_or_file_response
from blogapi.paging import Page
from blogapi.posts import storage as posts
from blogapi.posts.schemas import MOMENT, PostSchema, parse_second
from blogapi.posts.views import CHANGED_POST, LIST_HEADERS
from blogapi.storage.errors import DoesNotExist, PostDoesNotExist, Unavailable
from blogapi.storage.keys import READ_SCOPES, WRITE_SCOPES
from blogapi.wings.history import revisions

KEPT_EXAMPLE = {"by": "laptop", "post": EXAMPLE_WITHOUT_CONTENT}
REVISION = parsed_by(partial(parse_id, what="a revision"), "Only revisions before this one.", pattern=f"^{ID_PATTERN}$")
DELETED = cursor("Only posts deleted before")
DELETED_AFTER = parsed_by(
    parse_second,
    "Only posts deleted in that second or later: a date (midnight UTC) or a time in RFC 3339.",
    pattern=MOMENT,
    example="2026-11-20T10:10:00Z",
)
views = Views("history", __name__)


class PostWithoutContentSchema(PostSchema):
    """A post without its content."""

    class Meta:
        fields = WITHOUT_CONTENT

    example = EXAMPLE_WITHOUT_CONTENT


class KeptPostSchema(StrictSchema):
    """An earlier version of a post."""

    by = fields.String(required=True, **doc("The key's name, or `settings`, `autosave`, `import`, `rebase` or `undo`."))
    post = fields.Nested(PostWithoutContentSchema(), required=True, **doc("The post as it was, without its content."))


class TrashedPostSchema(KeptPostSchema):
    """A post in the trash."""

    example = {"deleted_at": "2026-11-20T10:10:00Z", **KEPT_EXAMPLE}
    deleted_at = Time(required=True, **doc("When the post was deleted, in UTC, to the second."))


class RevisionSchema(KeptPostSchema):
    """A revision of a post: the post as it was before a change."""

    example = {"revision": "12", "replaced_at": "2026-11-20T10:10:00Z", **KEPT_EXAMPLE}
    revision = matching(ID_PATTERN, 1, 19, "The number of the revision, as text.")
    replaced_at = Time(required=True, **doc("When the version was replaced, in UTC, to the second."))


@views.operation(
    "GET /v1/posts/<id:post>/revisions",
    ResponseSpec(200, "The revisions, newest first.", RevisionSchema(many=True), LIST_HEADERS),
    query=parameters(limit=page_size("entries"), before=REVISION),
    scopes=READ_SCOPES,
)
def list_revisions(request: Request, post: posts.PostRef) -> Response:
    """List the revisions of a post, newest first.

    A revision is the post as it was before a change. Revisions are kept for 30 days. A post has at most 50 revisions.
    """
    post_id = posts.id_of(request.database, post)
    page = revisions.page(request.database, post_id, **request.query)
    shown = as_json(page, lambda revision: {"revision": str(revision.version), "replaced_at": revision.until})
    return list_response(request, shown, path=f"{POSTS_PATH}{post_id}/revisions")


@views.operation(
    "GET /v1/posts/<id:post>/revisions/<id:revision>",
    ResponseSpec(200, "The post as it was.", PostSchema(), ("ETag",), POST_TYPES),
    scopes=READ_SCOPES,
)
def get_revision(request: Request, post: posts.PostRef, revision: int) -> Response:
    """Get a post as it was before a change, as JSON or as a Markdown file."""
    return post_or_file_response(request, revisions.get(request.database, post, revision))


@views.operation(
    "POST /v1/posts/<id:post>/revisions/<id:revision>/restore",
    CHANGED_POST,
    request_headers=("If-Match",),
    scopes=WRITE_SCOPES,
)
def restore_revision(request: Request, post: posts.PostRef, revision: int) -> Response:
    """Restore a revision of a post.

    All fields are restored except the slug, the former slugs, the status and the dates.
    """
    restored = request.database.write(revisions.restore, post, revision, request.author, request.check_preconditions)
    return document_response(request, restored.document)


@views.operation(
    "GET /v1/trash",
    ResponseSpec(200, "The deleted posts.", TrashedPostSchema(many=True), LIST_HEADERS),
    query=parameters(limit=page_size("entries"), before=DELETED, deleted_after=DELETED_AFTER),
    scopes=READ_SCOPES,
)
def list_trash(request: Request) -> Response:
    """List the posts in the trash, most recently deleted first.

    A deleted post is kept for 30 days.
    """
    page = revisions.trash(request.database, **request.query)
    return list_response(request, as_json(page, lambda post: {"deleted_at": post.until}))


@views.operation(
    "GET /v1/trash/<id:post>", ResponseSpec(200, "The post.", PostSchema(), ("ETag",), POST_TYPES), scopes=READ_SCOPES
)
def get_trashed_post(request: Request, post: int) -> Response:
    """Get a post in the trash, as JSON or as a Markdown file."""
    return post_or_file_response(request, revisions.get_in_trash(request.database, post))


@views.operation("POST /v1/trash/<id:post>/restore", CHANGED_POST, request_headers=("If-Match",), scopes=WRITE_SCOPES)
def restore_trashed_post(request: Request, post: int) -> Response:
    """Restore a post from the trash.

    The post keeps its id, dates and status, but a scheduled post becomes a draft if its time has passed. If another
    post has taken its slug, the restored post gets a new slug.
    """
    restored = request.database.write(revisions.restore_deleted, post, request.author, request.check_preconditions)
    return document_response(request, restored.document)


@views.operation("DELETE /v1/trash/<id:post>", ResponseSpec(204, "The post is gone."), request_headers=("If-Match",))
def delete_trashed_post(request: Request, post: int) -> Response:
    """Delete a post in the trash permanently, with its revisions."""
    request.database.write_freeing(revisions.purge, post, request.check_preconditions)
    return no_content(request)


@views.app_errorhandler(PostDoesNotExist)
def post_not_found(error: PostDoesNotExist) -> Response:
    """Return a 404. If the post is in the trash, and the key may see the trash, the message contains its path there."""
    request, message = current_request(), str(error)
    post_id = (request.view_args or {}).get("post")
    if isinstance(post_id, int) and request.key and not request.published_only:
        with suppress(DoesNotExist, Unavailable):
            revisions.get_in_trash(request.database, post_id)
            message += f": it is in the trash, at {request.with_prefix(f'/v1/trash/{post_id}')}"
    return error_response(exceptions.NotFound(message))


def as_json(
    page: Page[revisions.KeptPost, Any], known: Callable[[revisions.KeptPost], dict[str, str]]
) -> Page[bytes, Any]:
    """Convert versions of posts to JSON. `known` returns additional fields for a version, which come first."""
    heads = [dump(known(post) | {"by": post.author}).removesuffix("}").encode() for post in page.items]
    items = [b'%b,"post":%b}' % (head, post.post) for head, post in zip(heads, page.items, strict=True)]
    return Page(items, page.next)
