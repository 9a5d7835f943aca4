"""The history of posts: the versions before a change, the trash, and the way back."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from functools import partial
from itertools import dropwhile
from operator import itemgetter
from typing import Any, NamedTuple

from peewee import Ordering, Tuple

from blogapi.clock import earlier
from blogapi.post import STATUSES
from blogapi.storage import documents, posts, stored
from blogapi.storage.engine import Database, Reader, Transaction
from blogapi.storage.errors import Damaged, KeyName, NotFound
from blogapi.storage.models import AUTHORS, MAX_ID, ApiKey, Post, Revision
from blogapi.storage.pages import LATEST, Cursor, ListQuery, PostPage, bounded, cursor_of, page_of
from blogapi.storage.query import AsBytes
from blogapi.storage.stored import Fields, PostRef

MAX_PRUNED = 50  # versions, in one transaction
STATES = ("replaced", "deleted", "restored")
BY = "undo"
STEP_SECONDS = 0.010  # in one transaction
PAUSE_SECONDS = 0.025  # in which others write
MAX_CHAIN = 10  # posts that wait for each other's slugs
WAIT, PARK, SETTLE = range(3)  # turns of the posts whose slug another one has and will leave
RESTORED = ("title", "content", "excerpt", "tags", "cover_image")  # the fields that `restore` restores


class Kept(NamedTuple):
    """A stored version of a post, without its content."""

    post_id: int
    version: int
    until: str
    by: str  # who replaced or deleted it
    post: bytes


_document = AsBytes(Revision.document)
_is_deleted = Revision.state == "deleted"


def revisions(reader: Reader, ref: PostRef, limit: int, before: int | None = None) -> PostPage:
    """Return the versions of a post before the version `before`, newest first. Raises NotFound."""
    of_post = (Revision.post_id == posts.must_exist(reader, ref)) & (Revision.state == "replaced")
    is_before = Revision.version < (before or MAX_ID)
    return _page(reader, limit, of_post & is_before, [Revision.version.desc()], itemgetter(1))


def trash(reader: Reader, limit: int, before: Cursor | None = None) -> PostPage:
    """Return the posts in the trash, the latest deleted first."""
    is_before = Tuple(Revision.until, Revision.post_id) < Tuple(*before or (LATEST, MAX_ID))
    return _page(reader, limit, _is_deleted & is_before, [Revision.until.desc(), Revision.post_id.desc()], cursor_of)


def _page(reader: Reader, limit: int, condition: Any, order: list[Ordering], cursor: Callable) -> PostPage:
    """Return a page of `Kept` versions."""
    is_postgresql = reader.dialect == "postgresql"
    document = Revision.document if is_postgresql else _document
    columns = Revision.post_id, Revision.version, document, Revision.until, Revision.replaced_by
    query = Revision.select(*columns).where(condition).order_by(*order).limit(limit + 1)
    if is_postgresql:
        query = bounded(query, "until", "replaced_by", known=("post_id", "version"))
    asked = ListQuery(limit, fields=",".join(documents.WITHOUT_CONTENT))
    return page_of(reader.rows(query), asked, reader.now, cursor, lambda row, post: Kept(*row[:2], *row[3:], post))


def revision(reader: Reader, ref: PostRef, version: int) -> bytes:
    """Return the document of a version of a post. Raises NotFound, Damaged."""
    of_post = Revision.post_id == posts.must_exist(reader, ref)
    return _find(reader, of_post & (Revision.version == version) & (Revision.state == "replaced"), "revision")


def trashed(reader: Reader, post_id: int) -> bytes:
    """Return the document of a post in the trash. Raises NotFound, Damaged."""
    return _find(reader, (Revision.post_id == post_id) & _is_deleted, "post in the trash")


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


def restore(tx: Transaction, ref: PostRef, version: int, by: str, check: posts.Check = accept) -> bytes:
    """Restore RESTORED from an earlier version; slug, status and dates stay. Returns the document. Raises NotFound."""
    old = documents.load(revision(tx, ref, version))
    return posts.change(tx, ref, {name: old.get(name) for name in RESTORED}, check, by)


def restore_deleted(tx: Transaction, post_id: int, by: str, check: posts.Check = accept) -> bytes:
    """Restore a post from the trash as it was; return its document. Raises NotFound.

    It gets another slug if its own is taken, and is a draft if its scheduled time has passed.
    """
    document = trashed(tx, post_id)
    check(document)
    return recreate(tx, documents.load(document), by)


def recreate(tx: Transaction, post: Fields, by: str) -> bytes:
    """Create a post from the trash again, from its last version or an earlier one; return its document."""
    post = unscheduled(post, tx.now) | {"slug": stored.free_slug(tx, post["slug"])}
    in_trash = (Revision.post_id == int(post["id"])) & _is_deleted
    (version,) = tx.row(Revision.select(Revision.version).where(in_trash))
    created = stored.write(tx, {}, documents.in_order(post | {"updated_at": tx.now}), "post.created", by)
    tx.execute(Post.update(version=version + 1).where(Post.id == created.id))
    tx.execute(Revision.update(state="restored").where(in_trash))
    return created.document


def unscheduled(post: Fields, now: str, is_published: bool = False) -> Fields:
    """Return a post as a draft, or published, if its scheduled time has passed."""
    has_passed = post["status"] == "scheduled" and post["published_at"] <= now
    changes = {"status": "published"} if is_published else {"status": "draft", "published_at": None}
    return documents.in_order(post | changes) if has_passed else post


def forget(tx: Transaction, post_id: int, check: posts.Check = accept) -> None:
    """Delete a post in the trash for good, with its versions. Raises NotFound."""
    with suppress(Damaged):  # A damaged post can be deleted, too.
        check(trashed(tx, post_id))
    stored.forget(tx, post_id)


def prune(tx: Transaction, days: int) -> int:
    """Delete some of the versions that were replaced or deleted more than `days` ago; return how many."""
    is_old = Revision.state.in_(STATES) & (Revision.until <= earlier(tx.now, timedelta(days=days)))
    old = Revision.select(Revision.post_id, Revision.version).where(is_old).limit(MAX_PRUNED)
    return tx.execute(Revision.delete().where(Tuple(Revision.post_id, Revision.version).in_(old)))


# Undo


class Undone(NamedTuple):
    """The result of an undo for a post, or of its dry run."""

    post_id: int
    title: str
    action: str  # changed back, restored, deleted, or left; "" if it waits for its slug
    reason: str = ""  # why it was left, or has another slug


class Plan(NamedTuple):
    """A post as it is and as it was, {} for no post; or why it must be left."""

    present: Fields
    target: Fields
    obstacle: str = ""


def check_author(reader: Reader, name: str) -> None:
    """Raise KeyName unless a key has this name, or an author of the history."""
    columns = ApiKey.name, Post.author, Revision.author, Revision.replaced_by
    found = {each for column in columns for (each,) in reader.rows(column.model.select(column).distinct())}
    names = sorted({*AUTHORS, *found} - {""})
    if name not in names:
        raise KeyName(f"there is no key called {name!r}, nor a change by one; there are {', '.join(names)}")


def undo(database: Database, since: str, key: str | None = None, dry_run: bool = False) -> Iterator[Undone]:
    """Undo all changes since a time, or only those of a key; yield the result for each post.

    A post that another key changed since is left. Others can write in between. After an interruption, run it again.
    """

    def pause() -> None:
        database.engine.shrink()  # or the next write of a server would, and keep others waiting
        time.sleep(PAUSE_SECONDS)

    waiting = _changed_since(database, since)
    for turn in (WAIT, PARK, SETTLE):
        undo_post = partial(_undo_post, turn=turn, since=since, key=key)
        results = (undo_post(database, post_id) for post_id in waiting)
        if not dry_run:
            results = posts.write_each(database, undo_post, waiting, STEP_SECONDS, pause)
        waiting = []
        for undone in filter(None, results):
            if undone.action:
                yield undone
            else:
                waiting.append(undone.post_id)


def _changed_since(reader: Reader, since: str) -> list[int]:
    """Return the ids of posts that were changed since a time or are in the trash since, the latest change first."""
    changed = Post.select(Post.updated_at, Post.id).where(Post.status.in_(STATUSES), Post.updated_at >= since)
    deleted = Revision.select(Revision.until, Revision.post_id).where(_is_deleted, Revision.until >= since)
    return [post_id for _, post_id in sorted(reader.rows(changed + deleted), reverse=True)]


def _plan(reader: Reader, post_id: int, since: str, key: str | None) -> Plan | None:
    """Return the plan for a post, or None if there is nothing to undo."""
    changes = list(dropwhile(lambda change: key not in (None, change[0]), _changes(reader, post_id, since)))
    if not changes:
        return None
    before, present, target = changes[0][1], {}, {}
    try:
        with suppress(NotFound):
            present = documents.load(posts.find(reader, post_id))
        if before:
            version = (Revision.post_id == post_id) & (Revision.version == before)
            kept = documents.load(_find(reader, version, "revision"))
            target = unscheduled(kept, reader.now, present.get("status") == "published")
            target["updated_at"] = present.get("updated_at", reader.now)
    except Damaged:
        return Plan({"title": ""} | present, {}, "it is damaged")
    if before == 0:
        return Plan({"title": ""} | present, {}, "more was changed since than is kept")
    if target == present:
        return None
    others = {by for by, _ in changes} - {key, BY} if key else set()
    return Plan(present, target, f"{' and '.join(sorted(others))} changed it since" if others else "")


def _changes(reader: Reader, post_id: int, since: str) -> Iterator[tuple[str, int | None]]:
    """Yield the changes of a post since a time: by whom, and the version before.

    That is None if the post was not there, and 0 if it is not kept.
    """
    columns = Revision.version, Revision.since, Revision.author, Revision.until, Revision.replaced_by, Revision.state
    query = Revision.select(*columns).where(Revision.post_id == post_id).order_by(Revision.version)
    versions = list(reader.rows(query))
    if present := reader.row(Post.select(Post.version, Post.since, Post.author).where(Post.id == post_id)):
        versions.append((*present, "", "", "present"))
    last, last_state = 0, "restored"
    for version, begun, author, until, replaced_by, state in versions:
        follows = last == version - 1
        if begun >= since and not (follows and last_state == "replaced"):
            yield author, None if follows else 0  # created or restored; or versions are missing
        if until >= since:
            yield replaced_by, version
        last, last_state = version, state


def _undo_post(reader: Reader, post_id: int, turn: int, since: str, key: str | None) -> Undone | None:
    """Undo the changes of a post; without a transaction, only say so."""
    plan = _plan(reader, post_id, since, key)
    if plan is None:
        return None
    present, target, obstacle = plan
    tx = reader if isinstance(reader, Transaction) else None
    done = partial(Undone, post_id, (target or present)["title"])
    if obstacle:
        return done("left", obstacle)
    if not target:
        if tx:
            posts.delete(tx, post_id, accept, BY)
        return done("deleted")
    slug, reason = target["slug"], ""
    if slug != present.get("slug") and stored.is_taken(reader, slug):
        if turn == SETTLE or not _will_be_free(reader, slug, since, key):
            target = target | {"slug": present.get("slug") or stored.free_slug(reader, slug)}
            reason = f"its slug {slug} is taken, it {'has' if tx else 'would have'} {target['slug']}"
        elif tx:
            if turn == PARK and present:  # The other may wait for the slug of this one.
                _change(tx, post_id, present | {"slug": stored.free_slug(tx, slug)})
            return done("")
    if target == present:
        return done("left", reason)
    if tx and present:
        _change(tx, post_id, target)
    elif tx:
        recreate(tx, target, BY)
    return done("changed back" if present else "restored", reason)


def _will_be_free(reader: Reader, slug: str, since: str, key: str | None, depth: int = MAX_CHAIN) -> bool:
    """Return whether the undo takes a slug from the post that has it, perhaps once others have left theirs."""
    holder = reader.row(Post.select(Post.id).where(Post.slug == slug))
    if holder is None or depth == 0:
        return True
    plan = _plan(reader, holder[0], since, key)
    if plan is None or plan.obstacle or plan.target.get("slug") == slug:
        return False
    return not plan.target or _will_be_free(reader, plan.target["slug"], since, key, depth - 1)


def _change(tx: Transaction, post_id: int, new: Fields) -> None:
    post = stored.current(tx, post_id)
    old = documents.load(post.document)
    stored.write(tx, old, documents.in_order(new | {"updated_at": tx.now}), "post.updated", BY, post.version)
