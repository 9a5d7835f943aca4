"""The event loop, with gevent: turns, threads, sockets and timeouts."""

import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any

import gevent
from gevent.hub import Hub
from greenlet import greenlet

from blogapi.loop import CLIENT

TURN_SECONDS = 0.002  # for requests, before the loop polls the sockets again
ANSWER_SECONDS = 10.0  # for a database on another machine
THREADS = 256  # while some wait for a slow name server, others must be free

Waiting = OrderedDict[str, deque[greenlet]]


class Queue:
    """Greenlets that wait: one of a client with a key is next, then one of a client without; each time the next client.

    A subclass resumes them, in the hub.
    """

    def __init__(self) -> None:
        self.hub: Hub = gevent.get_hub()
        # By client, without a key and with one, the next ones first
        self.waiting: tuple[Waiting, Waiting] = OrderedDict(), OrderedDict()
        self.keyed = False  # whether a client with a key is the next

    def wait(self, client: str, keyed: bool) -> None:
        """Wait in a queue with all others of the same client."""
        queue = self.waiting[keyed].setdefault(client, deque())
        waiter = gevent.getcurrent()
        queue.append(waiter)
        try:
            self.hub.switch()
        except BaseException:  # It was interrupted before its turn.
            queue.remove(waiter)
            if not queue:
                del self.waiting[keyed][client]
            raise

    def _next(self) -> greenlet:
        waiting = self.waiting[self.keyed] or self.waiting[not self.keyed]
        self.keyed = not self.keyed
        client, queue = waiting.popitem(last=False)
        waiter = queue.popleft()
        if queue:
            waiting[client] = queue  # behind the other clients
        return waiter


class Turns(Queue):
    """Lets greenlets run in turn. gevent's sleep(0) would resume them in the order of arrival, fifty at once."""

    def __init__(self) -> None:
        super().__init__()
        self.timer = self.hub.loop.timer(0)  # runs after the loop has polled the sockets
        self.running = False

    def wait(self, client: str, keyed: bool) -> None:
        """Wait for a turn."""
        if not self.running:
            self.running = True
            self.hub.loop.run_callback(self._give)
        super().wait(client, keyed)

    def _give(self) -> None:
        until = time.perf_counter() + TURN_SECONDS
        try:
            while any(self.waiting) and time.perf_counter() < until:
                self._next().switch()
        finally:  # A greenlet may end in an error, such as MemoryError.
            self.running = any(self.waiting)
            if self.running:
                self.timer.start(self._give)


class Places(Queue):
    """A semaphore whose next place is for the next client, not for the one that has waited longest."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.free = size

    def acquire(self, *, timeout: float) -> bool:
        """Wait for a place; return False if there is none in time."""
        if self.free and not any(self.waiting):
            self.free -= 1
            return True
        with gevent.Timeout(timeout, False):
            self.wait(*CLIENT.get())
            return True
        return False

    def release(self) -> None:
        """Give the place to the next."""
        self.free += 1
        if any(self.waiting):
            self.hub.loop.run_callback(self._give)

    def _give(self) -> None:
        while self.free and any(self.waiting):
            self.free -= 1
            self._next().switch()


class EventLoop:
    """Waits as `blogapi.loop.Loop` does, while other greenlets run."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.hub: Hub = gevent.get_hub()
        self.hub.threadpool.maxsize = THREADS

    def run_in_thread(self, function: Callable, arguments: tuple) -> Any:
        """Run a function in a thread of the operating system; return its result."""
        return self.hub.threadpool.apply(function, arguments)

    def wait_for_socket(self, file: int, events: int) -> int:
        """Wait until a socket is ready for `events`; return these. Raises TimeoutError after ANSWER_SECONDS."""
        hub = gevent.get_hub()
        watcher, timer = hub.loop.io(file, events), hub.loop.timer(ANSWER_SECONDS)
        timer.start(gevent.getcurrent().throw, TimeoutError)  # A Timeout does this in twice the time.
        try:
            hub.wait(watcher)
        finally:
            timer.close()
            watcher.close()
        return events

    def timeout(self, seconds: float) -> gevent.Timeout:
        """Raise TimeoutError in a block that takes longer."""
        return gevent.Timeout(seconds, TimeoutError)

    def places(self, size: int) -> Places:
        """Return a semaphore at which clients take turns."""
        return Places(size)

    def requests_wait(self) -> bool:
        """Return whether requests wait for their turn."""
        return any(self.turns.waiting)
