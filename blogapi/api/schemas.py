"""Schemas of queries, lists and tags. Those of a post are in posts.schemas, those of webhooks at their views."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from marshmallow import ValidationError, fields, validates_schema
from marshmallow.validate import Range

from blogapi.posts import schemas as rules
from blogapi.posts.lists import Cursor
from blogapi.posts.schemas import ID, Line, PostSchema, StrictSchema, Text, Time, about, choice, length, matching
from blogapi.search.words import words
from blogapi.storage.models import MAX_ID
from blogapi.text import CONTROL_OR_BREAK, WHITE_SPACE, fold

MAX_PAGE_SIZE = 1000  # posts, or tags
CURSOR_TIME = "[1-9][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3])(:[0-5][0-9]){2}Z"
MOMENT = "^[0-9]{4}-[0-9]{2}-[0-9]{2}([Tt][0-9:.]+([Zz]|[+-][0-9:]+))?$"
POST_EXAMPLE = {name: value for name, value in PostSchema.example.items() if name != "content"}
KEPT_EXAMPLE = {"by": "laptop", "post": POST_EXAMPLE}
OF_PUBLICATION = "A date (midnight UTC) or a time in RFC 3339; needs `sort=published_at`."


class Flag(fields.Boolean):
    """true or false; marshmallow would take many other values."""

    default_error_messages = rules.NOT_NULL | {"invalid": "must be true or false"}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> bool:
        if not isinstance(value, bool):
            raise self.make_error("invalid")
        return value


# Parameters of queries, each loaded from a text


def parsed(parse: Callable[[str], Any], description: str, **more: Any) -> fields.String:
    """Return a field for a text that `parse` loads: it raises ValidationError."""
    return fields.String(post_load=parse, **about(description, **more))


def page_size(what: str, default: int = 100) -> fields.String:
    """Return the parameter for the number of items on a page; above 1,000 it counts as 1,000."""
    most = "" if default == MAX_PAGE_SIZE else f" than {MAX_PAGE_SIZE:,}"
    description = f"The most {what} to return: {default:,} if left out, and never more{most}."
    described = about(description, type="integer", minimum=1)
    return fields.String(post_load=parse_page_size, load_default=default, **described)


def parse_page_size(text: str) -> int:
    """Return a whole number in ASCII digits, without sign or leading zero; 1,000 for any larger one."""
    if not re.fullmatch("[1-9][0-9]*", text):
        raise ValidationError("must be a whole number from 1")
    return min(int(text[:20]), MAX_PAGE_SIZE)  # int() would refuse 5,000 digits


def parse_tag(text: str) -> str:
    """Return the folded name of a tag; "" for one that no post can carry."""
    name = text.strip(WHITE_SPACE)
    if not name:
        raise ValidationError("must not be empty")
    return "" if CONTROL_OR_BREAK.search(name) else fold(name)


def parse_id(text: str, what: str = "a post's id") -> int:
    """Return an id as a number, if it is as the service writes it."""
    if not re.fullmatch(ID, text) or int(text) > MAX_ID:
        raise ValidationError(f"must be {what}, a whole number from 1")
    return int(text)


def parse_cursor(text: str, order: str) -> Cursor:
    """Return the start of a page in an order, as Link has it."""
    key, _, post_id = text.rpartition("_")
    try:
        if key not in ("title", "text") if order == "sort=relevance" else Time().deserialize(key) != key:
            raise ValidationError(key)
        return Cursor(key, parse_id(post_id))
    except ValidationError:
        raise ValidationError(f"must be the value that Link gave for {order}") from None


def parse_names(text: str) -> str:
    """Return names of fields, separated by commas, in order and with those that every post of a list has."""
    names = text.split(",")
    if len({*names} & {*rules.FIELDS}) != len(names):
        raise ValidationError(f"must be names separated by commas, each once, from: {', '.join(rules.FIELDS)}")
    return ",".join(name for name in rules.FIELDS if name in names or name in rules.LISTED)


class Before(fields.String):
    """The start of a page of posts: the id of a post or, for another `sort` than by creation, a Cursor."""

    def _deserialize(self, value: str, attr: str | None, data: Any, **kwargs: Any) -> int | Cursor:
        sort = data.get("sort")
        return parse_cursor(value, f"sort={sort}") if sort in ("published_at", "relevance") else parse_id(value)


class FieldNames(fields.List):
    """Names of fields, separated by commas."""

    def _deserialize(self, value: str, attr: str | None, data: Any, **kwargs: Any) -> str:
        return parse_names(value)


def parse_moment(text: str) -> str:
    """Return a time in UTC, given as a date, which stands for its midnight, or a time in RFC 3339."""
    try:
        return Time().deserialize(f"{text}T00:00:00Z" if re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text) else text)
    except ValidationError:
        raise ValidationError(
            "must be a date, or a time in RFC 3339, such as 2026-11-20T10:10:00Z; a + is %2B"
        ) from None


def has_words(text: str) -> None:
    """Validate that the search has a word."""
    if not words(text):
        raise ValidationError("must have a letter or a digit")


class QuerySchema(StrictSchema):
    """The query of an operation."""

    error_messages = {"unknown": "unknown parameter"}


def parameters(**declared: fields.Field) -> QuerySchema:
    """Return the schema of a query with these parameters."""
    return QuerySchema.from_dict(declared)()


class ListQuerySchema(QuerySchema):
    """The query of GET /posts."""

    limit = page_size("posts")
    status = choice(rules.STATUSES, "Only posts of this status.")
    tag = parsed(
        parse_tag, "Only posts that carry this tag; letter case does not matter.", pattern=r"\S", example="Travel"
    )
    before = Before(
        **about(
            "Only posts created before the one with this id; with another `sort`, the value from `Link`.",
            pattern=f"^(({CURSOR_TIME}|title|text)_)?{ID}$",
            example="7",
        )
    )
    sort = choice(
        ("created_at", "published_at", "relevance"),
        "`published_at`: the posts that have one, latest first. `relevance`, with `q`: first the posts whose title "
        "alone has all words. Left out: newest first.",
    )
    published_after = parsed(
        parse_moment, f"Only posts published then or later. {OF_PUBLICATION}", pattern=MOMENT, example="2026-11-20"
    )
    published_before = parsed(
        parse_moment, f"Only posts published before then. {OF_PUBLICATION}", pattern=MOMENT, example="2026-12-01"
    )
    fields = FieldNames(
        choice(rules.FIELDS, "A field."),
        **about(
            "Only these fields of each post, besides `id`, `title` and `status`: names separated by commas, each once.",
            minItems=1,
            uniqueItems=True,
            example=["slug", "tags"],
        ),
    )
    q = Text(
        length(1, 200),
        has_words,
        **about(
            "Words to look for, 1 to 200 characters: posts that have all of them in title, content, excerpt or tags. "
            'Case and diacritics make no difference. `word*` finds words that begin with it, `"several words"` finds '
            "them in sequence; nothing else has a meaning. In scripts without spaces between words each character is "
            "a word, and consecutive characters match in sequence."
        ),
    )

    @validates_schema
    def check_sort(self, data: dict[str, Any], **kwargs: Any) -> None:
        """Refuse parameters that the order does not support."""
        sort = data.get("sort")
        if sort == "relevance" and "q" not in data:
            raise ValidationError("relevance needs q", "sort")
        for name in ("published_after", "published_before"):
            if name in data and sort != "published_at":
                raise ValidationError("needs sort=published_at", name)


REVISION = parsed(partial(parse_id, what="a revision"), "Only revisions before this one.", pattern=f"^{ID}$")
DELETED = parsed(
    partial(parse_cursor, order="this list"),
    "Only posts deleted before: the value from `Link`.",
    pattern=f"^{CURSOR_TIME}_{ID}$",
)


class PostWithoutContentSchema(PostSchema):
    """A post without its content."""

    class Meta:
        fields = tuple(name for name in rules.FIELDS if name != "content")

    example = POST_EXAMPLE


class KeptPostSchema(StrictSchema):
    """An earlier version of a post."""

    by = fields.String(required=True, **about("The name of the key, or `settings`, `import` or `undo`."))
    post = fields.Nested(PostWithoutContentSchema(), required=True, **about("The post as it was, without its content."))


class TrashedPostSchema(KeptPostSchema):
    """A post in the trash."""

    example = {"deleted_at": "2026-11-20T10:10:00Z", **KEPT_EXAMPLE}
    deleted_at = Time(required=True, **about("When it was deleted, in UTC, whole seconds."))


class RevisionSchema(KeptPostSchema):
    """A revision of a post: the post as it was before a change."""

    example = {"revision": "12", "replaced_at": "2026-11-20T10:10:00Z", **KEPT_EXAMPLE}
    revision = matching(ID, 1, 19, "The number of the revision, as text.")
    replaced_at = Time(required=True, **about("When it was replaced, in UTC, whole seconds."))


class TagSchema(StrictSchema):
    """A tag that posts carry, spelt as in the newest of them."""

    example = {"name": "Travel", "posts": 3}
    name = Line(rules.MAX_TAG)
    posts = fields.Integer(required=True, validate=Range(min=1), **about("How many posts carry it."))


class TagChangeSchema(StrictSchema):
    """A change of a tag."""

    example = {"name": "Journeys"}
    name = Line(rules.MAX_TAG)
    merge = Flag(
        load_default=False, **about("Whether to merge it with another tag of the new name; otherwise that is refused.")
    )
