"""The outbox of webhooks as Peewee models; the webhooks themselves are in `storage.models`."""

from peewee import AutoField, CompositeKey, IntegerField, TextField

from blogapi.storage.models import BaseModel

EVENTS = "post.created", "post.updated", "post.published", "post.deleted", "tag.updated", "tag.deleted", "ping"


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
