"""Background work: a thread that runs the wings' steps periodically."""

import logging
import math
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from blogapi.config import Config
from blogapi.storage.database import Database
from blogapi.storage.errors import Unavailable
from blogapi.storage.loop import BLOCKING, Loop
from blogapi.wings.webhooks.sender import Sender

POLL_SECONDS = 0.1  # interval between turns
STEP_SECONDS = 1.0  # limit for a step, which continues at the next turn
FAULT_SECONDS = 2.0  # a failed step is retried after this time
JUMP_SECONDS = 60.0  # how far the clock may jump from the monotonic clock and still count as steady

log = logging.getLogger(__name__)


class ClockWatch:
    """Tracks how long the wall clock has been steady; a clock that was just changed may be months off."""

    def __init__(self, clock: Callable[[], float], monotonic: Callable[[], float]):
        self._clock = clock
        self._monotonic = monotonic
        self._offset = clock() - monotonic()
        self._since = monotonic()

    def steady_seconds(self) -> float:
        """Return for how long the clock has agreed with the monotonic clock. Call this regularly."""
        offset = self._clock() - self._monotonic()
        if abs(offset - self._offset) > JUMP_SECONDS:
            self._offset, self._since = offset, self._monotonic()
        return self._monotonic() - self._since


class Background:
    """Runs `steps`, each at its interval. With several processes, only the leader runs them."""

    def __init__(
        self,
        database: Database,
        clock: Callable[[], float],
        config: Config,
        steps: dict[Callable[["Background"], None], float],
        loop: Loop = BLOCKING,
        monotonic: Callable[[], float] = time.monotonic,
    ):
        self.database = database
        self.config = config
        self.sender = Sender(database, clock, config, loop)
        self.watch = ClockWatch(clock, monotonic)
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.stopping = self.sender.stopping
        self._steps = steps
        self._monotonic = monotonic
        self._next_at = dict.fromkeys(steps, -math.inf)  # on the monotonic clock
        self._until = math.inf  # when the current step must end, on the same clock

    def stop(self) -> None:
        """Ask the thread to stop soon; `thread` is alive until it has."""
        self.stopping.set()
        self.sender.wake.set()

    def run(self) -> None:
        """Run until told to stop."""
        while not self.stopping.is_set():
            try:
                if self.database.engine.is_leader():
                    self.turn()
                self.sender.wake.wait(POLL_SECONDS)
                self.sender.wake.clear()
            except Exception as error:
                report(error)
                self.stopping.wait(FAULT_SECONDS)
        with suppress(Unavailable):  # A message whose result is not recorded is sent again with the same id.
            self.sender.finish()

    def turn(self) -> None:
        """Run the due steps. One that fails or is slow does not hold up the others."""
        failures: dict[str, Exception] = {}
        for step, seconds in self._steps.items():
            begun = self._monotonic()
            if begun < self._next_at[step]:
                continue
            self._until = begun + STEP_SECONDS
            try:
                step(self)
                self._next_at[step] = begun if self.is_over() else begun + seconds
            except Exception as error:
                self._next_at[step] = begun + FAULT_SECONDS
                failures[str(error)] = error  # A full disk fails every step; it is logged once.
        for failure in failures.values():
            report(failure)

    def is_over(self) -> bool:
        """Return whether the current step must end."""
        return self.stopping.is_set() or self._monotonic() > self._until

    def repeat(self, operation: Callable, *arguments: int) -> int:
        """Run an operation until it finds no more rows, and let others write in between; return the number of rows."""
        total = 0
        while count := self.database.write(operation, *arguments):
            total += count
            if self.is_over():
                break
            time.sleep(0)
        return total


def report(error: Exception) -> None:
    """Log that a step has failed."""
    if isinstance(error, Unavailable):
        log.warning("background work waits for the database: %s", error)
    else:
        log.error("unexpected error in background work", exc_info=error)
