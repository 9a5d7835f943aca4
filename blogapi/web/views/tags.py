"""The tags: list, rename, delete."""

from flask import Response, g

from blogapi.storage import tags
from blogapi.storage.documents import dump, etag
from blogapi.storage.models import SCOPES
from blogapi.web.context import database
from blogapi.web.openapi.operation import Answer, operation
from blogapi.web.request import load_body
from blogapi.web.responses import conditional, json_response, next_link, no_content
from blogapi.web.schemas.tags import TagChangeSchema, TagSchema, TagsQuerySchema
from blogapi.web.scope import in_scope


@operation(
    "GET /v1/tags",
    Answer(200, "The tags, by name.", TagSchema(many=True), headers=("Link", "ETag")),
    query=TagsQuerySchema(),
    request_headers=("If-None-Match",),
    scopes=SCOPES,
)
def list_tags() -> Response:
    """List tags by name, with the number of posts that carry them."""
    query = g.query
    asked = in_scope(query)
    page = tags.Page([], None) if asked is None else tags.page(database(), **asked)
    content = dump([{"name": name, "posts": posts} for name, posts in page.tags]).encode()
    link = {} if page.last is None else {"Link": next_link("/v1/tags", query | {"after": page.last})}
    return conditional(content, etag(content + link.get("Link", "").encode()), **link)


@operation(
    "PATCH /v1/tags/<tag:name>",
    Answer(200, "The tag as it is now.", TagSchema()),
    body=TagChangeSchema(),
    errors=(404,),
)
def change_tag(name: str) -> Response:
    """Rename a tag in every post, or merge it with another."""
    tags.find(database(), name)  # a path that names no tag is judged before the body
    change = load_body()
    tag = database().write_aside(tags.rename, name, change["name"], change["merge"])
    return json_response(tag._asdict())


@operation("DELETE /v1/tags/<tag:name>", Answer(204, "No post carries the tag any more."), errors=(404,))
def delete_tag(name: str) -> Response:
    """Remove a tag from every post."""
    database().write_aside(tags.remove, name)
    return no_content()
