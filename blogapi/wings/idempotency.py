"""Idempotency keys: a request that is sent again creates nothing again."""

import hashlib
import re
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


def key_of(request: Request) -> IdempotencyKey:
    """Return the Idempotency-Key of a request whose body is loaded; raise ValidationError for a bad one."""
    name = request.environ[HEADER]
    if not KEY_NAME.fullmatch(name):
        raise ValidationError("must have 1 to 255 visible ASCII characters", "Idempotency-Key")
    sent = request.body + request.environ.get("QUERY_STRING", "").encode("latin-1")
    return IdempotencyKey(request.digest, name, hashlib.sha256(sent).digest())


def find(reader: Reader, key: IdempotencyKey) -> tuple[bytes, int] | None:
    """Return the request that had the same Idempotency-Key within a day, as in the key, and the id of its post."""
    used = (Idempotency.digest == key.client) & (Idempotency.name == key.name)
    is_valid = Idempotency.created_at > earlier(reader.now, TTL)
    return reader.row(Idempotency.select(Idempotency.request, Idempotency.post_id).where(used, is_valid))


def add_once(tx: Transaction, fields: posts.Fields, author: str, key: IdempotencyKey) -> posts.StoredPost:
    """Create a post, unless a request with the same Idempotency-Key did so within a day: then return that post.

    Raises Rejected if that request was different, or if its post is deleted.
    """
    former = find(tx, key)
    if former is None:
        post = posts.add(tx, fields, author)
        forget_old(tx)
        row = {"digest": key.client, "name": key.name, "request": key.request}
        tx.defer(Idempotency.insert(row | {"post_id": post.id, "created_at": tx.now}))
        return post
    request, post_id = former
    if request != key.request:
        raise Rejected("Idempotency-Key", "was used for another body within the last 24 hours")
    try:
        return posts.publish_if_due(tx, post_id)
    except NotFound:
        raise Rejected("Idempotency-Key", "the post that it created was deleted") from None


def forget_old(tx: Transaction) -> None:
    """Delete those that are older than a day."""
    tx.defer(Idempotency.delete().where(Idempotency.created_at <= earlier(tx.now, TTL)))
