"""Times: how they are written, and shifted."""

from datetime import timedelta

import pytest

from blogapi.clock import earlier, later, rfc3339


@pytest.mark.parametrize(
    ("days", "expected"),
    [(1, "2026-11-19T12:00:00Z"), (36_500, "1926-12-15T12:00:00Z"), (400_000, "0931-09-22T12:00:00Z")],
)
def test_every_year_has_four_digits(days, expected):
    assert earlier("2026-11-20T12:00:00Z", timedelta(days=days)) == expected
    assert later(expected, timedelta(days=days)) == "2026-11-20T12:00:00Z"


def test_a_unix_time_is_written_in_utc():
    assert rfc3339(1_795_176_000.9) == "2026-11-20T12:00:00Z"
