"""Call the API of a service: retry requests, and limit and validate the responses."""

import hashlib
import json
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from datetime import UTC
from email.utils import parsedate_to_datetime
from functools import cache, cached_property
from typing import Any, NamedTuple
from urllib.parse import urlencode

import urllib3
from marshmallow import EXCLUDE, ValidationError
from urllib3.exceptions import HTTPError, SSLError

from blogapi.bounded import check_json
from blogapi.config import BASE_URL, is_loopback
from blogapi.documents import INPUT_FIELDS, dump
from blogapi.posts.schemas import PostSchema
from blogapi.wings.images.formats import MAX_IMAGE_BYTES
from blogapi.wings.images.storage import IMAGE_ID
from blogapi.wings.transfer.fetch import deadline
from blogapi.wings.transfer.images import IMAGE_FOLDER, IMAGE_URL

MAX_JSON_BYTES = 12 * 1024**2  # maximum size of a response; a page ends after the post that exceeds 4 MiB
MAX_SECONDS = 900  # time limit on a request, enough for 12 MiB on a slow connection
MAX_ATTEMPTS = 6  # number of attempts if a request gets no response or a 5xx; the last is made after 31 s
MAX_WAIT = 3600  # maximum total wait (in seconds) during a request, for example at the rate limit
MAX_REASON = 500  # maximum length of a message from the service (in characters)
ONE_POST_STATUSES = (400, 403, 412, 413, 415)  # statuses that concern one post; other posts can still be sent
HEADER_NUMBER = re.compile("[0-9]{1,9}")
MAX_PAGE, MAX_POSTS = 1000, 200_000  # maximum number of posts or images on a page, and in a list
MAX_JSON_VALUES, MAX_JSON_DEPTH = 600 * MAX_PAGE, 32  # `params` alone can have 500 values per post
FEW_ON_PAGE = 100  # count a page as at least this many items, so that a list of tiny pages cannot go on forever
MAX_READ_REVISIONS, KEPT_REVISIONS = 100, 50  # how many revisions of a post to read, and how many a service keeps
FEW = 20  # fetch up to this many posts one by one; for more, list all posts
NEXT_LINK = re.compile(r'<[^<>?]*\?([^<>]*)>; rel="next"')
ANY_URL = re.compile("[!-~]{1,400}")
ETAG = re.compile('(W/)?"[!#-~]{1,100}"')
LISTED_FIELDS = ("id", "slug", "status", "created_at", "updated_at", "former_slugs")
SCHEMA, LISTED_SCHEMA = PostSchema(), PostSchema(only=LISTED_FIELDS)

Post = dict[str, Any]  # with its `etag` ("" if unknown), its `fingerprint`, and the base URLs of its `images`
Revision = tuple[str, str, str]  # the number of a version, and when it began and ended


class RemoteError(Exception):
    """The service cannot be used; the message says why."""


class NotSynced(Exception):
    """One file or post cannot be synced, but others can. The message says why."""


class Conflict(NotSynced):
    """A file or a post is left unchanged until the user decides what to keep."""


class ApiResponse(NamedTuple):
    """A response that has been read to its end."""

    status: int
    headers: Any
    data: bytes


def fingerprint(post: Post) -> str:
    """Return a digest of a post's fields. It ignores line endings and image hosts. Scheduled counts as published."""
    fields = {name: post[name] for name in INPUT_FIELDS if post.get(name) not in (None, [], {})}
    fields["content"] = fields["content"].replace("\r\n", "\n")
    fields["status"] = "published" if fields["status"] == "scheduled" else fields["status"]
    data = json.dumps(fields, sort_keys=True).encode()
    if b"/images/" in data:  # This check is faster than the pattern.
        data = IMAGE_URL.sub(rb"images/\1", data)
    return hashlib.sha256(data).hexdigest()[:32]


def images_in(fields: Mapping[str, Any]) -> set[tuple[str, str]]:
    """Return the base URL and the file name of each image in a post."""
    text = dump({**fields})
    matches = IMAGE_URL.finditer(text.encode()) if f"/{IMAGE_FOLDER}/" in text else ()
    return {(match[0].decode().rpartition(f"/{IMAGE_FOLDER}/")[0], match[1].decode()) for match in matches}


def json_in(response: ApiResponse) -> Any:
    """Return the JSON in a response. Raises ValueError."""
    check_json(response.data, MAX_JSON_VALUES, MAX_JSON_DEPTH)
    return json.loads(response.data)


def date_of(response: ApiResponse) -> float:
    """Return the Unix time in the Date header, or 0."""
    with suppress(ValueError, OverflowError):
        date = parsedate_to_datetime(response.headers.get("Date", ""))
        return date.replace(tzinfo=date.tzinfo or UTC).timestamp() if 1970 < date.year < 9999 else 0
    return 0


