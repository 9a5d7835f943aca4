"""The gunicorn worker: accepts connections, serves each in a greenlet of its own, and ends cleanly."""

import gc
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from typing import Any

import gevent
from gevent.server import StreamServer
from gunicorn.arbiter import Arbiter
from gunicorn.workers.ggevent import GeventWorker

from blogapi.server.log import LogWriter
from blogapi.storage.errors import Unavailable

SHUTDOWN_SECONDS = 4.0
LAST_REQUEST_SECONDS = 0.25  # for requests that are on their way when the service stops
MAX_ACCEPT = 32  # connections at once: the ones that they replace end a moment later
UNSENT_BYTES = 64 * 1024  # of a response, which the kernel accepts before the client reads any


class Worker(GeventWorker):
    """Serves every connection in a greenlet of its own, by the handler among the application's extensions.

    gunicorn's master imports this module, and has less to keep in memory if that does not import the application.
    """

    handler = None

    def init_signals(self) -> None:
        super().init_signals()
        signal.signal(signal.SIGINT, self.handle_exit)  # All three finish complete requests.
        signal.signal(signal.SIGQUIT, self.handle_exit)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def handle_exit(self, sig: int, frame: Any) -> None:
        super().handle_exit(sig, frame)
        if self.handler:
            self.handler.closing = True

    def init_process(self) -> None:
        """Start and serve; end with a status that makes gunicorn give up if the start fails."""
        try:
            super().init_process()
        except (OSError, Unavailable) as error:
            self.log.error("cannot serve: %s", error)
            if retry_after := getattr(error, "retry_after", None):  # The service has started: PostgreSQL comes back.
                time.sleep(retry_after)
                sys.exit(1)
        except Exception:
            self.log.exception("unexpected error outside requests")
        else:
            return
        sys.exit(1 if self.booted else Arbiter.WORKER_BOOT_ERROR)

    def run(self) -> None:
        self.booted = False  # gunicorn sets it too early: it would repeat a failing start endlessly.
        servers = self.start()
        self.booted = True
        while self.alive:
            self.tend()
            gevent.sleep(0.1)
        for server in servers:
            accept_waiting(server)
            server.close()
        self.finish()

    def start(self) -> list[StreamServer]:
        """Start to serve, and to send webhooks."""
        self.sender, self.handler = self.wsgi.extensions["sender"], self.wsgi.extensions["handler"]
        gc.freeze()  # Loaded modules stay: the collector can ignore them.
        gc.enable()
        servers = []
        for sock in self.sockets:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)  # Its connections inherit it.
            servers.append(StreamServer(sock, self.handler, spawn=gevent.spawn_raw))
            servers[-1].max_accept = MAX_ACCEPT
            servers[-1].start()
        self.sender.start()
        return servers

    def finish(self) -> None:
        """Wait for complete requests and for webhook attempts to finish; close idle connections."""
        begun = time.monotonic()
        self.sender.stop()
        while time.monotonic() < begun + SHUTDOWN_SECONDS:
            if not self.handler.connections and not self.sender.thread.is_alive():
                break
            if time.monotonic() > begun + LAST_REQUEST_SECONDS:
                for connection in self.handler.connections:
                    connection.stop_reading()
            self.tend()
            gevent.sleep(0.02)

    def tend(self) -> None:
        """Tell gunicorn's master that this worker is alive, and end overdue waits for clients."""
        self.notify()
        self.handler.end_overdue()


def accept_waiting(server: StreamServer) -> None:
    """Accept the connections that are waiting: closing the listening socket would reset them."""
    server.stop_accepting()
    with suppress(OSError):  # A connection that cannot be accepted now never will be.
        while accepted := server.do_read():
            server.do_handle(*accepted)


def worker_exit(server: Any, worker: Worker) -> None:
    """End the worker cleanly: without a -wal, and without an exit of the interpreter that gevent has patched."""
    if worker.pid != os.getpid():  # gunicorn's master calls it for a worker that ended unnoticed.
        return
    status = getattr(sys.exc_info()[1], "code", 1)  # gunicorn ends a worker by SystemExit.
    try:
        if worker.booted:
            worker.handler.service.database.close()
    finally:
        if isinstance(sys.stderr, LogWriter):
            sys.stderr.drain()
        os._exit(status if isinstance(status, int) else 1)
