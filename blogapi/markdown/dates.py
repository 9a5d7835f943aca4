"""Parse dates and times in the forms that programs and people write."""

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo

TIME_HINT = "must be a date such as 2026-11-20, or a time such as 2026-11-20T10:10:00Z"
MAX_CHARACTERS = 200  # longer than any date, even one from JavaScript with the zone's name in parentheses
TIME = r"(?P<hour>[01]?\d|2[0-3]):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:\.\d+)?)?(?:[ ]?(?P<half>[ap])\.?m\b\.?)?"
ZONE = (
    r"(?P<zone>[ \t]*(?:(?P<american>[ecmp])(?P<kind>[sd])t"
    r"|(?:utc?|gmt)?(?P<sign>[+-])(?P<hours>\d\d?):?(?P<minutes>[0-5]\d)?|z|utc?|gmt))?(?:[ ]*\([^()]*\))?"
)
IN_ANY_CASE = re.ASCII | re.IGNORECASE
# YAML timestamps and similar forms: 2026-11-20, 2026-11-20T10:10:00.000Z, 2015/2/13 9:00 +0100. Jekyll repeats the
# year: 2015-02-13 10:00:00 2015 +0100.
YEAR_FIRST = re.compile(
    r"(?P<year>\d{4})(?P<separator>[-/.])(?P<month>\d\d?)(?P=separator)(?P<day>\d\d?)"
    rf"(?:(?:t|[ \t]+){TIME}(?:[ ](?P=year)(?=[ ]))?{ZONE})?",
    IN_ANY_CASE,
)
COMPACT = re.compile(r"(?P<year>(?:19|20)\d\d)(?P<month>[01]\d)(?P<day>[0-3]\d)", IN_ANY_CASE)
CHINESE = re.compile(r"(\d{4})年[ ]?(\d\d?)月[ ]?(\d\d?)日", re.ASCII)  # and Japanese
# Email dates (RFC 5322) and forms that people and JavaScript write: July 8, 2022; 8th of July 2022 at 9:00 pm
MONTH_NAMED = re.compile(
    r"(?:[a-z]{3,9}\.?,?[ ]+)?"
    r"(?:(?P<day>\d\d?)(?:st|nd|rd|th|\.)?(?:[ ]+(?:of[ ]+)?|-)(?P<name>[a-z]{3,9})\.?,?(?:[ ]+|-)"
    r"|(?P<name_first>[a-z]{3,9})\.?[ ]+(?P<day_last>\d\d?)(?:st|nd|rd|th)?,?[ ]+)(?P<year>\d{4})"
    rf"(?:,?[ ]+(?:at[ ]+)?{TIME}{ZONE})?",
    IN_ANY_CASE,
)
# The form of C's ctime: Tue Mar  5 18:22:41 2024
YEAR_LAST = re.compile(
    rf"(?:[a-z]{{3}},?[ ]+)?(?P<name>[a-z]{{3}})[ ]+(?P<day>\d\d?)[ ]+{TIME}{ZONE}[ ]+(?P<year>\d{{4}})", IN_ANY_CASE
)
# Numbers only: 20.11.2026, 20/11/2026 and 11/20/2026. A date without dots is ambiguous unless one of the numbers is
# above 12, or both are equal.
NUMBERS_ONLY = re.compile(
    r"(?P<first>\d\d?)(?P<separator>[-/.])(?P<other>\d\d?)(?P=separator)(?P<year>\d{4})"
    rf"(?:,?[ ]+{TIME}{ZONE})?",
    IN_ANY_CASE,
)
# The time before the date: 13:34 06/21/2014, 13:34 2014-06-21
TIME_FIRST = re.compile(
    rf"{TIME},?[ ]+(?:(?P<first>\d\d?)(?P<separator>[-/.])(?P<other>\d\d?)(?P=separator)(?P<year>\d{{4}})"
    r"|(?P<iso_year>\d{4})-(?P<month>\d\d?)-(?P<day>\d\d?))",
    IN_ANY_CASE,
)
DATE_FORMS = (YEAR_FIRST, MONTH_NAMED, NUMBERS_ONLY, COMPACT, YEAR_LAST, TIME_FIRST)
MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november"),
    "december",
)
AMERICAN = {"e": -5, "c": -6, "m": -7, "p": -8}  # first letter of a US zone (EST, CST, …) -> offset in hours


