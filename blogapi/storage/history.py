"""The history of posts: the versions before a change, the trash, and the way back."""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any, NamedTuple

from peewee import Tuple

from blogapi.clock import earlier
from blogapi.storage import documents, posts, stored
from blogapi.storage.engine import Reader, Transaction
from blogapi.storage.errors import Damaged, NotFound
from blogapi.storage.models import MAX_ID, Post, Revision
from blogapi.storage.pages import LATEST, PAGE_BYTES, READ_SHARE, Cursor, bounded
from blogapi.storage.posts import Check
from blogapi.storage.query import AsBytes
from blogapi.storage.search import index
from blogapi.storage.stored import Document, PostRef

PRUNED = 20  # versions of each state, at most, in one transaction
STATES = ("replaced", "deleted", "restored")
SLUG_LENGTH = 90  # of a slug that gets a number, at most
RESTORED = ("title", "content", "excerpt", "tags", "cover_image")  # the fields that `restore` restores


class Kept(NamedTuple):
    """A stored version of a post, without its content."""

    post_id: int
    version: int
    until: str
    by: str  # who replaced or deleted it
    post: bytes


class HistoryPage(NamedTuple):
    """A page of stored versions, and the `before` of the next page if more follow."""

    kept: list[Kept]
    before: int | Cursor | None


_document = AsBytes(Revision.document)
_known = (Revision.post_id, Revision.version, Revision.until, Revision.replaced_by)
_kept = Revision.select(*_known)
_is_deleted = Revision.state == "deleted"


def revisions(reader: Reader, ref: PostRef, limit: int, before: int | None = None) -> HistoryPage:
    """Return the versions of a post before the version `before`, newest first. Raises NotFound."""
    of_post = (Revision.post_id == posts.must_exist(reader, ref)) & (Revision.state == "replaced")
    query = _kept.where(of_post, Revision.version < (before or MAX_ID)).order_by(Revision.version.desc())
    return _page(reader, query, limit, lambda last: last.version)


def trash(reader: Reader, limit: int, before: Cursor | None = None) -> HistoryPage:
    """Return the posts in the trash, the latest deleted first."""
    until, post_id = before or (LATEST, MAX_ID)
    order = Tuple(Revision.until, Revision.post_id)
    query = _kept.where(_is_deleted, order < Tuple(until, post_id))
    query = query.order_by(Revision.until.desc(), Revision.post_id.desc())
    return _page(reader, query, limit, lambda last: Cursor(last.until, last.post_id))


def _page(reader: Reader, query: Any, limit: int, cursor: Callable[[Kept], int | Cursor]) -> HistoryPage:
    query = query.limit(limit + 1)
    if reader.dialect == "postgresql":
        query = bounded(query.select_extend(Revision.document), known=[column.name for column in _known])
    else:
        query = query.select_extend(_document)
    kept: list[Kept] = []
    size, last, more = 0, None, False
    for number, row in enumerate(reader.rows(query), 1):
        if len(kept) == limit or size > PAGE_BYTES:
            return HistoryPage(kept, cursor(last))
        last, more = Kept(*row), number > limit
        with suppress(Damaged):
            kept.append(last._replace(post=documents.without_content(last.post)))
            size += len(kept[-1].post) + len(last.post) // READ_SHARE
    return HistoryPage(kept, cursor(last) if more else None)


def revision(reader: Reader, ref: PostRef, version: int) -> bytes:
    """Return the document of a version of a post. Raises NotFound, Damaged."""
    of_post = Revision.post_id == posts.must_exist(reader, ref)
    return _find(reader, of_post & (Revision.version == version) & (Revision.state == "replaced"), "revision")


def trashed(reader: Reader, post_id: int) -> bytes:
    """Return the document of a post in the trash. Raises NotFound, Damaged."""
    return _find(reader, (Revision.post_id == post_id) & _is_deleted, "post in the trash")


def find_version(reader: Reader, post_id: int, version: int) -> bytes:
    """Return the document of a version that a post had until a change or its deletion. Raises NotFound, Damaged."""
    return _find(reader, (Revision.post_id == post_id) & (Revision.version == version), "revision")


def _find(reader: Reader, condition: Any, kind: str) -> bytes:
    found = reader.row(Revision.select(_document).where(condition))
    if found is None:
        raise NotFound(kind)
    if found[0] is None:
        raise Damaged
    return found[0]


# Write


def accept(document: bytes | None) -> None:
    """Accept every state of a post."""


def restore(tx: Transaction, ref: PostRef, version: int, by: str, check: Check = accept) -> bytes:
    """Restore the text, tags and image of an earlier version; slug, status and dates stay. Returns the document.

    Raises NotFound.
    """
    old = documents.load(revision(tx, ref, version))
    return posts.change(tx, ref, {name: old.get(name) for name in RESTORED}, check, by)


def restore_deleted(tx: Transaction, post_id: int, by: str, check: Check = accept) -> bytes:
    """Restore a post from the trash as it was; return its document. Raises NotFound.

    It gets another slug if its own is taken, and is a draft if its scheduled time has passed.
    """
    document = trashed(tx, post_id)
    check(document)
    return recreate(tx, documents.load(document), by)


def recreate(tx: Transaction, post: Document, by: str) -> bytes:
    """Create a post from the trash again, from its last version or an earlier one; return its document."""
    index.check_size(tx, {}, post)
    post = unscheduled(post, tx.now)
    if stored.is_taken(tx, post["slug"]):
        post = post | {"slug": other_slug(tx, post["slug"])}
    in_trash = (Revision.post_id == int(post["id"])) & _is_deleted
    (version,) = tx.row(Revision.select(Revision.version).where(in_trash))
    created = stored.write(tx, {}, documents.in_order(post | {"updated_at": tx.now}), "post.created", by)
    tx.execute(Post.update(version=version + 1).where(Post.id == created.id))
    tx.execute(Revision.update(state="restored").where(in_trash))
    return created.document


def unscheduled(post: Document, now: str) -> Document:
    """Return a post as a draft if its scheduled time has passed."""
    has_passed = post["status"] == "scheduled" and post["published_at"] <= now
    return documents.in_order(post | {"status": "draft", "published_at": None}) if has_passed else post


def other_slug(reader: Reader, slug: str) -> str:
    """Return a slug for a post whose own is taken."""
    return stored.free_slug(reader, slug[:SLUG_LENGTH].rstrip("-"))


def forget(tx: Transaction, post_id: int, check: Check = accept) -> None:
    """Delete a post in the trash for good, with its versions. Raises NotFound."""
    with suppress(Damaged):  # A damaged post can be deleted, too.
        check(trashed(tx, post_id))
    stored.forget(tx, post_id)


def prune(tx: Transaction, days: int) -> int:
    """Delete some of the versions that were replaced or deleted more than `days` ago; return how many."""
    is_old = Revision.until <= earlier(tx.now, timedelta(days=days))
    key = Tuple(Revision.post_id, Revision.version)
    pruned = 0
    for state in STATES:
        old = Revision.select(Revision.post_id, Revision.version).where(Revision.state == state, is_old)
        pruned += tx.execute(Revision.delete().where(key.in_(old.order_by(Revision.until).limit(PRUNED))))
    return pruned
