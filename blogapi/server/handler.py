"""What happens on a connection: requests are read, given to the application, and answered."""

import sys
import time
from email.utils import formatdate
from http import HTTPStatus
from typing import Any

import gevent
from flask import Flask
from gunicorn.glogging import Logger
from gunicorn.http.errors import NoMoreData, ParseException
from gunicorn.util import unquote_to_wsgi_str

from blogapi.server.budget import KEPT_BYTES, ReceiveBudget, SendBudget
from blogapi.server.connection import ClientConnection
from blogapi.server.log import printable_target
from blogapi.server.requests import (
    BUSY,
    RETRY_SECONDS,
    Request,
    RequestBody,
    RequestParser,
    client_address,
    refusal_for,
    refusal_of,
    wants_close,
)
from blogapi.web.cors import headers_for
from blogapi.web.errors import error_body
from blogapi.web.request import REQUEST
from blogapi.web.service import EXTENSION

MAX_CONNECTIONS = 4096  # beyond these, each new one ends the oldest of those that wait for their client
MAX_AUTHORIZED = 1000  # keys in force that are remembered
KEY_LENGTH = 48  # characters

Headers = list[tuple[str, str]]


class Handler:
    """Serves the connections that come in at one address, `listener`.

    `cfg` and `log` are gunicorn's. Once `closing` is set, no connection is kept for another request.
    """

    def __init__(self, wsgi: Flask, cfg: Any, log: Logger, listener: tuple):
        self.wsgi = wsgi
        self.cfg = cfg
        self.log = log
        service = wsgi.extensions[EXTENSION]
        self.config, self.limiter, self.metrics = service.config, service.limiter, service.metrics
        self.connections: dict[ClientConnection, None] = {}  # oldest first
        self.receiving = ReceiveBudget()
        self.sending = SendBudget()
        self.turns = service.loop.turns
        self.authorized: set[str] = set()
        self.closing = False
        self.second = 0
        self.base_environ = {
            "SCRIPT_NAME": "",
            "SERVER_NAME": listener[0],
            "SERVER_PORT": str(listener[1]),
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input_terminated": True,
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": False,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
        }

    def __call__(self, sock: gevent.socket.socket, address: tuple) -> None:
        """Serve a connection, request after request, until either side is done with it."""
        connection = ClientConnection(sock, self.config, self.receiving, self.sending, self.turns)
        if len(self.connections) >= MAX_CONNECTIONS:
            self.end_oldest()
        self.connections[connection] = None
        parser = RequestParser(self.cfg, connection, address)
        try:
            while self.serve(connection, parser, address):
                pass
        except StopIteration:  # The client ended it between two requests.
            pass
        except OSError as error:
            self.log.debug("connection lost: %s", error)
        except Exception:
            self.log.exception("unexpected error outside the application")
        finally:
            del parser  # It has what came of the last request; closing can take some seconds.
            connection.close()
            self.connections.pop(connection, None)

    def end_oldest(self) -> None:
        """End the oldest of the connections that wait for their client."""
        for connection in self.connections:
            if connection.reading:
                del self.connections[connection]
                connection.give_up()
                return

    def serve(self, connection: ClientConnection, parser: RequestParser, address: tuple) -> bool:
        """Answer the next request of a connection; return whether another may follow."""
        connection.expect_request(started=bool(parser.unreader.buf.getvalue()))
        try:
            request = next(parser)
        except (NoMoreData, ParseException, TimeoutError) as error:
            if connection.started and not self.closing:
                self.refuse(connection, address, *refusal_for(error), error.request)
            return False
        if self.config.trusted_proxies:
            address = self.client(request, address)
        if refusal := refusal_of(request):
            self.refuse(connection, address, *refusal, request)
            return False
        return self.respond(connection, request, address)

    def client(self, request: Request, address: tuple) -> tuple:
        """Return the address of the client that a proxy passes a request on for."""
        forwarded_for = ",".join(value for name, value in request.headers if name == "X-FORWARDED-FOR")
        return (client_address(address[0], forwarded_for, self.config.trusted_proxies),)

    def respond(self, connection: ClientConnection, request: Request, address: tuple) -> bool:
        """Answer a request by the application; return whether another may follow."""
        body = RequestBody(connection, request)
        environ = self.environ(request, body, address)
        key = environ.get("HTTP_AUTHORIZATION", "")[-KEY_LENGTH:]  # The key, however the scheme is written
        connection.turn = key if key in self.authorized else address[0]
        self.turns.wait(connection.turn)
        started = time.perf_counter()
        status, headers, content = self.call(environ)
        known = environ.pop(REQUEST)
        if known.key:
            self.authorize(key)
        keep = not self.closing and body.complete and not wants_close(request)
        needed = request.method not in ("GET", "HEAD")  # What was done must be told.
        if len(content) > KEPT_BYTES and not self.sending.reserve(connection, content, needed):
            status, headers, content = busy(headers)
            known.cause = BUSY[1]
            keep = False
        try:
            self.send_response(connection, status, headers, content, keep)
        except OSError:
            known.cause = known.cause or "the client did not take it"
            raise
        finally:
            self.sending.release(connection)
            seconds, key_name = time.perf_counter() - started, known.key.name if known.key else "-"
            self.metrics.count(known.endpoint, status[:3], seconds)
            self.log_request(address, request, status, len(content), seconds, key_name, known.cause)
        return keep

    def authorize(self, key: str) -> None:
        """Remember a key that is in force: its requests take turns with those of others."""
        if len(self.authorized) >= MAX_AUTHORIZED:
            self.authorized.clear()
        self.authorized.add(key)

    def environ(self, request: Request, body: RequestBody, address: tuple) -> dict[str, Any]:
        """Return the WSGI environment of a request (PEP 3333).

        gunicorn's own takes three times as long, and believes a SCRIPT_NAME header.
        """
        environ = {
            **self.base_environ,
            "REQUEST_METHOD": request.method,
            "PATH_INFO": unquote_to_wsgi_str(request.path),
            "QUERY_STRING": request.query,
            "RAW_URI": request.uri,
            "SERVER_PROTOCOL": f"HTTP/{request.version[0]}.{request.version[1]}",
            "REMOTE_ADDR": address[0],
            "wsgi.input": body,
        }
        for name, value in request.headers:
            key = name.replace("-", "_")
            if key not in ("CONTENT_TYPE", "CONTENT_LENGTH"):
                key = f"HTTP_{key}"
            environ[key] = f"{environ[key]},{value}" if key in environ else value
        return environ

    def call(self, environ: dict[str, Any]) -> tuple[str, Headers, bytes]:
        """Call the application; return the status line, the headers and the content of its response."""
        response: list[Any] = []
        chunks = self.wsgi(environ, lambda status, headers, exc_info=None: response.extend((status, headers)))
        try:
            content = b"".join(chunks)  # If there is but one it is this, not a copy.
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

    def refuse(self, connection: ClientConnection, address: tuple, status: int, message: str, request: Request) -> None:
        """Answer a request in place of the application with the Error body, and end the connection."""
        content = error_body(status, message)
        headers = [*error_headers(content), *self.limiter.peek().headers]
        headers += headers_for(self.config.cors_origins, dict(request.headers).get("ORIGIN")).items()
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            headers.append(("Retry-After", str(RETRY_SECONDS)))
        if request.method == "HEAD":
            content = b""
        line = f"{status} {HTTPStatus(status).phrase}"
        try:
            self.send_response(connection, line, headers, content, keep=False)
        finally:
            self.metrics.count(None, line[:3], 0.0)
            self.log_request(address, request, line, len(content), 0.0, "-", message)

    def tick(self) -> float:
        """Return the time. The date is written anew once a second: it takes longer than a header otherwise."""
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
        """Write the line that the log has for each request."""
        milliseconds = int((self.tick() - self.second) * 1000)
        what = f"{request.method} {printable_target(request.uri)}" if request.uri else "-"
        key = key_name.replace(" ", "_").replace('"', "_")
        line = f'{self.time}.{milliseconds:03d}Z {address[0]} {key} "{what}" {status[:3]} {size} {seconds * 1000:.1f}ms'
        sys.stderr.write(f"{line} ({cause})\n" if cause else f"{line}\n")


def busy(headers: Headers) -> tuple[str, Headers, bytes]:
    """Return what is sent in place of a large response while too many wait to be taken; `headers` are its own."""
    status, message = BUSY
    content = error_body(status, message)
    kept = [(name, value) for name, value in headers if name.startswith(("X-RateLimit-", "Access-Control-", "Vary"))]
    kept += [*error_headers(content), ("Retry-After", str(RETRY_SECONDS))]
    return f"{status} {HTTPStatus(status).phrase}", kept, content


def error_headers(content: bytes) -> Headers:
    """Return the headers that every error has which is not the application's."""
    length = str(len(content))
    return [("Content-Type", "application/json"), ("Content-Length", length), ("Cache-Control", "private, no-cache")]
