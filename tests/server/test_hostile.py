"""A large number of hostile requests: valid and broken ones, and both with a few wrong bytes."""

import random
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.invariants import sound_posts
from tests.server.broken import BROKEN, exchange, statuses_of

pytestmark = pytest.mark.slow

CLIENTS = 4
COUNT = 600  # requests per client, but a hundred times as many in `make soak`
MEGABYTES = 250
STATUSES = {100, 200, 201, 204, 304, 400, 401, 404, 405, 412, 413, 414, 415, 417, 431, 501, 505}
JSON = b"Content-Type: application/json"


def request(method, target, body=b"", *fields):
    """Return a request as bytes, with placeholders for a key and the id of a post."""
    head = [method + b" " + target + b" HTTP/1.1", b"Host: a", b"Authorization: Bearer {key}", *fields]
    if body:
        head += [JSON, b"Content-Length: %d" % len(body)]
    return b"\r\n".join([*head, b"", body])


REQUESTS = [
    request(b"POST", b"/v1/posts", '{"title": "Grüße", "content": "\\ud83c", "tags": ["a", "A"]}'.encode()),
    request(b"POST", b"/v1/posts", b'{"title": "A", "content": "B"}', b"Idempotency-Key: a"),
    request(b"PATCH", b"/v1/posts/{id}", b'{"status": "scheduled", "published_at": "2099-01-01T07:00:00Z"}'),
    request(b"PUT", b"/v1/posts/by-slug/a-1", b'{"title": "A", "content": "B", "params": {"a": [1, null]}}'),
    request(b"DELETE", b"/v1/posts/{id}"),
    request(b"GET", b"/v1/posts?limit=1&status=published&tag=a%20b&before=1&fields=id,title&q=a*%20%22b%22"),
    request(b"GET", b"/v1/posts?sort=published_at&published_after=2026-11-20&before=2026-11-20T12:00:00Z_1"),
    request(b"PATCH", b"/v1/tags/a", b'{"name": "b", "merge": true}'),
    request(b"DELETE", "/v1/tags/größe".encode()),
    request(b"POST", b"/v1/webhooks", b'{"url": "http://127.0.0.1:1/", "events": ["ping"], "headers": {"a": "b"}}'),
    request(b"GET", b"/v1/posts/{id}", b"", b"Accept: text/markdown;q=0.5, */*", b"Connection: close, te"),
    request(b"GET", b"/v1/posts/{id}", b"", b'If-None-Match: W/"x", "y"', b"Range: bytes=0-1"),
    request(b"OPTIONS", b"/v1/posts", b"", b"Origin: https://a.example", b"Access-Control-Request-Method: GET"),
    # requests that take rarely used paths through the code
    request(b"POST", b"/v1/posts", b"{}", b"Expect: 100-continue"),
    request(b"POST", b"/v1/posts", b"", JSON, b"Content-Length: 5000000"),
    request(b"GET", b"/v1/posts/{id}", b"", b"If-None-Match: *"),
    request(b"PATCH", b"/v1/posts/{id}", b"{}", b'If-Match: "x"'),
    request(b"POST", b"/v1/posts", b'{"a":[' * 15_000),
    request(b"POST", b"/v1/posts", b"9" * 5_000),
    request(b"POST", b"/v1/posts", "{}".encode("utf-16")),
]


def spoilt(chance, corpus):
    """Return a request from the corpus, perhaps with some wrong bytes."""
    data = chance.choice(corpus)
    for _ in range(chance.choice([0, 0, 1, 1, 2, 5])):
        start, end = sorted(chance.choices(range(len(data) + 1), k=2))
        end = min(end, start + 20)
        data = chance.choice(
            [
                data[:start] + bytes([chance.randrange(256)]) + data[start + 1 :],
                data[:start] + chance.randbytes(chance.randrange(9)) + data[start:],
                data[:start] + data[end:],
                data[:end] + data[start:],
                data[:end],
                data[:start] + chance.choice(corpus)[-40:],
            ]
        )
    return data


def attack(service, corpus, number, count):
    """Send the corpus unchanged and then corrupted, each request on its own connection.

    Returns how often each status occurred, and the peak memory.
    """
    chance = random.Random(number)
    statuses, memory, post = Counter(), 0, "1"
    for turn in range(count):
        if turn % 100 == 0:
            service.request("DELETE", f"/v1/posts/{post}")
            post = service.request("POST", "/v1/posts", {"title": "A", "content": "B"})[2]["id"]
            memory = max(memory, service.memory)
        data = corpus[turn] if turn < len(corpus) else spoilt(chance, corpus)
        data = data.replace(b"{key}", service.key.encode()).replace(b"{id}", post.encode())
        received = exchange(service, data)
        answered = list(statuses_of(received))
        assert answered or not data.strip(b"\r\n"), data
        assert set(answered) <= STATUSES, (data, received)
        statuses.update(answered)
        for created in re.findall(rb"^Location: (/v1/posts/\d+)\r$", received, re.MULTILINE):
            service.request("DELETE", created.decode())
    return statuses, memory


def test_hostile_requests_cause_no_500_no_restart_and_no_memory_growth(service, scale):
    corpus = REQUESTS + [data for data, *_ in BROKEN.values() if len(data) < 100_000]
    worker = service.worker
    with ThreadPoolExecutor(CLIENTS) as pool:
        ended = list(pool.map(lambda number: attack(service, corpus, number, COUNT * scale), range(CLIENTS)))
    statuses = sum((statuses for statuses, _ in ended), Counter())
    assert set(statuses) == STATUSES
    assert max(memory for _, memory in ended) < MEGABYTES
    assert service.worker == worker
    assert "Traceback" not in service.log
    sound_posts(service.database)
