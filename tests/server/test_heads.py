"""Heads of requests: what our server makes of them is what gunicorn's parser says, in little memory."""

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from blogapi.server.requests import FRAGMENT, Head, encoded, parse, parse_fields

LINES = ("GET /v1/posts HTTP/1.1", "GET /v1/posts HTTP/1.0", "POST /v1/posts?a=%20b HTTP/1.1", "GET /é HTTP/1.1")
STRANGE_LINES = "GET /a#b HTTP/1.1", "get / HTTP/1.1", "GET / HTTP/2.0", "GET /\n HTTP/1.1", "", "CONNECT a:1 HTTP/1.1"
FIELDS = ("Host: a", "Content-Length: 3", "Connection: close", "Connection: keep-alive", "Expect: 100-continue")
STRANGE_FIELDS = (
    *("Content-Length: 03", "Content-Length: \xb2", "Transfer-Encoding: chunked", "Transfer-Encoding: gzip, chunked"),
    *("Expect: x", "Host: b c", "Cookie: a=1", "Cookie: b=2", "Origin: https://a.example", "A_b: c", "No colon"),
    *(f"Accept: {'x' * 1100}", f"If-Match: {'x' * 1100}", "", "\tfolded", "A: \n"),
)


def by_us(data):
    head = Head()
    head.parse(data)
    return head.method, head.uri, head.path, head.query, head.version, head.fields, head.refusal


def by_gunicorn(data):
    line, end, fields = data.partition(b"\r\n")
    request = parse(encoded(line) + end + fields)
    environ, refusal = parse_fields.__wrapped__(request.version, fields)
    if "#" in request.uri:
        refusal = refusal or FRAGMENT
    return request.method, request.uri, request.path, request.query, request.version, environ, refusal


def outcome(read, data):
    """What is read from a head, or the kind of its error."""
    try:
        return read(data)
    except Exception as error:
        return type(error)


TARGETS = st.text('/ab:;?#[]@%+"\\\t ', max_size=8).map(lambda target: f"GET /{target} HTTP/1.1")


@given(
    st.sampled_from(LINES) | st.sampled_from(STRANGE_LINES) | TARGETS,
    st.lists(st.sampled_from(FIELDS) | st.sampled_from(STRANGE_FIELDS), max_size=5),
)
def test_a_header_means_what_gunicorn_says_whether_cached_or_new(line, fields):
    data = "\r\n".join([line, *fields, "", ""]).encode("latin-1")
    expected = outcome(by_gunicorn, data)
    assert outcome(by_us, data) == expected
    assert outcome(by_us, data) == expected


def test_headers_that_differ_each_time_take_little_memory():
    tracemalloc.start()
    try:
        for size, count in ((1900, 1000), (8000, 500)):
            for number in range(count):
                by_us(f"GET /{number} HTTP/1.1\r\nHost: a{number}\r\nX: {'y' * size}\r\n\r\n".encode())
        assert tracemalloc.get_traced_memory()[0] < 2_000_000  # They have 6 MB.
    finally:
        tracemalloc.stop()
