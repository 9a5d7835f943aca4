"""The gunicorn worker: what only the server sees, from malformed requests to the shut-down."""

import gc
import logging
import re
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from email.utils import formatdate
from functools import partial
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any

import gevent
from gevent.pool import Pool
from gevent.server import StreamServer
from gunicorn.glogging import Logger
from gunicorn.http import get_parser
from gunicorn.http.errors import NoMoreData, ParseException
from gunicorn.http.message import Request
from gunicorn.http.parser import RequestParser
from gunicorn.util import unquote_to_wsgi_str
from gunicorn.workers.ggevent import GeventWorker

from blogapi.connection import Connection, RequestBody
from blogapi.errors import error_body
from blogapi.refusals import refusal_for, refusal_of, wants_close

SECRET = re.compile(r"(blog_)[A-Za-z0-9_-]{43}|(whsec_)[A-Za-z0-9+/%=]+")
LOGGED = 1000  # characters of a target
CAUSE = "blogapi.cause"  # in the environment, where the application knows more than its answer says
SHUTDOWN_SECONDS = 4.0
RESOLVERS = 256  # threads that look up hosts: while some are slow to be found, others must not wait for a thread


def mask(text: str) -> str:
    """Replace whatever looks like a key, or the secret of a webhook."""
    return SECRET.sub(r"\1\2[masked]", text) if "blog_" in text or "whsec_" in text else text


class MaskedFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return mask(super().format(record))


class MaskedLogger(Logger):
    """gunicorn's log and ours, on standard error, without keys."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        for handler in self.error_log.handlers:
            handler.setFormatter(MaskedFormatter(self.error_fmt, self.datefmt))
        logging.getLogger("blogapi").handlers = self.error_log.handlers


class Worker(GeventWorker):
    """Serves every connection in a greenlet of its own."""

    def init_signals(self) -> None:
        super().init_signals()
        signal.signal(signal.SIGINT, self.handle_exit)  # All three finish what is complete.
        signal.signal(signal.SIGQUIT, self.handle_exit)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def run(self) -> None:
        self.connections: set[Connection] = set()
        self.limiter = self.wsgi.extensions["limiter"]
        self.settings = self.wsgi.extensions["config"]
        self.sender = self.wsgi.extensions["sender"]
        self.wsgi.extensions["limit"] = partial(gevent.Timeout, exception=TimeoutError)
        self.second = 0
        gevent.get_hub().threadpool.maxsize = RESOLVERS
        # Every look at gunicorn's configuration goes through three calls, and a request takes about forty.
        self.cfg = SimpleNamespace(
            **{name: setting.get() for name, setting in self.cfg.settings.items()} | {"is_ssl": False},
            forwarded_allow_networks=self.cfg.forwarded_allow_networks,
        )
        gc.collect()
        gc.freeze()  # What is loaded stays: the collector need not look at it again.
        servers = [
            StreamServer(sock, handle=partial(self.handle, sock.getsockname()), spawn=Pool(self.worker_connections))
            for sock in self.sockets
        ]
        for server in servers:
            server.start()
        self.sender.start(self.wsgi.extensions["limit"])
        while self.alive:
            self.notify()
            gevent.sleep(0.1)
        for server in servers:
            server.close()
        self.finish()

    def finish(self) -> None:
        """Let complete requests be answered and webhooks' attempts end; close the connections without a request."""
        deadline = time.monotonic() + SHUTDOWN_SECONDS
        self.sender.stop()
        while (self.connections or self.sender.thread.is_alive()) and time.monotonic() < deadline:
            for connection in self.connections:
                connection.stop_reading()
            self.notify()
            gevent.sleep(0.02)

    def handle(self, listener: tuple, sock: gevent.socket.socket, address: tuple) -> None:
        """Serve a connection, request after request, until either side is done with it."""
        connection = Connection(sock, self.settings.header_seconds, self.settings.body_seconds)
        self.connections.add(connection)
        parser = get_parser(self.cfg, connection, address)
        try:
            while self.alive and self.serve(connection, parser, listener, address):
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

    def serve(self, connection: Connection, parser: RequestParser, listener: tuple, address: tuple) -> bool:
        """Answer the next request of a connection; return whether another may follow."""
        connection.expect_request(started=bool(parser.unreader.buf.getvalue()))
        try:
            request = next(parser)
        except (NoMoreData, ParseException, TimeoutError) as error:
            if connection.started and self.alive:
                self.refuse(connection, address, *refusal_for(error))
            return False
        if refusal := refusal_of(request):
            self.refuse(connection, address, *refusal, request)
            return False
        gevent.sleep(0)  # Once a request, or a busy connection would starve the others.
        started = time.perf_counter()
        body = RequestBody(connection, request)
        environ = self.environ(request, body, listener, address)
        status, headers, content = self.call(environ)
        keep = self.alive and body.complete and not wants_close(request)
        try:
            self.answer(connection, status, headers, content, keep)
        finally:
            seconds = time.perf_counter() - started
            cause = environ.get(CAUSE, "")
            self.log_request(address, request, status, len(content), seconds, cause)
        return keep

    def environ(self, request: Request, body: RequestBody, listener: tuple, address: tuple) -> dict[str, Any]:
        """Return the WSGI environment of a request (PEP 3333).

        gunicorn's own takes three times as long, and believes a SCRIPT_NAME header.
        """
        environ = {
            "REQUEST_METHOD": request.method,
            "SCRIPT_NAME": "",
            "PATH_INFO": unquote_to_wsgi_str(request.path),
            "QUERY_STRING": request.query,
            "SERVER_NAME": listener[0],
            "SERVER_PORT": str(listener[1]),
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
        """Call the application; return its answer's status line, headers and content."""
        answer: list[Any] = []
        chunks = self.wsgi(environ, lambda status, headers, exc_info=None: answer.extend((status, headers)))
        try:
            content = b"".join(chunks)
        finally:
            if hasattr(chunks, "close"):
                chunks.close()
        return answer[0], answer[1], content

    def answer(self, connection: Connection, status: str, headers: Iterable, content: bytes, keep: bool) -> None:
        """Send an answer, head and content at once."""
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
            self.answer(connection, line, headers, content, keep=False)
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
