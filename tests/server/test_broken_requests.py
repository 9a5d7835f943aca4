"""Broken requests: each gets the Error body with rate-limit headers, stores nothing, and is logged in one line."""

import itertools
import json
import re
import socket
import threading

import pytest

from tests.cases import cases
from tests.service import eventually, read_answer

REQUEST = "POST /v1/posts HTTP/1.1"
KEY = "Authorization: Bearer {key}"
JSON = "Content-Type: application/json"
HOST = "Host: a"
BODY = b'{"title": "A", "content": "B"}'
marks = itertools.count(1000)


def head_of(*lines):
    """The lines of a header as bytes."""
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def exchange(service, data):
    """Send bytes and end the stream; return everything received."""
    with service.connect() as sock:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: sock.recv(65536), b""))


def statuses_of(received):
    """Yield the status of each answer; errors must have the Error body."""
    while received:
        head, _, received = received.partition(b"\r\n\r\n")
        status = int(re.match(rb"HTTP/1\.1 (\d{3}) ", head)[1])
        length = re.search(rb"^Content-Length: (\d+)\r?$", head, re.MULTILINE)
        size = int(length[1]) if length else 0
        body, received = received[:size], received[size:]
        if status >= 400:
            error = json.loads(body)
            assert set(error) == {"error", "message"}
            assert error["error"] == status
            assert 0 < len(error["message"]) <= 500
            assert error["message"].isprintable()
        yield status


def refused(server, data, end=False):
    """Send a request that must be refused; return the status and the message."""
    mark = f"/healthz?{next(marks)}"
    server.request("GET", mark)
    status, headers, body = server.raw(data.replace(b"{key}", server.key.encode()), end)
    assert headers["Content-Type"] == "application/json"
    assert headers["Cache-Control"] == "private, no-cache"
    assert headers["X-RateLimit-Limit"] == "1000000"
    assert int(headers["X-RateLimit-Remaining"]) <= 1_000_000
    assert int(headers["X-RateLimit-Reset"]) % 60 == 0
    assert set(body) == {"error", "message"}
    assert body["error"] == status
    assert server.request("GET", "/v1/posts")[2] == []
    eventually(lambda: len(re.findall(r"^20\S+Z 127", server.log.partition(mark)[2], re.MULTILINE)) == 2)
    assert "Traceback" not in server.log
    return status, body["message"]


LENGTH = 400, "Content-Length: must be one whole number, and must not be sent with Transfer-Encoding"
CODING = 400, "Transfer-Encoding: must be chunked, once, and in HTTP/1.1"
OTHER_CODING = 501, "Transfer-Encoding: must be chunked or left out"
AUTHORITY = 400, "Host: must be given once: a host and an optional port"
FIELDS = 431, "the header must have at most 100 fields of at most 8,190 bytes, and 65,536 in all"
LISTS = 431, "Accept, Content-Type, If-Match and the like must have at most 2,048 bytes in all"
MALFORMED = 400, "the header is not valid HTTP"
FRAGMENT = 400, "the target must not have a fragment; in a path, # is written %23"
CARRIAGE_RETURN = (
    400,
    "Authorization: must have visible characters only; a key from a file with the line breaks of Windows has a "
    r"carriage return at its end: KEY=$(tr -d '\r' < FILE)",
)
METHOD = 400, "the method must have 3 to 20 upper-case letters"
VERSION = 505, "the HTTP version must be 1.0 or 1.1; a proxy in front can speak HTTP/2"
LINE = (
    400,
    "the request line must be a method, a target (a space in it is %20) and HTTP/1.1; this port speaks plain HTTP",
)


