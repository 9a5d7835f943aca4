"""A client of another service's API, which retries requests and validates responses."""

import json
import math
import re
import time
from collections.abc import Callable, Iterator
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple
from urllib.parse import urlencode

import urllib3
from marshmallow import EXCLUDE, ValidationError
from urllib3.exceptions import HTTPError, SSLError

from blogapi.config import BASE_URL, is_loopback
from blogapi.documents import dump
from blogapi.posts.schemas import PostSchema

MAX_ANSWER_BYTES = 32 * 1024**2  # a page ends after the post that brings it past 4 MiB
PIECE_BYTES = 64 * 1024
MAX_POSTS = 1_000_000
TRIES = 6  # attempts for a request that gets no answer or a 5xx; the last is 31 s after the first
MAX_WAIT = 3600  # seconds; a longer Retry-After is cut to this
MAX_REASON = 500  # characters of a message from the service
OF_ONE_POST = (400, 403, 412, 413, 415)  # errors that concern one post; others can still be sent
NEXT = re.compile(r'<[^<>?]*\?([^<>]*)>; rel="next"')
NUMBER = re.compile("[0-9]{1,9}")
LISTED = ("id", "slug", "status", "created_at", "updated_at")
SCHEMAS = {"": PostSchema(), ",".join(LISTED): PostSchema(only=LISTED)}  # by the `fields` of a query

Post = dict[str, Any]


class RemoteError(Exception):
    """The service cannot be used; the message says why."""


class Left(Exception):
    """A file or a post is left as it is. The arguments are "conflict" or "failed", and the reason."""


class Answer(NamedTuple):
    """A response, read to its end."""

    status: int
    headers: Any
    data: bytes


