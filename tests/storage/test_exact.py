"""Exactness when all requests arrive at once. On PostgreSQL, `test_several.py` shows it for two services."""

import http.client
import json

import pytest

from tests.service import Server, assert_100_of_150_are_served, assert_writes_at_once_are_exact, in_batches

pytestmark = [pytest.mark.slow, pytest.mark.sqlite]


def test_of_150_requests_in_one_window_100_are_served(serve):
    assert_100_of_150_are_served([serve(BLOGAPI_RATE_LIMIT=100)])


def test_writes_at_once_are_as_exact_as_one_after_the_other(service):
    assert assert_writes_at_once_are_exact([service]) == {str(number) for number in range(1, 41)}
    assert len(service.request("GET", "/v1/posts?limit=100")[2]) == 41


def test_wrong_keys_leave_no_trace_in_memory(tmp_path, scale):
    def heads(numbers):
        head = "GET /v1/posts HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer blog_{:043}\r\n\r\n"
        return [head.format(number).encode() for number in numbers]

    with Server(tmp_path / "blog.db") as service:
        with service.connect() as sock:
            in_batches(sock, heads(range(2000)), 401)
            before = service.memory
            in_batches(sock, heads(range(2000, 2000 + 20_000 * min(scale, 10))), 401)
        assert service.memory < before + 2  # Keeping their digests in a dictionary would take more than three.


def test_refused_texts_leave_no_trace_in_memory(tmp_path):
    with Server(tmp_path / "blog.db") as service:
        before = service.memory
        for number in range(20):
            post = {"title": "A", "content": "B", "cover_image": f"http://{number}{'a' * 4_000_000}"}
            assert service.request("POST", "/v1/posts", post)[0] == 400
        assert service.memory < before + 50


def test_memory_stays_flat_and_below_100_mb(tmp_path, scale):
    with Server(tmp_path / "blog.db") as service:
        mixed(service, 1000)
        before = service.memory
        mixed(service, 2000 * scale)
        assert service.memory < min(before + 10, 100)


def mixed(service, count):
    """Create, list and delete posts, and cause errors."""
    connection = http.client.HTTPConnection(service.host, service.port)
    headers = {"Authorization": f"Bearer {service.key}", "Content-Type": "application/json"}
    body = json.dumps({"title": "A title", "content": "word " * 200, "tags": ["a", "b"], "status": "published"})

    def send(method, path, body=None):
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.read()

    for _ in range(count // 5):
        post = json.loads(send("POST", "/v1/posts", body))
        send("GET", "/v1/posts?limit=20&tag=a")
        send("DELETE", f"/v1/posts/{post['id']}")
        send("POST", "/v1/posts", body[:-2])
        send("GET", "/nothing?x=1")
    connection.close()
