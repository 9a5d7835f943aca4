"""Store webhooks, the events recorded for them, and their deliveries (a transactional outbox).

A webhook keeps at most MAX_PENDING pending and MAX_FINISHED finished deliveries. An event is stored once for all
webhooks, and takes about 1 kB on disk, or at most 28 kB. With 11,000 deliveries, a webhook therefore takes up to 11 MB
for ordinary posts, and never more than 310 MB.
"""

import json
import secrets
from base64 import b64encode
from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta
from typing import Any, NamedTuple

from peewee import Expression, fn

from blogapi import documents
from blogapi.clock import earlier, later
from blogapi.storage.engine import Compiled, Placeholder, Reader, Transaction, placeholders
from blogapi.storage.errors import DoesNotExist, Rejected
from blogapi.storage.models import SELECT_WEBHOOKS, Webhook, model


class EventRule(NamedTuple):
    is_default: bool = True  # whether a webhook that was created without `events` receives it
    is_groupable: bool = True  # whether `after_seconds` groups it with other events


PROPOSED, SITE_CHANGED = "post.proposed", "site.changed"
POST_EVENTS = "post.created", "post.updated", "post.published", "post.deleted"
EVENT_RULES = dict.fromkeys((*POST_EVENTS, "tag.updated", "tag.deleted", "ping"), EventRule()) | {
    PROPOSED: EventRule(is_default=False, is_groupable=False),
    SITE_CHANGED: EventRule(is_default=False),
}
EVENTS = tuple(EVENT_RULES)
DEFAULT_EVENTS = tuple(name for name, rule in EVENT_RULES.items() if rule.is_default)
MAX_WEBHOOKS = 50
MAX_LISTED = 100  # maximum number of deliveries in a list
MAX_PENDING = 10_000  # maximum number of a webhook's pending deliveries
MAX_FINISHED = 1000  # maximum number of a webhook's finished deliveries
MAX_PRUNED = 100  # a transaction deletes or changes at most this many deliveries; other clients can write in between
DELIVERY_TTL = timedelta(days=30)  # how long finished deliveries are kept
INACTIVE = "active", "the webhook is inactive; set `active` to true first"
BODIES = EVENT_BODY, DISPATCH_BODY = "event", "dispatch"  # as in Standard Webhooks and in GitHub's repository_dispatch
SECRET_PREFIX = "whsec_"

Event = model("event")
Delivery = model("delivery")


class KnownWebhook(NamedTuple):
    """A webhook without its secret."""

    id: int
    url: str
    events: list[str]  # empty if the column is damaged
    active: bool
    created_at: str
    header_names: list[str]  # the values of the headers are never shown
    after_seconds: int
    body: str  # one of BODIES


class KnownDelivery(NamedTuple):
    """A delivery of an event to a webhook."""

    id: str
    event: str
    created_at: str
    state: str
    attempts: int
    last_status: int | None
    last_error: str | None
    next_attempt_at: str | None  # "" if the delivery is due at once


# Webhooks


def listing(reader: Reader) -> list[KnownWebhook]:
    """Return all webhooks, oldest first."""
    return list(map(_known, reader.rows(_webhooks.order_by(Webhook.id))))


def get(reader: Reader, webhook_id: int) -> KnownWebhook:
    """Return a webhook. Raises DoesNotExist."""
    return _known(reader.get("webhook", _webhooks.where(Webhook.id == webhook_id)))


_options = Webhook.headers, Webhook.after_seconds, Webhook.body
_webhooks = Webhook.select(Webhook.id, Webhook.url, Webhook.events, Webhook.active, Webhook.created_at, *_options)


def _known(row: tuple) -> KnownWebhook:
    webhook_id, url, events, active, created_at, headers, *options = row
    return KnownWebhook(webhook_id, url, _names(events), bool(active), created_at, _names(headers), *options)


def _names(text: str) -> list[str]:
    """Return a JSON array's items or an object's names. Return [] for damaged JSON, so that the webhook is listed."""
    with suppress(TypeError, ValueError):
        return [*json.loads(text)]
    return []


def add(tx: Transaction, url: str, events: list[str], secret: str = "", **options: Any) -> tuple[KnownWebhook, str]:
    """Create a webhook. Return it and its secret. Raises Rejected if there are too many webhooks."""
    secret = secret or SECRET_PREFIX + b64encode(secrets.token_bytes(32)).decode()
    if tx.one(Webhook.select(fn.COUNT(Webhook.id)))[0] >= MAX_WEBHOOKS:
        raise Rejected("webhooks", f"there are {MAX_WEBHOOKS} already; delete one first")
    tx.active_webhooks = None  # Other operations in the transaction must see the change.
    row = {"url": url, "events": events, "active": 1, "secret": secret, "created_at": tx.now} | options
    return get(tx, tx.insert(Webhook.insert(_as_columns(row)))), secret


