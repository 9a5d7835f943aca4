"""Send due webhook deliveries, and record the results."""

import logging
import math
import random
import threading
import time
from collections import Counter
from itertools import chain, islice
from typing import Any, NamedTuple

from peewee import Case, fn

from blogapi.api.service import Service
from blogapi.clock import rfc3339
from blogapi.storage.engine import AsBytes, Compiled, Placeholder, Reader, Transaction
from blogapi.storage.models import Webhook
from blogapi.webhooks.endpoint import AttemptResult, Endpoint
from blogapi.webhooks.storage import Delivery, Event

MINUTE, HOUR, DAY = 60, 3600, 86_400
RETRIES = (5, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, DAY)  # in seconds
JITTER = 0.1  # at most this share, chosen at random, is added to a delay, so that retries do not all arrive at once
PACE_SECONDS = 0.004  # pause before each attempt, so that requests keep most of the CPU
BATCH = 10  # how many messages to a webhook are read together
SENDING_SECONDS = 0.5  # after this time, the rest of a batch is read again, because the webhook may have changed
STOP_SECONDS = 2.0  # when the service stops, longest wait for attempts in progress
RETRY_EVERY = 5  # every fifth message to a webhook is a retry, if one is due
GONE = 410  # a receiver that responds with this status turns its webhook off

log = logging.getLogger(__name__)


class Message(NamedTuple):
    """An event to send to a webhook."""

    event_id: int
    id: str
    payload: bytes | None  # None if the event is damaged
    attempts: int  # how many attempts have been made
    repeats: int  # how many redeliveries clients have requested


class Sender:
    """Sends messages one by one, with one thread for each webhook. The threads do not use the database."""

    def __init__(self, service: Service):
        self.database = service.database
        self.clock = service.clock  # Unix time
        self.config = service.config
        self.timeout = service.loop.timeout
        self.stopping = threading.Event()
        self.wake = threading.Event()  # set when a thread ends or the service stops, to wake the background thread
        self.pace = threading.Lock()
        self.sending: dict[int, threading.Thread] = {}  # threads by webhook
        self.attempts: list[dict[str, Any]] = []  # unrecorded attempts, each with the values for UPDATE_DELIVERY
        self.sent: Counter[int] = Counter()  # webhook id -> messages sent so far

    def finish(self) -> None:
        """Start no more attempts, wait up to STOP_SECONDS for those in progress, and record their results."""
        self.stopping.set()
        deadline = time.monotonic() + STOP_SECONDS
        for thread in self.sending.values():
            thread.join(max(0.0, deadline - time.monotonic()))
        self.save()

    def deliver(self) -> None:
        """Record the results of finished attempts, and start sending the messages that are due."""
        self.sending = {webhook_id: thread for webhook_id, thread in self.sending.items() if thread.is_alive()}
        self.save()  # first, because otherwise the same messages would be due again
        for webhook_id, url, secret, headers, body in list(self.database.rows(SELECT_DUE, now=self.database.now)):
            if webhook_id not in self.sending:
                messages = due(self.database, webhook_id, self.sent[webhook_id])
                private, seconds = self.config.webhook_private, self.config.webhook_seconds
                endpoint = Endpoint(url, secret, private, seconds, self.timeout, headers, body)
                thread = threading.Thread(target=self.send, args=(webhook_id, endpoint, messages), daemon=True)
                self.sending[webhook_id] = thread
                thread.start()

    def save(self) -> None:
        """Record the results of the attempts so far, in one transaction."""
        if attempts := self.attempts[:]:
            self.database.write(record_attempts, attempts)
            del self.attempts[: len(attempts)]

    def send(self, webhook_id: int, endpoint: Endpoint, messages: list[Message]) -> None:
        """Send messages one after another until SENDING_SECONDS have passed or the sender stops."""
        begun = time.monotonic()
        for message in messages:
            if self.stopping.is_set():
                break
            with self.pace:
                time.sleep(PACE_SECONDS)
            result = endpoint.send(message.id, message.payload, self.clock())
            state, next_attempt_at = next_state(message.attempts, result, self.clock())
            if state == "failed":
                log.warning("webhook %s: a delivery failed for good: %s", webhook_id, why_failed(message, result))
            attempt = message._asdict() | result._asdict() | {"webhook_id": webhook_id, "url": endpoint.url}
            self.attempts.append(attempt | {"state": state, "next_attempt_at": next_attempt_at})
            self.sent[webhook_id] += 1
            if result.status == GONE or time.monotonic() > begun + SENDING_SECONDS:
                break
        self.wake.set()


