"""Times: formatting and shifting them, and whether the clock can be trusted."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache

JUMP_SECONDS = 60.0  # by which the clock may drift from the monotonic clock, and be corrected, at once


def rfc3339(seconds: float) -> str:
    """Write a Unix time as RFC 3339 in UTC, whole seconds: 2026-11-20T10:10:00Z."""
    return _rfc3339(int(seconds))


@lru_cache(maxsize=8)  # Each request needs the time twice, and many requests share a second.
def _rfc3339(second: int) -> str:
    return _format(datetime.fromtimestamp(second, UTC))


def later(now: str, period: timedelta) -> str:
    """Return the RFC 3339 time that is `period` after `now`."""
    return _format(datetime.fromisoformat(now) + period)


def earlier(now: str, period: timedelta) -> str:
    """Return the RFC 3339 time that is `period` before `now`."""
    return _format(datetime.fromisoformat(now) - period)


def _format(moment: datetime) -> str:
    return moment.replace(tzinfo=None).isoformat() + "Z"  # strftime does not write every year with four digits.


class ClockWatch:
    """Knows for how long the clock has run evenly: a clock that was set can be wrong by months, for a while."""

    def __init__(self, clock: Callable[[], float], monotonic: Callable[[], float]):
        self._clock = clock
        self._monotonic = monotonic
        self._offset = clock() - monotonic()
        self._since = monotonic()

    def even_seconds(self) -> float:
        """Return for how long the clock has agreed with the monotonic clock. Call this regularly."""
        offset = self._clock() - self._monotonic()
        if abs(offset - self._offset) > JUMP_SECONDS:
            self._offset, self._since = offset, self._monotonic()
        return self._monotonic() - self._since
