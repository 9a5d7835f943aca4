"""Serve connections: read requests, call the application, and send and log the responses.

Import this module only in a worker, and not in gunicorn's master, because gevent must have patched the standard library
first.
"""

import logging
import os
import resource
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from email.utils import formatdate
from functools import lru_cache, partial
from http import HTTPStatus
from typing import Any, cast
from urllib.parse import unquote

from flask import Flask
from gevent import monkey
from gunicorn.http.errors import NoMoreData, ParseException
from gunicorn.http.unreader import SocketUnreader

from blogapi import create_app
from blogapi.api.cors import cors_headers
from blogapi.api.errors import error_body, with_id
from blogapi.api.operations import JSON
from blogapi.api.request import INFO, READ_METHODS, RequestInfo
from blogapi.api.responses import PRIVATE
from blogapi.api.service import EXTENSION, Service
from blogapi.config import Config
from blogapi.server import requests
from blogapi.server.background import Background
from blogapi.server.connection import KEEP_ALIVE_SECONDS, ClientConnection
from blogapi.server.fairness import KEPT_BYTES, Client, SharedState
from blogapi.server.log import IN_JOURNAL, json_line, now, printable_target
from blogapi.server.start import OTHER_WORKERS
from blogapi.server.threads import EventLoop, SharedDatabase
from blogapi.storage.errors import RETRY_SECONDS, Unavailable

MAX_CONNECTIONS = 1024  # above this, each new connection evicts one that is waiting for its client
MAX_ACCEPT = 1 / 16  # share of the maximum accepted per loop iteration, because evicted connections are closed later
OTHER_FILES = 192  # number of open files reserved for the database, webhooks and closing connections
KEEP_ALIVE = f"keep-alive\r\nKeep-Alive: timeout={KEEP_ALIVE_SECONDS}"
FAILURES = ("500", "503")
READY_PATH = "/readyz"  # Proxies poll it every second, so successful requests are not logged.
KEPT_FIELDS = ("X-RateLimit-", "Access-Control-", "Vary")  # headers to keep when BUSY replaces a response

Content = bytes | Iterable[bytes]
WsgiResponse = tuple[str, list[tuple[str, str]], Content]  # status line, headers and content

format_date = lru_cache(maxsize=2)(partial(formatdate, usegmt=True))  # cached: no other header takes as long to build
log = logging.getLogger(__name__)


def load() -> Flask:
    """Return the application for a worker, with its connection handler and background thread."""
    if not monkey.is_module_patched("socket"):  # gunicorn's master has called this, because of --preload.
        sys.exit(OTHER_WORKERS)
    # The master has already set up the database. If it is missing when a worker is replaced, its disk may not be
    # mounted, and a new database must not be created.
    config = replace(Config.from_environ(os.environ), create=False)
    app = create_app(config, loop=EventLoop(), database_class=SharedDatabase)
    service = app.extensions[EXTENSION]
    app.extensions["handler"] = Handler(app, service)
    app.extensions["background"] = Background(service)
    return app


