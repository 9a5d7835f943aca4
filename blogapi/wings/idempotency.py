"""Idempotency keys: a request that is sent again creates nothing again."""

import hashlib
import re
from collections.abc import Callable
from datetime import timedelta
from typing import NamedTuple

from marshmallow import ValidationError
from peewee import BlobField, CompositeKey, IntegerField, TextField

from blogapi.api.request import Request
from blogapi.clock import earlier
from blogapi.posts import storage as posts
from blogapi.storage.engine import Reader, Transaction
from blogapi.storage.errors import NotFound, Rejected
from blogapi.storage.models import BaseModel

HEADER = "HTTP_IDEMPOTENCY_KEY"  # in the WSGI environment
TTL = timedelta(hours=24)
REPEAT_TTL = timedelta(minutes=10)  # of a request without a name
KEY_NAME = re.compile("[\x21-\x7e]{1,255}")


class Idempotency(BaseModel):
    """The post that a request with an Idempotency-Key created; 0 for a key or secret of the owner's page."""

    digest = BlobField()
    name = TextField()
    request = BlobField()
    post_id = IntegerField()
    created_at = TextField()

    class Meta:
        primary_key = CompositeKey("digest", "name")


class IdempotencyKey(NamedTuple):
    """The name that a client gave to a request."""

    client: bytes  # the digest of its API key, or the secret of a form
    name: str
    request: bytes  # SHA-256 of the body and the query
    ttl: timedelta = TTL


def repeat_of(request: Request, content: bytes) -> IdempotencyKey:
    """Return the Idempotency-Key of a request with this content; without one, a key of the content itself.

    Raises ValidationError for a bad one.
    """
    digest = hashlib.sha256(content)
    if HEADER in request.environ:
        return key_of(request)._replace(request=digest.digest())
    return IdempotencyKey(request.digest, f" {digest.hexdigest()}", digest.digest(), REPEAT_TTL)  # no header's name


def key_of(request: Request) -> IdempotencyKey:
    """Return the Idempotency-Key of a request whose body is loaded; raise ValidationError for a bad one."""
    name = request.environ[HEADER]
    if not KEY_NAME.fullmatch(name):
        raise ValidationError("must have 1 to 255 visible ASCII characters", "Idempotency-Key")
    sent = request.body + request.environ.get("QUERY_STRING", "").encode("latin-1")
    return IdempotencyKey(request.digest, name, hashlib.sha256(sent).digest())


def find(reader: Reader, key: IdempotencyKey) -> tuple[bytes, int] | None:
    """Return the request that recently had the same Idempotency-Key, as in the key, and the id of its post."""
    used = (Idempotency.digest == key.client) & (Idempotency.name == key.name)
    is_valid = Idempotency.created_at > earlier(reader.now, key.ttl)
    return reader.row(Idempotency.select(Idempotency.request, Idempotency.post_id).where(used, is_valid))


def add_once(
    tx: Transaction,
    fields: posts.Fields,
    author: str,
    key: IdempotencyKey,
    add: Callable[[Transaction, posts.Fields, str], posts.StoredPost] = posts.add,
) -> posts.StoredPost:
    """Create a post by `add`, unless a request with the same Idempotency-Key recently did so: then return that post.

    Raises Rejected if that request was different, or if its post is deleted. Without a name, it is created anew then.
    """
    former = find(tx, key)
    if former is None:
        return _remember(tx, key, add(tx, fields, author))
    request, post_id = former
    if request != key.request:
        raise Rejected("Idempotency-Key", "was used for another body within the last 24 hours")
    try:
        return posts.publish_if_due(tx, post_id)
    except NotFound:
        if key.ttl == REPEAT_TTL:
            return _remember(tx, key, add(tx, fields, author))
        raise Rejected("Idempotency-Key", "the post that it created was deleted") from None


def _remember(tx: Transaction, key: IdempotencyKey, post: posts.StoredPost) -> posts.StoredPost:
    forget_old(tx)
    if key.ttl == REPEAT_TTL:  # One that is over may still be there.
        tx.defer(Idempotency.delete().where(Idempotency.digest == key.client, Idempotency.name == key.name))
    row = {"digest": key.client, "name": key.name, "request": key.request}
    tx.defer(Idempotency.insert(row | {"post_id": post.id, "created_at": tx.now}))
    return post


def forget_old(tx: Transaction) -> None:
    """Delete those that are older than a day."""
    tx.defer(Idempotency.delete().where(Idempotency.created_at <= earlier(tx.now, TTL)))
