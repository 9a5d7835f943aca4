"""Waiting: the interface to the event loop of a server, and its implementation for a process that may block."""

import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, TypeVar

from blogapi.storage.errors import RETRY_SECONDS, Unavailable

T = TypeVar("T")


class Loop:
    """Waiting in a process that may block. A server's event loop has its own implementation (`server.worker`)."""

    is_cooperative = False  # whether requests run in one thread, and waiting lets others run
    wait_for_socket: Callable[[int, int], int] | None = None  # (file, events): returns the events once they are there
    places = threading.Semaphore  # (size): in a server, clients take turns at it
    timeout = nullcontext  # (seconds): in a server, raises TimeoutError in a block that takes longer

    def run_in_thread(self, function: Callable[[], T], in_background: bool) -> T:
        """Return the result of a function. A server runs it in a thread of the operating system.

        In the background it has a lower priority than requests, and must hold no lock.
        """
        return function()

    def requests_wait(self) -> bool:
        """Return whether requests with a key, which can write, wait for their turn."""
        return False


BLOCKING = Loop()


def run_in_thread(loop: Loop, function: Callable[[], T], *, in_background: bool = False) -> T:
    """Run a function as `loop.run_in_thread` does.

    Raises the function's error, and Unavailable if no thread can be started: memory or processes have run out.
    """

    def outcome() -> tuple[Any, Exception | None]:
        try:
            return function(), None
        except Exception as error:  # The server would log what is raised in a thread as unexpected.
            return None, error

    try:
        result, error = loop.run_in_thread(outcome, in_background)
    except RuntimeError as failure:
        raise Unavailable(failure, RETRY_SECONDS) from failure
    if error is not None:
        raise error
    return result
