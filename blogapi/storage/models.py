"""The tables of the core as Peewee models; schema.sql defines them. Each wing has models of its own.

Webhooks are here because the PostgreSQL engine reads the active ones whenever it takes the write lock.
"""

from peewee import JOIN, AutoField, BlobField, CompositeKey, IntegerField, Model, TextField

from blogapi.storage.engine import AsBytes, Prepared

SCOPES = FULL, READ_ONLY, PUBLISHED_ONLY, DRAFTS_ONLY = "full", "read-only", "published-only", "drafts-only"  # of keys
# Authors in the history of changes made without a key; only 1.1 wrote "autosave"
AUTHORS = ("settings", "autosave", "import", "rebase", "undo")
MAX_ID = 2**63 - 1


class Drafter(str):
    """The name of a drafts-only key, as the author of a change. So no write can forget what the key may do."""


class BaseModel(Model):
    class Meta:
        legacy_table_names = False


class ApiKey(BaseModel):
    """An API key, identified by its SHA-256."""

    digest = BlobField(primary_key=True)
    name = TextField(unique=True)
    last_four = TextField()
    created_at = TextField()
    last_used_on = TextField(null=True)
    scope = TextField()


class Post(BaseModel):
    """A post. `document` is the JSON that is sent; the columns before `version` are copies of its fields."""

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
    """A slug that a post used to have."""

    slug = TextField(primary_key=True)
    post_id = IntegerField()


class PostTag(BaseModel):
    """A tag of a post. Copies of the post's status and date let one index cover a filtered list."""

    tag = TextField()
    status = TextField()
    post_id = IntegerField()
    published_at = TextField(null=True)
    name = TextField()

    class Meta:
        primary_key = CompositeKey("tag", "status", "post_id")


class Schedule(BaseModel):
    """When a scheduled post will be published."""

    post_id = IntegerField(primary_key=True)
    published_at = TextField()


class Webhook(BaseModel):
    """An address that receives events."""

    id = AutoField()
    url = TextField()
    events = TextField()
    active = IntegerField()
    secret = TextField()
    created_at = TextField()


class WebhookOptions(BaseModel):
    """Options of a webhook that differ from the defaults."""

    webhook_id = IntegerField(primary_key=True)
    headers = TextField()
    after_seconds = IntegerField()
    body = TextField()


# joins a webhook with its options, if it has any
WITH_OPTIONS = WebhookOptions, JOIN.LEFT_OUTER, WebhookOptions.webhook_id == Webhook.id
# Every change reads these, so PostgreSQL fetches them together with the lock.
ACTIVE_WEBHOOKS = Prepared(
    Webhook.select(Webhook.id, Webhook.events, WebhookOptions.after_seconds)
    .join(*WITH_OPTIONS)
    .where(Webhook.active == 1)
)
