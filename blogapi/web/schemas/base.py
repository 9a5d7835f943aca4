"""The schemas that others are made from, and the error."""

from typing import Any, ClassVar

from marshmallow import RAISE, Schema, ValidationError, fields
from marshmallow.validate import Length, OneOf

from blogapi.web.schemas.fields import NOT_NULL

MAX_PAGE_SIZE = 1000  # posts, or tags


class StrictSchema(Schema):
    """A schema that refuses what it does not know. `example` is one that it takes."""

    example: ClassVar[dict[str, Any]] = {}
    error_messages = {"unknown": "unknown field"}

    class Meta:
        unknown = RAISE

    def handle_error(self, error: ValidationError, data: Any, **kwargs: Any) -> None:
        """Name the unknown ones last, in their own order, and then those that there are."""
        unknown = [name for name in data if name in error.messages and name not in self.fields]
        for name in unknown:
            error.messages[name] = error.messages.pop(name)
        if unknown:
            error.messages[unknown[-1]] = [f"{error.messages[unknown[-1]][0]}; there {are(list(self.fields))}"]


class NoQuerySchema(StrictSchema):
    """The query of an operation that has no parameters."""

    error_messages = {"unknown": "unknown parameter"}


class ErrorSchema(StrictSchema):
    """What every error is answered with."""

    example = {"error": 400, "message": "title: missing"}
    error = fields.Integer(required=True, strict=True, metadata={"description": "The HTTP status."})
    message = fields.String(
        required=True,
        validate=Length(max=500),
        metadata={"description": "What is wrong, and what would be right: for a person, at most 500 characters."},
    )


def choice(*words: str, **kwargs: Any) -> fields.String:
    """Return the field for one of some words."""
    messages = NOT_NULL | {"invalid": "must be a string"}
    validate = OneOf(words, error="must be one of {choices}")
    return fields.String(validate=validate, error_messages=messages, **kwargs)


def are(names: list[str]) -> str:
    """Return the end of a sentence that says which names there are."""
    if len(names) < 2:
        return f"is {names[0]}" if names else "are none"
    return f"are {', '.join(names)}"
