"""The event loop, with gevent: turns, threads, sockets and timeouts."""

import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any

import gevent
from gevent.hub import Hub
from greenlet import greenlet

TURN_SECONDS = 0.002  # for requests, before the loop polls the sockets again
ANSWER_SECONDS = 10.0  # for a database on another machine
THREADS = 256  # while some wait for a slow name server, others must be free

Waiting = OrderedDict[str, deque[greenlet]]


class Turns:
    """Resumes greenlets in turn: one of a client with a key, then one of a client without; each time the next client.

    gevent's sleep(0) resumes them in the order of arrival, up to fifty before it polls the sockets.
    """

    def __init__(self) -> None:
        self.hub: Hub = gevent.get_hub()
        self.timer = self.hub.loop.timer(0)  # runs after the loop has polled the sockets
        # By client, without a key and with one, the next ones first
        self.waiting: tuple[Waiting, Waiting] = OrderedDict(), OrderedDict()
        self.keyed = False  # whether a client with a key is the next
        self.running = False

    def wait(self, client: str, keyed: bool) -> None:
        """Wait for a turn, in a queue with all others of the same client."""
        queue = self.waiting[keyed].setdefault(client, deque())
        waiter = gevent.getcurrent()
        queue.append(waiter)
        if not self.running:
            self.running = True
            self.hub.loop.run_callback(self._give)
        try:
            self.hub.switch()
        except BaseException:  # It was interrupted before its turn.
            queue.remove(waiter)
            if not queue:
                del self.waiting[keyed][client]
            raise

    def _give(self) -> None:
        until = time.perf_counter() + TURN_SECONDS
        while any(self.waiting) and time.perf_counter() < until:
            self._next().switch()
        self.running = any(self.waiting)
        if self.running:
            self.timer.start(self._give)

    def _next(self) -> greenlet:
        waiting = self.waiting[self.keyed] or self.waiting[not self.keyed]
        self.keyed = not self.keyed
        client, queue = waiting.popitem(last=False)
        waiter = queue.popleft()
        if queue:
            waiting[client] = queue  # behind the other clients
        return waiter


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
        return any(self.turns.waiting)