class Remote:
    """A service and a key for it, for use in the main thread only. `say` prints a line for the user.

    A retried request may arrive twice. Methods raise RemoteError, or NotSynced if only one post is affected.
    """

    def __init__(self, url: str, key: str, say: Callable[[str], None], sleep: Callable[[float], None] = time.sleep):
        if not BASE_URL.fullmatch(url):
            raise RemoteError(f"{url[:80]!r} must be the URL of a service, such as https://blog.example.org")
        if not re.fullmatch("[!-~]+", key):
            raise RemoteError("BLOGAPI_KEY must be a key of the service, such as blog_…")
        if url.startswith("http:") and not is_loopback(url):
            say(f"{url} is not encrypted: others on the network can read the key")
        self.url, self.say, self.sleep = url, say, sleep
        self.now = 0.0  # Unix time by the service's clock; 0 before its first response
        self._headers = {"Authorization": f"Bearer {key}", "User-Agent": "blogapi", "Accept-Encoding": "identity"}
        self._pool = urllib3.PoolManager(timeout=urllib3.Timeout(connect=10, read=30), retries=False)
        self.revisions = cache(self._revisions)

    def _send(
        self,
        method: str,
        path: str,
        body: Any = None,
        also: tuple[int, ...] = (),  # return responses with these error statuses
        max_bytes: int = MAX_JSON_BYTES,
        **headers: str,
    ) -> ApiResponse:
        """Send a request, and retry it if that may help."""
        if body is not None and not isinstance(body, bytes):
            body, headers = dump(body).encode(), headers | {"Content_Type": "application/json"}
        named = self._headers | {name.replace("_", "-"): value for name, value in headers.items()}
        failures = tries = waited = asked = 0
        while True:
            try:
                response = self._attempt(method, path, body, named, max_bytes)
                if response.status < 300 or response.status in also:
                    return response
                reason, after = self._reason(response), response.headers.get("Retry-After", "")
                asked = int(after) if HEADER_NUMBER.fullmatch(after) else 0
                failures += response.status != 429
            except HTTPError as error:
                reason, asked, failures = self._why_no_response(error), 0, failures + 1
            wait = min(max(asked, 2**tries), MAX_WAIT - waited)
            if failures == MAX_ATTEMPTS or not wait:
                raise RemoteError(reason)
            self.say(f"{reason}; trying again in {wait} s")
            self.sleep(wait)
            tries, waited = tries + 1, waited + wait

    def _attempt(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str], max_bytes: int
    ) -> ApiResponse:
        with deadline(MAX_SECONDS, RemoteError(f"{self.url} is taking too long to respond")):
            received = self._pool.request(
                method, f"{self.url}{path}", body=body, headers=headers, redirect=False, preload_content=False
            )
            with received:  # If a response is read to its end, the connection can be reused.
                data = received.read(max_bytes + 1, decode_content=False)
                if len(data) > max_bytes:
                    raise RemoteError(f"a response from {self.url} is too large")
                received.drain_conn()
        response = ApiResponse(received.status, received.headers, data)
        self.now = date_of(response) or time.time()
        return response

    def _why_no_response(self, error: HTTPError) -> str:
        """Return why there was no response. Raises RemoteError if a retry would be pointless."""
        reason = f"{self.url} is not responding: {error}"[:MAX_REASON]
        if not self.now or isinstance(error, SSLError):  # an untrusted certificate, for example
            raise RemoteError(reason) from None
        return reason

    def _reason(self, response: ApiResponse) -> str:
        """Return the message of an error response. Raises NotSynced or RemoteError if a retry would be pointless."""
        try:
            reason = str(json_in(response)["message"])[:MAX_REASON]
        except (ValueError, KeyError, TypeError):
            reason = f"{self.url} returned status {response.status}"
        if response.status == 429:
            return "the rate limit is reached"
        if response.status in ONE_POST_STATUSES:
            raise NotSynced(reason)
        if response.status < 400:
            target = response.headers.get("Location", "")[:200].partition("/v1/")[0]
            raise RemoteError(f"{self.url} redirects to {target}: use that URL")
        if response.status < 500:
            raise RemoteError(reason)
        return reason

    def _parse(self, response: ApiResponse, read: Callable[[Any], Any]) -> Any:
        """Parse the JSON in a response, and convert it with `read`. Raises RemoteError."""
        try:
            return read(json_in(response))
        except (ValueError, KeyError, TypeError, OverflowError):
            raise RemoteError(f"{self.url} is not the URL of a blogapi service (1.2 or newer)") from None

    # Resources of the service

    @cached_property
    def scope(self) -> str:
        """The scope of the key, fetched on first use."""
        return self._parse(self._send("GET", "/v1/key", also=(404,)), lambda key: str(key["scope"]))

    def _pages(self, path: str, options: str = "") -> Iterator[Any]:
        count, query = 0, f"limit={MAX_PAGE}{options}"
        while query:
            response = self._send("GET", f"{path}?{query}", also=(404,))
            page = self._parse(response, list.copy)  # fails unless it is a list
            count, following = count + max(len(page), FEW_ON_PAGE), NEXT_LINK.search(response.headers.get("Link", ""))
            if len(page) > MAX_PAGE or (following and count > MAX_POSTS):
                raise RemoteError(f"the list at {self.url}{path} never ends")
            yield from page
            query = following[1] if following else ""

    def posts(self) -> Iterator[Post]:
        """Yield the LISTED_FIELDS of every post."""
        for post in self._pages("/v1/posts", f"&fields={','.join(LISTED_FIELDS)}"):
            yield self._validate(post, LISTED_SCHEMA)

    def fetch(self, ids: Collection[str]) -> Iterator[Post]:
        if len(ids) <= FEW:
            yield from filter(None, map(self.post, sorted(ids, key=int)))
        else:
            yield from (post for post in map(self._as_post, self._pages("/v1/posts")) if post["id"] in ids)

    def post(self, where: str) -> Post | None:
        """Return a post by its id or `by-slug/…`, or None if it does not exist."""
        response = self._send("GET", f"/v1/posts/{where}", also=(404,))
        return None if response.status == 404 else self._post_in(response)

    def write(self, method: str, where: str, fields: Post, **condition: str) -> Post | None:
        """PUT or PATCH a post. Return it, or None if the condition does not hold."""
        response = self._send(method, f"/v1/posts/{where}", fields, (404, 412), MAX_JSON_BYTES, **condition)
        return None if response.status in (404, 412) else self._post_in(response)

    def delete(self, post_id: str, etag: str) -> bool:
        """Move a post to the trash. Return False if its ETag has changed."""
        return self._send("DELETE", f"/v1/posts/{post_id}", None, (404, 412), If_Match=etag).status != 412

    def _revisions(self, post_id: str) -> list[Revision] | None:
        """Return the earlier versions in a post's history, newest first, or None if the key may not see them."""
        response = self._send("GET", f"/v1/posts/{post_id}/revisions?limit={MAX_READ_REVISIONS}", also=(403, 404))
        if response.status >= 400:
            return None
        return self._parse(
            response,
            lambda rows: [
                (str(int(row["revision"])), str(row["post"]["updated_at"]), str(row["replaced_at"]))
                for row in rows[:MAX_READ_REVISIONS]
            ],
        )

    def trashed(self, post_id: str) -> Post | None:
        """Return a post in the trash, or None if it is not there or the key may not see it."""
        response = self._send("GET", f"/v1/trash/{post_id}", also=(403, 404))
        return None if response.status >= 400 else self._post_in(response)

    def _post_in(self, response: ApiResponse) -> Post:
        etag = response.headers.get("ETag", "")
        return self._as_post(self._parse(response, dict), etag if ETAG.fullmatch(etag) else "")

    def _as_post(self, post: Any, etag: str = "") -> Post:
        post = self._validate(post)
        images = sorted({start for start, _ in images_in(post)})
        return post | {"etag": etag, "fingerprint": fingerprint(post)} | ({"images": images} if images else {})

    def _validate(self, post: Any, schema: PostSchema = SCHEMA) -> Post:
        try:
            return schema.load(dict(post), unknown=EXCLUDE)  # A newer service may send more fields.
        except (ValidationError, TypeError, ValueError) as error:
            raise RemoteError(f"{self.url} sent an invalid post: {error}"[:MAX_REASON]) from None

    def images(self) -> dict[str, str]:
        """Return a dict that maps image ids to URLs."""
        return dict(map(self._image, self._pages("/v1/images")))

    def image(self, path: str) -> bytes | None:
        response = self._send("GET", path, also=(404,), max_bytes=MAX_IMAGE_BYTES)
        return None if response.status == 404 else response.data

    def upload(self, name: str, kind: str, data: bytes) -> str:
        response = self._send("POST", f"/v1/images?{urlencode({'name': name})}", data, Content_Type=kind)
        return self._image(self._parse(response, dict))[1]

    def _image(self, image: Any) -> tuple[str, str]:
        with suppress(TypeError, KeyError):
            if re.fullmatch(IMAGE_ID, image["id"]) and ANY_URL.fullmatch(image["url"]):
                return image["id"], image["url"]
        raise RemoteError(f"{self.url} sent an invalid image")
