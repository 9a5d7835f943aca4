"""The tags on the wire."""

from marshmallow import fields
from marshmallow.validate import Range

from blogapi.storage.models import STATUSES
from blogapi.web.schemas.base import MAX_PAGE_SIZE, NoQuerySchema, StrictSchema, choice
from blogapi.web.schemas.fields import Flag, FoldedTag, PageSize
from blogapi.web.schemas.posts import tag_name


class TagsQuerySchema(NoQuerySchema):
    """The query of GET /tags."""

    limit = PageSize(MAX_PAGE_SIZE, load_default=MAX_PAGE_SIZE)
    status = choice(*STATUSES)
    after = FoldedTag()


class TagSchema(StrictSchema):
    """A tag, as it is answered."""

    example = {"name": "Travel", "posts": 3}
    name = tag_name(required=True)
    posts = fields.Integer(required=True, strict=True, validate=Range(min=1))


class TagChangeSchema(StrictSchema):
    """The body of PATCH /tags/{name}."""

    example = {"name": "Journeys"}
    name = tag_name(required=True)
    merge = Flag(load_default=False)
