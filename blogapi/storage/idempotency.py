"""Idempotency keys: a creation that is asked for again makes nothing."""

from datetime import timedelta
from typing import Any, NamedTuple

from blogapi.clock import earlier
from blogapi.storage import posts
from blogapi.storage.engine import Transaction
from blogapi.storage.errors import IdempotencyKeyUsed, NotFound
from blogapi.storage.models import Idempotency
from blogapi.storage.posts import StoredPost

KEPT = timedelta(hours=24)


class IdempotencyKey(NamedTuple):
    """What a client calls a request by, and by what it is known again."""

    api_key: bytes  # its digest
    name: str
    request: bytes  # SHA-256 of the body


def add_post(tx: Transaction, fields: dict[str, Any], key: IdempotencyKey | None) -> StoredPost:
    """Make a post as `posts.add` does, unless a request with the same key did so within a day: then return that post.

    Raises IdempotencyKeyUsed if that request was another one, or its post is gone.
    """
    if key is None:
        return posts.add(tx, fields)
    forget(tx)
    used = (Idempotency.digest == key.api_key) & (Idempotency.name == key.name)
    known = tx.row(Idempotency.select(Idempotency.request, Idempotency.post_id).where(used))
    if known is None:
        post = posts.add(tx, fields)
        row = {"digest": key.api_key, "name": key.name, "request": key.request}
        tx.defer(Idempotency.insert(row | {"post_id": post.id, "created_at": tx.now}))
        return post
    request, post_id = known
    if request != key.request:
        raise IdempotencyKeyUsed("was used for another body within the last 24 hours")
    try:
        return StoredPost(post_id, posts.find(tx, post_id))
    except NotFound:
        raise IdempotencyKeyUsed("the post it made has been deleted") from None


def forget(tx: Transaction) -> None:
    """Delete what needs to be remembered no longer."""
    tx.defer(Idempotency.delete().where(Idempotency.created_at <= earlier(tx.now, KEPT)))
