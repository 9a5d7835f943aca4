"""The outbox of webhooks: the deliveries that are due, and the results of attempts."""

from itertools import chain, islice
from typing import NamedTuple

from peewee import Case, fn

from blogapi.storage.engine import AsBytes, Compiled, Placeholder, Reader, Transaction
from blogapi.storage.models import Webhook
from blogapi.wings.webhooks.storage import Delivery, Event

RETRY_EVERY = 5  # every fifth message to a webhook is a retry, if one is due
GONE = 410  # status with which a receiver turns its webhook off


class Message(NamedTuple):
    """An event to send to a webhook."""

    event_id: int
    id: str
    payload: bytes | None  # None if it is damaged
    attempts: int  # attempts so far
    repeats: int


class AttemptResult(NamedTuple):
    """The result of an attempt: the status of the answer, or an error."""

    status: int | None = None
    error: str | None = None
    retry_after: int = 0  # seconds


class Attempt(NamedTuple):
    """An attempt to send a message to a webhook, and the state of the delivery after it."""

    webhook_id: int
    url: str
    message: Message  # as it was before the attempt
    result: AttemptResult
    state: str
    next_attempt_at: str | None


def due_webhooks(reader: Reader) -> list[tuple[int, str, str, str, str]]:
    """Return id, url, secret, headers (JSON) and body format of each active webhook with due deliveries."""
    return list(reader.rows(DUE_WEBHOOKS, now=reader.now))


def due(reader: Reader, webhook_id: int, limit: int, sent: int) -> list[Message]:
    """Return the next messages for a webhook that has already been sent `sent` messages.

    Messages that are due at once come in the order of their events; retries and merged events, by due time.
    """
    values = {"webhook_id": webhook_id, "now": reader.now, "limit": limit}
    first, retries = (iter(list(reader.rows(query, **values))) for query in (FIRST_MESSAGES, TIMED_MESSAGES))
    messages: list[Message] = []
    for number in range(sent + 1, sent + limit + 1):
        sources = (retries, first) if number % RETRY_EVERY == 0 else (first, retries)
        messages += map(Message._make, islice(chain(*sources), 1))
    return messages


_is_due = (Delivery.state == "pending") & (Delivery.next_attempt_at <= Placeholder("now"))
_has_due = fn.EXISTS(Delivery.select(Delivery.event_id).where(Delivery.webhook_id == Webhook.id, _is_due))
DUE_WEBHOOKS = Compiled(
    Webhook.select(Webhook.id, Webhook.url, Webhook.secret, Webhook.headers, Webhook.body).where(
        Webhook.active == 1, _has_due
    )
)
_messages = (
    Delivery.select(Event.id, Event.message_id, AsBytes(Event.payload), Delivery.attempts, Delivery.repeats)
    .join(Event, on=Event.id == Delivery.event_id)
    .where(Delivery.webhook_id == Placeholder("webhook_id"), Delivery.state == "pending")
    .limit(Placeholder("limit"))
)
FIRST_MESSAGES = Compiled(_messages.where(Delivery.next_attempt_at == "").order_by(Delivery.event_id))
_by_time = Delivery.next_attempt_at, Delivery.event_id
TIMED_MESSAGES = Compiled(_messages.where(_is_due, Delivery.next_attempt_at > "").order_by(*_by_time))


def record_attempts(tx: Transaction, attempts: list[Attempt]) -> None:
    """Record the results of attempts; 410 turns a webhook off."""
    for attempt in attempts:
        values = attempt._asdict() | attempt.message._asdict() | attempt.result._asdict()
        tx.defer(RECORD_ATTEMPT, **values)
        if attempt.result.status == GONE:
            tx.defer(TURN_OFF, **values)


# If a redelivery was requested during the attempt, the message is sent again even if the attempt succeeded.
_same = Delivery.repeats == Placeholder("repeats")
_attempted = Delivery.update(
    attempts=Delivery.attempts + 1,
    last_status=Placeholder("status"),
    last_error=Placeholder("error"),
    state=Case(None, [(_same, Placeholder("state"))], "pending"),
    next_attempt_at=Case(None, [(_same, Placeholder("next_attempt_at"))], ""),
)
_of_attempt = (Delivery.webhook_id == Placeholder("webhook_id")) & (Delivery.event_id == Placeholder("event_id"))
_of_attempt &= Delivery.attempts == Placeholder("attempts")  # Another process may have resent it.
RECORD_ATTEMPT = Compiled(_attempted.where(_of_attempt))
_of_url = (Webhook.id == Placeholder("webhook_id")) & (Webhook.url == Placeholder("url"))  # A new URL stays active.
TURN_OFF = Compiled(Webhook.update(active=0).where(_of_url))
