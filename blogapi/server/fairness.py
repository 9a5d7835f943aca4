"""Fairness between clients: whose turn it is, and how much memory their requests and responses may take."""

import re
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, NamedTuple

import gevent
from gevent.hub import Hub
from greenlet import greenlet

from blogapi.config import Config
from blogapi.storage.keys import PREFIX

if TYPE_CHECKING:
    from blogapi.server.connection import ClientConnection

TURN_SECONDS = 0.002  # time for requests before the loop polls the sockets again
MB = 1024 * 1024
KEPT_BYTES = 64 * 1024  # bytes of a message that need no reservation
MAX_STREAMS = 512  # at most this many streamed responses at a time
STALLED_SECONDS = 1.0  # a client that reads nothing for this long may be evicted
OWN_STALLED_SECONDS = 5.0  # likewise, if the client's own next change needs the room
STALLED_POLL_SECONDS = 1.0  # interval at which a waiting change looks for such responses
MAX_CHANGES = 24  # at most this many changes per client at a time; one ends when a large response is sent
MAX_LARGE_CHANGES = 2  # at most this many changes with large bodies at a time; each needs up to ten times its size
MIN_WAITING = 1 / 16  # waiting connections are dropped only if they are at least this share of all
MIN_ACCEPTED = 1 / 2  # likewise, for requests whose key was accepted
MAX_KNOWN = 1000  # at most this many credentials, and clients that change posts, are remembered
CREDENTIAL = re.compile(rb"%b[A-Za-z0-9_-]{43,60}" % PREFIX.encode())  # a key, or the token of a session


class Client(NamedTuple):
    """A client that takes turns, identified by its key or session or, if it is a stranger, by its address."""

    name: str
    is_known: bool = False


SERVICE = Client("", is_known=True)
Waiting = OrderedDict[Client, deque[greenlet]]
CLIENT: ContextVar[Client] = ContextVar("CLIENT", default=SERVICE)  # who sent the current request


class Queue:
    """Waiting greenlets, which are resumed round-robin by client, alternating between known clients and strangers."""

    def __init__(self) -> None:
        self.hub: Hub = gevent.get_hub()
        # The queues of strangers and of known clients; the next client comes first
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
            waiting[client] = queue  # moves to the end, after the other clients
        return waiter


class Turns(Queue):
    """Runs greenlets in turn. gevent's sleep(0) would resume fifty at once, in order of arrival."""

    def __init__(self) -> None:
        super().__init__()
        self.timer = self.hub.loop.timer(0)  # runs after the loop has polled the sockets
        self.running = False

    def wait(self, client: Client) -> None:
        if not self.running:
            self.running = True
            self.hub.loop.run_callback(self._give)
        super().wait(client)

    def _give(self) -> None:
        until = time.perf_counter() + TURN_SECONDS
        try:
            while any(self.waiting) and time.perf_counter() < until:
                if not self.waiting[True]:  # Poll at once: the database may have answered a known client.
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


class Budget:
    """Counts the bytes held by connections, and makes room by evicting the one chosen by `victim`."""

    def __init__(self, size: int, victim: "Callable[[Budget, ClientConnection], ClientConnection | None]"):
        self.left = size
        self.victim = victim
        self.held: dict[ClientConnection, int] = {}  # longest without progress first

    def reserve(self, connection: "ClientConnection", size: int, *, needed: bool = False) -> bool:
        """Reserve bytes for a connection. If too few are left, return False, or exceed the budget if `needed`."""
        while self.left < size and (victim := self.victim(self, connection)):
            self.release(victim)
            victim.end()
        if self.left < size and not needed:
            return False
        self.left -= size
        self.held[connection] = self.held.get(connection, 0) + size
        connection.progress_at = time.monotonic()
        return True

    def release(self, connection: "ClientConnection") -> None:
        """Release the bytes of a connection."""
        self.left += self.held.pop(connection, 0)

    def progress(self, connection: "ClientConnection") -> None:
        """Record that a client has read part of its response."""
        if connection in self.held:
            self.held[connection] = self.held.pop(connection)


def oldest_head(budget: Budget, connection: "ClientConnection") -> "ClientConnection | None":
    """Choose the oldest request whose key was not accepted yet, else one of the busiest client, else of this client."""
    arriving = [holder for holder in budget.held if holder.reading and holder is not connection]
    heads = (holder for holder in arriving if not holder.is_accepted)
    own = (holder for holder in arriving if holder.client == connection.client)
    return next(heads, None) or oldest_of_busiest(budget, connection) or next(own, None)


