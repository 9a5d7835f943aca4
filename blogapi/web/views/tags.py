"""The tags: list, rename, delete."""

from flask import Response, g

from blogapi.storage import tags
from blogapi.web.context import database
from blogapi.web.openapi.operation import Answer, operation
from blogapi.web.request import load_body
from blogapi.web.responses import json_response, next_link, no_content
from blogapi.web.schemas.tags import TagChangeSchema, TagSchema, TagsQuerySchema


@operation(
    "GET /v1/tags",
    Answer(200, "The tags, by name.", TagSchema(many=True), headers=("Link",)),
    query=TagsQuerySchema(),
)
def list_tags() -> Response:
    """List tags by name, with the number of posts that carry them.

    At most `limit` of them: `Link` leads on to those that follow.
    """
    query = g.query
    page = tags.page(database(), **query)
    response = json_response([tag._asdict() for tag in page.tags])
    if page.last is not None:
        response.headers["Link"] = next_link("/v1/tags", query | {"after": page.last})
    return response


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
    tag = database().write_aside(tags.rename, name, change["name"], change["merge"])
    return json_response(tag._asdict())


@operation("DELETE /v1/tags/<tag:name>", Answer(204, "No post carries the tag any more."), errors=(404,))
def delete_tag(name: str) -> Response:
    """Remove a tag from every post.

    All at once. The posts stay.
    """
    database().write_aside(tags.remove, name)
    return no_content()
