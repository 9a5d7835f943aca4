"""Store idempotency keys, so that a repeated request does not create a second post."""

import re
from collections.abc import Callable
from datetime import timedelta
from hashlib import sha256
from typing import NamedTuple

from marshmallow import ValidationError
from peewee import Tuple

from blogapi.api.request import Request
from blogapi.clock import earlier
from blogapi.posts import storage as posts
from blogapi.storage.engine import Compiled, Placeholder, Reader, Transaction
from blogapi.storage.errors import DoesNotExist, Rejected
from blogapi.storage.keys import digest_of
from blogapi.storage.models import Author, Idempotency

KEY_NAME = re.compile("[\x21-\x7e]{1,255}")  # allowed in Idempotency-Key
TTL = timedelta(hours=24)
DERIVED_TTL = timedelta(minutes=10)  # lifetime of a key derived from the content
FORM_TTL = timedelta(days=100)  # lifetime of a form's key, because a form can stay open for weeks
MAX_PRUNED = 500  # a transaction deletes at most this many keys


class IdempotencyKey(NamedTuple):
    """The name that a client gave a request, and a hash of the request's content."""

    digest: bytes  # SHA-256 of the name of the API key; regenerating the key does not change it. b"" for a form
    name: str
    request: bytes  # SHA-256 of the body and the query
    is_derived: bool = False  # whether the name is derived from the content, because the request has no header


def key_of(request: Request) -> IdempotencyKey | None:
    """Return a request's Idempotency-Key, if any. Load the body first. Raises ValidationError if the key is invalid."""
    name = request.environ.get("HTTP_IDEMPOTENCY_KEY")
    if name is None:
        return None
    if not KEY_NAME.fullmatch(name):
        raise ValidationError("must have 1 to 255 visible ASCII characters", "Idempotency-Key")
    query = request.environ.get("QUERY_STRING", "").encode("latin-1")
    sent = query + b"\0" + request.body if query else request.body
    return IdempotencyKey(digest_of(request.author.name), name, sha256(sent).digest())


class PastRequest(NamedTuple):
    """A request that created a post."""

    request: bytes  # as in IdempotencyKey
    post_id: int


def find(reader: Reader, key: IdempotencyKey) -> PastRequest | None:
    """Return the request that used this key recently, if any."""
    lifetime = DERIVED_TTL if key.is_derived else TTL if key.digest else FORM_TTL
    row = reader.row(SELECT_USED_SINCE, digest=key.digest, name=key.name, since=earlier(reader.now, lifetime))
    return PastRequest._make(row) if row else None


_used = (Idempotency.digest == Placeholder("digest")) & (Idempotency.name == Placeholder("name"))
_used &= Idempotency.created_at > Placeholder("since")
SELECT_USED_SINCE = Compiled(Idempotency.select(Idempotency.request, Idempotency.post_id).where(_used))


def add_once(
    tx: Transaction,
    fields: posts.Fields,
    author: Author,
    key: IdempotencyKey,
    add: Callable[[Transaction, posts.Fields, Author], posts.StoredPost] = posts.add,
) -> posts.StoredPost:
    """Create a post with `add`, or return the post that a request with the same key created recently.

    Raises Rejected if that request was different, or if its post was deleted. If the key is derived from the content,
    the deleted post is created again instead.
    """
    if former := find(tx, key):
        if former.request != key.request:
            raise Rejected("Idempotency-Key", "was used for another request within the last 24 hours")
        try:
            return posts.get_to_change(tx, former.post_id)
        except DoesNotExist:
            if not key.is_derived:
                raise Rejected("Idempotency-Key", "the post it created was deleted") from None
    post = add(tx, fields, author)
    prune(tx)
    # An expired row for this key may still exist.
    tx.defer(Idempotency.delete().where(Idempotency.digest == key.digest, Idempotency.name == key.name))
    row = {"digest": key.digest, "name": key.name, "request": key.request}
    tx.defer(Idempotency.insert(row | {"post_id": post.id, "created_at": tx.now}))
    return post


def prune(tx: Transaction) -> int:
    """Delete some expired keys. Return how many were deleted."""
    key, age = (Idempotency.digest, Idempotency.name), Idempotency.created_at
    is_old = (age <= earlier(tx.now, TTL)) & ((Idempotency.digest != b"") | (age <= earlier(tx.now, FORM_TTL)))
    old = Idempotency.select(*key).where(is_old).limit(MAX_PRUNED)
    return tx.execute(Idempotency.delete().where(Tuple(*key).in_(old)))