# the header of a request, and the status and message of the answer
MALFORMED_HEADS = {
    "a length and a coding": ([REQUEST, HOST, "Content-Length: 30", "Transfer-Encoding: chunked"], LENGTH),
    "two lengths": ([REQUEST, HOST, "Content-Length: 30", "Content-Length: 30"], LENGTH),
    "two lengths in one field": ([REQUEST, HOST, "Content-Length: 30, 30"], LENGTH),
    "negative length": ([REQUEST, HOST, "Content-Length: -1"], LENGTH),
    "length with a sign": ([REQUEST, HOST, "Content-Length: +1"], LENGTH),
    "length with an exponent": ([REQUEST, HOST, "Content-Length: 1e3"], LENGTH),
    "length in another script": ([REQUEST, HOST, "Content-Length: \xb2"], LENGTH),
    "length of 5,000 digits": ([REQUEST, HOST, "Content-Length: " + "9" * 5000], LENGTH),
    "gzip alone": ([REQUEST, HOST, "Transfer-Encoding: gzip"], CODING),
    "chunked twice": ([REQUEST, HOST, "Transfer-Encoding: chunked, chunked"], CODING),
    "chunked in HTTP/1.0": (["POST /v1/posts HTTP/1.0", HOST, "Transfer-Encoding: chunked"], CODING),
    "unknown coding": ([REQUEST, HOST, "Transfer-Encoding: x"], OTHER_CODING),
    "gzip and chunked": ([REQUEST, HOST, "Transfer-Encoding: gzip, chunked"], OTHER_CODING),
    "two types": ([REQUEST, HOST, "Content-Type: a", "Content-Type: b"], (400, "Content-Type: must be given once")),
    "unknown expectation": ([REQUEST, HOST, "Expect: x"], (417, "Expect: must be 100-continue")),
    "no host": ([REQUEST], AUTHORITY),
    "empty host": ([REQUEST, "Host:"], AUTHORITY),
    "host with a space": ([REQUEST, "Host: a b"], AUTHORITY),
    "host with a slash": ([REQUEST, "Host: a/b"], AUTHORITY),
    "host with a port that is none": ([REQUEST, "Host: a:x"], AUTHORITY),
    "two hosts": ([REQUEST, HOST, HOST], AUTHORITY),
    "no colon": ([REQUEST, HOST, "No colon"], MALFORMED),
    "space before the colon": ([REQUEST, HOST, "Space : a"], MALFORMED),
    "NUL": ([REQUEST, HOST, "Nul: \0"], MALFORMED),
    "folded field": ([REQUEST, HOST, "Folded: a", " b"], MALFORMED),
    "bare line feed": ([REQUEST, HOST, "Bare: a\nb: c"], MALFORMED),
    "too many fields": ([REQUEST, HOST, *["X: y"] * 150], FIELDS),
    "too long field": ([REQUEST, HOST, "X: " + "y" * 9000], FIELDS),
    "too long header": ([REQUEST, HOST, *[f"X: {'y' * 8000}"] * 9], FIELDS),
    "too long lists": (["GET / HTTP/1.1", HOST, *["Accept: a" + " " * 8000 + "b"] * 7], LISTS),
    "too long line": (
        ["GET /" + "x" * 9000 + " HTTP/1.1", HOST],
        (414, "the request line must have at most 8,190 bytes"),
    ),
    "fragment": (["GET /v1/posts?limit=1#&a=b HTTP/1.1", HOST], FRAGMENT),
    "method in lower case": (["get /v1/posts HTTP/1.1", HOST], METHOD),
    "method beyond ASCII": (["G\xc3\x84T /v1/posts HTTP/1.1", HOST], METHOD),
    "key from a file of Windows": ([REQUEST, HOST, KEY + "\r"], CARRIAGE_RETURN),
    "version": (["GET /v1/posts HTTP/2.0", HOST], VERSION),
    "no version": (["GET /v1/posts", HOST], LINE),
    "space in the target": (["GET /v1/posts?q=rye bread HTTP/1.1", HOST], LINE),
    "relative target": (["GET v1/posts HTTP/1.1", HOST], LINE),
    "no target": (["GET  HTTP/1.1", HOST], LINE),
    "TLS": (["\x16\x03\x01\x02\x00\x01"], LINE),
    "HTTP/2": (["PRI * HTTP/2.0", "", "SM"], VERSION),
}


