"""A deadline for waits on a network."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def deadline(seconds: float, late: Exception) -> Iterator[Callable[[float], None]]:
    """Raise `late` if the block takes longer than `seconds`. Yield a function that sets a new limit.

    This interrupts any wait of the main thread: the timeout of a socket starts again with each byte that arrives.
    """

    def end(*_: object) -> None:
        raise late

    def set_to(seconds: float) -> None:
        left = begun + seconds - time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, max(left, 0.001), 1)  # again if a destructor swallows the exception

    begun, before = time.monotonic(), signal.signal(signal.SIGALRM, end)
    try:
        set_to(seconds)
        yield set_to
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
