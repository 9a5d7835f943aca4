"""Requests as they come: gunicorn's, with a body that is bounded in time and size."""

from typing import Any
from urllib.parse import quote

from gunicorn.http import body as gunicorn_body
from gunicorn.http import message
from gunicorn.http import parser as gunicorn_parser
from gunicorn.http.errors import ParseException
from gunicorn.http.unreader import Unreader
from werkzeug.exceptions import BadRequest, RequestEntityTooLarge, RequestTimeout, ServiceUnavailable

from blogapi.server.budget import KEPT_BYTES
from blogapi.server.connection import Connection
from blogapi.web.request import MAX_BODY_BYTES

RETRY_SECONDS = 1
ASCII = bytes(range(128))


class ChunkedReader(gunicorn_body.ChunkedReader):
    """Reads a chunked body; refuses it as soon as its chunks say that they are too large."""

    def __init__(self, request: message.Request, unreader: Unreader):
        super().__init__(request, unreader)
        self.announced = 0  # bytes
        self.connection: Connection = unreader.sock

    def parse_chunk_size(self, unreader: Unreader, data: bytes | None = None) -> tuple[int, bytes | None]:
        """Return the size of the next chunk, and what has come of it."""
        size, rest = super().parse_chunk_size(unreader, data)
        if self.announced <= KEPT_BYTES < self.announced + size <= MAX_BODY_BYTES:
            reserve(self.connection, MAX_BODY_BYTES)
        self.announced += size
        if self.announced > MAX_BODY_BYTES:
            raise RequestEntityTooLarge(f"body: must be at most {MAX_BODY_BYTES:,} bytes")
        return size, rest


class Request(message.Request):
    """A request; the exception of one that cannot be read has as `request` what could be."""

    def __init__(self, *arguments: Any):
        try:
            super().__init__(*arguments)
        except Exception as error:
            error.request = self
            raise

    def parse_request_line(self, line_bytes: bytes) -> None:
        """Take bytes beyond ASCII in the target, as curl sends them, for percent-encoded ones."""
        if not line_bytes.isascii():
            method, space, rest = line_bytes.partition(b" ")
            line_bytes = method + space + quote(rest, safe=ASCII).encode()
        super().parse_request_line(line_bytes)

    def set_body_reader(self) -> None:
        super().set_body_reader()
        if isinstance(self.body.reader, gunicorn_body.ChunkedReader):
            self.body = gunicorn_body.Body(ChunkedReader(self, self.unreader))


class RequestParser(gunicorn_parser.RequestParser):
    """Reads one request after another from a connection."""

    mesg_class = Request


class RequestBody:
    """The body of a request, as `wsgi.input`: read when the application asks for it, within its time."""

    def __init__(self, connection: Connection, request: Request):
        self._connection = connection
        self._request = request
        self._asked = False

    def read(self, size: int) -> bytes:
        """Read up to `size` bytes.

        Raises RequestTimeout at the deadline, BadRequest if it is broken off, RequestEntityTooLarge for chunks that
        are too large, ServiceUnavailable where too many large bodies are coming already, or the service is stopped.
        """
        try:
            if not self._asked:
                self._ask()
            return self._request.body.read(size)
        except TimeoutError:
            raise RequestTimeout("body: did not come in time") from None
        except ParseException:
            raise BadRequest("body: broken chunk, or too many of them") from None
        except OSError:
            if self._connection.stopped:
                message = "the service was stopped while the body came; nothing was changed"
                raise ServiceUnavailable(message, retry_after=RETRY_SECONDS) from None
            raise BadRequest("body: broken off") from None

    @property
    def complete(self) -> bool:
        """Return whether nothing of it is left to be read, so that the connection can be used again."""
        reader = self._request.body.reader
        return not getattr(reader, "length", 0) and getattr(reader, "parser", None) is None

    def _ask(self) -> None:
        self._asked = True
        length = getattr(self._request.body.reader, "length", 0)
        if length > KEPT_BYTES:
            reserve(self._connection, length)
        self._connection.expect_body()
        if self._request._expected_100_continue:
            self._connection.send(b"HTTP/1.1 100 Continue\r\n\r\n")


def reserve(connection: Connection, size: int) -> None:
    """Have a place for a large body, or raise ServiceUnavailable."""
    if not connection.receiving.reserve(connection, size):
        message = "too many large requests are coming at the same time; nothing was changed"
        raise ServiceUnavailable(message, retry_after=RETRY_SECONDS)
