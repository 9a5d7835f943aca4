"""Requests that the server must refuse, and how they are sent."""

import json
import re
import socket

REQUEST = "POST /v1/posts HTTP/1.1"
KEY = "Authorization: Bearer {key}"
JSON = "Content-Type: application/json"
HOST = "Host: a"
BODY = b'{"title": "A", "content": "B"}'


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
    """Yield the status of each response; errors must have the Error body."""
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


LENGTH = 400, "Content-Length: must be one whole number, and must not be sent with Transfer-Encoding"
CODING = 400, "Transfer-Encoding: must be chunked, once, and in HTTP/1.1"
OTHER_CODING = 501, "Transfer-Encoding: must be chunked or left out"
TYPE = 400, "Content-Type: must be given once, without control characters"
AUTHORITY = 400, "Host: must be given once: a host and an optional port"
FIELDS = 431, "the header must have at most 100 fields of at most 8,190 bytes, and 65,536 in total"
LISTS = 431, "Accept, Content-Type, If-Match and similar fields must not exceed 2,048 bytes"
MALFORMED = 400, "the header is not valid HTTP"
FRAGMENT = 400, "the target must not have a fragment; in a path, # is written %23"
CARRIAGE_RETURN = (
    400,
    "Authorization: must have visible characters only; a key read from a file with Windows line breaks ends with a "
    r"carriage return: KEY=$(tr -d '\r' < FILE)",
)
METHOD = 400, "the method must have 3 to 20 upper-case letters"
VERSION = 505, "the HTTP version must be 1.0 or 1.1; a proxy in front can speak HTTP/2"
LINE = (
    400,
    "the request line must be a method, a target (a space in it is %20) and HTTP/1.1; this port speaks plain HTTP",
)
LONG_LINE = (414, "the request line must have at most 8,190 bytes")

# the header of a request, and the status and message of the response
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
    "two types": ([REQUEST, HOST, "Content-Type: a", "Content-Type: b"], TYPE),
    "NUL in the type": ([REQUEST, HOST, "Content-Type: application/json\0"], TYPE),
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
    "too long line": (["GET /" + "x" * 9000 + " HTTP/1.1", HOST], LONG_LINE),
    "far too long line": (["GET /" + "x" * 70_000 + " HTTP/1.1", HOST], LONG_LINE),
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

# the bytes after a header that says chunked, whether the stream ends, and the status and message of the response
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

# the bytes to send, whether the stream ends, and the status and message of the response
BROKEN = {
    **{name: (head_of(*head), False, answer) for name, (head, answer) in MALFORMED_HEADS.items()},
    **{f"chunk: {name}": (CHUNKED + body, end, answer) for name, (body, end, answer) in BROKEN_CHUNKS.items()},
    **{target: (head_of(f"DELETE {target} HTTP/1.1", HOST, KEY), False, NO_PATH) for target in STRANGE_TARGETS},
    "no path": (head_of("OPTIONS * HTTP/1.1", HOST, KEY), False, NO_PATH),
    "TLS that says more": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", False, LINE),
    "header that breaks off": (b"GET /v1/posts HTTP/1.1\r\nHost:", True, (400, "the header is incomplete")),
    "body shorter than announced": (SHORT_BODY, True, (400, "body: shorter than its Content-Length")),
}
