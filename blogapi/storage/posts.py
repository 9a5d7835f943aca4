"""Posts: finding, creating, changing, replacing and deleting them."""

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from itertools import chain, islice, takewhile
from typing import Any, Literal, NamedTuple

from peewee import fn
from slugify import slugify

from blogapi.clock import earlier
from blogapi.post import FIELDS
from blogapi.storage import documents, stored, tags, webhooks
from blogapi.storage.engine import Database, Reader, Transaction
from blogapi.storage.errors import Conflict, Damaged, NotFound, SlugTaken, Unavailable
from blogapi.storage.models import DOCUMENT, Idempotency, Post, Schedule
from blogapi.storage.query import Param, Prepared
from blogapi.storage.search import index
from blogapi.storage.stored import Fields, PostRef, StoredPost

KEPT = timedelta(hours=24)  # an Idempotency-Key
BUSY_SECONDS = 60.0  # the longest wait of many writes for others
PUT_FIELDS = frozenset(FIELDS) - {"id", "created_at", "updated_at"}
# Titles are not HTML, and "it's" is one word.
SLUG_OPTIONS = {
    "algorithm": "modern",
    "backend": "text-unidecode",
    "max_length": 80,
    "word_boundary": True,
    "save_order": True,
    "entities": False,
    "decimal": False,
    "hexadecimal": False,
    "replacements": [("'", "")],
}

Write = Callable[[Transaction, Any], Any]
Check = Callable[[bytes | None], None]  # gets the document of a post, or None, and may raise
Outcome = Literal["created", "updated", "unchanged"]


class Put(NamedTuple):
    """A post, and the action of `put`."""

    post: StoredPost
    outcome: Outcome


class IdempotencyKey(NamedTuple):
    """The name that a client gave to a request."""

    api_key: bytes  # its digest
    name: str
    request: bytes  # SHA-256 of the body


# Read


def find(reader: Reader, ref: PostRef) -> bytes:
    """Return the document of a post. Raises NotFound."""
    _, _, status, document = stored.find(reader, ref)
    return documents.as_of(reader.now, status, document)


def must_exist(reader: Reader, ref: PostRef) -> int:
    """Return the id of a post. Raises NotFound."""
    found = reader.row(Post.select(Post.id).where((Post.slug if isinstance(ref, str) else Post.id) == ref))
    if found is None:
        raise NotFound("post")
    return found[0]


def find_published(reader: Reader, ref: PostRef) -> bytes:
    """Return the document of a published post. Raises NotFound for any other, just as for one that never existed.

    Nothing of any other post is read: the time it takes would reveal that it exists.
    """
    now = reader.now
    found = reader.row(_published_with_slug if isinstance(ref, str) else _published_with_id, ref=ref, now=now)
    if found is None:
        raise NotFound("post")
    return documents.as_of(now, *found)


_due_itself = Schedule.select(Schedule.post_id).where(
    Schedule.post_id == Post.id, Schedule.published_at <= Param("now")
)
_published = Post.select(Post.status, DOCUMENT).where((Post.status == "published") | fn.EXISTS(_due_itself))
_published_with_id = Prepared(_published.where(Post.id == Param("ref")))
_published_with_slug = Prepared(_published.where(Post.slug == Param("ref")))


# Create


def add(
    tx: Transaction, fields: Fields, created_at: str | None = None, with_events: bool = True, by: str = ""
) -> StoredPost:
    """Create a post of validated fields, and its slug from the title if none is given.

    It is created now unless `created_at` is given. Raises Conflict.
    """
    published = published_at({}, fields, tx.now)  # first: an id that was asked for is used up
    index.check_size(tx, {}, fields)
    post_id, slug = _new(tx, fields)
    created = {
        "id": str(post_id),
        "slug": slug,
        "published_at": published,
        "created_at": created_at or tx.now,
        "updated_at": tx.now,
    }
    return stored.write(tx, {}, documents.in_order(fields | created), "post.created" if with_events else None, by)


