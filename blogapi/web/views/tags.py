"""The tags: list, rename, delete."""

from flask import Response, g

from blogapi.storage import tags
from blogapi.storage.documents import dump
from blogapi.storage.models import SCOPES
from blogapi.web.openapi.operation import Answer, operation
from blogapi.web.request import load_body
from blogapi.web.responses import json_response, list_response, next_link, no_content
from blogapi.web.schemas.tags import TagChangeSchema, TagSchema, TagsQuerySchema
from blogapi.web.scope import in_scope
from blogapi.web.service import database


@operation(
    "GET /v1/tags",
    Answer(200, "The tags, by name.", TagSchema(many=True), headers=("Link", "ETag")),
    query=TagsQuerySchema(),
    request_headers=("If-None-Match",),
    scopes=SCOPES,
)
def list_tags() -> Response:
    """List tags by name, with the number of posts that carry them.

    At most `limit` of them: `Link` leads on to those that follow.
    """
    query = g.query
    asked = in_scope(query)
    page = tags.TagPage([], None) if asked is None else tags.page(database(), **asked)
    content = dump([{"name": name, "posts": posts} for name, posts in page.tags]).encode() + b"\n"
    link = None if page.last is None else next_link("/v1/tags", query | {"after": page.last})
    return list_response(content, link)


@operation(
    "PATCH /v1/tags/<tag:name>",
    Answer(200, "The tag as it is now.", TagSchema()),
    body=TagChangeSchema(),
    errors=(404,),
)
def change_tag(name: str) -> Response:
    """Rename a tag in every post, or merge it with another.

    All at once. Another tag that has the new name is merged with only where `merge` says so.
    """
    tags.find(database(), name)  # a path that names no tag is judged before the body
    change = load_body()
    tag = database().write_in_thread(tags.rename, name, change["name"], change["merge"])
    return json_response(tag._asdict())


@operation("DELETE /v1/tags/<tag:name>", Answer(204, "No post carries the tag any more."), errors=(404,))
def delete_tag(name: str) -> Response:
    """Remove a tag from every post.

    All at once. The posts stay.
    """
    database().write_in_thread(tags.delete, name)
    return no_content()
