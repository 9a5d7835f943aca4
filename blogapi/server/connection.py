"""A client's connection: reads and sends with deadlines, within memory limits for all clients together."""

import re
import socket
import struct
import time
from collections import Counter
from collections.abc import Sized
from contextlib import suppress

import gevent
from gunicorn.http.errors import InvalidRequestLine, LimitRequestHeaders, ParseException

from blogapi.config import Config
from blogapi.server.loop import CLIENT, Turns
from blogapi.storage.keys import KEY_PATTERN

MB = 1024 * 1024
KEPT_BYTES = 64 * 1024  # bytes of a message that need no reservation
BYTES_A_SECOND = 16 * 1024  # minimum speed for sending a body and reading a response, after the first seconds
HEADER_BYTES = 64 * 1024
DISCARDED_BYTES = 64 * MB
DISCARD_SECONDS = 5
MAX_STREAMS = 512  # at most this many streamed responses at a time
STALLED_SECONDS = 1.0  # a client that reads nothing for this long may have to make room
KEY = re.compile(KEY_PATTERN.encode())
NEVER = float("inf")
TLS_HANDSHAKE = b"\x16"
RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # of SO_LINGER


class ClientConnection:
    """A client's socket, from which gunicorn's parser reads."""

    def __init__(self, sock: socket.socket, address: str, shared: "Shared"):
        self.sock = sock
        self.address = address  # identifies it in the turns of requests without a key
        self.client = address  # identifies it in turns: its address or API key
        self.keyed = False  # whether it has a key or a session
        self.had_turn = False  # whether this request has had its turn
        self.shared = shared
        self.reading = False  # waiting for the client to complete a request
        self.stopped = False  # the service is stopping and no longer waits for the client
        self.started = False  # the first byte of a request has arrived
        self.linger = False  # there may be unread input when it is closed
        self.until = NEVER  # monotonic time at which its wait for the client ends
        self.progress_at = 0.0  # when the client last read a part of a response
        self._greenlet = gevent.getcurrent()
        self._is_first = True  # nothing of the request has been read yet
        self._deadline = NEVER  # for what is being read
        self._moving = False  # whether arriving bytes extend the deadline
        self._slack = 0.0  # the deadline is never more than this many seconds ahead
        self._left = 0  # bytes that may still arrive

    def expect_request(self, started: bool) -> None:
        """Start the deadline for the next request's header: now, and again at its first byte."""
        self.started = started
        self.had_turn = False
        self._is_first = True
        self._expect(self.shared.header_seconds, HEADER_BYTES, moving=False)

    def expect_body(self, max_bytes: int) -> None:
        """Start the deadline for the body, which arriving bytes extend."""
        self._is_first = False
        self._expect(self.shared.body_seconds, 2 * max_bytes)  # twice the size, because of the overhead of chunks

    def _expect(self, seconds: float, size: int, moving: bool = True) -> None:
        self._slack = seconds
        self._deadline = time.monotonic() + seconds
        self._moving = moving
        self._left = size

    def identify(self, key: str, known: bool = False) -> None:
        """Identify the client for turns and budgets: by API key if it is known to be valid, else by address."""
        valid = key in self.shared.keys
        self.client = key if valid else self.address
        if self.keyed != (valid or known):
            self.release()
            self.keyed = valid or known

    def take_turn(self, key: str) -> None:
        """Wait for the request's turn, unless it has had it."""
        client = self.client
        self.identify(key)
        if not self.had_turn or self.client != client:
            self.wait_turn()

    def wait_turn(self) -> None:
        """Wait for a turn."""
        CLIENT.set((self.client, self.keyed))
        self.shared.turns.wait(self.client, self.keyed)
        self.had_turn = True

    def recv(self, size: int) -> bytes:
        """Return the next bytes, or b"" at the end. Raises TimeoutError, LimitRequestHeaders if there are too many."""
        self.reading = True
        waiting = self.shared.waiting[self.keyed]
        waiting[self] = None
        try:
            self.until = self._deadline
            # The parser copies the header at each read. Most headers fit in the first read, the others in the second.
            data = self.sock.recv(size if self._is_first or self._moving else HEADER_BYTES)
            self.until = NEVER
            self._count(data)
            self.wait_turn()
        finally:
            self.until = NEVER
            self.reading = False
            waiting.pop(self, None)
        return data

    def _count(self, data: bytes) -> None:
        if self._moving:
            self._deadline = min(self._deadline + len(data) / BYTES_A_SECOND, time.monotonic() + self._slack)
        self._left -= len(data)
        if self._left < 0:
            raise LimitRequestHeaders("too large")
        if not self.started:
            self.started = True
            self._deadline = time.monotonic() + self._slack
            if data.startswith(TLS_HANDSHAKE):
                raise InvalidRequestLine("TLS")
        if self._is_first:
            self._is_first = False
            key = KEY.search(data)
            self.identify(key[0].decode() if key else "")
        if not self._moving or self not in self.shared.large[self.keyed].held:
            self.shared.small[self.keyed].add(self, len(data))

    def release(self) -> None:
        """Release the bytes that have arrived from the budgets."""
        self.shared.large[self.keyed].release(self)
        self.shared.small[self.keyed].release(self)

    def send(self, head: bytes, content: bytes = b"") -> None:
        """Send a response. Raises TimeoutError if the client reads it too slowly or not at all."""
        self.until = time.monotonic() + self.shared.body_seconds
        try:
            self._send(head, content)
        except OSError:
            with suppress(OSError):  # It may already be closed. If not, the kernel may drop the rest of the response.
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
                self.sock.shutdown(socket.SHUT_RDWR)
            raise
        finally:
            self.until = NEVER

    def _send(self, head: bytes, content: bytes) -> None:
        if len(content) <= KEPT_BYTES:
            head, content = head + content, b""  # Joining small parts is faster than a second send.
            sent = self.sock.send(head)
        else:
            sent = self.sock.sendmsg([head, content])
        if sent < len(head):
            self._send_rest(head + content, sent)
        elif sent < len(head) + len(content):
            self._send_rest(content, sent - len(head))

    def _send_rest(self, data: bytes, sent: int) -> None:
        rest = memoryview(data)[sent:]
        is_streamed = self in self.shared.streams.waiting
        budget = self.shared.streams if is_streamed else self.shared.sending
        if not budget.reserve(self, data):
            raise TimeoutError("too many clients do not take their responses")
        try:
            while rest:
                sent = self.sock.send(rest)
                rest = rest[sent:]
                budget.progress(self)
                self.until = min(self.until + sent / BYTES_A_SECOND, time.monotonic() + self.shared.body_seconds)
        finally:
            if not is_streamed:
                budget.release(self)

    def stop_reading(self) -> None:
        """End the connection if it is waiting for the client."""
        if self.reading:
            self.stopped = True
            with suppress(OSError):  # It may already be gone.
                self.sock.shutdown(socket.SHUT_RD)

    def end(self, error: type[OSError] = TimeoutError) -> None:
        """End a wait for the client soon, with a TimeoutError or another error."""
        self.shared.waiting[self.keyed].pop(self, None)
        self.shared.turns.hub.loop.run_callback(self._interrupt, error)

    def _interrupt(self, error: type[OSError]) -> None:
        if self.reading or self.until < NEVER:
            self._greenlet.throw(error)

    def close(self) -> None:
        """Close. With `linger`, discard input first, because a reset for unread input could destroy the response."""
        self.release()
        try:
            if self.linger:
                self.sock.shutdown(socket.SHUT_WR)
                self._expect(DISCARD_SECONDS, DISCARDED_BYTES)
                while self.recv(64 * 1024):
                    self.release()
        except (OSError, ParseException, MemoryError):
            pass
        finally:
            self.release()
            self.sock.close()


