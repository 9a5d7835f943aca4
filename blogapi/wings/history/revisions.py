"""Read and restore revisions and posts in the trash."""

from collections.abc import Callable
from contextlib import suppress
from operator import itemgetter
from typing import Any, NamedTuple

from peewee import Ordering, Select, Tuple

from blogapi import documents
from blogapi.clock import LATEST
from blogapi.paging import Cursor, Page, bounded, cursor_of, page_of
from blogapi.posts import effects, publication, slugs
from blogapi.posts import storage as posts
from blogapi.posts.storage import Check, Fields, PostRef, StoredPost, no_check
from blogapi.storage.engine import AsBytes, Reader, Transaction
from blogapi.storage.errors import Damaged, DoesNotExist
from blogapi.storage.models import MAX_ID, Author, Revision

# Fields that `restore` restores by default: all except slug, former slugs, status and dates
RESTORED = [name for name in documents.INPUT_FIELDS if name not in documents.STAYING]


class KeptPost(NamedTuple):
    """An earlier version of a post. `post` is JSON without the content; the version was current until `until`."""

    post_id: int
    post: bytes
    until: str
    version: int
    author: str  # who replaced or deleted this version


_document = AsBytes(Revision.document)
_is_deleted = Revision.state == "deleted"


# Read


def page(reader: Reader, ref: PostRef, limit: int, before: int | None = None) -> Page[KeptPost, int]:
    """Return a page of a post's revisions before the version `before`, newest first. Raises DoesNotExist."""
    of_post = (Revision.post_id == posts.id_of(reader, ref)) & (Revision.state == "replaced")
    is_before = Revision.version < (before or MAX_ID)
    return _page(reader, limit, of_post & is_before, [Revision.version.desc()], itemgetter(3))


def trash(
    reader: Reader, limit: int, before: Cursor[int] | None = None, deleted_after: str = "", text: str = ""
) -> Page[KeptPost, Cursor[int]]:
    """Return a page of the trash, most recently deleted first. A search for `text` reads the whole trash."""
    is_before = Tuple(Revision.until, Revision.post_id) < Tuple(*before or (LATEST, MAX_ID))
    condition = _is_deleted & is_before & (Revision.until >= deleted_after)
    if text:
        condition &= Revision.document.contains(documents.dump([text])[2:-2])
    return _page(reader, limit, condition, [Revision.until.desc(), Revision.post_id.desc()], cursor_of)


def _page(reader: Reader, limit: int, condition: Any, order: list[Ordering], cursor: Callable) -> Page[KeptPost, Any]:
    is_postgresql = reader.engine.dialect == "postgresql"
    document = Revision.document if is_postgresql else _document
    columns = Revision.post_id, document, Revision.until, Revision.version, Revision.replaced_by
    query: Select = Revision.select(*columns).where(condition).order_by(*order).limit(limit + 1)
    if is_postgresql:
        query = bounded(query, "until", "version", "replaced_by", key="post_id")
    fields = ",".join(documents.WITHOUT_CONTENT)
    return page_of(reader.rows(query), limit, cursor, fields, lambda row, post: KeptPost._make(row)._replace(post=post))


def get(reader: Reader, ref: PostRef, version: int) -> bytes:
    """Return the document of a revision of a post. Raises DoesNotExist, or Damaged if it is corrupt."""
    of_post = Revision.post_id == posts.id_of(reader, ref)
    return _get(reader, of_post & (Revision.version == version) & (Revision.state == "replaced"), "revision")


def get_in_trash(reader: Reader, post_id: int) -> bytes:
    """Return the document of a post in the trash. Raises DoesNotExist, or Damaged if it is corrupt."""
    return _get(reader, (Revision.post_id == post_id) & _is_deleted, "post in the trash")


def get_deleted_id(reader: Reader, slug: str) -> int:
    """Search the whole trash for the last deleted post with this slug, and return its id. Raises DoesNotExist."""
    has_slug = Revision.document.contains(f'"slug":"{slug}"')
    query = Revision.select(Revision.post_id, _document).where(_is_deleted & has_slug).order_by(Revision.until.desc())
    for post_id, document in reader.rows(query):
        with suppress(Damaged):
            if documents.load(document)["slug"] == slug:
                return post_id
    raise DoesNotExist("post in the trash")


def get_version(reader: Reader, post_id: int, version: int) -> bytes:
    """Return the document of a past version in any state. Raises DoesNotExist, or Damaged if it is corrupt."""
    return _get(reader, (Revision.post_id == post_id) & (Revision.version == version), "version")


def _get(reader: Reader, condition: Any, kind: str) -> bytes:
    return documents.intact(*reader.get(kind, Revision.select(_document).where(condition)))


# Restore and delete


def restore(
    tx: Transaction, ref: PostRef, version: int, author: Author, check: Check = no_check, names: list[str] = RESTORED
) -> StoredPost:
    """Restore fields from a revision. Raises the same exceptions as `posts.change`."""
    old = documents.load(get(tx, ref, version))
    return posts.change(tx, ref, {name: old.get(name) for name in names}, author, check)


def restore_deleted(tx: Transaction, post_id: int, author: Author, check: Check = no_check) -> StoredPost:
    """Restore a post from the trash. Raises DoesNotExist."""
    document = get_in_trash(tx, post_id)
    check(document)
    post = documents.load(document)
    effects.check_permitted(author, post)  # checked before `recreate` makes a scheduled post a draft
    return recreate(tx, post, author)


def recreate(tx: Transaction, post: Fields, author: Author) -> StoredPost:
    """Recreate a deleted post from any of its versions."""
    former = slugs.still_free(tx, post.get("former_slugs", []), int(post["id"]))
    own = {"slug": slugs.find_free(tx, post["slug"]), "former_slugs": former, "updated_at": tx.now}
    post = publication.unscheduled(post, tx.now, is_published=False) | own
    in_trash = (Revision.post_id == int(post["id"])) & _is_deleted
    (version,) = tx.one(Revision.select(Revision.version).where(in_trash))
    created = posts.insert(tx, documents.in_order(post), author, version + 1)
    tx.execute(Revision.update(state="restored").where(in_trash))
    return created


def purge(tx: Transaction, post_id: int, check: Check = no_check) -> None:
    """Delete a post in the trash permanently, with its revisions. Raises DoesNotExist."""
    with suppress(Damaged):  # A damaged post can still be deleted.
        check(get_in_trash(tx, post_id))
    effects.purge(tx, post_id)
