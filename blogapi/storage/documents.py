"""The documents of posts: a post's JSON as bytes, just as it is stored and answered.

They are compact, and quotes inside their strings are escaped: a name in its quotes with a colon behind it is nowhere
but at the field of this name. So a value is found without parsing a megabyte of content.
"""

import hashlib
import json
from collections.abc import Callable
from typing import Any

SCHEDULED, PUBLISHED = b'"status":"scheduled"', b'"status":"published"'
PUBLISHED_AT = b'"published_at":"'
TAGS = '"tags":'
TIME_LENGTH = len("2026-11-20T10:10:00Z")
DECODER = json.JSONDecoder()


def dump(value: dict[str, Any] | list[str]) -> str:
    """Return compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def etag(document: bytes) -> str:
    """Return the strong entity tag of a document, without its quotes (RFC 9110, section 8.8.3)."""
    return hashlib.sha256(document).hexdigest()[:32]


def is_due(document: bytes, now: str) -> bool:
    """Tell whether the time of a scheduled post has come; raise ValueError if it has none."""
    start = document.index(PUBLISHED_AT) + len(PUBLISHED_AT)
    return document[start : start + TIME_LENGTH].decode() <= now


def published(document: bytes) -> bytes:
    """Return the document of a scheduled post as it is once its time has come."""
    return document.replace(SCHEDULED, PUBLISHED, 1)


def tags(document: str) -> list[str]:
    """Return the tags of a document; raise ValueError if it is none."""
    names, _ = DECODER.raw_decode(document, document.index(TAGS) + len(TAGS))
    return names


def with_tags(document: str, change: Callable[[list[str]], list[str]]) -> str:
    """Return a document with its tags changed; raise ValueError if it is none."""
    start = document.index(TAGS) + len(TAGS)
    names, end = DECODER.raw_decode(document, start)
    return document[:start] + dump(change(names)) + document[end:]
