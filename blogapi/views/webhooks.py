"""The webhooks: list, create, get, change, delete, ping; and their deliveries: list, redeliver."""

from urllib.parse import unquote, urlsplit

from flask import Response, current_app
from marshmallow import ValidationError

from blogapi.addresses import AddressError, addresses_of
from blogapi.body import load_body, read_json
from blogapi.clock import timestamp
from blogapi.db import database
from blogapi.models import Delivery, Webhook
from blogapi.schemas import NewWebhook, WebhookChange
from blogapi.views.guard import blueprint, json_response, no_content

LOOKUP_SECONDS = 3

new_webhook = NewWebhook()
webhook_change = WebhookChange()


@blueprint.get("/v1/webhooks")
def list_webhooks() -> Response:
    """List webhooks, oldest first."""
    return json_response([webhook.fields() for webhook in Webhook.listing()])


@blueprint.post("/v1/webhooks")
def create_webhook() -> Response:
    """Create a webhook; its secret is shown only in this answer."""
    fields = load_body(new_webhook, read_json())
    refuse_address(fields["url"])
    time = timestamp()
    webhook = database.write(lambda: Webhook.add(fields["url"], fields["events"], time))
    return json_response(webhook.fields() | {"secret": webhook.secret}, 201, Location=f"/v1/webhooks/{webhook.id}")


@blueprint.get("/v1/webhooks/<id:webhook_id>")
def get_webhook(webhook_id: int) -> Response:
    """Get a webhook."""
    return json_response(Webhook.get_by_id(webhook_id).fields())


@blueprint.patch("/v1/webhooks/<id:webhook_id>")
def change_webhook(webhook_id: int) -> Response:
    """Change what the body names of a webhook, or turn it off and on."""
    Webhook.get_by_id(webhook_id)  # a path that names no webhook is judged before the body
    changes = load_body(webhook_change, read_json("application/merge-patch+json"))
    if "url" in changes:
        refuse_address(changes["url"])
    return json_response(database.write(lambda: Webhook.change(webhook_id, changes)).fields())


@blueprint.delete("/v1/webhooks/<id:webhook_id>")
def delete_webhook(webhook_id: int) -> Response:
    """Delete a webhook and its deliveries."""
    database.write(lambda: Webhook.remove(webhook_id))
    return no_content()


@blueprint.post("/v1/webhooks/<id:webhook_id>/ping")
def ping_webhook(webhook_id: int) -> Response:
    """Send a webhook a ping."""
    time = timestamp()
    return json_response(database.write(lambda: Webhook.ping(webhook_id, time)), 202)


@blueprint.get("/v1/webhooks/<id:webhook_id>/deliveries")
def list_deliveries(webhook_id: int) -> Response:
    """List the newest 100 deliveries of a webhook, newest first."""
    return json_response(Delivery.listing(webhook_id))


@blueprint.post("/v1/webhooks/<id:webhook_id>/deliveries/<delivery_id>/redeliver")
def redeliver(webhook_id: int, delivery_id: str) -> Response:
    """Send an event to a webhook again, whatever became of it so far."""
    return json_response(database.write(lambda: Delivery.repeat(webhook_id, delivery_id)), 202)


def refuse_address(url: str) -> None:
    """Raise ValidationError for a URL whose host has only addresses that webhooks must not go to.

    A host that cannot be found now, or not in LOOKUP_SECONDS, may be later: every delivery looks again.
    """
    private, timeout = current_app.extensions["config"].webhook_private, current_app.extensions["timeout"]
    try:
        target = urlsplit(url)
        if target.port == 0:
            raise ValueError
        with timeout(LOOKUP_SECONDS):
            addresses_of(unquote(target.hostname), target.port or 80, private)
    except ValueError:
        raise ValidationError("must have a valid host, and a port from 1 to 65535", "url") from None
    except AddressError as error:
        raise ValidationError(str(error), "url") from None
    except OSError:  # TimeoutError is one.
        pass
