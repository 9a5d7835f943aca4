"""The posts on the wire."""

import re
from typing import Any

from marshmallow import ValidationError, pre_load

from blogapi.storage.documents import FIELDS
from blogapi.storage.fold import fold
from blogapi.storage.models import STATUSES
from blogapi.storage.words import words
from blogapi.web.schemas.base import MAX_PAGE_SIZE, NoQuerySchema, StrictSchema, choice
from blogapi.web.schemas.fields import (
    SLUG,
    Before,
    Distinct,
    FoldedTag,
    Line,
    Names,
    PageSize,
    Pattern,
    PostId,
    Text,
    Time,
    length,
    visible,
)

# An absolute URL with a host (RFC 3986, but for characters beyond ASCII): scheme, user, host, port, and the rest.
URL = (
    r"[Hh][Tt][Tt][Pp][Ss]?://([^\s\x00-\x1f\x7f-\x9f/?#@\\]*@)?"
    r'(\[[0-9A-Fa-f:.]+\]|[^\s\x00-\x1f\x7f-\x9f/?#@:\[\]\\<>"]+)(:[0-9]{0,5})?([/?#][^\s\x00-\x1f\x7f-\x9f]*)?'
)
URL_HINT = "must be an absolute http or https URL without white space"
Q = (
    "Words to look for: posts that have all of them in title, content, excerpt or tags. Case and diacritics make no "
    'difference. `word*` finds words that begin so, `"several words"` these in sequence; nothing else has a meaning. '
    "In scripts that write no spaces between words each character is a word, and a run of them a sequence."
)
NEW_POST_EXAMPLE: dict[str, Any] = {
    "title": "Three days at the lake",
    "content": "**Friday.** Fog, and somewhere in it a lake.\n",
    "tags": ["Travel", "Lake Constance"],
    "status": "published",
}
POST_EXAMPLE = {
    "id": "1",
    **NEW_POST_EXAMPLE,
    "slug": "three-days-at-the-lake",
    "excerpt": "Fog, wind, and then the sun.",
    "cover_image": "https://example.org/lake.jpg",
    "published_at": "2026-11-20T10:10:00Z",
    "created_at": "2026-11-20T10:10:00Z",
    "updated_at": "2026-11-20T10:10:00Z",
}


def title() -> Line:
    return Line(length(1, 255), visible, required=True)


def content() -> Text:
    return Text(length(0, 1_000_000), visible, required=True, metadata={"minLength": 1})


def excerpt(**kwargs: Any) -> Text:
    return Text(length(0, 1000), **kwargs)


def tags(**kwargs: Any) -> Distinct:
    return Distinct(tag_name(), length(0, 50, "tags"), key=fold, **kwargs)


def tag_name(**kwargs: Any) -> Line:
    return Line(length(1, 64), visible, **kwargs)


def cover_image(**kwargs: Any) -> Text:
    return Text(length(0, 2048), Pattern(f"^({URL})?$", error=URL_HINT), **kwargs)


def is_slug(text: str) -> bool:
    """Return whether a text can be the slug of a post."""
    return len(text) <= 100 and re.fullmatch(SLUG, text) is not None


def with_words(text: str) -> None:
    """Validate that there is something to look for."""
    if not words(text):
        raise ValidationError("must have a letter or a digit")


class NewPostSchema(StrictSchema):
    """The body of POST /posts."""

    example = NEW_POST_EXAMPLE
    title = title()
    content = content()
    excerpt = excerpt()
    slug = Text(
        length(0, 100),
        Pattern(f"^({SLUG})?$", error="must be lower-case letters a-z, digits and single hyphens between them"),
    )
    status = choice("published", "draft", load_default="draft")
    tags = tags(load_default=list)
    published_at = Time()
    cover_image = cover_image()

    @pre_load
    def drop_empty(self, data: Any, **kwargs: Any) -> Any:
        """Take "" for left out where a field is optional: it is what an unset shell variable gives."""
        optional = ("excerpt", "slug", "cover_image")
        return {name: value for name, value in data.items() if value != "" or name not in optional}


class PostChangeSchema(NewPostSchema):
    """The body of PATCH /posts/{id} (RFC 7396): what is left out stays, null clears where that is allowed."""

    example = {"status": "archived"}
    excerpt = excerpt(allow_none=True)
    status = choice(*STATUSES)
    tags = tags(allow_none=True)
    cover_image = cover_image(allow_none=True)


class PutPostSchema(NewPostSchema):
    """The body of PUT /posts/by-slug/{slug}: what is left out is cleared, but status and published_at."""

    status = choice(*STATUSES)


class PostSchema(StrictSchema):
    """A post, as it is answered."""

    example = POST_EXAMPLE
    id = PostId(required=True)
    title = title()
    status = choice(*STATUSES, required=True)
    slug = Text(length(1, 100), Pattern(f"^{SLUG}$"), required=True)
    content = content()
    excerpt = excerpt()
    tags = tags(required=True)
    cover_image = cover_image()
    published_at = Time()
    created_at = Time(required=True)
    updated_at = Time(required=True)


class ListedPostSchema(PostSchema):
    """A post in a list: all of it, or only the fields that were asked for."""


class ListQuerySchema(NoQuerySchema):
    """The query of GET /posts."""

    limit = PageSize(MAX_PAGE_SIZE, load_default=100)
    status = choice(*STATUSES)
    tag = FoldedTag()
    before = Before()
    sort = choice(
        "created_at",
        "published_at",
        metadata={"description": "published_at: the posts that have one, latest first. By default newest first."},
    )
    fields = Names(FIELDS, "Only these fields of each post, with commas between them, each once.")
    q = Text(length(1, 200), with_words, metadata={"description": Q})
