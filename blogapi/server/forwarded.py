"""Who a request comes from, where trusted proxies pass it on."""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address

from blogapi.config import Networks

MAX_PROXIES = 16  # in a row
# An address, and perhaps a port: what proxies write
HOP = re.compile(r"\[([0-9A-Fa-f:.]+)\](?::[0-9]{1,5})?|([0-9.]+)(?::[0-9]{1,5})?|([0-9A-Fa-f:.]+)", re.ASCII)


def client_address(peer: str, forwarded_for: str, trusted: Networks) -> str:
    """Return the last address of X-Forwarded-For that is not of a trusted proxy, `peer` where that is none itself.

    What stands before it, or before what is malformed, anybody may have written.
    """
    client = peer
    hops = forwarded_for.rsplit(",", MAX_PROXIES)
    address = parse(peer.partition("%")[0])
    while address and any(address in network for network in trusted):
        address = parse(hops.pop().strip()) if hops else None
        client = str(address or client)
    return client


def parse(hop: str) -> IPv4Address | IPv6Address | None:
    """Return the address of a hop, None if it is malformed; an IPv4 address that is written in IPv6 is an IPv4 one."""
    match = HOP.fullmatch(hop)
    try:
        address = ip_address(match[match.lastindex]) if match else None
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address
