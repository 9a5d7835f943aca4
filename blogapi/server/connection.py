"""A client's connection: reads and sends that end at a deadline."""

import re
import socket
import struct
import time
from collections import OrderedDict
from contextlib import suppress

import gevent
from gunicorn.http.errors import InvalidRequestLine, LimitRequestHeaders, ParseException

from blogapi.config import Config
from blogapi.loop import CLIENT
from blogapi.server.budget import KEPT_BYTES, ReceiveBudget, SendBudget
from blogapi.server.loop import Turns

BYTES_A_SECOND = 16 * 1024  # the lowest speed of sending a body and of reading a response, after the first seconds
HEADER_BYTES = 64 * 1024
BODY_BYTES = 8 * 1024 * 1024  # twice the largest body, as chunks have an overhead
DISCARDED_BYTES = 64 * 1024 * 1024
DISCARD_SECONDS = 5
MAX_KEYS = 1000
KEY = re.compile(rb"blog_[A-Za-z0-9_-]{43}")
NEVER = float("inf")
TLS_HANDSHAKE = b"\x16"
RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # of SO_LINGER


class Shared:
    """State that connections share: budgets, turns, and known valid keys."""

    def __init__(self, config: Config, turns: Turns):
        self.header_seconds = config.header_seconds
        self.body_seconds = config.body_seconds
        self.turns = turns
        self.receiving = ReceiveBudget()
        self.sending = SendBudget()
        self.keys: OrderedDict[str, None] = OrderedDict()  # the one that was used last is last

    def remember(self, key: str) -> None:
        """Remember a valid key."""
        self.keys[key] = None
        self.keys.move_to_end(key)
        if len(self.keys) > MAX_KEYS:
            self.keys.popitem(last=False)


