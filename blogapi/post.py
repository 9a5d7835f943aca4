"""Posts: their fields, and the rules for valid ones."""

import re
import unicodedata
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, ClassVar

from marshmallow import Schema, ValidationError, fields, pre_load
from marshmallow.validate import Length, OneOf, Regexp

STATUSES = ("published", "draft", "scheduled", "archived")
MAX_TITLE, MAX_EXCERPT, MAX_CONTENT = 255, 1000, 1_000_000  # characters
MAX_SLUG, MAX_URL, MAX_TAG = 100, 2048, 64
MAX_TAGS = 50
MAX_NAME = 60  # characters of a field's name in a message

ID = "[1-9][0-9]{0,18}"
SLUG = "[a-z0-9]+(-[a-z0-9]+)*"
# An absolute URL with a host (RFC 3986, but for characters beyond ASCII): scheme, user, host, port, and the rest.
URL = (
    r"[Hh][Tt][Tt][Pp][Ss]?://([^\s\x00-\x1f\x7f-\x9f/?#@\\]*@)?"
    r'(\[[0-9A-Fa-f:.]+\]|[^\s\x00-\x1f\x7f-\x9f/?#@:\[\]\\<>"]+)(:[0-9]{0,5})?([/?#][^\s\x00-\x1f\x7f-\x9f]*)?'
)
URL_PATTERN = r"^[Hh][Tt][Tt][Pp][Ss]?://[^/?#\s]+\S*$"  # short, for the description
TEXT_PATTERN, LINE_PATTERN = r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]*$", r"^\s*[^\x00-\x1f\x7f-\x9f]*\s*$"  # likewise
URL_DESCRIPTION = f"An absolute http or https URL with a host, without white space, at most {MAX_URL:,} characters."
TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,30})?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
)
# Unpaired surrogates, and category Cc except tab, LF and CR: re has no \p{Cc}.
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
CONTROL_OR_BREAK = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
# What Unicode calls white space; str.strip() would also take some control characters, U+001C to U+001F.
WHITE_SPACE = "".join(filter(str.isspace, map(chr, [*range(0x1C), *range(0x20, 0x3001)])))
NOT_NULL = {"null": "must not be null"}


def fold(name: str) -> str:
    """Return the name by which tags are compared: NFC of the case-folded NFC."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def is_visible(character: str) -> bool:
    """Return whether a character is neither white space nor of category Z, Cc or Cf."""
    return not character.isspace() and unicodedata.category(character) not in ("Zs", "Zl", "Zp", "Cc", "Cf")


def is_slug(text: str) -> bool:
    """Return whether a text can be the slug of a post."""
    return len(text) <= MAX_SLUG and re.fullmatch(SLUG, text) is not None


def sentences(messages: dict[Any, Any], prefix: str = "") -> Iterator[str]:
    """Flatten marshmallow's messages to "field: what would be right", with "tags[2]: …" for an item."""
    for key, value in messages.items():
        name = f"{prefix}[{key}]" if isinstance(key, int) else key[: MAX_NAME + 2]
        if isinstance(value, dict):
            yield from sentences(value, name)
        else:
            yield f"{name}: {', '.join(value)}"


# Validators


def length(minimum: int, maximum: int, unit: str = "characters") -> Length:
    """Return a validator for a number of characters (code points) or items."""
    bounds = f"{minimum} to {maximum:,}" if minimum else f"at most {maximum:,}"
    return Length(minimum or None, maximum, error=f"must have {bounds} {unit}")


class Pattern(Regexp):
    """Validates that the whole text matches; marshmallow's own validator is satisfied with a prefix."""

    def __call__(self, value: str) -> str:
        if not self.regex.fullmatch(value):
            raise ValidationError(self.error)
        return value


def visible(text: str) -> None:
    """Validate that a text has a visible character."""
    # Most texts begin with one; the set bounds the work for the others.
    if not any(map(is_visible, text[:100])) and not any(map(is_visible, set(text))):
        raise ValidationError("must contain a visible character")


def absolute_url(text: str) -> None:
    """Validate that a text is an absolute URL. No Pattern: it would be in the description, too long to help."""
    if not re.fullmatch(URL, text):
        raise ValidationError("must be an absolute http or https URL without white space")


# Kinds of fields