def rfc3339_of(text: str, zone: tzinfo = UTC) -> str:
    """Convert a date or time to RFC 3339, in UTC and whole seconds. Raises ValueError if `text` is not a date or time.

    A date alone means midnight. A date or time without an offset is in the time zone `zone`.
    """
    return datetime_of(text, zone).astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def rfc3339_or_empty(text: str, zone: tzinfo = UTC) -> str:
    """Return the result of `rfc3339_of`, or "" if `text` is not a date or time."""
    try:
        return rfc3339_of(text, zone)
    except ValueError:
        return ""


def datetime_of(text: str, zone: tzinfo = UTC) -> datetime:
    """Parse a date or time with its offset, like `rfc3339_of`. Raises ValueError if `text` is neither.

    In UTC, the year of the result is from 1 to 9999. If the clocks of the zone go back, a repeated time means the first
    of the two. If they go forward, a skipped time has the offset from before the change (RFC 5545, 3.3.5).
    """
    text = text.strip()
    text = CHINESE.sub(r"\1-\2-\3", text) if len(text) <= MAX_CHARACTERS else ""
    match = next(filter(None, (form.fullmatch(text) for form in DATE_FORMS)), None)
    if not match:
        raise ValueError(TIME_HINT)
    parts = match.groupdict()
    year, (month, day) = int(parts["year"] or parts["iso_year"]), _month_and_day(parts)
    hour, minute, second = (int(parts.get(name) or 0) for name in ("hour", "minute", "second"))
    if half := parts.get("half"):
        hour = hour % 12 + 12 * (half.lower() == "p")
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=_offset(parts) or zone)
        moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(TIME_HINT) from None
    return moment


def looks_like_date(text: str) -> bool:
    """Return whether a string begins with a date, possibly an invalid one such as 2026-99-99."""
    return any(form.match(text) for form in (YEAR_FIRST, MONTH_NAMED, NUMBERS_ONLY, COMPACT, CHINESE))


def _month_and_day(parts: dict[str, str | None]) -> tuple[int, int]:
    """Return the month and the day. Raises ValueError if either number could be the month."""
    if first := parts.get("first"):
        numbers = int(first), int(parts["other"] or 0)
        if parts["separator"] != "." and max(numbers) <= 12 and numbers[0] != numbers[1]:
            days = " or ".join(f"{parts['year']}-{month:02}-{day:02}" for month, day in (numbers, numbers[::-1]))
            raise ValueError(f"could be {days}: write the day that you mean")
        return numbers if parts["separator"] != "." and numbers[1] > 12 else (numbers[1], numbers[0])
    if name := parts.get("name") or parts.get("name_first"):
        month = next((number for number, full in enumerate(MONTHS, 1) if full.startswith(name.lower())), 0)
        return month, int(parts["day"] or parts["day_last"] or 0)
    return int(parts["month"] or 0), int(parts["day"] or 0)


def _offset(parts: dict[str, str | None]) -> tzinfo | None:
    """Return the offset that a time contains, if any. Raises ValueError if the offset is too large."""
    if american := parts.get("american"):
        return timezone(timedelta(hours=AMERICAN[american.lower()] + (parts["kind"] in ("d", "D"))))
    if sign := parts.get("sign"):
        offset = timedelta(hours=int(parts["hours"] or 0), minutes=int(parts["minutes"] or 0))
        return timezone(-offset if sign == "-" else offset)
    return UTC if parts.get("zone") else None