class ClientConnection:
    """The socket of a client; gunicorn's parser reads from it as from any socket."""

    def __init__(self, sock: socket.socket, address: str, shared: Shared):
        self.sock = sock
        self.address = address  # for the turns of requests without a key
        self.client = address  # whose turns it takes: an address, or an API key
        self.keyed = False  # whether that is a key
        self.had_turn = False  # for this request
        self.shared = shared
        self.header_seconds = shared.header_seconds
        self.body_seconds = shared.body_seconds
        self.receiving = shared.receiving
        self.sending = shared.sending
        self.reading = False  # waiting for the client, without a complete request
        self.ended = False  # it must make room for others
        self.stopped = False  # the service is stopping, and no longer waits for the client
        self.started = False  # the first byte of a request has arrived
        self.linger = False  # input may be unread when it is closed
        self.until = NEVER  # monotonic time at which its wait for the client ends
        self.progress_at = 0.0  # when the client last read a part of a response
        self._writing = False  # waiting for the client to read a response
        self._greenlet = gevent.getcurrent()
        self._deadline = 0.0
        self._slack = 0.0  # the deadline is never further away than this
        self._seconds_a_byte = 0.0
        self._left = 0  # bytes that may still arrive
        self._reads = 0
        self._first = 0  # bytes of the first read

    def expect_request(self, started: bool) -> None:
        """Start the deadline of the next request's header: now, and again at its first byte."""
        if self._reads > 1:
            self.receiving.release(self)
        self.started = started
        self._deadline = time.monotonic() + self.header_seconds
        self._seconds_a_byte = 0.0
        self._left = HEADER_BYTES
        self._reads = 0
        self.had_turn = False

    def identify(self, key: str) -> None:
        """Take turns by an API key if that is known to be valid, else by address."""
        keyed = key in self.shared.keys
        self.client = key if keyed else self.address
        self.set_keyed(keyed)

    def set_keyed(self, keyed: bool) -> None:
        """Count the following bytes with those of clients that have a key, or that have none."""
        if keyed != self.keyed:
            self.receiving.release(self)
            self.keyed = keyed

    def take_turn(self, key: str) -> None:
        """Wait for a turn by the key of a request, unless it has had that already."""
        client = self.client
        self.identify(key)
        if not self.had_turn or self.client != client:
            self.wait_turn()

    def wait_turn(self) -> None:
        """Wait for a turn."""
        CLIENT.set((self.client, self.keyed))
        self.shared.turns.wait(self.client, self.keyed)
        self.had_turn = True

    def expect_body(self) -> None:
        """Start the deadline of the body, which moves with the bytes that arrive."""
        self._slack = self.body_seconds
        self._deadline = time.monotonic() + self._slack
        self._seconds_a_byte = 1 / BYTES_A_SECOND
        self._left = BODY_BYTES

    def recv(self, size: int) -> bytes:
        """Return the next bytes of the client, b"" at the end.

        Raises TimeoutError at the deadline, LimitRequestHeaders if too much has arrived.
        """
        self._reads += 1
        self.reading = True
        try:
            self.until = self._deadline
            # The parser copies the header at each read: most headers fit in the first read, the others in the second.
            data = self.sock.recv(size if self._reads == 1 or self._seconds_a_byte else HEADER_BYTES)
            self.until = NEVER
            self._count(data)
            self.wait_turn()
        finally:
            self.reading = False
        return data

    def _count(self, data: bytes) -> None:
        if self._seconds_a_byte:
            self._deadline = min(self._deadline + len(data) * self._seconds_a_byte, time.monotonic() + self._slack)
        self._left -= len(data)
        if self._left < 0:
            raise LimitRequestHeaders("too large")
        if not self.started:
            self.started = True
            self._deadline = time.monotonic() + self.header_seconds
            if data.startswith(TLS_HANDSHAKE):
                raise InvalidRequestLine("TLS")
        if self._reads > 1:  # Most requests arrive in one piece.
            self.receiving.add(self, len(data) + self._first)
            self._first = 0
        elif not self._seconds_a_byte:
            self._first = len(data)
            key = KEY.search(data)
            self.identify(key[0].decode() if key else "")

    def send(self, head: bytes, content: bytes = b"") -> None:
        """Send a response; raise TimeoutError if the client does not read it, or reads too slowly."""
        self._writing = True
        self.until = time.monotonic() + self.body_seconds
        try:
            self._send(head, content)
        except OSError:
            with suppress(OSError):  # It may be closed already. If not, the kernel may drop the rest of the response.
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
                self.sock.shutdown(socket.SHUT_RDWR)
            raise
        finally:
            self.until = NEVER
            self._writing = False

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
        if not self.sending.reserve(self, data):
            raise TimeoutError("too many clients do not take their responses")
        try:
            while rest:
                sent = self.sock.send(rest)
                rest = rest[sent:]
                self.sending.progress(self)
                self.until = min(self.until + sent / BYTES_A_SECOND, time.monotonic() + self.body_seconds)
        finally:
            self.sending.release(self)

    def stop_reading(self) -> None:
        """End the connection if it is waiting for the client: its read then ends."""
        if self.reading:
            self.stopped = True
            with suppress(OSError):  # It may be gone already.
                self.sock.shutdown(socket.SHUT_RD)

    def give_up(self) -> None:
        """End the wait for the client soon, as at its deadline."""
        self.shared.turns.hub.loop.run_callback(self._interrupt, TimeoutError)

    def end(self) -> None:
        """End the connection soon, without an answer, if it still waits for the client then."""
        self.ended = True
        self.shared.turns.hub.loop.run_callback(self._interrupt, ConnectionAbortedError)

    def _interrupt(self, error: type[OSError]) -> None:
        self.ended = False
        if self.reading or self._writing:
            self._greenlet.throw(error)

    def close(self) -> None:
        """Close; with `linger`, first discard input for a bounded time.

        Closing with unread input makes the kernel send a reset, which can destroy the response on its way.
        """
        self.receiving.release(self)
        try:
            if self.linger:
                self._discard_input()
        except (OSError, ParseException):
            pass
        finally:
            self.receiving.release(self)
            self.sock.close()

    def _discard_input(self) -> None:
        self.sock.shutdown(socket.SHUT_WR)
        self._slack = DISCARD_SECONDS
        self._deadline = time.monotonic() + self._slack
        self._seconds_a_byte = 1 / BYTES_A_SECOND
        self._left = DISCARDED_BYTES
        while self.recv(64 * 1024):
            self.receiving.release(self)
