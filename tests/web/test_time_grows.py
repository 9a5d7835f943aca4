"""What a client sends costs time in proportion to its length, even if it is the worst that can be sent."""

import time

import pytest

WORST_HEADERS = {
    "a cookie with a gap": ("/settings", "HTTP_COOKIE", lambda size: f"a={' ' * size}b c;"),
    "many cookies": ("/settings", "HTTP_COOKIE", lambda size: "a=b;" * (size // 4)),
}


def seconds(run, size):
    """The least processor time that `run` takes for an input of a size."""
    best = 9.0
    for _ in range(5):
        started = time.process_time()
        run(size)
        best = min(best, time.process_time() - started)
    return best


@pytest.mark.sqlite
@pytest.mark.parametrize(("path", "header", "worst"), WORST_HEADERS.values(), ids=WORST_HEADERS)
def test_a_header_of_twice_the_length_takes_at_most_twice_the_time(stranger, path, header, worst):
    def run(size):
        assert stranger.get(path, environ_overrides={header: worst(size)}).status_code in (200, 401, 403)

    assert seconds(run, 16_000) < 2.5 * seconds(run, 8_000)
