"""Behind a proxy: which address counts as the client's."""

from ipaddress import ip_network

from blogapi.server.requests import client_address, network
from tests.cases import cases
from tests.service import eventually

TRUSTED = tuple(map(ip_network, ("127.0.0.1", "10.0.0.0/8", "2001:db8::/32")))
CLIENT = "203.0.113.7"


@cases(
    ("peer", "forwarded_for", "client"),
    [
        ("127.0.0.1", CLIENT, CLIENT),
        ("127.0.0.1", f" {CLIENT} ", CLIENT),
        ("127.0.0.1", f"{CLIENT}:4711", CLIENT),
        ("127.0.0.1", "2001:4860::1", "2001:4860::1"),
        ("127.0.0.1", "[2001:4860::1]", "2001:4860::1"),
        ("127.0.0.1", "[2001:4860:0::1]:4711", "2001:4860::1"),
        ("127.0.0.1", f"::ffff:{CLIENT}", CLIENT),
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
        ("127.0.0.1", "", "127.0.0.1"),
        ("127.0.0.1", "unknown", "127.0.0.1"),
        ("127.0.0.1", "198.51.100.1, unknown", "127.0.0.1"),
        ("127.0.0.1", "198.51.100.1, unknown, 10.0.0.3", "10.0.0.3"),
        ("127.0.0.1", "198.51.100.1,,10.0.0.3", "10.0.0.3"),
        ("127.0.0.1", "010.0.0.1", "127.0.0.1"),
        ("127.0.0.1", "1.2.3", "127.0.0.1"),
        ("127.0.0.1", "1.2.3.4:", "127.0.0.1"),
        ("127.0.0.1", "1.2.3.4 tests", "127.0.0.1"),
        ("127.0.0.1", "[1.2.3.4", "127.0.0.1"),
        ("127.0.0.1", "fe80::1%eth0", "127.0.0.1"),
        ("127.0.0.1", "٣.٣.٣.٣", "127.0.0.1"),
        ("127.0.0.1", "198.51.100.1," + "10.0.0.1," * 1000 + "10.0.0.1", "10.0.0.1"),
    ],
)
def test_the_client_is_the_last_address_that_is_not_a_trusted_proxy(peer, forwarded_for, client):
    assert client_address(peer, forwarded_for, TRUSTED) == client


def logged(service, target, **headers):
    """Send a request; return the address in its log line."""
    service.request("GET", target, **headers)
    eventually(lambda: f'"GET {target}"' in service.log)
    return next(line.split()[1] for line in service.log.splitlines() if target in line)


def test_the_log_shows_the_client_behind_a_trusted_proxy(serve):
    service = serve(BLOGAPI_TRUSTED_PROXIES="127.0.0.0/8, ::1")
    assert logged(service, "/v1/posts?a", X_Forwarded_For=f"198.51.100.1, {CLIENT}") == CLIENT
    assert logged(service, "/v1/posts?b") == "127.0.0.1"
    service.raw(service.head("GET /v1/posts?c HTTP/1.1", f"X-Forwarded-For: {CLIENT}", "X-Forwarded-For: 127.0.0.2"))
    eventually(lambda: f'{CLIENT} tests "GET /v1/posts?c"' in service.log)
    service.raw(b"GET /v1/posts?d HTTP/1.1\r\nHost: a b\r\nX-Forwarded-For: 203.0.113.8\r\n\r\n")
    eventually(lambda: '203.0.113.8 - "GET /v1/posts?d" 400' in service.log)


def test_an_untrusted_proxy_is_not_believed(server):
    assert logged(server, "/v1/posts?untrusted", X_Forwarded_For=CLIENT) == "127.0.0.1"


@cases(
    ("address", "client"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
    ],
)
def test_an_ipv6_network_of_64_bits_is_one_client(address, client):
    assert network(address) == client
