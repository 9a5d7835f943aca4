"""Schemas of tags."""

from marshmallow import fields
from marshmallow.validate import Range

from blogapi.post import STATUSES, StrictSchema, about, choice, tag_name
from blogapi.web.schemas.fields import MAX_PAGE_SIZE, Flag, FoldedTag, NoQuerySchema, PageSize


class TagsQuerySchema(NoQuerySchema):
    """The query of GET /tags."""

    limit = PageSize(
        MAX_PAGE_SIZE,
        load_default=MAX_PAGE_SIZE,
        **about("The most tags to return: 1,000 if left out, and never more."),
    )
    status = choice(*STATUSES, **about("Count only posts of this status, and leave out other tags."))
    after = FoldedTag("Only tags after this one.")


class TagQuerySchema(TagsQuerySchema):
    """The query of GET /tags/{tag}."""

    class Meta:
        fields = ("status",)


class TagSchema(StrictSchema):
    """A tag that posts carry, spelt as in the newest of them."""

    example = {"name": "Travel", "posts": 3}
    name = tag_name(required=True)
    posts = fields.Integer(required=True, strict=True, validate=Range(min=1), **about("How many posts carry it."))


class TagChangeSchema(StrictSchema):
    """A change of a tag."""

    example = {"name": "Journeys"}
    name = tag_name(required=True)
    merge = Flag(
        load_default=False, **about("Whether to merge it with another tag of the new name; otherwise that is refused.")
    )
