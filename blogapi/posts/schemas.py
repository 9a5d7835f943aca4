"""Posts: their fields, and the rules for valid ones."""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, ClassVar

from marshmallow import Schema, ValidationError, fields, missing
from marshmallow.validate import Length, OneOf, Regexp

from blogapi.posts.params import MergePatch, ParamsError, check_params
from blogapi.text import CONTROL, CONTROL_OR_BREAK, WHITE_SPACE, fold, in_ascii, is_visible

STATUSES = ("published", "draft", "scheduled", "archived")
MAX_TITLE, MAX_EXCERPT, MAX_CONTENT = 255, 1000, 1_000_000  # characters
MAX_SLUG, MAX_URL, MAX_TAG = 100, 2048, 64
MAX_TAGS = 50
LISTED = ("id", "title", "status")  # the fields in every list
TIMES = ("published_at", "created_at", "updated_at")
# All fields, as they are written. `params` is last: names in it are never taken for fields (see storage/documents.py).
FIELDS = (*LISTED, "slug", "content", "excerpt", "tags", "cover_image", *TIMES, "params")
# The fields of every post
REQUIRED = frozenset(FIELDS) - {"excerpt", "cover_image", "published_at", "params"}
MAX_NAME = 60  # characters of a field's name in a message
LONG = 10_000  # characters of a content

ID = "[1-9][0-9]{0,18}"
SLUG = "[a-z0-9]+(-[a-z0-9]+)*"
# An absolute URL with a host (RFC 3986, but for characters beyond ASCII): scheme, user, host, port, and the rest.
URL = (
    r"[Hh][Tt][Tt][Pp][Ss]?://([^\s\x00-\x1f\x7f-\x9f/?#@\\]*@)?"
    r'(\[[0-9A-Fa-f:.]+\]|[^\s\x00-\x1f\x7f-\x9f/?#@:\[\]\\<>"]+)(:[0-9]{0,5})?([/?#][^\s\x00-\x1f\x7f-\x9f]*)?'
)
# Short patterns, for the description
URL_PATTERN = r"^[Hh][Tt][Tt][Pp][Ss]?://[^/?#\s]+\S*$"
TEXT, LINE = r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]*$", r"^\s*[^\x00-\x1f\x7f-\x9f]*\s*$"
TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,30})?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
)
SCHEDULING = "to schedule a post, create a draft, then PATCH it, or PUT it by its slug"
NOT_NULL = {"null": "must not be null"}


def is_slug(text: str) -> bool:
    """Return whether a text can be the slug of a post."""
    return len(text) <= MAX_SLUG and re.fullmatch(SLUG, text) is not None


def sentences(error: ValidationError) -> Iterator[tuple[str, str]]:
    """Yield each place that is wrong, such as `tags[2]` or `params.author`, and "place: what would be right"."""
    for field, found in error.normalized_messages().items():
        places = found if isinstance(found, dict) else {"": found}
        for place, said in places.items():
            where = f"{field}[{place}]" if isinstance(place, int) else f"{field}{place}"
            yield where, f"{where[: MAX_NAME + 2]}: {', '.join(said)}"


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
    if not (text[:1].isalnum() or any(map(is_visible, text[:100])) or any(map(is_visible, set(text)))):
        raise ValidationError("must contain a visible character")


def about(description: str, **more: Any) -> dict[str, Any]:
    """Return the arguments of a field that describe it."""
    return {"metadata": {"description": description, **more}}


class Text(fields.String):
    """Text without control characters except tab, LF and CR, and without unpaired surrogates."""

    default_error_messages = NOT_NULL | {
        "required": "missing",
        "invalid": "must be a string",
        "characters": "must not contain control characters or unpaired surrogates",
    }
    forbidden = CONTROL
    forbidden_bytes = in_ascii(CONTROL)
    removed = ""  # these characters, at both ends

    def __init__(self, length: Length, *validators: Callable[[str], Any], **kwargs: Any):
        super().__init__(validate=[length, self._validate_characters, *validators], **kwargs)

    def deserialize(self, value: Any, attr: str | None = None, data: Any = None, **kwargs: Any) -> Any:
        if type(value) is not str:  # A string needs none of marshmallow's other steps.
            return super().deserialize(value, attr, data, **kwargs)
        text = value.strip(self.removed)
        self._validate(text)
        return text

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        return super()._deserialize(value, attr, data, **kwargs).strip(self.removed)

    def _validate_characters(self, text: str) -> None:
        # Most texts are ASCII or printable, which is known in a tenth of the time.
        if text.isascii():
            is_valid = len(text.encode().translate(None, self.forbidden_bytes)) == len(text)
        else:
            line = text.replace("\n", " ") if self.forbidden is CONTROL else text
            is_valid = line.isprintable() or not self.forbidden.search(text)
        if not is_valid:
            raise self.make_error("characters")

    def _validate(self, value: str) -> None:
        for validate in self.validators:  # The first failure is enough; the cost of the others grows with the length.
            validate(value)


