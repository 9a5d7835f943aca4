"""The fields of a post, and its document: the compact JSON that is stored, and sent unchanged."""

import json
import re
from collections.abc import Iterable
from hashlib import sha256
from typing import Any

from xxhash import xxh3_128_hexdigest

from blogapi.storage.errors import Damaged

STATUSES = ("published", "draft", "scheduled", "archived")
MAX_TITLE, MAX_EXCERPT, MAX_CONTENT = 255, 1000, 1_000_000  # characters
MAX_SLUG, MAX_URL, MAX_TAG = 100, 2048, 64
MAX_TAGS = 50
MAX_PARAM_NAME, MAX_INTEGER = 64, 2**53  # limits for `params`
MAX_FORMER_SLUGS = 20
LISTED = ("id", "title", "status")  # the fields in every list
TIMES = ("published_at", "created_at", "updated_at")
# All fields, in the order in which they are written
FIELDS = (*LISTED, "slug", "content", "excerpt", "tags", "cover_image", *TIMES, "params", "former_slugs")
WITHOUT_CONTENT = [field for field in FIELDS if field != "content"]
# The fields that a post can lack
OPTIONAL = frozenset(("excerpt", "cover_image", "published_at", "params", "former_slugs"))
REQUIRED = frozenset(FIELDS) - OPTIONAL
SET_BY_SERVICE = ("id", "created_at", "updated_at")
INPUT_FIELDS = tuple(name for name in FIELDS if name not in SET_BY_SERVICE)  # set by clients
ID = "[1-9][0-9]{0,18}"
SLUG = "[a-z0-9]+(-[a-z0-9]+)*"
EXAMPLE = {
    "id": "1",
    "title": "Three days at the lake",
    "status": "published",
    "slug": "three-days-at-the-lake",
    "content": "**Friday.** Fog, and somewhere in it a lake.\n",
    "excerpt": "Fog, wind, and then the sun.",
    "tags": ["Travel", "Lake Constance"],
    "cover_image": "https://example.org/lake.jpg",
    **dict.fromkeys(TIMES, "2026-11-20T10:10:00Z"),
    "params": {"author": "Ada", "math": True},
}
DECODER = json.JSONDecoder()
ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def is_slug(text: str) -> bool:
    """Return whether a string can be the slug of a post."""
    return len(text) <= MAX_SLUG and re.fullmatch(SLUG, text) is not None


def in_order(post: dict[str, Any]) -> dict[str, Any]:
    """Return a post with its fields in order, without fields that have no value."""
    return {name: post[name] for name in FIELDS if post.get(name) is not None}


def slug_in(document: bytes) -> str:
    """Return the slug in a document without parsing it all: no earlier field can have an unescaped quotation mark."""
    return document.partition(b'"slug":"')[2].partition(b'"')[0].decode()


def dump(value: dict[str, Any] | list[Any]) -> str:
    """Return compact JSON; for a post whose fields are in order, its document."""
    return ENCODER.encode(value)


def load(document: bytes | None) -> dict[str, Any]:
    """Parse a document. Raises Damaged."""
    if document is None:  # even in a NOT NULL column: SQLite has no checksums
        raise Damaged
    try:
        post = DECODER.decode(document.decode())
        if post.keys() >= REQUIRED:
            return post
    except (TypeError, ValueError, AttributeError) as error:
        raise Damaged from error
    raise Damaged


def etag_of(document: bytes) -> str:
    """Return the strong entity tag of a post, without quotes (RFC 9110, section 8.8.3).

    It is a SHA-256, so that nobody can swap a version that was shown for another one with the same tag.
    """
    return sha256(document).hexdigest()


def hash_of(content: bytes) -> str:
    """Return a fast hash, which tells contents apart where nobody gains from making two with the same one."""
    return xxh3_128_hexdigest(content)


def etags(document: bytes) -> tuple[str, str]:
    """Return the entity tags of a post as JSON and as a Markdown file. Both change with the document."""
    tag = etag_of(document)
    return tag, f"{tag}-md"


def as_of(now: str, status: str, document: bytes | None) -> bytes:
    """Return the document of a post as of a given time: a due scheduled post appears as published. Raises Damaged."""
    if document is None:
        raise Damaged
    if status != "scheduled":
        return document
    post = load(document)
    published_at = post.get("published_at")
    if published_at is None:
        raise Damaged
    if published_at > now:
        return document
    times = {"updated_at": max(published_at, post["updated_at"])}
    return dump(post | {"status": "published"} | times).encode()


def cut(document: bytes, fields: Iterable[str]) -> bytes:
    """Return a document reduced to these fields. Raises Damaged."""
    post = load(document)
    return dump({name: post[name] for name in fields if name in post}).encode()
