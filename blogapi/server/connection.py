"""Read from a client's connection and write to it, within deadlines."""

import socket
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from fcntl import ioctl
from functools import partial
from termios import FIONREAD

from gevent import get_hub, getcurrent
from greenlet import greenlet
from gunicorn.http.errors import InvalidRequestLine, LimitRequestHeaders, ParseException

from blogapi.server.fairness import CLIENT, KEPT_BYTES, MB, Client, RoundRobinSemaphore, SharedState

BYTES_A_SECOND = 16 * 1024  # after the first seconds, a client must send a body or read a response at least this fast
DISCARDED_PIECE = 8 * 1024  # bytes to read at once; few, because many connections may do this at the same time
HEADER_BYTES = 64 * 1024
DISCARDED_BYTES = 64 * MB
DISCARD_SECONDS = 5
IDLE_SECONDS = 75  # a connection stays open for this long after a response
KEEP_ALIVE_SECONDS = 70  # announced to clients; shorter, so that no request arrives while the connection is closing
NOTHING = bytes(4)  # the result of FIONREAD for a socket without unread input
NEVER = float("inf")
TLS_HANDSHAKE = b"\x16"
RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # value for SO_LINGER


class Stopped(ConnectionAbortedError):
    """The service is stopping and no longer waits for the client."""


