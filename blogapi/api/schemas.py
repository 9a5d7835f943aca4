"""Validate and describe the fields and query parameters that several operations share."""

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any, ClassVar, cast

from marshmallow import Schema, ValidationError, fields, missing
from marshmallow.validate import Length, OneOf, Regexp

from blogapi.documents import ID_PATTERN, MAX_URL
from blogapi.paging import Cursor
from blogapi.storage.models import MAX_ID
from blogapi.text import CONTROL, CONTROL_OR_BREAK, FORBIDDEN, VISIBLE, WHITE_SPACE, in_ascii

MAX_SHOWN_NAME = 60  # messages show at most this many characters of a field's name
PORT = "[0-9]{1,4}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]"
# An absolute URL with a host (RFC 3986, plus characters beyond ASCII): scheme, user, host, port, rest
URL = (
    r"[Hh][Tt][Tt][Pp][Ss]?://([^\s\x00-\x1f\x7f-\x9f/?#@\\]*@)?"
    rf'(\[[0-9A-Fa-f:.]+\]|[^\s\x00-\x1f\x7f-\x9f/?#@:\[\]\\<>"]+)(:({PORT})?)?([/?#][^\s\x00-\x1f\x7f-\x9f]*)?'
)
# Short patterns for the API description
URL_PATTERN = r"^[Hh][Tt][Tt][Pp][Ss]?://[^/?#\s]+\S*$"
TEXT, LINE = r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]*$", r"^\s*[^\x00-\x1f\x7f-\x9f]*\s*$"
TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt]([01][0-9]|2[0-3]):[0-9]{2}:[0-9]{2}(\.[0-9]{1,30})?"
    r"([Zz]|[+-]([01][0-9]|2[0-3]):?[0-5][0-9])"
)
NOT_NULL: dict[str, Any] = {"null": "must not be null"}
MAX_PAGE_SIZE = 1000  # maximum number of items on a page
CURSOR_TIME = "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3])(:[0-5][0-9]){2}Z"


def sentences(error: ValidationError) -> Iterator[tuple[str, str]]:
    """Yield each invalid place, such as `tags[2]` or `params.author`, and a message that begins with the place."""
    for field, reasons in error.normalized_messages().items():
        places = reasons if isinstance(reasons, dict) else {"": reasons}
        for place, messages in places.items():
            name = f"{field}[{place}]" if isinstance(place, int) else f"{field}{place}"
            yield name, f"{name[: MAX_SHOWN_NAME + 2]}: {', '.join(messages)}"


def length(minimum: int, maximum: int, unit: str = "characters") -> Length:
    """Return a validator for the number of characters (code points) or items."""
    bounds = f"{minimum} to {maximum:,}" if minimum else f"at most {maximum:,}"
    return Length(minimum or None, maximum, error=f"must have {bounds} {unit}")


class Pattern(Regexp):
    """Validates that the whole string matches; marshmallow's own validator accepts a matching prefix."""

    regex: re.Pattern[str]

    def __call__(self, value: Any) -> Any:
        if not self.regex.fullmatch(value):
            raise ValidationError(self.error)
        return value


def visible(text: str) -> None:
    """Validate that a string contains a visible character."""
    if not (text[:1].isalnum() or VISIBLE.search(text)):  # Letters and digits, the common case, are visible.
        raise ValidationError("must contain a visible character")


def doc(description: str, **more: Any) -> dict[str, Any]:
    """Return a field's arguments for the API description."""
    return {"metadata": {"description": description, **more}}


class Text(fields.String):
    """Text without control characters (except tab, LF and CR) or other FORBIDDEN characters."""

    default_error_messages = NOT_NULL | {
        "required": "missing",
        "invalid": "must be a string",
        "characters": f"must not contain {FORBIDDEN}",
    }
    forbidden = CONTROL
    forbidden_bytes = in_ascii(CONTROL)
    removed = ""  # these characters are removed from both ends

    def __init__(self, length: Length, *validators: Callable[[str], Any], **kwargs: Any):
        super().__init__(validate=[length, self._validate_characters, *validators], **kwargs)

    def deserialize(self, value: Any, attr: str | None = None, data: Any = None, **kwargs: Any) -> Any:
        if not isinstance(value, str):  # Other types need more of marshmallow's checks.
            return super().deserialize(value, attr, data, **kwargs)
        text = value.strip(self.removed)
        self._validate(text)
        return text

    def _validate_characters(self, text: str) -> None:
        # Most strings are printable or ASCII, which is quick to check.
        if text.isprintable():
            return
        if text.isascii():
            is_valid = len(text.encode().translate(None, self.forbidden_bytes)) == len(text)
        else:
            line = text.replace("\n", " ") if self.forbidden is CONTROL else text
            is_valid = line.isprintable() or not self.forbidden.search(text)
        if not is_valid:
            raise self.make_error("characters")

    def _validate(self, value: str) -> None:
        for validate in self.validators:  # Stop at the first failure: later checks cost more for a longer string.
            validate(value)


