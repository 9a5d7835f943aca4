"""The outbox of webhooks as Peewee models; the webhooks themselves are in `storage.models`."""

from blogapi.storage.models import model

EVENTS = "post.created", "post.updated", "post.published", "post.deleted", "tag.updated", "tag.deleted", "ping"

Event = model("event")
Delivery = model("delivery")
