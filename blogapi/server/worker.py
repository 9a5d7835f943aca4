"""The gunicorn worker and its event loop: connections are served in greenlets, and clients take turns."""

import gc
import os
import signal
import socket
import sys
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

import gevent
from gevent.hub import Hub
from gevent.server import StreamServer
from gevent.threadpool import ThreadPool
from greenlet import greenlet
from gunicorn.arbiter import Arbiter
from gunicorn.workers.ggevent import GeventWorker

from blogapi.server.log import LogWriter
from blogapi.storage.errors import RETRY_SECONDS, Unavailable
from blogapi.storage.loop import Loop

SHUTDOWN_SECONDS = 4.0
LAST_REQUEST_SECONDS = 0.25  # for requests that are on their way when the service stops
MAX_ACCEPT = 1 / 32  # of all connections at once: the ones that they replace end a moment later
UNSENT_BYTES = 64 * 1024  # of a response, which the kernel accepts before the client reads any
TURN_SECONDS = 0.002  # for requests, before the loop polls the sockets again
ANSWER_SECONDS = 10.0  # for a database on another machine
BACKGROUND_THREADS = 8  # more than search at a time
NICE = 10  # of these threads: with two processors, searches would take most of a list's
SWITCH_SECONDS = 0.0005  # until a busy thread must let the loop run: a request asks for that some ten times
THREADS = 256  # while some wait for a slow name server, others must be free

Waiting = OrderedDict[str, deque[greenlet]]
WITH_KEY = True  # in a pair of queues, that of the clients with a key
SERVICE = "", WITH_KEY
# The client of the current request: its name, and whether it has a key
CLIENT: ContextVar[tuple[str, bool]] = ContextVar("CLIENT", default=SERVICE)


class Worker(GeventWorker):
    """Serves every connection in a greenlet. gunicorn's master imports this module, which must not import Flask."""

    handler: Any = None
    background: Any = None

    def init_signals(self) -> None:
        super().init_signals()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)

    def handle_exit(self, sig: int, frame: Any) -> None:
        self.alive = False
        if self.handler:
            self.handler.closing = True

    handle_quit = handle_exit  # SIGINT and SIGQUIT finish complete requests, too.

    def init_process(self) -> None:
        """Start and serve; end with a status that makes gunicorn give up if the start fails."""
        try:
            return super().init_process()
        except (OSError, Unavailable) as error:
            self.log.error("cannot serve: %s", error)
            if retry_after := getattr(error, "retry_after", None):  # The service has started: PostgreSQL comes back.
                time.sleep(retry_after)
                sys.exit(1)
        except Exception:
            self.log.exception("unexpected error outside requests")
        sys.exit(1 if self.booted else Arbiter.WORKER_BOOT_ERROR)

    def run(self) -> None:
        self.booted = False  # gunicorn sets it too early: it would repeat a failing start endlessly.
        servers = self.start()
        self.booted = True
        while self.alive:
            self.notify()
            self.handler.end_overdue()
            gevent.sleep(0.1)
        for server in servers:
            server.stop_accepting()
            with suppress(OSError):  # Closing the listening socket would reset the connections that wait there.
                while accepted := server.do_read():
                    server.do_handle(*accepted)
            server.close()
        self.finish()

    def start(self) -> list[StreamServer]:
        """Start to serve, and the background work."""
        self.background, self.handler = self.wsgi.extensions["background"], self.wsgi.extensions["handler"]
        gc.freeze()  # Loaded modules stay: the collector can ignore them.
        gc.enable()
        sys.setswitchinterval(SWITCH_SECONDS)
        servers = []
        for sock in self.sockets:
            if hasattr(socket, "TCP_NOTSENT_LOWAT"):  # Its connections inherit it.
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)
            servers.append(StreamServer(sock, self.handler, spawn=gevent.spawn_raw))
            servers[-1].max_accept = int(self.handler.max_connections * MAX_ACCEPT)
            servers[-1].start()
        self.background.thread.start()
        return servers

    def finish(self) -> None:
        """Wait for complete requests and for webhook attempts to finish; close idle connections."""
        begun = time.monotonic()
        self.background.stop()
        while time.monotonic() < begun + SHUTDOWN_SECONDS:
            if not self.handler.connections and not self.background.thread.is_alive():
                break
            if time.monotonic() > begun + LAST_REQUEST_SECONDS:
                for connection in self.handler.connections:
                    connection.stop_reading()
            self.notify()
            self.handler.end_overdue()
            gevent.sleep(0.02)


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


