"""Hostile requests, very many of them: what the fuzzers think of, and what a few wrong bytes make of it."""

import json
import random
import re
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.api.test_fuzz import bodies, changes, ids, queries, texts, values, words
from tests.invariants import sound_posts
from tests.server.test_broken_requests import BROKEN_CHUNKS, CHUNKED, MALFORMED_HEADS, exchange, head_of, statuses_of

pytestmark = pytest.mark.slow

CLIENTS = 4
REQUESTS = 2_500  # of each client, in a quick run
MEGABYTES = 250
STATUSES = {100, 200, 201, 204, 304, 400, 401, 404, 405, 412, 413, 414, 415, 417, 431, 501}
JSON = b"Content-Type: application/json"


def request(method, target, body=b"", *fields):
    """Return a request as bytes, with places for a key and for the id of a post."""
    head = [method + b" " + target + b" HTTP/1.1", b"Host: a", b"Authorization: Bearer {key}", *fields]
    if body:
        head += [JSON, b"Content-Length: %d" % len(body)]
    return b"\r\n".join([*head, b"", body])


def lenient(text):
    """Return a text as bytes, unpaired surrogates and all."""
    return text.encode(errors="surrogatepass")


def quoted(text):
    return quote(lenient(text), safe="").encode()


def dumped(strategy):
    return strategy.map(json.dumps).map(str.encode)


raw = texts.map(lenient) | st.binary(min_size=1, max_size=50)
fields = ["Accept", "Authorization", "Connection", "Content-Length", "Content-Type", "Expect", "Host", "If-Match"]
fields += ["If-None-Match", "Idempotency-Key", "Transfer-Encoding", "X"]
names = st.sampled_from([name.encode() for name in fields])
methods = st.sampled_from([b"GET", b"POST", b"PATCH", b"PUT", b"DELETE", b"OPTIONS"])
webhooks = st.fixed_dictionaries({"url": texts | values, "events": values}, optional={"active": values})
requests = st.one_of(
    st.builds(lambda body: request(b"POST", b"/v1/posts", body), bodies),
    st.builds(lambda body: request(b"PATCH", b"/v1/posts/{id}", body), dumped(changes)),
    st.builds(lambda body: request(b"POST", b"/v1/webhooks", body), dumped(webhooks)),
    st.builds(lambda pairs: request(b"GET", b"/v1/posts?" + encoded(pairs)), queries),
    st.builds(lambda path: request(b"DELETE", b"/v1/posts/" + quoted(path).replace(b"ID", b"{id}")), ids),
    st.builds(
        lambda name, body: request(b"PATCH", b"/v1/tags/" + quoted(name), body),
        texts | words,
        dumped(st.fixed_dictionaries({"name": words | values}, optional={"merge": st.booleans() | values})),
    ),
    st.builds(lambda name: request(b"DELETE", b"/v1/tags/" + quoted(name)), texts | words),
    st.builds(lambda method, path, query: request(method, b"/" + path + b"?" + query), methods, raw, raw),
    st.builds(lambda method, path: request(method, b"/v1/" + path), methods, raw),
    st.builds(lambda name, value: request(b"GET", b"/v1/posts/{id}", b"", name + b": " + value), names, raw),
    st.builds(lambda name, value, body: request(b"POST", b"/v1/posts", body, name + b": " + value), names, raw, bodies),
)


def encoded(pairs):
    return urlencode([(name, value) for name, value in pairs], errors="surrogatepass").encode()


RARE = [  # what takes ways that hardly anything else takes
    request(b"POST", b"/v1/posts", b"{}", b"Expect: 100-continue"),
    request(b"POST", b"/v1/posts", b"", JSON, b"Content-Length: 5000000"),
    request(b"GET", b"/v1/posts/{id}", b"", b"If-None-Match: *"),
    request(b"PATCH", b"/v1/posts/{id}", b"{}", b'If-Match: "x"'),
    request(b"POST", b"/v1/posts", b'{"a":[' * 15_000),
    request(b"POST", b"/v1/posts", b"9" * 5_000),
    request(b"POST", b"/v1/posts", "{}".encode("utf-16")),
]


def thought_of(count):
    """Return what the fuzzers think of, and the broken requests."""
    found = [*RARE, *(head_of(*head) for head, _ in MALFORMED_HEADS.values())]
    found += [CHUNKED + body for body, *_ in BROKEN_CHUNKS.values() if len(body) < 100_000]

    @settings(max_examples=count, database=None)
    @given(requests)
    def collect(request):
        found.append(request)

    collect()
    return found


def spoilt(chance, corpus):
    """Return a request of the corpus, or what some wrong bytes make of it."""
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
    """Send the corpus as it is, and then spoilt, each request on a connection of its own.

    Returns how often each status came, and the most memory there was.
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
        found = list(statuses_of(received))
        assert found or not data.strip(b"\r\n"), data
        assert set(found) <= STATUSES, (data, received)
        statuses.update(found)
        for created in re.findall(rb"^Location: (/v1/posts/\d+)\r$", received, re.MULTILINE):
            service.request("DELETE", created.decode())
    return statuses, memory


def test_hostile_requests_end_in_no_500_no_restart_and_no_more_memory(service, scale):
    corpus = thought_of(500 * min(scale, 20))
    worker = service.worker
    with ThreadPoolExecutor(CLIENTS) as pool:
        ended = list(pool.map(lambda number: attack(service, corpus, number, REQUESTS * scale), range(CLIENTS)))
    statuses = sum((statuses for statuses, _ in ended), Counter())
    assert set(statuses) == STATUSES
    assert max(memory for _, memory in ended) < MEGABYTES
    assert service.worker == worker
    tracebacks = re.findall("^Traceback", service.log, re.MULTILINE)
    refusals = re.findall("^20.*failed with (?:NotFound|Rejected)$", service.log, re.MULTILINE)  # of gevent's threads
    assert len(tracebacks) == len(refusals)
    sound_posts(service.database)
