"""Find, create, change, replace, delete and publish posts in the database.

A post's row contains its document, the JSON of the response. The `effects` module writes everything else.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

from peewee import Field, Node, Select

from blogapi import documents
from blogapi.posts import effects, publication, slugs
from blogapi.posts.effects import Fields, Outcome
from blogapi.posts.params import MergePatch, ParamsError, check_params, equal, merge
from blogapi.storage.engine import Compiled, Placeholder, Reader, Transaction, placeholders
from blogapi.storage.errors import Damaged, DoesNotExist, NeedsThread, PostDoesNotExist, Rejected
from blogapi.storage.models import DOCUMENT, Author, Post

MAX_PUBLISHED = 20  # at most this many due posts are published in a transaction
MAX_PUBLISHED_BYTES = 128 * 1024  # a transaction stops publishing after this many bytes, because other clients may wait
MAX_SHARED = 64 * 1024  # maximum length of a post (in characters) in a shared transaction; a longer one needs a thread
COPIED_FIELDS = ("slug", "status", "published_at", "updated_at")  # fields copied from the document to indexed columns

PostRef = int | str  # a post's id or slug
Check = Callable[[bytes | None], None]  # takes the document of a post, or None; raises to refuse a change


class StoredPost(NamedTuple):
    """A post after a write, and what the write did to it."""

    id: int
    document: bytes
    version: int
    outcome: Outcome = "unchanged"


def no_check(document: bytes | None) -> None:
    """The default Check, which refuses nothing."""


# Find


def get(reader: Reader, ref: PostRef, published_only: bool = False) -> bytes:
    """Return the document of a post. Raises DoesNotExist, with `published_only` also for an unpublished post."""
    # Nothing is read about an unpublished post, so that response times do not reveal it.
    return documents.intact(*_row(reader, SELECT_PUBLISHED if published_only else SELECT_DOCUMENT, ref))


def id_of(reader: Reader, ref: PostRef) -> int:
    """Return the id of a post. Raises DoesNotExist."""
    return _row(reader, SELECT_ID, ref)[0]


def get_to_change(tx: Transaction, ref: PostRef) -> StoredPost:
    """Return a post for a write, after publishing it if it is due. Raises DoesNotExist, or Damaged if it is corrupt."""
    post_id, version, is_due, document = _row(tx, SELECT_TO_CHANGE, ref, now=tx.now)
    check_size(tx, document or b"")  # The document is None if it is damaged.
    return StoredPost(post_id, publish(tx, post_id, document) if is_due else documents.intact(document), version)


def _row(reader: Reader, queries: dict[type, Compiled], ref: PostRef, **values: str) -> tuple:
    row = reader.row(queries[type(ref)], ref=ref, **values)
    if row is None:
        raise PostDoesNotExist
    return row


def check_size(tx: Transaction, text: str | bytes) -> None:
    """Raise NeedsThread for a long post, because parsing and writing it would delay other requests."""
    if len(text) > MAX_SHARED and not tx.may_be_slow:
        raise NeedsThread


def queries_by_ref(query: Select) -> dict[type, Compiled]:
    """Return two queries that find one of these posts: by its id, and by its slug."""
    conditions = {int: Post.id == Placeholder("ref"), str: slugs.has_slug(Placeholder("ref"))}
    return {kind: Compiled(query.where(condition)) for kind, condition in conditions.items()}


IS_DUE = (Post.status == "scheduled") & (Post.published_at <= Placeholder("now"))
SELECT_ID = queries_by_ref(Post.select(Post.id))
SELECT_DOCUMENT = queries_by_ref(Post.select(DOCUMENT))
SELECT_PUBLISHED = queries_by_ref(Post.select(DOCUMENT).where(Post.status == "published"))
SELECT_TO_CHANGE = queries_by_ref(Post.select(Post.id, Post.version, IS_DUE, DOCUMENT))


# Create


def add(
    tx: Transaction,
    fields: Fields,
    author: Author,
    *,
    created_at: str | None = None,
    with_events: bool = True,
    allow_future_draft: bool = False,
) -> StoredPost:
    """Create a post from validated fields; by default, it is a draft with a slug from its title.

    `created_at` defaults to now. With `allow_future_draft`, a draft may have a future date. Raises Rejected.
    """
    check_size(tx, fields["content"])
    fields = {"status": "draft"} | fields
    # Check the date first, because `new_id_and_slug` uses up an id on PostgreSQL even if the post is then refused.
    published = publication.publication_date({}, fields, tx.now, allow_future_draft)
    post_id, slug = slugs.new_id_and_slug(tx, fields)
    times = {"created_at": created_at or tx.now, "updated_at": tx.now, "published_at": published}
    post = slugs.with_former({}, fields | {"id": str(post_id), "slug": slug} | times)
    return insert(tx, documents.in_order(post), author, with_events=with_events)


def insert(tx: Transaction, post: Fields, author: Author, version: int = 1, *, with_events: bool = True) -> StoredPost:
    """Insert a complete post. Raises NotPermitted, or SlugTaken if another post has one of its former slugs."""
    check_size(tx, post["content"])  # `add` has checked this before, but `recreate` has not.
    post_id, document = int(post["id"]), documents.dump(post)
    slugs.check_former(tx, post_id, {}, post)
    copies = {name: post.get(name) for name in COPIED_FIELDS}
    effects.run(tx, "created", post_id, {}, post, author, with_events=with_events)
    tx.defer(INSERT, id=post_id, document=document, version=version, since=tx.now, author=author.name, **copies)
    return StoredPost(post_id, document.encode(), version, "created")


INSERT = Compiled(Post.insert(placeholders(Post)))


# Change


def change(
    tx: Transaction,
    ref: PostRef,
    changes: Fields,
    author: Author,
    check: Check = no_check,
    *,
    allow_future_draft: bool = False,
) -> StoredPost:
    """Change a post. Raises DoesNotExist, or Rejected if the change is not possible.

    `changes` are fields as for `add`; params can be a MergePatch. An empty value or, if optional, None clears a field.
    """
    post = get_to_change(tx, ref)
    check(post.document)
    old = documents.load(post.document)
    new = as_changed(tx, old, changes, allow_future_draft)
    if is_same(old, new):
        effects.run(tx, "unchanged", post.id, old, new, author)
        return post
    return write_version(tx, post, old, new, author)


def as_changed(reader: Reader, old: Fields, changes: Fields, allow_future_draft: bool = False) -> Fields:
    """Return the post that `change` would write. Raises Rejected."""
    changes = changes | {"published_at": publication.publication_date(old, changes, reader.now, allow_future_draft)}
    if isinstance(changes.get("params"), MergePatch):
        changes["params"] = _merged_params(old.get("params"), changes["params"])
    return documents.in_order(slugs.with_former(old, old | changes, slugs.was_public(reader, old, changes)))


def _merged_params(params: Fields | None, patch: MergePatch) -> Fields:
    """Apply a merge patch to params. Raises Rejected."""
    try:
        check_params(merged := merge(params, patch))
    except ParamsError as error:
        raise Rejected(f"params{error.place}", error.reason) from None
    return merged


def is_same(old: Fields, new: Fields) -> bool:
    """Return whether two versions of a post are identical as JSON."""
    return old == new and equal(old.get("params"), new.get("params"))


def put(
    tx: Transaction,
    ref: PostRef,
    fields: Fields,
    author: Author,
    check: Check = no_check,
    *,
    created_at: str | None = None,
    with_events: bool = True,
) -> StoredPost:
    """Replace a post or, if no post has the slug `ref`, create one the same way `add` does.

    Fields that are left out are cleared, except slug, status, published_at and former_slugs. If the post is already the
    same, nothing is written. Raises Rejected, or DoesNotExist if `ref` is an unknown id.
    """
    try:
        post = get_to_change(tx, ref)
    except DoesNotExist:
        if isinstance(ref, int):
            raise
        check(None)
        return add(tx, fields | {"slug": ref}, author, created_at=created_at, with_events=with_events)
    old = documents.load(post.document)
    refuse_former_slug(old, ref)
    check(post.document)
    new = publication.as_put(old, fields, tx.now, slugs.was_public(tx, old, fields))
    if is_same(old, new):
        effects.run(tx, "unchanged", post.id, old, new, author, with_events=False)
        return post
    return write_version(tx, post, old, new, author, with_events=with_events)


def refuse_former_slug(post: Fields, ref: PostRef) -> None:
    """Raise Rejected if `ref` is a former slug of the post, because a file with an old name must not rename it."""
    if isinstance(ref, str) and ref != post["slug"]:
        raise Rejected("slug", f"post {post['id']} used to have this slug; its slug is now {post['slug']}")


def write_version(
    tx: Transaction, post: StoredPost, old: Fields, new: Fields, author: Author, *, with_events: bool = True
) -> StoredPost:
    """Replace a post with a new version, and keep the current one in the history. Raises SlugTaken."""
    check_size(tx, new["content"])
    if new["slug"] != old["slug"]:
        slugs.check_free(tx, new["slug"], post.id)
    slugs.check_former(tx, post.id, old, new)
    new = new | {"updated_at": tx.now}
    document = documents.dump(new)
    effects.run(tx, "updated", post.id, old, new, author, post.version, with_events=with_events)
    _update(tx, old, new, document, author)
    return StoredPost(post.id, document.encode(), post.version + 1, "updated")


def _update(tx: Transaction, old: Fields, new: Fields, document: str, author: Author | None = None) -> None:
    """Write the document and the columns that differ. With an author, this creates a new version."""
    changed = [name for name in COPIED_FIELDS if old.get(name) != new.get(name)]
    values = {name: new.get(name) for name in changed}
    if author is not None:
        values |= {"since": tx.now, "author": author.name}
    tx.defer(_update_query(*changed, is_version=author is not None), id=int(new["id"]), document=document, **values)


@cache
def _update_query(*columns: str, is_version: bool) -> Compiled:
    """Return the UPDATE for the document and only these columns, so that other columns' indexes are not written."""
    values: dict[Field, Node] = {**placeholders(Post, "document", *columns)}
    if is_version:
        values |= {Post.version: Post.version + 1, Post.since: Placeholder("since"), Post.author: Placeholder("author")}
    return Compiled(Post.update(values).where(Post.id == Placeholder("id")))


