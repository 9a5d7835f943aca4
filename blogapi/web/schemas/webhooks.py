"""Schemas of webhooks, their deliveries, and the events that receivers get."""

from collections.abc import Sequence
from typing import Any

from marshmallow import Schema, fields
from marshmallow.validate import Range

from blogapi.post import (
    ID,
    MAX_URL,
    URL_DESCRIPTION,
    URL_PATTERN,
    Distinct,
    Pattern,
    StrictSchema,
    Text,
    Time,
    about,
    absolute_url,
    choice,
    length,
    tag_name,
)
from blogapi.storage.models import EVENTS, POST_EVENTS
from blogapi.web.schemas.posts import POST_EXAMPLE, Flag, PostWithoutContentSchema, TagSchema

DELIVERY_ID = "msg_[A-Za-z0-9_-]{22}"
WEBHOOK_EXAMPLE = {
    "id": "1",
    "url": "https://example.org/hook",
    "events": ["post.published"],
    "active": True,
    "created_at": "2026-11-20T10:10:00Z",
}


def url(**kwargs: Any) -> Text:
    description = f"Where events are sent. {URL_DESCRIPTION}"
    return Text(length(1, MAX_URL), absolute_url, **about(description, pattern=URL_PATTERN), **kwargs)


def events(**kwargs: Any) -> Distinct:
    event = choice(*EVENTS, **about("An event."))
    description = "The events that are sent there, at least one. By default, a new webhook gets all of them."
    return Distinct(event, length(1, len(EVENTS), "events"), **about(description), **kwargs)


def active(**kwargs: Any) -> Flag:
    description = "Whether anything is sent. A receiver that answers 410 turns its webhook off."
    return Flag(**about(description), **kwargs)


class WebhookInputSchema(StrictSchema):
    """A new webhook."""

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
    id = Text(length(1, 19), Pattern(f"^{ID}$"), required=True, **about("The id, a number as text."))
    url = url(required=True)
    events = events(required=True)
    active = active(required=True)
    created_at = Time(required=True, **about("When it was created, in UTC, whole seconds."))


class CreatedWebhookSchema(WebhookSchema):
    """A new webhook, with its secret."""

    example = WEBHOOK_EXAMPLE | {"secret": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD3J9hMvQ1yQo="}
    secret = Text(
        length(50, 50),
        Pattern("^whsec_[A-Za-z0-9+/]{43}=$"),
        required=True,
        **about("The key that signs the deliveries; it is shown only once."),
    )


class DeliverySchema(StrictSchema):
    """The delivery of an event to a webhook."""

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
        **about("What receivers are sent as `webhook-id`: 26 characters."),
    )
    event = choice(*EVENTS, required=True, **about("The event."))
    created_at = Time(required=True, **about("When that happened, in UTC, whole seconds."))
    state = choice("pending", "delivered", "failed", required=True, **about("`pending` until it is settled."))
    attempts = fields.Integer(
        required=True, strict=True, validate=Range(min=0), **about("How many there were, from 0.")
    )
    last_status = fields.Integer(
        strict=True, validate=Range(100, 999), **about("What the receiver last answered: 100 to 999.")
    )
    last_error = fields.String(**about("Why the last attempt failed."))
    next_attempt_at = Time(**about("When the next attempt is due, if it is pending."))


# Events


def define(name: str, text: str, example: dict[str, Any], /, **described: fields.Field) -> Schema:
    """Return a schema of the name NAMESchema."""
    return type(f"{name}Schema", (StrictSchema,), {"__doc__": text, "example": example} | described)()


def nested(schema: Schema, description: str) -> fields.Nested:
    return fields.Nested(schema, required=True, **about(description))


def event(name: str, text: str, types: Sequence[str], example: dict[str, Any], /, **data: fields.Field) -> Schema:
    """Return the schema of an event of one of these types; `example` is one of its data."""
    return define(
        name,
        text,
        {"type": types[0], "timestamp": "2026-11-20T10:10:00Z", "data": example},
        type=choice(*types, required=True, **about("What happened.")),
        timestamp=Time(required=True, **about("When it happened, in UTC, whole seconds.")),
        data=nested(define(f"{name}Data", f"The data of {name}.", example, **data), "What it happened to."),
    )


EVENT_SCHEMAS = {
    **dict.fromkeys(
        POST_EVENTS,
        event(
            "PostEvent",
            "An event of a post.",
            POST_EVENTS,
            {"post": POST_EXAMPLE},
            post=nested(PostWithoutContentSchema(), "The post as it was then, without content."),
        ),
    ),
    "tag.updated": event(
        "TagUpdated",
        "A tag was renamed, or merged with another.",
        ["tag.updated"],
        {"tag": TagSchema.example, "previous_name": "Journeys"},
        tag=nested(TagSchema(), "The tag as it is now."),
        previous_name=tag_name(),
    ),
    "tag.deleted": event(
        "TagDeleted",
        "A tag was removed from every post.",
        ["tag.deleted"],
        {"tag": {"name": "Travel"}},
        tag=nested(
            define("TagName", "A tag that no post carries any more.", {"name": "Travel"}, name=tag_name()),
            "The tag as it was.",
        ),
    ),
    "ping": event("Ping", "A ping, sent on request.", ["ping"], {}),
}
