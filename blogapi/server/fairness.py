"""Treat clients fairly: decide whose turn is next, and limit the memory of each client's requests and responses."""

import re
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from contextvars import ContextVar
from typing import NamedTuple, Protocol

import gevent
from gevent.hub import Hub
from greenlet import greenlet

from blogapi.config import Config
from blogapi.storage.keys import PREFIX

TURN_SECONDS = 0.002  # after running requests for this long, the loop polls the sockets again
MB = 1024 * 1024
KEPT_BYTES = 64 * 1024  # a request or response up to this size counts as small
MAX_STREAMS = 512  # at most this many responses are streamed at the same time
STALLED_SECONDS = 1.0  # a client that has read nothing for this long may be evicted
OWN_STALLED_SECONDS = 5.0  # the same limit if the room is needed for the client's own next change
STALLED_POLL_SECONDS = 1.0  # a waiting change looks for stalled responses of its client at this interval
MAX_CHANGES = 24  # at most this many changes per client run at once; a change lasts until its response is sent
MAX_LARGE_CHANGES = 2  # at most this many changes with large bodies run at once; each needs up to ten times its size
MIN_WAITING = 1 / 16  # waiting connections are dropped only if they are at least this share of all connections
MIN_ACCEPTED = 1 / 2  # the same share, for connections with an accepted key or session
MAX_KNOWN = 1000  # remember at most this many credentials, and this many clients that make changes
CREDENTIAL = re.compile(rb"%b[A-Za-z0-9_-]{43,60}" % PREFIX.encode())  # a key, or the token of a session


class Client(NamedTuple):
    """A known client, identified by its key or session, or a stranger, identified by its address."""

    name: str
    is_known: bool = False


SERVICE = Client("", is_known=True)
Waiting = OrderedDict[Client, deque[greenlet]]
CLIENT: ContextVar[Client] = ContextVar("CLIENT", default=SERVICE)  # who sent the current request


class Queue:
    """A queue of waiting greenlets. Known clients and strangers alternate; within each group, clients take turns."""

    def __init__(self) -> None:
        self.hub: Hub = gevent.get_hub()
        # The strangers, then the known clients. Each dict begins with the client whose turn is next.
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
            waiting[client] = queue  # puts the client at the end, after the others
        return waiter


class Turns(Queue):
    """A queue that runs one greenlet after another, for at most TURN_SECONDS at a stretch."""

    def __init__(self) -> None:
        super().__init__()
        self.timer = self.hub.loop.timer(0)  # runs after the loop has polled the sockets
        self.running = False

    def wait(self, client: Client) -> None:
        # gevent's sleep(0) would resume fifty greenlets at once, in order of arrival.
        if not self.running:
            self.running = True
            self.hub.loop.run_callback(self._give)
        super().wait(client)

    def _give(self) -> None:
        until = time.perf_counter() + TURN_SECONDS
        try:
            while any(self.waiting) and time.perf_counter() < until:
                if not self.waiting[True]:  # Poll after this turn: the database may have answered a known client.
                    until = 0.0
                self._next().switch()
        finally:  # The others must run even if a greenlet ends with an error such as MemoryError.
            self.running = any(self.waiting)
            if self.running:
                self.timer.start(self._give)


