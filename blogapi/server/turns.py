"""Turns: a client that sends many requests waits for its own, and other clients do not."""

import time
from collections import deque

import gevent
from gevent.hub import Hub
from greenlet import greenlet

SECONDS = 0.002  # for requests, before the loop looks at the sockets again


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
        until = time.perf_counter() + SECONDS
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
