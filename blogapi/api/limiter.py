"""Limit the requests per minute for each key."""

import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from blogapi.storage.engine import Hits
from blogapi.storage.keys import WINDOW_SECONDS


class Quota(NamedTuple):
    """A key's remaining quota after a request."""

    limit: int
    remaining: int
    reset: int  # Unix time at which the window ends, in whole seconds
    retry_after: int  # seconds until the window ends, at least 1
    exceeded: bool

    @property
    def headers(self) -> list[tuple[str, str]]:
        return [
            ("X-RateLimit-Limit", str(self.limit)),
            ("X-RateLimit-Remaining", str(self.remaining)),
            ("X-RateLimit-Reset", str(self.reset)),
        ]


class FixedWindow:
    """Counts up to `limit` requests per key in one-minute windows, aligned to the Unix epoch."""

    def __init__(self, limit: int, clock: Callable[[], float] = time.time):
        self.limit = limit
        self._clock = clock
        self._lock = threading.Lock()
        self._window = 0
        self._hits: dict[Any, int] = {}

    def count(self, key: Any, counted: Hits | None = None) -> Quota:
        """Count a request by `key`, unless the database has `counted` it for all processes; return the quota."""
        return self._quota(counted or self._add(key, 1))

    def peek(self, key: Any = None, counted: Hits | None = None) -> Quota:
        """Return the quota of `key` without counting a request. Without a key, return a full quota."""
        return self._quota(counted or self._add(key, 0))

    def _quota(self, counted: Hits) -> Quota:
        hits, window, now = counted
        reset = (window + 1) * WINDOW_SECONDS
        return Quota(self.limit, max(0, self.limit - hits), reset, max(1, reset - now), hits > self.limit)

    def _add(self, key: Any, count: int) -> Hits:
        now = int(self._clock())
        window = now // WINDOW_SECONDS
        with self._lock:
            if window == self._window - 1:  # The clock was set back, but no window may begin twice.
                window = self._window
            elif window != self._window:
                self._window, self._hits = window, {}
            hits = self._hits.get(key, 0) + count
            if count:
                self._hits[key] = hits
        return Hits(hits, window, now)