def next_state(attempts: int, result: AttemptResult, now: float) -> tuple[str, str | None]:
    """Return a delivery's state after another attempt, and when the next is due. `attempts` counts the earlier ones."""
    if result.status is not None and 200 <= result.status < 300:
        return "delivered", None
    if result.status == GONE or attempts >= len(RETRIES):
        return "failed", None
    seconds = RETRIES[attempts] * random.uniform(1, 1 + JITTER)
    return "pending", rfc3339(math.ceil(now + max(seconds, min(result.retry_after, DAY))))


def why_failed(sent: Message, result: AttemptResult) -> str:
    if result.status == GONE:
        return f"status {GONE}, so the webhook is turned off"
    return f"{sent.id} after {sent.attempts + 1} attempts, most recently {result.error or f'status {result.status}'}"


# Queries


def due(reader: Reader, webhook_id: int, sent: int) -> list[Message]:
    """Return the next BATCH messages to a webhook. `sent` is the number of messages sent to it so far."""
    values = {"webhook_id": webhook_id, "now": reader.now, "limit": BATCH}
    first, retries = (iter(list(reader.rows(query, **values))) for query in (SELECT_FIRST, SELECT_TIMED))
    messages: list[Message] = []
    for number in range(sent + 1, sent + BATCH + 1):
        sources = (retries, first) if number % RETRY_EVERY == 0 else (first, retries)
        messages += map(Message._make, islice(chain(*sources), 1))
    return messages


_is_due = (Delivery.state == "pending") & (Delivery.next_attempt_at <= Placeholder("now"))
_has_due = fn.EXISTS(Delivery.select(Delivery.event_id).where(Delivery.webhook_id == Webhook.id, _is_due))
_endpoints = Webhook.select(Webhook.id, Webhook.url, Webhook.secret, Webhook.headers, Webhook.body)
SELECT_DUE = Compiled(_endpoints.where(Webhook.active == 1, _has_due))
_messages = (
    Delivery.select(Event.id, Event.message_id, AsBytes(Event.payload), Delivery.attempts, Delivery.repeats)
    .join(Event, on=Event.id == Delivery.event_id)
    .where(Delivery.webhook_id == Placeholder("webhook_id"), Delivery.state == "pending")
    .limit(Placeholder("limit"))
)
SELECT_FIRST = Compiled(_messages.where(Delivery.next_attempt_at == "").order_by(Delivery.event_id))
_by_time = Delivery.next_attempt_at, Delivery.event_id
SELECT_TIMED = Compiled(_messages.where(_is_due, Delivery.next_attempt_at > "").order_by(*_by_time))


def record_attempts(tx: Transaction, attempts: list[dict[str, Any]]) -> None:
    for attempt in attempts:
        tx.defer(UPDATE_DELIVERY, **attempt)
        if attempt["status"] == GONE:
            tx.defer(UPDATE_ACTIVE, **attempt)
            tx.active_webhooks = None


# If a client has requested a redelivery during the attempt, the message is sent again, whatever the result.
_same = Delivery.repeats == Placeholder("repeats")
_attempted = Delivery.update(
    attempts=Delivery.attempts + 1,
    last_status=Placeholder("status"),
    last_error=Placeholder("error"),
    state=Case(None, [(_same, Placeholder("state"))], "pending"),
    next_attempt_at=Case(None, [(_same, Placeholder("next_attempt_at"))], ""),
)
_of_attempt = (Delivery.webhook_id == Placeholder("webhook_id")) & (Delivery.event_id == Placeholder("event_id"))
_of_attempt &= Delivery.attempts == Placeholder("attempts")  # false if another process has already recorded one
UPDATE_DELIVERY = Compiled(_attempted.where(_of_attempt))
_of_url = (Webhook.id == Placeholder("webhook_id")) & (Webhook.url == Placeholder("url"))  # unless the URL is new
UPDATE_ACTIVE = Compiled(Webhook.update(active=0).where(_of_url))
