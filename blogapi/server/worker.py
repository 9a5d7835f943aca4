"""The gunicorn worker: accepts connections, serves each in a greenlet of its own, and ends cleanly."""

import gc
import signal
import time
from functools import partial
from types import SimpleNamespace
from typing import Any

import gevent
from gevent.pool import Pool
from gevent.server import StreamServer
from gunicorn.workers.ggevent import GeventWorker

from blogapi.server.handler import Handler

SHUTDOWN_SECONDS = 4.0
RESOLVERS = 256  # threads that look up hosts: while some are slow to be found, others must not wait for a thread


class Worker(GeventWorker):
    """Serves every connection in a greenlet of its own."""

    def init_signals(self) -> None:
        super().init_signals()
        signal.signal(signal.SIGINT, self.handle_exit)  # All three finish what is complete.
        signal.signal(signal.SIGQUIT, self.handle_exit)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def run(self) -> None:
        self.sender = self.wsgi.extensions["sender"]
        self.wsgi.extensions["timeout"] = partial(gevent.Timeout, exception=TimeoutError)
        gevent.get_hub().threadpool.maxsize = RESOLVERS
        self.cfg = self.plain_settings()
        gc.collect()
        gc.freeze()  # What is loaded stays: the collector need not look at it again.
        handlers = [Handler(self.wsgi, self.cfg, self.log, sock.getsockname()) for sock in self.sockets]
        servers = [
            StreamServer(sock, handler, spawn=Pool(self.worker_connections))
            for sock, handler in zip(self.sockets, handlers, strict=True)
        ]
        for server in servers:
            server.start()
        self.sender.start(self.wsgi.extensions["timeout"])
        while self.alive:
            self.notify()
            gevent.sleep(0.1)
        for server in servers:
            server.close()
        self.finish(handlers)

    def plain_settings(self) -> SimpleNamespace:
        """Copy gunicorn's settings: every look at one goes through three calls, and a request takes about forty."""
        values: dict[str, Any] = {name: setting.get() for name, setting in self.cfg.settings.items()}
        values |= {"is_ssl": False, "forwarded_allow_networks": self.cfg.forwarded_allow_networks}
        return SimpleNamespace(**values)

    def finish(self, handlers: list[Handler]) -> None:
        """Let complete requests be answered and webhooks' attempts end; close the connections without a request."""
        deadline = time.monotonic() + SHUTDOWN_SECONDS
        self.sender.stop()
        for handler in handlers:
            handler.closing = True
        while time.monotonic() < deadline:
            connections = [connection for handler in handlers for connection in handler.connections]
            if not connections and not self.sender.thread.is_alive():
                break
            for connection in connections:
                connection.stop_reading()
            self.notify()
            gevent.sleep(0.02)