def oldest_of_busiest(budget: Budget, connection: "ClientConnection") -> "ClientConnection | None":
    """Choose the oldest request of the busiest client, if that has at least two more than this client."""
    requests = Counter(holder.client for holder in budget.held if holder.reading)
    client = max(requests, key=requests.__getitem__, default=connection.client)
    if requests[client] <= requests[connection.client] + 1:
        return None
    return next(holder for holder in budget.held if holder.client == client and holder.reading)


def stalled(budget: Budget, connection: "ClientConnection") -> "ClientConnection | None":
    """Choose the client that has read nothing for longest, if it has stalled."""
    longest = next(iter(budget.held), None)
    return longest if longest and longest.progress_at < time.monotonic() - STALLED_SECONDS else None


class Tier:
    """The budgets shared by all strangers, or by all known clients, whom strangers cannot evict."""

    def __init__(self, *, body_mb: int, small_mb: int, response_mb: int):
        self.bodies = Budget(body_mb * MB, oldest_of_busiest)
        self.small = Budget(small_mb * MB, oldest_head)  # headers and small bodies
        self.responses = Budget(response_mb * MB, stalled)
        # Connections that wait between requests, during a request, and for a body after the key was accepted. The
        # longest wait comes first.
        self.idle: dict[ClientConnection, None] = {}
        self.waiting: dict[ClientConnection, None] = {}
        self.accepted: dict[ClientConnection, None] = {}

    def queue(self, connection: "ClientConnection") -> "dict[ClientConnection, None]":
        """Return where a connection waits."""
        if connection.is_idle:
            return self.idle
        return self.accepted if connection.is_accepted else self.waiting


class SharedState:
    """State shared by all connections."""

    def __init__(self, config: Config, turns: Turns):
        self.header_seconds = config.header_seconds
        self.body_seconds = config.body_seconds
        self.turns = turns
        self.strangers = Tier(body_mb=2, small_mb=2, response_mb=16)
        self.known = Tier(body_mb=24, small_mb=8, response_mb=48)
        self.streams = Budget(MAX_STREAMS, stalled)  # each counts one, because only a piece of it is in memory
        self.credentials: set[str] = set()  # keys and sessions that are valid
        self._changes: dict[Client, RoundRobinSemaphore] = {}
        self._large_changes = RoundRobinSemaphore(MAX_LARGE_CHANGES)

    def client(self, data: bytes, address: str) -> Client:
        """Return the client that sends `data`, identified by a valid key or session in it, else by its address."""
        for credential in CREDENTIAL.findall(data):
            if (name := credential.decode()) in self.credentials:
                return Client(name, is_known=True)
        return Client(address)

    def remember(self, credential: str) -> None:
        """Remember that a key or a session is valid."""
        if len(self.credentials) >= MAX_KNOWN:
            self.credentials.clear()
        self.credentials.add(credential)

    def make_room(self, count: int) -> None:
        """Drop one of `count` connections: an idle one, or else the longest wait, of the larger tier.

        That can be the known clients' tier, because one key can hold all connections. If only a few wait, nothing is
        dropped, because most others are about to end.
        """
        waiting = max(([*tier.idle, *tier.waiting] for tier in (self.strangers, self.known)), key=len)
        if len(waiting) < count * MIN_WAITING:
            waiting = [*self.known.accepted] if len(self.known.accepted) > count * MIN_ACCEPTED else []
        for connection in waiting:
            if not (connection.is_idle and connection.has_input()):
                connection.drop()
                break

    def place_for_change(self, connection: "ClientConnection") -> RoundRobinSemaphore:
        """Wait until the client may make a change; return what to release. Ends the client's own stalled responses."""
        semaphore = self._changes.get(connection.client)
        if semaphore is None:
            if len(self._changes) >= MAX_KNOWN:
                self._changes.clear()
            semaphore = self._changes[connection.client] = RoundRobinSemaphore(MAX_CHANGES)
        while not semaphore.acquire(timeout=STALLED_POLL_SECONDS):
            before = time.monotonic() - OWN_STALLED_SECONDS
            for holder in connection.tier.responses.held:
                if holder.client == connection.client and holder.progress_at < before:
                    holder.end()
        return semaphore

    def place_for_large_change(self) -> RoundRobinSemaphore:
        """Wait until another large change may be made; return what to release."""
        self._large_changes.acquire()
        return self._large_changes
