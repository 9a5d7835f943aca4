"""A client's connection: reads and sends that end at a deadline, and the body of a request."""

import socket
import time
from contextlib import suppress

from gunicorn.http.errors import InvalidRequestLine, LimitRequestHeaders, ParseException
from gunicorn.http.message import Request
from werkzeug.exceptions import BadRequest, RequestTimeout

BYTES_A_SECOND = 16 * 1024  # what a body must come with, and an answer be taken with, after the first seconds
HEADER_BYTES = 64 * 1024
BODY_BYTES = 8 * 1024 * 1024  # twice the largest body: chunks cost something, but not any amount
LINGER_BYTES = 64 * 1024 * 1024
LINGER_SECONDS = 5
READS = 2  # without a break: a request that comes in many pieces must not keep the others waiting
TLS_HANDSHAKE = b"\x16"


class Connection:
    """The socket of a client; gunicorn's parser reads from it as from any socket."""

    def __init__(self, sock: socket.socket, header_seconds: float, body_seconds: float):
        self.sock = sock
        self.header_seconds = header_seconds
        self.body_seconds = body_seconds
        self.reading = False  # waiting for the client, that is, without a complete request
        self.started = False  # the first byte of a request has come
        self.linger = False  # input may be unread when it is closed
        self._deadline = 0.0
        self._seconds_a_byte = 0.0
        self._left = 0  # bytes that may still come
        self._reads = 0

    def expect_request(self, started: bool) -> None:
        """Give the next request's header its time, from now and then from its first byte."""
        self.started = started
        self._deadline = time.monotonic() + self.header_seconds
        self._seconds_a_byte = 0.0
        self._left = HEADER_BYTES
        self._reads = 0

    def expect_body(self) -> None:
        """Give the body its time, which grows with what comes."""
        self._deadline = time.monotonic() + self.body_seconds
        self._seconds_a_byte = 1 / BYTES_A_SECOND
        self._left = BODY_BYTES

    def recv(self, size: int) -> bytes:
        """Return what the client sends next, b"" at its end.

        Raises TimeoutError at the deadline, LimitRequestHeaders where too much has come.
        """
        self._reads += 1
        if self._reads > READS:
            time.sleep(0)
        self.sock.settimeout(max(0.001, self._deadline - time.monotonic()))
        self.reading = True
        try:
            data = self.sock.recv(size)
        finally:
            self.reading = False
        self._deadline += len(data) * self._seconds_a_byte
        self._left -= len(data)
        if self._left < 0:
            raise LimitRequestHeaders("too large")
        if not self.started:
            self.started = True
            self._deadline = time.monotonic() + self.header_seconds
            if data.startswith(TLS_HANDSHAKE):
                raise InvalidRequestLine("TLS")
        return data

    def send(self, data: bytes) -> None:
        """Send bytes; raise TimeoutError if the client does not take it, or too slowly."""
        deadline = time.monotonic() + self.body_seconds + len(data) / BYTES_A_SECOND
        rest = memoryview(data)
        while rest:  # Mostly once: gevent's sendall() would first ask for the buffer's size.
            self.sock.settimeout(max(0.001, min(self.body_seconds, deadline - time.monotonic())))
            rest = rest[self.sock.send(rest) :]

    def stop_reading(self) -> None:
        """End the connection if it is waiting for the client: what it waits for then ends."""
        if self.reading:
            with suppress(OSError):  # It may be gone already.
                self.sock.shutdown(socket.SHUT_RD)

    def close(self) -> None:
        """Close; with `linger`, first discard for a bounded while what still comes.

        To close with input unread makes the kernel send a reset, which can destroy the answer on its way.
        """
        try:
            if self.linger:
                self._discard_input()
        except (OSError, ParseException):
            pass
        finally:
            self.sock.close()

    def _discard_input(self) -> None:
        self.sock.shutdown(socket.SHUT_WR)
        self._deadline = time.monotonic() + LINGER_SECONDS
        self._seconds_a_byte = 1 / BYTES_A_SECOND
        self._left = LINGER_BYTES
        while self.recv(64 * 1024):
            pass


class RequestBody:
    """The body of a request, as `wsgi.input`: read when the application asks for it, within its time."""

    def __init__(self, connection: Connection, request: Request):
        self._connection = connection
        self._request = request
        self._asked = False

    def read(self, size: int) -> bytes:
        """Read up to `size` bytes; raise RequestTimeout at the deadline, BadRequest if it is broken off."""
        try:
            if not self._asked:
                self._ask()
            return self._request.body.read(size)
        except TimeoutError:
            raise RequestTimeout("body: did not come in time") from None
        except ParseException:
            raise BadRequest("body: broken chunk, or too many of them") from None
        except OSError:
            raise BadRequest("body: broken off") from None

    @property
    def complete(self) -> bool:
        """Tell whether nothing of it is left to be read, so that the connection can be used again."""
        reader = self._request.body.reader
        return not getattr(reader, "length", 0) and getattr(reader, "parser", None) is None

    def _ask(self) -> None:
        self._asked = True
        self._connection.expect_body()
        if self._request._expected_100_continue:
            self._connection.send(b"HTTP/1.1 100 Continue\r\n\r\n")
