"""The row of a post, with its tags, events, time of publication and words.

A scheduled post whose time has come is published for every read from that second on. `publish_due` publishes it in the
database a little later, unless a change of the post does so first.
"""

from functools import cache
from typing import Any, NamedTuple

from blogapi.post import fold
from blogapi.storage import documents, search, tags, webhooks
from blogapi.storage.engine import Reader, Transaction
from blogapi.storage.errors import Damaged, NotFound
from blogapi.storage.models import DOCUMENT, MAX_ID, Post, Revision, Schedule
from blogapi.storage.query import Param, Prepared, params
from blogapi.storage.search import index

MAX_REVISIONS = 50  # of a post
PUBLISHED_POSTS = 20  # at most, in one transaction
PUBLISHED_BYTES = 256 * 1024  # after which a transaction ends, as others wait for it
SLUG_LENGTH = 90  # of a slug that gets a number, at most
COPIES = ("slug", "status", "published_at", "updated_at")  # of the document, in columns with an index

PostRef = int | str  # the id of a post, or its slug
Fields = dict[str, Any]


class StoredPost(NamedTuple):
    """A post: its id, its JSON, and the number of its version if that is known."""

    id: int
    document: bytes
    version: int = MAX_ID


def find(reader: Reader, ref: PostRef) -> tuple[int, int, str, bytes]:
    """Return the id, version, status and document of a post. Raises NotFound."""
    found = reader.row(_post_with_slug if isinstance(ref, str) else _post_with_id, ref=ref)
    if found is None:
        raise NotFound("post")
    return found


_one = Post.select(Post.id, Post.version, Post.status, DOCUMENT)
_post_with_id = Prepared(_one.where(Post.id == Param("ref")))
_post_with_slug = Prepared(_one.where(Post.slug == Param("ref")))


def current(tx: Transaction, ref: PostRef) -> StoredPost:
    """Return a post, which is published first if its time has come."""
    post_id, version, status, document = find(tx, ref)
    shown = documents.as_of(tx.now, status, document)
    if shown is not document:
        write(tx, documents.load(document), documents.load(shown), "post.published")
    return StoredPost(post_id, shown, version)


def write(
    tx: Transaction, old: Fields, new: Fields, event: str | None, by: str | None = None, version: int = MAX_ID
) -> StoredPost:
    """Replace the post `old` by `new`, with its tags, events and words; {} stands for no post.

    The event is recorded, and the publication of a post that becomes published. `by` is the author of the new version,
    "" to keep no version, None for a publication at its time. Up to a `version` of MAX_REVISIONS none is dropped.
    """
    index.check_size(tx, old, new)
    post_id, document = int((new or old)["id"]), documents.dump(new) if new else ""
    if old and by:
        _keep(tx, post_id, by, "replaced" if new else "deleted", version)
    changed = [name for name in COPIES if old.get(name) != new.get(name)]
    if new:
        _write_row(tx, old, new, changed, by, document)
    else:
        tx.defer(_delete, id=post_id)
        if not by:
            forget(tx, post_id)
    _write_copies(tx, post_id, old, new, changed)
    if event:
        is_publication = new.get("status") == "published" != old.get("status")
        types = dict.fromkeys([event, "post.published"] if is_publication else [event])
        webhooks.record(tx, {"post": new or old}, *types)
    search.reindex(tx, post_id, old, new)
    return StoredPost(post_id, document.encode())


def _write_row(tx: Transaction, old: Fields, new: Fields, changed: list[str], by: str | None, document: str) -> None:
    """Insert or update the row of a post."""
    values = {name: new.get(name) for name in COPIES} | {"version": 1, "since": tx.now, "author": by or ""}
    statement = _update(*changed, is_version=by is not None) if old else _insert
    tx.defer(statement, id=int(new["id"]), document=document, **values)


