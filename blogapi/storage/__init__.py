"""Storage: the database, its tables, and the operations on them, without HTTP."""

import importlib
import threading
from collections.abc import Callable
from contextlib import nullcontext
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from blogapi.storage.errors import RETRY_SECONDS, Unavailable

SERVICE = "", True
# For whom the process works: the name of a client, and whether it has a key
CLIENT: ContextVar[tuple[str, bool]] = ContextVar("CLIENT", default=SERVICE)


class Loop:
    """Waiting in a process that may block. A server's event loop has its own implementation (`server.worker`)."""

    is_cooperative = False  # whether requests run in one thread, and waiting lets others run
    wait_for_socket: Callable[[int, int], int] | None = None  # (file, events): returns the events once they are there
    places = threading.Semaphore  # (size): in a server, clients take turns at it
    timeout = nullcontext  # (seconds): in a server, raises TimeoutError in a block that takes longer

    def run_in_thread(self, function: Callable, arguments: tuple) -> Any:
        """Return what the function returns; a server runs it in a thread of the operating system."""
        return function(*arguments)

    def run_in_background(self, function: Callable, arguments: tuple) -> Any:
        """Run a function as `run_in_thread` does, at a lower priority than requests. It must hold no lock."""
        return self.run_in_thread(function, arguments)

    def requests_wait(self) -> bool:
        """Return whether requests with a key, which can write, wait for their turn."""
        return False


PLAIN = Loop()


def in_thread(run: Callable[[Callable, tuple], Any], function: Callable[[], Any]) -> Any:
    """Return the result of a function that a Loop's `run` runs in a thread.

    Raises the function's error, and Unavailable if no thread can be started: memory or processes have run out.
    """

    def outcome() -> tuple[Any, Exception | None]:
        try:
            return function(), None
        except Exception as error:  # The server would log what is raised in a thread as unexpected.
            return None, error

    try:
        result, error = run(outcome, ())
    except RuntimeError as failure:
        raise Unavailable(failure, RETRY_SECONDS) from failure
    if error is not None:
        raise error
    return result


def engine_for(database: Path | str, connections: int = 1, loop: Loop = PLAIN) -> Any:
    """Return the engine of a database: a SQLite file, or the URL of a PostgreSQL database. Raises ValueError."""
    if isinstance(database, Path):
        return importlib.import_module("blogapi.storage.sqlite").Sqlite(database, loop=loop)
    try:  # Only the engine in use is imported: SQLite needs no psycopg.
        postgresql = importlib.import_module("blogapi.storage.postgresql")
    except ImportError as error:
        needed = "for PostgreSQL, make postgresql, or install blogapi[postgresql]"
        raise ValueError(f"BLOGAPI_DATABASE: {error}; {needed}") from error
    return postgresql.Postgresql(database, connections, loop=loop)
