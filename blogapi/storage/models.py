"""The tables as Peewee models; schema.sql defines them."""

from peewee import JOIN, AutoField, BlobField, CompositeKey, IntegerField, Model, TextField

from blogapi.storage.engine import AsBytes, Prepared

SCOPES = FULL, READ_ONLY, PUBLISHED_ONLY = "full", "read-only", "published-only"  # of keys
EVENTS = "post.created", "post.updated", "post.published", "post.deleted", "tag.updated", "tag.deleted", "ping"
AUTOSAVE = "autosave"  # of a draft on the owner's page, while it is written
AUTHORS = ("settings", AUTOSAVE, "import", "rebase", "undo")  # in the history, for changes without a key
MAX_ID = 2**63 - 1


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


class OwnerSession(BaseModel):
    """A session of the owner's page, or a link that opens one, by the SHA-256 of its token."""

    digest = BlobField(primary_key=True)
    kind = TextField()
    ends_at = TextField()
    days = IntegerField()
    opened_at = TextField()
    used_at = TextField()
    browser = TextField()


class PreviewLink(BaseModel):
    """An address that shows the preview of a post without a session, by the SHA-256 of its token."""

    digest = BlobField(primary_key=True)
    post_id = IntegerField()
    created_at = TextField()
    ends_at = TextField()


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


class Revision(BaseModel):
    """A version that a post had until a change or a deletion."""

    post_id = IntegerField()
    version = IntegerField()
    since = TextField()
    author = TextField()
    until = TextField()
    replaced_by = TextField()
    state = TextField()
    document = TextField()

    class Meta:
        primary_key = CompositeKey("post_id", "version")


class Retagging(BaseModel):
    """The tags that a post had before a tag was renamed, merged or deleted in every post."""

    post_id = IntegerField()
    version = IntegerField()
    number = IntegerField()
    changed_at = TextField()
    author = TextField()
    tags = TextField()

    class Meta:
        primary_key = CompositeKey("post_id", "version", "number")


class Purge(BaseModel):
    """A post that was deleted for good."""

    post_id = IntegerField(primary_key=True)
    purged_at = TextField()


class PostTag(BaseModel):
    """A tag of a post, with copies of the post's status and time, so that one index covers them."""

    tag = TextField()
    status = TextField()
    post_id = IntegerField()
    published_at = TextField(null=True)
    name = TextField()

    class Meta:
        primary_key = CompositeKey("tag", "status", "post_id")


class Image(BaseModel):
    """An image, without its bytes."""

    id = TextField(primary_key=True)
    upload = TextField()
    name = TextField()
    type = TextField()
    bytes = IntegerField()
    width = IntegerField()
    height = IntegerField()
    created_at = TextField()


class ImagePart(BaseModel):
    """A part of the bytes of an image, or of an upload."""

    upload = TextField()
    number = IntegerField()
    content = BlobField()

    class Meta:
        primary_key = CompositeKey("upload", "number")


class Schedule(BaseModel):
    """The time at which a scheduled post will be published."""

    post_id = IntegerField(primary_key=True)
    published_at = TextField()


class Idempotency(BaseModel):
    """The post that a request with an Idempotency-Key created; 0 for a key or secret of the owner's page."""

    digest = BlobField()
    name = TextField()
    request = BlobField()
    post_id = IntegerField()
    created_at = TextField()

    class Meta:
        primary_key = CompositeKey("digest", "name")


class Webhook(BaseModel):
    """An address that events are sent to."""

    id = AutoField()
    url = TextField()
    events = TextField()
    active = IntegerField()
    secret = TextField()
    created_at = TextField()


class WebhookOptions(BaseModel):
    """What differs from a webhook that sends each event at once, without headers of its own."""

    webhook_id = IntegerField(primary_key=True)
    headers = TextField()
    after_seconds = IntegerField()
    body = TextField()


# A webhook with its options, if it has any
WITH_OPTIONS = WebhookOptions, JOIN.LEFT_OUTER, WebhookOptions.webhook_id == Webhook.id
# The webhooks that get events. Every change needs them: on PostgreSQL, they come with the lock.
ACTIVE_WEBHOOKS = Prepared(
    Webhook.select(Webhook.id, Webhook.events, WebhookOptions.after_seconds)
    .join(*WITH_OPTIONS)
    .where(Webhook.active == 1)
)


class Event(BaseModel):
    """An event, written in the transaction of the change: the outbox."""

    id = AutoField()
    message_id = TextField()
    type = TextField()
    payload = TextField()
    created_at = TextField()


class Delivery(BaseModel):
    """The delivery of an event to a webhook."""

    webhook_id = IntegerField()
    event_id = IntegerField()
    state = TextField()
    attempts = IntegerField(default=0)
    last_status = IntegerField(null=True)
    last_error = TextField(null=True)
    repeats = IntegerField(default=0)
    next_attempt_at = TextField(null=True)

    class Meta:
        primary_key = CompositeKey("webhook_id", "event_id")
