"""Schemas of the history of posts, and of the trash."""

from marshmallow import fields

from blogapi.post import ID, Pattern, PostSchema, StrictSchema, Text, Time, about, length
from blogapi.web.schemas.posts import TIME, Before, NoQuerySchema, PageSize, PostId

POST_EXAMPLE = {name: value for name, value in PostSchema.example.items() if name != "content"}
KEPT_EXAMPLE = {"by": "laptop", "post": POST_EXAMPLE}


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