class Handler:
    """Serves connections.

    Once `draining` is set, each connection is closed after its next response. Once `closing` is set, a connection with
    an invalid or incomplete header is closed without a response.
    """

    def __init__(self, wsgi: Callable, service: Service):
        self.wsgi = wsgi
        self.service = service
        self.config = service.config
        self.connections: dict[ClientConnection, None] = {}  # oldest first
        self.shared = SharedState(self.config, cast(EventLoop, service.loop).turns)
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self.max_connections = MAX_CONNECTIONS if files < 0 else min(MAX_CONNECTIONS, files - OTHER_FILES)
        self.max_accept = int(self.max_connections * MAX_ACCEPT)
        self.draining = self.closing = False
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
        connection = ClientConnection(sock, requests.network(address[0]), self.shared)
        unreader = SocketUnreader(connection)
        self.connections[connection] = None
        if len(self.connections) > self.max_connections:
            self.shared.make_room(len(self.connections))
        try:
            while self.serve(connection, unreader, address[0]):
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

    def is_full(self) -> bool:
        """Return whether there are too many connections to accept another. An evicted one counts until it is closed."""
        return len(self.connections) >= self.max_connections + self.max_accept

    def end_overdue(self) -> None:
        """End all overdue waits for clients. A timer for each wait would be slower."""
        now = time.monotonic()
        for connection in self.connections:
            if connection.until < now:
                connection.end()

    def serve(self, connection: ClientConnection, unreader: SocketUnreader, peer: str) -> bool:
        """Serve the next request on a connection, and return whether another request may follow."""
        connection.expect_request(started=bool(unreader.buf.getvalue()))
        head, refusal, has_failed = requests.Head(), None, False
        try:
            data = requests.read_head(connection, unreader)
            if not data:  # The client closed the connection between two requests.
                return False
            connection.wait_turn_to_read()
            head.parse(data)
            refusal = requests.STOPPING if self.draining and head.path == READY_PATH else head.refusal
        except (NoMoreData, ParseException, TimeoutError) as error:
            if not connection.started or self.closing:
                return False
            refusals = requests.REFUSALS
            refusal = refusals.get(getattr(error, "hdr", "")) or refusals.get(type(error), requests.MALFORMED)
            has_failed = True
        if has_failed:  # outside `except`, where the traceback would keep the received bytes in memory
            connection.wait_turn()  # Many connections can be overdue at the same time.
        exchange = Exchange(connection, head, self.identify_client(connection, head, peer))
        return self.refuse(exchange, *refusal) if refusal else self.respond(exchange, unreader)

    def identify_client(self, connection: ClientConnection, head: requests.Head, peer: str) -> str:
        """Return the client's address. If the client is behind a proxy, also wait for the client's own turn."""
        if not (trusted := self.config.trusted_proxies):
            return peer
        address = requests.client_address(peer, head.fields.get("HTTP_X_FORWARDED_FOR", ""), trusted)
        connection.address = requests.network(address)
        if not connection.client.is_known and connection.client != Client(connection.address):
            connection.identify(Client(connection.address))
            connection.wait_turn()
        return address

    def refuse(self, exchange: "Exchange", status: int, message: str) -> bool:
        """Respond with an error, without calling the application. Return False to end the connection."""
        head = exchange.head
        path, origin = self.config.without_prefix(head.path or "/v1"), head.fields.get("HTTP_ORIGIN")
        headers = [*self.service.limiter.peek().headers, *cors_headers(self.config, path, origin).items()]
        line, headers, content = refusal_response(status, message, headers)
        exchange.info.cause = message
        self.send(exchange, (line, headers, b"" if head.method == "HEAD" else content), keep=False)
        return False

    def respond(self, exchange: "Exchange", unreader: SocketUnreader) -> bool:
        """Let the application handle a request, and return whether another request may follow."""
        connection = exchange.connection
        body = requests.Body(exchange.head, exchange.info, connection, unreader)
        is_change = connection.client.is_known and exchange.head.method not in READ_METHODS
        body.is_change = is_change and not self.closing  # While the server stops, no request waits for a place.
        try:
            if body.is_change and body.is_complete:  # The request has no body.
                connection.take_places()
        except TimeoutError:
            return self.refuse(exchange, requests.BUSY[0], requests.MANY_REQUESTS)
        try:
            return self.call_application(exchange, body)
        finally:
            connection.leave_places()

    def call_application(self, exchange: "Exchange", body: requests.Body) -> bool:
        """Call the application and send its response. Return whether another request may follow."""
        connection, info, environ = exchange.connection, exchange.info, self.environ(exchange, body)
        response: list[Any] = []
        chunks = self.wsgi(environ, lambda status, headers, exc_info=None: response.extend((status, headers)))
        status, headers, content = *response, chunks
        is_streamed = not isinstance(chunks, (list, tuple))
        if not is_streamed:
            content = b"".join(chunks)
            environ.clear()  # breaks a reference cycle through Werkzeug's request
        connection.leave_places(keep=1)
        if info.credential:
            self.shared.remember(info.credential)
            connection.identify(Client(info.credential, is_known=True))
        elif status.startswith(("401", "403")):  # No other status shows that the key or session has become invalid.
            self.shared.credentials.discard(connection.client.name)
        keep = exchange.head.is_persistent and body.is_complete and not self.draining
        if (is_streamed or len(content) > KEPT_BYTES) and not self.reserve(exchange, content):
            close(content)
            info.cause = with_id(requests.BUSY[1])
            kept = [field for field in headers if field[0].startswith(KEPT_FIELDS)]
            status, headers, content = refusal_response(requests.BUSY[0], info.cause, kept)
            keep = False
        self.send(exchange, (status, headers, content), keep)
        return keep

    def reserve(self, exchange: "Exchange", content: Content) -> bool:
        """Reserve memory for a large or streamed response until it is sent. Return whether enough was left."""
        connection = exchange.connection
        if not isinstance(content, bytes):
            return self.shared.streams.reserve(connection, 1)
        # If the request was a change, exceed the budget if necessary, because the client must learn the result.
        needed = bool(exchange.info.credential) and exchange.head.method not in READ_METHODS
        return connection.tier.responses.reserve(connection, len(content), needed=needed)

    def environ(self, exchange: "Exchange", body: requests.Body) -> dict[str, Any]:
        """Return the WSGI environment. gunicorn's own function for this is slower, and trusts a SCRIPT_NAME header."""
        head = exchange.head
        return {
            **self.base_environ,
            "REQUEST_METHOD": head.method,
            "PATH_INFO": unquote(head.path, "latin-1"),
            "QUERY_STRING": head.query,
            "RAW_URI": head.uri,
            "SERVER_PROTOCOL": f"HTTP/{head.version[0]}.{head.version[1]}",
            "REMOTE_ADDR": exchange.address,
            "wsgi.input": body,
            INFO: exchange.info,
            **head.fields,
        }

    def send(self, exchange: "Exchange", response: WsgiResponse, keep: bool) -> None:
        """Send a response and record it. With `keep`, tell the client that the connection stays open."""
        status, headers, content = response
        connection, info = exchange.connection, exchange.info
        connection.linger, connection.is_used = not keep, True
        connection.release()
        option = KEEP_ALIVE if keep else "close"
        lines = [f"HTTP/1.1 {status}\r\nDate: {format_date(int(time.time()))}\r\nConnection: {option}"]
        lines += [f"{name}: {value}" for name, value in headers]
        size = 0
        head = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
        try:
            for piece in [content] if isinstance(content, bytes) else pieces(connection, content, info):
                connection.send(head, piece)
                head = b""
                size += len(piece)
            if head:  # The content is an empty stream.
                connection.send(head)
        except OSError:
            info.cause = info.cause or "the client did not read the response"
            raise
        finally:
            connection.release_response()
            self.record(exchange, status[:3], size)

    def record(self, exchange: "Exchange", status: str, size: int) -> None:
        """Count a request for the metrics, and log it. FAILURES are logged as errors."""
        info, head, seconds = exchange.info, exchange.head, time.perf_counter() - exchange.started
        self.service.requests.count(info.endpoint, status, seconds)
        level = logging.ERROR if status in FAILURES else logging.INFO
        if (head.path == READY_PATH and status == "200") or not log.isEnabledFor(level):
            return
        target, milliseconds = printable_target(head.uri or ""), f"{seconds * 1000:.1f}"
        if self.config.log_format == "json":
            request = {"address": exchange.address, "key": info.key_name, "method": head.method, "target": target}
            response = {"status": int(status), "bytes": size, "milliseconds": float(milliseconds), "cause": info.cause}
            sys.stderr.write(f"{json_line(level, **request, **response)}\n")
            return
        begin = "" if IN_JOURNAL else f"{now()} "
        key = info.key_name.replace(" ", "_").replace('"', "_") or "-"
        line = f"{head.method} {target}" if head.uri else "-"
        cause = f" ({info.cause})" if info.cause else ""
        sys.stderr.write(f'{begin}{exchange.address} {key} "{line}" {status} {size} {milliseconds}ms{cause}\n')


