"""The outbox of webhooks as Peewee models; the webhooks themselves are in `storage.models`."""

from blogapi.storage.models import model

# What a webhook gets unless it names its events
DEFAULT_EVENTS = "post.created", "post.updated", "post.published", "post.deleted", "tag.updated", "tag.deleted", "ping"
PROPOSED = "post.proposed"
EVENTS = (*DEFAULT_EVENTS, PROPOSED)

Event = model("event")
Delivery = model("delivery")
