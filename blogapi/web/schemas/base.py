"""The schemas that others are made from, and the error."""

from typing import Any, ClassVar

from marshmallow import RAISE, Schema, fields
from marshmallow.validate import Length, OneOf

from blogapi.web.schemas.fields import NOT_NULL

MAX_PAGE_SIZE = 1000  # posts, or tags


class StrictSchema(Schema):
    """A schema that refuses what it does not know. `example` is one that it takes."""

    example: ClassVar[dict[str, Any]] = {}
    error_messages = {"unknown": "unknown field"}

    class Meta:
        unknown = RAISE


class NoQuerySchema(StrictSchema):
    """The query of an operation that has no parameters."""

    error_messages = {"unknown": "unknown parameter"}


class ErrorSchema(StrictSchema):
    """The body of every error."""

    example = {"error": 400, "message": "title: missing"}
    error = fields.Integer(required=True, strict=True, metadata={"description": "The HTTP status."})
    message = fields.String(required=True, validate=Length(max=500))


def choice(*words: str, **kwargs: Any) -> fields.String:
    """Return the field for one of some words."""
    messages = NOT_NULL | {"invalid": "must be a string"}
    validate = OneOf(words, error="must be one of {choices}")
    return fields.String(validate=validate, error_messages=messages, **kwargs)
