"""Format and shift times in RFC 3339."""

from datetime import UTC, datetime, timedelta
from functools import lru_cache

LATEST = "~"  # sorts after every time


def rfc3339(seconds: float) -> str:
    """Format a Unix time as RFC 3339 in UTC, in whole seconds: 2026-11-20T10:10:00Z."""
    return _rfc3339(int(seconds))


@lru_cache(maxsize=8)  # Many requests arrive in the same second, and each needs the time twice.
def _rfc3339(second: int) -> str:
    return _format(datetime.fromtimestamp(second, UTC))


def later(now: str, period: timedelta) -> str:
    """Return the RFC 3339 time that is `period` after `now`."""
    return _format(datetime.fromisoformat(now) + period)


def earlier(now: str, period: timedelta) -> str:
    """Return the RFC 3339 time that is `period` before `now`."""
    return _format(datetime.fromisoformat(now) - period)


def _format(moment: datetime) -> str:
    return moment.replace(tzinfo=None).isoformat() + "Z"  # strftime does not pad every year to four digits.
