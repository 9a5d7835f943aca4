"""gevent's event loop, as the storage uses it: clients take turns, and slow work runs in threads."""

import os
import sys
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, NamedTuple

import gevent
from gevent.hub import Hub
from gevent.threadpool import ThreadPool
from greenlet import greenlet

from blogapi.storage.errors import RETRY_SECONDS, Unavailable
from blogapi.storage.loop import Loop

TURN_SECONDS = 0.002  # time for requests before the loop polls the sockets again
ANSWER_SECONDS = 10.0  # limit for an answer from a database server
BACKGROUND_THREADS = 8  # more than the slow reads that may run at a time
NICE = 10  # minimum niceness of these threads, so that searches do not slow down lists
THREADS = 256  # many, because some may wait for a slow name server


class Client(NamedTuple):
    """A client that takes turns, identified by its key or session or, if it is a stranger, by its address."""

    name: str
    is_known: bool = False


SERVICE = Client("", is_known=True)
Waiting = OrderedDict[Client, deque[greenlet]]
CLIENT: ContextVar[Client] = ContextVar("CLIENT", default=SERVICE)  # who sent the current request


class Queue:
    """Waiting greenlets, which a subclass resumes.

    Alternates between known clients and strangers, and serves the clients of each kind round-robin.
    """

    def __init__(self) -> None:
        self.hub: Hub = gevent.get_hub()
        # Strangers and known clients, the next of each kind first
        self.waiting: tuple[Waiting, Waiting] = OrderedDict(), OrderedDict()
        self.known_is_next = False

    def wait(self, client: Client) -> None:
        """Wait behind the other greenlets of the same client."""
        waiting = self.waiting[client.is_known]
        queue = waiting.setdefault(client, deque())
        waiter = gevent.getcurrent()
        queue.append(waiter)
        try:
            self.hub.switch()
        except BaseException:  # interrupted before its turn
            queue.remove(waiter)
            if not queue:
                del waiting[client]
            raise

    def _next(self) -> greenlet:
        waiting = self.waiting[self.known_is_next] or self.waiting[not self.known_is_next]
        self.known_is_next = not self.known_is_next
        client, queue = waiting.popitem(last=False)
        waiter = queue.popleft()
        if queue:
            waiting[client] = queue  # after the other clients
        return waiter


class Turns(Queue):
    """Runs greenlets in turn. gevent's sleep(0) would resume fifty at once, in order of arrival."""

    def __init__(self) -> None:
        super().__init__()
        self.timer = self.hub.loop.timer(0)  # runs after the loop has polled the sockets
        self.running = False

    def wait(self, client: Client) -> None:
        """Wait for a turn."""
        if not self.running:
            self.running = True
            self.hub.loop.run_callback(self._give)
        super().wait(client)

    def _give(self) -> None:
        until = time.perf_counter() + TURN_SECONDS
        try:
            while any(self.waiting) and time.perf_counter() < until:
                if not self.waiting[True]:  # Poll at once: the database may have answered a known client's request.
                    until = 0.0
                self._next().switch()
        finally:  # even if a greenlet ends in an error such as MemoryError
            self.running = any(self.waiting)
            if self.running:
                self.timer.start(self._give)


class RoundRobinSemaphore(Queue):
    """A semaphore that serves clients round-robin rather than first-come, first-served."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.free = size

    def acquire(self, *, timeout: float | None = None) -> bool:
        """Wait for a place; return False after `timeout` seconds."""
        if self.free and not any(self.waiting):
            self.free -= 1
            return True
        with gevent.Timeout(timeout, False):
            self.wait(CLIENT.get())
            return True
        return False

    def release(self) -> None:
        """Pass the place on."""
        self.free += 1
        if any(self.waiting):
            self.hub.loop.run_callback(self._give)

    def _give(self) -> None:
        while self.free and any(self.waiting):
            self.free -= 1
            self._next().switch()


class EventLoop(Loop):
    """How to wait while other greenlets run."""

    is_cooperative = True

    def __init__(self) -> None:
        self.turns = Turns()
        threadpool = gevent.get_hub().threadpool
        threadpool.maxsize = THREADS
        self.threads, self.background = threadpool, ThreadPool(BACKGROUND_THREADS)

    def semaphore(self, size: int) -> RoundRobinSemaphore:
        """Return a semaphore that serves clients round-robin."""
        return RoundRobinSemaphore(size)

    def timeout(self, seconds: float) -> gevent.Timeout:
        """Return a context manager that raises TimeoutError if its block takes longer."""
        return gevent.Timeout(seconds, TimeoutError)

    def run_in_thread(self, function: Callable[[], Any], *, in_background: bool = False) -> Any:
        """Run a function in a thread; return its result."""

        def outcome() -> tuple[Any, Exception | None]:
            try:
                return function(), None
            except Exception as error:  # gevent would log an exception in a thread as unexpected.
                return None, error

        try:
            result, error = (
                self.background.apply(_at_low_priority, [outcome]) if in_background else self.threads.apply(outcome)
            )
        except RuntimeError as failure:  # out of memory or processes
            raise Unavailable(failure, RETRY_SECONDS) from failure
        if error is not None:
            raise error
        return result

    def wait_for_socket(self, file: int, events: int) -> int:
        """Wait until a socket is ready for `events`; return them. Raises TimeoutError after ANSWER_SECONDS."""
        hub = gevent.get_hub()
        loop = hub.loop
        watcher, timer = loop.io(file, events, priority=loop.MAXPRI), loop.timer(ANSWER_SECONDS)
        timer.start(gevent.getcurrent().throw, TimeoutError)  # cheaper than a gevent.Timeout
        try:
            hub.wait(watcher)
        finally:
            timer.close()
            watcher.close()
        return events

    def requests_wait(self) -> bool:
        """Return whether requests of known clients are waiting for their turn."""
        return bool(self.turns.waiting[True])


def _at_low_priority(function: Callable[[], Any]) -> Any:
    if sys.platform == "linux":  # elsewhere, all threads of a process share one priority
        thread = threading.get_native_id()
        with suppress(OSError):  # An ordinary user may not raise a priority; a sandbox may forbid any change.
            os.setpriority(os.PRIO_PROCESS, thread, max(NICE, os.getpriority(os.PRIO_PROCESS, thread)))
    return function()
