"""Serve the endpoints for tags."""

from flask import Response
from marshmallow import fields
from marshmallow.validate import Range
from werkzeug.exceptions import NotFound

from blogapi.api.access import scoped_query
from blogapi.api.errors import error_response
from blogapi.api.operations import ResponseSpec
from blogapi.api.request import Request, load_body
from blogapi.api.responses import json_response, list_response, no_content
from blogapi.api.schemas import Flag, InputSchema, Line, StrictSchema, choice, doc, page_size, parameters, parsed_by
from blogapi.api.views import Views
from blogapi.documents import MAX_TAG, STATUSES, dump
from blogapi.paging import Page
from blogapi.posts.schemas import parse_tag
from blogapi.posts.views import LIST_HEADERS
from blogapi.storage.errors import DoesNotExist
from blogapi.storage.models import SCOPES
from blogapi.wings.tags import storage as tags

COUNTED = choice(STATUSES, "Count only posts with this status, and leave out tags that no such post has.")
views = Views("tags", __name__)


class TagSchema(StrictSchema):
    """A tag, spelled as in the newest post that has it."""

    example = {"name": "Travel", "posts": 3}
    name = Line(MAX_TAG)
    posts = fields.Integer(required=True, validate=Range(min=1), **doc("The number of posts that have the tag."))


class TagChangeSchema(InputSchema):
    """A change to a tag."""

    example = {"name": "Journeys"}
    name = Line(MAX_TAG)
    merge = Flag(load_default=False, **doc("Whether to merge the tag with another tag that already has this name."))


@views.operation(
    "GET /v1/tags",
    ResponseSpec(200, "The tags, by name.", TagSchema(many=True), LIST_HEADERS),
    query=parameters(
        limit=page_size("tags", 1000),
        status=COUNTED,
        after=parsed_by(parse_tag, "Only tags after this one.", pattern=r"\S"),
    ),
    scopes=SCOPES,
)
def list_tags(request: Request) -> Response:
    """List tags by name, with the number of posts that have each tag.

    A page has at most `limit` tags. If there are more, the `Link` header contains the URL of the next page.
    """
    query = scoped_query(request)
    page = Page([], None) if query is None else request.database.read_in_thread(request.client, tags.page, **query)
    items = [dump(counted._asdict()).encode() for counted in page.items]
    return list_response(request, Page(items, page.next), "after")


@views.operation(
    "GET /v1/tags/<tag:tag>",
    ResponseSpec(200, "The tag.", TagSchema()),
    query=parameters(status=COUNTED),
    scopes=SCOPES,
)
def get_tag(request: Request, tag: str) -> Response:
    """Get a tag, with the number of posts that have it."""
    query = scoped_query(request)
    if query is None:
        raise DoesNotExist("tag")
    return json_response(request, request.database.read_in_thread(request.client, tags.get, tag, **query)._asdict())


@views.operation("PATCH /v1/tags/<tag:tag>", ResponseSpec(200, "The updated tag.", TagSchema()), body=TagChangeSchema())
def change_tag(request: Request, tag: str) -> Response:
    """Rename a tag in every post, or merge it with another tag.

    All posts change at once. If another tag already has the new name, `merge` must be true.
    """
    change = load_body(request, lambda: tags.get(request.database, tag))
    renamed = request.database.write_in_thread(tags.rename, tag, change["name"], change["merge"], request.author)
    return json_response(request, renamed._asdict())


@views.operation("DELETE /v1/tags/<tag:tag>", ResponseSpec(204, "The tag was removed from every post."))
def delete_tag(request: Request, tag: str) -> Response:
    """Remove a tag from every post.

    All posts change at once; none is deleted.
    """
    request.database.write_in_thread(tags.delete, tag, request.author)
    return no_content(request)


@views.errorhandler(DoesNotExist)
def tag_not_found(error: DoesNotExist) -> Response:
    """Return a 404 that says how to encode a tag in a path."""
    return error_response(NotFound(f"{error}; in a path, write # in its name as %23, ? as %3F, and / as %2F"))
