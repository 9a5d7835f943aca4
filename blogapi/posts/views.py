"""Views of posts, their history, the trash, and tags."""

from collections.abc import Callable, Hashable, Mapping
from typing import Any

from flask import Response
from marshmallow import ValidationError
from werkzeug import exceptions

from blogapi import idempotency
from blogapi.api import schemas
from blogapi.api.access import READERS, in_scope
from blogapi.api.operations import Answer, operation
from blogapi.api.request import PATCH_TYPES, POST_TYPES, Request, idempotency_key, load_body, parse_body, precondition
from blogapi.api.responses import (
    POSTS,
    created,
    json_response,
    list_response,
    no_content,
    post_or_file_response,
    post_response,
)
from blogapi.api.schemas import TagSchema, page_size, parameters
from blogapi.history import revisions
from blogapi.history.revisions import KeptPost
from blogapi.posts import lists
from blogapi.posts import storage as posts
from blogapi.posts.documents import dump
from blogapi.posts.schemas import (
    STATUSES,
    PostChangeSchema,
    PostInputSchema,
    PostSchema,
    PutPostSchema,
    choice,
    is_slug,
)
from blogapi.posts.storage import PostRef
from blogapi.search import storage as search
from blogapi.storage import errors
from blogapi.storage.database import Database
from blogapi.storage.models import SCOPES
from blogapi.tags import storage as tags

NO_SLUG = "no such path: a slug has lower-case letters a-z, digits and single hyphens between them, at most 100"
CHANGED = Answer(200, "The post as it is now.", PostSchema(), ("ETag",))
CREATED = Answer(201, "The new post.", PostSchema(), ("Location", "ETag"))
PAGE = ("Link", "ETag")  # the headers of a list
UNKNOWN = choice(("params",), "With a Markdown file: names in its front matter that no field has go to `params`.")
COUNTED = choice(STATUSES, "Count only posts of this status, and leave out other tags.")


@operation(
    "GET /v1/posts",
    Answer(200, "The posts, in order.", PostSchema(many=True), PAGE),
    query=schemas.ListQuerySchema(),
    scopes=SCOPES,
)
def list_posts(request: Request) -> Response:
    """List posts, newest first.

    Whole posts, with their contents, unless `fields` names what is needed. A page has at most `limit` posts, and fewer
    if they are large. `Link` leads to the next page: the same query, with `before` at the last post of this one. That
    is its `id`; with `sort=published_at`, its `published_at`, an underscore and its `id`; with `sort=relevance`,
    `title` or `text`, for where the words were found, an underscore and its `id`.
    """
    query = in_scope(request)
    page = lists.Page([], None) if query is None else find_page(request.database, query, request.digest)
    content = b"[%b]\n" % b",".join(page.items)
    return list_response(request, content, page.next)


def find_page(db: Database, query: Mapping[str, Any], client: Hashable) -> lists.Page:
    """Return a page of a list or a search."""
    wanted = lists.ListQuery(**query)
    return search.find(db, wanted, client) if wanted.q else lists.page(db, wanted)


@operation(
    "POST /v1/posts",
    CREATED,
    query=parameters(unknown=UNKNOWN),
    body=PostInputSchema(),
    content_types=POST_TYPES,
    request_headers=("Idempotency-Key",),
)
def create_post(request: Request) -> Response:
    """Create a post.

    A draft by default. The body can also be a Markdown file, whose front matter has the names of the fields.
    """
    fields = load_body(request)
    if key := idempotency_key(request):
        post = request.database.write(idempotency.add_once, fields, request.author, key)
    else:
        post = request.database.write(posts.add, fields, request.author)
    return created(request, post.id, post.document)


@operation("GET /v1/posts/<id:post>", Answer(200, "The post.", PostSchema(), ("ETag",), POST_TYPES), scopes=SCOPES)
def get_post(request: Request, post: PostRef) -> Response:
    """Get a post, as JSON or as a Markdown file.

    To get the file, prefer `text/markdown` in `Accept`.
    """
    find = posts.find_published if request.published_only else posts.find
    document = find(request.database, post)
    precondition(request)(document)
    return post_or_file_response(request, document)