class Line(Text):
    """One line, with a visible character. White space at both ends is removed."""

    default_error_messages = {"characters": "must be one line without control characters or unpaired surrogates"}
    forbidden = CONTROL_OR_BREAK
    forbidden_bytes = in_ascii(CONTROL_OR_BREAK)
    removed = WHITE_SPACE

    def __init__(self, maximum: int):
        bounds = f"One line of 1 to {maximum} characters, without the white space around it; at least one is visible."
        super().__init__(length(1, maximum), visible, required=True, **about(bounds, pattern=LINE))


class Url(Text):
    """An absolute http or https URL; it may be empty if `minimum` is 0."""

    def __init__(self, description: str, minimum: int = 1, **kwargs: Any):
        bounds = f"An absolute http or https URL with a host, without white space, at most {MAX_URL:,} characters."
        described = about(f"{description} {bounds}", pattern=URL_PATTERN if minimum else f"^$|{URL_PATTERN}")
        super().__init__(length(minimum, MAX_URL), self._validate_url, **described, **kwargs)

    def _validate_url(self, text: str) -> None:
        if not re.fullmatch(URL, text):  # No Pattern: it would be in the description, too long to help.
            raise ValidationError("must be an absolute http or https URL without white space")


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


class Params(fields.Dict):
    """An object of values of a site. With `merges`, it loads as a MergePatch, in which null removes a name."""

    default_error_messages = NOT_NULL | {"invalid": "must be an object"}

    def __init__(self, merges: bool = False):
        bounds = (
            "Values for the templates of a site, which are not interpreted: strings, numbers, booleans, arrays and "
            "objects, at most 8 deep, 500 in all, and 32 KiB as JSON. Names have 1 to 64 characters."
        )
        super().__init__(**about(bounds + (" They are merged at every level; null removes a name." if merges else "")))
        self.merges = merges

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.make_error("invalid")
        try:
            check_params(value, allow_null=self.merges)
        except ParamsError as error:
            raise ValidationError({error.place: [error.reason]}) from None
        return MergePatch(value) if self.merges else value


def choice(words: Sequence[str], description: str, hint: str = "", **kwargs: Any) -> fields.String:
    """Return a field for one of several words; if it has another one, the message ends with the hint."""
    messages = NOT_NULL | {"invalid": "must be a string"}
    validate = OneOf(words, error=f"must be {'one of ' if len(words) > 1 else ''}{{choices}}{hint}")
    return fields.String(validate=validate, error_messages=messages, **about(description), **kwargs)


def matching(pattern: str, minimum: int, maximum: int, description: str) -> Text:
    """Return a field for a text that the service writes, such as an id."""
    return Text(length(minimum, maximum), Pattern(f"^{pattern}$"), required=True, **about(description))


class StrictSchema(Schema):
    """A schema that refuses unknown fields. `example` is valid input for it."""

    example: ClassVar[dict[str, Any]] = {}
    error_messages = {"unknown": "unknown field"}

    def handle_error(self, error: ValidationError, data: Any, **kwargs: Any) -> None:
        """Put unknown names last, quoted, in their own order, followed by the names that exist."""
        unknown = [name for name in data if name in error.messages and name not in self.fields]
        there = f"; there {'is' if len(self.fields) == 1 else 'are'} {', '.join(self.fields) or 'none'}"
        for name in unknown:
            (message,) = error.messages.pop(name)
            error.messages[f'"{name[:MAX_NAME]}"'] = [message + there if name == unknown[-1] else message]