class RoundRobinSemaphore(Queue):
    """A semaphore that serves clients round-robin rather than first-come, first-served."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.free = size

    def acquire(self, *, timeout: float | None = None) -> bool:
        """Wait for a place. Return False after `timeout` seconds."""
        if self.free and not any(self.waiting):
            self.free -= 1
            return True
        with gevent.Timeout(timeout, False):
            self.wait(CLIENT.get())
            return True
        return False

    def release(self) -> None:
        self.free += 1
        if any(self.waiting):
            self.hub.loop.run_callback(self._give)

    def _give(self) -> None:
        while self.free and any(self.waiting):
            self.free -= 1
            self._next().switch()


class Holder(Protocol):
    """The part of a connection that budgets use. ClientConnection, which imports this module, implements it."""

    client: Client
    tier: "Tier"
    is_idle: bool
    is_accepted: bool
    reading: bool
    progress_at: float

    def end(self) -> None: ...
    def drop(self) -> None: ...
    def has_input(self) -> bool: ...


class Budget:
    """Limits the total bytes that connections hold, and makes room by evicting the connection that `victim` chooses."""

    def __init__(self, size: int, victim: Callable[["Budget", Holder], Holder | None]):
        self.left = size
        self.victim = victim
        self.held: dict[Holder, int] = {}  # the longest without progress comes first

    def reserve(self, connection: Holder, size: int, *, needed: bool = False) -> bool:
        """Reserve bytes for a connection. Return whether this succeeded. With `needed`, they may exceed the budget."""
        while self.left < size and (victim := self.victim(self, connection)):
            self.release(victim)
            victim.end()
        if self.left < size and not needed:
            return False
        self.left -= size
        self.held[connection] = self.held.get(connection, 0) + size
        connection.progress_at = time.monotonic()
        return True

    def release(self, connection: Holder) -> None:
        self.left += self.held.pop(connection, 0)

    def progress(self, connection: Holder) -> None:
        """Record that a client has read a part of its response."""
        if connection in self.held:
            self.held[connection] = self.held.pop(connection)


def oldest_head(budget: Budget, connection: Holder) -> Holder | None:
    """Choose the oldest other request whose key has not been accepted yet or, failing that, choose by client."""
    arriving = [holder for holder in budget.held if holder.reading and holder is not connection]
    heads = (holder for holder in arriving if not holder.is_accepted)
    own = (holder for holder in arriving if holder.client == connection.client)
    # The busiest client comes before the connection's own client.
    return next(heads, None) or oldest_of_busiest(budget, connection) or next(own, None)


def oldest_of_busiest(budget: Budget, connection: Holder) -> Holder | None:
    """Choose the busiest client's oldest request, if that client has at least two more than `connection`'s client."""
    requests = Counter(holder.client for holder in budget.held if holder.reading)
    client = max(requests, key=requests.__getitem__, default=connection.client)
    if requests[client] <= requests[connection.client] + 1:
        return None
    return next(holder for holder in budget.held if holder.client == client and holder.reading)


def stalled(budget: Budget, connection: Holder) -> Holder | None:
    """Choose the connection whose client has read nothing for the longest time, if that client has stalled."""
    longest = next(iter(budget.held), None)
    return longest if longest and longest.progress_at < time.monotonic() - STALLED_SECONDS else None


class Tier:
    """The budgets that all strangers share, or those for all known clients, which strangers cannot exhaust."""

    def __init__(self, *, body_mb: int, small_mb: int, response_mb: int):
        self.bodies = Budget(body_mb * MB, oldest_of_busiest)
        self.small = Budget(small_mb * MB, oldest_head)  # for headers and small bodies
        self.responses = Budget(response_mb * MB, stalled)
        # The connections that wait between requests, during a request, and for a body after the key or session was
        # accepted. Each dict begins with the connection that has waited longest.
        self.idle: dict[Holder, None] = {}
        self.waiting: dict[Holder, None] = {}
        self.accepted: dict[Holder, None] = {}

    def queue(self, connection: Holder) -> dict[Holder, None]:
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
        self.streams = Budget(MAX_STREAMS, stalled)  # counts streams, not bytes: only a piece of each is in memory
        self.credentials: set[str] = set()  # valid keys and sessions
        self._changes: dict[Client, RoundRobinSemaphore] = {}
        self._large_changes = RoundRobinSemaphore(MAX_LARGE_CHANGES)

    def client(self, data: bytes, address: str) -> Client:
        """Return the client that sent `data`, identified by a valid key or session in the data, or by its address."""
        for credential in CREDENTIAL.findall(data):
            if (name := credential.decode()) in self.credentials:
                return Client(name, is_known=True)
        return Client(address)

    def remember(self, credential: str) -> None:
        if len(self.credentials) >= MAX_KNOWN:
            self.credentials.clear()
        self.credentials.add(credential)

    def make_room(self, count: int) -> None:
        """Drop one of the `count` connections to make room for a new one.

        The connection comes from the tier with more waiting connections. This can be the tier of the known clients,
        because a single key can hold all connections. The tier loses its longest idle connection or, if it has none,
        the one that has waited longest. If only a few connections are waiting, none is dropped, because most of the
        others are about to end.
        """
        waiting = max(([*tier.idle, *tier.waiting] for tier in (self.strangers, self.known)), key=len)
        if len(waiting) < count * MIN_WAITING:
            waiting = [*self.known.accepted] if len(self.known.accepted) > count * MIN_ACCEPTED else []
        for connection in waiting:
            if not (connection.is_idle and connection.has_input()):
                connection.drop()
                break

    def place_for_change(self, connection: Holder) -> RoundRobinSemaphore:
        """Wait until the client may make another change, and return the semaphore to release."""
        semaphore = self._changes.get(connection.client)
        if semaphore is None:
            if len(self._changes) >= MAX_KNOWN:
                self._changes.clear()
            semaphore = self._changes[connection.client] = RoundRobinSemaphore(MAX_CHANGES)
        while not semaphore.acquire(timeout=STALLED_POLL_SECONDS):
            # End stalled responses to the same client.
            before = time.monotonic() - OWN_STALLED_SECONDS
            for holder in connection.tier.responses.held:
                if holder.client == connection.client and holder.progress_at < before:
                    holder.end()
        return semaphore

    def place_for_large_change(self) -> RoundRobinSemaphore:
        """Wait until another large change may run, and return the semaphore to release."""
        self._large_changes.acquire()
        return self._large_changes
