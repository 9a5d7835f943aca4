"""Serve each connection of a gunicorn worker in a greenlet, and stop without waiting for slow clients."""

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
from blogapi.server.start import STOP_SIGNALS
from blogapi.storage.errors import Unavailable

SHUTDOWN_SECONDS = 4.0  # longest wait for requests and background work when the worker stops
LAST_REQUEST_SECONDS = 0.25  # when the service stops, half-received requests have this long to arrive completely
UNSENT_BYTES = 64 * 1024  # the kernel buffers at most this much unsent data per connection
SWITCH_SECONDS = 0.0005  # GIL switch interval; a request reacquires the GIL about ten times


class Worker(GeventWorker):
    """Serves each connection in a greenlet. gunicorn's master imports this module, so it must not import Flask."""

    handler: Any = None
    background: Any = None
    stop_at = float("inf")  # monotonic time at which draining ends and the worker stops

    def init_signals(self) -> None:
        super().init_signals()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Stop after BLOGAPI_DRAIN_SECONDS. Until then, keep serving, so that proxies that poll /readyz can switch."""
        if self.handler and self.handler.config.drain_seconds:
            self.stop_at = min(self.stop_at, time.monotonic() + self.handler.config.drain_seconds)
            self.handler.draining = True
        else:
            self.handle_quit(sig, frame)

    def handle_quit(self, sig: int, frame: Any) -> None:
        """Stop at once, on SIGINT or SIGQUIT, but finish the requests that have arrived completely."""
        self.alive = False
        if self.handler:
            self.handler.draining = self.handler.closing = True

    def init_process(self) -> None:
        """Start and serve. If the start fails, exit with a status that stops gunicorn, unless it should retry."""
        try:
            return super().init_process()
        except (OSError, Unavailable) as error:
            self.log.error("cannot serve: %s", error)
            if retry_after := getattr(error, "retry_after", None):  # PostgreSQL is probably restarting.
                time.sleep(retry_after)
                sys.exit(1)
        except Exception:
            self.log.exception("unexpected error outside requests")
        sys.exit(1 if self.booted else Arbiter.WORKER_BOOT_ERROR)

    def run(self) -> None:
        self.booted = False  # gunicorn sets this too early, and would therefore retry a failing start forever.
        servers = self.start()
        self.booted = True
        while self.alive and time.monotonic() < self.stop_at:
            self.notify()
            self.handler.end_overdue()
            gevent.sleep(0.1)
            for server in servers:
                if not self.handler.is_full():
                    server.start_accepting()
        self.handler.draining = self.handler.closing = True
        for server in servers:
            server.stop_accepting()
            with suppress(OSError):  # Accept the queued connections, which closing the listening socket would reset.
                while not server.full() and (accepted := server.do_read()):
                    server.do_handle(*accepted)
            server.close()
        self.finish()

    def start(self) -> list[StreamServer]:
        """Start the servers and the background thread. Return the servers."""
        self.background, self.handler = self.wsgi.extensions["background"], self.wsgi.extensions["handler"]
        gc.freeze()  # The loaded modules are never freed, so the garbage collector can skip them.
        gc.enable()
        sys.setswitchinterval(SWITCH_SECONDS)
        servers = []
        for sock in self.sockets:
            if hasattr(socket, "TCP_NOTSENT_LOWAT"):  # Accepted connections inherit this option.
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)
            servers.append(StreamServer(sock, self.handler, spawn=gevent.spawn_raw))
            servers[-1].max_accept, servers[-1].full = self.handler.max_accept, self.handler.is_full
            servers[-1].start()
        self.background.thread.start()
        return servers

    def finish(self) -> None:
        """Wait until requests in progress and webhook deliveries have finished, for at most SHUTDOWN_SECONDS."""
        begun = time.monotonic()
        self.background.stop()
        while time.monotonic() < begun + SHUTDOWN_SECONDS:
            if not self.handler.connections and not self.background.thread.is_alive():
                break
            if time.monotonic() > begun + LAST_REQUEST_SECONDS:
                for connection in self.handler.connections:
                    connection.stop()
            self.notify()
            self.handler.end_overdue()
            gevent.sleep(0.02)


def worker_exit(server: Any, worker: Worker) -> None:
    """Close the database, so that no WAL file remains, and skip Python's cleanup, which does not work with gevent."""
    if worker.pid != os.getpid():  # gunicorn's master also calls this if it finds the worker already gone.
        return
    status = getattr(sys.exc_info()[1], "code", 1)  # gunicorn ends a worker with SystemExit.
    try:
        if worker.booted:
            worker.handler.service.database.close()
    finally:
        if isinstance(sys.stderr, LogWriter):
            sys.stderr.drain()
        os._exit(status if isinstance(status, int) else 1)
