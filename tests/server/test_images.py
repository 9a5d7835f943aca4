"""Large images over a socket: memory is limited, no other client waits, and aborted transfers leave nothing behind."""

import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tests.images.pictures import large
from tests.service import Server, eventually

pytestmark = pytest.mark.slow

picture = partial(large, 2500, 2600)  # 19.5 MB
PNG = {"Content-Type": "image/png"}
MEGABYTES = 250
WAIT_SECONDS = 0.1


@pytest.fixture
def others(server):
    """Another client, which reads all the time: the longest the server worked for it, and the peak memory."""
    done, waits, memory = threading.Event(), [], []

    def read():
        while not done.wait(0.02):
            waits.append(server.wait("/v1/posts")[1])
            memory.append(server.memory)

    def ended():
        done.set()
        reading.result()
        return max(waits) < WAIT_SECONDS, max(memory) < MEGABYTES

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read)
        yield ended
        done.set()


def upload(server):
    return server.request("POST", "/v1/images", picture(), **PNG)


def test_twenty_uploads_at_once_take_turns_or_are_told_to_try_again(server, others):
    with ThreadPoolExecutor(20) as pool:
        statuses = {answer[0] for answer in pool.map(upload, [server] * 20)}
    assert statuses <= {200, 201, 503}
    assert others() == (True, True)


def test_two_hundred_slow_downloads_take_little_memory(server, others, opened):
    path = f"/images/{upload(server)[2]['id']}.png"
    sockets = [opened.enter_context(server.connect()) for _ in range(200)]
    for sock in sockets:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.sendall(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        sock.recv(1000)
    until = time.monotonic() + 1
    while time.monotonic() < until:
        for sock in sockets:
            sock.recv(1000)
    assert others() == (True, True)
    opened.close()
    assert server.request("HEAD", path)[0] == 200


def test_a_chunked_body_can_be_an_image(server):
    status, _, image = server.request("POST", "/v1/images", iter([picture()[:100_000], picture()[100_000:]]), **PNG)
    assert status in (200, 201)
    assert image["bytes"] == len(picture())


@pytest.mark.parametrize("length", [19_500_000, 2**40])
def test_an_aborted_upload_leaves_nothing_and_frees_its_place(server, length):
    head = server.head("POST /v1/images HTTP/1.1", "Content-Type: image/png", f"Content-Length: {length}")
    for _ in range(5):
        with server.connect() as sock:
            sock.sendall(head + picture()[:300_000])
    eventually(lambda: upload(server)[0] in (200, 201))


def test_an_upload_that_stalls_and_a_download_that_nobody_reads_are_ended(tmp_path):
    with Server(tmp_path / "blog.db", BLOGAPI_BODY_SECONDS=2) as impatient:
        head = impatient.head("POST /v1/images HTTP/1.1", "Content-Type: image/png", "Content-Length: 99")
        image = upload(impatient)[2]
        with impatient.connect() as stalled, impatient.connect() as unread:
            stalled.sendall(head + b"\x89PNG")
            unread.sendall(f"GET /images/{image['id']}.png HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            assert stalled.recv(12) == b"HTTP/1.1 408"
            eventually(lambda: "(the client did not read the response)" in impatient.log)
