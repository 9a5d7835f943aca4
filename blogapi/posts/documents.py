"""The documents of posts: the JSON of a post as it is stored and answered.

They are compact, and quotes inside their strings are escaped: a quoted name with a colon after it appears only at a
name. So a time or a status is found without parsing a megabyte of content. The names in `params` can be those of
fields: it comes last, and no search for another field goes past its start.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any

from blogapi.posts import params
from blogapi.posts.fields import FIELDS, REQUIRED
from blogapi.storage.errors import Damaged

SCHEDULED, PUBLISHED = b'"status":"scheduled"', b'"status":"published"'
PUBLISHED_AT = b'"published_at":"'
UPDATED_AT = b'"updated_at":"'
PARAMS = b'"params":'
TAGS = '"tags":'
TIME_LENGTH = len("2026-11-20T10:10:00Z")
DECODER = json.JSONDecoder()
ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))

WITHOUT_CONTENT = [field for field in FIELDS if field != "content"]


def in_order(post: dict[str, Any]) -> dict[str, Any]:
    """Return a post with its fields in order, leaving out fields without a value."""
    return {name: post[name] for name in FIELDS if post.get(name) is not None}


def dump(value: dict[str, Any] | list[Any]) -> str:
    """Return compact JSON: of a post in order, its document."""
    return ENCODER.encode(value)


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
    if changed == names:
        return document
    data = f"{document[:start]}{dump(changed)}{document[end:]}".encode()
    start, end = _updated_at(data)
    return (data[:start] + now.encode() + data[end:]).decode()


def _updated_at(document: bytes) -> tuple[int, int]:
    """Return where the time of the last change starts and ends. Raises ValueError."""
    start = document.rindex(UPDATED_AT, 0, params_start(document)) + len(UPDATED_AT)
    return start, start + TIME_LENGTH


def params_start(document: bytes) -> int:
    """Return where the name `params` begins, which is the first of this name near the end; or the length."""
    if not document.endswith(b"}}"):  # Without params, a document ends with a time.
        return len(document)
    start = document.find(PARAMS, max(0, len(document) - params.MAX_BYTES - len(PARAMS) - 1))
    return start if start >= 0 else len(document)


def as_of(now: str, status: str, document: bytes | None) -> bytes:
    """Return the document of a post as it is shown at a time: published once that is due. Raises Damaged."""
    if document is None:  # in a NOT NULL column, as SQLite has no checksums
        raise Damaged
    if status != "scheduled":
        return document
    try:
        start = document.index(PUBLISHED_AT) + len(PUBLISHED_AT)
        published_at = document[start : start + TIME_LENGTH]
        if published_at.decode() > now:
            return document
        data = document.replace(SCHEDULED, PUBLISHED, 1)
        start, end = _updated_at(data)
        return data[:start] + max(published_at, data[start:end]) + data[end:]
    except ValueError as error:
        raise Damaged from error


def cut(document: bytes, fields: Iterable[str]) -> bytes:
    """Return a document with these fields only. Raises Damaged."""
    post = load(document)
    return dump({name: post[name] for name in fields if name in post}).encode()


def load(document: bytes | None) -> dict[str, Any]:
    """Parse a document. Raises Damaged."""
    try:
        post = DECODER.decode(document.decode())
        if post.keys() >= REQUIRED:
            return post
    except (TypeError, ValueError, AttributeError) as error:
        raise Damaged from error
    raise Damaged
