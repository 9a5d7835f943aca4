"""The tables of webhooks as Peewee models."""

from peewee import JOIN, AutoField, CompositeKey, IntegerField, TextField

from blogapi.storage.engine import Prepared
from blogapi.storage.models import BaseModel

EVENTS = "post.created", "post.updated", "post.published", "post.deleted", "tag.updated", "tag.deleted", "ping"


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
