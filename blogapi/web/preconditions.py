"""What a request demands of the post that it is about (RFC 9110, section 13.1)."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator

from flask import g, request
from marshmallow import ValidationError
from werkzeug.exceptions import PreconditionFailed

from blogapi.files.markdown import render
from blogapi.storage.documents import etag
from blogapi.storage.idempotency import IdempotencyKey

IDEMPOTENCY_KEY = re.compile("[\x21-\x7e]{1,255}")


def precondition() -> Callable[[bytes], None]:
    """Return what raises PreconditionFailed for a post, or None, that the request is not meant for."""
    environ = request.environ
    wanted = request.if_match if "HTTP_IF_MATCH" in environ else None
    writes = environ["REQUEST_METHOD"] not in ("GET", "HEAD")
    unwanted = request.if_none_match if writes and "HTTP_IF_NONE_MATCH" in environ else None

    def check(document: bytes | None) -> None:
        if wanted is not None and (document is None or not any(map(wanted.contains, etags(document)))):
            raise PreconditionFailed("If-Match: the post has been changed since; get it again")
        if unwanted is not None and document is not None and any(map(unwanted.contains_weak, etags(document))):
            raise PreconditionFailed("If-None-Match: the post still has this entity tag")

    return check


def etags(document: bytes) -> Iterator[str]:
    """Give the entity tags of a post, as JSON and as Markdown."""
    yield etag(document)
    yield etag(render(json.loads(document)))


def idempotency_key() -> IdempotencyKey | None:
    """Return by what the request, whose body is loaded, is known when it comes again; None if it does not ask for it.

    Raises ValidationError for an Idempotency-Key that is none.
    """
    name = request.environ.get("HTTP_IDEMPOTENCY_KEY")
    if name is None:
        return None
    if not IDEMPOTENCY_KEY.fullmatch(name):
        raise ValidationError("must have 1 to 255 visible ASCII characters", "Idempotency-Key")
    return IdempotencyKey(g.api_key, name, hashlib.sha256(g.body).digest())
