"""Views of webhooks and their deliveries."""

from typing import Any
from urllib.parse import unquote, urlsplit

from flask import Response
from marshmallow import ValidationError

from blogapi.storage import webhooks
from blogapi.storage.webhooks import KnownDelivery, KnownWebhook
from blogapi.web.application import Answer, operation
from blogapi.web.request import JSON, MERGE_PATCH, Request, load_body
from blogapi.web.responses import json_response, no_content
from blogapi.web.schemas.webhooks import (
    CreatedWebhookSchema,
    DeliverySchema,
    WebhookChangeSchema,
    WebhookInputSchema,
    WebhookSchema,
)
from blogapi.web.service import Service
from blogapi.webhooks.endpoint import AddressError, addresses_of

LOOKUP_SECONDS = 3


@operation("GET /v1/webhooks", Answer(200, "The webhooks, oldest first.", WebhookSchema(many=True)))
def list_webhooks(request: Request) -> Response:
    """List webhooks, oldest first.

    There are at most 50, all on one page.
    """
    return json_response(request, list(map(webhook_json, webhooks.listing(request.database))))


@operation(
    "POST /v1/webhooks",
    Answer(201, "The new webhook, with its secret.", CreatedWebhookSchema(), headers=("Location",)),
    body=WebhookInputSchema(),
)
def create_webhook(request: Request) -> Response:
    """Create a webhook; its secret is shown only in this answer.

    There can be 50. Private addresses are refused unless the owner of the service allows them.
    """
    fields = load_body(request)
    check_address(request.service, fields["url"])
    webhook, secret = request.database.write(webhooks.add, **fields)
    location = ("Location", request.address(f"/v1/webhooks/{webhook.id}"))
    return json_response(request, webhook_json(webhook) | {"secret": secret}, 201, [location])


@operation("GET /v1/webhooks/<id:webhook_id>", Answer(200, "The webhook.", WebhookSchema()))
def get_webhook(request: Request, webhook_id: int) -> Response:
    """Get a webhook.

    Its secret is not shown again.
    """
    return json_response(request, webhook_json(webhooks.find(request.database, webhook_id)))


@operation(
    "PATCH /v1/webhooks/<id:webhook_id>",
    Answer(200, "The webhook as it is now.", WebhookSchema()),
    body=WebhookChangeSchema(),
    content_types=(JSON, MERGE_PATCH),
)
def change_webhook(request: Request, webhook_id: int) -> Response:
    """Change the fields of a webhook that the body names.

    `active` turns it off and on.
    """
    changes = load_body(request, lambda: webhooks.find(request.database, webhook_id))
    if "url" in changes:
        check_address(request.service, changes["url"])
    return json_response(request, webhook_json(request.database.write(webhooks.change, webhook_id, changes)))


@operation("DELETE /v1/webhooks/<id:webhook_id>", Answer(204, "The webhook is deleted."))
def delete_webhook(request: Request, webhook_id: int) -> Response:
    """Delete a webhook and its deliveries.

    Pending deliveries are no longer sent.
    """
    request.database.write_in_thread(webhooks.remove, webhook_id)
    return no_content(request)


@operation(
    "POST /v1/webhooks/<id:webhook_id>/ping",
    Answer(202, "The ping, which will be sent soon.", DeliverySchema()),
)
def ping_webhook(request: Request, webhook_id: int) -> Response:
    """Send a webhook a ping.

    It gets the ping even if `ping` is not among its events, unless it is turned off.
    """
    return json_response(request, delivery_json(request.database.write(webhooks.ping, webhook_id)), 202)


@operation(
    "GET /v1/webhooks/<id:webhook_id>/deliveries",
    Answer(200, "The deliveries, newest first.", DeliverySchema(many=True)),
)
def list_deliveries(request: Request, webhook_id: int) -> Response:
    """List the newest 100 deliveries of a webhook, newest first.

    Finished ones are kept for 30 days, 1,000 of them at most.
    """
    webhooks.find(request.database, webhook_id)
    return json_response(request, list(map(delivery_json, webhooks.deliveries(request.database, webhook_id))))


@operation(
    "POST /v1/webhooks/<id:webhook_id>/deliveries/<delivery_id:delivery_id>/redeliver",
    Answer(202, "The delivery, which will be attempted soon.", DeliverySchema()),
)
def redeliver(request: Request, webhook_id: int, delivery_id: str) -> Response:
    """Send an event to a webhook again.

    The event may have been delivered, have failed, or be pending; the webhook must not be turned off.
    """
    delivery = request.database.write(webhooks.redeliver, webhook_id, delivery_id)
    return json_response(request, delivery_json(delivery), 202)


def webhook_json(webhook: KnownWebhook) -> dict[str, Any]:
    """Return the JSON of a webhook."""
    return webhook._asdict() | {"id": str(webhook.id)}


def delivery_json(delivery: KnownDelivery) -> dict[str, Any]:
    """Return the JSON of a delivery: fields without a value are left out."""
    return {name: value for name, value in delivery._asdict().items() if value not in (None, "")}


def check_address(service: Service, url: str) -> None:
    """Raise ValidationError for a URL whose host has only addresses that webhooks must not call.

    A host that is not found now, or not within LOOKUP_SECONDS, is accepted: every delivery looks it up again.
    """
    try:
        target = urlsplit(url)
        if target.port == 0:
            raise ValueError
        with service.loop.timeout(LOOKUP_SECONDS):
            addresses_of(unquote(target.hostname), target.port or 80, service.config.webhook_private)
    except ValueError:
        raise ValidationError("must have a valid host, and a port from 1 to 65535", "url") from None
    except AddressError as error:
        raise ValidationError(str(error), "url") from None
    except OSError:  # TimeoutError is one.
        pass