@operation(
    "PATCH /v1/posts/<id:post>",
    CHANGED,
    body=PostChangeSchema(partial=True),
    content_types=PATCH_TYPES,
    request_headers=("If-Match",),
)
def change_post(request: Request, post: PostRef) -> Response:
    """Change the fields of a post that the body names.

    A `scheduled` post needs a `published_at` in the future; a `published` one gets one if it has none.
    """
    changes = load_body(request, lambda: posts.id_of(request.database, post))
    document = request.database.write(posts.change, post, changes, request.author, precondition(request))
    return post_response(request, document)


@operation(
    "PUT /v1/posts/by-slug/<slug:post>",
    CHANGED,
    creates=CREATED,
    query=parameters(unknown=UNKNOWN),
    body=PutPostSchema(),
    content_types=POST_TYPES,
    request_headers=("If-Match", "If-None-Match"),
)
def put_post(request: Request, post: str) -> Response:
    """Create the post with a slug, or replace it.

    If the post is the same already, nothing is written. The body can also be a Markdown file.
    """
    if not is_slug(post):
        raise exceptions.NotFound(NO_SLUG)
    body, check = parse_body(request), precondition(request)
    # What equals a stored post is valid. Most files of a folder that is sent again do.
    same = posts.find_same(request.database, post, body)
    if same:
        check(same)
        return post_response(request, same)
    fields = request.operation.body.load(body)
    if fields.pop("slug", post) != post:
        raise ValidationError("must match the path, or be left out", "slug")
    (post_id, document, _), outcome = request.database.write(posts.put, post, fields, request.author, check)
    return created(request, post_id, document) if outcome == "created" else post_response(request, document)


@operation(
    "DELETE /v1/posts/<id:post>",
    Answer(204, "The post is deleted."),
    request_headers=("If-Match",),
    query=parameters(permanent=choice(("true", "false"), "`true`: the post is gone at once, with its revisions.")),
)
def delete_post(request: Request, post: PostRef) -> Response:
    """Delete a post.

    It stays in the trash for 30 days, or not at all with `permanent=true`. Its slug is free again; its id is never
    reused.
    """
    permanent = request.query.get("permanent") == "true"
    request.database.write(posts.delete, post, request.author, precondition(request), permanent=permanent)
    return no_content(request)


# The history, and the trash


@operation(
    "GET /v1/posts/<id:post>/revisions",
    Answer(200, "The revisions, newest first.", schemas.RevisionSchema(many=True), PAGE),
    query=parameters(limit=page_size("entries"), before=schemas.REVISION),
    scopes=READERS,
)
def list_revisions(request: Request, post: PostRef) -> Response:
    """List the revisions of a post, newest first.

    A revision is the post as it was before a change. It is kept for 30 days; a post has at most 50.
    """
    post_id = posts.id_of(request.database, post)
    page = revisions.page(request.database, post_id, **request.query)
    content = kept_json(page.items, lambda each: {"revision": str(each.version), "replaced_at": each.until})
    return list_response(request, content, page.next, path=f"{POSTS}{post_id}/revisions")


@operation(
    "GET /v1/posts/<id:post>/revisions/<id:revision>",
    Answer(200, "The post as it was.", PostSchema(), ("ETag",), POST_TYPES),
    scopes=READERS,
)
def get_revision(request: Request, post: PostRef, revision: int) -> Response:
    """Get a post as it was before a change, as JSON or as a Markdown file."""
    return post_or_file_response(request, revisions.find(request.database, post, revision))


@operation("POST /v1/posts/<id:post>/revisions/<id:revision>/restore", CHANGED, request_headers=("If-Match",))
def restore_revision(request: Request, post: PostRef, revision: int) -> Response:
    """Restore a revision of a post.

    Title, content, excerpt, tags, cover image and params become what they were; slug, status and dates stay.
    """
    document = request.database.write(revisions.restore, post, revision, request.author, precondition(request))
    return post_response(request, document)