class Shared:
    """State shared by all connections: budgets, turns, and keys known to be valid."""

    def __init__(self, config: Config, turns: Turns):
        self.header_seconds = config.header_seconds
        self.body_seconds = config.body_seconds
        self.turns = turns
        # Each in two parts: clients without a key cannot end requests of clients with one
        self.large = ReceiveBudget(2 * MB), ReceiveBudget(24 * MB)  # bodies, reserved before they are read
        self.small = ReceiveBudget(8 * MB), ReceiveBudget(8 * MB)  # headers and small bodies
        self.sending = SendBudget(64 * MB)
        self.streams = SendBudget(MAX_STREAMS)  # each counts one, because only a piece of it is in memory
        # Connections that wait for their clients, without a key and with one, longest wait first
        self.waiting: tuple[dict[ClientConnection, None], dict[ClientConnection, None]] = {}, {}
        self.keys: set[str] = set()


class ReceiveBudget:
    """Limits the bytes of incomplete requests."""

    def __init__(self, size: int):
        self.left = size
        self.held: dict[ClientConnection, int] = {}  # in order of arrival

    def add(self, connection: ClientConnection, size: int) -> None:
        """Count bytes that have arrived. Beyond the limit, the oldest requests are ended."""
        self.left -= size
        self.held[connection] = self.held.get(connection, 0) + size
        while self.left < 0:
            self._end(next(iter(self.held)))

    def reserve(self, connection: ClientConnection, size: int) -> bool:
        """Reserve memory; return False if too little is left and no client holds more than this one."""
        while self.left < size:
            places = Counter(other.client for other in self.held)
            client = max(places, key=places.__getitem__, default=connection.client)
            if places[client] <= places[connection.client] + 1:
                return False
            self._end(next(other for other in self.held if other.client == client))
        self.add(connection, size)
        return True

    def release(self, connection: ClientConnection) -> None:
        """Release the bytes of a connection."""
        self.left += self.held.pop(connection, 0)

    def _end(self, connection: ClientConnection) -> None:
        self.release(connection)
        connection.end()


class SendBudget:
    """Limits the bytes of unread responses; a response sent to many clients counts once."""

    def __init__(self, size: int):
        self.left = size
        self.users: Counter[int] = Counter()  # users of each content, by its id()
        self.waiting: dict[ClientConnection, Sized] = {}  # longest without progress first

    def reserve(self, connection: ClientConnection, content: Sized, needed: bool = False) -> bool:
        """Reserve memory for a response; return False if too little is left. A `needed` response makes others end."""
        if connection in self.waiting:
            return True
        if not self.users[id(content)]:
            self._make_room(len(content), 0.0 if needed else STALLED_SECONDS)
            if self.left < len(content) and not needed:
                return False
            self.left -= len(content)
        self.users[id(content)] += 1
        self.waiting[connection] = content
        connection.progress_at = time.monotonic()
        return True

    def progress(self, connection: ClientConnection) -> None:
        """Record that a client has read a part of its response."""
        if connection in self.waiting:
            self.waiting[connection] = self.waiting.pop(connection)
            connection.progress_at = time.monotonic()

    def release(self, connection: ClientConnection) -> None:
        """Release the response of a connection."""
        content = self.waiting.pop(connection, None)
        if content is not None:
            self.users[id(content)] -= 1
            if not self.users[id(content)]:
                del self.users[id(content)]
                self.left += len(content)

    def _make_room(self, size: int, seconds: float) -> None:
        before = time.monotonic() - seconds
        while self.waiting and self.left < size:
            connection = next(iter(self.waiting))
            if connection.progress_at > before:
                return
            self.release(connection)
            connection.end()
