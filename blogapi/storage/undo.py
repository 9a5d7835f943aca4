"""Undo: returning every post to its state at a time."""

import time
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from blogapi.post import STATUSES
from blogapi.storage import documents, history, posts, stored
from blogapi.storage.engine import BUSY_SECONDS, Database, Reader, Transaction
from blogapi.storage.errors import Damaged, NotFound, Unavailable
from blogapi.storage.models import Post, Revision
from blogapi.storage.search import index
from blogapi.storage.stored import Document

BY = "undo"
STEP_POSTS = 100
STEP_SECONDS = 0.010  # in one transaction
PAUSE_SECONDS = 0.025  # in which others write


class Undone(NamedTuple):
    """What an undo did with a post, or would do."""

    post_id: int
    title: str
    action: str  # changed back, restored, deleted, or left
    reason: str = ""  # why it was left, or differs from what it was


class Change(NamedTuple):
    """A change of a post, and the version before it: None if the post was not there, 0 if that is not kept."""

    by: str
    before: int | None


def undo(database: Database, since: str, key: str | None = None, dry_run: bool = False) -> Iterator[Undone]:
    """Undo all changes since a time, or only those of a key; yield the result for each post.

    A post that another key changed since is left. Others can write in between. After an interruption, run it again.
    """
    waiting = [(post_id, 0) for post_id in _changed_since(database, since)]
    while waiting:
        leaving = None if waiting[0][1] == 0 else {post_id for post_id, turn in waiting if turn == 1}
        if dry_run:
            results = [_undo_one(database, waiting[0][0], leaving, since, key)]
        else:
            step = [post_id for post_id, turn in waiting[:STEP_POSTS] if turn == waiting[0][1]]
            results = _write_patiently(database, step, leaving, since, key)
            database.engine.shrink()  # or the next write of a server would, and keep others waiting
            time.sleep(PAUSE_SECONDS)
        done = zip(waiting, results, strict=False)
        again = [(post_id, turn + 1) for (post_id, turn), each in done if each and not each.action]
        waiting = waiting[len(results) :] + again
        yield from (each for each in results if each and each.action)


def _changed_since(reader: Reader, since: str) -> list[int]:
    """Return the ids of posts that were changed since a time or are in the trash since, the latest change first."""
    found: list[tuple[str, int]] = []
    for status in STATUSES:
        is_changed = (Post.status == status) & (Post.updated_at >= since)
        found += reader.rows(Post.select(Post.updated_at, Post.id).where(is_changed))
    is_deleted = (Revision.state == "deleted") & (Revision.until >= since)
    found += reader.rows(Revision.select(Revision.until, Revision.post_id).where(is_deleted))
    return [post_id for _, post_id in sorted(found, reverse=True)]


def _write_patiently(database: Database, *arguments: Any) -> list[Undone | None]:
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            return database.write(_undo_some, *arguments)
        except Unavailable as error:
            if error.retry_after is None or time.monotonic() > deadline:
                raise


def _undo_some(
    tx: Transaction, step: list[int], leaving: Collection[int] | None, since: str, key: str | None
) -> list[Undone | None]:
    """Undo the changes of the first posts of a step, at least one, until the time is over."""
    deadline = time.monotonic() + STEP_SECONDS
    results: list[Undone | None] = []
    for post_id in step:
        results.append(_undo_one(tx, post_id, leaving, since, key))
        if time.monotonic() > deadline:
            break
    return results


def _undo_one(
    reader: Reader, post_id: int, leaving: Collection[int] | None, since: str, key: str | None
) -> Undone | None:
    """Undo what was done with a post; without a transaction, only say so. Returns None if there is nothing to undo.

    Without an action if it waits until one of the posts that are `leaving` has left the slug that it had; None
    stands for any post.
    """
    changes = _changes(reader, post_id, since)
    first = next((number for number, change in enumerate(changes) if key in (None, change.by)), None)
    if first is None:
        return None
    try:
        present = documents.load(posts.find(reader, post_id))
    except NotFound:
        present = {}
    except Damaged:
        return Undone(post_id, "", "left", "it is damaged")
    before = changes[first].before
    if before == 0:
        return Undone(post_id, present.get("title", ""), "left", "more was changed since than is kept")
    target = _as_of_now(history.find_version(reader, post_id, before), present, reader.now) if before else {}
    if _words(target) == _words(present):
        return None
    title = (target or present)["title"]
    others = {change.by for change in changes[first:]} - {key, BY} if key else set()
    if others:
        return Undone(post_id, title, "left", f"{' and '.join(sorted(others))} changed it since")
    if isinstance(reader, Transaction):
        return _write(reader, post_id, present, target, leaving)
    return Undone(post_id, title, "changed back" if target and present else "restored" if target else "deleted")


def _changes(reader: Reader, post_id: int, since: str) -> list[Change]:
    """Return the changes of a post since a time."""
    columns = Revision.version, Revision.since, Revision.author, Revision.until, Revision.replaced_by, Revision.state
    query = Revision.select(*columns).where(Revision.post_id == post_id).order_by(Revision.version)
    versions = list(reader.rows(query))
    present = reader.row(Post.select(Post.version, Post.since, Post.author).where(Post.id == post_id))
    if present:
        versions.append((*present, "", "", "present"))
    changes: list[Change] = []
    last, last_state = 0, "restored"
    for version, begun, author, until, replaced_by, state in versions:
        follows = last == version - 1
        if begun >= since and not (follows and last_state == "replaced"):
            changes.append(Change(author, None if follows else 0))  # created or restored; or versions are missing
        if until >= since and state != "present":
            changes.append(Change(replaced_by, version))
        last, last_state = version, state
    return changes


def _write(
    tx: Transaction, post_id: int, present: Document, target: Document, leaving: Collection[int] | None
) -> Undone:
    if not target:
        posts.delete(tx, post_id, lambda document: None, BY)
        return Undone(post_id, present["title"], "deleted")
    slug, title = target["slug"], target["title"]
    other = None if slug == present.get("slug") else tx.row(Post.select(Post.id).where(Post.slug == slug))
    if other and (leaving is None or other[0] in leaving):
        if leaving and present:  # The other may wait for the slug of this one.
            _change(tx, present, present | {"slug": stored.free_slug(tx, slug[: history.SLUG_LENGTH].rstrip("-"))})
        return Undone(post_id, title, "")
    action = "changed back" if present else "restored"
    if not present:
        new = documents.load(history.recreate(tx, target, BY))
    else:
        new = target | {"slug": present["slug"]} if other else target
        if _words(new) == _words(present):
            action = "left"
        else:
            _change(tx, present, new)
    return Undone(post_id, title, action, f"its slug {slug} is taken, it has {new['slug']}" if other else "")


def _change(tx: Transaction, present: Document, new: Document) -> None:
    index.check_size(tx, present, new)
    stored.write(tx, present, documents.in_order(new | {"updated_at": tx.now}), "post.updated", BY)


def _words(post: Document) -> Document:
    """Return the fields of a post that matter for equality."""
    return {name: value for name, value in post.items() if name != "updated_at"}


def _as_of_now(post: Document, present: Document, now: str) -> Document:
    """Return an earlier version of a post as it would be now: its scheduled time may have passed."""
    if post.get("status") != "scheduled" or post["published_at"] > now:
        return post
    if present.get("status") == "published":
        return post | {"status": "published"}
    return {name: value for name, value in post.items() if name != "published_at"} | {"status": "draft"}
