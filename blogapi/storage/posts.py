"""The posts: listed, found, made, changed, removed, and published at their time.

A scheduled post whose time has come is published for every read from that second on. `publish_due` makes it so in the
database, too, a little later; a change of the post does that first.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Literal, NamedTuple

from peewee import fn
from slugify import slugify

from blogapi.clock import earlier
from blogapi.storage import documents, tags, webhooks
from blogapi.storage.engine import Reader, Transaction
from blogapi.storage.errors import Damaged, IdempotencyKeyUsed, NotFound, NotUnique, PublicationTime, SlugTaken
from blogapi.storage.models import DOCUMENT, Idempotency, Post, Schedule
from blogapi.storage.query import Each, Param, Prepared, Statement
from blogapi.storage.search import index

PUBLISHED_POSTS = 20  # at most, in one transaction, of those that are due
PUBLISHED_BYTES = 256 * 1024  # after which that transaction ends: others wait for it

PUT_FIELDS = frozenset(documents.FIELDS) - {"id", "created_at", "updated_at"}

PostRef = int | str  # the id of a post, or its slug
Check = Callable[[bytes | None], None]
Outcome = Literal["created", "updated", "unchanged"]


class StoredPost(NamedTuple):
    """A post: its id, and its JSON."""

    id: int
    document: bytes


class Put(NamedTuple):
    """A post, and what was done to make it so: it was made, changed or left unchanged."""

    post: StoredPost
    outcome: Outcome


# Read


def find(reader: Reader, ref: PostRef) -> bytes:
    """Return the document of a post; raise NotFound."""
    return find_stored(reader, ref).document


def must_exist(reader: Reader, ref: PostRef) -> None:
    """Raise NotFound if there is no such post."""
    column = Post.slug if isinstance(ref, str) else Post.id
    if reader.row(Post.select(Post.id).where(column == ref)) is None:
        raise NotFound("post")


def find_stored(reader: Reader, ref: PostRef) -> StoredPost:
    """Return a post; raise NotFound."""
    post_id, status, document = _find(reader, ref)
    return StoredPost(post_id, documents.as_of(reader.now, status, document))


_one = Post.select(Post.id, Post.status, DOCUMENT)
_post_with_id = Prepared(_one.where(Post.id == Param("ref")))
_post_with_slug = Prepared(_one.where(Post.slug == Param("ref")))


def find_published(reader: Reader, ref: PostRef) -> bytes:
    """Return the document of a post that is published; raise NotFound for any other just as for one that never was.

    Nothing of another one is read: how long that takes would tell of it.
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


def _find(reader: Reader, ref: PostRef) -> tuple[int, str, bytes]:
    found = reader.row(_post_with_slug if isinstance(ref, str) else _post_with_id, ref=ref)
    if found is None:
        raise NotFound("post")
    return found


# Write


def add(tx: Transaction, fields: dict[str, Any], created_at: str | None = None, with_events: bool = True) -> StoredPost:
    """Make a post of validated fields; a slug that is left out is made from the title.

    It was made now, unless at `created_at`; without `with_events` no event is recorded. Raises SlugTaken,
    PublicationTime.
    """
    index.check_size(tx, {}, fields)
    post_id, slug = _new(tx, fields)
    made = {
        "id": str(post_id),
        "slug": slug,
        "published_at": published_at({}, fields, tx.now),
        "created_at": created_at or tx.now,
        "updated_at": tx.now,
    }
    post = documents.in_order(fields | made)
    document = _store(tx, _insert, post)
    tags.attach(tx, post_id, post["status"], post["tags"], post.get("published_at"))
    _reschedule(tx, post_id, {}, post)
    if with_events:
        webhooks.record(tx, post, "post.created", *_publication({}, post))
    index.reindex(tx, post_id, {}, post)
    return StoredPost(post_id, document)


def _new(tx: Transaction, fields: dict[str, Any]) -> tuple[int, str]:
    """Return the id and the slug of a post that is to be made; raise SlugTaken."""
    slug = fields.get("slug") or slug_of(fields["title"])
    post_id, is_taken = tx.row(_next, slug=slug)
    if is_taken and fields.get("slug"):
        raise SlugTaken
    return post_id, free_slug(tx, fields["title"]) if is_taken else slug