class Line(Text):
    """One line. White space is removed from both ends. A required line must have a visible character."""

    default_error_messages = {"characters": f"must be one line without {FORBIDDEN}"}
    forbidden = CONTROL_OR_BREAK
    forbidden_bytes = in_ascii(CONTROL_OR_BREAK)
    removed = WHITE_SPACE

    def __init__(self, maximum: int, description: str = "", required: bool = True):
        least, more = ("1 to", "; at least one is visible") if required else ("at most", "")
        bounds = f"One line of {least} {maximum} characters, without white space around it{more}."
        described = doc(f"{description} {bounds}".strip(), pattern=LINE)
        validators = [visible] if required else []
        super().__init__(length(int(required), maximum), *validators, required=required, **described)


class Url(Text):
    """An absolute http or https URL; it may be empty if `minimum` is 0."""

    def __init__(self, description: str, minimum: int = 1, **kwargs: Any):
        bounds = f"An absolute http or https URL with a host, without white space, at most {MAX_URL:,} characters."
        described = doc(f"{description} {bounds}", pattern=URL_PATTERN if minimum else f"^$|{URL_PATTERN}")
        super().__init__(length(minimum, MAX_URL), self._validate_url, **described, **kwargs)

    def _validate_url(self, text: str) -> None:
        if text and not re.fullmatch(URL, text):  # not as a Pattern, which would be too long for the API description
            raise ValidationError("must be an absolute http or https URL without white space")


def distinct(item: fields.Field, length: Length, key: Callable[[str], str] = str, **kwargs: Any) -> fields.List:
    """Return a field for a list without duplicates: the first of several strings with the same `key` is kept."""

    def check_length(value: Any) -> Any:  # checked first, because 100,000 bad items would produce 100,000 messages
        return length(value) if isinstance(value, list) else value

    def without_repeats(items: list[str]) -> list[str]:
        kept: dict[str, str] = {}
        for item in items:
            kept.setdefault(key(item), item)
        return list(kept.values())

    kwargs["error_messages"] = NOT_NULL | {"invalid": "must be an array of strings"}
    return fields.List(item, pre_load=check_length, validate=length, post_load=without_repeats, **kwargs)


