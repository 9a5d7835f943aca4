"""Which addresses webhooks may go to: none that only this machine or its network can reach, unless that is allowed."""

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

# Where clouds have their metadata, beside the link-local 169.254.169.254: Alibaba, Oracle and Azure; by IPv6 Amazon,
# Google, Oracle and Scaleway.
METADATA = [
    ip_address(address)
    for address in (
        "100.100.100.200",
        "192.0.0.192",
        "168.63.129.16",
        "fd00:ec2::254",
        "fd20:ce::254",
        "fd00:c1::a9fe:a9fe",
        "fd00:42::42",
    )
]
# Not public, but global to ipaddress in some of Python 3.11 to 3.13 at least (IANA's special-purpose registries, 2025).
NOT_PUBLIC = [
    ip_network("192.0.0.0/24"),  # protocol assignments (RFC 6890)
    ip_network("192.88.99.0/24"),  # relays of 6to4, deprecated (RFC 7526)
    ip_network("2001::/23"),  # protocol assignments, Teredo among them (RFC 2928)
    ip_network("2002::/16"),  # 6to4, deprecated (RFC 7526)
    ip_network("3fff::/20"),  # documentation (RFC 9637)
]
GLOBAL_UNICAST = ip_network("2000::/3")  # what IANA has given out of IPv6
TRANSLATED = ip_network("64:ff9b::/96")  # IPv4 addresses, reached through NAT64 (RFC 6052)


class AddressError(OSError):
    """There is no address that may be called; says why to a person."""


def addresses_of(host: str, port: int, private: bool) -> list[str]:
    """Return the addresses of `host` that may be called, in the resolver's order.

    Raises AddressError if there is none, OSError if the host cannot be found. What is checked is what the resolver
    makes of every spelling (127.1, 0x7f000001), and what is to be connected to: a second look-up may say otherwise.
    """
    try:
        host.encode("idna")  # what getaddrinfo does; but under gevent its failure would be in the log, too
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise AddressError("no valid name of a host") from None
    refusals = {address[0]: refusal(address[0], private) for *_, address in found}
    allowed = [address for address, reason in refusals.items() if reason is None]
    if not allowed:
        raise AddressError(next(iter(refusals.values())))
    return allowed


def refusal(text: str, private: bool) -> str | None:
    """Return why an address must not be called, None if it may."""
    meant = meanings(ip_address(text))
    if any(each.is_link_local or each.is_multicast or each in METADATA for each in meant):
        return f"{text} is a link-local, multicast or metadata address, which is never called"
    if not private and not all(map(is_public, meant)):
        return f"{text} is a private or loopback address; only BLOGAPI_WEBHOOK_PRIVATE=true allows these"
    return None


def meanings(address: IPv4Address | IPv6Address) -> list[IPv4Address | IPv6Address]:
    """Return the address, and the IPv4 address that it stands for or may be translated to."""
    if address.version == 4:
        return [address]
    if address.ipv4_mapped:
        return [address.ipv4_mapped]
    if address in GLOBAL_UNICAST:
        return [address, address.sixtofour] if address.sixtofour else [address]
    return [address, ip_address(int(address) & 0xFFFFFFFF)]


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Return whether an address is one that the whole Internet can reach."""
    if not address.is_global or any(address in network for network in NOT_PUBLIC):
        return False
    return address.version == 4 or address in GLOBAL_UNICAST or address in TRANSLATED
