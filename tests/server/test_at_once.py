"""Requests that arrive at once or one after the other: limits and writes are exact, with little memory and few commits.

`test_several.py` shows the same for two services on PostgreSQL.
"""

import http.client
import json
import os
import signal
import struct
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.service import BIN, Server, assert_100_of_150_are_served, assert_writes_at_once_are_exact, in_batches

pytestmark = pytest.mark.slow

ROUNDS, CONNECTIONS = 4, 16
# gunicorn's own worker with threads, as docs/running.md starts it
GTHREAD = f'exec {BIN}/gunicorn -c /dev/null -b "$HOST:$PORT" -k gthread --threads 4 "blogapi:create_app()"'


def test_of_150_requests_in_one_window_100_are_served(serve):
    assert_100_of_150_are_served([serve(BLOGAPI_RATE_LIMIT=100)])


def test_writes_at_once_are_as_exact_as_one_after_the_other(service):
    assert assert_writes_at_once_are_exact([service]) == {str(number) for number in range(1, 41)}
    assert len(service.request("GET", "/v1/posts?limit=100")[2]) == 41


def commits(wal):
    """Count the commits in a -wal: the last frame of each contains the size of the database."""
    data = wal.read_bytes()
    page_size, _, salt = struct.unpack(">8xII8s", data[:24])
    frames = (data[start : start + 24] for start in range(32, len(data), page_size + 24))
    return sum(struct.unpack(">4xI8s", frame[:16])[0] > 0 and frame[8:16] == salt for frame in frames)


def test_sixteen_creations_share_a_few_commits(service, opened):
    request = service.creation(json.dumps({"title": "A", "content": "word " * 100}).encode())
    connections = [opened.enter_context(service.connect()) for _ in range(CONNECTIONS)]
    wal = service.database.with_name("blog.db-wal")
    service.request("GET", "/v1/posts")  # The use of the key is recorded.
    taken = []
    for _ in range(ROUNDS):
        before = commits(wal)
        os.kill(service.worker, signal.SIGSTOP)  # so that they arrive at the same time even on a busy machine
        for connection in connections:
            connection.sendall(request)
        os.kill(service.worker, signal.SIGCONT)
        for connection in connections:
            assert connection.recv(65536).startswith(b"HTTP/1.1 201 ")
        taken.append(commits(wal) - before)
    assert 0 < min(taken) <= CONNECTIONS / 4  # A busy machine may interrupt some rounds.


def live(threads, number):
    """Take a post through its life cycle; return the statuses of the responses."""
    slug = f"/v1/posts/by-slug/post-{number}"
    body = {"title": f"Post {number}", "content": "Fog.", "tags": ["a", f"b{number}"], "status": "published"}
    return [
        threads.request("POST", "/v1/posts", body)[0],
        threads.request("GET", "/v1/posts?q=fog&tag=a")[0],
        threads.request("PATCH", slug, {"content": "Sun."})[0],
        threads.request("PATCH", f"/v1/tags/b{number}", {"name": f"c{number}"})[0],
        threads.request("GET", slug + "/revisions")[0],
        threads.request("DELETE", slug if number % 2 else slug + "?permanent=true")[0],
        threads.request("GET", slug)[0],
    ]


def test_with_threads_many_clients_take_posts_through_their_life_cycle(tmp_path):
    with Server(tmp_path / "blog.db", command=("sh", "-c", GTHREAD)) as threads:
        with ThreadPoolExecutor(8) as pool:
            lives = list(pool.map(lambda number: live(threads, number), range(40)))
        assert lives == [[201, 200, 200, 200, 200, 204, 404]] * 40
        assert threads.request("GET", "/v1/posts")[2] == []
        assert len(threads.request("GET", "/v1/trash")[2]) == 20
        assert threads.request("GET", "/v1/tags")[2] == []
        assert "Traceback" not in threads.log


def test_wrong_keys_leave_no_trace_in_memory(service, scale):
    def heads(numbers):
        head = "GET /v1/posts HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer blog_{:043}\r\n\r\n"
        return [head.format(number).encode() for number in numbers]

    with service.connect() as sock:
        in_batches(sock, heads(range(1000)), 401)
        before = service.memory
        in_batches(sock, heads(range(1000, 1000 + 2000 * min(scale, 50))), 401)
    assert service.memory < before + 0.15 * min(scale, 50)  # usually 0.05; keeping digests in a dictionary takes 0.3


def test_refused_texts_leave_no_trace_in_memory(service):
    before = service.memory
    for number in range(20):
        post = {"title": "A", "content": "B", "cover_image": f"http://{number}{'a' * 4_000_000}"}
        assert service.request("POST", "/v1/posts", post)[0] == 400
    assert service.memory < before + 50


def mixed(service, count):
    """Create, list and delete posts, and cause errors."""
    connection = http.client.HTTPConnection(service.host, service.port)
    headers = {"Authorization": f"Bearer {service.key}", "Content-Type": "application/json"}
    body = json.dumps({"title": "A title", "content": "word " * 200, "tags": ["a", "b"], "status": "published"})

    def send(method, path, body=None):
        connection.request(method, path, body, headers)
        return connection.getresponse().read()

    for _ in range(count // 5):
        post = json.loads(send("POST", "/v1/posts", body))
        send("GET", "/v1/posts?limit=20&tag=a")
        send("DELETE", f"/v1/posts/{post['id']}")
        send("POST", "/v1/posts", body[:-2])
        send("GET", "/nothing?x=1")
    connection.close()


def test_memory_stays_flat_and_below_100_mb(service, scale):
    mixed(service, 500)
    before = service.memory
    mixed(service, 1000 * scale)
    assert service.memory < min(before + 5, 100)