class PostInputSchema(StrictSchema):
    """A new post. An empty excerpt, slug or cover_image counts as left out."""

    example = {
        "title": "Three days at the lake",
        "content": "**Friday.** Fog, and somewhere in it a lake.\n",
        "tags": ["Travel", "Lake Constance"],
    }
    title = Line(MAX_TITLE)
    content = Text(
        length(0, MAX_CONTENT),
        visible,
        required=True,
        **about(
            "Markdown, kept byte for byte: 1 to 1,000,000 characters, at least one visible.", minLength=1, pattern=TEXT
        ),
    )
    excerpt = Text(length(0, MAX_EXCERPT), **about("A summary, at most 1,000 characters.", pattern=TEXT))
    slug = Text(
        length(0, MAX_SLUG),
        Pattern(f"^({SLUG})?$", error="must be lower-case letters a-z, digits and single hyphens between them"),
        **about(
            "At most 100 characters a-z, 0-9 and single hyphens between them, unique over all posts. "
            "If it is left out, a new post gets one from its title."
        ),
    )
    status = choice(("published", "draft"), "`draft` if left out.", f"; {SCHEDULING}", load_default="draft")
    tags = Distinct(
        Line(MAX_TAG),
        length(0, MAX_TAGS, "tags"),
        fold,
        load_default=list,
        **about("At most 50 tags, in this order. Tags that differ in letter case only are equal; repeats are dropped."),
    )
    published_at = Time(
        **about(
            "When the post was published, or will be if it is `scheduled`; RFC 3339 with an offset. A draft keeps it "
            "until it is published. By default, the time of the publication."
        )
    )
    cover_image = Url("The address of an image.", minimum=0)
    params = Params()

    def load(self, data: Any, **kwargs: Any) -> Any:
        """Load a post. "" in an optional field counts as left out: it is what an unset shell variable gives.

        So does {} for params. marshmallow's own load, which takes twice as long, is for what is invalid: it collects
        all errors.
        """
        optional = ("excerpt", "slug", "cover_image")
        if isinstance(data, dict):  # and not a list of posts
            data = {name: value for name, value in data.items() if value != "" or name not in optional}
            if "params" in data and data["params"] == {}:
                del data["params"]
            content = data.get("content")
            is_long = isinstance(content, str) and len(content) > LONG  # To validate it twice would take too long.
            if not kwargs and not is_long and data.keys() <= self.load_fields.keys():
                with suppress(ValidationError):
                    return dict(self._loaded(data))
        return super().load(data, **kwargs)

    def _loaded(self, data: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """Yield each field with its value, as marshmallow would. Raises ValidationError."""
        for name, field in self.load_fields.items():
            if name in data:
                yield name, field.deserialize(data[name], name, data)
            elif field.required and not self.partial:
                raise field.make_error("required")
            elif field.load_default is not missing and not self.partial:
                yield name, field.load_default() if callable(field.load_default) else field.load_default


class PostChangeSchema(PostInputSchema):
    """A change of a post (RFC 7396): fields left out stay, null clears excerpt, tags, cover_image and params."""

    example = {"status": "archived"}
    status = choice(STATUSES, "Any status may follow any other.")
    params = Params(merges=True)

    def on_bind_field(self, field_name: str, field_obj: fields.Field) -> None:
        field_obj.allow_none = field_name in ("excerpt", "tags", "cover_image", "params")


class PutPostSchema(PostInputSchema):
    """A whole post: what is left out is cleared, except status and published_at."""

    status = choice(STATUSES, "If left out, it stays; a new post is a `draft`.")


class PostSchema(PostInputSchema):
    """A post. A field without a value is left out, never null."""

    class Meta:
        fields = FIELDS

    example = {
        "id": "1",
        **PostInputSchema.example,
        "status": "published",
        "slug": "three-days-at-the-lake",
        "excerpt": "Fog, wind, and then the sun.",
        "cover_image": "https://example.org/lake.jpg",
        **dict.fromkeys(TIMES, "2026-11-20T10:10:00Z"),
        "params": {"author": "Ada", "math": True},
    }
    id = matching(ID, 1, 19, "The id, a number as text. It is never used again.")
    status = choice(STATUSES, "Whether it is published.")
    slug = matching(
        SLUG, 1, MAX_SLUG, "The name of the post in addresses: at most 100 characters, unique over all posts."
    )
    created_at = Time(**about("When it was created, in UTC, whole seconds."))
    updated_at = Time(**about("When it last became different; at first created_at."))

    def on_bind_field(self, field_name: str, field_obj: fields.Field) -> None:
        field_obj.required = field_name in REQUIRED
