"""Fetch the images that imported posts use from other hosts."""

import signal
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from http.client import HTTPException
from io import BytesIO
from urllib.parse import unquote, urljoin

from urllib3.exceptions import HTTPError
from urllib3.util import parse_url

from blogapi.documents import MAX_URL, each_text
from blogapi.webhooks import endpoint
from blogapi.wings.images import storage as images
from blogapi.wings.images.formats import MAX_IMAGE_BYTES
from blogapi.wings.images.storage import PART_BYTES
from blogapi.wings.transfer.content import host_of, with_images
from blogapi.wings.transfer.folder import reason_of
from blogapi.wings.transfer.images import IMAGE_ERRORS, IN_PARAMS, ImageStore, LocalImages
from blogapi.wings.transfer.importer import Checked, checked
from blogapi.wings.transfer.items import Item


@contextmanager
def deadline(seconds: float, late: Exception) -> Iterator[None]:
    """Raise `late` in the main thread if the block takes longer than `seconds`."""

    def end(*_: object) -> None:
        raise late

    # A socket's timeout would not be enough, because it starts again with each byte that arrives.
    before = signal.signal(signal.SIGALRM, end)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds, 1)  # repeats, in case a destructor swallows the exception
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


MAX_FETCHES = 10_000  # an import fetches at most this many images; the next one fetches the rest
MAX_IMPORT_SECONDS = 3600  # time limit on all fetches of an import
SECONDS = 30  # time limit on one image, including redirects
MAX_REDIRECTS = 5
MAX_FAILURES = 3  # A host is skipped after this many failures in a row.
REQUEST_HEADERS = {"User-Agent": "blogapi", "Accept": "image/*", "Accept-Encoding": "identity", "Connection": "close"}


class NotFetched(Exception):
    """An image could not be fetched."""


class Fetcher:
    """Fetches each image on another host once, and stores it. A dry run only counts the images.

    `hosts` counts the images that remain on other hosts. `private` allows private and loopback addresses.
    """

    def __init__(self, store: ImageStore, local: LocalImages, hosts: Counter[str], private: bool):
        self.store, self.hosts, self.private = store, hosts, private
        self.url, self.refused = local.url, local.refused
        self._found: dict[str, str] = {}  # old URL -> new URL; "" if an image was not fetched
        self._failures: defaultdict[str, list[str]] = defaultdict(list)  # host -> reasons for consecutive failures
        self._until = time.monotonic() + MAX_IMPORT_SECONDS
        store.counts.update({"to fetch": 0} if store.dry_run else {"fetched": 0, "not fetched": 0})

    def with_fetched_images(self, post: Checked) -> Checked:
        """Fetch the images of a valid post, and return the post with the new URLs. Raises Unavailable."""
        if not isinstance(post, Item):
            return post
        fields = dict(post.fields)
        fields["content"], _ = with_images(fields["content"], partial(self._new_url, count=1), lambda name, label: "")
        if "cover_image" in fields:
            fields["cover_image"] = self._new_url(fields["cover_image"], count=1)
        if "params" in fields:
            fields["params"] = each_text(fields["params"], self._in_params)
        is_same, post.fields = fields == post.fields, fields
        return post if is_same else checked(post)

    def _in_params(self, value: str) -> str:
        return self._new_url(value) if IN_PARAMS.fullmatch(value) else value

    def _new_url(self, old_url: str, count: int = 0) -> str:
        """Return the new URL of an image on another host, or its old URL if it cannot be fetched."""
        host, url = host_of(old_url), f"https:{old_url}" if old_url.startswith("//") else old_url
        if not host or len(url) > MAX_URL or url.startswith(f"{self.url}/images/"):
            return old_url
        url = url.partition("#")[0]
        if url not in self._found:
            self._found[url] = self._find(url, host)
        self.hosts[host] -= count if self._found[url] else 0
        return self._found[url] or old_url

    def _find(self, url: str, host: str) -> str:
        database, counts = self.store.database, self.store.counts
        if known := images.find_fetched(database, url):
            counts["already stored"] += 1
            return self.url + known.path
        if self.store.dry_run:
            counts["to fetch"] += 1
            return ""
        try:
            if counts["fetched"] + counts["not fetched"] >= MAX_FETCHES or time.monotonic() > self._until:
                raise NotFetched(f"import again to fetch it: fetching stops after {MAX_FETCHES:,} images or an hour")
            if len(reasons := self._failures[host]) >= MAX_FAILURES:
                raise NotFetched(f"its host failed {MAX_FAILURES} times: {reasons[-1]}")
            name = unquote(url.partition("?")[0])
            image = self.store.add(self._download(url, host), name, url)
        except (NotFetched, *IMAGE_ERRORS) as error:
            self.refused[url] = reason_of(error)
            counts["not fetched"] += 1
            return ""
        counts["fetched"] += 1
        return self.url + image.path

    def _download(self, url: str, host: str) -> BytesIO:
        """Download an image. Raises NotFetched."""
        until = time.monotonic() + SECONDS
        try:
            with deadline(SECONDS, TimeoutError()):
                for _ in range(MAX_REDIRECTS + 1):
                    status, location, data = self._get(url, until)
                    if status not in endpoint.REDIRECTS:
                        self._failures[host].clear()
                        break
                    url = urljoin(url, location)
        except (OSError, HTTPError, HTTPException, ValueError) as error:
            late = TimeoutError() if time.monotonic() >= until else error
            reason = endpoint.reason_of(late, SECONDS).removeprefix("url: ")
            self._failures[host].append(reason)
            raise NotFetched(reason) from None
        if status != 200:
            raise NotFetched("too many redirects" if status in endpoint.REDIRECTS else f"its host returned {status}")
        return data

    def _get(self, url: str, until: float) -> tuple[int, str, BytesIO]:
        """Return the status, Location and content of a response. Raises NotFetched."""
        target = parse_url(url)
        if target.scheme not in ("http", "https") or not target.host or len(url) > MAX_URL:
            raise NotFetched("redirected to a URL that is not http or https")
        max_bytes = min(MAX_IMAGE_BYTES, self.store.bytes_left())
        with closing(endpoint.connect(target, self.private, SECONDS, until, 2 * MAX_IMAGE_BYTES)) as connection:
            headers = REQUEST_HEADERS | {"Host": target.netloc or ""}
            connection.request("GET", target.request_uri, headers=headers, preload_content=False, decode_content=False)
            response = connection.getresponse()
            data = BytesIO()
            while response.status == 200 and (piece := response.read(PART_BYTES)):
                data.write(piece)
                if data.tell() > max_bytes:
                    raise NotFetched(f"more than {max_bytes:,} bytes")
            return response.status, response.headers.get("Location", ""), data