class Text(fields.String):
    """Text without control characters except tab, LF and CR, and without unpaired surrogates."""

    default_error_messages = NOT_NULL | {
        "required": "missing",
        "invalid": "must be a string",
        "characters": "must not contain control characters or unpaired surrogates",
    }
    refused = CONTROL

    def __init__(self, length: Length, *validators: Callable[[str], Any], **kwargs: Any):
        super().__init__(validate=[length, self._validate_characters, *validators], **kwargs)

    def _validate_characters(self, text: str) -> None:
        lines = text.split("\n") if self.refused is CONTROL else [text]
        # Most texts are printable, which is known in a tenth of the time.
        if not all(map(str.isprintable, lines)) and self.refused.search(text):
            raise self.make_error("characters")

    def _validate(self, value: str) -> None:
        for validate in self.validators:  # The first failure is enough; the cost of the others grows with the length.
            validate(value)


class Line(Text):
    """Text of one line. White space at both ends is removed."""

    default_error_messages = {"characters": "must be one line without control characters or unpaired surrogates"}
    refused = CONTROL_OR_BREAK

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        return super()._deserialize(value, attr, data, **kwargs).strip(WHITE_SPACE)


class Distinct(fields.List):
    """A list without repeats: of items with the same `key`, the first is kept."""

    default_error_messages = NOT_NULL | {"invalid": "must be an array of strings"}

    def __init__(self, item: fields.Field, length: Length, key: Callable[[str], str] = str, **kwargs: Any):
        super().__init__(item, validate=length, **kwargs)
        self.length = length
        self.key = key

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> list[str]:
        if isinstance(value, list):
            self.length(value)  # before the items: 100,000 bad ones would produce 100,000 messages
        items: dict[str, str] = {}
        for item in super()._deserialize(value, attr, data, **kwargs):
            items.setdefault(self.key(item), item)
        return list(items.values())


class Time(fields.AwareDateTime):
    """A time in RFC 3339 with an offset. Loads as text: the same time in UTC, in whole seconds."""

    default_error_messages = NOT_NULL | {
        "invalid": "must be a time in RFC 3339 with an offset, such as 2026-11-20T10:10:00Z"
    }

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        if not isinstance(value, str) or not TIME.fullmatch(value):
            raise self.make_error("invalid")
        try:
            time = datetime.fromisoformat(value.upper()).astimezone(UTC)
        except (ValueError, OverflowError):
            raise self.make_error("invalid") from None
        return time.replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def choice(*words: str, **kwargs: Any) -> fields.String:
    """Return a field for one of several words."""
    messages = NOT_NULL | {"invalid": "must be a string"}
    validate = OneOf(words, error="must be one of {choices}")
    return fields.String(validate=validate, error_messages=messages, **kwargs)


# The fields of a post


def about(description: str, **more: Any) -> dict[str, Any]:
    """Return the arguments of a field that describe it."""
    return {"metadata": {"description": description, **more}}


def title() -> Line:
    description = "One line of 1 to 255 characters, without the white space around it; at least one is visible."
    return Line(length(1, MAX_TITLE), visible, required=True, **about(description, pattern=LINE_PATTERN))


def content() -> Text:
    description = "Markdown, kept byte for byte: 1 to 1,000,000 characters, at least one visible."
    described = about(description, minLength=1, pattern=TEXT_PATTERN)
    return Text(length(0, MAX_CONTENT), visible, required=True, **described)


def excerpt() -> Text:
    return Text(length(0, MAX_EXCERPT), **about("A summary, at most 1,000 characters.", pattern=TEXT_PATTERN))


def tags(**kwargs: Any) -> Distinct:
    description = "At most 50 tags, in this order. Tags that differ in letter case only are equal; repeats are dropped."
    return Distinct(tag_name(), length(0, MAX_TAGS, "tags"), fold, **about(description), **kwargs)


def tag_name() -> Line:
    description = "One line of 1 to 64 characters, without the white space around it; at least one is visible."
    return Line(length(1, MAX_TAG), visible, required=True, **about(description, pattern=LINE_PATTERN))


def cover_image() -> Text:
    description = f"The address of an image. {URL_DESCRIPTION}"
    return Text(length(0, MAX_URL), absolute_url, **about(description, pattern=f"^$|{URL_PATTERN}"))


