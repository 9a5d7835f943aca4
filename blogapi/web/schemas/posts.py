"""Schemas of lists of posts, their history, the trash, and tags, and the fields of queries.

Those of a post are in blogapi.post.
"""

import re
from collections.abc import Sequence
from typing import Any

from marshmallow import ValidationError, fields, validates_schema
from marshmallow.validate import Range

from blogapi.post import (
    CONTROL_OR_BREAK,
    FIELDS,
    ID,
    LISTED,
    NOT_NULL,
    STATUSES,
    WHITE_SPACE,
    Pattern,
    PostSchema,
    StrictSchema,
    Text,
    Time,
    about,
    choice,
    fold,
    length,
    tag_name,
)
from blogapi.storage.models import MAX_ID
from blogapi.storage.pages import Cursor
from blogapi.storage.search.words import words

MAX_PAGE_SIZE = 1000  # posts, or tags
POSITIVE = re.compile("[1-9][0-9]*")
DATE = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
TIME = "[1-9][0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3])(:[0-5][0-9]){2}Z"  # of a Cursor
PARTS = ("title", "text")  # of the order of relevance
Q = (
    "Words to look for, 1 to 200 characters: posts that have all of them in title, content, excerpt or tags. Case and "
    'diacritics make no difference. `word*` finds words that begin so, `"several words"` these in sequence; nothing '
    "else has a meaning. In scripts that write no spaces between words each character is a word, and a run of them a "
    "sequence."
)
POST_EXAMPLE = {name: value for name, value in PostSchema.example.items() if name != "content"}
KEPT_EXAMPLE = {"by": "laptop", "post": POST_EXAMPLE}
OF_PUBLICATION = "A date (midnight UTC) or a time in RFC 3339; needs `sort=published_at`."


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
        super().__init__(**about(description, pattern=r"\S"), **kwargs)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        name = super()._deserialize(value, attr, data, **kwargs).strip(WHITE_SPACE)
        if not name:
            raise self.make_error("empty")
        return "" if CONTROL_OR_BREAK.search(name) else fold(name)  # No tag is called "".


class PageSize(fields.Integer):
    """A whole number from 1 in ASCII digits, without sign or leading zero. More than 1,000 counts as that."""

    default_error_messages = {"invalid": "must be a whole number from 1"}

    def __init__(self, what: str, default: int = 100):
        most = "" if default == MAX_PAGE_SIZE else f" than {MAX_PAGE_SIZE:,}"
        described = about(f"The most {what} to return: {default:,} if left out, and never more{most}.")
        super().__init__(validate=Range(1), load_default=default, **described)

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int:
        if not POSITIVE.fullmatch(value):
            raise self.make_error("invalid")
        return min(int(value[:20]), MAX_PAGE_SIZE)  # int() would refuse 5,000 digits


class PostId(fields.String):
    """The id of a post as the service writes it. Loads as a number."""

    default_error_messages = {"invalid": "must be a post's id, a whole number from 1"}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int:
        if not re.fullmatch(ID, value) or int(value) > MAX_ID:
            raise self.make_error("invalid")
        return int(value)


class Before(PostId):
    """The start of a page. Loads as the id of a post or, in another order than that of creation, as a Cursor."""

    default_error_messages = {"cursor": "must be the value that Link gave for {order}"}

    def __init__(self, order: str = "", **kwargs: Any):
        super().__init__(**kwargs)
        self.order = order  # or it is the `sort` of the query

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int | Cursor:
        order = self.order or data.get("sort")
        if order not in ("deleted_at", "published_at", "relevance"):
            return super()._deserialize(value, attr, data, **kwargs)
        key, _, post_id = value.rpartition("_")
        try:
            if key not in PARTS if order == "relevance" else Time().deserialize(key) != key:
                raise ValidationError(key)
            return Cursor(key, super()._deserialize(post_id, attr, data, **kwargs))
        except ValidationError:
            raise self.make_error("cursor", order=self.order or f"sort={order}") from None


class Names(fields.String):
    """Names separated by commas, each once. Loads as such a text, in order, with those that are `always` there."""

    default_error_messages = {"invalid": "must be names separated by commas, each once, from: {names}"}

    def __init__(self, names: Sequence[str], always: Sequence[str], description: str):
        pattern = f"^({'|'.join(names)})(,({'|'.join(names)}))*$"
        super().__init__(**about(description, pattern=pattern))
        self.names = names
        self.always = always

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        given = value.split(",")
        if len({*given} & {*self.names}) != len(given):
            raise self.make_error("invalid", names=", ".join(self.names))
        return ",".join(name for name in self.names if name in given or name in self.always)


class DateOrTime(Time):
    """A date, which stands for its midnight in UTC, or a time in RFC 3339. Loads as text: the time in UTC."""

    default_error_messages = {"invalid": "must be a date, or a time in RFC 3339, such as 2026-11-20T10:10:00Z"}

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> str:
        is_date = DATE.fullmatch(value)
        return super()._deserialize(f"{value}T00:00:00Z" if is_date else value, attr, data, **kwargs)