# The id after the greatest that there ever was, and whether a slug is taken
_is_taken = "EXISTS (SELECT 1 FROM post WHERE slug ="
_next = Each(
    sqlite=Statement(
        "SELECT max(ifnull((SELECT max(id) FROM post), 0), (SELECT seq FROM sqlite_sequence WHERE name = 'post')) + 1,"
        f" {_is_taken} ?)",
        [Param("slug")],
    ),
    postgresql=Statement(f"SELECT next_id('post'), {_is_taken} %s)", [Param("slug")]),
)
_columns = {getattr(Post, name): Param(name) for name in ("slug", "status", "published_at", "document")}
_insert = Prepared(Post.insert({Post.id: Param("id"), **_columns}))
_update = Prepared(Post.update(_columns).where(Post.id == Param("id")))


def _store(tx: Transaction, statement: Prepared, post: dict[str, Any]) -> bytes:
    """Insert or update the row of a post; return its document."""
    document = documents.dump(post)
    copies = {"slug": post["slug"], "status": post["status"], "published_at": post.get("published_at")}
    run = tx.defer if statement is _insert else tx.execute
    try:
        run(statement, id=int(post["id"]), document=document, **copies)
    except NotUnique:  # The id is not another's: one writes at a time.
        raise SlugTaken from None
    return document.encode()


def change(tx: Transaction, ref: PostRef, changes: dict[str, Any], check: Check) -> bytes:
    """Change a post by what RFC 7396 leaves of a request: None clears a field. Returns its document.

    `check` is given the document as it is, and may raise. Raises NotFound, SlugTaken and PublicationTime.
    """
    old_post = _current(tx, ref)
    check(old_post.document)
    old = documents.load(old_post.document)
    changes = changes | {"published_at": published_at(old, changes, tx.now)}
    if "tags" in changes:
        changes["tags"] = changes["tags"] or []
    return _replace(tx, old_post, old, documents.in_order(old | changes))


def put(
    tx: Transaction,
    slug: str,
    fields: dict[str, Any],
    check: Check | None = None,
    created_at: str | None = None,
    with_events: bool = True,
) -> Put:
    """Make the post with this slug be what the fields say: what they leave out is cleared, but status and published_at.

    A post that is missing is made as by `add`; one that is like that already is left alone. `check` is given the
    document as it is, or None. Raises PublicationTime.
    """
    try:
        stored = _current(tx, slug)
    except NotFound:
        if check:
            check(None)
        return Put(add(tx, {"status": "draft"} | fields | {"slug": slug}, created_at, with_events), "created")
    if check:
        check(stored.document)
    old = documents.load(stored.document)
    new = _as_put(old, fields, tx.now)
    if new == old:
        return Put(stored, "unchanged")
    return Put(StoredPost(stored.id, _replace(tx, stored, old, new, with_events)), "updated")


def would_put(reader: Reader, slug: str, fields: dict[str, Any]) -> Outcome:
    """Return what `put` would do; raise PublicationTime."""
    try:
        stored = find_stored(reader, slug)
    except NotFound:
        published_at({}, {"status": "draft"} | fields, reader.now)
        return "created"
    old = documents.load(stored.document)
    return "unchanged" if _as_put(old, fields, reader.now) == old else "updated"


def find_same(reader: Reader, slug: str, fields: dict[str, Any]) -> bytes | None:
    """Return the document of the post with this slug if it is, word for word, what these fields would make of it.

    The fields need not be valid: those of a post are.
    """
    try:
        document = find(reader, slug)
    except NotFound:
        return None
    post = {name: value for name, value in documents.load(document).items() if name in PUT_FIELDS}
    kept = {name: post[name] for name in ("slug", "status", "published_at") if name in post}
    return document if {"tags": []} | kept | fields == post else None