class Names(fields.List):
    """Comma-separated names in a query, which `post_load` parses. A client may repeat the parameter instead."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        return value


class Time(fields.AwareDateTime):
    """An RFC 3339 time with an offset, loaded as a string in UTC, to the second."""

    default_error_messages = NOT_NULL | {
        "invalid": "must be a time in RFC 3339 with an offset, such as 2026-11-20T10:10:00Z"
    }

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> Any:
        try:
            return parse_time(value)
        except (TypeError, ValueError, OverflowError):
            raise self.make_error("invalid") from None


def parse_time(text: str) -> str:
    """Return a time in UTC, to the second. Raises TypeError, ValueError or OverflowError."""
    if not TIME.fullmatch(text):
        raise ValueError(text)
    time = datetime.fromisoformat(text.upper()).astimezone(UTC)
    return time.replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def choice(words: Sequence[str], description: str, hint: str = "", **kwargs: Any) -> fields.String:
    """Return a field for one of several words. The error message for any other word ends with the hint."""
    messages = NOT_NULL | {"invalid": "must be a string"}
    validate = OneOf(words, error=f"must be {'one of ' if len(words) > 1 else ''}{{choices}}{hint}")
    return fields.String(validate=validate, error_messages=messages, **doc(description), **kwargs)


def matching(pattern: str, minimum: int, maximum: int, description: str, required: bool = True) -> Text:
    """Return a field for a string that the service generates, such as an id."""
    return Text(length(minimum, maximum), Pattern(f"^{pattern}$"), required=required, **doc(description))


class StrictSchema(Schema):
    """A schema that refuses unknown fields. `example` is valid input."""

    example: ClassVar[dict[str, Any]] = {}
    error_messages = {"unknown": "unknown field"}

    def handle_error(self, error: ValidationError, data: Any, **kwargs: Any) -> None:
        """List unknown names last, quoted and in the order of the input, followed by the known names."""
        messages = cast(dict[str, Any], error.messages)
        unknown = [name for name in data if name in messages and name not in self.fields]
        known = f"; known: {', '.join(self.fields) or 'none'}"
        for name in unknown:
            (message,) = messages.pop(name)
            messages[f'"{name[:MAX_SHOWN_NAME]}"'] = [message + known if name == unknown[-1] else message]


class InputSchema(StrictSchema):
    """A body in which null means that an optional field was left out, except where null clears the field.

    Typed clients send null for a field without a value.
    """

    cleared: frozenset[str] = frozenset()  # fields that null clears

    def on_bind_field(self, field_name: str, field_obj: fields.Field) -> None:
        field_obj.allow_none = not field_obj.required

    def is_left_out(self, name: str, value: Any) -> bool:
        """Return whether a field with an empty value counts as left out."""
        field = self.load_fields.get(name)
        return value is None and field is not None and not field.required and name not in self.cleared

    def load(self, data: Any, **kwargs: Any) -> Any:
        """Load a body without the fields that count as left out."""
        if isinstance(data, dict):
            data = {name: value for name, value in data.items() if value or not self.is_left_out(name, value)}
            if data.keys() >= self.expected:
                kwargs["partial"] = True  # marshmallow then skips the missing fields, which is faster
        return super().load(data, **kwargs)

    @cached_property
    def expected(self) -> set[str]:
        """The fields that marshmallow would report or fill if they were missing."""
        return {name for name, field in self.load_fields.items() if field.required or field.load_default is not missing}


class Flag(fields.Boolean):
    """true or false. marshmallow's own field would accept many other values."""

    default_error_messages = NOT_NULL | {"invalid": "must be true or false"}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> bool:
        if not isinstance(value, bool):
            raise self.make_error("invalid")
        return value


def query_flag(description: str) -> fields.Boolean:
    """Return a parameter that is true or false."""
    messages = Flag.default_error_messages
    return fields.Boolean(truthy={"true"}, falsy={"false"}, error_messages=messages, **doc(description))


def parsed_by(parse: Callable[[str], Any], description: str, **more: Any) -> fields.String:
    """Return a field for a string. `parse` loads the string, and may raise ValidationError."""
    return fields.String(post_load=parse, **doc(description, **more))


def page_size(what: str, default: int = 100) -> fields.String:
    """Return the parameter for the number of items on a page."""
    description = f"At most this many {what}: by default {default:,}, and no more than {MAX_PAGE_SIZE:,}."
    described = doc(description, type="integer", minimum=1)
    return fields.String(post_load=parse_page_size, load_default=default, **described)


def parse_page_size(text: str) -> int:
    """Parse a whole number in ASCII digits, without a sign or leading zeros. Return at most MAX_PAGE_SIZE."""
    if not re.fullmatch("[1-9][0-9]*", text):
        raise ValidationError("must be a whole number from 1")
    return min(int(text[:20]), MAX_PAGE_SIZE)  # int() would refuse 5,000 digits


def parse_id(text: str, what: str = "a post's id") -> int:
    """Parse an id, written exactly as the service writes it. Raises ValidationError."""
    if not re.fullmatch(ID_PATTERN, text) or int(text) > MAX_ID:
        raise ValidationError(f"must be {what}, a whole number from 1")
    return int(text)


def parse_cursor(text: str, order: str) -> Cursor[int]:
    """Parse the cursor of a page, as it appears in Link. Raises ValidationError."""
    key, _, post_id = text.rpartition("_")
    try:
        is_valid = key in ("title", "text") if order == "sort=relevance" else parse_time(key) == key
        if is_valid:
            return Cursor(key, parse_id(post_id))
    except (ValidationError, ValueError, OverflowError):
        pass
    raise ValidationError(f"must be the value that Link gave for {order}")


def cursor(description: str) -> fields.String:
    """Return the parameter for the start of a page in a list ordered by time."""
    parse = partial(parse_cursor, order="this list")
    return parsed_by(parse, f"{description}: the value from `Link`.", pattern=f"^{CURSOR_TIME}_{ID_PATTERN}$")


class QuerySchema(StrictSchema):
    """The query of an operation."""

    error_messages = {"unknown": "unknown parameter"}


def parameters(**declared: fields.Field) -> QuerySchema:
    """Return the schema of a query with these parameters."""
    return cast(QuerySchema, QuerySchema.from_dict(declared)())
