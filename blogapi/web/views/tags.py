"""Views of tags."""

from flask import Response

from blogapi.storage import tags
from blogapi.storage.documents import dump
from blogapi.storage.errors import NotFound
from blogapi.storage.models import SCOPES
from blogapi.web.access import in_scope
from blogapi.web.openapi.operation import Answer, operation
from blogapi.web.request import Request, load_body
from blogapi.web.responses import json_response, list_response, next_link, no_content
from blogapi.web.schemas.tags import TagChangeSchema, TagQuerySchema, TagSchema, TagsQuerySchema


@operation(
    "GET /v1/tags",
    Answer(200, "The tags, by name.", TagSchema(many=True), headers=("Link", "ETag")),
    query=TagsQuerySchema(),
    request_headers=("If-None-Match",),
    scopes=SCOPES,
)
def list_tags(request: Request) -> Response:
    """List tags by name, with the number of posts that carry them.

    A page has at most `limit` tags. `Link` leads to the next page.
    """
    query = in_scope(request)
    page = tags.TagPage([], None) if query is None else tags.page(request.database, **query)
    content = dump([{"name": name, "posts": posts} for name, posts in page.tags]).encode() + b"\n"
    return list_response(request, content, next_link(request, "/v1/tags", "after", page.last))


@operation(
    "GET /v1/tags/<tag:tag>", Answer(200, "The tag.", TagSchema()), query=TagQuerySchema(), errors=(404,), scopes=SCOPES
)
def get_tag(request: Request, tag: str) -> Response:
    """Get a tag, with the number of posts that carry it."""
    query = in_scope(request)
    if query is None:
        raise NotFound("tag")
    return json_response(request, tags.find(request.database, tag, **query)._asdict())


@operation(
    "PATCH /v1/tags/<tag:tag>", Answer(200, "The tag as it is now.", TagSchema()), body=TagChangeSchema(), errors=(404,)
)
def change_tag(request: Request, tag: str) -> Response:
    """Rename a tag in every post, or merge it with another.

    All posts change at once. If another tag has the new name, `merge` must be true.
    """
    change = load_body(request, lambda: tags.find(request.database, tag))
    renamed = request.database.write_in_thread(tags.rename, tag, change["name"], change["merge"])
    return json_response(request, renamed._asdict())


@operation("DELETE /v1/tags/<tag:tag>", Answer(204, "No post carries the tag any more."), errors=(404,))
def delete_tag(request: Request, tag: str) -> Response:
    """Remove a tag from every post.

    All posts change at once; none is deleted.
    """
    request.database.write_in_thread(tags.delete, tag)
    return no_content(request)
