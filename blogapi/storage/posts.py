"""The posts: listed, found, made, changed, removed, and published at their time.

A scheduled post whose time has come is published for every read from that second on. `publish_due` makes it so in the
database, too, a little later; a change of the post does that first.
"""

import json
from collections.abc import Callable, Iterator
from functools import cache, reduce
from operator import add as unite
from typing import Any, Literal, NamedTuple

from peewee import SQL, Select

from blogapi.storage import documents, events, slugs, tags
from blogapi.storage.errors import Damaged, NotFound, NotUnique, PublicationTime, SlugTaken, Unavailable
from blogapi.storage.models import MAX_ID, STATUSES, Post, PostTag, Schedule
from blogapi.storage.query import Param, Prepared, Statement
from blogapi.storage.transaction import Reader, Transaction

PAGE_BYTES = 4 * 1024 * 1024
PUBLISHED_POSTS = 20  # at most, in one transaction, of those that are due
PUBLISHED_BYTES = 256 * 1024  # after which that transaction ends: others wait for it

Key = int | str  # the id of a post, or its slug
NEEDED = {"id", "title", "status", "slug", "content", "tags", "created_at", "updated_at"}  # fields that every post has

Check = Callable[[bytes | None], None]
Outcome = Literal["made", "changed", "unchanged"]


class StoredPost(NamedTuple):
    """A post: its id, and its JSON."""

    id: int
    document: bytes


class Put(NamedTuple):
    """A post, and what was done to make it so: it was made, changed or left unchanged."""

    post: StoredPost
    outcome: Outcome


class Page(NamedTuple):
    """Some posts of a list, and the id of the last one if more follow."""

    documents: list[bytes]
    last: int | None


# Read


def page(reader: Reader, limit: int, status: str | None = None, tag: str | None = None, before: int = MAX_ID) -> Page:
    """Return the newest posts made before the post `before`, newest first; `tag` is folded.

    A page ends after `limit` posts, or after the post that brings it past PAGE_BYTES. Costs O(limit): an index gives
    the order for each combination of filters.
    """
    now = reader.now
    found: list[bytes] = []
    size = last = 0
    query = _newest_posts(status, tag is not None)
    for post_id, document_status, document in reader.rows(query, now=now, tag=tag, before=before, limit=limit + 1):
        if len(found) == limit or size > PAGE_BYTES:
            return Page(found, last)
        last = post_id
        if document_status == "scheduled" or document is None:
            try:
                document = _as_of(now, document_status, document)
            except Damaged:  # It is passed over, and can be deleted.
                continue
        found.append(document)
        size += len(document)
    return Page(found, None)


_document = Post.document.cast("BLOB")  # bytes, as it is answered: decoding and encoding would be for nothing


@cache
def _newest_posts(status: str | None, by_tag: bool) -> Prepared:
    """Return the query of a page, with the parameters now, tag, before and limit.

    Where several lists are merged it finds the ids first: a document can have four megabytes.
    """
    newest_first = Post.id.desc()
    columns = Post.select(Post.id, Post.status, _document)
    if status is None and not by_tag:
        return Prepared(columns.where(Post.id < Param("before")).order_by(newest_first).limit(Param("limit")))
    lists = [_ids(each, by_tag) for each in ([status] if status else STATUSES)]
    if status == "published":
        lists.append(_due_ids(by_tag))
    elif status == "scheduled":
        lists = [_ids_to_come(*lists)]
    ids = reduce(unite, lists).order_by(SQL("1").desc()).limit(Param("limit"))
    return Prepared(columns.where(Post.id.in_(ids)).order_by(newest_first))


def _ids(status: str, by_tag: bool) -> Select:
    """Return the query for the ids of the posts with a status, and perhaps a tag."""
    if by_tag:
        key = PostTag.post_id
        query = PostTag.select(key).where(PostTag.tag == Param("tag"), PostTag.status == status)
    else:
        key = Post.id
        query = Post.select(key).where(Post.status == status)
    return query.where(key < Param("before"))


def _ids_to_come(ids: Select) -> Select:
    """Return the query for those of the ids of scheduled posts whose time has not come."""
    (key,) = ids.selected_columns
    return ids.join(Schedule, on=Schedule.post_id == key).where(Schedule.published_at > Param("now"))


def _due_ids(by_tag: bool) -> Select:
    """Return the query for the ids of the posts, mostly none, that are to be published by now."""
    key = Schedule.post_id + 0  # not the primary key, for SQLite: it is the time that finds the few
    query = Schedule.select(key).where(Schedule.published_at <= Param("now"), key < Param("before"))
    if by_tag:
        carries = (PostTag.tag == Param("tag")) & (PostTag.status == "scheduled")
        query = query.join(PostTag, on=carries & (PostTag.post_id == Schedule.post_id))
    return query