def _as_put(old: dict[str, Any], fields: dict[str, Any], now: str) -> dict[str, Any]:
    """Return what `put` makes of a post.

    A file that schedules a post still says so once its time has come: then the post is as it says.
    """
    has_come = fields.get("status") == "scheduled" and old["status"] == "published"
    if has_come and fields.get("published_at", old["published_at"]) == old["published_at"]:
        fields = fields | {"status": "published"}
    kept = {name: old[name] for name in ("id", "slug", "status", "created_at", "updated_at")}
    return documents.in_order(kept | fields | {"published_at": published_at(old, fields, now)})


def _replace(
    tx: Transaction, stored: StoredPost, old: dict[str, Any], new: dict[str, Any], with_events: bool = True
) -> bytes:
    """Write a post that was `old` as it is to be; return its document."""
    post_id, document = stored
    index.check_size(tx, old, new)
    if new != old:
        new = new | {"updated_at": tx.now}
        document = _store(tx, _update, new)
    if any(old.get(name) != new.get(name) for name in ("tags", "status", "published_at")):
        tags.detach(tx, post_id, old["status"], old["tags"])
        tags.attach(tx, post_id, new["status"], new["tags"], new.get("published_at"))
    _reschedule(tx, post_id, old, new)
    if with_events:
        webhooks.record(tx, new, "post.updated", *_publication(old, new))
    index.reindex(tx, post_id, old, new)
    return document


def delete(tx: Transaction, ref: PostRef, check: Check) -> None:
    """Delete a post, and with it its tags; `check` as for `change`. Raises NotFound."""
    post_id = _find(tx, ref)[0]
    try:
        document = _current(tx, post_id).document
        check(document)
        post = documents.load(document)
        index.check_size(tx, post, {})
    except Damaged:  # It can go all the same.
        tx.execute(_delete, id=post_id)
        tags.detach_all(tx, post_id)
        tx.defer(_unschedule, post_id=post_id)
        return
    tx.defer(_delete, id=post_id)
    tags.detach(tx, post_id, post["status"], post["tags"])
    _reschedule(tx, post_id, post, {})
    webhooks.record(tx, post, "post.deleted")
    index.reindex(tx, post_id, post, {})


_delete = Prepared(Post.delete().where(Post.id == Param("id")))


def _current(tx: Transaction, ref: PostRef) -> StoredPost:
    """Return a post, which is published first if its time has come."""
    post_id, status, document = _find(tx, ref)
    shown = documents.as_of(tx.now, status, document)
    if shown is not document:
        _publish(tx, post_id, shown)
    return StoredPost(post_id, shown)


