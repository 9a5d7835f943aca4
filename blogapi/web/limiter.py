"""The rate limit: fixed windows counted in memory, the decorator that counts, and the headers that say so."""

import threading
import time
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple

from flask import Flask, Response, current_app, g
from werkzeug.exceptions import TooManyRequests

from blogapi.storage.keys import WINDOW_SECONDS, Hits


class Quota(NamedTuple):
    """Where a key stands after a request."""

    limit: int
    remaining: int
    reset: int  # Unix time, whole seconds, at which the window ends
    retry_after: int  # whole seconds until then, at least 1
    exceeded: bool

    @property
    def headers(self) -> list[tuple[str, str]]:
        return [
            ("X-RateLimit-Limit", str(self.limit)),
            ("X-RateLimit-Remaining", str(self.remaining)),
            ("X-RateLimit-Reset", str(self.reset)),
        ]


class FixedWindow:
    """Counts up to `limit` hits of each key in windows of `seconds`, aligned to the Unix epoch."""

    def __init__(self, limit: int, seconds: int = WINDOW_SECONDS, clock: Callable[[], float] = time.time):
        self.limit = limit
        self.seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._window = 0
        self._hits: dict[Any, int] = {}

    def hit(self, key: Any, counted: Hits | None = None) -> Quota:
        """Count one request of `key`, unless the database has `counted` it already, for several processes."""
        if counted:
            return self._quota_of(*counted)
        return self._quota(key, 1)

    def peek(self, key: Any = None, counted: Hits | None = None) -> Quota:
        """Return where `key` stands, without counting; a request without one is told the full limit."""
        if counted:
            return self._quota_of(*counted)
        return self._quota(key, 0)

    def _quota(self, key: Any, count: int) -> Quota:
        now = int(self._clock())
        window = now // self.seconds
        with self._lock:
            if window == self._window - 1:  # The clock was set back: a window does not begin twice.
                window = self._window
            elif window != self._window:
                self._window, self._hits = window, {}
            hits = self._hits.get(key, 0) + count
            if count:
                self._hits[key] = hits
        return self._quota_of(hits, window, now)

    def _quota_of(self, hits: int, window: int, now: int) -> Quota:
        reset = (window + 1) * self.seconds
        return Quota(self.limit, max(0, self.limit - hits), reset, max(1, reset - now), hits > self.limit)


def init_app(app: Flask) -> None:
    """Add the three headers to every answer."""
    app.after_request(_set_headers)


def rate_limited(view: Callable) -> Callable:
    """Count the request against its key; answer 429 in place of `view` once the limit is exceeded."""

    @wraps(view)
    def limited(*args: Any, **kwargs: Any) -> Any:
        g.quota = current_app.extensions["blogapi"].limiter.hit(g.api_key, g.hits)
        if g.quota.exceeded:
            raise TooManyRequests(
                f"rate limit exceeded: {g.quota.limit} requests a minute; try again in {g.quota.retry_after} s",
                retry_after=g.quota.retry_after,
            )
        return view(*args, **kwargs)

    return limited


def _set_headers(response: Response) -> Response:
    quota = g.get("quota") or current_app.extensions["blogapi"].limiter.peek()
    response.headers.extend(quota.headers)
    return response