def find(reader: Reader, key: Key) -> bytes:
    """Return the document of a post; raise NotFound."""
    return find_stored(reader, key).document


def must_exist(reader: Reader, key: Key) -> None:
    """Raise NotFound if there is no such post."""
    column = Post.slug if isinstance(key, str) else Post.id
    if reader.row(Post.select(Post.id).where(column == key)) is None:
        raise NotFound("post")


def find_stored(reader: Reader, key: Key) -> StoredPost:
    """Return a post; raise NotFound."""
    post_id, status, document = _find(reader, key)
    return StoredPost(post_id, _as_of(reader.now, status, document))


_one = Post.select(Post.id, Post.status, _document)
_post_with_id = Prepared(_one.where(Post.id == Param("key")))
_post_with_slug = Prepared(_one.where(Post.slug == Param("key")))


def _find(reader: Reader, key: Key) -> tuple[int, str, bytes]:
    found = reader.row(_post_with_slug if isinstance(key, str) else _post_with_id, key=key)
    if found is None:
        raise NotFound("post")
    return found


def _as_of(now: str, status: str, document: bytes | None) -> bytes:
    """Return a document as it is to be shown at a time."""
    if document is None:  # in a NOT NULL column: SQLite has no checksums
        raise Damaged
    try:
        if status == "scheduled" and documents.is_due(document, now):
            return documents.published(document)
    except ValueError as error:
        raise Damaged from error
    return document


def every(reader: Reader) -> Iterator[dict[str, Any]]:
    """Give every post, newest first, each as it is when it is read; memory holds one.

    Raises Unavailable at the end if some are damaged, saying which.
    """
    damaged = []
    before = MAX_ID
    while found := reader.row(_post_before, before=before):
        before, status, document = found
        try:
            yield _load(_as_of(reader.now, status, document))
        except Damaged:
            damaged.append(before)
    if damaged:
        raise Unavailable(f"these posts are damaged: {', '.join(map(str, damaged))}; all others were read")


_post_before = Prepared(_one.where(Post.id < Param("before")).order_by(Post.id.desc()).limit(1))


# Write


def add(tx: Transaction, fields: dict[str, Any], created_at: str | None = None, tell: bool = True) -> StoredPost:
    """Make a post of validated fields; a slug that is left out is made from the title.

    It was made now, unless at `created_at`; without `tell` no event is recorded. Raises SlugTaken and PublicationTime.
    """
    post_id = tx.row(_last_id)[0] + 1
    made = {
        "id": str(post_id),
        "slug": fields.get("slug") or slugs.free_slug(tx, fields["title"]),
        "published_at": _published_at({}, fields, tx.now),
        "created_at": created_at or tx.now,
        "updated_at": tx.now,
    }
    post = documents.in_order(fields | made)
    document = _store(tx, _insert, post)
    tags.attach(tx, post_id, post["status"], post["tags"])
    _reschedule(tx, post_id, {}, post)
    if tell:
        events.record(tx, post, "post.created", *_publication({}, post))
    return StoredPost(post_id, document)


# The greatest id that there ever was
_last_id = Statement("SELECT ifnull(max(seq), 0) FROM sqlite_sequence WHERE name = 'post'", [])
_columns = {Post.slug: Param("slug"), Post.status: Param("status"), Post.document: Param("document")}
_insert = Prepared(Post.insert({Post.id: Param("id"), **_columns}))
_update = Prepared(Post.update(_columns).where(Post.id == Param("id")))


def _store(tx: Transaction, statement: Prepared, post: dict[str, Any]) -> bytes:
    """Insert or update the row of a post; return its document."""
    document = documents.dump(post)
    try:
        tx.execute(statement, id=int(post["id"]), slug=post["slug"], status=post["status"], document=document)
    except NotUnique:  # The id is not another's: one writes at a time.
        raise SlugTaken from None
    return document.encode()


def change(tx: Transaction, key: Key, changes: dict[str, Any], check: Check) -> bytes:
    """Change a post by what RFC 7396 leaves of a request: None clears a field. Returns its document.

    `check` is given the document as it is, and may raise. Raises NotFound, SlugTaken and PublicationTime.
    """
    old_post = _current(tx, key)
    check(old_post.document)
    old = _load(old_post.document)
    changes = changes | {"published_at": _published_at(old, changes, tx.now)}
    if "tags" in changes:
        changes["tags"] = changes["tags"] or []
    return _replace(tx, old_post, old, documents.in_order(old | changes))


