"""Attempts: which addresses they may call, how they fail, and how much of a response they read."""

import gc
import json
import signal
import socket
import time
import warnings
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace

import pytest

from blogapi.webhooks.endpoint import RECEIVED_BYTES, AddressError, AttemptResult, Endpoint, addresses_of
from tests.cases import cases
from tests.service import free_port


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("http://127.0.0.1:{closed}/", "cannot connect: Connection refused"),
        ("http://☃☃.invalid/", "url: Failed to parse: Name '☃☃' is not a valid IDNA label"),
        (f"http://{'a' * 64}/", "url: not a valid host name"),
        (
            "http://169.254.169.254/",
            "url: 169.254.169.254 is a link-local, multicast or metadata address, which is never called",
        ),
        ("https://127.0.0.1:{port}/", "TLS: wrong version number"),
    ],
)
def test_a_failed_attempt_has_an_error_instead_of_a_status(deliver, receiver, delivery, url, error):
    deliver(url.replace("{port}", str(receiver.port)).replace("{closed}", str(free_port())))
    state = delivery()
    state.pop("next_attempt_at")
    assert state == {"state": "pending", "attempts": 1, "last_error": error}


@pytest.fixture
def resolver(monkeypatch):
    """The resolver's answers for "moving.example", one after another: addresses, or nothing."""
    look_up, answers = socket.getaddrinfo, []

    def getaddrinfo(host, *args, **kwargs):
        addresses = answers.pop(0).split() if host == "moving.example" else [host]
        if not addresses:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [found for address in addresses for found in look_up(address, *args, **kwargs)]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return answers


def test_a_name_that_later_resolves_to_a_private_address_is_refused(
    client, post, send, background, receiver, resolver, delivery
):
    background.sender.config = replace(background.sender.config, webhook_private=False)
    resolver += ["8.8.8.8", "127.0.0.1"]
    assert client.post("/v1/webhooks", json={"url": f"http://moving.example:{receiver.port}"}).status_code == 201
    post()
    send()
    assert receiver.messages == []
    assert "127.0.0.1 is a private" in delivery()["last_error"]


def test_the_address_that_was_checked_is_the_one_that_is_called(deliver, receiver, resolver):
    resolver += ["127.0.0.1", "169.254.169.254"]
    deliver(f"http://moving.example:{receiver.port}")
    assert len(receiver.messages) == 1
    assert receiver.messages[0].headers["host"] == f"moving.example:{receiver.port}"
    assert resolver == ["169.254.169.254"]


def test_a_name_that_does_not_resolve_now_may_resolve_later(client, post, send, receiver, resolver, delivery, clock):
    resolver += ["", "", "127.0.0.1"]
    assert client.post("/v1/webhooks", json={"url": f"http://moving.example:{receiver.port}"}).status_code == 201
    post()
    send()
    assert delivery()["last_error"] == "url: the host cannot be found: Name or service not known"
    clock.now += 6
    send()
    assert delivery()["state"] == "delivered"


@pytest.fixture
def two_addresses(resolver, receiver):
    """The URL of a host that resolves to 127.0.0.2 and to the receiver's address, in this order."""
    resolver.append("127.0.0.2 127.0.0.1")
    return f"http://moving.example:{receiver.port}"


@contextmanager
def listener(address, port=0, full=False):
    """Listen without ever answering or, if `full`, even accepting. Yields the port."""
    with socket.create_server((address, port), backlog=0 if full else 5) as server, ExitStack() as stack:
        for _ in range(3 if full else 0):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        yield server.getsockname()[1]


@pytest.mark.parametrize("webhook_seconds", [4])
@pytest.mark.parametrize(("full", "scheme"), [(None, "http"), (True, "http"), (False, "https")])
def test_the_next_address_is_tried_if_one_refuses_does_not_answer_or_is_silent_in_tls(
    deliver, receiver, two_addresses, delivery, full, scheme
):
    with nullcontext() if full is None else listener("127.0.0.2", receiver.port, full=full):
        deliver(two_addresses.replace("http", scheme))
    # The second address speaks plain HTTP.
    assert delivery().get("last_error") == (None if scheme == "http" else "TLS: wrong version number")
    assert len(receiver.messages) == (scheme == "http")


