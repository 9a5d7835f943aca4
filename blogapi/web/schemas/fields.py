"""The fields of queries, and the schemas that are not about anything in particular."""

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from marshmallow import ValidationError, fields
from marshmallow.validate import Length, Range

from blogapi.post import ID, NOT_NULL, WHITE_SPACE, StrictSchema, fold
from blogapi.storage.models import MAX_ID
from blogapi.storage.pages import Cursor

MAX_PAGE_SIZE = 1000  # posts, or tags
MAX_MESSAGE = 500  # characters
POSITIVE = re.compile("[1-9][0-9]*")
PLACE = re.compile(f"([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}T[0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}Z)_({ID})")


class NoQuerySchema(StrictSchema):
    """The query of an operation without parameters."""

    error_messages = {"unknown": "unknown parameter"}


class ErrorSchema(StrictSchema):
    """The body of every error."""

    example = {"error": 400, "message": "title: missing"}
    error = fields.Integer(required=True, strict=True, metadata={"description": "The HTTP status."})
    message = fields.String(
        required=True,
        validate=Length(max=MAX_MESSAGE),
        metadata={"description": "What is wrong, and what would be right: for a person, at most 500 characters."},
    )


class Flag(fields.Boolean):
    """true or false; marshmallow would take many other values."""

    default_error_messages = NOT_NULL | {"invalid": "must be true or false"}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> bool:
        if not isinstance(value, bool):
            raise self.make_error("invalid")
        return value


# In a query, where every value is text


class FoldedTag(fields.String):
    """A tag to look for. Loads as its folded name."""

    default_error_messages = {"empty": "must not be empty"}

    def __init__(self, description: str, **kwargs: Any):
        super().__init__(metadata={"description": description, "minLength": 1}, **kwargs)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        name = super()._deserialize(value, attr, data, **kwargs).strip(WHITE_SPACE)
        if not name:
            raise self.make_error("empty")
        return fold(name)


class PageSize(fields.Integer):
    """A whole number from 1 in ASCII digits, without sign or leading zero. More than `maximum` counts as that."""

    default_error_messages = {"invalid": "must be a whole number from 1"}

    def __init__(self, maximum: int, **kwargs: Any):
        super().__init__(validate=Range(1), **kwargs)
        self.maximum = maximum

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int:
        if not POSITIVE.fullmatch(value):
            raise self.make_error("invalid")
        return min(int(value[:20]), self.maximum)  # int() would refuse 5,000 digits


class PostId(fields.String):
    """The id of a post as the service writes it. Loads as a number."""

    default_error_messages = {"invalid": "must be a post's id, a whole number from 1"}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int:
        if not re.fullmatch(ID, value) or int(value) > MAX_ID:
            raise self.make_error("invalid")
        return int(value)


class Before(PostId):
    """The start of a page. Loads as the id of a post or, if `sort` is published_at, as a Cursor."""

    default_error_messages = {"place": "must be what Link gave, for it goes with sort=published_at"}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int | Cursor:
        if data.get("sort") != "published_at":
            return super()._deserialize(value, attr, data, **kwargs)
        match = PLACE.fullmatch(value)
        try:
            datetime.fromisoformat(match[1])
            return Cursor(match[1], super()._deserialize(match[2], attr, data, **kwargs))
        except (TypeError, ValueError, ValidationError):
            raise self.make_error("place") from None


class Names(fields.String):
    """Names separated by commas, each once. Loads as such a text, in the order of all names."""

    default_error_messages = {"invalid": "must be names with commas between them, each once; there are {names}"}

    def __init__(self, names: Sequence[str], description: str):
        super().__init__(metadata={"description": description})
        self.names = names

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        given = value.split(",")
        chosen = [name for name in self.names if name in given]
        if len(chosen) != len(given):
            raise self.make_error("invalid", names=", ".join(self.names))
        return ",".join(chosen)