def put(
    tx: Transaction,
    slug: str,
    fields: dict[str, Any],
    check: Check | None = None,
    created_at: str | None = None,
    tell: bool = True,
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
        return Put(add(tx, {"status": "draft"} | fields | {"slug": slug}, created_at, tell), "made")
    if check:
        check(stored.document)
    old = _load(stored.document)
    new = _as_put(old, fields, tx.now)
    if new == old:
        return Put(stored, "unchanged")
    return Put(StoredPost(stored.id, _replace(tx, stored, old, new, tell)), "changed")


def would_put(reader: Reader, slug: str, fields: dict[str, Any]) -> Outcome:
    """Return what `put` would do; raise PublicationTime."""
    try:
        stored = find_stored(reader, slug)
    except NotFound:
        _published_at({}, {"status": "draft"} | fields, reader.now)
        return "made"
    old = _load(stored.document)
    return "unchanged" if _as_put(old, fields, reader.now) == old else "changed"


def unchanged_by(reader: Reader, slug: str, fields: dict[str, Any]) -> StoredPost | None:
    """Return the post with this slug if `put` would leave it alone."""
    try:
        stored = find_stored(reader, slug)
        old = _load(stored.document)
        return stored if _as_put(old, fields, reader.now) == old else None
    except (NotFound, PublicationTime):
        return None


def _as_put(old: dict[str, Any], fields: dict[str, Any], now: str) -> dict[str, Any]:
    """Return what `put` makes of a post."""
    kept = {name: old[name] for name in ("id", "slug", "status", "created_at", "updated_at")}
    return documents.in_order(kept | fields | {"published_at": _published_at(old, fields, now)})


def _replace(tx: Transaction, stored: StoredPost, old: dict[str, Any], new: dict[str, Any], tell: bool = True) -> bytes:
    """Write a post that was `old` as it is to be; return its document."""
    post_id, document = stored
    if new != old:
        new = new | {"updated_at": tx.now}
        document = _store(tx, _update, new)
    if (old["tags"], old["status"]) != (new["tags"], new["status"]):
        tags.detach(tx, post_id, old["status"], old["tags"])
        tags.attach(tx, post_id, new["status"], new["tags"])
    _reschedule(tx, post_id, old, new)
    if tell:
        events.record(tx, new, "post.updated", *_publication(old, new))
    return document


def remove(tx: Transaction, key: Key, check: Check) -> None:
    """Delete a post, and with it its tags; `check` as for `change`. Raises NotFound."""
    post_id = _find(tx, key)[0]
    try:
        document = _current(tx, post_id).document
        check(document)
        post = _load(document)
    except Damaged:  # It can go all the same.
        tx.execute(_delete, id=post_id)
        tags.detach_all(tx, post_id)
        tx.execute(_unschedule, post_id=post_id)
        return
    tx.execute(_delete, id=post_id)
    tags.detach(tx, post_id, post["status"], post["tags"])
    _reschedule(tx, post_id, post, {})
    events.record(tx, post, "post.deleted")


_delete = Prepared(Post.delete().where(Post.id == Param("id")))


def _load(document: bytes) -> dict[str, Any]:
    try:
        post = json.loads(document)
        if post.keys() >= NEEDED:
            return post
    except (ValueError, AttributeError) as error:
        raise Damaged from error
    raise Damaged


def _current(tx: Transaction, key: Key) -> StoredPost:
    """Return a post, which is published first if its time has come."""
    post_id, status, document = _find(tx, key)
    shown = _as_of(tx.now, status, document)
    if shown is not document:
        _publish(tx, post_id, shown)
    return StoredPost(post_id, shown)


def _publication(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return the event of a post that becomes published."""
    return ["post.published"] if new["status"] == "published" != old.get("status") else []


def _reschedule(tx: Transaction, post_id: int, old: dict[str, Any], new: dict[str, Any]) -> None:
    if old.get("status") == "scheduled":
        tx.execute(_unschedule, post_id=post_id)
    if new.get("status") == "scheduled":
        tx.execute(Schedule.insert(post_id=post_id, published_at=new["published_at"]))


_unschedule = Prepared(Schedule.delete().where(Schedule.post_id == Param("post_id")))


def _published_at(old: dict[str, Any], changes: dict[str, Any], now: str) -> str | None:
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


def publish_due(tx: Transaction) -> list[int]:
    """Publish scheduled posts whose time has come, as many as are quickly written.

    Returns the ids of those that cannot be published because they are damaged; they are scheduled no longer.
    """
    damaged = []
    size = 0
    for _ in range(PUBLISHED_POSTS):
        post_id = next_due(tx)
        if post_id is None or size > PUBLISHED_BYTES:
            break
        try:
            size += len(_current(tx, post_id).document)
        except (Damaged, NotFound):
            damaged.append(post_id)
        tx.execute(_unschedule, post_id=post_id)  # whatever came of it: the next one must get its turn
    return damaged


def _publish(tx: Transaction, post_id: int, document: bytes) -> None:
    post = _load(document)
    _store(tx, _update, post)
    tags.publish(tx, post_id, post["tags"])
    tx.execute(_unschedule, post_id=post_id)
    events.record(tx, post, "post.published")
