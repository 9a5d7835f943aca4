"""The endpoint of a webhook: signed messages are posted to it (Standard Webhooks), and the status of its answer kept.

In a gevent process, whoever imports this must have had it patched before: urllib3 binds parts of ssl at its import.
"""

import base64
import hashlib
import hmac
import http.client
import logging
import socket
import ssl
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import cache
from urllib.parse import unquote_to_bytes

from urllib3.connection import HTTPConnection
from urllib3.exceptions import ConnectTimeoutError, HTTPError, LocationValueError, NewConnectionError
from urllib3.util import Url, parse_url
from urllib3.util.ssltransport import SSLTransport

from blogapi.webhooks.addresses import AddressError, addresses_of

RECEIVED_BYTES = 64 * 1024  # from a receiver at most: header, content, and what TLS adds
FAILURES = (OSError, HTTPError, http.client.HTTPException)

log = logging.getLogger(__name__)


class ShortSocket(socket.socket):
    """A socket that ends after RECEIVED_BYTES, whatever they are, and lets others have a turn before each read.

    A receiver that has always more to say would keep this process busy otherwise.
    """

    left = RECEIVED_BYTES

    def recv(self, size: int, flags: int = 0) -> bytes:
        time.sleep(0)
        data = super().recv(min(size, self.left), flags)
        self.left -= len(data)
        return data

    def recv_into(self, buffer: memoryview, nbytes: int = 0, flags: int = 0) -> int:
        time.sleep(0)
        count = super().recv_into(memoryview(buffer)[: self.left], nbytes, flags)
        self.left -= count
        return count


class FinalResponse(http.client.HTTPResponse):
    """An answer without the interim ones before it (RFC 9110, section 15.2), of which http.client knows 100 only."""

    def _read_status(self) -> tuple[str, int, str]:
        version, status, phrase = super()._read_status()
        return version, 100 if 100 < status < 200 else status, phrase


class Connection(HTTPConnection):
    """A connection to an address, with TLS if there is a `tls_host` to expect there.

    TLS takes its bytes from memory: OpenSSL, reading from a socket, stays in it while there is anything but data.
    """

    response_class = FinalResponse

    def __init__(self, address: str, port: int, seconds: float, tls_host: str | None):
        super().__init__(address, port, timeout=seconds)
        self.tls_host = tls_host

    def connect(self) -> None:
        super().connect()
        self.sock = ShortSocket(fileno=self.sock.detach())
        self.sock.settimeout(self.timeout)
        if self.tls_host:
            self.sock = SSLTransport(self.sock, tls(), self.tls_host)


@dataclass(frozen=True)
class Endpoint:
    """Where a webhook's messages go."""

    url: str
    key: bytes  # that signs the messages
    private: bool  # whether it may be at a private or loopback address
    seconds: int  # that an attempt may take
    # timeout(seconds) raises TimeoutError in its block when they are over
    timeout: Callable[[int], AbstractContextManager]

    def send(self, message_id: str, body: bytes, now: float) -> tuple[int | None, str | None]:
        """Send a message once; return the status of the answer, or what went wrong in its place."""
        deadline = time.monotonic() + self.seconds
        try:
            headers = {
                "Content-Type": "application/json",
                "User-Agent": "blogapi",
                "webhook-id": message_id,
                "webhook-timestamp": str(int(now)),
                "webhook-signature": signature(self.key, message_id, int(now), body),
            }
            with self.timeout(self.seconds):
                status = self.post(headers, body, deadline)
            return status, "redirects are not followed; change the url" if 300 <= status < 400 else None
        except FAILURES as error:  # also what urllib3 makes of a TimeoutError
            return None, self.reason(TimeoutError() if time.monotonic() >= deadline else error)
        except Exception:  # An attempt that came to nothing would be made again at once, and for ever.
            log.exception("unexpected error in sending to a webhook")
            return None, "unexpected error; the log says more"

    def post(self, headers: dict[str, str], body: bytes, deadline: float) -> int:
        """POST, following no redirects; return the status. Raises one of FAILURES."""
        target = parse_url(self.url)
        headers = headers | {"Host": target.netloc, "Connection": "close"}
        if target.auth:
            user, _, password = target.auth.partition(":")
            credentials = unquote_to_bytes(user) + b":" + unquote_to_bytes(password)  # RFC 7617
            headers["Authorization"] = f"Basic {base64.b64encode(credentials).decode()}"
        connection = self.connect(target, deadline)
        try:
            connection.request("POST", target.request_uri, body, headers, preload_content=False, decode_content=False)
            response = connection.getresponse()
            with suppress(Exception):  # The status has come; to read the rest only spares the receiver a reset.
                response.read()
            return response.status
        finally:
            connection.close()

    def connect(self, target: Url, deadline: float) -> Connection:
        """Connect to an address that was checked: to connect by the name would be to look up another one."""
        host = target.host.strip("[]")
        port = target.port or (443 if target.scheme == "https" else 80)
        addresses = addresses_of(host, port, self.private)
        for left, address in zip(range(len(addresses), 0, -1), addresses, strict=True):
            seconds = max(0.1, (deadline - time.monotonic()) / left)  # Where nobody answers, the others have time left.
            connection = Connection(address, port, seconds, host.rstrip(".") if target.scheme == "https" else None)
            try:
                connection.connect()
                connection.timeout = self.seconds
                return connection
            except (ConnectTimeoutError, TimeoutError) as error:  # or it was refused
                connection.close()
                failure = error
                if time.monotonic() >= deadline:
                    break
            except BaseException:
                connection.close()
                raise
        raise failure

    def reason(self, error: Exception) -> str:
        """Say to a person what went wrong, and nothing of what the receiver sent."""
        if isinstance(error, AddressError | LocationValueError):
            return f"url: {error}"
        if isinstance(error, socket.gaierror):
            return f"url: the host cannot be found: {error.strerror}"
        if isinstance(error, NewConnectionError):
            return f"cannot connect: {getattr(error.__cause__, 'strerror', None) or 'unreachable'}"
        if isinstance(error, TimeoutError | ConnectTimeoutError):
            return f"no answer within {self.seconds} s"
        if isinstance(error, ssl.SSLError):
            return f"TLS: {getattr(error, 'verify_message', None) or str(error.reason).replace('_', ' ').lower()}"
        return "the connection broke off, or the answer was none in HTTP"


@cache
def tls() -> ssl.SSLContext:
    """Return what is asked of receivers with https: a certificate for their host that this system trusts."""
    return ssl.create_default_context()


def signing_key(secret: str | None) -> bytes:
    """Return the key that a webhook's secret stands for; raise ValueError if it is damaged."""
    key = base64.b64decode((secret or "").removeprefix("whsec_"), validate=True)
    if not key:
        raise ValueError("no secret")
    return key


def signature(key: bytes, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the signature of a message (Standard Webhooks, symmetric, version 1)."""
    signed = b"%b.%d.%b" % (message_id.encode(), timestamp, body)
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
