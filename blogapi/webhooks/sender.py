"""The sender of webhooks: a thread that sends the events in the outbox, publishes posts that are due, and prunes."""

import logging
import math
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from blogapi import idempotency
from blogapi.clock import ClockWatch, rfc3339
from blogapi.config import Config
from blogapi.history import storage as history
from blogapi.images import storage as images
from blogapi.posts import publication
from blogapi.posts import storage as posts
from blogapi.search import storage as search
from blogapi.storage.database import Database
from blogapi.storage.errors import Unavailable
from blogapi.storage.loop import BLOCKING, Loop
from blogapi.webhooks import storage as webhooks
from blogapi.webhooks.endpoint import AttemptResult, Endpoint
from blogapi.webhooks.storage import GONE, Attempt, Message

MINUTE, HOUR, DAY = 60, 3600, 86_400
RETRIES = (5, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR, DAY)  # seconds
JITTER = 0.1  # the share of a delay that is added at random, so that retries do not arrive all at once
POLL_SECONDS = 0.1  # between two looks at the outbox
PACE_SECONDS = 0.004  # between two attempts, so that requests keep most of the processor
BATCH = 10  # messages read at once for a webhook
BATCH_SECONDS = 0.5  # after which the rest is read again, as the webhook may have changed
SETTLE_SECONDS = 1.0  # after which words are in the search index, unless a search was faster
STEP_SECONDS = 1.0  # for a step, which goes on at the next turn
FAULT_SECONDS = 2.0  # after which a step that failed is taken again
EVEN_SECONDS = HOUR  # for which the clock must have run evenly before it decides what is deleted
STOP_SECONDS = 2.0  # for the attempts under way

log = logging.getLogger(__name__)


