"""Undo: returning every post to its state at a time."""

import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from blogapi.post import STATUSES
from blogapi.storage import documents, history, posts, stored
from blogapi.storage.engine import Database, Reader, Transaction
from blogapi.storage.errors import Damaged, KeyName, NotFound
from blogapi.storage.models import AUTHORS, ApiKey, Post, Revision
from blogapi.storage.search import index
from blogapi.storage.stored import Document

BY = "undo"
STEP_SECONDS = 0.010  # in one transaction
PAUSE_SECONDS = 0.025  # in which others write
WAIT, PARK, SETTLE = range(3)  # turns of the posts whose slug another one has and will leave


class Undone(NamedTuple):
    """What an undo did with a post, or would do."""

    post_id: int
    title: str
    action: str  # changed back, restored, deleted, or left; "" if it waits for its slug
    reason: str = ""  # why it was left, or differs from what it was


class Plan(NamedTuple):
    """A post as it is and as it was, {} for no post; or why it must be left."""

    present: Document
    target: Document
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
        if dry_run:
            results = (undo_post(database, post_id) for post_id in waiting)
        else:
            results = posts.write_each(database, undo_post, waiting, STEP_SECONDS, pause)
        waiting = []
        for undone in filter(None, results):
            if undone.action:
                yield undone
            else:
                waiting.append(undone.post_id)


def _changed_since(reader: Reader, since: str) -> list[int]:
    """Return the ids of posts that were changed since a time or are in the trash since, the latest change first."""
    found: list[tuple[str, int]] = []
    for status in STATUSES:
        is_changed = (Post.status == status) & (Post.updated_at >= since)
        found += reader.rows(Post.select(Post.updated_at, Post.id).where(is_changed))
    is_deleted = (Revision.state == "deleted") & (Revision.until >= since)
    found += reader.rows(Revision.select(Revision.until, Revision.post_id).where(is_deleted))
    return [post_id for _, post_id in sorted(found, reverse=True)]


def _plan(reader: Reader, post_id: int, since: str, key: str | None) -> Plan | None:
    """Return what to do with a post, or None if there is nothing to undo."""
    changes = _changes(reader, post_id, since)
    first = next((number for number, (by, _) in enumerate(changes) if key in (None, by)), None)
    if first is None:
        return None
    _, before = changes[first]
    present: Document = {}
    target: Document = {}
    try:
        with suppress(NotFound):
            present = documents.load(posts.find(reader, post_id))
        if before:
            earlier = documents.load(history.find_version(reader, post_id, before))
            target = _as_of_now(earlier, present, reader.now)
    except Damaged:
        return Plan({"title": ""} | present, {}, "it is damaged")
    if before == 0:
        return Plan({"title": ""} | present, {}, "more was changed since than is kept")
    if _words(target) == _words(present):
        return None
    others = {by for by, _ in changes[first:]} - {key, BY} if key else set()
    return Plan(present, target, f"{' and '.join(sorted(others))} changed it since" if others else "")


def _changes(reader: Reader, post_id: int, since: str) -> list[tuple[str, int | None]]:
    """Return the changes of a post since a time: by whom, and the version before.

    That is None if the post was not there, and 0 if it is not kept.
    """
    columns = Revision.version, Revision.since, Revision.author, Revision.until, Revision.replaced_by, Revision.state
    query = Revision.select(*columns).where(Revision.post_id == post_id).order_by(Revision.version)
    versions = list(reader.rows(query))
    present = reader.row(Post.select(Post.version, Post.since, Post.author).where(Post.id == post_id))
    if present:
        versions.append((*present, "", "", "present"))
    changes: list[tuple[str, int | None]] = []
    last, last_state = 0, "restored"
    for version, begun, author, until, replaced_by, state in versions:
        follows = last == version - 1
        if begun >= since and not (follows and last_state == "replaced"):
            changes.append((author, None if follows else 0))  # created or restored; or versions are missing
        if until >= since and state != "present":
            changes.append((replaced_by, version))
        last, last_state = version, state
    return changes


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
            posts.delete(tx, post_id, history.accept, BY)
        return done("deleted")
    slug, reason = target["slug"], ""
    if slug != present.get("slug") and stored.is_taken(reader, slug):
        if turn == SETTLE or not _will_be_free(reader, slug, since, key):
            target = target | {"slug": present.get("slug") or history.other_slug(reader, slug)}
            reason = f"its slug {slug} is taken, it {'has' if tx else 'would have'} {target['slug']}"
        elif tx:
            if turn == PARK and present:  # The other may wait for the slug of this one.
                _change(tx, post_id, present | {"slug": history.other_slug(tx, slug)})
            return done("")
    if _words(target) == _words(present):
        return done("left", reason)
    if tx:
        _change(tx, post_id, target) if present else history.recreate(tx, target, BY)
    return done("changed back" if present else "restored", reason)


def _will_be_free(reader: Reader, slug: str, since: str, key: str | None) -> bool:
    """Return whether the undo takes a slug from the post that has it."""
    (holder,) = reader.row(Post.select(Post.id).where(Post.slug == slug))
    plan = _plan(reader, holder, since, key)
    return plan is not None and not plan.obstacle and plan.target.get("slug") != slug


def _change(tx: Transaction, post_id: int, new: Document) -> None:
    post = stored.current(tx, post_id)
    old = documents.load(post.document)
    index.check_size(tx, old, new)
    stored.write(tx, old, documents.in_order(new | {"updated_at": tx.now}), "post.updated", BY, post.version)


def _words(post: Document) -> Document:
    """Return the fields of a post that matter for equality."""
    return {name: value for name, value in post.items() if name != "updated_at"}


def _as_of_now(post: Document, present: Document, now: str) -> Document:
    """Return an earlier version of a post as it would be now: its scheduled time may have passed."""
    new = history.unscheduled(post, now)
    return post | {"status": "published"} if new != post and present.get("status") == "published" else new
