"""The time: the application's clock, which tests hand in, and how a time is written."""

import time
from datetime import datetime, timedelta

from flask import current_app


def now() -> float:
    """Return the Unix time by the application's clock."""
    return current_app.extensions["clock"]()


def timestamp() -> str:
    """Return the time by the application's clock as it is written."""
    return rfc3339(now())


def rfc3339(seconds: float) -> str:
    """Write a Unix time as RFC 3339 in UTC, whole seconds: 2026-11-20T10:10:00Z."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def earlier(now: str, period: timedelta) -> str:
    """Return the time that is so long before `now`, both as they are written."""
    return (datetime.fromisoformat(now) - period).strftime("%Y-%m-%dT%H:%M:%SZ")
