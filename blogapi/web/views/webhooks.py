"""The webhooks: list, create, get, change, delete, ping; and their deliveries: list, redeliver."""

from typing import Any
from urllib.parse import unquote, urlsplit

from flask import Response
from marshmallow import ValidationError

from blogapi.storage import webhooks
from blogapi.storage.webhooks import KnownDelivery, KnownWebhook
from blogapi.web.openapi.operation import MERGE_PATCH, Answer, operation
from blogapi.web.request import load_body
from blogapi.web.responses import JSON, json_response, no_content
from blogapi.web.schemas.webhooks import (
    CreatedWebhookSchema,
    DeliverySchema,
    WebhookChangeSchema,
    WebhookInputSchema,
    WebhookSchema,
)
from blogapi.web.service import database, service
from blogapi.webhooks.addresses import AddressError, addresses_of

LOOKUP_SECONDS = 3


@operation("GET /v1/webhooks", Answer(200, "The webhooks, oldest first.", WebhookSchema(many=True)))
def list_webhooks() -> Response:
    """List webhooks, oldest first.

    All of them: there are at most 50.
    """
    return json_response(list(map(webhook_json, webhooks.listing(database()))))


@operation(
    "POST /v1/webhooks",
    Answer(201, "The new webhook, with its secret.", CreatedWebhookSchema(), headers=("Location",)),
    body=WebhookInputSchema(),
)
def create_webhook() -> Response:
    """Create a webhook; its secret is shown only in this answer.

    At most 50. Private addresses are refused, unless the owner of the service allows them.
    """
    fields = load_body()
    check_address(fields["url"])
    webhook, secret = database().write(webhooks.add, **fields)
    return json_response(webhook_json(webhook) | {"secret": secret}, 201, Location=f"/v1/webhooks/{webhook.id}")


@operation("GET /v1/webhooks/<id:webhook_id>", Answer(200, "The webhook.", WebhookSchema()), errors=(404,))
def get_webhook(webhook_id: int) -> Response:
    """Get a webhook.

    Its secret is not shown again.
    """
    return json_response(webhook_json(webhooks.find(database(), webhook_id)))


@operation(
    "PATCH /v1/webhooks/<id:webhook_id>",
    Answer(200, "The webhook as it is now.", WebhookSchema()),
    body=WebhookChangeSchema(),
    content_types=(JSON, MERGE_PATCH),
    errors=(404,),
)
def change_webhook(webhook_id: int) -> Response:
    """Change what the body names of a webhook, or turn it off and on.

    `application/merge-patch+json` is taken as well.
    """
    webhooks.find(database(), webhook_id)  # a path that names no webhook is judged before the body
    changes = load_body()
    if "url" in changes:
        check_address(changes["url"])
    return json_response(webhook_json(database().write(webhooks.change, webhook_id, changes)))


@operation("DELETE /v1/webhooks/<id:webhook_id>", Answer(204, "The webhook is deleted."), errors=(404,))
def delete_webhook(webhook_id: int) -> Response:
    """Delete a webhook and its deliveries.

    What is pending is not sent any more.
    """
    database().write_in_thread(webhooks.remove, webhook_id)
    return no_content()


@operation(
    "POST /v1/webhooks/<id:webhook_id>/ping",
    Answer(202, "The ping, which is about to be sent.", DeliverySchema()),
    errors=(404,),
)
def ping_webhook(webhook_id: int) -> Response:
    """Send a webhook a ping.

    Whatever its events are; not where it is turned off.
    """
    return json_response(delivery_json(database().write(webhooks.ping, webhook_id)), 202)


@operation(
    "GET /v1/webhooks/<id:webhook_id>/deliveries",
    Answer(200, "The deliveries, newest first.", DeliverySchema(many=True)),
    errors=(404,),
)
def list_deliveries(webhook_id: int) -> Response:
    """List the newest 100 deliveries of a webhook, newest first.

    Finished ones are kept for 30 days, 1,000 of them at most.
    """
    webhooks.find(database(), webhook_id)
    return json_response(list(map(delivery_json, webhooks.deliveries(database(), webhook_id))))


@operation(
    "POST /v1/webhooks/<id:webhook_id>/deliveries/<delivery_id:delivery_id>/redeliver",
    Answer(202, "The delivery, which is about to be attempted.", DeliverySchema()),
    errors=(404,),
)
def redeliver(webhook_id: int, delivery_id: str) -> Response:
    """Send an event to a webhook again, whatever became of it so far.

    Not where the webhook is turned off.
    """
    return json_response(delivery_json(database().write(webhooks.redeliver, webhook_id, delivery_id)), 202)


def webhook_json(webhook: KnownWebhook) -> dict[str, Any]:
    """Return a webhook as it is answered."""
    return webhook._asdict() | {"id": str(webhook.id)}


def delivery_json(delivery: KnownDelivery) -> dict[str, Any]:
    """Return a delivery as it is answered: what is not there is left out."""
    return {name: value for name, value in delivery._asdict().items() if value not in (None, "")}


def check_address(url: str) -> None:
    """Raise ValidationError for a URL whose host has only addresses that webhooks must not go to.

    A host that cannot be found now, or not in LOOKUP_SECONDS, may be later: every delivery looks again.
    """
    try:
        target = urlsplit(url)
        if target.port == 0:
            raise ValueError
        with service().loop.timeout(LOOKUP_SECONDS):
            addresses_of(unquote(target.hostname), target.port or 80, service().config.webhook_private)
    except ValueError:
        raise ValidationError("must have a valid host, and a port from 1 to 65535", "url") from None
    except AddressError as error:
        raise ValidationError(str(error), "url") from None
    except OSError:  # TimeoutError is one.
        pass