def _write_copies(tx: Transaction, post_id: int, old: Fields, new: Fields, changed: list[str]) -> None:
    """Write the tags and the schedule of a post, if they differ."""
    dated = {"status", "published_at"}.intersection(changed)
    if dated or old.get("tags") != new.get("tags"):
        if old:
            tags.detach(tx, post_id, old["status"], list(map(fold, old["tags"])))
        if new:
            tags.attach(tx, post_id, new["status"], new["tags"], new.get("published_at"))
    if dated and old.get("status") == "scheduled":
        tx.defer(_unschedule, post_id=post_id)
    if dated and new.get("status") == "scheduled":
        tx.defer(_schedule, post_id=post_id, published_at=new["published_at"])


@cache
def _update(*columns: str, is_version: bool) -> Prepared:
    """Return the statement that changes a document and these columns: only their indexes are written."""
    values = params(Post, "document", *columns)
    if is_version:
        values |= {Post.version: Post.version + 1, Post.since: Param("since"), Post.author: Param("author")}
    return Prepared(Post.update(values).where(Post.id == Param("id")))


_insert = Prepared(Post.insert(params(Post)))
_delete = Prepared(Post.delete().where(Post.id == Param("id")))
_schedule = Prepared(Schedule.insert(params(Schedule)))
_unschedule = Prepared(Schedule.delete().where(Schedule.post_id == Param("post_id")))


# Revisions


def _keep(tx: Transaction, post_id: int, by: str, state: str, version: int) -> None:
    """Keep the present version of a post, and no more than MAX_REVISIONS of one that is there."""
    tx.defer(_insert_revision, id=post_id, now=tx.now, by=by, state=state)
    if state == "replaced" and version > MAX_REVISIONS:
        tx.defer(_drop_oldest, id=post_id)


def forget(tx: Transaction, post_id: int) -> None:
    """Delete all stored versions of a post."""
    tx.defer(_forget, id=post_id)


_version = Post.select(
    Post.id, Post.version, Post.since, Post.author, Param("now"), Param("by"), Param("state"), Post.document
)
_insert_revision = Prepared(Revision.insert_from(_version.where(Post.id == Param("id")), Revision._meta.sorted_fields))
_oldest = Post.select(Post.version - MAX_REVISIONS).where(Post.id == Param("id"))
_drop_oldest = Prepared(Revision.delete().where(Revision.post_id == Param("id"), Revision.version <= _oldest))
_forget = Prepared(Revision.delete().where(Revision.post_id == Param("id")))


# Publish


def next_due(reader: Reader) -> int | None:
    """Return the id of a post that is due, if any."""
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

    A damaged post cannot be published; it is no longer scheduled.
    """
    published: dict[int, bool] = {}
    size = 0
    while len(published) < PUBLISHED_POSTS and size <= PUBLISHED_BYTES and (post_id := next_due(tx)) is not None:
        try:
            size += len(current(tx, post_id).document)
            published[post_id] = True
        except (Damaged, NotFound):
            published[post_id] = False
        tx.defer(_unschedule, post_id=post_id)  # even for a damaged post: the next one must get its turn
    return published


def later_than_now(reader: Reader) -> str | None:
    """Return the time of the newest post if it is later than now: the clock is behind."""
    found = reader.row(Post.select(DOCUMENT).order_by(Post.id.desc()).limit(1))
    created_at = documents.load(found[0])["created_at"] if found else ""
    return created_at if created_at > reader.now else None


# Slugs


def free_slug(reader: Reader, slug: str) -> str:
    """Return a slug, with a number if it is taken, in O(log n) look-ups for n posts with the same.

    Doubling finds a free number; bisection then finds a free one whose predecessor is taken.
    """
    if not is_taken(reader, slug):
        return slug
    if len(slug) > SLUG_LENGTH:
        return free_slug(reader, slug[:SLUG_LENGTH].rstrip("-"))
    taken, free = 1, 2
    while is_taken(reader, f"{slug}-{free}"):
        taken, free = free, free * 2
    while free - taken > 1:
        middle = (taken + free) // 2
        if is_taken(reader, f"{slug}-{middle}"):
            taken = middle
        else:
            free = middle
    return f"{slug}-{free}"


def is_taken(reader: Reader, slug: str) -> bool:
    return reader.row(_id_of_slug, slug=slug) is not None


_id_of_slug = Prepared(Post.select(Post.id).where(Post.slug == Param("slug")))
