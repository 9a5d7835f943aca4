"""Run background work: periodic steps in a separate thread."""

import logging
import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from blogapi.api.service import Service
from blogapi.posts import due, history, idempotency, publication
from blogapi.search import index
from blogapi.storage.errors import Unavailable
from blogapi.webhooks import storage as webhooks
from blogapi.webhooks.sender import Sender
from blogapi.wings.images import storage as images
from blogapi.wings.owner import copies as owner_copies
from blogapi.wings.proposals import storage as proposals

MINUTE, HOUR = 60, 3600  # seconds
TIDY_SECONDS = 0.2  # interval between merges in the search index
STEADY_SECONDS = HOUR  # stored data expires only after the clock has been steady for this long
POLL_SECONDS = 0.1  # interval between turns
PAUSE_SECONDS = 0.025  # pause between transactions, not 0, because gevent's sleep(0) would not poll the sockets
STEP_SECONDS = 1.0  # a step that takes longer is interrupted, and continues in the next turn
FAULT_SECONDS = 2.0  # delay before a failed step is retried
JUMP_SECONDS = 60.0  # the clock is steady as long as it differs from the monotonic clock by no more than this

log = logging.getLogger(__name__)


class Background:
    """Runs each step at its interval. If there are several processes, only the leader runs the steps."""

    def __init__(self, service: Service, monotonic: Callable[[], float] = time.monotonic):
        self.database = service.database
        self.config = service.config
        self.sender = Sender(service)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.stopping = self.sender.stopping
        self._steps: dict[Callable[[], Any], float] = {  # each step with its interval in seconds
            self.database.engine.reserve: MINUTE,  # reserves disk space, so that deletions work on a full disk
            partial(self.repeat, due.publish_batch, self.database): 0,
            self.prune: MINUTE,
            self.check_clock: MINUTE,
            self.sender.deliver: 0,
            self.tidy_index: TIDY_SECONDS,
        }
        self._is_late = False  # whether the clock is behind the time of a published post
        self._clock, self._monotonic = service.clock, monotonic
        self._offset = self._clock() - monotonic()  # difference between the two clocks
        self._steady_since = monotonic()
        self._next_at = dict.fromkeys(self._steps, -math.inf)  # monotonic time at which each step is due
        self._until = math.inf  # monotonic time at which the current step must end

    def stop(self) -> None:
        """Ask the background thread to stop soon. While it is still running, `thread.is_alive()` is true."""
        self.stopping.set()
        self.sender.wake.set()

    def run(self) -> None:
        while not self.stopping.is_set():
            try:
                if self.database.engine.is_leader():
                    self.turn()
                self.sender.wake.wait(POLL_SECONDS)
                self.sender.wake.clear()
            except Exception as error:
                report(error)
                self.stopping.wait(FAULT_SECONDS)
        with suppress(Unavailable):  # If a result cannot be stored, the message is sent again, with the same id.
            self.sender.finish()

    def turn(self) -> None:
        """Run the steps that are due. A step that fails or is slow does not hold up the others."""
        failures: dict[str, Exception] = {}
        for step, seconds in self._steps.items():
            begun = self._monotonic()
            if begun < self._next_at[step]:
                continue
            self._until = begun + STEP_SECONDS
            try:
                step()
                self._next_at[step] = begun if self.is_over() else begun + seconds
            except Exception as error:
                self._next_at[step] = begun + FAULT_SECONDS
                failures[str(error)] = error  # Log a reason such as a full disk only once, even if several steps fail.
        for failure in failures.values():
            report(failure)

    def is_over(self) -> bool:
        return self.stopping.is_set() or self._monotonic() > self._until

    def repeat(self, run: Callable[..., int], *arguments: Any) -> int:
        """Call a function until it has no rows left or the step must end. Return the total number of rows."""
        total = 0
        while count := run(*arguments):
            total += count
            if self.is_over():
                break
            time.sleep(PAUSE_SECONDS)
        return total

    # The steps

    def check_clock(self) -> None:
        """Log a warning when the clock is behind a published post, and another when it has caught up."""
        latest = publication.latest_in_future(self.database)
        if latest and not self._is_late:
            log.warning("the clock is behind: it is %s, but a post is dated %s", self.database.now, latest)
        if self._is_late and not latest:
            log.warning("the clock is no longer behind the posts")
        self._is_late = latest is not None

    def prune(self) -> None:
        """Delete the expired data of the core and of each wing."""
        write = self.database.write
        for webhook in webhooks.listing(self.database):
            if count := self.repeat(write, webhooks.fail_surplus, webhook.id):
                log.warning("webhook %s has too many pending deliveries: dropped the oldest: %s", webhook.id, count)
            self.repeat(write, webhooks.prune, webhook.id)
        for prune in (idempotency.prune, images.prune, history.prune_purged, proposals.prune_purged):
            self.repeat(write, prune)
        keep_days, is_steady = self.config.keep_days, self.is_steady()
        if is_steady or not keep_days:
            self.repeat(write, history.prune, keep_days)
        if is_steady:
            self.repeat(write, owner_copies.prune, max(1, keep_days))
            self.repeat(write, proposals.prune, keep_days)

    def is_steady(self) -> bool:
        """Return whether the clock has been steady for STEADY_SECONDS. A clock that was just set may be months off."""
        offset, now = self._clock() - self._monotonic(), self._monotonic()
        if abs(offset - self._offset) > JUMP_SECONDS:
            self._offset, self._steady_since = offset, now
        return now - self._steady_since >= STEADY_SECONDS

    def tidy_index(self) -> None:
        """Index the posts that an upgrade has left unindexed, and merge the latest additions to the search index."""
        for _ in index.rebuild(self.database):
            if self.is_over():
                break
        index.tidy(self.database)


def report(error: Exception) -> None:
    if isinstance(error, Unavailable):
        log.warning("background work is waiting for the database: %s", error)
    else:
        log.error("unexpected error in background work", exc_info=error)
