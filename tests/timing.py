"""How much processor time and memory a call takes."""

import time
import tracemalloc
from contextlib import contextmanager

from tests.service import slowness


@contextmanager
def time_limit(limit):
    """Check that a block takes less than this many seconds of processor time, on a machine of usual speed."""
    begun = time.process_time()
    yield
    assert time.process_time() - begun < limit * slowness()


@contextmanager
def memory_limit(limit):
    """Check that a block never takes this many bytes of Python's memory."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()


def seconds(run, *arguments, runs=3):
    """The least processor time that one of several calls takes."""
    taken = []
    for _ in range(runs):
        begun = time.process_time()
        run(*arguments)
        taken.append(time.process_time() - begun)
    return min(taken)


def is_linear(run, size, slack=0.01):
    """Whether twice the size takes at most three times as long; a busy machine can spoil one comparison of three."""
    return any(seconds(run, 2 * size, runs=n) < 3 * seconds(run, size, runs=n) + slack for n in (1, 3, 3))