@operation(
    "GET /v1/trash",
    Answer(200, "The deleted posts.", schemas.TrashedPostSchema(many=True), PAGE),
    query=parameters(limit=page_size("entries"), before=schemas.DELETED),
    scopes=READERS,
)
def list_trash(request: Request) -> Response:
    """List the posts in the trash, most recently deleted first.

    A deleted post is kept for 30 days.
    """
    page = revisions.trash(request.database, **request.query)
    content = kept_json(page.items, lambda each: {"deleted_at": each.until})
    return list_response(request, content, page.next)


@operation(
    "GET /v1/trash/<id:post>", Answer(200, "The deleted post.", PostSchema(), ("ETag",), POST_TYPES), scopes=READERS
)
def get_trashed_post(request: Request, post: int) -> Response:
    """Get a post in the trash, as JSON or as a Markdown file."""
    return post_or_file_response(request, revisions.find_in_trash(request.database, post))


@operation("POST /v1/trash/<id:post>/restore", CHANGED, request_headers=("If-Match",))
def restore_trashed_post(request: Request, post: int) -> Response:
    """Restore a post from the trash.

    Id, dates and status are what they were; a scheduled post whose time has passed is a draft. If another post has its
    slug now, it gets a new one.
    """
    document = request.database.write(revisions.restore_deleted, post, request.author, precondition(request))
    return post_response(request, document)


@operation("DELETE /v1/trash/<id:post>", Answer(204, "The post is gone."), request_headers=("If-Match",))
def delete_trashed_post(request: Request, post: int) -> Response:
    """Delete a post in the trash for good, with its revisions."""
    request.database.write(revisions.delete_from_trash, post, precondition(request))
    return no_content(request)


def kept_json(kept: list[KeptPost], known: Callable[[KeptPost], dict[str, str]]) -> bytes:
    """Return the JSON of versions, each after the fields that are `known` of it."""
    heads = [dump(known(each) | {"by": each.author}).removesuffix("}").encode() for each in kept]
    return b"[%b]\n" % b",".join(b'%b,"post":%b}' % (head, each.post) for head, each in zip(heads, kept, strict=True))


# Tags


@operation(
    "GET /v1/tags",
    Answer(200, "The tags, by name.", TagSchema(many=True), PAGE),
    query=parameters(
        limit=page_size("tags", schemas.MAX_PAGE_SIZE),
        status=COUNTED,
        after=schemas.parsed(schemas.parse_tag, "Only tags after this one.", pattern=r"\S"),
    ),
    scopes=SCOPES,
)
def list_tags(request: Request) -> Response:
    """List tags by name, with the number of posts that carry them.

    A page has at most `limit` tags. `Link` leads to the next page.
    """
    query = in_scope(request)
    page = (
        lists.Page([], None) if query is None else request.database.read_in_thread(request.digest, tags.page, **query)
    )
    content = dump([{"name": name, "posts": posts} for name, posts in page.items]).encode() + b"\n"
    return list_response(request, content, page.next, "after")


@operation(
    "GET /v1/tags/<tag:tag>", Answer(200, "The tag.", TagSchema()), query=parameters(status=COUNTED), scopes=SCOPES
)
def get_tag(request: Request, tag: str) -> Response:
    """Get a tag, with the number of posts that carry it."""
    query = in_scope(request)
    if query is None:
        raise errors.NotFound("tag")
    return json_response(request, tags.find(request.database, tag, **query)._asdict())


@operation(
    "PATCH /v1/tags/<tag:tag>", Answer(200, "The tag as it is now.", TagSchema()), body=schemas.TagChangeSchema()
)
def change_tag(request: Request, tag: str) -> Response:
    """Rename a tag in every post, or merge it with another.

    All posts change at once. If another tag has the new name, `merge` must be true.
    """
    change = load_body(request, lambda: tags.find(request.database, tag))
    renamed = request.database.write_in_thread(tags.rename, tag, change["name"], change["merge"], request.author)
    return json_response(request, renamed._asdict())


@operation("DELETE /v1/tags/<tag:tag>", Answer(204, "No post carries the tag any more."))
def delete_tag(request: Request, tag: str) -> Response:
    """Remove a tag from every post.

    All posts change at once; none is deleted.
    """
    request.database.write_in_thread(tags.delete, tag, request.author)
    return no_content(request)
