"""The deliveries: what became, or is to become, of an event at a webhook."""

from collections.abc import Iterator
from datetime import timedelta
from typing import NamedTuple

from peewee import Case, fn

from blogapi.clock import earlier
from blogapi.storage import events
from blogapi.storage.errors import NotFound
from blogapi.storage.models import Delivery, Event, Webhook
from blogapi.storage.query import Param, Prepared, Statement
from blogapi.storage.transaction import Reader, Transaction

MAX_LISTED = 100
MAX_FINISHED = 1000  # deliveries of a webhook that are kept
KEPT = timedelta(days=30)  # finished deliveries
GONE = 410  # the status by which a receiver says that it wants no more


class KnownDelivery(NamedTuple):
    """A delivery as it is shown."""

    id: str
    event: str
    created_at: str
    state: str
    attempts: int
    last_status: int | None
    last_error: str | None
    next_attempt_at: str | None  # "" for at once


class DueWebhook(NamedTuple):
    """A webhook that something is to be sent to."""

    id: int
    url: str
    secret: str


class Message(NamedTuple):
    """An event that is to be sent to a webhook."""

    event_id: int
    id: str
    payload: str
    attempts: int  # so far
    repeats: int


class Attempt(NamedTuple):
    """What came of sending an event to a webhook: the status of the answer, or an error."""

    webhook_id: int
    url: str
    event_id: int
    repeats: int  # when it began
    status: int | None
    error: str | None
    state: str
    next_attempt_at: str | None


def listing(reader: Reader, webhook_id: int) -> Iterator[KnownDelivery]:
    """Give the newest deliveries of a webhook, newest first."""
    newest = _deliveries.where(Delivery.webhook_id == webhook_id).order_by(Delivery.event_id.desc())
    return map(KnownDelivery._make, reader.rows(newest.limit(MAX_LISTED)))


def find(reader: Reader, webhook_id: int, event_id: int) -> KnownDelivery:
    """Return a delivery that is there."""
    of_both = (Delivery.webhook_id == webhook_id) & (Delivery.event_id == event_id)
    return KnownDelivery._make(reader.row(_deliveries.where(of_both)))


_deliveries = Delivery.select(
    Event.message_id,
    Event.type,
    Event.created_at,
    Delivery.state,
    Delivery.attempts,
    Delivery.last_status,
    Delivery.last_error,
    Delivery.next_attempt_at,
).join(Event, on=Event.id == Delivery.event_id)


def repeat(tx: Transaction, webhook_id: int, message_id: str) -> KnownDelivery:
    """Have an event sent to a webhook again, whatever became of it so far; return the delivery. Raises NotFound."""
    of_message = (Delivery.webhook_id == webhook_id) & (Event.message_id == message_id)
    found = tx.row(Delivery.select(Event.id).join(Event, on=Event.id == Delivery.event_id).where(of_message))
    if found is None:
        raise NotFound("delivery")
    again = {"state": "pending", "next_attempt_at": "", "repeats": Delivery.repeats + 1}
    tx.execute(Delivery.update(again).where(Delivery.webhook_id == webhook_id, Delivery.event_id == found[0]))
    return find(tx, webhook_id, found[0])


# For the sender


def due_webhooks(reader: Reader) -> Iterator[DueWebhook]:
    """Give each active webhook that something is to be sent to now."""
    return map(DueWebhook._make, reader.rows(_due_webhooks, now=reader.now))


def due(reader: Reader, webhook_id: int, limit: int) -> list[Message]:
    """Return what is to be sent to a webhook now: first attempts in the order of the events, then repeated ones."""
    return list(map(Message._make, reader.rows(_due, webhook_id=webhook_id, now=reader.now, limit=limit)))


_is_due = (Delivery.state == "pending") & (Delivery.next_attempt_at <= Param("now"))
_due_webhooks = Prepared(
    Webhook.select(Webhook.id, Webhook.url, Webhook.secret).where(
        Webhook.active, fn.EXISTS(Delivery.select(Delivery.event_id).where(Delivery.webhook_id == Webhook.id, _is_due))
    )
)
_due = Prepared(
    Delivery.select(Event.id, Event.message_id, Event.payload, Delivery.attempts, Delivery.repeats)
    .join(Event, on=Event.id == Delivery.event_id)
    .where(Delivery.webhook_id == Param("webhook_id"), _is_due)
    .order_by(Delivery.next_attempt_at, Delivery.event_id)
    .limit(Param("limit"))
)


def record(tx: Transaction, attempts: list[Attempt]) -> None:
    """Write down what came of attempts; 410 turns a webhook off."""
    tx.execute_many(_record, [attempt._asdict() for attempt in attempts])
    tx.execute_many(_turn_off, [attempt._asdict() for attempt in attempts if attempt.status == GONE])
    for webhook_id in {attempt.webhook_id for attempt in attempts}:
        prune(tx, webhook_id)


# Where it was asked for again during the attempt, it is to be sent again, whatever came of this.
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
# Not where the webhook has another url by now, whose receiver has not said that it wants no more.
_turn_off = Prepared(
    Webhook.update({Webhook.active: False}).where(Webhook.id == Param("webhook_id"), Webhook.url == Param("url"))
)


def prune(tx: Transaction, webhook_id: int, old: str = "") -> None:
    """Delete the finished deliveries of a webhook but the newest MAX_FINISHED, and all of events up to `old`."""
    deleted = tx.rows(_prune, webhook_id=webhook_id, old=old, last=MAX_FINISHED - 1)
    events.forget(tx, [event_id for (event_id,) in deleted])


def prune_old(tx: Transaction) -> None:
    """Delete the finished deliveries that are older than KEPT."""
    for (webhook_id,) in list(tx.rows(Webhook.select(Webhook.id))):
        prune(tx, webhook_id, earlier(tx.now, KEPT))


# Events are in the order of their times: the first that is not too old ends those that are. INDEXED BY: SQLite would
# take the primary key, and go through all that is pending.
_prune = Statement(
    """
    DELETE FROM delivery INDEXED BY delivery_finished
    WHERE webhook_id = ? AND state <> 'pending' AND event_id < max(
        ifnull((SELECT id FROM event WHERE created_at > ? ORDER BY id LIMIT 1), (SELECT max(id) + 1 FROM event)),
        ifnull((
            SELECT event_id FROM delivery INDEXED BY delivery_finished
            WHERE webhook_id = ? AND state <> 'pending'
            ORDER BY event_id DESC LIMIT 1 OFFSET ?
        ), 0)
    )
    RETURNING event_id
    """,
    [Param("webhook_id"), Param("old"), Param("webhook_id"), Param("last")],
)