class ClientConnection:
    """A client's connection, which gunicorn's readers use in place of a socket."""

    def __init__(self, sock: socket.socket, address: str, shared: SharedState):
        self.sock = sock
        self.address = address  # identifies a client without a key or session
        self.client = Client(address)
        self.tier = shared.strangers  # the budgets that all strangers, or all known clients, share
        self.shared = shared
        self.started = False  # whether the first byte of a request has arrived
        self.is_used = False  # whether a response has been sent
        self.is_idle = False  # whether the connection waits for another request after a response
        self.is_accepted = False  # whether the key or session was accepted and the body is still arriving
        self.reading = False  # whether the connection may be evicted, because its request is still arriving or queued
        self.until = NEVER  # monotonic time at which the current wait for the client ends
        self.progress_at = 0.0  # when the client last read a part of a response, or memory was last reserved for it
        self.linger = False  # whether there may be unread input when the connection is closed
        self._deadline = NEVER  # monotonic time by which the expected bytes must have arrived
        self._left = 0  # at most this many more bytes may arrive before the deadline
        self._extension = 0.0  # arriving bytes extend the deadline, but to at most this many seconds from now
        self._places: list[RoundRobinSemaphore] = []  # the semaphores in which the current change has a place
        self._queued: greenlet | None = None  # the greenlet that waits in a queue for the current request
        self._ended: type[OSError] | None = None  # the error to raise if a wait was cut short

    def expect_request(self, started: bool) -> None:
        """Start a deadline for the header of the next request. `started` is whether its first byte has arrived."""
        self.started, self.is_idle, self.is_accepted = started, self.is_used and not started, False
        self._allow(IDLE_SECONDS if self.is_idle else self.shared.header_seconds, HEADER_BYTES)
        self._extension = 0.0

    def expect_body(self, max_bytes: int) -> None:
        """Start the deadline for the body. Arriving bytes extend it."""
        self._allow(self.shared.body_seconds, 2 * max_bytes)  # twice the size, because chunked bodies have overhead

    def _allow(self, seconds: float, size: int) -> None:
        self._deadline, self._left, self._extension = time.monotonic() + seconds, size, seconds

    def identify(self, client: Client) -> None:
        """Set the client whose turns and budgets the connection uses."""
        if client != self.client:
            self.release()
            self.client, self.tier = client, self.shared.known if client.is_known else self.shared.strangers

    def wait_turn(self) -> None:
        CLIENT.set(self.client)
        self.shared.turns.wait(self.client)

    def wait_turn_to_read(self) -> None:
        """Wait for a turn after a part of a request has arrived. During this wait, the connection may be evicted."""
        self._queue(self.wait_turn)

    def take_places(self) -> None:
        """Wait until the requested change may run. The connection may be evicted meanwhile. Raises TimeoutError."""
        if not self._places:
            self._queue(partial(self.shared.place_for_change, self))
            if self in self.tier.bodies.held:
                self._queue(self.shared.place_for_large_change)
            if not self.tier.responses.reserve(self, 0):  # The budget is exceeded, and no response has stalled.
                raise TimeoutError
            self.tier.responses.release(self)  # `_send` reserves what the kernel does not accept at once.

    def leave_places(self, *, keep: int = 0) -> None:
        """Release all places of the current change except the first `keep`."""
        while len(self._places) > keep:
            self._places.pop().release()

    def _queue(self, wait: Callable[[], RoundRobinSemaphore | None]) -> None:
        waiting = self.tier.queue(self)
        waiting[self] = None
        self.reading, self._queued = True, getcurrent()
        try:
            if places := wait():
                self._places.append(places)
        finally:
            self.reading, self._queued = False, None
            waiting.pop(self, None)
        if self._ended:
            raise self._ended

    def recv(self, size: int) -> bytes:
        """Return the next bytes, or b"" at the end. Raises TimeoutError, or LimitRequestHeaders for too many bytes."""
        waiting = self.tier.queue(self)
        waiting[self] = None
        self.reading, self.until = True, self._deadline
        try:
            data = self.sock.recv(size)
        except OSError as error:
            raise self._ended or error from None
        finally:
            self.reading, self.until = False, NEVER
            waiting.pop(self, None)
        if self._ended and (self.started or not data):
            raise self._ended
        if data and not self.started:
            self._ended = None  # A request arrived just before the idle connection was ended, so serve it.
            self.expect_request(started=True)
            if data.startswith(TLS_HANDSHAKE):
                raise InvalidRequestLine("TLS")
        self._left -= len(data)
        if self._left < 0:
            raise LimitRequestHeaders("too large")
        if self._extension:
            self._deadline = min(self._deadline + len(data) / BYTES_A_SECOND, time.monotonic() + self._extension)
            self.wait_turn()
        return data

    def hold(self, size: int) -> bool:
        """Reserve bytes for the request in the budgets. Return False if too few are left."""
        return (self.tier.small if size <= KEPT_BYTES else self.tier.bodies).reserve(self, size)

    def release(self) -> None:
        """Return the bytes reserved for the request to the budgets."""
        self.tier.bodies.release(self)
        self.tier.small.release(self)

    def release_response(self) -> None:
        """Return the bytes reserved for the response to the budgets."""
        self.shared.streams.release(self)
        self.tier.responses.release(self)

    def send(self, head: bytes, content: bytes = b"") -> None:
        """Send a part of a response. Raises TimeoutError if the client reads it too slowly or not at all."""
        self.until = time.monotonic() + self.shared.body_seconds
        try:
            if len(content) <= KEPT_BYTES:  # Joining the head and a small content is faster than sending twice.
                self._send(head + content)
            else:
                self._send(head)
                self._send(content)
        except OSError as error:
            with suppress(OSError):  # The socket may already be closed. If not, let the kernel drop unsent data.
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
                self.sock.shutdown(socket.SHUT_RDWR)
            raise self._ended or error from None
        finally:
            self.until = NEVER

    def _send(self, data: bytes) -> None:
        sent = self.sock.send(data)
        if sent == len(data):
            return
        budgets = self.shared.streams, self.tier.responses
        if not any(self in budget.held for budget in budgets) and not budgets[1].reserve(self, len(data)):
            raise TimeoutError("too many clients are not reading their responses")
        rest = memoryview(data)
        while rest := rest[sent:]:
            self.progress_at = now = time.monotonic()
            for budget in budgets:
                budget.progress(self)
            self.until = min(self.until + sent / BYTES_A_SECOND, now + self.shared.body_seconds)
            sent = self.sock.send(rest)

    def end(self, error: type[OSError] = TimeoutError) -> None:
        """End the current wait for the client: a read raises `error`, and a send fails."""
        if not self.reading and self.until == NEVER:
            return
        if self.reading and not self.started and self.has_input():  # A request has just arrived, so serve it.
            return
        self._leave(error)
        if self.until < NEVER:
            self.until = NEVER
            with suppress(OSError):  # The connection may already be gone.
                self.sock.shutdown(socket.SHUT_RD if self.reading else socket.SHUT_RDWR)

    def drop(self) -> None:
        """Close the connection at once, without a response, to make room for another one."""
        self._leave(ConnectionAbortedError)
        self.reading, self.until = False, NEVER
        self.sock.close()

    def has_input(self) -> bool:
        return ioctl(self.sock.fileno(), FIONREAD, NOTHING) != NOTHING

    def _leave(self, error: type[OSError]) -> None:
        self._ended = error
        self.tier.queue(self).pop(self, None)
        if self._queued:
            get_hub().loop.run_callback(self._interrupt)

    def _interrupt(self) -> None:
        if self._queued:  # Otherwise, the greenlet got its turn or place in the meantime.
            self._queued.throw(self._ended)

    def stop(self) -> None:
        """End the wait for the rest of a request, because the service is stopping."""
        if self.reading and self.until < NEVER:
            self.end(Stopped)

    def close(self) -> None:
        """Close the connection. With `linger`, first read and discard the client's input."""
        self.leave_places()
        self.is_accepted = False
        try:
            if self.linger:  # Unread input would reset the connection, and the client might lose the response.
                self.sock.shutdown(socket.SHUT_WR)
                self._ended = None
                self._allow(DISCARD_SECONDS, DISCARDED_BYTES)
                while self.recv(DISCARDED_PIECE):
                    pass
        except (OSError, ParseException, MemoryError):
            pass
        finally:
            self.release()
            self.release_response()
            self.sock.close()
