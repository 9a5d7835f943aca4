"""The tables of the core as Peewee models; schema.sql defines them. Each wing has models of its own.

The webhooks are here because the engine of PostgreSQL reads them with each lock.
"""

from peewee import JOIN, AutoField, BlobField, CompositeKey, IntegerField, Model, TextField

from blogapi.storage.engine import AsBytes, Prepared

SCOPES = FULL, READ_ONLY, PUBLISHED_ONLY, DRAFTS_ONLY = "full", "read-only", "published-only", "drafts-only"  # of keys
# In the history, for changes without a key; autosave: of 1.1
AUTHORS = ("settings", "autosave", "import", "rebase", "undo")
MAX_ID = 2**63 - 1


class Drafter(str):
    """The name of a key that may write drafts only, as the author of a change."""


class BaseModel(Model):
    class Meta:
        legacy_table_names = False


class ApiKey(BaseModel):
    """A key of the API, by its SHA-256."""

    digest = BlobField(primary_key=True)
    name = TextField(unique=True)
    last_four = TextField()
    created_at = TextField()
    last_used_on = TextField(null=True)
    scope = TextField()


class Post(BaseModel):
    """A post. `document` is its JSON as it is answered; the columns before `version` are copies from it."""

    id = AutoField()
    slug = TextField(unique=True)
    status = TextField()
    published_at = TextField(null=True)
    updated_at = TextField()
    version = IntegerField()
    since = TextField()
    author = TextField()
    document = TextField()


DOCUMENT = AsBytes(Post.document)


class FormerSlug(BaseModel):
    """A slug that a post had."""

    slug = TextField(primary_key=True)
    post_id = IntegerField()


class PostTag(BaseModel):
    """A tag of a post, with copies of the post's status and time, so that one index covers them."""

    tag = TextField()
    status = TextField()
    post_id = IntegerField()
    published_at = TextField(null=True)
    name = TextField()

    class Meta:
        primary_key = CompositeKey("tag", "status", "post_id")


class Schedule(BaseModel):
    """The time at which a scheduled post will be published."""

    post_id = IntegerField(primary_key=True)
    published_at = TextField()


class Webhook(BaseModel):
    """An address that events are sent to."""

    id = AutoField()
    url = TextField()
    events = TextField()
    active = IntegerField()
    secret = TextField()
    created_at = TextField()


class WebhookOptions(BaseModel):
    """The options of a webhook, unless it sends each event at once, without headers of its own."""

    webhook_id = IntegerField(primary_key=True)
    headers = TextField()
    after_seconds = IntegerField()
    body = TextField()


# A webhook with its options, if it has any
WITH_OPTIONS = WebhookOptions, JOIN.LEFT_OUTER, WebhookOptions.webhook_id == Webhook.id
# The webhooks that get events. Every change needs them, so on PostgreSQL they come with its lock.
ACTIVE_WEBHOOKS = Prepared(
    Webhook.select(Webhook.id, Webhook.events, WebhookOptions.after_seconds)
    .join(*WITH_OPTIONS)
    .where(Webhook.active == 1)
)
