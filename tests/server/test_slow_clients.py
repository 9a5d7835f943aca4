"""Slow and silent clients disturb nobody and are disconnected."""

import socket
import statistics
import threading
import time
from contextlib import suppress

import pytest

from tests.service import Server, eventually, read_answer

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("slow clients")]

EACH = 200  # connections of each kind


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """A server that allows two seconds for a header and for a body."""
    database = tmp_path_factory.mktemp("quick") / "blog.db"
    with Server(database, BLOGAPI_HEADER_SECONDS=2, BLOGAPI_BODY_SECONDS=2, measured=True) as service:
        yield service


def test_a_thousand_slow_clients_do_not_slow_down_another(quick, opened, many_files):
    files = quick.open_files
    request = quick.head("GET /v1/posts HTTP/1.1", "Connection: close")
    starts = [b"", b"GET /v1/posts HT", quick.creation(b'{"title', 99), b"G", request]
    sockets = [[opened.enter_context(quick.connect()) for _ in range(EACH)] for _ in starts]
    for kind, start in zip(sockets, starts, strict=True):
        for sock in kind:
            sock.sendall(start)
    ended = threading.Event()

    def trickle():
        for byte in b"ET /v1/posts":
            for sock in sockets[3]:
                with suppress(OSError):  # once it is ended
                    sock.sendall(bytes([byte]))
            if ended.wait(1):
                return

    thread = threading.Thread(target=trickle)
    thread.start()
    eventually(lambda: quick.open_files >= files + 4 * EACH)
    waits = [quick.wait("/v1/posts") for _ in range(200)]
    ended.set()
    thread.join()
    seconds, worked = (statistics.quantiles(times, n=100)[98] for times in zip(*waits, strict=True))
    assert seconds < 2  # The server waits that long for a slow client.
    assert worked < 0.1
    eventually(lambda: quick.open_files <= files)
    idle, half_header, half_body, trickling, closing = (kind[0] for kind in sockets)
    assert idle.recv(1) == b""
    assert read_answer(half_header)[2] == {"error": 408, "message": "the header did not arrive in time"}
    assert read_answer(half_body)[2] == {"error": 408, "message": "body: did not arrive in time"}
    assert read_answer(trickling)[0] == 408
    assert read_answer(closing)[0] == 200


def test_a_body_gets_another_second_for_each_16_kib(quick):
    length = 5 * 16 * 1024
    request = quick.creation(b'{"title": "A", "content": "B"}'.ljust(length))
    with quick.connect() as sock:
        begun = time.monotonic()
        sock.sendall(request[:-length])
        for start in range(-length, 0, length // 5):
            sock.sendall(request[start:][: length // 5])
            time.sleep(0.5)
        assert read_answer(sock)[0] == 201
        assert time.monotonic() - begun > 2


def test_the_deadline_of_a_header_counts_from_its_first_byte(quick):
    with quick.connect() as sock:
        time.sleep(1.2)
        sock.sendall(b"GET /healthz HTTP/1.1\r\n")
        time.sleep(1.2)
        sock.sendall(b"Host: a\r\n\r\n")
        assert read_answer(sock)[0] == 200


def test_a_client_that_does_not_read_disturbs_nobody_and_is_disconnected(quick):
    for _ in range(5):
        quick.request("POST", "/v1/posts", {"title": "A", "content": "x" * 1_000_000})
    with socket.socket() as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.connect((quick.host, quick.port))
        sock.sendall(quick.head("GET /v1/posts HTTP/1.1"))
        eventually(lambda: quick.connections == 1)
        seconds, worked = quick.wait("/v1/posts?limit=1")
        assert seconds < 2  # The server waits that long for the other one.
        assert worked < 0.1
        eventually(lambda: quick.connections == 0)
