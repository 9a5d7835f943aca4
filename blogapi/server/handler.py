"""The connection handler: reads requests, calls the application, sends and logs responses."""

import logging
import resource
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from email.utils import formatdate
from functools import lru_cache, partial
from http import HTTPStatus
from typing import Any

from gunicorn.http.errors import NoMoreData, ParseException
from gunicorn.http.unreader import SocketUnreader
from gunicorn.util import unquote_to_wsgi_str

from blogapi.api.errors import error_body, with_id
from blogapi.api.request import INFO, JSON, READ_METHODS, RequestInfo
from blogapi.api.responses import PRIVATE
from blogapi.api.service import Service
from blogapi.server.connection import KEPT_BYTES, ClientConnection, Shared
from blogapi.server.log import printable_target, timestamp
from blogapi.server.proxies import client_address, network
from blogapi.server.requests import BUSY, MALFORMED, REFUSALS, HttpRequest
from blogapi.storage.errors import RETRY_SECONDS, Unavailable
from blogapi.wings.cors import cors_headers, is_covered

MAX_CONNECTIONS = 4096  # beyond this, each new connection ends one that waits for its client
OTHER_FILES = 192  # files for everything else: the database, webhooks, closing connections
KEPT_FIELDS = ("X-RateLimit-", "Access-Control-", "Vary")  # headers that remain when BUSY replaces a response

Content = bytes | Iterable[bytes]
WsgiResponse = tuple[str, list[tuple[str, str]], Content]  # status line, headers and content

format_date = lru_cache(maxsize=2)(partial(formatdate, usegmt=True))  # slower than any other header
log = logging.getLogger(__name__)


