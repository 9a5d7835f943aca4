"""What a request demands of the post that it is about (RFC 9110, section 13.1)."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress

from flask import g, request
from marshmallow import ValidationError
from werkzeug.exceptions import PreconditionFailed

from blogapi.files.markdown import render
from blogapi.storage.documents import etag
from blogapi.storage.posts import IdempotencyKey

IDEMPOTENCY_KEY = re.compile("[\x21-\x7e]{1,255}")


def precondition() -> Callable[[bytes | None], None]:
    """Return a check that raises PreconditionFailed unless the request is meant for the post that it is given.

    None stands for a post that is missing. An entity tag may be that of the post as JSON or as Markdown.
    """
    environ = request.environ
    writes = environ["REQUEST_METHOD"] not in ("GET", "HEAD")  # These two answer 304.
    match = request.if_match if "HTTP_IF_MATCH" in environ else None
    none_match = request.if_none_match if writes and "HTTP_IF_NONE_MATCH" in environ else None

    def check(document: bytes | None) -> None:
        if match is not None and (document is None or not any(map(match.contains, etags(document)))):
            missing, other = "there is no such post", "the post has been changed since; get it again"
            raise PreconditionFailed(f"If-Match: {missing if document is None else other}")
        if none_match is not None and document is not None and any(map(none_match.contains_weak, etags(document))):
            there = "there is such a post already" if none_match.star_tag else "the post still has this entity tag"
            raise PreconditionFailed(f"If-None-Match: {there}")

    return check


def etags(document: bytes) -> Iterator[str]:
    """Yield the entity tags of a post, as JSON and as Markdown."""
    yield etag(document)
    with suppress(AttributeError, KeyError, TypeError, ValueError):  # A damaged post is no Markdown.
        yield etag(render(json.loads(document)))


def idempotency_key() -> IdempotencyKey | None:
    """Return the Idempotency-Key of the request, whose body is loaded, or None; raise ValidationError for a bad one."""
    name = request.environ.get("HTTP_IDEMPOTENCY_KEY")
    if name is None:
        return None
    if not IDEMPOTENCY_KEY.fullmatch(name):
        raise ValidationError("must have 1 to 255 visible ASCII characters", "Idempotency-Key")
    return IdempotencyKey(g.api_key, name, hashlib.sha256(g.body).digest())
