"""The outbox: the deliveries that are due, the results of attempts, and how many are kept."""

from collections.abc import Iterator
from datetime import timedelta
from typing import NamedTuple

from peewee import Case, ModelSelect, fn

from blogapi.clock import earlier
from blogapi.storage.engine import Reader, Transaction
from blogapi.storage.models import Delivery, Event, Webhook
from blogapi.storage.query import AsBytes, Param, Prepared
from blogapi.storage.webhooks import remove_deliveries

MAX_PENDING = 10_000  # deliveries of a webhook
MAX_FINISHED = 1000  # deliveries of a webhook
MAX_PRUNED = 100  # in one transaction; other writes run in between
KEPT = timedelta(days=30)  # finished deliveries
RETRY_EVERY = 5  # every fifth message to a webhook is a retry, if one is due
GONE = 410  # the status by which a receiver ends its webhook


class DueWebhook(NamedTuple):
    """A webhook with deliveries that are due."""

    id: int
    url: str
    secret: str


class Message(NamedTuple):
    """An event to send to a webhook."""

    event_id: int
    id: str
    payload: bytes | None  # None if it is damaged
    attempts: int  # so far
    repeats: int


class Attempt(NamedTuple):
    """The result of sending an event to a webhook: the status of the answer, or an error."""

    webhook_id: int
    url: str
    event_id: int
    repeats: int  # when it began
    status: int | None
    error: str | None
    state: str
    next_attempt_at: str | None


def due_webhooks(reader: Reader) -> Iterator[DueWebhook]:
    """Yield each active webhook with deliveries that are due."""
    return map(DueWebhook._make, reader.rows(_due_webhooks, now=reader.now))


def due(reader: Reader, webhook_id: int, limit: int, sent: int) -> list[Message]:
    """Return the next messages for a webhook, after `sent` others.

    First attempts and repeated deliveries are ordered by event, retries by time.
    """
    first = list(reader.rows(_first, webhook_id=webhook_id, limit=limit))
    retries = list(reader.rows(_retries, webhook_id=webhook_id, now=reader.now, limit=limit))
    messages = []
    while len(messages) < limit and (first or retries):
        is_retry = (sent + len(messages) + 1) % RETRY_EVERY == 0
        source = retries if retries and (is_retry or not first) else first
        messages.append(Message._make(source.pop(0)))
    return messages


_is_due = (Delivery.state == "pending") & (Delivery.next_attempt_at <= Param("now"))
_due_webhooks = Prepared(
    Webhook.select(Webhook.id, Webhook.url, Webhook.secret).where(
        Webhook.active == 1,
        fn.EXISTS(Delivery.select(Delivery.event_id).where(Delivery.webhook_id == Webhook.id, _is_due)),
    )
)
_messages = (
    Delivery.select(Event.id, Event.message_id, AsBytes(Event.payload), Delivery.attempts, Delivery.repeats)
    .join(Event, on=Event.id == Delivery.event_id)
    .where(Delivery.webhook_id == Param("webhook_id"), Delivery.state == "pending")
    .limit(Param("limit"))
)
_first = Prepared(_messages.where(Delivery.next_attempt_at == "").order_by(Delivery.event_id))
_retries = Prepared(
    _messages.where(Delivery.next_attempt_at > "", Delivery.next_attempt_at <= Param("now")).order_by(
        Delivery.next_attempt_at, Delivery.event_id
    )
)


def record(tx: Transaction, attempts: list[Attempt]) -> None:
    """Record the results of attempts; 410 turns a webhook off."""
    tx.execute_many(_record, [attempt._asdict() for attempt in attempts])
    tx.execute_many(_turn_off, [attempt._asdict() for attempt in attempts if attempt.status == GONE])


# A delivery that was repeated during the attempt is sent again, regardless of the result.
_same = Delivery.repeats == Param("repeats")
_record = Prepared(
    Delivery.update(
        {
            Delivery.attempts: Delivery.attempts + 1,
            Delivery.last_status: Param("status"),
            Delivery.last_error: Param("error"),
            Delivery.state: Case(None, [(_same, Param("state"))], "pending"),
            Delivery.next_attempt_at: Case(None, [(_same, Param("next_attempt_at"))], ""),
        }
    ).where(Delivery.webhook_id == Param("webhook_id"), Delivery.event_id == Param("event_id"))
)
# Unless the webhook's url has changed.
_turn_off = Prepared(
    Webhook.update({Webhook.active: 0}).where(Webhook.id == Param("webhook_id"), Webhook.url == Param("url"))
)


# Pruning, in several transactions, so that other writes run in between


def prune(tx: Transaction, webhook_id: int) -> int:
    """Delete some finished deliveries of a webhook beyond the limit, or older than KEPT; return how many."""
    finished = _of_webhook(webhook_id).where(Delivery.state != "pending")
    surplus = finished.order_by(Delivery.event_id.desc()).offset(MAX_FINISHED)
    old = finished.join(Event, on=Event.id == Delivery.event_id).where(Event.created_at <= earlier(tx.now, KEPT))
    event_ids = _ids(tx, surplus) or _ids(tx, old)
    remove_deliveries(tx, (Delivery.webhook_id == webhook_id) & Delivery.event_id.in_(event_ids))
    return len(event_ids)


def drop(tx: Transaction, webhook_id: int) -> int:
    """Mark some pending deliveries of a webhook beyond the limit as failed; return how many."""
    pending = _of_webhook(webhook_id).where(Delivery.state == "pending")
    event_ids = _ids(tx, pending.order_by(Delivery.event_id.desc()).offset(MAX_PENDING))
    error = f"dropped: more than {MAX_PENDING:,} later deliveries were pending"
    failed = Delivery.update(state="failed", last_status=None, last_error=error, next_attempt_at=None)
    tx.execute(failed.where(Delivery.webhook_id == webhook_id, Delivery.event_id.in_(event_ids)))
    return len(event_ids)


def _of_webhook(webhook_id: int) -> ModelSelect:
    return Delivery.select(Delivery.event_id).where(Delivery.webhook_id == webhook_id)


def _ids(reader: Reader, query: ModelSelect) -> list[int]:
    return [event_id for (event_id,) in reader.rows(query.limit(MAX_PRUNED))]
