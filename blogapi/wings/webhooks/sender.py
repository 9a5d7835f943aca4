"""The webhook sender: sends the events in the outbox and records the results."""

import logging
import math
import random
import threading
import time
from collections import Counter

from blogapi.api.service import Service
from blogapi.clock import rfc3339
from blogapi.wings.webhooks import outbox
from blogapi.wings.webhooks.endpoint import Endpoint
from blogapi.wings.webhooks.outbox import GONE, Attempt, AttemptResult, Message

MINUTE, HOUR, DAY = 60, 3600, 86_400
RETRIES = (5, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, DAY)  # between attempts
JITTER = 0.1  # random share added to a delay, so that retries do not arrive all at once
PACE_SECONDS = 0.004  # pause between attempts, so that requests keep most of the CPU
BATCH = 10  # messages of a webhook read at once
BATCH_SECONDS = 0.5  # after this time, the rest is read again, because the webhook may have changed
STOP_SECONDS = 2.0  # wait for attempts in progress

log = logging.getLogger(__name__)


class Sender:
    """Sends each webhook its messages one by one, in a thread. Only `deliver` and `finish` use the database."""

    def __init__(self, service: Service):
        self.database = service.database
        self.clock = service.clock  # Unix time
        self.config = service.config
        self.timeout = service.loop.timeout
        self.stopping = threading.Event()
        self.wake = threading.Event()  # set when a thread ends, or at the stop; the background work waits for it
        self.pace = threading.Lock()
        self.sending: dict[int, threading.Thread] = {}  # threads, by webhook
        self.attempts: list[Attempt] = []  # not recorded yet
        self.sent: Counter[int] = Counter()  # messages, by webhook

    def finish(self) -> None:
        """Start no more attempts; wait up to STOP_SECONDS for those in progress, and record their results."""
        self.stopping.set()
        deadline = time.monotonic() + STOP_SECONDS
        for thread in self.sending.values():
            thread.join(max(0.0, deadline - time.monotonic()))
        self.save()

    def deliver(self) -> None:
        """Record the results of attempts, and start sending what is due."""
        self.sending = {webhook_id: thread for webhook_id, thread in self.sending.items() if thread.is_alive()}
        self.save()  # first, because a message without a recorded result would be sent again
        for webhook_id, url, secret, headers, body_format in outbox.due_webhooks(self.database):
            if webhook_id not in self.sending:
                messages = outbox.due(self.database, webhook_id, BATCH, self.sent[webhook_id])
                private, seconds = self.config.webhook_private, self.config.webhook_seconds
                endpoint = Endpoint(url, secret, private, seconds, self.timeout, headers, body_format)
                thread = threading.Thread(target=self.send, args=(webhook_id, endpoint, messages), daemon=True)
                self.sending[webhook_id] = thread
                thread.start()

    def save(self) -> None:
        """Record the results of the attempts so far, in one transaction."""
        if attempts := self.attempts[:]:
            self.database.write(outbox.record_attempts, attempts)
            del self.attempts[: len(attempts)]

    def send(self, webhook_id: int, endpoint: Endpoint, messages: list[Message]) -> None:
        """Send messages one after another until BATCH_SECONDS have passed or the sender stops."""
        begun = time.monotonic()
        for message in messages:
            if self.stopping.is_set():
                break
            with self.pace:
                time.sleep(PACE_SECONDS)
            result = endpoint.send(message.id, message.payload, self.clock())
            state, next_attempt_at = outcome(message.attempts, result, self.clock())
            if state == "failed":
                log.warning("webhook %s: a delivery failed for good: %s", webhook_id, why_failed(message, result))
            self.attempts.append(Attempt(webhook_id, endpoint.url, message, result, state, next_attempt_at))
            self.sent[webhook_id] += 1
            if result.status == GONE or time.monotonic() > begun + BATCH_SECONDS:
                break
        self.wake.set()


def outcome(attempts: int, result: AttemptResult, now: float) -> tuple[str, str | None]:
    """Return the state after an attempt that followed `attempts` others, and the time of the next one, if any."""
    if result.status is not None and 200 <= result.status < 300:
        return "delivered", None
    if result.status == GONE or attempts >= len(RETRIES):
        return "failed", None
    seconds = RETRIES[attempts] * random.uniform(1, 1 + JITTER)
    return "pending", rfc3339(math.ceil(now + max(seconds, min(result.retry_after, DAY))))


def why_failed(message: Message, result: AttemptResult) -> str:
    """Return why a delivery has failed for good, for the log."""
    if result.status == GONE:
        return f"status {GONE}; it is turned off"
    return f"{message.id} after {message.attempts + 1} attempts, at last {result.error or f'status {result.status}'}"