class Sender:
    """The background work: publishes scheduled posts, prunes, settles the search index, and sends webhooks.

    Messages are sent one by one to each webhook, each in a thread; the thread of `run` alone uses the database.
    """

    def __init__(
        self,
        database: Database,
        clock: Callable[[], float],
        config: Config,
        loop: Loop = BLOCKING,
        monotonic: Callable[[], float] = time.monotonic,
    ):
        self.database = database
        self.clock = clock  # Unix time
        self.monotonic = monotonic
        self.watch = ClockWatch(clock, monotonic)
        self.config = config
        self.timeout = loop.timeout
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.stopping = threading.Event()
        self.wake = threading.Event()
        self.pace = threading.Lock()
        self.sending: dict[int, threading.Thread] = {}  # by webhook
        self.attempts: list[Attempt] = []  # not recorded yet
        self.sent: Counter[int] = Counter()  # messages, by webhook
        # The steps of a turn, with the seconds between two of the same
        self.steps = {self.publish: 0, self.prune: MINUTE, self.deliver: 0, self.settle: SETTLE_SECONDS}
        self.next_at = dict.fromkeys(self.steps, -math.inf)  # by the monotonic clock
        self.until = math.inf  # when the present step ends, likewise

    def stop(self) -> None:
        """Begin no more attempts. Those under way have STOP_SECONDS; until then `thread` is alive."""
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
            except Exception as error:
                report(error)
                self.stopping.wait(FAULT_SECONDS)
        deadline = time.monotonic() + STOP_SECONDS
        for thread in self.sending.values():
            thread.join(max(0.0, deadline - time.monotonic()))
        with suppress(Unavailable):  # What cannot be recorded is sent again, with the same id.
            self.save()

    def turn(self) -> None:
        """Take the steps that are due. One that fails or takes long does not hold up the others."""
        failures: dict[str, Exception] = {}
        for step, seconds in self.steps.items():
            begun = self.monotonic()
            if begun < self.next_at[step]:
                continue
            self.until = begun + STEP_SECONDS
            try:
                step()
                self.next_at[step] = begun if self.is_over() else begun + seconds
            except Exception as error:
                self.next_at[step] = begun + FAULT_SECONDS
                failures[str(error)] = error
        for error in failures.values():
            report(error)

    def is_over(self) -> bool:
        """Return whether the present step must end."""
        return self.stopping.is_set() or self.monotonic() > self.until

    def deliver(self) -> None:
        """Record the results of attempts, and begin to send what is due."""
        self.sending = {webhook_id: thread for webhook_id, thread in self.sending.items() if thread.is_alive()}
        self.save()  # first: a message whose result is not recorded would be sent again
        for webhook_id, url, secret, headers, form in webhooks.due_webhooks(self.database):
            if webhook_id not in self.sending:
                messages = webhooks.due(self.database, webhook_id, BATCH, self.sent[webhook_id])
                config = self.config
                endpoint = Endpoint(
                    url, secret, config.webhook_private, config.webhook_seconds, self.timeout, headers, form
                )
                thread = threading.Thread(target=self.send, args=(webhook_id, endpoint, messages), daemon=True)
                self.sending[webhook_id] = thread
                thread.start()

    def save(self) -> None:
        """Record the results of the attempts so far, in one transaction."""
        if attempts := self.attempts[:]:
            self.database.write(webhooks.record_attempts, attempts)
            del self.attempts[: len(attempts)]

    def publish(self) -> None:
        """Publish the posts that are due, some at a time: others write in between."""
        while publication.next_due(self.database) is not None:
            for post_id, published in self.database.write(posts.publish_due).items():
                if published:
                    log.info("post %s is published as scheduled", post_id)
                else:
                    log.error("post %s is damaged, and cannot be published", post_id)
            if self.is_over():
                break
            time.sleep(0)

    def prune(self) -> None:
        """Delete expired rows, and drop the pending deliveries that are too many."""
        for each in webhooks.listing(self.database):
            if dropped := self.repeat(webhooks.drop, each.id):
                log.warning("webhook %s has too many pending deliveries: the oldest %s are dropped", each.id, dropped)
            self.repeat(webhooks.prune, each.id)
        self.database.write(idempotency.forget_old)
        self.repeat(images.prune)
        if not self.config.history_enabled or self.watch.even_seconds() >= EVEN_SECONDS:
            self.repeat(history.prune, self.config.keep_days)

    def settle(self) -> None:
        """Index new words for the search."""
        if left := search.settle(self.database, seconds=STEP_SECONDS):
            log.info("%s posts wait for the search index", left)

    def repeat(self, operation: Callable, *arguments: int) -> int:
        """Run an operation until it finds no more rows, others in between; return the number of rows."""
        total = 0
        while count := self.database.write(operation, *arguments):
            total += count
            if self.is_over():
                break
            time.sleep(0)
        return total

    def send(self, webhook_id: int, endpoint: Endpoint, messages: list[Message]) -> None:
        """Send messages one after another, until BATCH_SECONDS are over or the sender stops."""
        begun = time.monotonic()
        for message in messages:
            if self.stopping.is_set():
                break
            with self.pace:
                time.sleep(PACE_SECONDS)
            result = endpoint.send(message.id, message.payload, self.clock())
            state, next_attempt_at = outcome(message.attempts, result, self.clock())
            if state == "failed":
                log.warning("webhook %s failed for good: %s", webhook_id, why_failed(message, result))
            attempt = Attempt(
                webhook_id=webhook_id,
                url=endpoint.url,
                event_id=message.event_id,
                repeats=message.repeats,
                attempts=message.attempts,
                status=result.status,
                error=result.error,
                state=state,
                next_attempt_at=next_attempt_at,
            )
            self.attempts.append(attempt)
            self.sent[webhook_id] += 1
            if result.status == GONE or time.monotonic() > begun + BATCH_SECONDS:
                break
        self.wake.set()


def outcome(attempts: int, result: AttemptResult, now: float) -> tuple[str, str | None]:
    """Return the state after an attempt that `attempts` others preceded, and the time of the next one, if any."""
    if result.status is not None and 200 <= result.status < 300:
        return "delivered", None
    if result.status == GONE or attempts >= len(RETRIES):
        return "failed", None
    seconds = RETRIES[attempts] * random.uniform(1, 1 + JITTER)
    return "pending", rfc3339(math.ceil(now + max(seconds, min(result.retry_after, DAY))))


def why_failed(message: Message, result: AttemptResult) -> str:
    """Say what will not be tried again, and why."""
    if result.status == GONE:
        return f"status {GONE}; it is turned off"
    return f"{message.id} after {message.attempts + 1} attempts, at last {result.error or f'status {result.status}'}"


def report(error: Exception) -> None:
    """Log a failure of a step."""
    if isinstance(error, Unavailable):
        log.warning("background work waits for the database: %s", error)
    else:
        log.error("unexpected error in background work", exc_info=error)
