"""Heads of requests: those that are remembered, or arrive at once, mean what they mean when they are parsed anew."""

from gunicorn.http.unreader import IterUnreader
from hypothesis import given
from hypothesis import strategies as st

from blogapi.server import requests
from blogapi.server.requests import REMEMBERED, HttpRequest

LINES = ("GET /v1/posts HTTP/1.1", "GET /v1/posts HTTP/1.0", "POST /v1/posts?a=%20b HTTP/1.1", "GET /é HTTP/1.1")
STRANGE_LINES = "GET /a#b HTTP/1.1", "get / HTTP/1.1", "GET / HTTP/2.0", "GET /\n HTTP/1.1", "", "CONNECT a:1 HTTP/1.1"
FIELDS = ("Host: a", "Content-Length: 3", "Connection: close", "Connection: keep-alive", "Expect: 100-continue")
STRANGE_FIELDS = (
    *("Content-Length: 03", "Content-Length: \xb2", "Transfer-Encoding: chunked", "Transfer-Encoding: gzip, chunked"),
    *("Expect: x", "Host: b c", "Cookie: a=1", "Cookie: b=2", "Origin: https://a.example", "A_b: c", "No colon"),
    *(f"Accept: {'x' * 1100}", f"If-Match: {'x' * 1100}", "", "\tfolded", "A: \n"),
)


def parsed(*pieces):
    """What a request says whose bytes arrive in pieces."""
    unreader = IterUnreader(pieces)
    unreader.sock = None
    try:
        request = HttpRequest(unreader, ("127.0.0.1", 1))
    except Exception as error:
        return type(error), error.request.method, error.request.uri or ""
    return (
        *(request.method, request.uri, request.path, request.query, request.version),
        *(request.refusal, request.fields.environ, request.is_persistent),
        *(type(request.reader), getattr(request.reader, "length", None), unreader.take_buffered()),
    )


TARGETS = st.text('/ab:;?#[]@%+"\\\t ', max_size=8).map(lambda target: f"GET /{target} HTTP/1.1")


@given(
    st.sampled_from(LINES) | st.sampled_from(STRANGE_LINES) | TARGETS,
    st.lists(st.sampled_from(FIELDS) | st.sampled_from(STRANGE_FIELDS), max_size=5),
)
def test_a_head_means_the_same_whether_it_is_known_or_new_and_however_it_arrives(line, fields):
    data = "\r\n".join([line, *fields, "", "abc"]).encode("latin-1")
    by_gunicorn = parsed(data[:1], data[1:])
    assert parsed(data) == by_gunicorn
    assert parsed(data) == by_gunicorn


def test_few_heads_are_remembered():
    for number in range(2 * REMEMBERED):
        parsed(f"GET /{number} HTTP/1.1\r\nHost: a{number}\r\n\r\n".encode())
    assert len(requests.parsed_fields) == REMEMBERED
    long = f"Host: a\r\nX: {'y' * 2048}".encode()
    parsed(b"GET / HTTP/1.1\r\n%b\r\n\r\n" % long)
    assert long not in requests.parsed_fields
