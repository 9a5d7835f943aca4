"""The kinds of values on the wire, and how a person is told what would be right."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from marshmallow import ValidationError, fields
from marshmallow.validate import Length, Range, Regexp

from blogapi.post import is_visible
from blogapi.storage.fold import fold
from blogapi.storage.lists import Place
from blogapi.storage.models import MAX_ID

# Unpaired surrogates, and category Cc but for tab, LF and CR: re has no \p{Cc}.
UNUSABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
UNUSABLE_IN_A_LINE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")

TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,30})?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
)
POSITIVE = re.compile("[1-9][0-9]*")
ID = "[1-9][0-9]{0,18}"  # and at most MAX_ID
SLUG = "[a-z0-9]+(-[a-z0-9]+)*"
PLACE_TIME = "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z"
PLACE = re.compile(f"({PLACE_TIME})_({ID})")
DELIVERY_ID = "msg_[A-Za-z0-9_-]{22}"

# What Unicode calls white space; str.strip() alone would take the control characters U+001C to U+001F for some, too.
WHITE_SPACE = "".join(filter(str.isspace, map(chr, [*range(0x1C), *range(0x20, 0x3001)])))
NOT_NULL = {"null": "must not be null"}


def length(least: int, most: int, of: str = "characters") -> Length:
    """Return the validator for so many characters, counted as code points, or whatever else there is."""
    bounds = f"{least} to {most:,}" if least else f"at most {most:,}"
    return Length(least or None, most, error=f"must have {bounds} {of}")


class Pattern(Regexp):
    """Validates that the whole of a text matches; marshmallow's own takes a beginning."""

    def __call__(self, value: str) -> str:
        if not self.regex.fullmatch(value):
            raise ValidationError(self.error)
        return value


def visible(text: str) -> None:
    """Validate that there is something to be seen."""
    # Most texts begin with a visible character; the set bounds the work where none does.
    if not any(map(is_visible, text[:100])) and not any(map(is_visible, set(text))):
        raise ValidationError("must contain a visible character")


class Text(fields.String):
    """Text: no control characters but tab, LF and CR, and no unpaired surrogates."""

    default_error_messages = NOT_NULL | {
        "required": "missing",
        "invalid": "must be a string",
        "characters": "must not contain control characters or unpaired surrogates",
    }
    unusable = UNUSABLE

    def __init__(self, length: Length, *validators: Callable[[str], Any], **kwargs: Any):
        super().__init__(validate=[length, self._validate_characters, *validators], **kwargs)

    def _validate_characters(self, text: str) -> None:
        if self.unusable.search(text):
            raise self.make_error("characters")

    def _validate(self, value: str) -> None:
        for validate in self.validators:  # The first that fails is enough. What the others cost grows with the length.
            validate(value)


class Line(Text):
    """Text of one line. White space at both ends is trimmed."""

    default_error_messages = {"characters": "must be one line without control characters or unpaired surrogates"}
    unusable = UNUSABLE_IN_A_LINE

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        return super()._deserialize(value, attr, data, **kwargs).strip(WHITE_SPACE)


class Distinct(fields.List):
    """A list in which a later repeat is dropped; two items are the same where `key` of them is."""

    default_error_messages = NOT_NULL | {"invalid": "must be an array of strings"}

    def __init__(self, item: fields.Field, length: Length, key: Callable[[str], str] = str, **kwargs: Any):
        super().__init__(item, validate=length, **kwargs)
        self.length = length
        self.key = key

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[str]:
        if isinstance(value, list):
            self.length(value)  # before the items: 100,000 bad ones would make 100,000 messages
        items: dict[str, str] = {}
        for item in super()._deserialize(value, attr, data, **kwargs):
            items.setdefault(self.key(item), item)
        return list(items.values())


class Flag(fields.Boolean):
    """true or false, and nothing that marshmallow takes for these besides."""

    default_error_messages = NOT_NULL | {"invalid": "must be true or false"}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> bool:
        if not isinstance(value, bool):
            raise self.make_error("invalid")
        return value


class Time(fields.AwareDateTime):
    """A time in RFC 3339 with an offset; loads as text, the same time in UTC, whole seconds."""

    default_error_messages = NOT_NULL | {
        "invalid": "must be a time in RFC 3339 with an offset, such as 2026-11-20T10:10:00Z",
    }

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        if not isinstance(value, str) or not TIME.fullmatch(value):
            raise self.make_error("invalid")
        try:
            time = datetime.fromisoformat(value.upper()).astimezone(UTC)
        except (ValueError, OverflowError):
            raise self.make_error("invalid") from None
        return time.replace(microsecond=0, tzinfo=None).isoformat() + "Z"


# In a query, where every value is text


class FoldedTag(fields.String):
    """A tag to look for; loads as its folded name."""

    default_error_messages = {"empty": "must not be empty"}

    def __init__(self, description: str, **kwargs: Any):
        super().__init__(metadata={"description": description, "minLength": 1}, **kwargs)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        name = super()._deserialize(value, attr, data, **kwargs).strip(WHITE_SPACE)
        if not name:
            raise self.make_error("empty")
        return fold(name)


class PageSize(fields.Integer):
    """A whole number from 1 in ASCII digits, without sign or leading zero; a larger one than `most` counts as that."""

    default_error_messages = {"invalid": "must be a whole number from 1"}

    def __init__(self, most: int, **kwargs: Any):
        super().__init__(validate=Range(1), **kwargs)
        self.most = most

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int:
        if not POSITIVE.fullmatch(value):
            raise self.make_error("invalid")
        return min(int(value[:20]), self.most)  # int() would refuse 5,000 digits


class PostId(fields.String):
    """The id of a post as the service writes it; loads as a number."""

    default_error_messages = {"invalid": "must be a post's id, a whole number from 1"}

    def __init__(self, description: str, **kwargs: Any):
        super().__init__(metadata={"description": description, "pattern": f"^{ID}$"}, **kwargs)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int:
        if not re.fullmatch(ID, value) or int(value) > MAX_ID:
            raise self.make_error("invalid")
        return int(value)


class Before(PostId):
    """Where a page begins; loads as the id of a post, or, where `sort` is published_at, as a Place."""

    default_error_messages = {"place": "must be what Link gave, for it goes with sort=published_at"}

    def __init__(self, description: str):
        super().__init__(description)
        del self.metadata["pattern"]  # A Place has another, too long to help anybody.

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int | Place:
        if data.get("sort") != "published_at":
            return super()._deserialize(value, attr, data, **kwargs)
        match = PLACE.fullmatch(value)
        try:
            datetime.fromisoformat(match[1])
            return Place(match[1], super()._deserialize(match[2], attr, data, **kwargs))
        except (TypeError, ValueError, ValidationError):
            raise self.make_error("place") from None


class Names(fields.String):
    """Some of several names, with commas between them, each once; loads as such a text in the order of all names."""

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