def change(tx: Transaction, webhook_id: int, changes: dict[str, Any]) -> KnownWebhook:
    """Change some fields of a webhook. Raises DoesNotExist."""
    tx.active_webhooks = None
    if changes:
        tx.execute(Webhook.update(_as_columns(changes)).where(Webhook.id == webhook_id))
    return get(tx, webhook_id)


def _as_columns(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: json.dumps(value) if name in ("events", "headers") else value for name, value in fields.items()}


def delete(tx: Transaction, webhook_id: int) -> None:
    """Delete a webhook and its deliveries. Raises DoesNotExist."""
    tx.active_webhooks = None
    if not tx.execute(Webhook.delete().where(Webhook.id == webhook_id)):
        raise DoesNotExist("webhook")
    _remove_deliveries(tx, Delivery.webhook_id == webhook_id)


# Events


def record(tx: Transaction, data: dict[str, Any], *types: str) -> None:
    """Record events, in the order given, for the webhooks that subscribe to them. A post's content is not recorded."""
    for name in types:
        if tx.active_webhooks is None:
            tx.active_webhooks = list(tx.rows(SELECT_WEBHOOKS))
        quoted = f'"{name}"'  # as it appears in the JSON array of a webhook's events
        receivers = [(webhook, after) for webhook, events, after in tx.active_webhooks if quoted in (events or "")]
        if receivers:
            _record(tx, name, data, receivers)


def _record(tx: Transaction, name: str, data: dict[str, Any], receivers: Iterable[tuple[int, int]]) -> None:
    if "post" in data:
        data = data | {"post": {field: value for field, value in data["post"].items() if field != "content"}}
    payload = documents.dump({"type": name, "timestamp": tx.now, "data": data})  # as in Standard Webhooks
    message_id = f"msg_{secrets.token_urlsafe(16)}"
    event_id = tx.insert(INSERT_EVENT, message_id=message_id, type=name, payload=payload, created_at=tx.now)
    rows = []
    for webhook_id, after in receivers:
        due = _merge_pending(tx, webhook_id, after) if after and EVENT_RULES[name].is_groupable else ""
        rows.append({"webhook_id": webhook_id, "event_id": event_id, "due": due})
    tx.execute_many(INSERT_DELIVERY, rows)


def _merge_pending(tx: Transaction, webhook_id: int, after_seconds: int) -> str:
    """Delete the delayed deliveries that a new one replaces, and return when the new one is due."""
    waits = (Delivery.webhook_id == webhook_id) & (Delivery.state == "pending") & (Delivery.attempts == 0)
    waits &= Delivery.next_attempt_at > tx.now
    (due,) = tx.one(Delivery.select(fn.MIN(Delivery.next_attempt_at)).where(waits))
    if due:
        _remove_deliveries(tx, waits)
    latest = later(tx.now, timedelta(seconds=after_seconds + 1))  # Times are rounded down to whole seconds.
    return min(due or latest, latest)  # If the clock was set back, the pending deliveries are due too late.


INSERT_EVENT = Compiled(Event.insert(placeholders(Event, "message_id", "type", "payload", "created_at")))
# An empty next_attempt_at means that the delivery is due at once. Storing the current time instead would delay the
# delivery if the clock were set back afterwards.
_pending = {Delivery.state: "pending", Delivery.next_attempt_at: Placeholder("due")}
INSERT_DELIVERY = Compiled(Delivery.insert(placeholders(Delivery, "webhook_id", "event_id") | _pending))


# Deliveries

_known_columns = (getattr(Delivery, name) for name in KnownDelivery._fields[3:])
deliveries_query = Delivery.select(Event.message_id, Event.type, Event.created_at, *_known_columns, Event.id)
deliveries_query = deliveries_query.join(Event, on=Event.id == Delivery.event_id).order_by(Delivery.event_id.desc())


def deliveries(reader: Reader, webhook_id: int, limit: int = MAX_LISTED) -> list[KnownDelivery]:
    """Return the newest deliveries of a webhook, newest first."""
    newest = deliveries_query.where(Delivery.webhook_id == webhook_id).limit(limit)
    return [KnownDelivery._make(known) for *known, _ in reader.rows(newest)]