# Delete


def delete(tx: Transaction, ref: PostRef, author: Author, check: Check = no_check, *, permanent: bool = False) -> None:
    """Move a post to the trash or, if `permanent` is true, delete it with its history. Raises DoesNotExist.

    A damaged post cannot be moved to the trash, so it is deleted for good, without a call to `check`.
    """
    try:
        post = get_to_change(tx, ref)
        check(post.document)
        old = documents.load(post.document)
    except Damaged:
        post_id = id_of(tx, ref)
        effects.run_for_damaged(tx, post_id, author)
        tx.defer(DELETE, id=post_id)
        return
    effects.run(tx, "purged" if permanent else "deleted", post.id, old, {}, author, post.version)
    tx.defer(DELETE, id=post.id)


DELETE = Compiled(Post.delete().where(Post.id == Placeholder("id")))


# Publish


def publish_due(tx: Transaction) -> dict[int, bool]:
    """Publish a batch of due posts; return a dict that maps each id to whether the post was published.

    A damaged post is not published; its publication time is removed, so that it does not block later posts.
    """
    published: dict[int, bool] = {}
    size = 0
    while (
        len(published) < MAX_PUBLISHED and size <= MAX_PUBLISHED_BYTES and (row := tx.row(SELECT_NEXT_DUE, now=tx.now))
    ):
        post_id, document = row
        check_size(tx, document or b"")
        try:
            size += len(publish(tx, post_id, document))
            published[post_id] = True
        except (Damaged, *documents.MALFORMED):
            tx.execute(Post.update(published_at=None).where(Post.id == post_id))
            published[post_id] = False
    return published


def publish(tx: Transaction, post_id: int, document: bytes | None) -> bytes:
    """Publish a due post without creating a version; return its document. Raises Damaged."""
    old = documents.load(document)
    if old["status"] != "scheduled" or "published_at" not in old:
        raise Damaged
    new = old | {"status": "published", "updated_at": tx.now}
    text = documents.dump(new)
    effects.run(tx, "published", post_id, old, new, Author(""))
    _update(tx, old, new, text)
    return text.encode()


SELECT_ANY_DUE = Compiled(Post.select(Post.id).where(IS_DUE).limit(1))
SELECT_NEXT_DUE = Compiled(Post.select(Post.id, DOCUMENT).where(IS_DUE).order_by(Post.published_at, Post.id).limit(1))
