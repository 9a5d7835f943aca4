"""How to wait: the interface of an event loop, and its default for a process that is allowed to block."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

T = TypeVar("T")


class Loop:
    """How to wait in a process that is allowed to block (the default). Our server overrides it in `server.threads`."""

    is_cooperative = False  # whether requests share one thread, and waiting lets others run
    wait_for_socket: Callable[[int, int], int] | None = None  # (file, events): returns the events that occurred

    def semaphore(self, size: int) -> Any:
        """Return a semaphore. Our server's serves clients round-robin."""
        return threading.Semaphore(size)

    def timeout(self, seconds: float) -> AbstractContextManager:
        """Return a context manager. Our server's raises TimeoutError if its block takes longer."""
        return nullcontext()

    def run_in_thread(self, function: Callable[[], T], *, in_background: bool = False) -> T:
        """Run a function and return its result. Our server runs it in a thread of the operating system.

        With `in_background`, it runs at a lower priority than requests and must hold no lock. Raises Unavailable if no
        thread can be started.
        """
        return function()

    def requests_wait(self) -> bool:
        """Return whether requests of known clients are waiting for their turn."""
        return False


BLOCKING = Loop()