def subjects(reader: Reader, webhook_id: int, limit: int) -> dict[str, str]:
    """Return the subjects (post titles or tags) of a webhook's newest deliveries by delivery id, skipping pings."""
    newest = deliveries_query.where(Delivery.webhook_id == webhook_id, Event.type != "ping").limit(limit)
    names = {}
    for message_id, payload in reader.rows(newest.select(Event.message_id, Event.payload)):
        with suppress(AttributeError, LookupError, TypeError, ValueError):  # raised if the payload is damaged
            data = json.loads(payload)["data"]
            names[message_id] = data["post"]["title"] if "post" in data else data["tag"]["name"]
    return names


def count_by_state(reader: Reader, webhook_id: int) -> dict[str, int]:
    counts = Delivery.select(Delivery.state, fn.COUNT(Delivery.event_id)).group_by(Delivery.state)
    return dict(reader.rows(counts.where(Delivery.webhook_id == webhook_id)))


def ping(tx: Transaction, webhook_id: int) -> KnownDelivery:
    """Record a ping, even for a webhook without this event. Raises DoesNotExist, or Rejected if the webhook is off."""
    if not get(tx, webhook_id).active:
        raise Rejected(*INACTIVE)
    # A sample post lets users of tools such as Zapier and Make map its fields.
    _record(tx, "ping", {"post": documents.EXAMPLE}, [(webhook_id, 0)])
    return deliveries(tx, webhook_id, 1)[0]


def redeliver(tx: Transaction, webhook_id: int, message_id: str) -> KnownDelivery:
    """Send an event again, whatever its delivery's state. Raises DoesNotExist, or Rejected if the webhook is off."""
    active = get(tx, webhook_id).active
    is_delivery = (Delivery.webhook_id == webhook_id) & (Event.message_id == message_id)
    *known, event_id = tx.get("delivery", deliveries_query.where(is_delivery))
    if not active:
        raise Rejected(*INACTIVE)
    pending: dict[str, Any] = {"state": "pending", "next_attempt_at": ""}
    repeated = Delivery.update(pending | {"repeats": Delivery.repeats + 1})
    tx.execute(repeated.where(Delivery.webhook_id == webhook_id, Delivery.event_id == event_id))
    return KnownDelivery._make(known)._replace(**pending)


# Pruning


def prune(tx: Transaction, webhook_id: int) -> int:
    """Delete some finished deliveries over the limit or older than DELIVERY_TTL, and return how many were deleted."""
    finished = Delivery.select(Delivery.event_id).where(Delivery.webhook_id == webhook_id, Delivery.state != "pending")
    surplus = finished.order_by(Delivery.event_id.desc()).offset(MAX_FINISHED).limit(MAX_PRUNED)
    is_old = Event.created_at <= earlier(tx.now, DELIVERY_TTL)
    old = finished.join(Event, on=Event.id == Delivery.event_id).where(is_old)
    is_chosen = Delivery.event_id.in_(surplus) | Delivery.event_id.in_(old.limit(MAX_PRUNED))
    return _remove_deliveries(tx, (Delivery.webhook_id == webhook_id) & is_chosen)


def fail_surplus(tx: Transaction, webhook_id: int) -> int:
    """Mark some of a webhook's pending deliveries as failed if they exceed the limit. Return how many were marked."""
    pending = Delivery.select(Delivery.event_id).where(Delivery.webhook_id == webhook_id, Delivery.state == "pending")
    surplus = tx.rows(pending.order_by(Delivery.event_id.desc()).offset(MAX_PENDING).limit(MAX_PRUNED))
    # This is not a subquery of the UPDATE, because PostgreSQL might then run it for every row.
    chosen = [event_id for (event_id,) in surplus]
    error = f"dropped: more than {MAX_PENDING:,} later deliveries were pending"
    failed = Delivery.update(state="failed", last_status=None, last_error=error, next_attempt_at=None)
    return tx.execute(failed.where(Delivery.webhook_id == webhook_id, Delivery.event_id.in_(chosen)))


def _remove_deliveries(tx: Transaction, condition: Expression) -> int:
    """Delete deliveries, and events that have no deliveries left. Return how many deliveries were deleted."""
    removed = list(tx.rows(Delivery.delete().where(condition).returning(Delivery.event_id)))
    tx.execute_many(DELETE_EVENT, [{"event_id": event_id} for (event_id,) in removed])
    return len(removed)


_of_webhook = Delivery.webhook_id.in_(Webhook.select(Webhook.id))  # makes the query use the primary key
_of_event = Delivery.select(Delivery.event_id).where(_of_webhook, Delivery.event_id == Event.id)
DELETE_EVENT = Compiled(Event.delete().where(Event.id == Placeholder("event_id"), ~fn.EXISTS(_of_event)))
