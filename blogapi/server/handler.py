"""What happens on a connection: requests are read, given to the application, and answered."""

import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from email.utils import formatdate
from http import HTTPStatus
from typing import Any

import gevent
from flask import Flask
from gunicorn.glogging import Logger
from gunicorn.http import get_parser
from gunicorn.http.errors import NoMoreData, ParseException
from gunicorn.http.message import Request
from gunicorn.http.parser import RequestParser
from gunicorn.util import unquote_to_wsgi_str

from blogapi.errors import error_body
from blogapi.server.connection import Connection, RequestBody
from blogapi.server.log import mask
from blogapi.server.refusals import refusal_for, refusal_of, wants_close

LOGGED = 1000  # characters of a target
CAUSE = "blogapi.cause"  # in the environment, where the application knows more than its response says


class Handler:
    """Serves the connections that come in at one address, `listener`.

    `cfg` and `log` are gunicorn's. Once `closing` is set, no connection is kept for another request.
    """

    def __init__(self, wsgi: Flask, cfg: Any, log: Logger, listener: tuple):
        self.wsgi = wsgi
        self.cfg = cfg
        self.log = log
        self.listener = listener
        self.config = wsgi.extensions["config"]
        self.limiter = wsgi.extensions["limiter"]
        self.connections: set[Connection] = set()
        self.closing = False
        self.second = 0

    def __call__(self, sock: gevent.socket.socket, address: tuple) -> None:
        """Serve a connection, request after request, until either side is done with it."""
        connection = Connection(sock, self.config.header_seconds, self.config.body_seconds)
        self.connections.add(connection)
        parser = get_parser(self.cfg, connection, address)
        try:
            while not self.closing and self.serve(connection, parser, address):
                pass
        except StopIteration:  # The client ended it between two requests.
            pass
        except OSError as error:
            self.log.debug("connection lost: %s", error)
        except Exception:
            self.log.exception("unexpected error outside the application")
        finally:
            connection.close()
            self.connections.discard(connection)

    def serve(self, connection: Connection, parser: RequestParser, address: tuple) -> bool:
        """Answer the next request of a connection; return whether another may follow."""
        connection.expect_request(started=bool(parser.unreader.buf.getvalue()))
        try:
            request = next(parser)
        except (NoMoreData, ParseException, TimeoutError) as error:
            if connection.started and not self.closing:
                self.refuse(connection, address, *refusal_for(error))
            return False
        if refusal := refusal_of(request):
            self.refuse(connection, address, *refusal, request)
            return False
        gevent.sleep(0)  # Once a request, or a busy connection would starve the others.
        started = time.perf_counter()
        body = RequestBody(connection, request)
        environ = self.environ(request, body, address)
        status, headers, content = self.call(environ)
        keep = not self.closing and body.complete and not wants_close(request)
        try:
            self.send_response(connection, status, headers, content, keep)
        finally:
            seconds = time.perf_counter() - started
            self.log_request(address, request, status, len(content), seconds, environ.get(CAUSE, ""))
        return keep

    def environ(self, request: Request, body: RequestBody, address: tuple) -> dict[str, Any]:
        """Return the WSGI environment of a request (PEP 3333).

        gunicorn's own takes three times as long, and believes a SCRIPT_NAME header.
        """
        environ = {
            "REQUEST_METHOD": request.method,
            "SCRIPT_NAME": "",
            "PATH_INFO": unquote_to_wsgi_str(request.path),
            "QUERY_STRING": request.query,
            "SERVER_NAME": self.listener[0],
            "SERVER_PORT": str(self.listener[1]),
            "SERVER_PROTOCOL": f"HTTP/{request.version[0]}.{request.version[1]}",
            "REMOTE_ADDR": address[0],
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": body,
            "wsgi.input_terminated": True,
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": False,
            "wsgi.multiprocess": False,
            "wsgi.run_once": False,
        }
        for name, value in request.headers:
            key = name.replace("-", "_")
            if key not in ("CONTENT_TYPE", "CONTENT_LENGTH"):
                key = f"HTTP_{key}"
            environ[key] = f"{environ[key]},{value}" if key in environ else value
        return environ

    def call(self, environ: dict[str, Any]) -> tuple[str, list[tuple[str, str]], bytes]:
        """Call the application; return the status line, the headers and the content of its response."""
        response: list[Any] = []
        chunks = self.wsgi(environ, lambda status, headers, exc_info=None: response.extend((status, headers)))
        try:
            content = b"".join(chunks)
        finally:
            if hasattr(chunks, "close"):
                chunks.close()
        return response[0], response[1], content

    def send_response(self, connection: Connection, status: str, headers: Iterable, content: bytes, keep: bool) -> None:
        """Send a response, head and content at once."""
        connection.linger = not keep
        self.tick()
        lines = [f"HTTP/1.1 {status}\r\nDate: {self.date}\r\nConnection: {'keep-alive' if keep else 'close'}"]
        lines += [f"{name}: {value}" for name, value in headers]
        connection.send("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + content)

    def refuse(
        self, connection: Connection, address: tuple, status: int, message: str, request: Request | None = None
    ) -> None:
        """Answer a request that does not reach the application with the Error body, and end the connection."""
        content = error_body(status, message)
        headers = [
            ("Content-Type", "application/json"),
            ("Content-Length", str(len(content))),
            *self.limiter.peek().headers,
        ]
        if request is not None and request.method == "HEAD":
            content = b""
        line = f"{status} {HTTPStatus(status).phrase}"
        try:
            self.send_response(connection, line, headers, content, keep=False)
        finally:
            self.log_request(address, request, line, len(content), 0.0, message)

    def tick(self) -> None:
        """Write the date anew once a second: that often is enough, and it takes longer than a header otherwise."""
        now = int(time.time())
        if now != self.second:
            self.second = now
            self.date = formatdate(now, usegmt=True)
            self.time = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))

    def log_request(
        self, address: tuple, request: Request | None, status: str, size: int, seconds: float, cause: str
    ) -> None:
        """Write the one line that the log has for each request."""
        what = f"{request.method} {request.uri[:LOGGED]}".replace('"', "%22") if request else "-"
        line = f'{self.time} {address[0]} "{what}" {status[:3]} {size} {seconds * 1000:.1f}ms'
        if cause:
            line += f" ({cause})"
        with suppress(OSError, ValueError):  # A log that is gone must not stop the service.
            sys.stderr.write(mask(line) + "\n")
