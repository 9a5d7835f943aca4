"""The tags: list, rename, delete."""

from flask import Response
from flask.blueprints import BlueprintSetupState
from werkzeug.routing import BaseConverter

from blogapi.body import load_body, read_json
from blogapi.clock import timestamp
from blogapi.db import database
from blogapi.fields import WHITE_SPACE
from blogapi.fold import fold
from blogapi.models import Post, Tag
from blogapi.schemas import TagChange
from blogapi.views.guard import blueprint, json_response, no_content

tag_change = TagChange()


class TagConverter(BaseConverter):
    """A tag in a path, slashes and all; folded."""

    regex = ".+"
    part_isolating = False

    def to_python(self, value: str) -> str:
        return fold(value.strip(WHITE_SPACE))


@blueprint.record
def add_converter(state: BlueprintSetupState) -> None:
    """Let the routes below speak of a tag."""
    state.app.url_map.converters["tag"] = TagConverter


@blueprint.get("/v1/tags")
def list_tags() -> Response:
    """List tags by name, with the number of posts that carry them."""
    return json_response(Tag.listing())


@blueprint.patch("/v1/tags/<tag:name>")
def change_tag(name: str) -> Response:
    """Rename a tag in every post, or merge it with another."""
    Tag.get_by_id(name)  # a path that names no tag is judged before the body
    change = load_body(tag_change, read_json())
    time = timestamp()

    def rename() -> dict:
        Post.publish_due(time)
        return Tag.rename(name, change["name"], change["merge"])

    return json_response(database.write(rename))


@blueprint.delete("/v1/tags/<tag:name>")
def delete_tag(name: str) -> Response:
    """Remove a tag from every post."""
    time = timestamp()

    def remove() -> None:
        Post.publish_due(time)
        Tag.remove(name)

    database.write(remove)
    return no_content()
