"""Waiting. A server's event loop has its own implementation (`blogapi.server.loop`)."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any


class Loop:
    """Waiting in a process that may block."""

    wait_for_socket: Callable[[int, int], int] | None = None  # (file, events): returns the events once they are there

    def run_in_thread(self, function: Callable, arguments: tuple) -> Any:
        """Return what the function returns; a server runs it in a thread of the operating system."""
        return function(*arguments)

    def timeout(self, seconds: float) -> AbstractContextManager:
        """Raise TimeoutError in a block that takes longer, if the process can do that."""
        return nullcontext()

    def requests_wait(self) -> bool:
        """Return whether requests wait for their turn."""
        return False


PLAIN = Loop()
