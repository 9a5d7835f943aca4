"""The event loop: turns, threads, sockets and timeouts, by gevent."""

import time
from collections import deque
from collections.abc import Callable
from typing import Any

import gevent
from gevent.hub import Hub
from greenlet import greenlet

TURN_SECONDS = 0.002  # for requests, before the loop looks at the sockets again
ANSWER_SECONDS = 10.0  # for a database on another machine
THREADS = 256  # while some wait for a name server that is slow, others must find a free one


class Turns:
    """Lets greenlets go on in turn: one of each key that some wait with, then the next one of each.

    gevent's sleep(0) lets them go on in the order of their coming, and up to fifty before it looks at the sockets.
    """

    def __init__(self) -> None:
        self.hub: Hub = gevent.get_hub()
        self.timer = self.hub.loop.timer(0)  # runs after the loop has looked at the sockets
        self.waiting: dict[str, deque[greenlet]] = {}  # by key, the next one first
        self.running = False

    def wait(self, key: str) -> None:
        """Wait for a turn, with all that wait with the same key."""
        queue = self.waiting.get(key)
        if queue is None:
            queue = self.waiting[key] = deque()
        waiter = gevent.getcurrent()
        queue.append(waiter)
        if not self.running:
            self.running = True
            self.hub.loop.run_callback(self._give)
        try:
            self.hub.switch()
        except BaseException:  # It was interrupted before its turn.
            self._remove(key, waiter)
            raise

    def _remove(self, key: str, waiter: greenlet) -> None:
        queue = self.waiting[key]
        queue.remove(waiter)
        if not queue:
            del self.waiting[key]

    def _give(self) -> None:
        until = time.perf_counter() + TURN_SECONDS
        while self.waiting and time.perf_counter() < until:
            key = next(iter(self.waiting))
            queue = self.waiting.pop(key)
            waiter = queue.popleft()
            if queue:
                self.waiting[key] = queue  # behind the other keys
            waiter.switch()
        self.running = bool(self.waiting)
        if self.running:
            self.timer.start(self._give)


class EventLoop:
    """Waits as `blogapi.loop.Loop` does, and lets others go on meanwhile."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.hub: Hub = gevent.get_hub()
        self.hub.threadpool.maxsize = THREADS

    def run_in_thread(self, function: Callable, arguments: tuple) -> Any:
        """Run a function in a thread of the operating system; return what it returns."""
        return self.hub.threadpool.apply(function, arguments)

    def wait_for_socket(self, file: int, events: int) -> int:
        """Wait until a socket is ready; return for what. Raises TimeoutError after ANSWER_SECONDS."""
        hub = gevent.get_hub()
        watcher = hub.loop.io(file, events)
        try:
            with self.timeout(ANSWER_SECONDS):
                hub.wait(watcher)
        finally:
            watcher.close()
        return events

    def timeout(self, seconds: float) -> gevent.Timeout:
        """Raise TimeoutError in a block that takes longer."""
        return gevent.Timeout(seconds, TimeoutError)

    def requests_wait(self) -> bool:
        """Return whether requests wait for their turn."""
        return self.turns.running
