"""The posts on the wire."""

import re
from typing import Any

from marshmallow import ValidationError, pre_load

from blogapi.storage.documents import FIELDS, fold
from blogapi.storage.models import STATUSES
from blogapi.storage.search.words import words
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
URL_DESCRIPTION = "An absolute http or https URL with a host, without white space, at most 2,048 characters."
Q = (
    "Words to look for, 1 to 200 characters: posts that have all of them in title, content, excerpt or tags. Case and "
    'diacritics make no difference. `word*` finds words that begin so, `"several words"` these in sequence; nothing '
    "else has a meaning. In scripts that write no spaces between words each character is a word, and a run of them a "
    "sequence."
)
NEW_POST_EXAMPLE: dict[str, Any] = {
    "title": "Three days at the lake",
    "content": "**Friday.** Fog, and somewhere in it a lake.\n",
    "tags": ["Travel", "Lake Constance"],
}
POST_EXAMPLE = {
    "id": "1",
    **NEW_POST_EXAMPLE,
    "status": "published",
    "slug": "three-days-at-the-lake",
    "excerpt": "Fog, wind, and then the sun.",
    "cover_image": "https://example.org/lake.jpg",
    "published_at": "2026-11-20T10:10:00Z",
    "created_at": "2026-11-20T10:10:00Z",
    "updated_at": "2026-11-20T10:10:00Z",
}


def title() -> Line:
    description = "One line of 1 to 255 characters, without the white space around it; one of them is visible."
    return Line(length(1, 255), visible, required=True, metadata={"description": description})


def content() -> Text:
    description = "Markdown, kept byte for byte: 1 to 1,000,000 characters, one of them visible."
    return Text(length(0, 1_000_000), visible, required=True, metadata={"description": description, "minLength": 1})


def excerpt(**kwargs: Any) -> Text:
    return Text(length(0, 1000), metadata={"description": "A summary, at most 1,000 characters."}, **kwargs)


def tags(**kwargs: Any) -> Distinct:
    description = "At most 50 tags, in this order. Two that differ in letter case are the same; a repeat is dropped."
    return Distinct(tag_name(), length(0, 50, "tags"), key=fold, metadata={"description": description}, **kwargs)


def tag_name(**kwargs: Any) -> Line:
    description = "One line of 1 to 64 characters, without the white space around it; one of them is visible."
    return Line(length(1, 64), visible, metadata={"description": description}, **kwargs)


def cover_image(**kwargs: Any) -> Text:
    description = f"The address of an image. {URL_DESCRIPTION}"
    return Text(length(0, 2048), absolute_url, metadata={"description": description}, **kwargs)


def absolute_url(text: str) -> None:
    """Validate that a text is an absolute URL."""
    if not re.fullmatch(URL, text):
        raise ValidationError("must be an absolute http or https URL without white space")


def published_at() -> Time:
    description = (
        "When the post was published, RFC 3339 with an offset; of a `scheduled` one, which needs it, when it will be. "
        "A draft keeps it for the day it is published; without it, that is the time of the publication."
    )
    return Time(metadata={"description": description})


def is_slug(text: str) -> bool:
    """Return whether a text can be the slug of a post."""
    return len(text) <= 100 and re.fullmatch(SLUG, text) is not None


def with_words(text: str) -> None:
    """Validate that there is something to look for."""
    if not words(text):
        raise ValidationError("must have a letter or a digit")


class NewPostSchema(StrictSchema):
    """A post to be made. An empty excerpt, slug or cover_image counts as left out."""

    example = NEW_POST_EXAMPLE
    title = title()
    content = content()
    excerpt = excerpt()
    slug = Text(
        length(0, 100),
        Pattern(f"^({SLUG})?$", error="must be lower-case letters a-z, digits and single hyphens between them"),
        metadata={
            "description": "At most 100 characters a-z, 0-9 and single hyphens between them, unique over all posts. "
            "A new post without one has it made from the title."
        },
    )
    status = choice(
        "published", "draft", load_default="draft", metadata={"description": "`draft` where it is left out."}
    )
    tags = tags(load_default=list)
    published_at = published_at()
    cover_image = cover_image()

    @pre_load
    def drop_empty(self, data: Any, **kwargs: Any) -> Any:
        """Take "" for left out where a field is optional: it is what an unset shell variable gives."""
        optional = ("excerpt", "slug", "cover_image")
        return {name: value for name, value in data.items() if value != "" or name not in optional}


class PostChangeSchema(NewPostSchema):
    """A change of a post (RFC 7396): what is left out stays, null clears excerpt, tags and cover_image."""

    example = {"status": "archived"}
    excerpt = excerpt(allow_none=True)
    status = choice(*STATUSES, metadata={"description": "Any may follow any other."})
    tags = tags(allow_none=True)
    cover_image = cover_image(allow_none=True)


class PutPostSchema(NewPostSchema):
    """What a post is to be: what is left out is cleared, but status and published_at."""

    status = choice(*STATUSES, metadata={"description": "Stays where it is left out; `draft` where the post is new."})


class PostSchema(StrictSchema):
    """A post. What it does not have is left out, never null."""

    example = POST_EXAMPLE
    id = PostId("The id, a number as text. It is never used again.", required=True)
    title = title()
    status = choice(*STATUSES, required=True, metadata={"description": "Whether it is published."})
    slug = Text(
        length(1, 100),
        Pattern(f"^{SLUG}$"),
        required=True,
        metadata={"description": "The other name of the post: at most 100 characters, unique over all posts."},
    )
    content = content()
    excerpt = excerpt()
    tags = tags(required=True)
    cover_image = cover_image()
    published_at = published_at()
    created_at = Time(required=True, metadata={"description": "When it was created, in UTC, whole seconds."})
    updated_at = Time(
        required=True, metadata={"description": "When it last became other than it was; at first created_at."}
    )


class ListedPostSchema(PostSchema):
    """A post in a list: all of it, or only the fields that were asked for."""


class ListQuerySchema(NoQuerySchema):
    """The query of GET /posts."""

    limit = PageSize(
        MAX_PAGE_SIZE,
        load_default=100,
        metadata={"description": "The most posts to return: 100 where it is left out, 1,000 where it is more."},
    )
    status = choice(*STATUSES, metadata={"description": "Only posts of this status."})
    tag = FoldedTag("Only posts that carry this tag; letter case does not matter.")
    before = Before("Only posts created before the one with this id; with `sort=published_at`, what `Link` gave.")
    sort = choice(
        "created_at",
        "published_at",
        metadata={"description": "`published_at`: the posts that have one, latest first. Left out: newest first."},
    )
    fields = Names(FIELDS, f"Only these fields of each post, with commas between them, each once: {', '.join(FIELDS)}.")
    q = Text(length(1, 200), with_words, metadata={"description": Q})
