"""The sender of webhooks: it takes events out of the outbox beside the requests, and tries again where that fails."""

import logging
import math
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from blogapi.clock import rfc3339
from blogapi.loop import PLAIN, Loop
from blogapi.storage import deliveries, idempotency, posts, webhooks
from blogapi.storage.deliveries import GONE, Attempt, DueWebhook, Message
from blogapi.storage.engine import Database
from blogapi.storage.errors import Unavailable
from blogapi.webhooks.endpoint import Endpoint, signing_key

MINUTE, HOUR = 60, 3600
RETRIES = (5, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, 24 * HOUR)  # seconds
JITTER = 0.1  # of these, at most, later: a receiver that was down is not asked for everything at once
POLL_SECONDS = 0.1  # between two looks at the outbox
PACE_SECONDS = 0.004  # between two attempts, so that requests keep most of the processor
BATCH = 10  # messages taken at once for a webhook
BATCH_SECONDS = 0.5  # after which the rest is taken anew: the webhook may have changed
FAULT_SECONDS = 2.0  # to wait after a failure of the database
SHUTDOWN_SECONDS = 2.0  # for the attempts that are under way

log = logging.getLogger(__name__)


class Sender:
    """Sends what is in the outbox: to each webhook one message after another, to all of them at the same time.

    One thread, that of `run`, uses the database. One for each webhook that is sent to, so at most 50, speaks HTTP.
    `clock` gives Unix time; `private` allows private and loopback addresses; an attempt may take so many `seconds`.
    """

    def __init__(self, database: Database, clock: Callable[[], float], private: bool, seconds: int, loop: Loop = PLAIN):
        self.database = database
        self.clock = clock
        self.private = private
        self.seconds = seconds
        self.timeout = loop.timeout
        self.stopping = threading.Event()
        self.wake = threading.Event()
        self.pace = threading.Lock()
        self.sending: dict[int, threading.Thread] = {}  # by webhook
        self.attempts: list[Attempt] = []  # that are not written down yet
        self.sent: Counter[int] = Counter()  # messages, by webhook
        self.damaged: set[int] = set()  # webhooks of which the log says so
        self.prune_at = 0.0  # Unix time

    def start(self) -> None:
        """Run in the background."""
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def stop(self) -> None:
        """Begin no more attempts. Those under way have SHUTDOWN_SECONDS; until then `thread` is alive."""
        self.stopping.set()
        self.wake.set()

    def run(self) -> None:
        """Look at the outbox again and again, until told to stop."""
        while not self.stopping.is_set():
            try:
                if self.database.engine.is_leader():
                    self.turn()
                self.wake.wait(POLL_SECONDS)
                self.wake.clear()
            except Unavailable as error:
                log.warning("webhooks wait for the database: %s", error)
                self.stopping.wait(FAULT_SECONDS)
            except Exception:
                log.exception("unexpected error in the sender of webhooks")
                self.stopping.wait(FAULT_SECONDS)
        deadline = time.monotonic() + SHUTDOWN_SECONDS
        for thread in self.sending.values():
            thread.join(max(0.0, deadline - time.monotonic()))
        with suppress(Unavailable):  # What cannot be written down is sent again, under the same id.
            self.save()

    def turn(self) -> None:
        """Write down what came of the attempts, publish what is due, and begin to send what there is."""
        self.sending = {webhook_id: thread for webhook_id, thread in self.sending.items() if thread.is_alive()}
        self.save()  # before anything is taken: what those that have ended have sent would be sent again
        self.publish()
        self.prune()
        for webhook in list(deliveries.due_webhooks(self.database)):
            if webhook.id not in self.sending:
                self.begin(webhook)

    def begin(self, webhook: DueWebhook) -> None:
        """Begin to send some of what is due for a webhook, unless it is damaged."""
        try:
            key = signing_key(webhook.secret)
        except ValueError:
            self.report(webhook.id, "secret")
            return
        messages = deliveries.due(self.database, webhook.id, BATCH, self.sent[webhook.id])
        endpoint = Endpoint(webhook.url, key, self.private, self.seconds, self.timeout)
        thread = threading.Thread(target=self.send, args=(webhook.id, endpoint, messages), daemon=True)
        self.sending[webhook.id] = thread
        thread.start()

    def report(self, webhook_id: int, field: str) -> None:
        """Log once that a webhook is damaged."""
        if webhook_id not in self.damaged:
            self.damaged.add(webhook_id)
            log.error("webhook %s is passed over: its %s cannot be read", webhook_id, field)

    def save(self) -> None:
        """Write down what came of the attempts so far, in one transaction."""
        attempts = self.attempts[:]
        if attempts:
            self.database.write(deliveries.record, attempts)
            del self.attempts[: len(attempts)]

    def publish(self) -> None:
        """Publish scheduled posts whose time has come, some at a time: others write in between."""
        while not self.stopping.is_set() and posts.next_due(self.database) is not None:
            for post_id in self.database.write(posts.publish_due):
                log.error("post %s is damaged, and cannot be published", post_id)
            time.sleep(0)

    def prune(self) -> None:
        """Once a minute, delete what is kept for some time only, and drop what is pending beyond the bound."""
        if self.clock() < self.prune_at:
            return
        for webhook in list(webhooks.listing(self.database)):
            if not webhook.events:
                self.report(webhook.id, "events")
            self.database.write(deliveries.prune_old, webhook.id)
            self.drop(webhook.id)
        self.database.write(idempotency.forget)
        self.prune_at = self.clock() + MINUTE

    def drop(self, webhook_id: int) -> None:
        """Drop the oldest pending deliveries of a webhook that has too many, in several transactions."""
        last = deliveries.last_surplus(self.database, webhook_id)
        if last is None:
            return
        dropped = 0
        try:
            while not self.stopping.is_set() and (count := self.database.write(deliveries.drop, webhook_id, last)):
                dropped += count
        finally:
            if dropped:
                log.warning(
                    "webhook %s has too many pending deliveries: the oldest %s are dropped", webhook_id, dropped
                )

    def send(self, webhook_id: int, endpoint: Endpoint, messages: list[Message]) -> None:
        """Send messages one after another, as long as that goes quickly and nobody stops it."""
        begun = time.monotonic()
        for message in messages:
            if self.stopping.is_set():
                break
            with self.pace:
                time.sleep(PACE_SECONDS)
            attempt = self.attempt(webhook_id, endpoint, message)
            self.attempts.append(attempt)
            self.sent[webhook_id] += 1
            if attempt.status == GONE or time.monotonic() > begun + BATCH_SECONDS:
                break
        self.wake.set()

    def attempt(self, webhook_id: int, endpoint: Endpoint, message: Message) -> Attempt:
        """Send a message once, unless it is damaged; return what came of it."""
        if message.payload is None:
            log.error("webhook %s is not sent %s: the event is damaged", webhook_id, message.id)
            result = None, "the event is damaged", "failed", None
        else:
            status, error = endpoint.send(message.id, message.payload, self.clock())
            result = status, error, *outcome(message.attempts, status, self.clock())
        return Attempt(webhook_id, endpoint.url, message.event_id, message.repeats, *result)


def outcome(attempts: int, status: int | None, now: float) -> tuple[str, str | None]:
    """Return the state after an attempt, with so many before it, and when to make the next one, if at all."""
    if status is not None and 200 <= status < 300:
        return "delivered", None
    if status == GONE or attempts >= len(RETRIES):
        return "failed", None
    seconds = RETRIES[attempts] * random.uniform(1, 1 + JITTER)
    return "pending", rfc3339(math.ceil(now + seconds))
