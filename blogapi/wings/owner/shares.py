"""Links that share the preview of one post with somebody without a session."""

import secrets
from datetime import timedelta
from typing import NamedTuple

from peewee import fn

from blogapi.clock import later
from blogapi.posts import storage as posts
from blogapi.storage.engine import Reader, Transaction
from blogapi.storage.errors import DoesNotExist, Rejected
from blogapi.storage.keys import PREFIX, digest_of
from blogapi.storage.models import model

PERIOD = timedelta(days=7)
MAX_LINKS_OF_POST = 10
MAX_LINKS = 100  # limit for all posts together, so that the HTML of all fits in memory
TOKEN_BYTES = 16


PreviewLink = model("preview_link")


class KnownLink(NamedTuple):
    """A link without its token, which is not stored."""

    digest: bytes
    created_at: str
    ends_at: str


def add(tx: Transaction, post_id: int) -> str:
    """Create a link to the preview of a post; return its token. Raises DoesNotExist, Rejected."""
    posts.id_of(tx, post_id)
    tx.execute(PreviewLink.delete().where(PreviewLink.ends_at <= tx.now))
    if len(listing(tx, post_id)) >= MAX_LINKS_OF_POST:
        raise Rejected("share", f"this post has {MAX_LINKS_OF_POST} previews already; withdraw one first")
    if tx.row(PreviewLink.select(fn.COUNT(PreviewLink.digest)).having(fn.COUNT(PreviewLink.digest) >= MAX_LINKS)):
        raise Rejected("share", f"there are {MAX_LINKS} previews already; withdraw one, or wait until one has ended")
    token = f"{PREFIX}preview_{secrets.token_urlsafe(TOKEN_BYTES)}"
    row = {"digest": digest_of(token), "post_id": post_id, "created_at": tx.now, "ends_at": later(tx.now, PERIOD)}
    tx.execute(PreviewLink.insert(row))
    return token


def find(reader: Reader, token: str) -> bytes:
    """Return the document of the post that a link shares. Raises DoesNotExist."""
    is_valid = (PreviewLink.digest == digest_of(token)) & (PreviewLink.ends_at > reader.now)
    found = reader.row(PreviewLink.select(PreviewLink.post_id).where(is_valid))
    if found is None:
        raise DoesNotExist("preview")
    return posts.find(reader, found[0])


def listing(reader: Reader, post_id: int) -> list[KnownLink]:
    """Return the valid links of a post, oldest first."""
    is_valid = (PreviewLink.post_id == post_id) & (PreviewLink.ends_at > reader.now)
    query = PreviewLink.select(PreviewLink.digest, PreviewLink.created_at, PreviewLink.ends_at).where(is_valid)
    return list(map(KnownLink._make, reader.rows(query.order_by(PreviewLink.created_at, PreviewLink.digest))))


def withdraw(tx: Transaction, post_id: int, digest: str) -> None:
    """Delete the link of a post with this digest, in hexadecimal digits."""
    for link in listing(tx, post_id):
        if link.digest.hex() == digest:
            tx.execute(PreviewLink.delete().where(PreviewLink.digest == link.digest))
