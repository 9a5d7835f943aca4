"""Schemas of lists of posts, their history, the trash, and tags. Those of a post are in blogapi.post."""

from typing import Any

from marshmallow import ValidationError, fields, validates_schema
from marshmallow.validate import Range

from blogapi.post import (
    FIELDS,
    ID,
    LISTED,
    STATUSES,
    Pattern,
    PostSchema,
    StrictSchema,
    Text,
    Time,
    about,
    choice,
    length,
    tag_name,
)
from blogapi.storage.search.words import words
from blogapi.web.schemas.fields import (
    MAX_PAGE_SIZE,
    TIME,
    Before,
    DateOrTime,
    Flag,
    FoldedTag,
    Names,
    NoQuerySchema,
    PageSize,
    PostId,
)

Q = (
    "Words to look for, 1 to 200 characters: posts that have all of them in title, content, excerpt or tags. Case and "
    'diacritics make no difference. `word*` finds words that begin so, `"several words"` these in sequence; nothing '
    "else has a meaning. In scripts that write no spaces between words each character is a word, and a run of them a "
    "sequence."
)
POST_EXAMPLE = {name: value for name, value in PostSchema.example.items() if name != "content"}
KEPT_EXAMPLE = {"by": "laptop", "post": POST_EXAMPLE}
OF_PUBLICATION = "A date (midnight UTC) or a time in RFC 3339; needs `sort=published_at`."


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
