"""The tags on the wire."""

from marshmallow import fields
from marshmallow.validate import Range

from blogapi.storage.models import STATUSES
from blogapi.web.schemas.base import MAX_PAGE_SIZE, NoQuerySchema, StrictSchema, choice
from blogapi.web.schemas.fields import Flag, FoldedTag, PageSize
from blogapi.web.schemas.posts import tag_name


class TagsQuerySchema(NoQuerySchema):
    """The query of GET /tags."""

    limit = PageSize(
        MAX_PAGE_SIZE,
        load_default=MAX_PAGE_SIZE,
        metadata={"description": "The most tags to return: 1,000 where it is left out, or more."},
    )
    status = choice(*STATUSES, metadata={"description": "Only tags of posts of this status, and only these count."})
    after = FoldedTag("Only tags after this one.")


class TagSchema(StrictSchema):
    """A tag that posts carry, spelt as in the newest of them."""

    example = {"name": "Travel", "posts": 3}
    name = tag_name(required=True)
    posts = fields.Integer(
        required=True, strict=True, validate=Range(min=1), metadata={"description": "How many posts carry it."}
    )


class TagChangeSchema(StrictSchema):
    """A change of a tag."""

    example = {"name": "Journeys"}
    name = tag_name(required=True)
    merge = Flag(
        load_default=False,
        metadata={"description": "Whether it may become one with another tag of the new name; else that is refused."},
    )
