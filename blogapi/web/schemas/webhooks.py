"""The webhooks on the wire, and what their receivers are sent."""

from typing import Any

from marshmallow import fields
from marshmallow.validate import Range

from blogapi.storage.models import EVENTS, POST_EVENTS
from blogapi.web.schemas.base import StrictSchema, choice
from blogapi.web.schemas.fields import DELIVERY_ID, ID, Distinct, Flag, Pattern, Text, Time, length
from blogapi.web.schemas.posts import POST_EXAMPLE, URL_DESCRIPTION, PostSchema, absolute_url, tag_name
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
    description = f"Where events are sent to. {URL_DESCRIPTION}"
    return Text(length(1, 2048), absolute_url, metadata={"description": description}, **kwargs)


def events(**kwargs: Any) -> Distinct:
    event = choice(*EVENTS, metadata={"description": "An event."})
    description = "The events that are sent there, at least one; of a new webhook all, where they are left out."
    return Distinct(event, length(1, len(EVENTS), "events"), metadata={"description": description}, **kwargs)


def active(**kwargs: Any) -> Flag:
    description = "Whether anything is sent. A receiver that answers 410 turns its webhook off."
    return Flag(metadata={"description": description}, **kwargs)


class NewWebhookSchema(StrictSchema):
    """A webhook to be made."""

    example = {"url": "https://example.org/hook", "events": ["post.published"]}
    url = url(required=True)
    events = events(load_default=EVENTS)


class WebhookChangeSchema(StrictSchema):
    """A change of a webhook (RFC 7396): what is left out stays."""

    example = {"active": False}
    url = url()
    events = events()
    active = active()


class WebhookSchema(StrictSchema):
    """A webhook."""

    example = WEBHOOK_EXAMPLE
    id = Text(length(1, 19), Pattern(f"^{ID}$"), required=True, metadata={"description": "The id, a number as text."})
    url = url(required=True)
    events = events(required=True)
    active = active(required=True)
    created_at = Time(required=True, metadata={"description": "When it was created, in UTC, whole seconds."})


class CreatedWebhookSchema(WebhookSchema):
    """A new webhook, with its secret."""

    example = WEBHOOK_EXAMPLE | {"secret": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD3J9hMvQ1yQo="}
    secret = Text(
        length(50, 50),
        Pattern("^whsec_[A-Za-z0-9+/]{43}=$"),
        required=True,
        metadata={"description": "What the deliveries are signed with; it is shown only once."},
    )


class DeliverySchema(StrictSchema):
    """What became, or is to become, of an event at a webhook."""

    example = {
        "id": "msg_p5jXN8AQM9LWM0D4loKWxJ",
        "event": "post.published",
        "created_at": "2026-11-20T10:10:00Z",
        "state": "pending",
        "attempts": 1,
        "last_status": 502,
        "next_attempt_at": "2026-11-20T10:10:06Z",
    }
    id = Text(
        length(26, 26),
        Pattern(f"^{DELIVERY_ID}$"),
        required=True,
        metadata={"description": "What receivers are sent as `webhook-id`: 26 characters."},
    )
    event = choice(*EVENTS, required=True, metadata={"description": "What it tells of."})
    created_at = Time(required=True, metadata={"description": "When that happened, in UTC, whole seconds."})
    state = choice(
        "pending", "delivered", "failed", required=True, metadata={"description": "`pending` until it is settled."}
    )
    attempts = fields.Integer(
        required=True, strict=True, validate=Range(min=0), metadata={"description": "How many were made, from 0."}
    )
    last_status = fields.Integer(
        strict=True, validate=Range(100, 999), metadata={"description": "What the receiver last answered: 100 to 999."}
    )
    last_error = fields.String(metadata={"description": "Why the last attempt has failed."})
    next_attempt_at = Time(metadata={"description": "When the next attempt is due, of one that is pending."})


# Sent to receivers


def timestamp() -> Time:
    return Time(required=True, metadata={"description": "When it happened, in UTC, whole seconds."})


class PostWithoutContentSchema(PostSchema):
    """A post without its content."""

    example = POST_DATA_EXAMPLE

    class Meta:
        exclude = ("content",)


class PostDataSchema(StrictSchema):
    """What an event of a post tells."""

    example = {"post": POST_DATA_EXAMPLE}
    post = fields.Nested(
        PostWithoutContentSchema(), required=True, metadata={"description": "The post as it was then, without content."}
    )


class PostEventSchema(StrictSchema):
    """What a receiver is sent when something has happened to a post."""

    example = {"type": "post.published", "timestamp": "2026-11-20T10:10:00Z", "data": {"post": POST_DATA_EXAMPLE}}
    type = choice(*POST_EVENTS, required=True, metadata={"description": "What has happened."})
    timestamp = timestamp()
    data = fields.Nested(PostDataSchema(), required=True, metadata={"description": "To which post."})


class TagUpdateSchema(StrictSchema):
    """What a tag is now, and how it was spelt before."""

    example = {"tag": TagSchema.example, "previous_name": "Journeys"}
    tag = fields.Nested(TagSchema(), required=True, metadata={"description": "The tag as it is now."})
    previous_name = tag_name(required=True)


class TagUpdatedSchema(StrictSchema):
    """What a receiver is sent when a tag was renamed or merged with another."""

    example = {"type": "tag.updated", "timestamp": "2026-11-20T10:10:00Z", "data": TagUpdateSchema.example}
    type = choice("tag.updated", required=True, metadata={"description": "What has happened."})
    timestamp = timestamp()
    data = fields.Nested(TagUpdateSchema(), required=True, metadata={"description": "To which tag."})


class TagNameSchema(StrictSchema):
    """A tag that no post carries any more."""

    example = {"name": "Travel"}
    name = tag_name(required=True)


class TagRemovalSchema(StrictSchema):
    """What a tag was."""

    example = {"tag": TagNameSchema.example}
    tag = fields.Nested(TagNameSchema(), required=True, metadata={"description": "The tag as it was."})


class TagDeletedSchema(StrictSchema):
    """What a receiver is sent when a tag was removed."""

    example = {"type": "tag.deleted", "timestamp": "2026-11-20T10:10:00Z", "data": TagRemovalSchema.example}
    type = choice("tag.deleted", required=True, metadata={"description": "What has happened."})
    timestamp = timestamp()
    data = fields.Nested(TagRemovalSchema(), required=True, metadata={"description": "To which tag."})


class NothingSchema(StrictSchema):
    """An object without fields."""


class PingSchema(StrictSchema):
    """What a receiver is sent on request, to see whether it is there."""

    example = {"type": "ping", "timestamp": "2026-11-20T10:10:00Z", "data": {}}
    type = choice("ping", required=True, metadata={"description": "That it is a ping."})
    timestamp = timestamp()
    data = fields.Nested(NothingSchema(), required=True, metadata={"description": "Nothing."})
