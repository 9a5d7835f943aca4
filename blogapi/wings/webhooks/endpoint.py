"""The endpoint of a webhook: which addresses it may have, and posting signed messages (Standard Webhooks).

With gevent, import this after patching, because urllib3 binds parts of ssl at import.
"""

import base64
import hashlib
import hmac
import http.client
import json
import logging
import math
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any, NamedTuple, cast
from urllib.parse import unquote_to_bytes

from urllib3 import HTTPHeaderDict
from urllib3.connection import HTTPConnection
from urllib3.exceptions import ConnectTimeoutError, HTTPError, LocationValueError, NewConnectionError
from urllib3.util import Url, parse_url
from urllib3.util.ssltransport import SSLTransport

from blogapi.documents import dump
from blogapi.wings.webhooks.storage import DISPATCH_BODY, EVENT_BODY

RECEIVED_BYTES = 64 * 1024  # limit in bytes for a receiver's response: header, content and TLS overhead
REDIRECTS = (301, 302, 303, 307, 308)
# Metadata services of clouds, besides the link-local 169.254.169.254: Alibaba, Oracle and Azure; on IPv6, Amazon,
# Google, Oracle and Scaleway
METADATA = [*map(ip_address, ("100.100.100.200", "192.0.0.192", "168.63.129.16"))]
METADATA += map(ip_address, ("fd00:ec2::254", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "fd00:42::42"))
# Not public, though some versions of Python call them global (IANA's special-purpose registries, 2025)
NOT_PUBLIC = [
    ip_network("192.0.0.0/24"),  # protocol assignments (RFC 6890)
    ip_network("192.88.99.0/24"),  # relays of 6to4, deprecated (RFC 7526)
    ip_network("2001::/23"),  # protocol assignments, Teredo among them (RFC 2928)
    ip_network("2002::/16"),  # 6to4, deprecated (RFC 7526)
    ip_network("3fff::/20"),  # documentation (RFC 9637)
]
GLOBAL_UNICAST = ip_network("2000::/3")  # allocated by IANA
TRANSLATED = ip_network("64:ff9b::/96")  # public IPv4 addresses through NAT64 (RFC 6052)
PREFIXES = (16, 32, 40, 48, 56, 64)  # bits before an embedded IPv4 address: 6to4 (RFC 3056), and RFC 6052 except 96
LOW_32, LOW_56 = (1 << 32) - 1, (1 << 56) - 1

tls = cache(ssl.create_default_context)  # trusts the certificates that the system trusts
log = logging.getLogger(__name__)


class AddressError(OSError):
    """No address of a host may be called. The message says why."""


class AttemptResult(NamedTuple):
    """The result of an attempt: the status of the answer, or an error."""

    status: int | None = None
    error: str | None = None
    retry_after: int = 0  # seconds


class ShortSocket(socket.socket):
    """A socket that ends after `left` bytes and lets others run, because a receiver may never stop sending."""

    left = RECEIVED_BYTES

    def recv(self, size: int, flags: int = 0) -> bytes:
        data = bytearray(size)
        return bytes(data[: self.recv_into(memoryview(data))])

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        time.sleep(0)
        count = super().recv_into(memoryview(buffer)[: self.left], nbytes, flags)
        self.left -= count
        return count


class FinalResponse(http.client.HTTPResponse):
    """A response that skips all interim ones (RFC 9110, section 15.2). http.client skips only 100."""

    def _read_status(self) -> tuple[str, int, str]:
        version, status, phrase = cast(Any, super())._read_status()
        return version, 100 if 100 < status < 200 else status, phrase


@dataclass(frozen=True)
class Endpoint:
    """A webhook's URL, with the secret that signs its messages."""

    url: str
    secret: str
    private: bool  # whether private and loopback addresses are allowed
    seconds: int  # time limit for an attempt
    timeout: Callable[[int], AbstractContextManager]  # raises TimeoutError if a block takes longer than the seconds
    headers: str = "{}"  # JSON; the owner's headers
    body_format: str = EVENT_BODY

    def send(self, message_id: str, body: bytes | None, now: float) -> AttemptResult:
        """Send a message once."""
        deadline = time.monotonic() + self.seconds
        try:
            assert body is not None  # None if the stored event is damaged
            body = as_dispatch(body) if self.body_format == DISPATCH_BODY else body
            headers = {
                "Content-Type": "application/json",
                "User-Agent": "blogapi",
                "webhook-id": message_id,
                "webhook-timestamp": str(int(now)),
                "webhook-signature": signature(self.secret, message_id, int(now), body),
            }
            with self.timeout(self.seconds):
                status, retry_after = self.post(headers, body, deadline)
            error = "redirects are not followed; change the url" if status in REDIRECTS else None
            return AttemptResult(status, error, seconds_until(retry_after, now) if status in (429, 503) else 0)
        except (OSError, HTTPError, http.client.HTTPException) as error:  # urllib3 may wrap a TimeoutError
            cause = TimeoutError() if time.monotonic() >= deadline else error
            return AttemptResult(error=reason_of(cause, self.seconds))
        except Exception:  # Without a result, the sender would repeat the attempt forever, without a pause.
            log.exception("unexpected error in sending to a webhook")
            return AttemptResult(error="unexpected error; the log says more")

    def post(self, headers: dict[str, str], body: bytes, deadline: float) -> tuple[int, str]:
        """POST without following redirects; return the status and Retry-After."""
        target = parse_url(self.url)
        assert target.netloc  # or the stored URL is damaged
        fields = HTTPHeaderDict(headers)  # case-insensitive
        fields.update(json.loads(self.headers))
        fields.update({"Host": target.netloc, "Connection": "close"})
        if target.auth and "Authorization" not in fields:
            credentials = unquote_to_bytes(target.auth if ":" in target.auth else f"{target.auth}:")  # RFC 7617
            fields["Authorization"] = f"Basic {base64.b64encode(credentials).decode()}"
        with closing(connect(target, self.private, self.seconds, deadline)) as connection:
            connection.request("POST", target.request_uri, body, fields, preload_content=False, decode_content=False)
            response = connection.getresponse()
            with suppress(Exception):  # Reading the rest spares the receiver a connection reset.
                response.read()
            return response.status, response.headers.get("Retry-After", "")