class Remote:
    """A service and a key for it. `say` prints a line for the user."""

    def __init__(self, address: str, key: str, say: Callable[[str], None]):
        if not BASE_URL.fullmatch(address):
            raise RemoteError(f"{address[:80]!r} must be the address of a service, such as https://blog.example.org")
        if not re.fullmatch("[!-~]+", key):
            raise RemoteError("BLOGAPI_KEY must be a key of the service, such as blog_…")
        if address.startswith("http:") and not is_loopback(address):
            say(f"{address} is not encrypted: others on the network can read the key")
        self.address, self.say = address, say
        self.now = 0.0  # Unix time by the clock of the service; 0 before its first answer
        self.limit = self.remaining = 0  # requests a minute, and how many of them remain
        self._headers = {"Authorization": f"Bearer {key}", "User-Agent": "blogapi", "Accept-Encoding": "identity"}
        self._pool = urllib3.PoolManager(timeout=urllib3.Timeout(connect=10, read=60), retries=False)

    def send(self, method: str, path: str, body: Any = None, also: tuple[int, ...] = (), **headers: str) -> Answer:
        """Send a request, and retry it where that may help, so it can arrive twice. Raises Left, RemoteError.

        Statuses in `also` are not errors.
        """
        if body is not None and not isinstance(body, bytes):
            body, headers = dump(body).encode(), headers | {"Content_Type": "application/json"}
        named = self._headers | {name.replace("_", "-"): value for name, value in headers.items()}
        failures = 0
        while failures < TRIES:
            wait = 2**failures
            try:
                answer = self._attempt(method, path, body, named)
                if answer.status < 300 or answer.status in also:
                    return answer
                reason = self._reason(answer)
                asked = answer.headers.get("Retry-After", "")
                wait = min(int(asked), MAX_WAIT) if NUMBER.fullmatch(asked) else wait
                failures += answer.status != 429
            except HTTPError as error:
                reason = f"{self.address} does not answer: {error}"
                if not self.now or isinstance(error, SSLError):  # an untrusted certificate, for example
                    raise RemoteError(reason) from None
                failures += 1
            if failures < TRIES:
                self.say(f"{reason}; trying again in {wait} s")
                time.sleep(wait)
        raise RemoteError(reason)

    def _attempt(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Answer:
        url, data = f"{self.address}{path}", bytearray()
        response = self._pool.request(method, url, body=body, headers=headers, redirect=False, preload_content=False)
        with response:  # A connection is reused once its response was read to the end.
            while piece := response.read(PIECE_BYTES, decode_content=False):
                data += piece
                if len(data) > MAX_ANSWER_BYTES:
                    raise RemoteError(f"a response of {self.address} is too large")
        numbers = (response.headers.get(f"X-RateLimit-{name}", "") for name in ("Limit", "Remaining"))
        self.limit, self.remaining = (int(text) if NUMBER.fullmatch(text) else 0 for text in numbers)
        try:
            self.now = parsedate_to_datetime(response.headers["Date"]).timestamp()
        except (KeyError, ValueError):
            self.now = time.time()
        return Answer(response.status, response.headers, bytes(data))

    def _reason(self, answer: Answer) -> str:
        """Return the message of an error. Raises Left or RemoteError if a retry is pointless."""
        try:
            reason = str(json.loads(answer.data)["message"])[:MAX_REASON]
        except (ValueError, KeyError, TypeError, RecursionError):
            reason = f"{self.address} answers {answer.status}"
        if answer.status == 429:
            return "the rate limit is reached"
        if answer.status in OF_ONE_POST:
            raise Left("failed", reason)
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

    def scope(self) -> str:
        """Return what the key may do."""
        found = self.parsed(self.send("GET", "/v1/key", also=(404,)), dict)
        if "scope" not in found:
            raise self._is_other()
        return str(found["scope"])

    def parsed(self, answer: Answer, kind: type) -> Any:
        """Return the JSON in a response. Raises RemoteError."""
        try:
            value = json.loads(answer.data)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, kind):
            raise self._is_other()
        return value

    def _is_other(self) -> RemoteError:
        return RemoteError(f"{self.address} is not the address of blogapi 1.2 or newer")

    def _pages(self, path: str, query: str) -> Iterator[Any]:
        count = 0
        while query:
            answer = self.send("GET", f"{path}?{query}")
            yield from (page := self.parsed(answer, list))
            count += len(page)
            following = NEXT.search(answer.headers.get("Link", ""))
            if following and (not page or count > MAX_POSTS):
                raise RemoteError(f"the list at {self.address}{path} never ends")
            query = following[1] if following else ""

    def posts(self, fields: str = "") -> Iterator[Post]:
        """Yield all posts, with all fields or those of a key of SCHEMAS."""
        for post in self._pages("/v1/posts", f"limit=1000&fields={fields}" if fields else "limit=1000"):
            yield self._checked(post, fields)

    def post(self, where: str) -> tuple[Post, str] | None:
        """Return a post with its ETag, by its id or `by-slug/…`; None if it does not exist."""
        answer = self.send("GET", f"/v1/posts/{where}", also=(404,))
        return None if answer.status == 404 else self.post_in(answer)

    def post_in(self, answer: Answer) -> tuple[Post, str]:
        """Return the post in a response, with its ETag."""
        return self._checked(self.parsed(answer, dict)), answer.headers.get("ETag", "")

    def _checked(self, post: Any, fields: str = "") -> Post:
        try:
            return SCHEMAS[fields].load(dict(post), unknown=EXCLUDE)  # A newer version may have more fields.
        except (ValidationError, TypeError, ValueError) as error:
            raise RemoteError(f"{self.address} sent an invalid post: {error}"[:MAX_REASON]) from None

    def images(self) -> dict[str, str]:
        """Return the addresses of all images by id."""
        return dict(map(self._image, self._pages("/v1/images", "limit=1000")))

    def upload(self, name: str, kind: str, data: bytes) -> str:
        """Upload an image; return its address."""
        answer = self.send("POST", f"/v1/images?{urlencode({'name': name})}", data, Content_Type=kind)
        return self._image(self.parsed(answer, dict))[1]

    def _image(self, image: Any) -> tuple[str, str]:
        try:
            return str(image["id"]), str(image["url"])
        except (TypeError, KeyError):
            raise RemoteError(f"{self.address} sent an invalid image") from None
