"""Rewrite the addresses of images in posts after the service has moved."""

import re
from collections.abc import Iterator
from functools import partial

from marshmallow import ValidationError

from blogapi import documents
from blogapi.api.schemas import sentences
from blogapi.documents import each_text
from blogapi.posts import lists
from blogapi.posts import storage as posts
from blogapi.posts.schemas import PostInputSchema
from blogapi.storage.batches import write_each
from blogapi.storage.database import Database
from blogapi.storage.engine import Transaction
from blogapi.storage.errors import PostDoesNotExist
from blogapi.storage.models import Author
from blogapi.wings.images.storage import IMAGE_ID

AUTHOR = Author("rebase")  # author in the history
# The fields that can contain an address
WITH_ADDRESSES = [name for name, field in documents.FIELDS.items() if field.kind in ("text", "url", "params")]
schema = PostInputSchema(partial=True)


def rebase(database: Database, old: str, new: str) -> Iterator[tuple[str, str]]:
    """Replace the service's URL in image addresses; yield each affected post, with the reason if it was left alone.

    Webhooks get no events. The history and the trash stay as they are.
    """
    addresses = re.compile(rf"{re.escape(old)}(?=/images/{IMAGE_ID}\.)")
    affected = [int(post["id"]) for post in lists.every(database) if addresses.search(documents.dump(post))]
    change = partial(_change, replace=partial(addresses.sub, lambda _: new))
    yield from filter(None, write_each(database, change, affected))


def _change(tx: Transaction, post_id: int, replace: partial[str]) -> tuple[str, str] | None:
    try:
        post = posts.find_to_change(tx, post_id)
    except PostDoesNotExist:  # deleted meanwhile
        return None
    old = documents.load(post.document)
    changed = {name: each_text(old[name], replace) for name in WITH_ADDRESSES if name in old}
    try:
        new = documents.in_order(old | schema.load(changed))
    except ValidationError as error:
        return old["slug"], "; ".join(sentence for _, sentence in sentences(error))
    if posts.is_same(old, new):  # The address occurs only in the title, or does not change.
        return None
    posts.replace(tx, post, old, new, AUTHOR, with_events=False)
    return old["slug"], ""