def add_once(tx: Transaction, fields: Fields, key: IdempotencyKey | None, by: str = "") -> StoredPost:
    """Create a post, unless a request with the same Idempotency-Key did so within a day: then return that post.

    Raises Conflict if that request was different, or if its post is deleted.
    """
    if key is None:
        return add(tx, fields, by=by)
    used = (Idempotency.digest == key.api_key) & (Idempotency.name == key.name)
    is_valid = Idempotency.created_at > earlier(tx.now, KEPT)
    known = tx.row(Idempotency.select(Idempotency.request, Idempotency.post_id).where(used, is_valid))
    if known is None:
        post = add(tx, fields, by=by)
        forget_idempotency_keys(tx)
        row = {"digest": key.api_key, "name": key.name, "request": key.request}
        tx.defer(Idempotency.insert(row | {"post_id": post.id, "created_at": tx.now}))
        return post
    request, post_id = known
    if request != key.request:
        raise Conflict("Idempotency-Key", "was used for another body within the last 24 hours")
    try:
        return StoredPost(post_id, find(tx, post_id))
    except NotFound:
        raise Conflict("Idempotency-Key", "the post that it created was deleted") from None


def forget_idempotency_keys(tx: Transaction) -> None:
    """Delete those that are older than a day."""
    tx.defer(Idempotency.delete().where(Idempotency.created_at <= earlier(tx.now, KEPT)))


def _new(tx: Transaction, fields: Fields) -> tuple[int, str]:
    """Return the id and the slug of a new post. Raises SlugTaken."""
    slug = fields.get("slug") or slug_of(fields["title"])
    post_id, is_taken = tx.row(_next, slug=slug, needed=bool(fields.get("slug")))
    if is_taken and fields.get("slug"):
        raise SlugTaken
    return post_id, stored.free_slug(tx, slug) if is_taken else slug


# The id after the greatest one ever used, and whether a slug is taken
_is_taken = "EXISTS (SELECT 1 FROM post WHERE slug = :slug)"
_last_id = "max(ifnull((SELECT max(id) FROM post), 0), (SELECT seq FROM sqlite_sequence WHERE name = 'post'))"
_next = Prepared(
    sqlite=f"SELECT {_last_id} + 1, {_is_taken}",
    postgresql=f"SELECT CASE WHEN {_is_taken} AND :needed THEN 0 ELSE next_id('post') END, {_is_taken}",
)


def slug_of(title: str) -> str:
    """Return a slug for a title."""
    return slugify(title, **SLUG_OPTIONS) or "untitled"


# Change


def change(tx: Transaction, ref: PostRef, changes: Fields, check: Check, by: str = "") -> bytes:
    """Change a post as RFC 7396 says: None clears a field. Returns its document.

    `by` names who changes it; "" keeps no revision of it.

    Raises NotFound, Conflict.
    """
    post = stored.current(tx, ref)
    check(post.document)
    old = documents.load(post.document)
    changes = changes | {"published_at": published_at(old, changes, tx.now)}
    if "tags" in changes:
        changes["tags"] = changes["tags"] or []
    return _replace(tx, post, old, documents.in_order(old | changes), "post.updated", by).document


def put(
    tx: Transaction,
    slug: str,
    fields: Fields,
    check: Check | None = None,
    created_at: str | None = None,
    with_events: bool = True,
    by: str = "",
) -> Put:
    """Replace the post with this slug, or create it as `add` does. Raises Conflict.

    Fields that are left out are cleared, except status and published_at. An identical post is not written.
    """
    try:
        post = stored.current(tx, slug)
    except NotFound:
        if check:
            check(None)
        return Put(add(tx, {"status": "draft"} | fields | {"slug": slug}, created_at, with_events, by), "created")
    if check:
        check(post.document)
    old = documents.load(post.document)
    new = _as_put(old, fields, tx.now)
    if new == old:
        return Put(post, "unchanged")
    return Put(_replace(tx, post, old, new, "post.updated" if with_events else None, by), "updated")


def would_put(reader: Reader, slug: str, fields: Fields) -> Outcome:
    """Return the outcome that `put` would have. Raises Conflict."""
    try:
        old = documents.load(find(reader, slug))
    except NotFound:
        published_at({}, {"status": "draft"} | fields, reader.now)
        return "created"
    return "unchanged" if _as_put(old, fields, reader.now) == old else "updated"


