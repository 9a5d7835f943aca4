"""The gunicorn worker: accepts connections, serves each in a greenlet of its own, and ends cleanly."""

import gc
import signal
import socket
import sys
import time
from contextlib import suppress
from functools import partial
from types import SimpleNamespace
from typing import Any

import gevent
from gevent.pool import Pool
from gevent.server import StreamServer
from gunicorn.arbiter import Arbiter
from gunicorn.workers.ggevent import GeventWorker

from blogapi.server.handler import Handler
from blogapi.storage.errors import Unavailable

SHUTDOWN_SECONDS = 4.0
LAST_REQUEST_SECONDS = 0.25  # for requests that are on their way when the service is told to stop
RESOLVERS = 256  # threads that look up hosts: while some are slow to be found, others must not wait for a thread
ANSWER_SECONDS = 10.0  # for a database that is another machine's
UNSENT_BYTES = 64 * 1024  # that the kernel takes of a response before the client has taken any

timeout = partial(gevent.Timeout, exception=TimeoutError)


class Worker(GeventWorker):
    """Serves every connection in a greenlet of its own."""

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self.handlers: list[Handler] = []  # one for each listening socket

    def init_signals(self) -> None:
        super().init_signals()
        signal.signal(signal.SIGINT, self.handle_exit)  # All three finish what is complete.
        signal.signal(signal.SIGQUIT, self.handle_exit)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def handle_exit(self, sig: int, frame: Any) -> None:
        super().handle_exit(sig, frame)
        for handler in self.handlers:
            handler.closing = True

    def init_process(self) -> None:
        """Start and serve; end with a status that makes gunicorn give up if the start fails."""
        try:
            super().init_process()
        except (OSError, Unavailable) as error:
            self.log.error("cannot serve: %s", error)
        except Exception:
            self.log.exception("unexpected error outside requests")
        else:
            return
        sys.exit(1 if self.booted else Arbiter.WORKER_BOOT_ERROR)

    def run(self) -> None:
        self.booted = False  # gunicorn has set it too early: what fails in start() would be tried again for ever.
        servers = self.start()
        self.booted = True
        while self.alive:
            self.notify()
            gevent.sleep(0.1)
        for server in servers:
            accept_waiting(server)
            server.close()
        self.finish()

    def start(self) -> list[StreamServer]:
        """Begin to serve, and to send webhooks."""
        self.sender = self.wsgi.extensions["sender"]
        self.wsgi.extensions["timeout"] = timeout
        threads = gevent.get_hub().threadpool
        threads.maxsize = RESOLVERS
        engine = self.wsgi.extensions["database"].engine
        engine.run_in_thread, engine.wait_for_socket = threads.apply, wait_for_socket
        self.cfg = self.plain_settings()
        gc.collect()
        gc.freeze()  # What is loaded stays: the collector need not look at it again.
        servers = []
        for sock in self.sockets:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)  # Its connections inherit it.
            self.handlers.append(Handler(self.wsgi, self.cfg, self.log, sock.getsockname()))
            servers.append(StreamServer(sock, self.handlers[-1], spawn=Pool(self.worker_connections)))
            servers[-1].start()
        self.sender.start()
        return servers

    def plain_settings(self) -> SimpleNamespace:
        """Copy gunicorn's settings: every look at one goes through three calls, and a request takes about forty."""
        values: dict[str, Any] = {name: setting.get() for name, setting in self.cfg.settings.items()}
        values |= {"is_ssl": False, "forwarded_allow_networks": self.cfg.forwarded_allow_networks}
        return SimpleNamespace(**values)

    def finish(self) -> None:
        """Let complete requests be answered and webhooks' attempts end; close the connections without a request."""
        begun = time.monotonic()
        self.sender.stop()
        while time.monotonic() < begun + SHUTDOWN_SECONDS:
            connections = [connection for handler in self.handlers for connection in handler.connections]
            if not connections and not self.sender.thread.is_alive():
                break
            if time.monotonic() > begun + LAST_REQUEST_SECONDS:
                for connection in connections:
                    connection.stop_reading()
            self.notify()
            gevent.sleep(0.02)


def wait_for_socket(file: int, events: int) -> int:
    """Let others go on until a socket is ready; return for what. Raises TimeoutError after ANSWER_SECONDS."""
    hub = gevent.get_hub()
    watcher = hub.loop.io(file, events)
    try:
        with gevent.Timeout(ANSWER_SECONDS, TimeoutError):
            hub.wait(watcher)
    finally:
        watcher.close()
    return events


def accept_waiting(server: StreamServer) -> None:
    """Accept the connections that clients have made already: to close the listening socket would reset them."""
    server.stop_accepting()
    with suppress(OSError):  # What cannot be accepted now will not be any more.
        while not server.full() and (accepted := server.do_read()):
            server.do_handle(*accepted)
