"""The webhooks on the wire, and what their receivers are sent."""

from typing import Any

from marshmallow import fields
from marshmallow.validate import Range

from blogapi.storage.models import EVENTS, POST_EVENTS
from blogapi.web.schemas.base import StrictSchema, choice
from blogapi.web.schemas.fields import DELIVERY_ID, ID, Distinct, Flag, Pattern, Text, Time, length
from blogapi.web.schemas.posts import POST_EXAMPLE, URL, URL_HINT, PostSchema, tag_name
from blogapi.web.schemas.tags import TagSchema

WEBHOOK_EXAMPLE = {
    "id": "1",
    "url": "https://example.org/hook",
    "events": ["post.published"],
    "active": True,
    "created_at": "2026-11-20T10:10:00Z",
}
POST_DATA_EXAMPLE = {name: value for name, value in POST_EXAMPLE.items() if name != "content"}


def url(**kwargs: Any) -> Text:
    return Text(length(1, 2048), Pattern(f"^{URL}$", error=URL_HINT), **kwargs)


def events(**kwargs: Any) -> Distinct:
    return Distinct(choice(*EVENTS), length(1, len(EVENTS), "events"), **kwargs)


class NewWebhookSchema(StrictSchema):
    """The body of POST /webhooks."""

    example = {"url": "https://example.org/hook", "events": ["post.published"]}
    url = url(required=True)
    events = events(load_default=EVENTS)


class WebhookChangeSchema(StrictSchema):
    """The body of PATCH /webhooks/{webhook_id} (RFC 7396): what is left out stays."""

    example = {"active": False}
    url = url()
    events = events()
    active = Flag()


class WebhookSchema(StrictSchema):
    """A webhook, as it is answered."""

    example = WEBHOOK_EXAMPLE
    id = Text(length(1, 19), Pattern(f"^{ID}$"), required=True)
    url = url(required=True)
    events = events(required=True)
    active = Flag(required=True)
    created_at = Time(required=True)


class CreatedWebhookSchema(WebhookSchema):
    """A webhook, as it is answered once: with its secret."""

    example = WEBHOOK_EXAMPLE | {"secret": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD3J9hMvQ1yQo="}
    secret = Text(length(50, 50), Pattern("^whsec_[A-Za-z0-9+/]{43}=$"), required=True)


class DeliverySchema(StrictSchema):
    """What became, or is to become, of an event at a webhook, as it is answered."""

    example = {
        "id": "msg_p5jXN8AQM9LWM0D4loKWxJ",
        "event": "post.published",
        "created_at": "2026-11-20T10:10:00Z",
        "state": "pending",
        "attempts": 1,
        "last_status": 502,
        "next_attempt_at": "2026-11-20T10:10:06Z",
    }
    id = Text(length(26, 26), Pattern(f"^{DELIVERY_ID}$"), required=True)
    event = choice(*EVENTS, required=True)
    created_at = Time(required=True)
    state = choice("pending", "delivered", "failed", required=True)
    attempts = fields.Integer(required=True, strict=True, validate=Range(min=0))
    last_status = fields.Integer(strict=True, validate=Range(100, 999))
    last_error = fields.String()
    next_attempt_at = Time()


# Sent to receivers


class PostWithoutContentSchema(PostSchema):
    """A post without its content."""

    example = POST_DATA_EXAMPLE

    class Meta:
        exclude = ("content",)


class PostDataSchema(StrictSchema):
    """What an event of a post tells."""

    example = {"post": POST_DATA_EXAMPLE}
    post = fields.Nested(PostWithoutContentSchema(), required=True)


class PostEventSchema(StrictSchema):
    """What a receiver is sent when something has happened to a post."""

    example = {"type": "post.published", "timestamp": "2026-11-20T10:10:00Z", "data": {"post": POST_DATA_EXAMPLE}}
    type = choice(*POST_EVENTS, required=True)
    timestamp = Time(required=True)
    data = fields.Nested(PostDataSchema(), required=True)


class TagUpdateSchema(StrictSchema):
    """What a tag is now, and how it was spelt before."""

    example = {"tag": TagSchema.example, "previous_name": "Journeys"}
    tag = fields.Nested(TagSchema(), required=True)
    previous_name = tag_name(required=True)


class TagUpdatedSchema(StrictSchema):
    """What a receiver is sent when a tag was renamed or merged with another."""

    example = {"type": "tag.updated", "timestamp": "2026-11-20T10:10:00Z", "data": TagUpdateSchema.example}
    type = choice("tag.updated", required=True)
    timestamp = Time(required=True)
    data = fields.Nested(TagUpdateSchema(), required=True)


class TagNameSchema(StrictSchema):
    """A tag that no post carries any more."""

    example = {"name": "Travel"}
    name = tag_name(required=True)


class TagRemovalSchema(StrictSchema):
    """What a tag was."""

    example = {"tag": TagNameSchema.example}
    tag = fields.Nested(TagNameSchema(), required=True)


class TagDeletedSchema(StrictSchema):
    """What a receiver is sent when a tag was removed."""

    example = {"type": "tag.deleted", "timestamp": "2026-11-20T10:10:00Z", "data": TagRemovalSchema.example}
    type = choice("tag.deleted", required=True)
    timestamp = Time(required=True)
    data = fields.Nested(TagRemovalSchema(), required=True)


class NothingSchema(StrictSchema):
    """An object without fields."""


class PingSchema(StrictSchema):
    """What a receiver is sent on request, to see whether it is there."""

    example = {"type": "ping", "timestamp": "2026-11-20T10:10:00Z", "data": {}}
    type = choice("ping", required=True)
    timestamp = Time(required=True)
    data = fields.Nested(NothingSchema(), required=True)
