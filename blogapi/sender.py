"""The sender of webhooks: it takes events out of the outbox beside the requests, and tries again where that fails."""

import logging
import math
import random
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress

from peewee import PeeweeException

from blogapi.clock import rfc3339
from blogapi.db import database
from blogapi.endpoint import Endpoint
from blogapi.models import Delivery, Idempotency, Post, Schedule, Webhook
from blogapi.models.webhooks import GONE, Attempt, Message

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

    def __init__(self, clock: Callable[[], float], private: bool, seconds: int):
        self.clock = clock
        self.private = private
        self.seconds = seconds
        self.timeout: Callable[[int], AbstractContextManager] = nullcontext
        self.stopping = threading.Event()
        self.wake = threading.Event()
        self.pace = threading.Lock()
        self.sending: dict[int, threading.Thread] = {}  # by webhook
        self.attempts: list[Attempt] = []  # that are not written down yet
        self.prune_at = 0.0  # Unix time

    def start(self, timeout: Callable[[int], AbstractContextManager]) -> None:
        """Run in the background; `timeout(seconds)` raises TimeoutError once its block has taken so long."""
        self.timeout = timeout
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
                self.turn()
                self.wake.wait(POLL_SECONDS)
                self.wake.clear()
            except PeeweeException as error:
                log.warning("webhooks wait for the database: %s", error)
                self.stopping.wait(FAULT_SECONDS)
            except Exception:
                log.exception("unexpected error in the sender of webhooks")
                self.stopping.wait(FAULT_SECONDS)
        deadline = time.monotonic() + SHUTDOWN_SECONDS
        for thread in self.sending.values():
            thread.join(max(0.0, deadline - time.monotonic()))
        with suppress(PeeweeException):  # What cannot be written down is sent again, under the same id.
            self.save()

    def turn(self) -> None:
        """Write down what came of the attempts, publish what is due, and begin to send what there is."""
        self.sending = {webhook_id: thread for webhook_id, thread in self.sending.items() if thread.is_alive()}
        self.save()  # before anything is taken: what those that have ended have sent would be sent again
        now = rfc3339(self.clock())
        if Schedule.is_due(now):
            database.write(lambda: Post.publish_due(now))
        self.prune(now)
        for webhook_id, url, secret in Webhook.due(now):
            if webhook_id not in self.sending:
                messages = Delivery.due(webhook_id, now, BATCH)
                endpoint = Endpoint(url, secret, self.private, self.seconds, self.timeout)
                thread = threading.Thread(target=self.send, args=(webhook_id, endpoint, messages), daemon=True)
                self.sending[webhook_id] = thread
                thread.start()

    def save(self) -> None:
        """Write down what came of the attempts so far, in one transaction."""
        attempts = self.attempts[:]
        if attempts:
            database.write(lambda: Delivery.note(attempts))
            del self.attempts[: len(attempts)]

    def prune(self, now: str) -> None:
        """Once an hour, delete what is kept for some time only."""
        if self.clock() >= self.prune_at:
            self.prune_at = self.clock() + HOUR
            database.write(lambda: (Delivery.prune_old(now), Idempotency.forget(now)))

    def send(self, webhook_id: int, endpoint: Endpoint, messages: list[Message]) -> None:
        """Send messages one after another, as long as that goes quickly and nobody stops it."""
        begun = time.monotonic()
        for message in messages:
            if self.stopping.is_set():
                break
            with self.pace:
                time.sleep(PACE_SECONDS)
            status, error = endpoint.send(message.id, message.payload, self.clock())
            result = status, error, *outcome(message.attempts, status, self.clock())
            self.attempts.append(Attempt(webhook_id, endpoint.url, message.event_id, message.repeats, *result))
            if status == GONE or time.monotonic() > begun + BATCH_SECONDS:
                break
        self.wake.set()


def outcome(attempts: int, status: int | None, now: float) -> tuple[str, str | None]:
    """Return the state after an attempt, with so many before it, and when to make the next one, if at all."""
    if status is not None and 200 <= status < 300:
        return "delivered", None
    if status == GONE or attempts >= len(RETRIES):
        return "failed", None
    seconds = RETRIES[attempts] * random.uniform(1, 1 + JITTER)
    return "pending", rfc3339(math.ceil(now + seconds))
