"""Validate and describe posts, and the queries that list them."""

import re
import unicodedata
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from marshmallow import ValidationError, fields, post_load, pre_load, validates_schema

from blogapi import documents
from blogapi.api import schemas
from blogapi.api.schemas import TEXT, Line, Pattern, Text, choice, distinct, doc, length, matching, parsed_by, visible
from blogapi.clock import later
from blogapi.posts.params import MergePatch, ParamsError, check_params
from blogapi.text import CONTROL_OR_BREAK, WHITE_SPACE, fold

# Like null, these values count as left out: shells send "" for an unset variable, and PHP sends [] for an empty object.
LEFT_OUT: tuple[tuple[str, Any], ...] = (("slug", ""), ("params", []))
DATE, FRACTION = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}"), re.compile(r"\.[0-9]*[1-9]")
SECOND = timedelta(seconds=1)
MOMENT = "^[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt][0-9:.]+([Zz]|[+-][0-9:]+))?$"
# The sort order that each parameter requires
NEEDED_SORTS = dict.fromkeys(("published_after", "published_before"), "published_at") | {"updated_after": "updated_at"}
TIMED_ORDERS = ("published_at", "updated_at", "relevance")  # orders in which a page starts at a Cursor
MAX_QUERY = 200  # maximum length of a search (in characters)
OF_PUBLICATION = "A date (midnight UTC) or a time in RFC 3339; needs `sort=published_at`."
NOT_A_SLUG = "must be lower-case letters a-z, digits and single hyphens between them"


def params_field(description: str, merges: bool = False) -> fields.Dict:
    """Return the marshmallow field for params. With `merges`, null removes a name."""

    def check(values: dict[str, Any]) -> dict[str, Any]:
        try:
            check_params(values, allow_null=merges)
        except ParamsError as error:
            raise ValidationError({error.place: [error.reason]}) from None
        return MergePatch(values) if merges else values

    bounds = "Strings, numbers, booleans, arrays and objects, at most 500, 8 levels deep, and 32 KiB as JSON."
    names = "Names have 1 to 64 characters." + " They are merged at every level; null removes a name." * merges
    messages = schemas.NOT_NULL | {"invalid": "must be an object"}
    return fields.Dict(error_messages=messages, post_load=check, **doc(f"{description} {bounds} {names}"))


def _text(field: documents.Field) -> Text:
    if field.presence != "required":
        description = f"{field.description} At most {field.max_length:,} characters."
        return Text(length(0, field.max_length), **doc(description, pattern=TEXT))
    description = f"{field.description} 1 to {field.max_length:,} characters, at least one visible."
    return Text(length(0, field.max_length), visible, required=True, **doc(description, pattern=TEXT, minLength=1))


def _slug(field: documents.Field) -> Text:
    bounds = f"At most {field.max_length} characters a-z, 0-9 and single hyphens between them."
    pattern = Pattern(f"^({documents.SLUG_PATTERN})?$", error=NOT_A_SLUG)
    return Text(length(0, field.max_length), pattern, **doc(f"{bounds} {field.description}"))


def _slugs(field: documents.Field) -> fields.List:
    pattern = Pattern(f"^{documents.SLUG_PATTERN}$", error=NOT_A_SLUG)
    slug, count = Text(length(1, documents.MAX_SLUG), pattern, **doc("A slug.")), length(0, field.max_length, "slugs")
    return distinct(slug, count, **doc(f"{field.description} At most {field.max_length}."))


def _tags(field: documents.Field) -> fields.List:
    bounds = f"At most {field.max_length}. Letter case makes no difference; repeats are dropped."
    tag, count = Line(documents.MAX_TAG), length(0, field.max_length, "tags")
    return distinct(tag, count, fold, load_default=list, **doc(f"{field.description} {bounds}"))