class Handler:
    """Serves connections. Once `closing` is set, each ends after its request."""

    def __init__(self, wsgi: Callable, service: Service):
        self.wsgi = wsgi
        self.service = service
        self.config = service.config
        self.connections: dict[ClientConnection, None] = {}  # oldest first
        self.shared = Shared(self.config, self.service.loop.turns)  # type: ignore[attr-defined]
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self.max_connections = MAX_CONNECTIONS if files < 0 else min(MAX_CONNECTIONS, files - OTHER_FILES)
        self.closing = False
        self.base_environ = {
            "SCRIPT_NAME": "",
            "SERVER_NAME": self.config.host,
            "SERVER_PORT": str(self.config.port),
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input_terminated": True,
            "wsgi.errors": sys.stderr,
            **dict.fromkeys(("wsgi.multithread", "wsgi.multiprocess", "wsgi.run_once"), False),
        }

    def __call__(self, sock: socket.socket, address: tuple) -> None:
        """Serve a connection's requests until either side ends it."""
        connection = ClientConnection(sock, network(address[0]), self.shared)
        unreader = SocketUnreader(connection)
        self.connections[connection] = None
        if len(self.connections) > self.max_connections and (waiting := max(self.shared.waiting, key=len)):
            # End the longest wait of the larger group, because one key can hold all connections.
            next(iter(waiting)).end(ConnectionAbortedError)  # without an answer
        try:
            while self.serve(connection, unreader, address):
                pass
        except OSError as error:
            log.debug("connection lost: %s", error)
        except MemoryError:
            log.error("closed a connection: out of memory")
        except Exception:
            log.exception("unexpected error outside the application")
        finally:
            connection.close()
            del self.connections[connection]

    def end_overdue(self) -> None:
        """End overdue waits for clients. A timer for each would cost 3 % of a list."""
        now = time.monotonic()
        for connection in self.connections:
            if connection.until < now:
                connection.end()

    def serve(self, connection: ClientConnection, unreader: SocketUnreader, address: tuple) -> bool:
        """Answer the next request of a connection; return whether another may follow."""
        connection.expect_request(started=bool(unreader.buf.getvalue()))
        try:
            request = HttpRequest(unreader, address)
        except StopIteration:  # The client closed the connection between two requests.
            return False
        except (NoMoreData, ParseException, TimeoutError) as error:
            if not connection.started or self.closing:
                return False
            refusal = REFUSALS.get(getattr(error, "hdr", "")) or REFUSALS.get(type(error), MALFORMED)
            return self.refuse(error.request, *refusal)  # type: ignore[union-attr]
        if trusted := self.config.trusted_proxies:
            forwarded_for = request.fields.environ.get("HTTP_X_FORWARDED_FOR", "")
            request.remote_addr = (client_address(address[0], forwarded_for, trusted),)
            connection.address = network(request.remote_addr[0])
        if request.refusal:
            return self.refuse(request, *request.refusal)
        return self.respond(request)

    def refuse(self, request: HttpRequest, status: int, message: str) -> bool:
        """Answer a request with an Error instead of calling the application, and end the connection."""
        path = self.config.without_prefix(request.path or "/v1")
        origin = request.fields.environ.get("HTTP_ORIGIN")
        cors = cors_headers(self.config.cors_origins, origin) if is_covered(path) else {}
        line, headers, content = refusal_response(
            status, message, [*self.service.limiter.peek().headers, *cors.items()]
        )
        response = line, headers, b"" if request.method == "HEAD" else content
        request.info.cause = message
        self.answer(request, response, time.perf_counter(), keep=False)
        return False

    def respond(self, request: HttpRequest) -> bool:
        """Answer a request with the application; return whether another may follow."""
        environ, info = self.environ(request), request.info
        request.connection.take_turn(request.key)
        started = time.perf_counter()
        response: list[Any] = []
        chunks = self.wsgi(environ, lambda status, headers, exc_info=None: response.extend((status, headers)))
        status, headers, content = *response, chunks
        if type(chunks) is list:  # A list is sent as a whole; anything else is streamed.
            content = b"".join(chunks)
            environ.clear()  # breaks a cycle through Werkzeug's request
        request.remember_key()
        if status.startswith("401"):  # Public paths do not check the key.
            self.shared.keys.discard(request.key)
        keep = request.is_persistent and not self.closing
        if (content is chunks or len(content) > KEPT_BYTES) and not self.reserve(request, content):
            close(content)
            info.cause = with_id(BUSY[1])
            kept = [field for field in headers if field[0].startswith(KEPT_FIELDS)]
            status, headers, content = refusal_response(BUSY[0], info.cause, kept)
            keep = False
        self.answer(request, (status, headers, content), started, keep)
        return keep

    def reserve(self, request: HttpRequest, content: Content) -> bool:
        """Reserve memory for a large or streamed response until it is sent; return False if too little is left."""
        if not isinstance(content, bytes):
            return self.shared.streams.reserve(request.connection, [content])
        # The client must learn that its change was committed.
        needed = request.info.is_known and request.method not in READ_METHODS
        return self.shared.sending.reserve(request.connection, content, needed)

    def environ(self, request: HttpRequest) -> dict[str, Any]:
        """Return the WSGI environment. gunicorn's own takes three times as long and trusts a SCRIPT_NAME header."""
        return {
            **self.base_environ,
            "REQUEST_METHOD": request.method,
            "PATH_INFO": unquote_to_wsgi_str(request.path),
            "QUERY_STRING": request.query,
            "RAW_URI": request.uri,
            "SERVER_PROTOCOL": f"HTTP/{request.version[0]}.{request.version[1]}",
            "REMOTE_ADDR": request.remote_addr[0],
            "wsgi.input": request,
            INFO: request.info,
            **request.fields.environ,
        }

    def answer(self, request: HttpRequest, response: WsgiResponse, started: float, keep: bool) -> None:
        """Send and record a response. With `keep`, the connection stays open."""
        status, headers, content = response
        connection, info = request.connection, request.info
        connection.linger = not keep
        connection.release()
        option = "keep-alive" if keep else "close"
        lines = [f"HTTP/1.1 {status}\r\nDate: {format_date(int(time.time()))}\r\nConnection: {option}"]
        lines += [f"{name}: {value}" for name, value in headers]
        size = 0
        head = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
        try:
            for piece in [content] if isinstance(content, bytes) else self.pieces(connection, content, info):
                connection.send(head, piece)
                head = b""
                size += len(piece)
        except OSError:
            info.cause = info.cause or "the client did not take it"
            raise
        finally:
            self.shared.sending.release(connection)
            self.shared.streams.release(connection)
            self.record(request, status[:3], size, time.perf_counter() - started)

    def record(self, request: HttpRequest, status: str, size: int, seconds: float) -> None:
        """Count a request and log it."""
        info = request.info
        self.service.requests.count(info.endpoint, status, seconds)
        key = info.key_name.replace(" ", "_").replace('"', "_") or "-"
        target = f"{request.method} {printable_target(request.uri)}" if request.uri else "-"
        cause = f" ({info.cause})" if info.cause else ""
        sys.stderr.write(
            f'{timestamp(time.time())} {request.remote_addr[0]} {key} "{target}" '
            f"{status} {size} {seconds * 1000:.1f}ms{cause}\n"
        )

    def pieces(self, connection: ClientConnection, content: Iterable[bytes], info: RequestInfo) -> Iterator[bytes]:
        """Yield the pieces of a response, letting other requests run in between. Raises ConnectionAbortedError."""
        sent = False
        try:
            for piece in content:
                yield piece
                sent = True
                connection.wait_turn()
        except Unavailable as error:
            info.cause = str(error)
            raise ConnectionAbortedError from error
        finally:
            close(content)
        if not sent:
            yield b""


def close(content: Content) -> None:
    """Close the content of a response, as PEP 3333 requires."""
    if hasattr(content, "close"):
        content.close()


def refusal_response(status: int, message: str, headers: Iterable[tuple[str, str]]) -> WsgiResponse:
    """Return the response to a request that the server itself refuses, with these and the common headers."""
    content = error_body(status, message)
    own = [("Content-Type", JSON), ("Content-Length", str(len(content)))]
    own += [("Cache-Control", PRIVATE), *headers]
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        own.append(("Retry-After", str(RETRY_SECONDS)))
    return f"{status} {HTTPStatus(status).phrase}", own, content