CHUNKED = head_of(REQUEST, HOST, KEY, JSON, "Transfer-Encoding: chunked")
CHUNK = b"1e\r\n" + BODY + b"\r\n"
INVALID = 400, "body: invalid chunk, or too many chunks"
INCOMPLETE = 400, "body: incomplete"
TOO_LARGE = 413, 'body: must be at most 4,194,304 bytes; in JSON, "\\u00e9" takes six of them, and "é" two'


# the bytes after a header that says chunked, whether the stream ends, and the status and message of the answer
BROKEN_CHUNKS = {
    "size that is none": (b"x\r\n", False, INVALID),
    "negative size": (b"-1\r\n", False, INVALID),
    "longer than its size": (b"1e\r\n" + BODY + b"XX", False, INVALID),
    "NUL in an extension": (b"1e;a=\0\r\n", False, INVALID),
    "no last chunk": (CHUNK, True, INCOMPLETE),
    "no end of a chunk": (CHUNK[:-2], True, INVALID),
    "shorter than its size": (b"ff\r\n" + BODY, True, INCOMPLETE),
    "no end of the trailer": (CHUNK + b"0\r\n", True, INVALID),
    "Host in the trailer": (CHUNK + b"0\r\nHost: a\r\n\r\n", False, INVALID),
    "large chunk that breaks off": (b"10000\r\n" + b" " * 0x10000 + b"\r\n", True, INCOMPLETE),
    "4 MiB and a byte": (b"400001\r\n" + b" " * 0x400001 + b"\r\n0\r\n\r\n", False, TOO_LARGE),
    "4 MiB and a byte by two": (b"3fffff\r\n" + b" " * 0x3FFFFF + b"\r\n2\r\n  \r\n0\r\n\r\n", False, TOO_LARGE),
}


NO_PATH = 404, "no such path"
SHORT_BODY = head_of(REQUEST, HOST, KEY, JSON, "Content-Length: 31") + BODY
STRANGE_TARGETS = ["/v1/posts/" + "1" * 31, "/v1/posts/%00", "/%ff", "/v1/posts/../posts/1"]
# the bytes to send, whether the stream ends, and the status and message of the answer
BROKEN = {
    **{name: (head_of(*head), False, answer) for name, (head, answer) in MALFORMED_HEADS.items()},
    **{f"chunk: {name}": (CHUNKED + body, end, answer) for name, (body, end, answer) in BROKEN_CHUNKS.items()},
    **{target: (head_of(f"DELETE {target} HTTP/1.1", HOST, KEY), False, NO_PATH) for target in STRANGE_TARGETS},
    "no path": (head_of("OPTIONS * HTTP/1.1", HOST, KEY), False, NO_PATH),
    "TLS that says more": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", False, LINE),
    "header that breaks off": (b"GET /v1/posts HTTP/1.1\r\nHost:", True, (400, "the header is incomplete")),
    "body shorter than announced": (SHORT_BODY, True, (400, "body: shorter than its Content-Length")),
}


@cases(("data", "end", "answer"), BROKEN.values())
def test_a_broken_request_is_refused(server, data, end, answer):
    assert refused(server, data, end) == answer


def test_many_small_chunks_let_others_have_their_turn(service):
    data = CHUNKED.replace(b"{key}", service.key.encode()) + b"1\r\n \r\n" * 1_500_000
    waits = []
    with service.connect() as sock:
        sender = threading.Thread(target=sock.sendall, args=(data,))
        sender.start()
        while sender.is_alive():
            waits.append(service.wait("/healthz"))
        sender.join()
        assert read_answer(sock)[2]["message"] == INVALID[1]
    assert max(worked for _, worked in waits) < 0.1


@cases("field", ["", "Host: a\r\nNo colon\r\n", "Host: a\r\nContent-Length: x\r\n", "X: y\r\n" * 150, "Nul: \0\r\n"])
def test_a_broken_head_request_gets_no_body(server, field):
    with server.connect() as sock:
        sock.sendall(f"HEAD /v1/posts HTTP/1.1\r\n{field}\r\n".encode())
        answer = sock.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 4")
    assert answer.endswith(b"\r\n\r\n")