def _publication(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return the event of a post that becomes published."""
    return ["post.published"] if new["status"] == "published" != old.get("status") else []


def _reschedule(tx: Transaction, post_id: int, old: dict[str, Any], new: dict[str, Any]) -> None:
    if old.get("status") == "scheduled":
        tx.defer(_unschedule, post_id=post_id)
    if new.get("status") == "scheduled":
        tx.defer(_schedule, post_id=post_id, published_at=new["published_at"])


_schedule = Prepared(
    Schedule.insert({Schedule.post_id: Param("post_id"), Schedule.published_at: Param("published_at")})
)
_unschedule = Prepared(Schedule.delete().where(Schedule.post_id == Param("post_id")))


# Publish


def next_due(reader: Reader) -> int | None:
    """Return the id of a post that is to be published by now and is not yet, if there is one."""
    found = reader.row(_due, now=reader.now)
    return found and found[0]


_due = Prepared(
    Schedule.select(Schedule.post_id)
    .where(Schedule.published_at <= Param("now"))
    .order_by(Schedule.published_at)
    .limit(1)
)


def publish_due(tx: Transaction) -> dict[int, bool]:
    """Publish some of the posts that are due; return their ids, and whether each is published.

    A damaged post cannot be published, and is not scheduled any more.
    """
    published: dict[int, bool] = {}
    size = 0
    while len(published) < PUBLISHED_POSTS and size <= PUBLISHED_BYTES and (post_id := next_due(tx)) is not None:
        try:
            size += len(_current(tx, post_id).document)
            published[post_id] = True
        except (Damaged, NotFound):
            published[post_id] = False
        tx.defer(_unschedule, post_id=post_id)  # in any case: the next one must get its turn
    return published


def later_than_now(reader: Reader) -> str | None:
    """Return the time of the newest post if it is later than now: the clock is behind."""
    found = reader.row(Post.select(DOCUMENT).order_by(Post.id.desc()).limit(1))
    created_at = documents.load(found[0])["created_at"] if found else ""
    return created_at if created_at > reader.now else None


def _publish(tx: Transaction, post_id: int, document: bytes) -> None:
    post = documents.load(document)
    was = post | {"status": "scheduled"}
    index.check_size(tx, was, post)
    _store(tx, _update, post)
    tags.publish(tx, post_id, post["tags"])
    tx.defer(_unschedule, post_id=post_id)
    webhooks.record(tx, post, "post.published")
    index.reindex(tx, post_id, was, post)


# Slugs

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


def slug_of(title: str) -> str:
    """Make a slug from a title."""
    return slugify(title, **SLUG_OPTIONS) or "untitled"


def free_slug(reader: Reader, title: str) -> str:
    """Make a slug from a title that no post has, in O(log n) look-ups for n posts with the same.

    Doubling finds a number that is free, halving then one that is free while the one below is taken.
    """
    slug = slug_of(title)
    if not _is_taken(reader, slug):
        return slug
    taken, free = 1, 2
    while _is_taken(reader, f"{slug}-{free}"):
        taken, free = free, free * 2
    while free - taken > 1:
        middle = (taken + free) // 2
        if _is_taken(reader, f"{slug}-{middle}"):
            taken = middle
        else:
            free = middle
    return f"{slug}-{free}"


_slug = Prepared(Post.select(Post.id).where(Post.slug == Param("slug")))


def _is_taken(reader: Reader, slug: str) -> bool:
    return reader.row(_slug, slug=slug) is not None


# Publication times


def published_at(old: dict[str, Any], changes: dict[str, Any], now: str) -> str | None:
    """Return the published_at that a post has after some changes; raise PublicationTime if there can be none such.

    Times in RFC 3339 UTC, whole seconds, compare as text.
    """
    status = changes.get("status") or old["status"]
    given, stored = changes.get("published_at"), old.get("published_at")
    if status == "scheduled":
        time = given or stored
        if not time or time <= now:
            raise PublicationTime("must be given, and in the future, for a scheduled post")
        return time
    if given and given > now:
        raise PublicationTime('must not be in the future; for that, change the post to "status": "scheduled"')
    if given:
        return given
    # The clock may have been set back since a post was published.
    kept = stored if stored and (stored <= now or old["status"] == status == "published") else None
    return kept or (now if status == "published" else None)


# Idempotency keys

KEPT = timedelta(hours=24)


class IdempotencyKey(NamedTuple):
    """What a client calls a request by, and by what it is known again."""

    api_key: bytes  # its digest
    name: str
    request: bytes  # SHA-256 of the body


def add_once(tx: Transaction, fields: dict[str, Any], key: IdempotencyKey | None) -> StoredPost:
    """Make a post as `add` does, unless a request with the same key did so within a day: then return that post.

    Raises IdempotencyKeyUsed if that request was another one, or its post is gone.
    """
    if key is None:
        return add(tx, fields)
    forget_idempotency_keys(tx)
    used = (Idempotency.digest == key.api_key) & (Idempotency.name == key.name)
    known = tx.row(Idempotency.select(Idempotency.request, Idempotency.post_id).where(used))
    if known is None:
        post = add(tx, fields)
        row = {"digest": key.api_key, "name": key.name, "request": key.request}
        tx.defer(Idempotency.insert(row | {"post_id": post.id, "created_at": tx.now}))
        return post
    request, post_id = known
    if request != key.request:
        raise IdempotencyKeyUsed("was used for another body within the last 24 hours")
    try:
        return StoredPost(post_id, find(tx, post_id))
    except NotFound:
        raise IdempotencyKeyUsed("the post it made has been deleted") from None


def forget_idempotency_keys(tx: Transaction) -> None:
    """Delete what needs to be remembered no longer."""
    tx.defer(Idempotency.delete().where(Idempotency.created_at <= earlier(tx.now, KEPT)))
