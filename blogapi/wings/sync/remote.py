"""The posts and images of another service, over its API; each response is validated."""

import re
from collections.abc import Collection, Iterator
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import urlencode

from marshmallow import EXCLUDE, ValidationError

from blogapi.posts.schemas import PostSchema
from blogapi.wings.images.formats import MAX_IMAGE_BYTES
from blogapi.wings.images.storage import IMAGE_ID
from blogapi.wings.sync.client import MAX_JSON_BYTES, MAX_REASON, PACE, ApiClient, ApiResponse, RemoteError

MAX_PAGE, MAX_POSTS = 1000, 200_000  # posts or images
FEW_PAGES = 100  # a longer list must have at least ten posts a page
MAX_READ_REVISIONS, KEPT_REVISIONS = 100, 50  # revisions of a post that are read, and that a service keeps
FEW = 20  # posts that are fetched one by one; for more, all posts are listed
NEXT_LINK = re.compile(r'<[^<>?]*\?([^<>]*)>; rel="next"')
IMAGE_URL = re.compile("[!-~]{1,400}")
ETAG = re.compile('(W/)?"[!#-~]{1,100}"')
LISTED_FIELDS = ("id", "slug", "status", "created_at", "updated_at", "former_slugs")
SCHEMAS = {
    "": PostSchema(),
    ",".join(LISTED_FIELDS): PostSchema(only=LISTED_FIELDS),
}  # schemas by the `fields` of a query

Post = dict[str, Any]


class RemoteRevision(NamedTuple):
    """An earlier version of a post."""

    number: str
    begun: str
    ended: str


class Remote:
    """A service. What a method sends can arrive twice. All raise RemoteError, or NotSynced if it is about one post."""

    def __init__(self, client: ApiClient):
        self.client = client

    @cached_property
    def scope(self) -> str:
        """The scope of the key, fetched on first use."""
        found = self.client.parsed(self.client.send("GET", "/v1/key", also=(404,)), dict)
        if "scope" not in found:
            raise self.client.not_blogapi()
        return str(found["scope"])

    def _pages(self, path: str, query: str) -> Iterator[Any]:
        count = pages = moved = 0
        begun = self.client.seconds
        while query:
            answer = self.client.send("GET", f"{path}?{query}", also=(404,))
            page = self.client.parsed(answer, list)
            count, pages, moved = count + len(page), pages + 1, moved + len(answer.data)
            following = NEXT_LINK.search(answer.headers.get("Link", ""))
            is_slow = self.client.seconds - begun > self.client.max_seconds + moved / PACE
            is_endless = count > MAX_POSTS or pages > FEW_PAGES + count / 10 or is_slow
            if len(page) > MAX_PAGE or (following and is_endless):
                raise RemoteError(f"the list at {self.client.address}{path} never ends")
            yield from page
            query = following[1] if following else ""

    def posts(self, fields: str = "") -> Iterator[Post]:
        """Yield every post; `fields` must be a key of SCHEMAS."""
        limit = f"limit={MAX_PAGE}"
        for post in self._pages("/v1/posts", f"{limit}&fields={fields}" if fields else limit):
            yield self._checked(post, fields)

    def look(self, wanted: Collection[str]) -> Iterator[tuple[Post, str]]:
        """Yield the posts with these ids, each with its ETag if that is known."""
        if len(wanted) <= FEW:
            yield from filter(None, map(self.post, sorted(wanted, key=int)))
        else:
            yield from ((post, "") for post in self.posts() if post["id"] in wanted)

    def post(self, where: str) -> tuple[Post, str] | None:
        """Return a post with its ETag, by its id or `by-slug/…`; None if it does not exist."""
        answer = self.client.send("GET", f"/v1/posts/{where}", also=(404,))
        return None if answer.status == 404 else self._post_in(answer)

    def write(self, method: str, where: str, fields: Post, **condition: str) -> tuple[Post, str] | None:
        """PUT or PATCH a post; return it with its ETag, or None if the condition does not hold."""
        answer = self.client.send(method, f"/v1/posts/{where}", fields, (404, 412), MAX_JSON_BYTES, **condition)
        return None if answer.status in (404, 412) else self._post_in(answer)

    def delete(self, post_id: str, etag: str) -> bool:
        """Move a post to the trash; return False if its ETag has changed."""
        return self.client.send("DELETE", f"/v1/posts/{post_id}", None, (404, 412), If_Match=etag).status != 412

    def revisions(self, post_id: str) -> list[RemoteRevision] | None:
        """Return the earlier versions of a post that are kept, newest first; None if the key may not see them."""
        answer = self.client.send("GET", f"/v1/posts/{post_id}/revisions?limit={MAX_READ_REVISIONS}", also=(403, 404))
        if answer.status >= 400:
            return None
        try:
            return [
                RemoteRevision(str(int(each["revision"])), str(each["post"]["updated_at"]), str(each["replaced_at"]))
                for each in self.client.parsed(answer, list)[:MAX_READ_REVISIONS]
            ]
        except (TypeError, KeyError, ValueError):
            raise self.client.not_blogapi() from None

    def trashed(self, post_id: str) -> Post | None:
        """Return a post in the trash."""
        answer = self.client.send("GET", f"/v1/trash/{post_id}", also=(403, 404))
        return None if answer.status >= 400 else self._post_in(answer)[0]

    def _post_in(self, answer: ApiResponse) -> tuple[Post, str]:
        etag = answer.headers.get("ETag", "")
        return self._checked(self.client.parsed(answer, dict)), etag if ETAG.fullmatch(etag) else ""

    def _checked(self, post: Any, fields: str = "") -> Post:
        try:
            return SCHEMAS[fields].load(dict(post), unknown=EXCLUDE)  # A newer version may have more fields.
        except (ValidationError, TypeError, ValueError) as error:
            raise RemoteError(f"{self.client.address} sent an invalid post: {error}"[:MAX_REASON]) from None

    def images(self) -> dict[str, str]:
        """Return the addresses of all images by id."""
        return dict(map(self._image, self._pages("/v1/images", f"limit={MAX_PAGE}")))

    def image(self, path: str) -> bytes | None:
        """Return the bytes of an image, or None if it does not exist."""
        answer = self.client.send("GET", path, also=(404,), max_bytes=MAX_IMAGE_BYTES)
        return None if answer.status == 404 else answer.data

    def upload(self, name: str, kind: str, data: bytes) -> str:
        """Upload an image; return its address."""
        answer = self.client.send("POST", f"/v1/images?{urlencode({'name': name})}", data, Content_Type=kind)
        return self._image(self.client.parsed(answer, dict))[1]

    def _image(self, image: Any) -> tuple[str, str]:
        try:
            if re.fullmatch(IMAGE_ID, image["id"]) and IMAGE_URL.fullmatch(image["url"]):
                return image["id"], image["url"]
        except (TypeError, KeyError):
            pass
        raise RemoteError(f"{self.client.address} sent an invalid image")
