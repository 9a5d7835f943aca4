"""Views of tags."""

from flask import Response

from blogapi.storage import tags
from blogapi.storage.documents import dump
from blogapi.storage.models import SCOPES
from blogapi.web.access import in_scope
from blogapi.web.openapi.operation import Answer, operation
from blogapi.web.request import Request, load_body
from blogapi.web.responses import json_response, list_response, next_link, no_content
from blogapi.web.schemas.tags import TagChangeSchema, TagSchema, TagsQuerySchema


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
    return list_response(request, content, next_link("/v1/tags", request.query, "after", page.last))


@operation(
    "PATCH /v1/tags/<tag:name>",
    Answer(200, "The tag as it is now.", TagSchema()),
    body=TagChangeSchema(),
    errors=(404,),
)
def change_tag(request: Request, name: str) -> Response:
    """Rename a tag in every post, or merge it with another.

    All posts change at once. If another tag has the new name, `merge` must be true.
    """
    change = load_body(request, lambda: tags.find(request.database, name))
    tag = request.database.write_in_thread(tags.rename, name, change["name"], change["merge"])
    return json_response(request, tag._asdict())


@operation("DELETE /v1/tags/<tag:name>", Answer(204, "No post carries the tag any more."), errors=(404,))
def delete_tag(request: Request, name: str) -> Response:
    """Remove a tag from every post.

    All posts change at once; none is deleted.
    """
    request.database.write_in_thread(tags.delete, name)
    return no_content(request)
