import json
import time

import pytest

from blogapi.bounded import OutOfBounds, check_json, check_toml, yaml_events
from tests.cases import cases

DEEP, MANY = "must not be nested more than [0-9]+ levels deep", "must have at most [0-9]+ values"


@cases(
    ("text", "values", "depth"),
    (b'{"a": [1, 2]}', 3, 2),  # two brackets and a comma
    (b"[" * 3 + b"]" * 3, 3, 3),
    (b"[[], [], [[]]]", 7, 3),
    (rb'["\\", ["\"[[[[,,,,"]]', 3, 2),
    (rb'["\\\"[[,,", {}]', 3, 2),
)
def test_the_bounds_of_json_are_exact(text, values, depth):
    check_json(text, values, depth)
    with pytest.raises(OutOfBounds, match=DEEP):
        check_json(text, values, depth - 1)
    with pytest.raises(OutOfBounds, match=MANY):
        check_json(text, values - 1, depth)


@cases("text", [b'"' * 100, b"[" + b'"",' * 50, b'["a"' * 9, b'["' + b'a"b' * 40, b"]" * 100 + b"[" * 9])
def test_broken_json_is_within_its_bounds_or_refused(text):
    try:
        check_json(text, 10, 9)
    except OutOfBounds:
        return
    with pytest.raises(json.JSONDecodeError):
        json.loads(text)


@cases(("piece", "end"), [(b'x\\"', b'"}'), (b'x\\"', b""), (rb"\\,\"[", b'"}'), (b",[{", b'"}'), (b"\\u00e9", b'"}')])
def test_checking_json_takes_no_longer_than_reading_it_twice(piece, end):
    body = b'{"a":"' + piece * (4_000_000 // len(piece)) + end

    def seconds(run):
        started = time.thread_time()
        try:
            run()
        except json.JSONDecodeError:
            assert not end
        return time.thread_time() - started

    checked = min(seconds(lambda: check_json(body, 10_000, 100)) for _ in range(5))
    assert checked < 2 * max(seconds(lambda: json.loads(body)) for _ in range(5)) + 0.02


def test_the_bounds_of_toml_and_yaml_are_exact():
    check_toml("a = [[1, 2]]  # [[[,,,\n", 4, 2)
    for values, depth, message in ((3, 2, MANY), (4, 1, DEEP)):
        with pytest.raises(OutOfBounds, match=message):
            check_toml("a = [[1, 2]]  # [[[,,,\n", values, depth)
    check_toml("a." * 15 + "a = 1", 0, 0)
    with pytest.raises(OutOfBounds, match="must have names of at most 16 parts") as caught:
        check_toml("\n" + "a." * 16 + "a = 1", 1, 0)
    assert caught.value.line == 2
    assert len([*yaml_events("a: [b]", 10, 2)]) == 10
    for events, depth, message in ((9, 2, MANY), (10, 1, DEEP)):
        with pytest.raises(OutOfBounds, match=message):
            [*yaml_events("a: [b]", events, depth)]
