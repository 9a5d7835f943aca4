"""Serve the endpoints for webhooks and their deliveries."""

import re
from itertools import chain
from typing import Any
from urllib.parse import unquote, urlsplit

from flask import Response
from marshmallow import ValidationError, fields
from marshmallow.validate import Range

from blogapi.api import schemas
from blogapi.api.operations import ResponseSpec
from blogapi.api.request import JSON_TYPES, Request, load_body
from blogapi.api.responses import json_response, no_content
from blogapi.api.schemas import InputSchema, StrictSchema, Time, choice, distinct, doc, length, matching
from blogapi.api.service import Service
from blogapi.api.views import Views
from blogapi.documents import ID_PATTERN
from blogapi.webhooks import storage as webhooks
from blogapi.webhooks.endpoint import AddressError, addresses_of
from blogapi.webhooks.storage import DEFAULT_EVENTS, EVENTS, KnownDelivery, KnownWebhook

LOOKUP_SECONDS = 3
DEFAULTS = {"header_names": [], "after_seconds": 0, "body": webhooks.EVENT_BODY}  # Responses leave out these values.
MAX_HEADERS, MAX_HEADER_BYTES = 10, 4096
MAX_AFTER = 600  # seconds
HEADER_NAME = re.compile("[!#$%&'*+.^_`|~0-9A-Za-z-]{1,64}")  # RFC 9110, section 5.1
HEADER_VALUE = re.compile("[!-~](?:[ -~]*[!-~])?")
OWN_HEADER = re.compile(
    "(?i)host|connection|content-(?:length|type|encoding)|expect|te|trailer|transfer-encoding|upgrade|webhook-.*"
)
NOT_HEADERS = "must be an object whose values are strings"
NOT_DEFAULT = " and ".join(f"`{name}`" for name in EVENTS if name not in DEFAULT_EVENTS)
DELIVERY_ID = "msg_[A-Za-z0-9_-]{22}"
views = Views("webhooks", __name__)


def check_headers(headers: dict[str, Any]) -> None:
    if not all(isinstance(text, str) for text in headers.values()):
        raise ValidationError(NOT_HEADERS)
    if len(headers) > MAX_HEADERS or sum(map(len, chain(headers, headers.values()))) > MAX_HEADER_BYTES:
        raise ValidationError(f"must have at most {MAX_HEADERS} headers and {MAX_HEADER_BYTES:,} characters in total")
    if len({name.lower() for name in headers}) < len(headers):
        raise ValidationError("must not have a name twice")
    for name, text in headers.items():
        if not HEADER_NAME.fullmatch(name) or OWN_HEADER.fullmatch(name):
            reason = "must be a header name without spaces, and not one that the service sets itself"
            raise ValidationError(f"{name[:64]}: {reason}")
        if not HEADER_VALUE.fullmatch(text):
            raise ValidationError(f"{name}: must have visible ASCII characters, and spaces only between them")


class WebhookInputSchema(InputSchema):
    """A new webhook."""

    example = {"url": "https://example.org/hook", "events": ["post.published"]}

    url = schemas.Url("Where events are sent.", required=True)
    events = distinct(
        choice(EVENTS, "An event."),
        length(1, len(EVENTS), "events"),
        load_default=DEFAULT_EVENTS,
        **doc(f"The events to send, at least one. By default, all but {NOT_DEFAULT}."),
    )
    headers = fields.Dict(
        validate=check_headers,
        error_messages=schemas.NOT_NULL | {"invalid": NOT_HEADERS},
        **doc(
            "Headers to send with each request, for example `Authorization`: at most 10, with 4,096 characters in "
            "total. Their values are never shown.",
            additionalProperties={"type": "string", "pattern": f"^{HEADER_VALUE.pattern}$"},
            maxProperties=MAX_HEADERS,
        ),
    )
    after_seconds = fields.Integer(
        strict=True,
        validate=Range(0, MAX_AFTER, error="must be from {min} to {max}"),
        error_messages=schemas.NOT_NULL | {"invalid": "must be a whole number"},
        **doc(
            "Waits this many seconds, then sends only the last event; with 0 (the default), sends each event at once."
        ),
    )
    body = choice(webhooks.BODIES, "`event`, the default, or `dispatch`, the format of GitHub's `repository_dispatch`.")


