"""Times: formatting and shifting them."""

from datetime import timedelta

import pytest

from blogapi.clock import earlier, later, rfc3339
from blogapi.config import zone_named
from blogapi.markdown.dates import rfc3339_of
from tests.cases import cases


@cases(
    ("days", "expected"),
    [(1, "2026-11-19T12:00:00Z"), (36_500, "1926-12-15T12:00:00Z"), (400_000, "0931-09-22T12:00:00Z")],
)
def test_every_year_has_four_digits(days, expected):
    assert earlier("2026-11-20T12:00:00Z", timedelta(days=days)) == expected
    assert later(expected, timedelta(days=days)) == "2026-11-20T12:00:00Z"


def test_a_unix_time_is_written_in_utc():
    assert rfc3339(1_795_176_000.9) == "2026-11-20T12:00:00Z"


NO_ZONES = ["", "Mars/Base", "Europe", "../../etc/passwd", "/usr/share/zoneinfo/UTC", "a" * 100_000, "posix/UTC"]
NO_ZONES += ["right/UTC", "localtime", "posixrules", "Europe/Berlin\0", "Europe/Berlin/", "zone.tab", "tzdata.zi"]
NO_ZONES += ["Ä", "\ud800"]


@cases("name", NO_ZONES)
def test_anything_but_the_name_of_a_zone_gives_none(name):
    assert zone_named(name) is None


@cases(
    ("text", "expected"),
    ("2026-07-02 08:00", "2026-07-02T06:00:00Z"),
    ("2026-01-02T08:00:00.5", "2026-01-02T07:00:00Z"),
    ("2026-01-02", "2026-01-01T23:00:00Z"),
    ("2026/1/2 8:00", "2026-01-02T07:00:00Z"),
    ("2026-01-02 08:00 2026 +0100", "2026-01-02T07:00:00Z"),
    ("July 8, 2022", "2022-07-07T22:00:00Z"),
    ("8 Jul 2022 10:00", "2022-07-08T08:00:00Z"),
    # These have an offset.
    ("2026-07-02T08:00:00Z", "2026-07-02T08:00:00Z"),
    ("2026-07-02 08:00 UTC", "2026-07-02T08:00:00Z"),
    ("2026-07-02 08:00 +0000", "2026-07-02T08:00:00Z"),
    ("Sat, 02 Jan 2026 08:00:00 GMT", "2026-01-02T08:00:00Z"),
    ("Sat, 02 Jan 2026 08:00:00 -0000", "2026-01-02T08:00:00Z"),
    ("Sat, 02 Jan 2026 08:00:00 EST", "2026-01-02T13:00:00Z"),
    # The clocks skip the first, which gets the earlier offset, and repeat the second, which means the first time.
    ("2026-03-29 02:30", "2026-03-29T01:30:00Z"),
    ("2026-10-25 02:30", "2026-10-25T00:30:00Z"),
    ("0001-01-02", "0001-01-01T23:06:32Z"),
)
def test_a_time_without_an_offset_is_in_the_zone(text, expected):
    assert rfc3339_of(text, zone_named("Europe/Berlin")) == expected


@pytest.mark.parametrize(("text", "zone"), [("0001-01-01", "Asia/Tokyo"), ("9999-12-31 23:00", "America/New_York")])
def test_a_time_outside_the_range_of_years_is_refused(text, zone):
    with pytest.raises(ValueError, match="must be a date"):
        rfc3339_of(text, zone_named(zone))
