"""Broken requests: each gets the Error body with the rate limit's headers, stores nothing, is one line of the log."""

import itertools
import json
import re
import threading

import pytest

from tests.service import Server, eventually, read_answer

REQUEST = "POST /v1/posts HTTP/1.1"
KEY = "Authorization: Bearer {key}"
JSON = "Content-Type: application/json"
HOST = "Host: a"
marks = itertools.count(1000)
BODY = '{"title": "A", "content": "B"}'


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("broken") / "blog.db", measured=True) as service:
        yield service


def lines(server, mark):
    """The lines of the log that came after the request with a mark."""
    return re.findall(r"^20\S+Z 127.*", server.log.partition(mark)[2], re.MULTILINE)


def refused(server, data, end=False):
    """Send a request that must be refused; return the answer."""
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
    eventually(lambda: len(lines(server, mark)) == 2)
    assert "Traceback" not in server.log
    return status, body["message"]


LENGTH = "Content-Length: must be one whole number, and not together with Transfer-Encoding"
CODING = "Transfer-Encoding: must be chunked, once, and in HTTP/1.1"
AUTHORITY = "Host: must be given once, a host and perhaps a port"
FIELDS = "the header must have at most 100 fields of at most 8,190 bytes, and 65,536 in all"
MALFORMED = "the header is not valid HTTP"
LINE = "the request line must be a method, a target and HTTP/1.1; this port speaks plain HTTP"


# the head of a request, the status and the message it gets
MALFORMED_HEADS = [
    ([REQUEST, HOST, "Content-Length: 30", "Transfer-Encoding: chunked"], 400, LENGTH),
    ([REQUEST, HOST, "Content-Length: 30", "Content-Length: 30"], 400, LENGTH),
    ([REQUEST, HOST, "Content-Length: 30, 30"], 400, LENGTH),
    ([REQUEST, HOST, "Content-Length: -1"], 400, LENGTH),
    ([REQUEST, HOST, "Content-Length: +1"], 400, LENGTH),
    ([REQUEST, HOST, "Content-Length: 1e3"], 400, LENGTH),
    ([REQUEST, HOST, "Content-Length: \xb2"], 400, LENGTH),
    ([REQUEST, HOST, "Content-Length: " + "9" * 5000], 400, LENGTH),
    ([REQUEST, HOST, "Transfer-Encoding: gzip"], 400, CODING),
    ([REQUEST, HOST, "Transfer-Encoding: chunked, chunked"], 400, CODING),
    (["POST /v1/posts HTTP/1.0", HOST, "Transfer-Encoding: chunked"], 400, CODING),
    ([REQUEST, HOST, "Transfer-Encoding: x"], 501, "Transfer-Encoding: must be chunked or left out"),
    ([REQUEST, HOST, "Transfer-Encoding: gzip, chunked"], 501, "Transfer-Encoding: must be chunked or left out"),
    ([REQUEST, HOST, "Content-Type: a", "Content-Type: b"], 400, "Content-Type: must be given once"),
    ([REQUEST, HOST, *[f"X: {'y' * 8000}"] * 9], 431, FIELDS),
    (["GET /v1/posts?limit=1#&status=draft HTTP/1.1", HOST], 400, "the target must not have a fragment (#)"),
    ([REQUEST, HOST, "Expect: x"], 417, "Expect: must be 100-continue"),
    ([REQUEST], 400, AUTHORITY),
    ([REQUEST, "Host:"], 400, AUTHORITY),
    ([REQUEST, "Host: a b"], 400, AUTHORITY),
    ([REQUEST, "Host: a/b"], 400, AUTHORITY),
    ([REQUEST, "Host: a:x"], 400, AUTHORITY),
    ([REQUEST, HOST, HOST], 400, AUTHORITY),
    ([REQUEST, HOST, "No colon"], 400, MALFORMED),
    ([REQUEST, HOST, "Space : a"], 400, MALFORMED),
    ([REQUEST, HOST, "Nul: \0"], 400, MALFORMED),
    ([REQUEST, HOST, "Folded: a", " b"], 400, MALFORMED),
    ([REQUEST, HOST, "Bare: a\nb: c"], 400, MALFORMED),
    ([REQUEST, HOST, *["X: y"] * 150], 431, FIELDS),
    ([REQUEST, HOST, "X: " + "y" * 9000], 431, FIELDS),
    (["GET /" + "x" * 9000 + " HTTP/1.1", HOST], 414, "the request line must have at most 8,190 bytes"),
    (["get /v1/posts HTTP/1.1", HOST], 400, "the method must have 3 to 20 upper-case letters"),
    (["GET /v1/posts HTTP/2.0", HOST], 400, "the HTTP version must be 1.0 or 1.1"),
    (["GET /v1/posts", HOST], 400, LINE),
    (["GET v1/posts HTTP/1.1", HOST], 400, LINE),
    (["GET  HTTP/1.1", HOST], 400, LINE),
    (["\x16\x03\x01\x02\x00\x01"], 400, LINE),
    (["PRI * HTTP/2.0", "", "SM"], 400, LINE),
]


