"""Keys and webhooks that a form of the owner's page creates once, even if it is sent again."""

from base64 import b64encode
from typing import Any

from blogapi.posts.idempotency import Idempotency
from blogapi.storage import keys
from blogapi.storage.engine import Transaction
from blogapi.storage.errors import NotUnique, Rejected
from blogapi.storage.keys import digest_of
from blogapi.storage.models import ApiKey
from blogapi.wings.webhooks import storage as webhooks
from blogapi.wings.webhooks.storage import KnownWebhook


def add_key(tx: Transaction, name: str, key: str, scope: str) -> None:
    """Store the key of a form; storing it again changes nothing. Raises BadKeyName, Rejected."""
    if tx.row(ApiKey.select(ApiKey.name).where(ApiKey.name == name, ApiKey.digest == digest_of(key))) is None:
        claim(tx, key)
        keys.add(tx, name, key, scope)


def add_webhook(tx: Transaction, secret: bytes, **fields: Any) -> tuple[KnownWebhook, str]:
    """Create the webhook of a form with its secret, or return it if it exists. Raises Rejected."""
    text = webhooks.SECRET_PREFIX + b64encode(secret).decode()
    if webhook := webhooks.find_by_secret(tx, text):
        return webhook, text
    claim(tx, text)
    return webhooks.add(tx, **fields, secret=text)


def claim(tx: Transaction, secret: str) -> None:
    """Record that a form has used a secret. Raises Rejected if it was used before, so that a revoked key stays revoked.

    The record outlives the session. No Idempotency-Key can have its empty name.
    """
    row = {"digest": digest_of(secret), "name": "", "request": b"", "post_id": 0, "created_at": tx.now}
    try:
        tx.execute(Idempotency.insert(row))
    except NotUnique:
        raise Rejected("Idempotency-Key", "what it created is gone") from None