@pytest.mark.parametrize("fields", [["Connection: te, close"], ["Connection: x", "Connection: close"]])
def test_a_connection_is_closed_if_the_client_asks_for_that(server, fields):
    with server.connect() as sock:
        sock.sendall(server.head("GET /v1/posts HTTP/1.1", *fields))
        assert read_answer(sock)[1]["Connection"] == "close"
        assert sock.recv(1) == b""


@pytest.mark.parametrize("head", [["GET /v1/posts HTTP/1.1", HOST, "Connection: close"], ["POST /v1/posts HTTP/1.0"]])
def test_an_answer_arrives_despite_unread_input(server, head):
    assert server.raw(head_of(*head) + b"GET /v1/posts HTTP/1.1\r\n\r\n" * 20_000)[0] == 401


@cases(("key", "status"), [(KEY, 413), ("X: y", 401)])
@cases("length", [4 * 2**20 + 1, 10**30])
def test_an_answer_arrives_even_if_16_mb_are_sent_before_it_is_read(server, key, status, length):
    head = head_of(REQUEST, HOST, key, JSON, f"Content-Length: {length}")
    assert refused(server, head + b" " * min(length, 16_000_000))[0] == status


# Unusual but valid requests


def test_expect_100_continue_is_answered_when_the_body_is_wanted(server):
    fields = JSON, f"Content-Length: {len(BODY)}", "Expect: 100-continue"
    with server.connect() as sock:
        sock.sendall(server.head(REQUEST, *fields))
        assert sock.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(BODY)
        status, _, post = read_answer(sock)
    assert status == 201
    assert server.raw(head_of(REQUEST, HOST, *fields))[0] == 401
    server.request("DELETE", f"/v1/posts/{post['id']}")


def test_a_chunked_body_is_accepted(server):
    data = CHUNKED.replace(b"{key}", server.key.encode())
    status, _, post = server.raw(data + b"1e;a=b\r\n" + BODY + b"\r\n0\r\nX-Sum: 1\r\n\r\n")
    assert status == 201
    server.request("DELETE", f"/v1/posts/{post['id']}")


def test_pipelined_requests_are_answered_in_order(server):
    requests = b"".join(server.head(f"GET /v1/posts?limit={n} HTTP/1.1") for n in (1, 0, 1))
    assert list(statuses_of(exchange(server, requests))) == [200, 400, 200]


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_an_absolute_target_is_its_path(server, version):
    head = server.head(f"GET http://elsewhere.example/v1/posts HTTP/{version}", "Connection: close")
    assert server.raw(head)[::2] == (200, [])


def test_http_1_0_needs_no_host(server):
    assert server.raw(b"GET /healthz HTTP/1.0\r\n\r\n")[0] == 200


def test_a_target_may_be_in_raw_utf_8_but_not_in_latin_1(server):
    server.request("POST", "/v1/posts", {"title": "A", "content": "b", "tags": ["größe"]})
    head = server.head("GET /v1/posts?tag=größe HTTP/1.1", "Connection: close")
    assert [post["tags"] for post in server.raw(head)[2]] == [["größe"]]
    message = "query: must be UTF-8, with or without percent-encoding"
    assert server.raw(head.decode().encode("latin-1"))[::2] == (400, {"error": 400, "message": message})
    deleted = server.head("DELETE /v1/tags/größe HTTP/1.1", "Connection: close")
    assert server.raw(deleted)[0] == 204
    server.request("DELETE", "/v1/posts/by-slug/a")


@cases("path", ["/docs", "/v1/posts", "/openapi.json", "/x"])
def test_an_answer_has_one_date(server, path):
    _, headers, _ = server.request("HEAD", path)
    assert len(headers.get_all("Date")) == len(headers.get_all("Cache-Control")) == 1
