"""An HTTP client for another service's API: it retries requests, and bounds what a broken or hostile service can do."""

import json
import math
import re
import time
from collections.abc import Callable
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

import urllib3
from urllib3.exceptions import HTTPError, SSLError

from blogapi.bounded import check_json
from blogapi.config import BASE_URL, is_loopback
from blogapi.documents import dump
from blogapi.wings.transfer.fetch import deadline

MAX_JSON_BYTES = 12 * 1024**2  # a page ends after the post that brings it past 4 MiB
MAX_VALUES, MAX_DEPTH = 750_000, 100  # limits for a response; parsed, each value takes up to 200 bytes
READ_BYTES = 64 * 1024
MAX_SECONDS = 60  # for a request, and for all pages of a list, unless their bytes keep the pace
PACE = 16 * 1024  # bytes a second
MAX_ATTEMPTS = 6  # attempts for a request that gets no answer or a 5xx; the last is 31 s after the first
MAX_WAIT = 3600  # seconds between the first and the last attempt, if each is answered with 429
MAX_REASON = 500  # characters of a message from the service
OF_ONE_POST = (400, 403, 412, 413, 415)  # errors that concern one post; others can still be sent
HEADER_NUMBER = re.compile("[0-9]{1,9}")


class RemoteError(Exception):
    """The service cannot be used; the message says why."""


class NotSynced(Exception):
    """A file or a post stays as it is, because something failed; others can be synced. The message says why."""


class Conflict(NotSynced):
    """A file or a post stays as it is until the user decides."""


class ApiResponse(NamedTuple):
    """A response, read to its end."""

    status: int
    headers: Any
    data: bytes


def parse(data: bytes) -> Any:
    """Parse JSON. Raises ValueError, also if the result could need more than 150 MB."""
    check_json(data, MAX_VALUES, MAX_DEPTH)
    return json.loads(data)


def number_in(answer: ApiResponse, header: str) -> int:
    """Return the number in a header, or 0."""
    text = answer.headers.get(header, "")
    return int(text) if HEADER_NUMBER.fullmatch(text) else 0


def date_of(answer: ApiResponse) -> float:
    """Return the Unix time in the header Date, or 0."""
    try:
        date = parsedate_to_datetime(answer.headers.get("Date", ""))
    except (ValueError, OverflowError):
        return 0
    return date.replace(tzinfo=date.tzinfo or UTC).timestamp() if 1970 < date.year < 9999 else 0


