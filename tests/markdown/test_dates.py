"""Dates, as programs and people write them."""

import pytest

from blogapi.markdown.dates import MAX_CHARACTERS, looks_like_date, rfc3339_of
from tests.timing import time_limit

READ = {
    "2024-03-05": "2024-03-05T00:00:00Z",
    "2024.3.5": "2024-03-05T00:00:00Z",
    "20240305": "2024-03-05T00:00:00Z",
    "2024年3月5日": "2024-03-05T00:00:00Z",
    "05.03.2024": "2024-03-05T00:00:00Z",
    "5.3.2024, 10:00": "2024-03-05T10:00:00Z",
    "25/12/2023": "2023-12-25T00:00:00Z",
    "12/25/2023 10:00": "2023-12-25T10:00:00Z",
    "13-03-2024": "2024-03-13T00:00:00Z",
    "5/5/2024": "2024-05-05T00:00:00Z",
    "March 5th, 2024": "2024-03-05T00:00:00Z",
    "5th of March 2024 at 9:00 p.m.": "2024-03-05T21:00:00Z",
    "Tuesday, March 5th 2024, 6:22:41 pm": "2024-03-05T18:22:41Z",
    "Sept 5, 2024": "2024-09-05T00:00:00Z",
    "5-Mar-2024": "2024-03-05T00:00:00Z",
    "Mar 5, 2024 12:22 AM": "2024-03-05T00:22:00Z",
    "2024-03-05 6:22 PM": "2024-03-05T18:22:00Z",
    "13:34 06/21/2014": "2014-06-21T13:34:00Z",
    "1:34 pm 2014-06-21": "2014-06-21T13:34:00Z",
    "2024-03-05 10:00 PDT": "2024-03-05T17:00:00Z",
    "2024-03-05 09:00 UTC-05:30": "2024-03-05T14:30:00Z",
    "4 May 2019 10:00 +02": "2019-05-04T08:00:00Z",
    "Tue Mar  5 18:22:41 2024": "2024-03-05T18:22:41Z",
    "Tue Mar 05 18:22:41 +0100 2024": "2024-03-05T17:22:41Z",
    "Tue Mar 05 2024 18:22:41 GMT+0100 (Central European Standard Time)": "2024-03-05T17:22:41Z",
}


def test_dates_of_many_forms_are_read():
    assert {text: rfc3339_of(text) for text in READ} == READ


def test_an_ambiguous_date_is_refused_and_both_readings_are_shown():
    for text in ("03/05/2024", "5/3/2024 10:00", "05-03-2024"):
        with pytest.raises(ValueError, match=r"could be 2024-0[35]-0[35] or 2024-0[35]-0[35]: write the day"):
            rfc3339_of(text)
        assert looks_like_date(text)


def test_long_text_is_refused_at_once():
    with time_limit(1):
        for text in ("2 " * 500_000, "May 4, 2019" + " " * 10**6 + "x", "4 May 2019 (" * 10**5, "1" * 10**6):
            with pytest.raises(ValueError, match="must be a date"):
                rfc3339_of(text)
    assert max(map(len, READ)) < MAX_CHARACTERS
