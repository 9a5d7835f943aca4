"""The webhooks: the addresses that are told of events."""

import json
import secrets
from base64 import b64encode
from collections.abc import Iterator
from typing import Any, NamedTuple

from peewee import fn

from blogapi.storage import deliveries, events
from blogapi.storage.engine import Reader, Transaction
from blogapi.storage.errors import NotFound, TooManyWebhooks, WebhookInactive
from blogapi.storage.models import Delivery, Webhook

MAX_WEBHOOKS = 50


class KnownWebhook(NamedTuple):
    """A webhook as it is shown."""

    id: int
    url: str
    events: list[str]  # none where they are damaged
    active: bool
    created_at: str


def listing(reader: Reader) -> Iterator[KnownWebhook]:
    """Yield all webhooks, oldest first."""
    return map(_known, reader.rows(_webhooks.order_by(Webhook.id)))


def find(reader: Reader, webhook_id: int) -> KnownWebhook:
    """Return a webhook; raise NotFound."""
    found = reader.row(_webhooks.where(Webhook.id == webhook_id))
    if found is None:
        raise NotFound("webhook")
    return _known(found)


_webhooks = Webhook.select(Webhook.id, Webhook.url, Webhook.events, Webhook.active, Webhook.created_at)


def _known(row: tuple) -> KnownWebhook:
    webhook_id, url, names, active, created_at = row
    try:
        events = json.loads(names)
    except (TypeError, ValueError):
        events = []
    return KnownWebhook(webhook_id, url, events, bool(active), created_at)


def add(tx: Transaction, url: str, events: list[str]) -> tuple[KnownWebhook, str]:
    """Make a webhook; return it and its new secret. Raises TooManyWebhooks if there are MAX_WEBHOOKS already."""
    if tx.row(Webhook.select(fn.COUNT(Webhook.id)))[0] >= MAX_WEBHOOKS:
        raise TooManyWebhooks(f"there are {MAX_WEBHOOKS} already; delete one first")
    secret = "whsec_" + b64encode(secrets.token_bytes(32)).decode()
    row = {"url": url, "events": json.dumps(events), "active": 1, "secret": secret, "created_at": tx.now}
    return find(tx, tx.insert(Webhook.insert(row))), secret


def change(tx: Transaction, webhook_id: int, changes: dict[str, Any]) -> KnownWebhook:
    """Change some fields of a webhook; raise NotFound."""
    find(tx, webhook_id)
    if "events" in changes:
        changes = changes | {"events": json.dumps(changes["events"])}
    if changes:
        tx.execute(Webhook.update(changes).where(Webhook.id == webhook_id))
    return find(tx, webhook_id)


def remove(tx: Transaction, webhook_id: int) -> None:
    """Delete a webhook and its deliveries; raise NotFound."""
    if not tx.execute(Webhook.delete().where(Webhook.id == webhook_id)):
        raise NotFound("webhook")
    of_webhook = Delivery.webhook_id == webhook_id
    event_ids = [event_id for (event_id,) in tx.rows(Delivery.select(Delivery.event_id).where(of_webhook))]
    tx.execute(Delivery.delete().where(of_webhook))
    events.forget(tx, event_ids)


def ping(tx: Transaction, webhook_id: int) -> deliveries.KnownDelivery:
    """Record a ping for a webhook; return its delivery. Raises NotFound, WebhookInactive."""
    must_be_active(tx, webhook_id)
    return deliveries.find(tx, webhook_id, events.add_ping(tx, webhook_id))


def redeliver(tx: Transaction, webhook_id: int, message_id: str) -> deliveries.KnownDelivery:
    """Have an event sent to a webhook again; return its delivery. Raises NotFound, WebhookInactive."""
    must_be_active(tx, webhook_id)
    return deliveries.repeat(tx, webhook_id, message_id)


def must_be_active(reader: Reader, webhook_id: int) -> None:
    """Raise NotFound if there is no such webhook, WebhookInactive if it is turned off: nothing would be sent."""
    if not find(reader, webhook_id).active:
        raise WebhookInactive
