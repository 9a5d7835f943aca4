"""The fixed window of the rate limit, without an application."""

import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from blogapi.api.limiter import FixedWindow
from tests.conftest import Clock


@pytest.fixture
def clock():
    return Clock(120.0)


def test_a_new_window_forgets_the_keys_of_the_old_one(clock):
    window, keys = FixedWindow(1, clock), [Key() for _ in range(10)]
    references = [weakref.ref(key) for key in keys]
    while keys:
        window.count(keys.pop())
    clock.now += 60
    window.count("a")
    assert [reference() for reference in references] == [None] * 10


def test_only_setting_the_clock_far_back_restarts_a_window(clock):
    window = FixedWindow(1, clock)
    clock.now = 181.0
    assert window.count("a").remaining == 0
    for clock.now in (179.0, 121.0, 180.0):
        assert window.count("a")[1:3] == (0, 240)
        assert window.count("a").exceeded
    clock.now = 240.0
    assert not window.count("a").exceeded
    clock.now = 3600.0
    window.count("a")
    clock.now = 120.0
    assert window.count("a")[1:4] == (0, 180, 60)


class Key:
    """A key that lets other threads run whenever it is looked up."""

    def __hash__(self):
        time.sleep(0)
        return 1


def test_it_is_exact_across_threads(clock):
    key = Key()
    window = FixedWindow(1000, clock)
    with ThreadPoolExecutor(8) as pool:
        quotas = list(pool.map(lambda _: window.count(key), range(1500)))
    served = [quota.remaining for quota in quotas if not quota.exceeded]
    assert sorted(served) == list(range(1000))
