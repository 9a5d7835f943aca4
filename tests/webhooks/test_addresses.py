"""The addresses that webhooks may call."""

import socket

import pytest

from blogapi.wings.webhooks.endpoint import AddressError, addresses_of
from tests.cases import cases

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


@cases("host", LOOPBACK + PRIVATE)
def test_private_and_loopback_addresses_are_called_only_if_allowed(host):
    with pytest.raises(AddressError, match="private or loopback address; only BLOGAPI_WEBHOOK_PRIVATE=true allows"):
        addresses_of(host, 80, private=False)
    assert addresses_of(host, 80, private=True)


@cases("private", [True, False])
@cases("host", NEVER)
def test_link_local_multicast_and_metadata_addresses_are_never_called(host, private):
    with pytest.raises(AddressError, match="link-local, multicast or metadata address, which is never called"):
        addresses_of(host, 80, private)


@cases("host", PUBLIC)
def test_public_addresses_are_called(host):
    assert len(addresses_of(host, 443, private=False)) == 1


@cases("host", ["a" * 64, "a..b", "ü" * 64, "\0", "a\x7fb"])
def test_an_invalid_host_name_is_refused(host):
    with pytest.raises(AddressError, match="not a valid host name"):
        addresses_of(host, 80, private=False)


def test_only_the_allowed_addresses_of_a_name_are_called(monkeypatch):
    addresses = ["127.0.0.1", "8.8.8.8", "169.254.169.254"]
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 80)) for address in addresses]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: found)  # stands in for the system's resolver
    assert addresses_of("name", 80, private=False) == ["8.8.8.8"]
    assert addresses_of("name", 80, private=True) == ["127.0.0.1", "8.8.8.8"]
