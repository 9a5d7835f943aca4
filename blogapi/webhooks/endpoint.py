"""Check the addresses of a webhook's endpoint, and post signed messages to it (Standard Webhooks).

With gevent, import this module only after monkey-patching, because urllib3 binds parts of ssl when it is imported.
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
from blogapi.webhooks.storage import DISPATCH_BODY, EVENT_BODY

RECEIVED_BYTES = 64 * 1024  # limit on a receiver's response, including its headers and the TLS overhead
REDIRECTS = (301, 302, 303, 307, 308)
# Cloud metadata services, apart from the link-local 169.254.169.254: first those of Alibaba, Oracle and Azure, then the
# IPv6 ones of Amazon, Google, Oracle and Scaleway
METADATA = [*map(ip_address, ("100.100.100.200", "192.0.0.192", "168.63.129.16"))]
METADATA += map(ip_address, ("fd00:ec2::254", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "fd00:42::42"))
# Networks that some versions of Python consider global, but IANA's special-purpose registries (2025) do not
NOT_PUBLIC = [
    ip_network("192.0.0.0/24"),  # protocol assignments (RFC 6890)
    ip_network("192.88.99.0/24"),  # 6to4 relays, deprecated (RFC 7526)
    ip_network("2001::/23"),  # protocol assignments, including Teredo (RFC 2928)
    ip_network("2002::/16"),  # 6to4, deprecated (RFC 7526)
    ip_network("3fff::/20"),  # documentation (RFC 9637)
]
GLOBAL_UNICAST = ip_network("2000::/3")  # allocated by IANA
TRANSLATED = ip_network("64:ff9b::/96")  # public IPv4 addresses, reached through NAT64 (RFC 6052)
# How many bits precede an embedded IPv4 address: 16 for 6to4 (RFC 3056), the others for NAT64 (RFC 6052). NAT64 with a
# 96-bit prefix is handled separately, because the address then occupies the lowest 32 bits.
PREFIXES = (16, 32, 40, 48, 56, 64)
LOW_32, LOW_56 = (1 << 32) - 1, (1 << 56) - 1

tls = cache(ssl.create_default_context)  # trusts the system's certificates
log = logging.getLogger(__name__)


class AddressError(OSError):
    """Webhooks must not call any of a host's addresses. The message says why."""


class AttemptResult(NamedTuple):
    """The result of an attempt to deliver a message: the status of the response, or an error."""

    status: int | None = None
    error: str | None = None
    retry_after: int = 0  # in seconds


class ShortSocket(socket.socket):
    """A socket that returns at most `left` bytes, because a receiver might send forever."""

    left = RECEIVED_BYTES

    def recv(self, size: int, flags: int = 0) -> bytes:
        data = bytearray(size)
        return bytes(data[: self.recv_into(memoryview(data))])

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        time.sleep(0)  # lets other greenlets or threads run
        count = super().recv_into(memoryview(buffer)[: self.left], nbytes, flags)
        self.left -= count
        return count


class FinalResponse(http.client.HTTPResponse):
    """A response parser that skips all interim responses (RFC 9110, section 15.2). http.client skips only 100."""

    def _read_status(self) -> tuple[str, int, str]:
        version, status, phrase = cast(Any, super())._read_status()
        return version, 100 if 100 < status < 200 else status, phrase


@dataclass(frozen=True)
class Endpoint:
    """A webhook's URL, the secret that signs its messages, and the options for sending them."""

    url: str
    secret: str
    private: bool  # whether it may have a private or loopback address
    seconds: int  # time limit on an attempt
    timeout: Callable[[int], AbstractContextManager]  # raises TimeoutError if a `with` block takes too many seconds
    headers: str = "{}"  # the owner's headers, as a JSON object
    body_format: str = EVENT_BODY

    def send(self, message_id: str, body: bytes | None, now: float) -> AttemptResult:
        """Try once to send a message."""
        deadline = time.monotonic() + self.seconds
        try:
            assert body is not None  # always set, unless the stored event is corrupt
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
        except Exception:  # Unless a result is recorded, the sender repeats the attempt forever without a pause.
            log.exception("unexpected error while sending to a webhook")
            return AttemptResult(error="unexpected error; see the log")

    def post(self, headers: dict[str, str], body: bytes, deadline: float) -> tuple[int, str]:
        """Send a POST request without following redirects. Return the status and the Retry-After header."""
        target = parse_url(self.url)
        assert target.netloc  # always set, unless the stored URL is corrupt
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


