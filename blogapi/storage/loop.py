"""Waiting: the interface to the event loop of a server, and its implementation for a process that may block."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

T = TypeVar("T")


class Loop:
    """Waiting in a process that may block. A server's event loop has its own implementation (`server.worker`)."""

    is_cooperative = False  # whether requests run in one thread, and waiting lets others run
    wait_for_socket: Callable[[int, int], int] | None = None  # (file, events): returns the events once they are there
    places: Callable[[int], Any] = threading.Semaphore  # (size): in a server, clients take turns at it
    # (seconds): in a server, raises TimeoutError in a block that takes longer
    timeout: Callable[[float], AbstractContextManager] = nullcontext

    def run_in_thread(self, function: Callable[[], T], *, in_background: bool = False) -> T:
        """Return the result of a function. A server runs it in a thread of the operating system.

        In the background it has a lower priority than requests, and must hold no lock. Raises Unavailable if no thread
        can be started.
        """
        return function()

    def requests_wait(self) -> bool:
        """Return whether requests with a key, which can write, wait for their turn."""
        return False


BLOCKING = Loop()