def connect(
    target: Url, private: bool, seconds: int, deadline: float, max_bytes: int = RECEIVED_BYTES
) -> HTTPConnection:
    """Connect to a checked address before the deadline; connecting by name would look it up again.

    At most `max_bytes` are received, and each read may take `seconds`.
    """
    assert target.host  # or the stored URL is damaged
    host = target.host.strip("[]")
    tls_host = host.rstrip(".") if target.scheme == "https" else None
    port = target.port or (443 if tls_host else 80)
    addresses = addresses_of(host, port, private)
    while True:
        share = max(0.1, (deadline - time.monotonic()) / len(addresses))  # leaves time for the other addresses
        connection = HTTPConnection(addresses.pop(0), port, timeout=share)
        connection.response_class = FinalResponse
        try:
            connection.connect()
            connection.sock = ShortSocket(fileno=connection.sock.detach())
            connection.sock.left = max_bytes
            connection.sock.settimeout(share)
            if tls_host:  # in memory: on a socket, OpenSSL would read records without data as long as they arrive
                connection.sock = SSLTransport(connection.sock, tls(), tls_host)
            connection.timeout = seconds
            return connection
        except BaseException as error:
            connection.close()
            has_another = addresses and time.monotonic() < deadline
            if not has_another or not isinstance(error, ConnectTimeoutError | TimeoutError):  # includes refusals
                raise


def reason_of(error: Exception, seconds: int) -> str:
    """Return why an attempt failed, without any text from the receiver."""
    if isinstance(error, AddressError | LocationValueError):
        return f"url: {error}"
    if isinstance(error, socket.gaierror):
        return f"url: the host cannot be found: {error.strerror}"
    if isinstance(error, NewConnectionError):
        return f"cannot connect: {getattr(error.__cause__, 'strerror', None) or 'unreachable'}"
    if isinstance(error, TimeoutError | ConnectTimeoutError):
        return f"no answer within {seconds} s"
    if isinstance(error, ssl.SSLError):
        return f"TLS: {getattr(error, 'verify_message', None) or str(error.reason).replace('_', ' ').lower()}"
    return "the connection broke off, or the answer was not HTTP"


def seconds_until(retry_after: str, now: float) -> int:
    """Return the seconds of a Retry-After (RFC 9110, section 10.2.3), or 0 if it is invalid."""
    if retry_after.isdecimal():
        return int(retry_after[:9])
    try:
        date = parsedate_to_datetime(retry_after)
        return max(0, math.ceil(date.replace(tzinfo=date.tzinfo or UTC).timestamp() - now))
    except (ValueError, OverflowError):
        return 0


def as_dispatch(body: bytes) -> bytes:
    """Return an event as the body of GitHub's repository_dispatch, which accepts no other names."""
    event = json.loads(body)
    return dump({"event_type": event.pop("type"), "client_payload": event}).encode()


def signature(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the signature of a message (Standard Webhooks, symmetric, version 1)."""
    key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    if not key:
        raise ValueError("a webhook has no secret")
    signed = b"%b.%d.%b" % (message_id.encode(), timestamp, body)
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


def addresses_of(host: str, port: int, private: bool) -> list[str]:
    """Return the addresses of a host (also such as 127.1 or 0x7f000001) that may be called, in the resolver's order.

    Raises AddressError if none may be called, OSError if the host cannot be found.
    """
    try:
        name = host.encode("idna").decode()  # getaddrinfo would encode it, but gevent logs the failure
        if not name.isprintable():
            raise UnicodeError("control characters")
        # With a trailing dot, resolvers would look up addresses and localhost in DNS.
        infos = socket.getaddrinfo(name.removesuffix("."), port, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise AddressError("not a valid host name") from None
    refusals = {str(address[0]): refusal(str(address[0]), private) for *_, address in infos}
    allowed = [address for address, reason in refusals.items() if reason is None]
    if not allowed:
        raise AddressError(next(iter(refusals.values())))
    return allowed


def refusal(text: str, private: bool) -> str | None:
    """Return why an address must not be called, or None if it may."""
    address = ip_address(text)
    address = getattr(address, "ipv4_mapped", None) or address
    if address in TRANSLATED:
        address = IPv4Address(int(address) & LOW_32)
    embedded = embedded_in(address) if address.version == 6 else []
    if address.is_multicast or any(target.is_link_local or target in METADATA for target in (address, *embedded)):
        return f"{text} is a link-local, multicast or metadata address, which is never called"
    is_public = address.is_global and not any(address in network for network in NOT_PUBLIC)
    if not private and not (is_public and (address.version == 4 or address in GLOBAL_UNICAST)):
        return f"{text} is a private or loopback address; only BLOGAPI_WEBHOOK_PRIVATE=true allows these"
    return None


def embedded_in(address: IPv6Address) -> list[IPv4Address]:
    """Return the IPv4 addresses embedded in an IPv6 address, by 6to4, Teredo or NAT64 with any prefix."""
    bits = int(address)
    joined = (bits >> 64) << 56 | bits & LOW_56  # without bits 64 to 71, which never belong to an IPv4 address
    words = [bits & LOW_32, *((joined >> (88 - length)) & LOW_32 for length in PREFIXES)]
    return [*map(IPv4Address, words), *(address.teredo or ())]