class Exchange:
    """A request, with everything needed to send its response and to log it."""

    def __init__(self, connection: ClientConnection, head: requests.Head, address: str):
        self.connection = connection
        self.head = head
        self.address = address  # the client's IP address, even behind proxies
        self.info = RequestInfo()
        self.started = time.perf_counter()


def pieces(connection: ClientConnection, content: Iterable[bytes], info: RequestInfo) -> Iterator[bytes]:
    """Yield a streamed response, letting others run in between. Raises ConnectionAbortedError if the database fails."""
    try:
        for piece in content:
            yield piece
            connection.wait_turn()
    except Unavailable as error:
        info.cause = str(error)
        raise ConnectionAbortedError from error
    finally:
        close(content)


def close(content: Content) -> None:
    """Close the content of a response, as PEP 3333 requires."""
    if hasattr(content, "close"):
        content.close()


def refusal_response(status: int, message: str, headers: Iterable[tuple[str, str]]) -> WsgiResponse:
    """Return the response to a request that the server itself refuses. `headers` are added to the usual ones."""
    content = error_body(status, message)
    own = [("Content-Type", JSON), ("Content-Length", str(len(content))), ("Cache-Control", PRIVATE), *headers]
    if status == HTTPStatus.SERVICE_UNAVAILABLE:
        own.append(("Retry-After", str(RETRY_SECONDS)))
    return f"{status} {HTTPStatus(status).phrase}", own, content