class Queue:
    """Greenlets that wait until a subclass resumes them.

    It alternates between those with a key and those without, and goes round-robin over clients.
    """

    def __init__(self) -> None:
        self.hub: Hub = gevent.get_hub()
        # By client, without a key and with one, the next ones first
        self.waiting: tuple[Waiting, Waiting] = OrderedDict(), OrderedDict()
        self.keyed = False  # whether a client with a key is the next

    def wait(self, client: str, keyed: bool) -> None:
        """Wait in a queue with all others of the same client."""
        queue = self.waiting[keyed].setdefault(client, deque())
        waiter = gevent.getcurrent()
        queue.append(waiter)
        try:
            self.hub.switch()
        except BaseException:  # It was interrupted before its turn.
            queue.remove(waiter)
            if not queue:
                del self.waiting[keyed][client]
            raise

    def _next(self) -> greenlet:
        waiting = self.waiting[self.keyed] or self.waiting[not self.keyed]
        self.keyed = not self.keyed
        client, queue = waiting.popitem(last=False)
        waiter = queue.popleft()
        if queue:
            waiting[client] = queue  # behind the other clients
        return waiter


class Turns(Queue):
    """Lets greenlets run in turn. gevent's sleep(0) would resume them in the order of arrival, fifty at once."""

    def __init__(self) -> None:
        super().__init__()
        self.timer = self.hub.loop.timer(0)  # runs after the loop has polled the sockets
        self.running = False

    def wait(self, client: str, keyed: bool) -> None:
        """Wait for a turn."""
        if not self.running:
            self.running = True
            self.hub.loop.run_callback(self._give)
        super().wait(client, keyed)

    def _give(self) -> None:
        until = time.perf_counter() + TURN_SECONDS
        try:
            while any(self.waiting) and time.perf_counter() < until:
                if not self.waiting[WITH_KEY]:  # A request with a key may wait for the database, which has answered.
                    until = 0.0
                self._next().switch()
        finally:  # A greenlet may end in an error, such as MemoryError.
            self.running = any(self.waiting)
            if self.running:
                self.timer.start(self._give)


class Places(Queue):
    """A semaphore whose next place is for the next client, not for the one that has waited longest."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.free = size

    def acquire(self, *, timeout: float) -> bool:
        """Wait for a place; return False if none becomes free in time."""
        if self.free and not any(self.waiting):
            self.free -= 1
            return True
        with gevent.Timeout(timeout, False):
            self.wait(*CLIENT.get())
            return True
        return False

    def release(self) -> None:
        """Give the place to the next."""
        self.free += 1
        if any(self.waiting):
            self.hub.loop.run_callback(self._give)

    def _give(self) -> None:
        while self.free and any(self.waiting):
            self.free -= 1
            self._next().switch()


class EventLoop(Loop):
    """Waiting while other greenlets run."""

    is_cooperative = True
    places = Places

    def __init__(self) -> None:
        self.turns = Turns()
        threadpool = gevent.get_hub().threadpool
        threadpool.maxsize = THREADS
        self.threads, self.background = threadpool, ThreadPool(BACKGROUND_THREADS)

    @staticmethod
    def timeout(seconds: float) -> gevent.Timeout:
        """Return a context manager that raises TimeoutError if its block takes longer."""
        return gevent.Timeout(seconds, TimeoutError)

    def run_in_thread(self, function: Callable[[], Any], *, in_background: bool = False) -> Any:
        """Return the result of a function, while others run."""

        def outcome() -> tuple[Any, Exception | None]:
            try:
                return function(), None
            except Exception as error:  # gevent would log what is raised in a thread as unexpected.
                return None, error

        try:
            result, error = (
                self.background.apply(_at_low_priority, [outcome]) if in_background else self.threads.apply(outcome)
            )
        except RuntimeError as failure:  # No thread can be started: memory or processes have run out.
            raise Unavailable(failure, RETRY_SECONDS) from failure
        if error is not None:
            raise error
        return result

    def wait_for_socket(self, file: int, events: int) -> int:
        """Wait until a socket is ready for `events`; return these. Raises TimeoutError after ANSWER_SECONDS."""
        hub = gevent.get_hub()
        loop = hub.loop
        watcher, timer = loop.io(file, events, priority=loop.MAXPRI), loop.timer(ANSWER_SECONDS)
        timer.start(gevent.getcurrent().throw, TimeoutError)  # A Timeout does this in twice the time.
        try:
            hub.wait(watcher)
        finally:
            timer.close()
            watcher.close()
        return events

    def requests_wait(self) -> bool:
        """Return whether requests with a key wait for their turn."""
        return bool(self.turns.waiting[WITH_KEY])


def _at_low_priority(function: Callable[[], Any]) -> Any:
    if sys.platform == "linux":  # Elsewhere, all threads of a process have the same priority.
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
    return function()