def find_same(reader: Reader, slug: str, fields: Fields) -> bytes | None:
    """Return the document of the post with this slug if these fields would not change it at all.

    The fields need not be validated: those of a post are valid.
    """
    try:
        document = find(reader, slug)
    except NotFound:
        return None
    post = {name: value for name, value in documents.load(document).items() if name in PUT_FIELDS}
    kept = {name: post[name] for name in ("slug", "status", "published_at") if name in post}
    return document if {"tags": []} | kept | fields == post else None


def _as_put(old: Fields, fields: Fields, now: str) -> Fields:
    """Return a post after `put`.

    A file that schedules a post still says so after the publication: the post matches it then.
    """
    has_come = fields.get("status") == "scheduled" and old["status"] == "published"
    if has_come and fields.get("published_at", old["published_at"]) == old["published_at"]:
        fields = fields | {"status": "published"}
    kept = {name: old[name] for name in ("id", "slug", "status", "created_at", "updated_at")}
    return documents.in_order(kept | fields | {"published_at": published_at(old, fields, now)})


def _replace(tx: Transaction, post: StoredPost, old: Fields, new: Fields, event: str | None, by: str) -> StoredPost:
    if new["slug"] != old["slug"] and stored.is_taken(tx, new["slug"]):
        raise SlugTaken
    if new == old:
        if event:
            webhooks.record(tx, {"post": new}, event)
        return post
    return stored.write(tx, old, new | {"updated_at": tx.now}, event, by, post.version)


def delete(tx: Transaction, ref: PostRef, check: Check, by: str = "") -> None:
    """Delete a post. It is in the trash, or gone with its revisions if `by` is "". Raises NotFound."""
    try:
        document = stored.current(tx, ref).document
        check(document)
        post = documents.load(document)
    except Damaged:
        _delete_damaged(tx, stored.find(tx, ref)[0])
        return
    stored.write(tx, post, {}, "post.deleted", by)


def _delete_damaged(tx: Transaction, post_id: int) -> None:
    tx.execute(Post.delete().where(Post.id == post_id))
    tx.execute(Schedule.delete().where(Schedule.post_id == post_id))
    tags.detach_all(tx, post_id)


def published_at(old: Fields, changes: Fields, now: str) -> str | None:
    """Return the published_at of a post after some changes. Raises Conflict if it cannot have one.

    Times in RFC 3339 UTC, whole seconds, compare as text.
    """
    status = changes.get("status") or old["status"]
    given = changes.get("published_at")
    stored = None if "published_at" in changes else old.get("published_at")  # RFC 7396: null clears it.
    if status == "scheduled":
        time = given or stored
        if not time or time <= now:
            raise Conflict("published_at", "must be given, and in the future, for a scheduled post")
        return time
    if given and given > now:
        raise Conflict("published_at", 'must not be in the future unless a change sets "status" to "scheduled"')
    if given:
        return given
    # The clock may have been set back since a post was published.
    kept = stored if stored and (stored <= now or old["status"] == status == "published") else None
    return kept or (now if status == "published" else None)


# Many posts


def write_each(
    database: Database, write: Write, items: Sequence[Any], seconds: float, pause: Callable[[], None]
) -> Iterator[Any]:
    """Write items in transactions that take no more of them after `seconds`, with a pause after each transaction.

    Each result is yielded once it is on disk. Waits BUSY_SECONDS for others that write, then raises Unavailable.
    """
    done = 0

    def write_some(tx: Transaction) -> list[Any]:
        until = time.monotonic() + seconds
        others = takewhile(lambda _: time.monotonic() <= until, islice(items, done + 1, None))
        return [write(tx, item) for item in chain([items[done]], others)]

    deadline = time.monotonic() + BUSY_SECONDS
    while done < len(items):
        try:
            results = database.write(write_some)
        except Unavailable as error:
            if error.retry_after is None or time.monotonic() > deadline:
                raise
            time.sleep(error.retry_after)
        else:
            pause()
            done += len(results)
            yield from results
            deadline = time.monotonic() + BUSY_SECONDS
