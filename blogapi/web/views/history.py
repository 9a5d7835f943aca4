"""Views of the history of posts, and of the trash."""

from collections.abc import Callable

from flask import Response

from blogapi.post import PostSchema
from blogapi.storage import documents, history
from blogapi.storage.history import Kept
from blogapi.storage.posts import PostRef
from blogapi.web.access import READERS
from blogapi.web.application import Answer, operation
from blogapi.web.request import JSON, MARKDOWN, Request, precondition
from blogapi.web.responses import list_response, no_content, post_response, readable_response
from blogapi.web.schemas import DELETED, REVISION, RevisionSchema, TrashedPostSchema, page_size, parameters

post_schema = PostSchema()


@operation(
    "GET /v1/posts/<id:post>/revisions",
    Answer(200, "The revisions, newest first.", RevisionSchema(many=True), headers=("Link", "ETag")),
    query=parameters(limit=page_size("entries"), before=REVISION),
    scopes=READERS,
)
def list_revisions(request: Request, post: PostRef) -> Response:
    """List the revisions of a post, newest first.

    A revision is the post as it was before a change. It is kept for 30 days; a post has at most 50.
    """
    page = history.revisions(request.database, post, **request.query)
    content = kept_json(page.kept, lambda each: {"revision": str(each.version), "replaced_at": each.until})
    return list_response(request, content, page.before)


@operation(
    "GET /v1/posts/<id:post>/revisions/<id:revision>",
    Answer(200, "The post as it was.", post_schema, headers=("ETag",), content_types=(JSON, MARKDOWN)),
    scopes=READERS,
)
def get_revision(request: Request, post: PostRef, revision: int) -> Response:
    """Get a post as it was before a change, as JSON or as a Markdown file."""
    return readable_response(request, history.revision(request.database, post, revision))


@operation(
    "POST /v1/posts/<id:post>/revisions/<id:revision>/restore",
    Answer(200, "The post as it is now.", post_schema, headers=("ETag",)),
    request_headers=("If-Match",),
)
def restore_revision(request: Request, post: PostRef, revision: int) -> Response:
    """Restore a revision of a post.

    Title, content, excerpt, tags and cover image become what they were; slug, status and dates stay.
    """
    document = request.database.write(history.restore, post, revision, request.author, precondition(request))
    return post_response(request, document)


@operation(
    "GET /v1/trash",
    Answer(200, "The deleted posts.", TrashedPostSchema(many=True), headers=("Link", "ETag")),
    query=parameters(limit=page_size("entries"), before=DELETED),
    scopes=READERS,
)
def list_trash(request: Request) -> Response:
    """List the posts in the trash, the latest deleted first.

    A deleted post is kept for 30 days.
    """
    page = history.trash(request.database, **request.query)
    content = kept_json(page.kept, lambda each: {"deleted_at": each.until})
    return list_response(request, content, page.before)


@operation(
    "GET /v1/trash/<id:post>",
    Answer(200, "The deleted post.", post_schema, headers=("ETag",), content_types=(JSON, MARKDOWN)),
    scopes=READERS,
)
def get_trashed_post(request: Request, post: int) -> Response:
    """Get a post in the trash, as JSON or as a Markdown file."""
    return readable_response(request, history.trashed(request.database, post))


@operation(
    "POST /v1/trash/<id:post>/restore",
    Answer(200, "The post as it is now.", post_schema, headers=("ETag",)),
    request_headers=("If-Match",),
)
def restore_trashed_post(request: Request, post: int) -> Response:
    """Restore a post from the trash.

    Id, dates and status are what they were; a scheduled post whose time has passed is a draft. If another post has its
    slug now, it gets a new one.
    """
    document = request.database.write(history.restore_deleted, post, request.author, precondition(request))
    return post_response(request, document)


@operation(
    "DELETE /v1/trash/<id:post>",
    Answer(204, "The post is gone."),
    request_headers=("If-Match",),
)
def delete_trashed_post(request: Request, post: int) -> Response:
    """Delete a post in the trash for good, with its revisions."""
    request.database.write(history.forget, post, precondition(request))
    return no_content(request)


def kept_json(kept: list[Kept], known: Callable[[Kept], dict[str, str]]) -> bytes:
    """Return the JSON of versions, each after the fields that are `known` of it."""
    heads = [documents.dump(known(each) | {"by": each.by}).removesuffix("}").encode() for each in kept]
    return b"[%b]\n" % b",".join(b'%b,"post":%b}' % (head, each.post) for head, each in zip(heads, kept, strict=True))
