"""The documents of posts: the JSON of a post as it is stored and answered.

They are compact, and quotes inside their strings are escaped: a quoted name with a colon after it appears only at the
field of this name. So a value is found without parsing a megabyte of content.
"""

import hashlib
import json
from collections.abc import Callable, Iterable
from typing import Any

from blogapi.post import FIELDS, REQUIRED
from blogapi.storage.errors import Damaged

SCHEDULED, PUBLISHED = b'"status":"scheduled"', b'"status":"published"'
PUBLISHED_AT = b'"published_at":"'
UPDATED_AT = '"updated_at":"'
TAGS = '"tags":'
TIME_LENGTH = len("2026-11-20T10:10:00Z")
DECODER = json.JSONDecoder()
ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))

WITHOUT_CONTENT = [field for field in FIELDS if field != "content"]
HEAD = FIELDS[: FIELDS.index("content") + 1]  # found from the start; others from the end, without searching the content
Name = tuple[bytes, Callable[[bytes, bytes], int]]  # of a field, as it stands in a document; and what finds it there
# For each field: its name, whether every post has it, and the names that can follow, up to one that every post has
PLACES: dict[str, tuple[Name, bool, list[Name]]] = {}
_followers: list[Name] = []
for _field in reversed(FIELDS):
    _name = f'"{_field}":'.encode(), bytes.find if _field in HEAD else bytes.rfind
    PLACES[_field] = _name, _field in REQUIRED, _followers
    _followers = [_name] if _field in REQUIRED else [_name, *_followers]


def in_order(post: dict[str, Any]) -> dict[str, Any]:
    """Return a post with its fields in order, leaving out fields without a value."""
    return {name: post[name] for name in FIELDS if post.get(name) is not None}


def dump(value: dict[str, Any] | list[Any]) -> str:
    """Return compact JSON: of a post in order, its document."""
    return ENCODER.encode(value)


def etag(document: bytes) -> str:
    """Return the strong entity tag of a document, without its quotes (RFC 9110, section 8.8.3)."""
    return hashlib.sha256(document).hexdigest()[:32]


def tags(document: str) -> tuple[list[str], int, int]:
    """Return the tags of a document, and where their array starts and ends. Raises ValueError if it is damaged."""
    start = document.index(TAGS) + len(TAGS)
    names, end = DECODER.raw_decode(document, start)
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("no tags")
    return names, start, end


def with_tags(document: str, change: Callable[[list[str]], list[str]], now: str) -> str:
    """Return a document with its tags changed, and updated `now` if they differ. Raises ValueError if it is damaged."""
    names, start, end = tags(document)
    changed = change(names)
    return document if changed == names else _updated(document[:start] + dump(changed) + document[end:], now)


def _updated(document: str, now: str) -> str:
    start = document.rindex(UPDATED_AT) + len(UPDATED_AT)
    return document[:start] + now + document[start + TIME_LENGTH :]


def as_of(now: str, status: str, document: bytes | None) -> bytes:
    """Return the document of a post as it is shown at a time: published once that is due. Raises Damaged."""
    if document is None:  # in a NOT NULL column, as SQLite has no checksums
        raise Damaged
    if status != "scheduled":
        return document
    try:
        start = document.index(PUBLISHED_AT) + len(PUBLISHED_AT)
        published_at = document[start : start + TIME_LENGTH].decode()
        if published_at > now:
            return document
        text = document.replace(SCHEDULED, PUBLISHED, 1).decode()
        start = text.rindex(UPDATED_AT) + len(UPDATED_AT)
        return _updated(text, max(published_at, text[start : start + TIME_LENGTH])).encode()
    except ValueError as error:
        raise Damaged from error


def cut(document: bytes, fields: Iterable[str]) -> bytes:
    """Return a document with these fields only, which must be in order. Raises Damaged."""
    parts = []
    for field in fields:
        (name, find), needed, followers = PLACES[field]
        start = find(document, name)
        if start >= 0:
            for follower, find_follower in followers:
                if (end := find_follower(document, follower)) > start:
                    break
            else:
                end = len(document)
            parts.append(document[start : end - 1])
        elif needed:
            raise Damaged
    return b"{%b}" % b",".join(parts)


def load(document: bytes | None) -> dict[str, Any]:
    """Parse a document. Raises Damaged."""
    try:
        post = json.loads(document)
        if post.keys() >= REQUIRED:
            return post
    except (TypeError, ValueError, AttributeError) as error:
        raise Damaged from error
    raise Damaged
