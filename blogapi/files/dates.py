"""The ways in which front matter writes a time."""

import re
from datetime import UTC, datetime, timedelta, timezone
from email.utils import parsedate_tz

# 2026-11-20, 2026-11-20T10:10:00.000Z, 2015-02-13 10:00:00 +0100, 2015/2/13 9:00: YAML's timestamps, and then some.
YEAR_FIRST = re.compile(
    r"(?P<year>\d{4})(?P<separator>[-/])(?P<month>\d\d?)(?P=separator)(?P<day>\d\d?)"
    r"(?:(?:[Tt]|[ \t]+)(?P<hour>\d\d?):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.\d+)?)?"
    r"(?:[ \t]*(?:Z|z|UTC|GMT|(?P<sign>[+-])(?P<hours>\d\d?):?(?P<minutes>\d\d)?))?)?",
    re.ASCII,
)
# The dates of e-mail (RFC 5322), and what people and JavaScript make of them: July 8, 2022 10:00 PM.
MONTH_NAMED = re.compile(
    r"(?P<date>(?:[a-z]{3,9},?[ ]+)?(?:\d\d?(?:[ ]+|-)[a-z]{3,9}(?:[ ]+|-)|[a-z]{3,9}[ ]+\d\d?,?[ ]+)\d{4})"
    r"(?:,?[ ]+(?P<hour>\d\d?)(?P<rest>:\d\d(?::\d\d)?)(?:[ ]*(?P<half>[ap])m)?"
    r"(?:[ ]*(?P<zone>Z|UTC?|GMT|[ECMP][SD]T)|[ ]*(?:UTC|GMT)?(?P<offset>[+-]\d\d:?\d\d))?(?:[ ]*\([^()]*\))?)?",
    re.ASCII | re.IGNORECASE,
)
LONGEST = 64
HINT = "must be a date such as 2026-11-20, or a time such as 2026-11-20T10:10:00Z"


def rfc3339_of(text: str) -> str:
    """Return the time that `text` says as RFC 3339 in UTC, whole seconds.

    A date without a time is midnight, a time without an offset is UTC. Raise ValueError for anything else.
    """
    try:
        if len(text := text.strip()) > LONGEST:
            raise ValueError
        match = YEAR_FIRST.fullmatch(text)
        moment = _year_first(match.groupdict(default="0")) if match else _month_named(text)
        return moment.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"
    except (ValueError, OverflowError):
        raise ValueError(HINT) from None


def _year_first(part: dict[str, str]) -> datetime:
    offset = timedelta(hours=int(part["hours"]), minutes=int(part["minutes"]))
    return datetime(
        *(int(part[name]) for name in ("year", "month", "day", "hour", "minute", "second")),
        tzinfo=timezone(-offset if part["sign"] == "-" else offset),
    )


def _month_named(text: str) -> datetime:
    match = MONTH_NAMED.fullmatch(text)
    if not match:
        raise ValueError
    hour, zone = int(match["hour"] or 0), match["zone"] or (match["offset"] or "").replace(":", "")
    if match["half"]:
        if not 1 <= hour <= 12:
            raise ValueError
        hour = hour % 12 + (12 if match["half"] in "pP" else 0)
    parts = parsedate_tz(f"{match['date'].replace('-', ' ')} {hour:02}{match['rest'] or ':00'} {zone}")
    if parts is None:
        raise ValueError
    return datetime(*parts[:6], tzinfo=timezone(timedelta(seconds=parts[9] or 0)))