class WebhookChangeSchema(WebhookInputSchema):
    """A change to a webhook (RFC 7396): fields that are left out do not change."""

    example = {"active": False}
    active = schemas.Flag(**doc("Whether events are sent. A receiver that responds with 410 turns its webhook off."))


class WebhookSchema(WebhookChangeSchema):
    """A webhook."""

    class Meta:
        fields = ("id", "url", "events", "active", "created_at", "header_names", "after_seconds", "body")

    example = {"id": "1", **WebhookInputSchema.example, "active": True, "created_at": "2026-11-20T10:10:00Z"}
    example |= {"header_names": ["Authorization"], "after_seconds": 60, "body": "event"}
    header_names = fields.List(fields.String(), **doc("The names of its headers. Their values are not shown."))
    id = matching(ID_PATTERN, 1, 19, "The id, a number as text.")
    events: Any = fields.List(fields.String(**doc("An event.", examples=list(EVENTS))), **doc("The events sent."))
    created_at = Time(**doc("When the webhook was created, in UTC, to the second."))

    def on_bind_field(self, field_name: str, field_obj: fields.Field) -> None:
        field_obj.required = field_name not in DEFAULTS


class CreatedWebhookSchema(WebhookSchema):
    """A new webhook, with its secret."""

    class Meta:
        fields = (*WebhookSchema.Meta.fields, "secret")

    example = WebhookSchema.example | {"secret": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD3J9hMvQ1yQo="}
    secret = matching("whsec_[A-Za-z0-9+/]{43}=", 50, 50, "The key that signs the deliveries; it is shown only once.")


class DeliverySchema(StrictSchema):
    """The delivery of an event to a webhook."""

    example = {"id": "msg_p5jXN8AQM9LWM0D4loKWxJ", "event": "post.published", "created_at": "2026-11-20T10:10:00Z"}
    example |= {"state": "pending", "attempts": 1, "last_status": 502, "next_attempt_at": "2026-11-20T10:10:06Z"}
    id = matching(DELIVERY_ID, 26, 26, "The `webhook-id` that the receiver gets: 26 characters.")
    event = fields.String(required=True, **doc("The event.", examples=list(EVENTS)))
    created_at = Time(required=True, **doc("When the event happened, in UTC, to the second."))
    state = choice(("pending", "delivered", "failed"), "`pending` until delivered or failed.", required=True)
    attempts = fields.Integer(required=True, validate=Range(min=0), **doc("The number of attempts."))
    last_status = fields.Integer(validate=Range(100, 999), **doc("The status the receiver last returned: 100 to 999."))
    last_error = fields.String(**doc("Why the last attempt failed."))
    next_attempt_at = Time(**doc("When the next attempt is due, if it is pending."))


@views.operation("GET /v1/webhooks", ResponseSpec(200, "The webhooks, oldest first.", WebhookSchema(many=True)))
def list_webhooks(request: Request) -> Response:
    """List webhooks, oldest first.

    There are at most 50 webhooks, all on one page.
    """
    return json_response(request, list(map(as_json, webhooks.listing(request.database))))


@views.operation(
    "POST /v1/webhooks",
    ResponseSpec(201, "The new webhook, with its secret.", CreatedWebhookSchema(), headers=("Location",)),
    body=WebhookInputSchema(),
)
def create_webhook(request: Request) -> Response:
    """Create a webhook. The secret is shown only in this response.

    There can be at most 50 webhooks. Private addresses are refused unless the owner allows them.
    """
    new = load_body(request)
    check_address(request.service, new["url"])
    webhook, secret = request.database.write(webhooks.add, **new)
    location = ("Location", request.with_prefix(f"/v1/webhooks/{webhook.id}"))
    return json_response(request, as_json(webhook) | {"secret": secret}, 201, [location])


@views.operation("GET /v1/webhooks/<id:webhook_id>", ResponseSpec(200, "The webhook.", WebhookSchema()))
def get_webhook(request: Request, webhook_id: int) -> Response:
    """Get a webhook.

    The secret is not shown again.
    """
    return json_response(request, as_json(webhooks.get(request.database, webhook_id)))


@views.operation(
    "PATCH /v1/webhooks/<id:webhook_id>",
    ResponseSpec(200, "The updated webhook.", WebhookSchema()),
    body=WebhookChangeSchema(partial=True),
    content_types=JSON_TYPES,
)
def change_webhook(request: Request, webhook_id: int) -> Response:
    """Change some fields of a webhook.

    Fields that are left out do not change. `active` turns the webhook on or off.
    """
    changes = load_body(request, lambda: webhooks.get(request.database, webhook_id))
    if "url" in changes:
        check_address(request.service, changes["url"])
    return json_response(request, as_json(request.database.write(webhooks.change, webhook_id, changes)))


@views.operation("DELETE /v1/webhooks/<id:webhook_id>", ResponseSpec(204, "The webhook is deleted."))
def delete_webhook(request: Request, webhook_id: int) -> Response:
    """Delete a webhook and its deliveries.

    Pending deliveries are no longer sent.
    """
    request.database.write_in_thread(webhooks.delete, webhook_id)
    return no_content(request)


@views.operation("POST /v1/webhooks/<id:webhook_id>/ping", ResponseSpec(202, "The pending ping.", DeliverySchema()))
def ping_webhook(request: Request, webhook_id: int) -> Response:
    """Send a ping with a sample post to a webhook.

    The ping is sent even if the webhook's events do not include `ping`, but not if the webhook is turned off.
    """
    return json_response(request, as_json(request.database.write(webhooks.ping, webhook_id)), 202)


@views.operation(
    "GET /v1/webhooks/<id:webhook_id>/deliveries",
    ResponseSpec(200, "The deliveries, newest first.", DeliverySchema(many=True)),
)
def list_deliveries(request: Request, webhook_id: int) -> Response:
    """List the newest 100 deliveries of a webhook, newest first.

    The latest 1,000 finished deliveries are kept for 30 days.
    """
    webhooks.get(request.database, webhook_id)
    return json_response(request, list(map(as_json, webhooks.deliveries(request.database, webhook_id))))


@views.operation(
    "POST /v1/webhooks/<id:webhook_id>/deliveries/<delivery_id:delivery_id>/redeliver",
    ResponseSpec(202, "The delivery, which will be attempted soon.", DeliverySchema()),
)
def redeliver(request: Request, webhook_id: int, delivery_id: str) -> Response:
    """Send an event to a webhook again.

    The delivery may be delivered, failed or pending. The webhook must not be turned off.
    """
    delivery = request.database.write(webhooks.redeliver, webhook_id, delivery_id)
    return json_response(request, as_json(delivery), 202)


def as_json(known: KnownWebhook | KnownDelivery) -> dict[str, Any]:
    """Return the fields of a webhook or a delivery for a response, without empty fields and default values."""
    shown = {name: value for name, value in known._asdict().items() if value not in (None, "")} | {"id": str(known.id)}
    return {name: value for name, value in shown.items() if name not in DEFAULTS or value != DEFAULTS[name]}


def check_address(service: Service, url: str) -> None:
    """Raise ValidationError if webhooks must not call any of the addresses of a URL's host."""
    try:
        target = urlsplit(url)
        if target.port == 0 or target.hostname is None:
            raise ValueError
        with service.loop.timeout(LOOKUP_SECONDS):
            addresses_of(unquote(target.hostname), target.port or 80, service.config.webhook_private)
    except ValueError:
        raise ValidationError("must have a valid host, and a port from 1 to 65535", "url") from None
    except AddressError as error:
        raise ValidationError(str(error), "url") from None
    except OSError:  # The host was not found, or not in time. Every delivery looks it up again.
        return