@pytest.mark.parametrize(("head", "status", "message"), MALFORMED_HEADS)
def test_a_malformed_header(server, head, status, message):
    data = "\r\n".join([*head, "", ""]).encode("latin-1")
    assert refused(server, data) == (status, message)


def test_tls_is_refused_without_waiting_for_more(server):
    assert refused(server, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")[0] == 400


CHUNKED = "\r\n".join([REQUEST, HOST, KEY, JSON, "Transfer-Encoding: chunked", "", ""]).encode()


# what comes after a head that says chunked, whether nothing more comes, the status and the message it gets
BROKEN_CHUNKS = [
    (b"x\r\n", False, 400, "body: invalid chunk, or too many chunks"),
    (b"-1\r\n", False, 400, "body: invalid chunk, or too many chunks"),
    (b"1e\r\n" + BODY.encode() + b"XX", False, 400, "body: invalid chunk, or too many chunks"),
    (b"1e;a=\0\r\n", False, 400, "body: invalid chunk, or too many chunks"),
    (b"1e\r\n" + BODY.encode() + b"\r\n", True, 400, "body: incomplete"),
    (b"1e\r\n" + BODY.encode(), True, 400, "body: invalid chunk, or too many chunks"),
    (b"ff\r\n" + BODY.encode(), True, 400, "body: incomplete"),
    (b"1e\r\n" + BODY.encode() + b"\r\n0\r\n", True, 400, "body: invalid chunk, or too many chunks"),
    (
        b"1e\r\n" + BODY.encode() + b"\r\n0\r\nHost: a\r\n\r\n",
        False,
        400,
        "body: invalid chunk, or too many chunks",
    ),
    (b"400001\r\n" + b" " * 0x400001 + b"\r\n0\r\n\r\n", False, 413, "body: must be at most 4,194,304 bytes"),
    (b"10000\r\n" + b" " * 0x10000 + b"\r\n", True, 400, "body: incomplete"),
]


@pytest.mark.parametrize(("body", "end", "status", "message"), BROKEN_CHUNKS)
def test_a_broken_chunked_body(server, body, end, status, message):
    assert refused(server, CHUNKED + body, end) == (status, message)


def test_many_small_chunks_leave_others_their_turn(tmp_path):
    with Server(tmp_path / "blog.db") as server:
        many_small_chunks(server)


def many_small_chunks(server):
    data = CHUNKED.replace(b"{key}", server.key.encode()) + b"1\r\n \r\n" * 1_500_000
    waits = []
    with server.connect() as sock:
        sender = threading.Thread(target=sock.sendall, args=(data,))
        sender.start()
        while sender.is_alive():
            waits.append(server.wait("/healthz"))
        sender.join()
        assert read_answer(sock)[2]["message"] == "body: invalid chunk, or too many chunks"
    assert max(worked for _, worked in waits) < 0.1


def test_a_header_that_is_broken_off(server):
    assert refused(server, b"GET /v1/posts HTTP/1.1\r\nHost:", end=True) == (400, "the header is incomplete")


@pytest.mark.parametrize(
    "field", ["", "Host: a\r\nNo colon\r\n", "Host: a\r\nContent-Length: x\r\n", "X: y\r\n" * 150, "Nul: \0\r\n"]
)
def test_a_broken_head_request_has_no_body(server, field):
    with server.connect() as sock:
        sock.sendall(f"HEAD /v1/posts HTTP/1.1\r\n{field}\r\n".encode())
        answer = sock.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 4")
    assert answer.endswith(b"\r\n\r\n")


@pytest.mark.parametrize("fields", [["Connection: te, close"], ["Connection: x", "Connection: close"]])
def test_a_client_that_wants_the_connection_to_end_has_it_ended(server, fields):
    with server.connect() as sock:
        sock.sendall(server.head("GET /v1/posts HTTP/1.1", *fields))
        assert read_answer(sock)[1]["Connection"] == "close"
        assert sock.recv(1) == b""


@pytest.mark.parametrize("head", ["GET /v1/posts HTTP/1.1\r\nHost: a\r\nConnection: close", "POST /v1/posts HTTP/1.0"])
def test_an_answer_arrives_despite_unread_input(server, head):
    assert server.raw(f"{head}\r\n\r\n".encode() + b"GET /v1/posts HTTP/1.1\r\n\r\n" * 20_000)[0] == 401


def test_a_body_shorter_than_announced(server):
    head = "\r\n".join([REQUEST, HOST, KEY, JSON, "Content-Length: 31", "", ""])
    assert refused(server, f"{head}{BODY}".encode(), end=True) == (400, "body: shorter than its Content-Length")


@pytest.mark.parametrize("key", [KEY, "X: y"])
@pytest.mark.parametrize("length", [4 * 2**20 + 1, 10**30])
def test_an_answer_that_comes_before_the_body_was_read_arrives(server, key, length):
    """Also if the client sends 16 MB before it reads an answer."""
    head = "\r\n".join([REQUEST, HOST, key, JSON, f"Content-Length: {length}", "", ""])
    status, _ = refused(server, head.encode() + b" " * min(length, 16_000_000))
    assert status == (413 if key == KEY else 401)


@pytest.mark.parametrize("target", ["/v1/posts/" + "1" * 31, "/v1/posts/%00", "/%ff", "/v1/posts/../posts/1", "*"])
def test_a_strange_target_is_404(server, target):
    method = "OPTIONS" if target == "*" else "DELETE"
    status, message = refused(server, f"{method} {target} HTTP/1.1\r\nHost: a\r\n{KEY}\r\n\r\n".encode())
    assert (status, message) == (404, "no such path")


# What is unusual and right


def test_expect_100_continue_is_answered_when_the_body_is_wanted(server):
    head = "\r\n".join([REQUEST, HOST, "{key}", JSON, f"Content-Length: {len(BODY)}", "Expect: 100-continue", "", ""])
    with server.connect() as sock:
        sock.sendall(head.replace("{key}", f"Authorization: Bearer {server.key}").encode())
        assert sock.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(BODY.encode())
        status, _, post = read_answer(sock)
    assert status == 201
    with server.connect() as sock:
        sock.sendall(head.replace("{key}", "X: y").encode())
        assert read_answer(sock)[0] == 401
    server.request("DELETE", f"/v1/posts/{post['id']}")


def test_a_chunked_body_is_taken(server):
    data = CHUNKED.replace(b"{key}", server.key.encode())
    status, _, post = server.raw(data + b"1e;a=b\r\n" + BODY.encode() + b"\r\n0\r\nX-Sum: 1\r\n\r\n")
    assert status == 201
    server.request("DELETE", f"/v1/posts/{post['id']}")


def test_pipelined_requests_are_answered_in_order(server):
    with server.connect() as sock:
        sock.sendall(b"".join(server.head(f"GET /v1/posts?limit={n} HTTP/1.1") for n in (1, 0, 1)))
        file = sock.makefile("rb")
        statuses = []
        for _ in range(3):
            statuses.append(int(file.readline().split()[1]))
            length = 0
            while (line := file.readline()) != b"\r\n":
                if line.lower().startswith(b"content-length"):
                    length = int(line.split(b":")[1])
            json.loads(file.read(length))
    assert statuses == [200, 400, 200]


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_an_absolute_target_is_its_path(server, version):
    head = server.head(f"GET http://elsewhere.example/v1/posts HTTP/{version}", "Connection: close")
    assert server.raw(head)[::2] == (200, [])


def test_http_1_0_needs_no_host(server):
    assert server.raw(b"GET /healthz HTTP/1.0\r\n\r\n")[0] == 200


def test_a_target_in_raw_utf_8_is_understood_and_one_in_latin_1_is_told_what_would_be(server):
    server.request("POST", "/v1/posts", {"title": "A", "content": "b", "tags": ["größe"]})
    head = server.head("GET /v1/posts?tag=größe HTTP/1.1", "Connection: close")
    assert [post["tags"] for post in server.raw(head)[2]] == [["größe"]]
    message = "query: must be UTF-8, with or without percent-encoding"
    assert server.raw(head.decode().encode("latin-1"))[::2] == (400, {"error": 400, "message": message})
    method = server.head("GÄT /v1/posts HTTP/1.1", "Connection: close")
    assert server.raw(method)[2]["message"] == "the method must have 3 to 20 upper-case letters"
    deleted = server.head("DELETE /v1/tags/größe HTTP/1.1", "Connection: close")
    assert server.raw(deleted)[0] == 204


@pytest.mark.parametrize("path", ["/docs", "/v1/posts", "/openapi.json", "/x"])
def test_an_answer_has_one_date(server, path):
    _, headers, _ = server.request("HEAD", path)
    assert len(headers.get_all("Date")) == len(headers.get_all("Cache-Control")) == 1
