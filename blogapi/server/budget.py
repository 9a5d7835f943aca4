"""Budgets: bounds on the memory that all clients together can occupy in the server."""

import time
from collections import Counter
from typing import Protocol

MB = 1024 * 1024
KEPT_BYTES = 64 * 1024  # of a message, which need no reservation


class Client(Protocol):
    """A connection, as budgets see it."""

    progress_at: float  # monotonic time
    keyed: bool  # whether it has an API key, or a session

    def give_up(self) -> None:
        """End the wait for the client soon."""


class ReceiveBudget:
    """Bounds the bytes of requests that have not arrived completely.

    A large body must be reserved before it is read. Headers and small bodies are always accepted: if they are too
    many, the oldest is ended. Clients without a key cannot end requests with one, and leave them their memory.
    """

    def __init__(self, large: tuple[int, int] = (2 * MB, 24 * MB), small: int = 8 * MB):
        self.large = [*large]  # bytes that are left to clients without a key, and to those with one
        self.reserved: dict[Client, int] = {}
        self.small = [small, small]  # the same
        self.kept: tuple[dict[Client, int], dict[Client, int]] = {}, {}  # the one that began first is first

    def reserve(self, client: Client, size: int) -> bool:
        """Reserve memory for a large body; return False if too little is left."""
        if self.large[client.keyed] < size:
            return False
        self.large[client.keyed] -= size
        self.reserved[client] = size
        return True

    def add(self, client: Client, size: int) -> None:
        """Count bytes of a header or a small body."""
        if client in self.reserved:
            return
        kept = self.kept[client.keyed]
        kept[client] = kept.get(client, 0) + size
        self.small[client.keyed] -= size
        while self.small[client.keyed] < 0:
            oldest = next(iter(kept))
            self.release(oldest)
            oldest.give_up()

    def release(self, client: Client) -> None:
        """Forget the bytes of a client. Its `keyed` must not have changed since they were counted."""
        self.large[client.keyed] += self.reserved.pop(client, 0)
        self.small[client.keyed] += self.kept[client.keyed].pop(client, 0)


class SendBudget:
    """Bounds the bytes of responses that clients have not read yet; a response sent to many clients counts once."""

    STALLED_SECONDS = 1.0  # after which a client that reads nothing must make room for others

    def __init__(self, size: int = 64 * MB):
        self.left = size
        self.users: Counter[int] = Counter()  # of each content, by its id()
        self.waiting: dict[Client, bytes] = {}  # the one that has read nothing for the longest time is first

    def reserve(self, client: Client, content: bytes, needed: bool = False) -> bool:
        """Reserve memory for a response; return False if too little is left. A `needed` response ends others."""
        if client in self.waiting:
            return True
        if not self.users[id(content)]:
            self._make_room(len(content), 0.0 if needed else self.STALLED_SECONDS)
            if self.left < len(content) and not needed:
                del self.users[id(content)]
                return False
            self.left -= len(content)
        self.users[id(content)] += 1
        self.waiting[client] = content
        client.progress_at = time.monotonic()
        return True

    def progress(self, client: Client) -> None:
        """Note that a client has read a part of its response."""
        if client in self.waiting:
            self.waiting[client] = self.waiting.pop(client)
            client.progress_at = time.monotonic()

    def release(self, client: Client) -> None:
        """Forget the response of a client."""
        content = self.waiting.pop(client, None)
        if content is not None:
            self.users[id(content)] -= 1
            if not self.users[id(content)]:
                del self.users[id(content)]
                self.left += len(content)

    def _make_room(self, size: int, seconds: float) -> None:
        before = time.monotonic() - seconds
        while self.waiting and self.left < size:
            client = next(iter(self.waiting))
            if client.progress_at > before:
                return
            self.release(client)
            client.give_up()