class ApiClient:
    """A service and a key for it. `say` prints a line for the user. It works in the main thread only."""

    def __init__(
        self,
        address: str,
        key: str,
        say: Callable[[str], None],
        sleep: Callable[[float], None] = time.sleep,
        max_seconds: float = MAX_SECONDS,
    ):
        if not BASE_URL.fullmatch(address):
            raise RemoteError(f"{address[:80]!r} must be the address of a service, such as https://blog.example.org")
        if not re.fullmatch("[!-~]+", key):
            raise RemoteError("BLOGAPI_KEY must be a key of the service, such as blog_…")
        if address.startswith("http:") and not is_loopback(address):
            say(f"{address} is not encrypted: others on the network can read the key")
        self.address, self.say, self.sleep, self.max_seconds = address, say, sleep, max_seconds
        self.now = 0.0  # Unix time by the clock of the service; 0 before its first answer
        self.limit = self.remaining = 0  # requests a minute, and how many of them remain
        self.seconds = 0.0  # the time that all requests took
        self._headers = {"Authorization": f"Bearer {key}", "User-Agent": "blogapi", "Accept-Encoding": "identity"}
        self._pool = urllib3.PoolManager(timeout=urllib3.Timeout(connect=10, read=30), retries=False)

    def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        also: tuple[int, ...] = (),  # statuses to return rather than raise
        max_bytes: int = MAX_JSON_BYTES,
        **headers: str,
    ) -> ApiResponse:
        """Send a request, and retry it where that may help, so it can arrive twice. Raises NotSynced, RemoteError."""
        if body is not None and not isinstance(body, bytes):
            body, headers = dump(body).encode(), headers | {"Content_Type": "application/json"}
        named = self._headers | {name.replace("_", "-"): value for name, value in headers.items()}
        failures = tries = waited = asked = 0
        while True:
            try:
                answer = self._attempt(method, path, body, named, max_bytes)
                if answer.status < 300 or answer.status in also:
                    return answer
                reason, asked = self._reason(answer), number_in(answer, "Retry-After")
                failures += answer.status != 429
            except HTTPError as error:
                reason, asked, failures = self._no_answer(error), 0, failures + 1
            wait = min(max(asked, 2**tries), MAX_WAIT - waited)
            if failures == MAX_ATTEMPTS or not wait:
                raise RemoteError(reason)
            self.say(f"{reason}; trying again in {wait} s")
            self.sleep(wait)
            tries, waited = tries + 1, waited + wait

    def _attempt(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str], max_bytes: int
    ) -> ApiResponse:
        url, data, begun = f"{self.address}{path}", bytearray(), time.monotonic()
        seconds = self.max_seconds + len(body or b"") / PACE
        with deadline(seconds, RemoteError(f"{self.address} takes too long to answer")) as set_to:
            response = self._pool.request(
                method, url, body=body, headers=headers, redirect=False, preload_content=False
            )
            with response:  # A connection is reused once its response was read to the end.
                while piece := response.read(READ_BYTES, decode_content=False):
                    data += piece
                    set_to(seconds + len(data) / PACE)
                    if len(data) > max_bytes:
                        raise RemoteError(f"a response of {self.address} is too large")
        self.seconds += time.monotonic() - begun
        answer = ApiResponse(response.status, response.headers, bytes(data))
        self.limit, self.remaining = (number_in(answer, f"X-RateLimit-{name}") for name in ("Limit", "Remaining"))
        self.now = date_of(answer) or time.time()
        return answer

    def _no_answer(self, error: HTTPError) -> str:
        """Return why there is no answer. Raises RemoteError if a retry is pointless."""
        reason = f"{self.address} does not answer: {error}"[:MAX_REASON]
        if not self.now or isinstance(error, SSLError):  # an untrusted certificate, for example
            raise RemoteError(reason) from None
        return reason

    def _reason(self, answer: ApiResponse) -> str:
        """Return the message of an error. Raises NotSynced or RemoteError if a retry is pointless."""
        try:
            reason = str(parse(answer.data)["message"])[:MAX_REASON]
        except (ValueError, KeyError, TypeError):
            reason = f"{self.address} answers {answer.status}"
        if answer.status == 429:
            return "the rate limit is reached"
        if answer.status in OF_ONE_POST:
            raise NotSynced(reason)
        if answer.status < 400:
            target = answer.headers.get("Location", "")[:200].partition("/v1/")[0]
            raise RemoteError(f"{self.address} redirects to {target}: use that address")
        if answer.status < 500:
            raise RemoteError(reason)
        return reason

    def announce(self, requests: int) -> None:
        """Say how long these requests will take if the quota of this minute is not enough."""
        if self.limit and requests > self.remaining:
            minutes = math.ceil((requests - self.remaining) / self.limit)
            self.say(f"{requests} requests, at {self.limit} a minute: about {minutes} minute{'s' * (minutes > 1)}")

    def parsed(self, answer: ApiResponse, kind: type) -> Any:
        """Return the JSON in a response. Raises RemoteError."""
        try:
            value = parse(answer.data)
        except ValueError:
            value = None
        if not isinstance(value, kind):
            raise self.not_blogapi()
        return value

    def not_blogapi(self) -> RemoteError:
        """Return the error for the address of another program."""
        return RemoteError(f"{self.address} is not the address of blogapi 1.2 or newer")
