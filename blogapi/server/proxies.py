"""The address of a client behind proxies."""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from blogapi.config import Networks

MAX_PROXIES = 16  # at most this many proxies in a row
# As proxies write it: an address, optionally with a port
HOP = re.compile(r"\[([0-9A-Fa-f:.]+)\](?::[0-9]{1,5})?|([0-9.]+)(?::[0-9]{1,5})?|([0-9A-Fa-f:.]+)", re.ASCII)


def client_address(peer: str, forwarded_for: str, trusted: Networks) -> str:
    """Return the last valid address that is not a trusted proxy; clients can forge the ones before it."""
    client = peer
    hops = forwarded_for.rsplit(",", MAX_PROXIES)
    address = parse_address(peer.partition("%")[0])
    while address and any(address in network for network in trusted):
        address = parse_address(hops.pop().strip()) if hops else None
        client = str(address or client)
    return client


def parse_address(hop: str) -> IPv4Address | IPv6Address | None:
    """Return the address of a hop, or None if it is malformed. A mapped IPv4 address becomes IPv4."""
    match = HOP.fullmatch(hop)
    try:
        address = ip_address(match[match.lastindex]) if match and match.lastindex else None
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def network(address: str) -> str:
    """Return the network of an IPv6 address, its /64, because one client may own all of it; else the address."""
    if ":" not in address:
        return address
    parsed = parse_address(address.partition("%")[0])
    return str(ip_network((parsed, 64), strict=False)) if isinstance(parsed, IPv6Address) else str(parsed)