# How to make a marshmallow field for each kind of field
INPUT_TYPES: dict[documents.Kind, Callable[[documents.Field], fields.Field]] = {
    "id": lambda field: matching(documents.ID_PATTERN, 1, 19, field.description),
    "line": lambda field: Line(field.max_length, field.description, field.presence == "required"),
    "text": _text,
    "status": lambda field: choice(documents.STATUSES, field.description),
    "slug": _slug,
    "tags": _tags,
    "url": lambda field: schemas.Url(field.description, minimum=0),
    "time": lambda field: schemas.Time(**doc(field.description)),
    "params": lambda field: params_field(field.description),
    "slugs": _slugs,
}


def input_field(name: str) -> fields.Field:
    field = documents.FIELDS[name]
    return INPUT_TYPES[field.kind](field)


FieldsSchema: Any = schemas.InputSchema.from_dict({name: input_field(name) for name in documents.INPUT_FIELDS})


class PostInputSchema(FieldsSchema):
    """A new post, or one that replaces another.

    Null, "" for an optional string or the slug, and {} or [] for params count as left out.
    """

    cleared = frozenset(documents.EMPTY)
    example = {name: documents.EXAMPLE[name] for name in ("title", "content", "tags")}

    def is_left_out(self, name: str, value: Any) -> bool:
        return (name, value) in LEFT_OUT or super().is_left_out(name, value)

    @post_load
    def clear(self, data: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Replace null with the empty value, which clears the field."""
        return {name: documents.EMPTY[name] if value is None else value for name, value in data.items()}


class NewPostSchema(PostInputSchema):
    """A new post. Null, "" for an optional string or the slug, and {} or [] for params count as left out."""

    status = choice(
        ("published", "draft"),
        "By default, `draft`. A PUT by slug also creates `scheduled` and `archived` posts.",
        "; PUT /v1/posts/by-slug/{{slug}} also creates scheduled and archived posts",
        load_default="draft",
    )


class PostChangeSchema(PostInputSchema):
    """A change to a post (RFC 7396). Null clears tags and the optional fields, except published_at.

    "" also clears optional strings. A field that is left out keeps its value. So does a slug, status or published_at
    that is null.
    """

    example = {"status": "archived"}
    status = choice(documents.STATUSES, "Any status may follow any other.")
    params = params_field(documents.FIELDS["params"].description, merges=True)


class PostSchema(PostInputSchema):
    """A post. A field without a value is left out, never null."""

    class Meta:
        fields = tuple(documents.FIELDS)

    always = documents.REQUIRED
    example = documents.EXAMPLE
    status = choice(documents.STATUSES, "Whether the post is published.")
    slug = matching(
        documents.SLUG_PATTERN,
        1,
        documents.MAX_SLUG,
        "The name of the post in addresses: at most 100 characters, unique among all posts.",
    )
    id, created_at, updated_at = map(input_field, documents.SET_BY_SERVICE)

    def on_bind_field(self, field_name: str, field_obj: fields.Field) -> None:
        field_obj.required, field_obj.allow_none = field_name in self.always, False


class PostSummarySchema(PostSchema):
    """A post in a list requested with `fields`: its id, title and status, and any requested fields with a value."""

    example = {name: documents.EXAMPLE[name] for name in (*documents.LISTED, "slug", "tags")}
    always = frozenset(documents.LISTED)


def parse_tag(text: str) -> str:
    """Return the folded name of a tag, or "" if the tag is invalid."""
    name = text.strip(WHITE_SPACE)
    if not name:
        raise ValidationError("must not be empty")
    return "" if CONTROL_OR_BREAK.search(name) else fold(name)


def parse_names(text: str) -> str:
    """Parse comma-separated names of fields; return them in order, including those that every list contains."""
    names = text.split(",")
    if len({*names} & {*documents.FIELDS}) != len(names):
        raise ValidationError(f"must be names separated by commas, each once, from: {', '.join(documents.FIELDS)}")
    return ",".join(name for name in documents.FIELDS if name in names or name in documents.LISTED)


class Before(fields.String):
    """The start of a page of posts: the id of a post if the list is sorted by creation time, a Cursor otherwise."""

    def _deserialize(self, value: str, attr: str | None, data: Any, **kwargs: Any) -> Any:
        sort = data.get("sort")
        return schemas.parse_cursor(value, f"sort={sort}") if sort in TIMED_ORDERS else schemas.parse_id(value)


def parse_moment(text: str, fraction: timedelta = SECOND) -> str:
    """Return a time in UTC, given as a date (meaning midnight) or as a time in RFC 3339.

    If the time has a fraction of a second, `fraction` replaces it. By default, it is rounded up to a whole second.
    """
    try:
        time = schemas.parse_time(f"{text}T00:00:00Z" if DATE.fullmatch(text) else text)
        return later(time, fraction) if FRACTION.search(text) else time
    except (ValueError, OverflowError):
        raise ValidationError(
            "must be a date, or a time in RFC 3339, such as 2026-11-20T10:10:00Z; a + is %2B"
        ) from None


def parse_second(text: str) -> str:
    """Return the second in UTC that contains a moment, which has the same form as for `parse_moment`."""
    return parse_moment(text, fraction=timedelta())


def has_words(text: str) -> None:
    """Validate that a search contains a word."""
    if not any(map(str.isalnum, unicodedata.normalize("NFKD", text))):
        raise ValidationError("must have a letter or a digit")


class ListQuerySchema(schemas.QuerySchema):
    """The query of `GET /v1/posts`."""

    limit = schemas.page_size("posts")
    status = choice(documents.STATUSES, "Only posts with this status.")
    tag = parsed_by(
        parse_tag, "Only posts with this tag; letter case does not matter.", pattern=r"\S", example="Travel"
    )
    before = Before(
        **doc(
            "Only posts created before the one with this id; with another `sort`, the value from `Link`.",
            pattern=f"^(({schemas.CURSOR_TIME}|title|text)_)?{documents.ID_PATTERN}$",
            example="7",
        )
    )
    sort = choice(
        ("created_at", *TIMED_ORDERS),
        "`published_at`: posts with a date, latest first. `updated_at`: last changed first. `relevance`, with "
        "`q`: posts whose title alone contains all words come first. By default, newest first.",
    )
    published_after = parsed_by(
        parse_moment, f"Only posts published then or later. {OF_PUBLICATION}", pattern=MOMENT, example="2026-11-20"
    )
    published_before = parsed_by(
        parse_moment, f"Only posts published before then. {OF_PUBLICATION}", pattern=MOMENT, example="2026-12-01"
    )
    updated_after = parsed_by(
        parse_second,
        "Only posts that changed in that second or later, with `sort=updated_at`, which is then the default. A date "
        "(midnight UTC) or a time in RFC 3339.",
        pattern=MOMENT,
        example="2026-11-20T10:10:00Z",
    )
    fields: Any = schemas.Names(  # shadows an attribute of Schema and, in the rest of this class, the module
        choice(tuple(documents.FIELDS), "A field."),
        post_load=parse_names,
        **doc(
            "Only these fields of each post, besides `id`, `title` and `status`: names separated by commas, each once.",
            minItems=1,
            uniqueItems=True,
            example=["slug", "tags"],
        ),
    )
    q = Text(
        length(1, MAX_QUERY),
        has_words,
        **doc(
            "Words to look for, 1 to 200 characters: finds posts with all of them in the title, content, excerpt or "
            'tags. Case and diacritics make no difference. `word*` finds words that begin with it, `"several words"` '
            "finds them in sequence; nothing else is special. In scripts without spaces between words, each character "
            "is a word, and consecutive characters match in sequence."
        ),
    )

    @pre_load
    def set_default_sort(self, query: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Sort by `updated_at` if `updated_after` is given."""
        return {"sort": "updated_at"} | query if "updated_after" in query else query

    @validates_schema
    def check_sort(self, data: dict[str, Any], **kwargs: Any) -> None:
        """Refuse parameters that `sort` does not support."""
        sort = data.get("sort")
        if sort == "relevance" and "q" not in data:
            raise ValidationError("relevance needs q", "sort")
        for name, needed in NEEDED_SORTS.items():
            if name in data and sort != needed:
                raise ValidationError(f"needs sort={needed}", name)
        for name in ("q", "tag"):
            if name in data and sort == "updated_at":
                raise ValidationError("cannot be combined with sort=updated_at or updated_after", name)
