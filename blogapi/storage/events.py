"""The events: what happened, written in the very transaction in which it did (a transactional outbox)."""

import secrets
from collections.abc import Iterable, Iterator
from typing import Any

from blogapi.storage import documents
from blogapi.storage.engine import Transaction
from blogapi.storage.models import Delivery, Event, Webhook
from blogapi.storage.query import Each, Param, Prepared, Statement


def record(tx: Transaction, post: dict[str, Any], *types: str) -> None:
    """Record what happened to a post, in that order, for the webhooks that want it.

    One look at an empty table is all that it costs where there are no webhooks.
    """
    for name, receivers in _receivers(tx, types):
        data = {field: value for field, value in post.items() if field != "content"}
        _record(tx, name, {"post": data}, receivers)


def record_tag(tx: Transaction, name: str, data: dict[str, Any]) -> None:
    """Record what happened to a tag, for the webhooks that want it."""
    for _, receivers in _receivers(tx, [name]):
        _record(tx, name, data, receivers)


def _receivers(tx: Transaction, types: Iterable[str]) -> Iterator[tuple[str, list[int]]]:
    """Yield those of the types that some webhook wants, and these webhooks."""
    webhooks = list(tx.rows(_active_webhooks))
    for name in types:
        receivers = [webhook_id for webhook_id, events in webhooks if events and f'"{name}"' in events]
        if receivers:
            yield name, receivers


def _record(tx: Transaction, name: str, data: dict[str, Any], receivers: list[int]) -> None:
    event_id = add(tx, name, data)
    tx.execute_many(_deliver, [{"webhook_id": each, "event_id": event_id} for each in receivers])


_active_webhooks = Prepared(Webhook.select(Webhook.id, Webhook.events).where(Webhook.active == 1))
_deliver = Prepared(
    Delivery.insert(
        {
            Delivery.webhook_id: Param("webhook_id"),
            Delivery.event_id: Param("event_id"),
            Delivery.state: "pending",
            Delivery.next_attempt_at: "",  # at once, whatever the clock says
        }
    )
)


def add_ping(tx: Transaction, webhook_id: int) -> int:
    """Record a ping for a webhook, whatever its events; return the id of the event."""
    event_id = add(tx, "ping", {})
    tx.execute(_deliver, webhook_id=webhook_id, event_id=event_id)
    return event_id


def add(tx: Transaction, name: str, data: dict[str, Any]) -> int:
    """Add an event; return its id. The payload is as Standard Webhooks has it."""
    payload = documents.dump({"type": name, "timestamp": tx.now, "data": data})
    message_id = f"msg_{secrets.token_urlsafe(16)}"
    return tx.insert(_add, message_id=message_id, type=name, payload=payload, created_at=tx.now)


_add = Prepared(
    Event.insert({getattr(Event, name): Param(name) for name in ("message_id", "type", "payload", "created_at")})
)


def forget(tx: Transaction, event_ids: Iterable[int]) -> None:
    """Delete those of the events that have no delivery any more."""
    tx.execute_many(_forget, [{"event_id": event_id} for event_id in event_ids])


# CROSS JOIN: of the few webhooks each is looked for, and not all deliveries gone through.
_forget = Each(
    sqlite=Statement(
        """
    DELETE FROM event WHERE id = ? AND NOT EXISTS (
        SELECT 1 FROM webhook CROSS JOIN delivery ON webhook_id = webhook.id AND event_id = event.id
    )
    """,
        [Param("event_id")],
        ["event_id"],
    ),
    postgresql=Statement(
        """
    DELETE FROM event WHERE id = %s AND NOT EXISTS (
        SELECT 1 FROM webhook JOIN delivery ON webhook_id = webhook.id AND event_id = event.id
    )
    """,
        [Param("event_id")],
        ["event_id"],
    ),
)