# Schemas


class NoQuerySchema(StrictSchema):
    """The query of an operation without parameters."""

    error_messages = {"unknown": "unknown parameter"}


def has_words(text: str) -> None:
    """Validate that the search has a word."""
    if not words(text):
        raise ValidationError("must have a letter or a digit")


class ListQuerySchema(NoQuerySchema):
    """The query of GET /posts."""

    limit = PageSize("posts")
    status = choice(*STATUSES, **about("Only posts of this status."))
    tag = FoldedTag("Only posts that carry this tag; letter case does not matter.")
    before = Before(
        **about(
            "Only posts created before the one with this id; with another `sort`, what `Link` gave.",
            pattern=f"^(({TIME}|title|text)_)?{ID}$",
        )
    )
    sort = choice(
        "created_at",
        "published_at",
        "relevance",
        **about(
            "`published_at`: the posts that have one, latest first. `relevance`, with `q`: first the "
            "posts whose title alone has all words. Left out: newest first."
        ),
    )
    published_after = DateOrTime(**about(f"Only posts published from then on. {OF_PUBLICATION}"))
    published_before = DateOrTime(**about(f"Only posts published before then. {OF_PUBLICATION}"))
    fields = Names(
        FIELDS,
        LISTED,
        "Only these fields of each post, separated by commas, each once; `id`, `title` and `status` come with them.",
    )
    q = Text(length(1, 200), has_words, **about(Q))

    @validates_schema
    def check_sort(self, data: dict[str, Any], **kwargs: Any) -> None:
        """Refuse parameters that the order does not support."""
        sort = data.get("sort")
        if sort == "relevance" and "q" not in data:
            raise ValidationError("relevance needs q", "sort")
        for name in ("published_after", "published_before"):
            if name in data and sort != "published_at":
                raise ValidationError("needs sort=published_at", name)


class DeleteQuerySchema(NoQuerySchema):
    """The query of DELETE /posts/{id}."""

    permanent = choice("true", "false", **about("`true`: the post is gone at once, with its revisions."))


class PostWithoutContentSchema(PostSchema):
    """A post without its content."""

    example = POST_EXAMPLE

    class Meta:
        exclude = ("content",)


class TrashQuerySchema(NoQuerySchema):
    """The query of GET /trash."""

    limit = PageSize("entries")
    before = Before("deleted_at", **about("Only posts deleted before: what `Link` gave.", pattern=f"^{TIME}_{ID}$"))


class RevisionsQuerySchema(TrashQuerySchema):
    """The query of the revisions of a post."""

    before = PostId(
        error_messages={"invalid": "must be a revision, a whole number from 1"},
        **about("Only revisions before this one.", pattern=f"^{ID}$"),
    )


class TrashedPostSchema(StrictSchema):
    """A post in the trash."""

    example = {"deleted_at": "2026-11-20T10:10:00Z", **KEPT_EXAMPLE}
    deleted_at = Time(required=True, **about("When it was deleted, in UTC, whole seconds."))
    by = fields.String(required=True, **about("The name of the key, or `settings`, `import` or `undo`."))
    post = fields.Nested(PostWithoutContentSchema(), required=True, **about("The post as it was, without its content."))


class RevisionSchema(TrashedPostSchema):
    """A revision of a post: the post as it was before a change."""

    example = {"revision": "12", "replaced_at": "2026-11-20T10:10:00Z", **KEPT_EXAMPLE}
    revision = Text(length(1, 19), Pattern(f"^{ID}$"), required=True, **about("The number of the revision, as text."))
    replaced_at = Time(required=True, **about("When it was replaced, in UTC, whole seconds."))

    class Meta:
        exclude = ("deleted_at",)


class TagsQuerySchema(NoQuerySchema):
    """The query of GET /tags."""

    limit = PageSize("tags", MAX_PAGE_SIZE)
    status = choice(*STATUSES, **about("Count only posts of this status, and leave out other tags."))
    after = FoldedTag("Only tags after this one.")


class TagQuerySchema(TagsQuerySchema):
    """The query of GET /tags/{tag}."""

    class Meta:
        fields = ("status",)


class TagSchema(StrictSchema):
    """A tag that posts carry, spelt as in the newest of them."""

    example = {"name": "Travel", "posts": 3}
    name = tag_name()
    posts = fields.Integer(required=True, strict=True, validate=Range(min=1), **about("How many posts carry it."))


class TagChangeSchema(StrictSchema):
    """A change of a tag."""

    example = {"name": "Journeys"}
    name = tag_name()
    merge = Flag(
        load_default=False, **about("Whether to merge it with another tag of the new name; otherwise that is refused.")
    )
