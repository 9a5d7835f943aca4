"""The handler of connections: it reads requests, calls the application, sends responses and logs them."""

import logging
import resource
import socket
import sys
import time
from collections.abc import Iterable
from email.utils import formatdate
from http import HTTPStatus
from typing import Any

from flask import Flask
from gunicorn.http.errors import NoMoreData, ParseException
from gunicorn.http.unreader import SocketUnreader
from gunicorn.util import unquote_to_wsgi_str

from blogapi.server.connection import KEPT_BYTES, ClientConnection, Shared
from blogapi.server.log import printable_target
from blogapi.server.requests import BUSY, Request, client_address, network, refusal_for
from blogapi.storage.errors import RETRY_SECONDS
from blogapi.web.request import REQUEST
from blogapi.web.responses import cors_headers, error_body, is_covered, with_id
from blogapi.web.service import EXTENSION

MAX_CONNECTIONS = 4096  # beyond these, each new one ends another that waits for its client
OTHER_FILES = 192  # for everything else: the database, webhooks, and connections that are about to end

Headers = list[tuple[str, str]]

log = logging.getLogger(__name__)


class Handler:
    """Serves connections. Once `closing` is set, none is kept for another request."""

    def __init__(self, wsgi: Flask):
        self.wsgi = wsgi
        self.service = wsgi.extensions[EXTENSION]
        self.config = self.service.config
        self.connections: dict[ClientConnection, None] = {}  # oldest first
        self.shared = Shared(self.config, self.service.loop.turns)
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self.max_connections = MAX_CONNECTIONS if files < 0 else min(MAX_CONNECTIONS, files - OTHER_FILES)
        self.closing = False
        self.second = 0
        self.base_environ = {
            "SCRIPT_NAME": "",
            "SERVER_NAME": self.config.host,
            "SERVER_PORT": str(self.config.port),
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input_terminated": True,
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": False,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
        }

    def __call__(self, sock: socket.socket, address: tuple) -> None:
        """Serve a connection, request after request, until either side ends it."""
        connection = ClientConnection(sock, network(address[0]), self.shared)
        unreader = SocketUnreader(connection)
        self.connections[connection] = None
        if len(self.connections) > self.max_connections:
            self.make_room()
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
        """End the waits for clients at their deadlines. A timer for each would cost 3 % of a list."""
        now = time.monotonic()
        for connection in self.connections:
            if connection.until < now:
                connection.end()

    def make_room(self) -> None:
        """End the connection that waits longest for its client, among those with a key or, if these are fewer, without.

        One key can have all connections, and be known to everybody.
        """
        waiting = max(self.shared.waiting, key=len)
        if waiting:
            next(iter(waiting)).end(ConnectionAbortedError)  # without an answer

    def serve(self, connection: ClientConnection, unreader: SocketUnreader, address: tuple) -> bool:
        """Answer the next request of a connection; return whether another may follow."""
        connection.expect_request(started=bool(unreader.buf.getvalue()))
        try:
            request = Request(unreader, address)
        except StopIteration:  # The client ended the connection between two requests.
            return False
        except (NoMoreData, ParseException, TimeoutError) as error:
            if connection.started and not self.closing:
                self.refuse(connection, address, error.request, *refusal_for(error))
            return False
        if self.config.trusted_proxies:
            address = self.client(request, address)
            connection.address = network(address[0])
        if refusal := request.refusal:
            self.refuse(connection, address, request, *refusal)
            return False
        return self.respond(connection, request, address)

    def client(self, request: Request, address: tuple) -> tuple:
        """Return the address of the client that a proxy passes a request on for."""
        forwarded_for = ",".join(value for name, value in request.headers if name == "X-FORWARDED-FOR")
        return (client_address(address[0], forwarded_for, self.config.trusted_proxies),)

    def respond(self, connection: ClientConnection, request: Request, address: tuple) -> bool:
        """Answer a request by the application; return whether another may follow."""
        environ = self.environ(request, address)
        key = request.key
        connection.take_turn(key)
        started = time.perf_counter()
        status, headers, content = self.call(environ)
        known = environ.pop(REQUEST)
        environ.clear()  # It is in a cycle with the request, which would stay in memory for a while.
        if known.key:
            self.shared.keys.add(key)
        elif status.startswith("401"):  # Public paths do not look at the key.
            self.shared.keys.discard(key)
        keep = request.complete and not request.wants_close and not self.closing
        # A client must learn that its change was committed.
        needed = known.is_known and request.method not in ("GET", "HEAD")
        if len(content) > KEPT_BYTES and not self.shared.sending.reserve(connection, content, needed):
            known.cause = with_id(BUSY[1])
            kept = [field for field in headers if field[0].startswith(("X-RateLimit-", "Access-Control-", "Vary"))]
            status, headers, content = refused(BUSY[0], known.cause, kept)
            keep = False
        try:
            self.send_response(connection, status, headers, content, keep)
        except OSError:
            known.cause = known.cause or "the client did not take it"
            raise
        finally:
            self.shared.sending.release(connection)
            seconds, name = time.perf_counter() - started, known.key.name if known.key else "-"
            self.service.metrics.count(known.endpoint, status[:3], seconds)
            self.log_request(address, request, status, len(content), seconds, name, known.cause)
        return keep

    def environ(self, request: Request, address: tuple) -> dict[str, Any]:
        """Return the WSGI environment of a request (PEP 3333).

        gunicorn's own takes three times as long, and believes a SCRIPT_NAME header.
        """
        request.environ = environ = {
            **self.base_environ,
            "REQUEST_METHOD": request.method,
            "PATH_INFO": unquote_to_wsgi_str(request.path),
            "QUERY_STRING": request.query,
            "RAW_URI": request.uri,
            "SERVER_PROTOCOL": f"HTTP/{request.version[0]}.{request.version[1]}",
            "REMOTE_ADDR": address[0],
            "wsgi.input": request,
        }
        for name, value in request.headers:
            key = name.replace("-", "_")
            if key not in ("CONTENT_TYPE", "CONTENT_LENGTH"):
                key = f"HTTP_{key}"
            separator = "; " if key == "HTTP_COOKIE" else ","  # RFC 9110, section 5.3; RFC 6265, section 5.4
            environ[key] = f"{environ[key]}{separator}{value}" if key in environ else value
        return environ

    def call(self, environ: dict[str, Any]) -> tuple[str, Headers, bytes]:
        """Call the application; return the status line, the headers and the content of its response."""
        response: list[Any] = []
        chunks = self.wsgi(environ, lambda status, headers, exc_info=None: response.extend((status, headers)))
        try:
            content = b"".join(chunks)  # A single one is not copied.
        finally:
            if hasattr(chunks, "close"):
                chunks.close()
        return response[0], response[1], content

    def send_response(
        self, connection: ClientConnection, status: str, headers: Headers, content: bytes, keep: bool
    ) -> None:
        """Send a response."""
        connection.linger = not keep
        self.tick()
        lines = [f"HTTP/1.1 {status}\r\nDate: {self.date}\r\nConnection: {'keep-alive' if keep else 'close'}"]
        lines += [f"{name}: {value}" for name, value in headers]
        connection.send("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n", content)

    def refuse(self, connection: ClientConnection, address: tuple, request: Request, status: int, message: str) -> None:
        """Answer a request with the Error body, instead of the application, and end the connection."""
        path = (request.path or "/v1").removeprefix(self.config.prefix)
        cors = cors_headers(self.config.cors_origins, dict(request.headers).get("ORIGIN")) if is_covered(path) else {}
        line, headers, content = refused(status, message, [*self.service.limiter.peek().headers, *cors.items()])
        if request.method == "HEAD":
            content = b""
        try:
            self.send_response(connection, line, headers, content, keep=False)
        finally:
            self.service.metrics.count(None, line[:3], 0.0)
            self.log_request(address, request, line, len(content), 0.0, "-", message)

    def tick(self) -> float:
        """Return the time. The date is formatted once a second: it takes longer than any other header."""
        now = time.time()
        second = int(now)
        if second != self.second:
            self.second = second
            self.date = formatdate(second, usegmt=True)
            self.time = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        return now

    def log_request(
        self, address: tuple, request: Request, status: str, size: int, seconds: float, key_name: str, cause: str
    ) -> None:
        """Log a request in one line."""
        milliseconds = int((self.tick() - self.second) * 1000)
        target = f"{request.method} {printable_target(request.uri)}" if request.uri else "-"
        key = key_name.replace(" ", "_").replace('"', "_")
        sys.stderr.write(
            f'{self.time}.{milliseconds:03d}Z {address[0]} {key} "{target}" '
            f"{status[:3]} {size} {seconds * 1000:.1f}ms{cause and f' ({cause})'}\n"
        )


def refused(status: int, message: str, headers: Iterable[tuple[str, str]]) -> tuple[str, Headers, bytes]:
    """Return the response to a request that the server refuses itself, with these headers among others."""
    content = error_body(status, message)
    own = [("Content-Type", "application/json"), ("Content-Length", str(len(content)))]
    own += [("Cache-Control", "private, no-cache"), *headers]
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        own.append(("Retry-After", str(RETRY_SECONDS)))
    return f"{status} {HTTPStatus(status).phrase}", own, content