def published_at() -> Time:
    description = (
        "When the post was published, RFC 3339 with an offset; for a `scheduled` post, which needs it, when it will "
        "be. A draft keeps it for the day it is published; without it, that is the time of the publication."
    )
    return Time(**about(description))


class StrictSchema(Schema):
    """A schema that refuses unknown fields. `example` is valid input for it."""

    example: ClassVar[dict[str, Any]] = {}
    error_messages = {"unknown": "unknown field"}

    def handle_error(self, error: ValidationError, data: Any, **kwargs: Any) -> None:
        """Put unknown names last, quoted, in their own order, followed by the names that exist."""
        unknown = [name for name in data if name in error.messages and name not in self.fields]
        for name in unknown:
            messages = error.messages.pop(name)
            there = [f"{messages[0]}; there {are(list(self.fields))}"] if name == unknown[-1] else messages
            error.messages[f'"{name[:MAX_NAME]}"'] = there


def are(names: list[str]) -> str:
    """Return the end of a sentence that lists names."""
    if len(names) < 2:
        return f"is {names[0]}" if names else "are none"
    return f"are {', '.join(names)}"


class PostInputSchema(StrictSchema):
    """A new post. An empty excerpt, slug or cover_image counts as left out."""

    example = {
        "title": "Three days at the lake",
        "content": "**Friday.** Fog, and somewhere in it a lake.\n",
        "tags": ["Travel", "Lake Constance"],
    }
    title = title()
    content = content()
    excerpt = excerpt()
    slug = Text(
        length(0, MAX_SLUG),
        Pattern(f"^({SLUG})?$", error="must be lower-case letters a-z, digits and single hyphens between them"),
        **about(
            "At most 100 characters a-z, 0-9 and single hyphens between them, unique over all posts. "
            "If it is left out, a new post gets one from its title."
        ),
    )
    status = choice("published", "draft", load_default="draft", **about("`draft` if left out."))
    tags = tags(load_default=list)
    published_at = published_at()
    cover_image = cover_image()

    @pre_load
    def drop_empty(self, data: Any, **kwargs: Any) -> Any:
        """Treat "" in an optional field as left out: it is what an unset shell variable gives."""
        optional = ("excerpt", "slug", "cover_image")
        return {name: value for name, value in data.items() if value != "" or name not in optional}


class PostChangeSchema(PostInputSchema):
    """A change of a post (RFC 7396): what is left out stays, null clears excerpt, tags and cover_image."""

    example = {"status": "archived"}
    status = choice(*STATUSES, **about("Any status may follow any other."))

    def on_bind_field(self, field_name: str, field_obj: fields.Field) -> None:
        field_obj.allow_none = field_name in ("excerpt", "tags", "cover_image")


class PutPostSchema(PostInputSchema):
    """A whole post: what is left out is cleared, except status and published_at."""

    status = choice(*STATUSES, **about("If left out, it stays; a new post is a `draft`."))


class PostSchema(StrictSchema):
    """A post. A field without a value is left out, never null."""

    example = {
        "id": "1",
        **PostInputSchema.example,
        "status": "published",
        "slug": "three-days-at-the-lake",
        "excerpt": "Fog, wind, and then the sun.",
        "cover_image": "https://example.org/lake.jpg",
        "published_at": "2026-11-20T10:10:00Z",
        "created_at": "2026-11-20T10:10:00Z",
        "updated_at": "2026-11-20T10:10:00Z",
    }
    id = Text(
        length(1, 19), Pattern(f"^{ID}$"), required=True, **about("The id, a number as text. It is never used again.")
    )
    title = title()
    status = choice(*STATUSES, required=True, **about("Whether it is published."))
    slug = Text(
        length(1, MAX_SLUG),
        Pattern(f"^{SLUG}$"),
        required=True,
        **about("The other name of the post: at most 100 characters, unique over all posts."),
    )
    content = content()
    excerpt = excerpt()
    tags = tags(required=True)
    cover_image = cover_image()
    published_at = published_at()
    created_at = Time(required=True, **about("When it was created, in UTC, whole seconds."))
    updated_at = Time(required=True, **about("When it last became different; at first created_at."))


LISTED = ("id", "title", "status")  # the fields that every post of a list has
FIELDS = tuple(PostSchema().fields)  # in the order in which they are written
REQUIRED = frozenset(name for name, field in PostSchema().fields.items() if field.required)  # which every post has