def connect(target: Url, private: bool, seconds: int, deadline: float, limit: int = RECEIVED_BYTES) -> HTTPConnection:
    """Connect to an address of the target's host before the deadline.

    The connection is made to the address that was checked. Connecting by name would look up the name again, and might
    get another address. The connection receives at most `limit` bytes. Each read can take up to `seconds`.
    """
    assert target.host  # always set, unless the stored URL is corrupt
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
            connection.sock.left = limit
            connection.sock.settimeout(share)
            if tls_host:  # An ssl.SSLSocket would keep reading while a receiver sends records without data.
                connection.sock = SSLTransport(connection.sock, tls(), tls_host)
            connection.timeout = seconds
            return connection
        except BaseException as error:
            connection.close()
            has_another = addresses and time.monotonic() < deadline
            # A refused connection also raises a ConnectTimeoutError.
            if not has_another or not isinstance(error, ConnectTimeoutError | TimeoutError):
                raise


def reason_of(error: Exception, seconds: int) -> str:
    """Return why an attempt failed. The reason contains no text from the receiver."""
    if isinstance(error, AddressError | LocationValueError):
        return f"url: {error}"
    if isinstance(error, socket.gaierror):
        return f"url: the host cannot be found: {error.strerror}"
    if isinstance(error, NewConnectionError):
        return f"cannot connect: {getattr(error.__cause__, 'strerror', None) or 'unreachable'}"
    if isinstance(error, TimeoutError | ConnectTimeoutError):
        return f"no response within {seconds} s"
    if isinstance(error, ssl.SSLError):
        return f"TLS: {getattr(error, 'verify_message', None) or str(error.reason).replace('_', ' ').lower()}"
    return "the connection was lost, or the response was not HTTP"


def seconds_until(retry_after: str, now: float) -> int:
    """Convert a Retry-After header (RFC 9110, section 10.2.3) to seconds from now, or 0 if it is invalid."""
    if retry_after.isdecimal():
        return int(retry_after[:9])
    try:
        date = parsedate_to_datetime(retry_after)
        return max(0, math.ceil(date.replace(tzinfo=date.tzinfo or UTC).timestamp() - now))
    except (ValueError, OverflowError):
        return 0


def as_dispatch(body: bytes) -> bytes:
    """Convert an event to the body of a repository_dispatch request to GitHub, which allows only these two names."""
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
    """Return the addresses of a host that webhooks may call, in the resolver's order.

    The host can also be an address in a form such as 127.1 or 0x7f000001. Raises AddressError if webhooks must not call
    any of its addresses, or OSError if the host cannot be found.
    """
    try:
        name = host.encode("idna").decode()  # encoded before getaddrinfo, where gevent would log a failure
        if not name.isprintable():
            raise UnicodeError("control characters")
        # Remove the trailing dot. Otherwise, resolvers would look up IP addresses and localhost in DNS.
        infos = socket.getaddrinfo(name.removesuffix("."), port, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise AddressError("not a valid host name") from None
    refusals = {str(address[0]): refusal(str(address[0]), private) for *_, address in infos}
    allowed = [address for address, reason in refusals.items() if reason is None]
    if not allowed:
        raise AddressError(next(iter(refusals.values())))
    return allowed


def refusal(text: str, private: bool) -> str | None:
    """Return why webhooks must not call an address, or None if they may."""
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
    """Return the IPv4 addresses embedded in an IPv6 address by 6to4, Teredo, or NAT64 with any prefix length."""
    bits = int(address)
    joined = (bits >> 64) << 56 | bits & LOW_56  # without bits 64 to 71, which are never part of an IPv4 address
    words = [bits & LOW_32, *((joined >> (88 - length)) & LOW_32 for length in PREFIXES)]
    return [*map(IPv4Address, words), *(address.teredo or ())]
