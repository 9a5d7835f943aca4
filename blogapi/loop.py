"""Waiting. A server's event loop has its own implementation (`blogapi.server.loop`)."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import Any

SERVICE = "", True
# For whom the process works: the name of a client, and whether it has a key
CLIENT: ContextVar[tuple[str, bool]] = ContextVar("CLIENT", default=SERVICE)


class Loop:
    """Waiting in a process that may block."""

    wait_for_socket: Callable[[int, int], int] | None = None  # (file, events): returns the events once they are there

    def run_in_thread(self, function: Callable, arguments: tuple) -> Any:
        """Return what the function returns; a server runs it in a thread of the operating system."""
        return function(*arguments)

    def timeout(self, seconds: float) -> AbstractContextManager:
        """Raise TimeoutError in a block that takes longer, if the process can do that."""
        return nullcontext()

    def places(self, size: int) -> Any:
        """Return a semaphore; in a server, clients take turns at it."""
        return threading.Semaphore(size)

    def requests_wait(self) -> bool:
        """Return whether requests wait for their turn."""
        return False


PLAIN = Loop()
