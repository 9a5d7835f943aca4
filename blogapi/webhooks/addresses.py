"""The addresses that webhooks may call: public ones only, unless private ones are allowed."""

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

# Metadata of clouds, besides the link-local 169.254.169.254: Alibaba, Oracle and Azure; for IPv6 Amazon, Google, Oracle
# and Scaleway.
METADATA = [*map(ip_address, ("100.100.100.200", "192.0.0.192", "168.63.129.16"))]
METADATA += map(ip_address, ("fd00:ec2::254", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "fd00:42::42"))
# Not public, but global to `ipaddress` in some versions of Python (IANA's special-purpose registries, 2025).
NOT_PUBLIC = [
    ip_network("192.0.0.0/24"),  # protocol assignments (RFC 6890)
    ip_network("192.88.99.0/24"),  # relays of 6to4, deprecated (RFC 7526)
    ip_network("2001::/23"),  # protocol assignments, Teredo among them (RFC 2928)
    ip_network("2002::/16"),  # 6to4, deprecated (RFC 7526)
    ip_network("3fff::/20"),  # documentation (RFC 9637)
]
GLOBAL_UNICAST = ip_network("2000::/3")  # allocated by IANA
TRANSLATED = ip_network("64:ff9b::/96")  # public IPv4 addresses through NAT64 (RFC 6052)
PREFIXES = (16, 32, 40, 48, 56, 64)  # bits before an IPv4 address: 6to4 (RFC 3056), and RFC 6052 but for 96
LOW_32, LOW_56 = (1 << 32) - 1, (1 << 56) - 1


class AddressError(OSError):
    """A host has no address that may be called; the message tells a person why."""


def addresses_of(host: str, port: int, private: bool) -> list[str]:
    """Return the addresses of `host` that may be called, in the resolver's order.

    Raises AddressError if none may be called, OSError if the host cannot be found. The resolver reads every spelling
    (127.1, 0x7f000001). Connect to these addresses: a second look-up could give others.
    """
    try:
        if not host.encode("idna").decode().isprintable():  # getaddrinfo encodes it, too, but gevent logs its failure
            raise UnicodeError("control characters")
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise AddressError("not a valid host name") from None
    refusals = {address[0]: refusal(address[0], private) for *_, address in found}
    allowed = [address for address, reason in refusals.items() if reason is None]
    if not allowed:
        raise AddressError(next(iter(refusals.values())))
    return allowed


def refusal(text: str, private: bool) -> str | None:
    """Return why an address must not be called, or None if it may."""
    address = ip_address(text)
    if address.version == 6 and address.ipv4_mapped:
        address = address.ipv4_mapped
    embedded = embedded_in(address) if address.version == 6 else []
    if address.is_multicast or any(each.is_link_local or each in METADATA for each in (address, *embedded)):
        return f"{text} is a link-local, multicast or metadata address, which is never called"
    if not private and not is_public(address):
        return f"{text} is a private or loopback address; only BLOGAPI_WEBHOOK_PRIVATE=true allows these"
    return None


def embedded_in(address: IPv6Address) -> list[IPv4Address]:
    """Return the IPv4 addresses that an IPv6 address can lead to, by 6to4, Teredo or NAT64 with any prefix."""
    bits = int(address)
    joined = (bits >> 64) << 56 | bits & LOW_56  # without bits 64 to 71, which are never part of it
    found = [bits & LOW_32, *((joined >> (88 - length)) & LOW_32 for length in PREFIXES)]
    return [*map(IPv4Address, found), *(address.teredo or ())]


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Return whether the whole Internet can reach an address."""
    if address in TRANSLATED:
        return is_public(IPv4Address(int(address) & LOW_32))
    if not address.is_global or any(address in network for network in NOT_PUBLIC):
        return False
    return address.version == 4 or address in GLOBAL_UNICAST
