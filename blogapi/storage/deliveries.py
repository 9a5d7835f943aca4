"""The deliveries: what became, or is to become, of an event at a webhook.

A webhook has at most MAX_PENDING (but for those of the last minute) and MAX_FINISHED of them. An event takes about 1 kB
on disk, 28 kB where every text is as long as it can be and of 4 bytes a character. That makes 11 MB, or 310 MB at most,
however many webhooks are sent the same events; as much for each of them where no two are.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import NamedTuple

from peewee import Case, fn

from blogapi.clock import earlier
from blogapi.storage import events
from blogapi.storage.engine import Reader, Transaction
from blogapi.storage.errors import NotFound
from blogapi.storage.models import Delivery, Event, Webhook
from blogapi.storage.query import AsBytes, Each, Param, Prepared, Statement

MAX_LISTED = 100
MAX_PENDING = 10_000  # deliveries of a webhook
MAX_DROPPED = 100  # in one transaction: others write in between
MAX_FINISHED = 1000  # deliveries of a webhook that are kept
RETRY_EVERY = 5  # every fifth message to a webhook is a retry, if one is due
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
    payload: bytes | None  # None if it is damaged
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


def listing(reader: Reader, webhook_id: int, limit: int = MAX_LISTED) -> Iterator[KnownDelivery]:
    """Yield the newest deliveries of a webhook, newest first."""
    newest = _deliveries.where(Delivery.webhook_id == webhook_id).order_by(Delivery.event_id.desc())
    return map(KnownDelivery._make, reader.rows(newest.limit(limit)))


def count_by_state(reader: Reader, webhook_id: int) -> dict[str, int]:
    """Return how many deliveries of a webhook are in each state."""
    return dict(reader.rows(_counts, webhook_id=webhook_id))


_counts = Prepared(
    Delivery.select(Delivery.state, fn.COUNT(Delivery.event_id))
    .where(Delivery.webhook_id == Param("webhook_id"))
    .group_by(Delivery.state)
)


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
    """Yield each active webhook that something is to be sent to now."""
    return map(DueWebhook._make, reader.rows(_due_webhooks, now=reader.now))


def due(reader: Reader, webhook_id: int, limit: int, sent: int) -> list[Message]:
    """Return what is to be sent to a webhook now, which has been sent so many messages.

    First attempts and what was asked for again come in the order of the events, retries as they are due.
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
    Webhook.update({Webhook.active: 0}).where(Webhook.id == Param("webhook_id"), Webhook.url == Param("url"))
)


def prune(tx: Transaction, webhook_id: int, old: str = "") -> None:
    """Delete the finished deliveries of a webhook but the newest MAX_FINISHED, and all of events up to `old`."""
    deleted = tx.rows(_prune, webhook_id=webhook_id, old=old, last=MAX_FINISHED - 1)
    events.forget(tx, [event_id for (event_id,) in deleted])


def prune_old(tx: Transaction, webhook_id: int) -> None:
    """Delete the finished deliveries of a webhook that are older than KEPT."""
    prune(tx, webhook_id, earlier(tx.now, KEPT))


# Events are in the order of their times: the first that is not too old ends those that are. INDEXED BY: SQLite would
# take the primary key, and go through all that is pending.
_PRUNE = [Param("webhook_id"), Param("webhook_id"), Param("old"), Param("webhook_id"), Param("last")]
_prune = Each(
    sqlite=Statement(
        """
    DELETE FROM delivery INDEXED BY delivery_finished
    WHERE webhook_id = ? AND state <> 'pending' AND event_id < max(
        ifnull((
            SELECT event_id FROM delivery INDEXED BY delivery_finished CROSS JOIN event ON event.id = event_id
            WHERE webhook_id = ? AND state <> 'pending' AND created_at > ?
            ORDER BY event_id LIMIT 1
        ), 9223372036854775807),
        ifnull((
            SELECT event_id FROM delivery INDEXED BY delivery_finished
            WHERE webhook_id = ? AND state <> 'pending'
            ORDER BY event_id DESC LIMIT 1 OFFSET ?
        ), 0)
    )
    RETURNING event_id
    """,
        _PRUNE,
    ),
    postgresql=Statement(
        """
    DELETE FROM delivery
    WHERE webhook_id = %s AND state <> 'pending' AND event_id < greatest(
        coalesce((
            SELECT event_id FROM delivery JOIN event ON event.id = event_id
            WHERE webhook_id = %s AND state <> 'pending' AND created_at > %s
            ORDER BY event_id LIMIT 1
        ), 9223372036854775807),
        coalesce((
            SELECT event_id FROM delivery
            WHERE webhook_id = %s AND state <> 'pending'
            ORDER BY event_id DESC LIMIT 1 OFFSET %s
        ), 0)
    )
    RETURNING event_id
    """,
        _PRUNE,
    ),
)


def last_surplus(reader: Reader, webhook_id: int) -> int | None:
    """Return the newest event whose delivery is pending although MAX_PENDING of later ones are; None without one."""
    found = reader.row(_last_surplus, webhook_id=webhook_id)
    return found and found[0]


_is_pending = (Delivery.webhook_id == Param("webhook_id")) & (Delivery.state == "pending")
_last_surplus = Prepared(
    Delivery.select(Delivery.event_id)
    .where(_is_pending)
    .order_by(Delivery.event_id.desc())
    .limit(1)
    .offset(MAX_PENDING)
)


def drop(tx: Transaction, webhook_id: int, last: int) -> int:
    """Let pending deliveries of a webhook up to event `last` fail, MAX_DROPPED of them at most; return how many."""
    dropped = tx.execute(_drop, webhook_id=webhook_id, last=last)
    prune(tx, webhook_id)
    return dropped


_drop = Prepared(
    Delivery.update(
        state="failed",
        last_status=None,
        last_error=f"dropped: more than {MAX_PENDING:,} later deliveries were pending",
        next_attempt_at=None,
    ).where(
        Delivery.webhook_id == Param("webhook_id"),
        Delivery.event_id.in_(
            Delivery.select(Delivery.event_id)
            .where(_is_pending, Delivery.event_id <= Param("last"))
            .order_by(Delivery.event_id)
            .limit(MAX_DROPPED)
        ),
    )
)
