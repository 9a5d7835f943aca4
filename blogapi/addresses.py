"""Which addresses webhooks may go to: none that only this machine or its network can reach, unless that is allowed."""

import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

# A cloud's metadata, beside the link-local 169.254.169.254: Alibaba's, and Amazon's by IPv6.
METADATA = (ip_address("100.100.100.200"), ip_address("fd00:ec2::254"))
# IPv6 addresses that stand for the IPv4 address in their last 32 bits (RFC 6052, RFC 4291)
TRANSLATED = (ip_network("64:ff9b::/96"), ip_network("::/96"))


class AddressError(OSError):
    """There is no address that may be called; says why to a person."""


def addresses_of(host: str, port: int, private: bool) -> list[str]:
    """Return the addresses of `host` that may be called, in the resolver's order.

    Raises AddressError if there is none, OSError if the host cannot be found. What is checked is what the resolver
    makes of every spelling (127.1, 0x7f000001), and what is to be connected to: a second look-up may say otherwise.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise AddressError("no valid name of a host") from None
    refusals = {address[0]: refusal(address[0], private) for *_, address in found}
    allowed = [address for address, reason in refusals.items() if reason is None]
    if not allowed:
        raise AddressError("; ".join(filter(None, refusals.values())))
    return allowed


def refusal(text: str, private: bool) -> str | None:
    """Return why an address must not be called, None if it may."""
    meant = meanings(ip_address(text))
    if any(each.is_link_local or each.is_multicast or each in METADATA for each in meant):
        return f"{text} is a link-local, multicast or metadata address, which is never called"
    if not private and not all(each.is_global for each in meant):
        return f"{text} is a private or loopback address; only BLOGAPI_WEBHOOK_PRIVATE=true allows these"
    return None


def meanings(address: IPv4Address | IPv6Address) -> list[IPv4Address | IPv6Address]:
    """Return the address, and the IPv4 address that it stands for."""
    if address.version == 4:
        return [address]
    if address.ipv4_mapped:
        return [address.ipv4_mapped]
    if address.sixtofour:
        return [address, address.sixtofour]
    if any(address in network for network in TRANSLATED):
        return [address, ip_address(int(address) & 0xFFFFFFFF)]
    return [address]