@contextmanager
def alarm(seconds):
    """A time limit like the server's, which raises wherever the block is at that moment."""

    def ring(*args):
        raise TimeoutError

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def assert_given_up_in_time(url):
    begun = time.monotonic()
    with warnings.catch_warnings(action="ignore", category=ResourceWarning):
        # Unlike the server's limit, the alarm may ring just before urllib3 closes a socket.
        result = Endpoint(url, "a2V5", True, 0.3, alarm).send("msg_1", b"{}", begun)
        gc.collect()
    assert result == AttemptResult(error="no response within 0.3 s")
    assert 0.3 <= time.monotonic() - begun < 4


@cases("scheme", ["http", "https"])
@cases("full", [True, False])
def test_the_time_limit_includes_connecting(scheme, full):
    with listener("127.0.0.1", full=full) as port:
        assert_given_up_in_time(f"{scheme}://127.0.0.1:{port}")


@pytest.mark.parametrize(("look_up_seconds", "full"), [(5, False), (0.28, True)])
def test_nothing_is_called_once_the_time_limit_is_reached(receiver, two_addresses, monkeypatch, look_up_seconds, full):
    look_up = socket.getaddrinfo

    def look_up_slowly(host, *args, **kwargs):
        time.sleep(look_up_seconds if host == "moving.example" else 0)
        return look_up(host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", look_up_slowly)
    with listener("127.0.0.2", receiver.port, full):
        assert_given_up_in_time(two_addresses)
    assert receiver.messages == []


INTERIM = b"HTTP/1.1 100 Continue\r\nX: " + b"x" * 1000 + b"\r\n\r\n"  # long: Python skips at most 100 of them
FINAL = b"HTTP/1.1 200 OK\r\n\r\n"
ENDED = "the connection was lost, or the response was not HTTP"


@cases(
    ("answer", "expected"),
    (FINAL + b"secret" * 2_000_000, 200),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\nsecret", 200),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n", 200),
    (b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 201 Created\r\n\r\n", 201),
    (b"HTTP/1.1 200 OK\r\n" + b"secret: y\r\n" * 1_000_000, ENDED),
    (b"secret " * 10_000, ENDED),
    (b"", ENDED),
)
def test_only_the_status_of_an_answer_is_kept(deliver, receiver, delivery, answer, expected):
    receiver.answer = lambda handler: pour(handler, answer)
    deliver()
    assert expected in (delivery().get("last_status"), delivery().get("last_error"))
    assert "secret" not in json.dumps(delivery())


def pour(handler, answer):
    """Send as much of a response as the client accepts."""
    with suppress(OSError):
        handler.connection.sendall(answer)


@cases(("more", "state"), [(0, "delivered"), (1, "pending")])
@cases("tls", [False, True])
def test_at_most_64_kib_of_an_answer_are_read(deliver, receiver, secure_receiver, trust, delivery, tls, more, state):
    count, rest = divmod(RECEIVED_BYTES - len(FINAL), len(INTERIM))
    padding = INTERIM[:-4] + b" " * rest + b"\r\n\r\n"
    answer = INTERIM * (count - 1 + more) + padding + FINAL
    assert (len(answer) == RECEIVED_BYTES) is (more == 0)
    if tls:
        answer = answer[len(INTERIM) * (0 if more else 3) :]  # The overhead of TLS counts as well.
    for each in (receiver, secure_receiver):
        each.answer = lambda handler: pour(handler, answer)
    deliver(f"https://localhost:{secure_receiver.port}" if tls else receiver.url)
    assert delivery()["state"] == state


# TLS


@pytest.mark.parametrize(
    ("host", "trusted", "error"),
    [
        ("localhost", True, None),
        ("localhost", False, "TLS: self-signed certificate"),
        ("127.0.0.1", True, "TLS: IP address mismatch, certificate is not valid for '127.0.0.1'."),
    ],
)
def test_a_certificate_must_be_trusted_and_match_the_host(
    deliver, secure_receiver, request, delivery, host, trusted, error
):
    if trusted:
        request.getfixturevalue("trust")
    deliver(f"https://{host}:{secure_receiver.port}")
    assert (delivery().get("last_error"), len(secure_receiver.messages)) == (error, (error is None))


# Addresses

LOOPBACK = [
    "127.0.0.1", "127.255.0.9", "127.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "017700000001", "0",
    "0.0.0.0", "::1", "::", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1", "::ffff:7f00:1", "::127.0.0.1", "64:ff9b::7f00:1",
    "2002:7f00:1::", "localhost", "LocalHost", "１２７.0.0.1",
    "LOCALHOST.", "127.0.0.1.", "127.1.", "localhost。",
]  # fmt: skip
PRIVATE = [
    "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "3232235777", "100.64.0.1", "fc00::1", "fd12:3456::1",
    "::ffff:10.0.0.1", "64:ff9b::10.0.0.1", "198.18.0.1", "192.0.2.1", "2001:db8::1", "192.0.0.9", "fec0::1",
    "64:ff9b:1::808:808", "::ffff:0:8.8.8.8", "5f00::1", "100:0:0:1::1", "3fff::1", "3fff:fff:ffff::1", "192.88.99.1",
    "2001:1::1", "2001:20::1", "2002:808:808::",
]  # fmt: skip
NEVER = [
    # link-local
    "169.254.169.254", "169.254.0.1", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376", "::ffff:169.254.169.254",
    "::ffff:a9fe:a9fe", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::", "2002:a9fe:a9fe::1", "fe80::1", "fe80::1%1",
    "64:ff9b:1::169.254.169.254", "::ffff:0:169.254.169.254",
    # link-local in RFC 6052 formats, below the prefix of RFC 8215 and others
    "64:ff9b:1:a9fe:a9:fe00::", "64:ff9b:1:a9fe:a9:fe00:ffff:ffff", "2001:db8:a9fe:a9fe::", "2001:db8:1a9:fea9:fe::",
    "2001:db8:122:a9fe:a9:fe00::", "2001:db8:122:3a9:fe:a9fe::", "2001:db8:122:344:a9:fea9:fe00::",
    "2001:db8:122:344::a9fe:a9fe",
    # Teredo: the server, and the client with its bits inverted
    "2001:0:a9fe:a9fe::1", "2001:0:4136:e378:8000:63bf:5601:5601",
    # metadata
    "100.100.100.200", "192.0.0.192", "168.63.129.16", "fd00:ec2::254", "fd20:ce::254", "fd00:c1::a9fe:a9fe",
    "fd00:42::42",
    # multicast
    "224.0.0.1", "64:ff9b::224.0.0.1", "ff02::1",
]  # fmt: skip
PUBLIC = ["8.8.8.8", "134744072", "2001:4860:4860::8888", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "3fff:1000::1"]


INVALID = ["a" * 64, "a..b", "ü" * 64, "\0", "a\x7fb"]
IS_PRIVATE = "private or loopback address; only BLOGAPI_WEBHOOK_PRIVATE=true allows"
IS_NEVER_CALLED = "link-local, multicast or metadata address, which is never called"


@cases(
    ("host", "error", "error_if_allowed"),
    *((host, IS_PRIVATE, None) for host in LOOPBACK + PRIVATE),
    *((host, IS_NEVER_CALLED, IS_NEVER_CALLED) for host in NEVER),
    *((host, "not a valid host name", "not a valid host name") for host in INVALID),
    *((host, None, None) for host in PUBLIC),
)
def test_an_address_is_called_if_it_is_public_or_private_ones_are_allowed(host, error, error_if_allowed):
    for private, refused in ((False, error), (True, error_if_allowed)):
        with pytest.raises(AddressError, match=refused) if refused else nullcontext():
            assert addresses_of(host, 80, private)


def test_only_the_allowed_addresses_of_a_name_are_called(monkeypatch):
    addresses = ["127.0.0.1", "8.8.8.8", "169.254.169.254"]
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 80)) for address in addresses]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: found)  # stands in for the system's resolver
    assert addresses_of("name", 80, private=False) == ["8.8.8.8"]
    assert addresses_of("name", 80, private=True) == ["127.0.0.1", "8.8.8.8"]
