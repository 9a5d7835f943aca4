"""Unusual requests succeed. Broken requests get the Error body, store nothing, and add one line each to the log."""

import itertools
import re
import threading

import pytest

from tests.cases import cases
from tests.server.broken import BODY, BROKEN, CHUNKED, HOST, INVALID, JSON, KEY, REQUEST, exchange, head_of, statuses_of
from tests.service import eventually, read_answer

marks = itertools.count(1000)


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
def test_an_absolute_target_is_its_path_and_http_1_0_needs_no_host(server, version):
    head = server.head(f"GET http://elsewhere.example/v1/posts HTTP/{version}", "Connection: close")
    assert server.raw(head)[::2] == (200, [])
    assert server.raw(f"GET /healthz HTTP/{version}\r\n\r\n".encode())[0] == (200 if version == "1.0" else 400)


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
