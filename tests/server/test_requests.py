"""Heads of requests, which our parser reads as gunicorn's does, in little memory; and the addresses of clients."""

from ipaddress import ip_network

from gunicorn.http.errors import InvalidRequestLine
from hypothesis import given
from hypothesis import strategies as st

from blogapi.server.requests import FRAGMENT, Head, client_address, encoded, network, parse, parse_fields
from tests.cases import cases
from tests.service import eventually
from tests.timing import memory_limit

LINES = ("GET /v1/posts HTTP/1.1", "GET /v1/posts HTTP/1.0", "POST /v1/posts?a=%20b HTTP/1.1", "GET /é HTTP/1.1")
STRANGE_LINES = "GET /a#b HTTP/1.1", "get / HTTP/1.1", "GET / HTTP/2.0", "GET /\n HTTP/1.1", "", "CONNECT a:1 HTTP/1.1"
TARGETS = st.text('/ab:;?#[]@%+"\\\t ', max_size=8).map(lambda target: f"GET /{target} HTTP/1.1")
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
    if line.count(b" ") > 2:  # gunicorn takes a space in the target for one in the version.
        raise InvalidRequestLine(line)
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


@given(
    st.sampled_from(LINES) | st.sampled_from(STRANGE_LINES) | TARGETS,
    st.lists(st.sampled_from(FIELDS) | st.sampled_from(STRANGE_FIELDS), max_size=5),
)
def test_a_header_means_what_gunicorn_says_whether_cached_or_new(line, fields):
    data = "\r\n".join([line, *fields, "", ""]).encode("latin-1")
    expected = outcome(by_gunicorn, data)
    assert (outcome(by_us, data), outcome(by_us, data)) == (expected, expected)


def test_headers_that_differ_each_time_take_little_memory():
    with memory_limit(2_000_000):  # They have 6 MB.
        for size, count in ((1900, 1000), (8000, 500)):
            for number in range(count):
                by_us(f"GET /{number} HTTP/1.1\r\nHost: a{number}\r\nX: {'y' * size}\r\n\r\n".encode())


TRUSTED = tuple(map(ip_network, ("127.0.0.1", "10.0.0.0/8", "2001:db8::/32")))
CLIENT = "203.0.113.7"
MALFORMED = ["", "unknown", "198.51.100.1, unknown", "010.0.0.1", "1.2.3", "1.2.3.4:", "1.2.3.4 tests", "[1.2.3.4"]
MALFORMED += ["fe80::1%eth0", "٣.٣.٣.٣"]


@cases(
    ("peer", "forwarded_for", "client"),
    *(("127.0.0.1", text, CLIENT) for text in (CLIENT, f" {CLIENT} ", f"{CLIENT}:4711", f"::ffff:{CLIENT}")),
    *(("127.0.0.1", text, "2001:4860::1") for text in ("2001:4860::1", "[2001:4860::1]", "[2001:4860:0::1]:4711")),
    ("::ffff:127.0.0.1", CLIENT, CLIENT),
    ("2001:db8::7", CLIENT, CLIENT),
    # Read from the right, past the trusted ones: anybody can have written what comes before.
    ("127.0.0.1", f"198.51.100.1, {CLIENT}", CLIENT),
    ("127.0.0.1", f"198.51.100.1,{CLIENT}, 10.1.2.3 ,[2001:db8::1]:80", CLIENT),
    ("127.0.0.1", "10.0.0.2, 10.0.0.3", "10.0.0.2"),
    # Not passed on by a trusted proxy.
    (CLIENT, "198.51.100.1", CLIENT),
    ("fe80::1%eth0", "198.51.100.1", "fe80::1%eth0"),
    # Missing or malformed
    *(("127.0.0.1", text, "127.0.0.1") for text in MALFORMED),
    ("127.0.0.1", "198.51.100.1, unknown, 10.0.0.3", "10.0.0.3"),
    ("127.0.0.1", "198.51.100.1,,10.0.0.3", "10.0.0.3"),
    ("127.0.0.1", "198.51.100.1," + "10.0.0.1," * 1000 + "10.0.0.1", "10.0.0.1"),
)
def test_the_client_is_the_last_address_that_is_not_a_trusted_proxy(peer, forwarded_for, client):
    assert client_address(peer, forwarded_for, TRUSTED) == client


def logged(service, target, **headers):
    """Send a request; return the address in its log line."""
    service.request("GET", target, **headers)
    eventually(lambda: f'"GET {target}"' in service.log)
    return next(line.split()[1] for line in service.log.splitlines() if target in line)


def test_the_log_shows_the_client_behind_a_trusted_proxy_only(serve, server):
    assert logged(server, "/v1/posts?untrusted", X_Forwarded_For=CLIENT) == "127.0.0.1"
    service = serve(BLOGAPI_TRUSTED_PROXIES="127.0.0.0/8, ::1")
    assert logged(service, "/v1/posts?a", X_Forwarded_For=f"198.51.100.1, {CLIENT}") == CLIENT
    assert logged(service, "/v1/posts?b") == "127.0.0.1"
    service.raw(service.head("GET /v1/posts?c HTTP/1.1", f"X-Forwarded-For: {CLIENT}", "X-Forwarded-For: 127.0.0.2"))
    eventually(lambda: f'{CLIENT} tests "GET /v1/posts?c"' in service.log)
    service.raw(b"GET /v1/posts?d HTTP/1.1\r\nHost: a b\r\nX-Forwarded-For: 203.0.113.8\r\n\r\n")
    eventually(lambda: '203.0.113.8 - "GET /v1/posts?d" 400' in service.log)


@cases(
    ("address", "client"),
    ("192.0.2.1", "192.0.2.1"),
    ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
    ("2001:db8:1:2::", "2001:db8:1:2::/64"),
    ("fe80::1%eth0", "fe80::/64"),
    ("::ffff:192.0.2.1", "192.0.2.1"),
)
def test_an_ipv6_network_of_64_bits_is_one_client(address, client):
    assert network(address) == client


def test_a_percent_encoded_slash_is_part_of_a_tag_and_does_not_split_the_path(server):
    post = server.request("POST", "/v1/posts", {"title": "A", "content": "B", "tags": ["a/b"]})[2]
    for path in (f"/v1/posts%2F{post['id']}", f"/v1%2fposts/{post['id']}", f"/v1/posts/by-slug%2F{post['slug']}"):
        assert server.request("DELETE", path)[0] == 404
    assert server.request("DELETE", "/v1%2Ftags/a%2Fb")[0] == 404
    assert server.request("PUT", "/v1/tags/a%2Fb")[0] == 405
    assert server.request("GET", f"http://{server.host}/v1/tags/a%2Fb")[0] == 200
    assert server.request("DELETE", "//v1/tags/a%2Fb")[0] == 204
    assert server.request("DELETE", f"/v1/posts/{post['id']}?x=%2F")[0] == 400
    assert server.request("DELETE", f"/v1/posts/{post['id']}")[0] == 204
