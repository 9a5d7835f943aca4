"""Undo: returning every post to its state at a time."""

import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

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
MAX_CHAIN = 10  # posts that wait for each other's slugs


class Undone(NamedTuple):
    """What an undo did with a post, or would do."""

    post_id: int
    title: str
    action: str  # changed back, restored, deleted, or left; "" if it waits for its slug
    reason: str = ""  # why it was left, or differs from what it was


class Change(NamedTuple):
    """A change of a post, and the version before it: None if the post was not there, 0 if that is not kept."""

    by: str
    before: int | None


class Plan(NamedTuple):
    """A post as it is and as it was, {} for no post; or why it must be left."""

    present: Document
    target: Document
    obstacle: str = ""


def check_author(reader: Reader, name: str) -> None:
    """Raise KeyName unless a key has this name, or an author of the history."""
    names = [*_names(reader, ApiKey.name), *AUTHORS]
    if name not in names:
        for column in (Post.author, Revision.author, Revision.replaced_by):
            names += filter(None, _names(reader, column))
        if name not in names:
            known = ", ".join(dict.fromkeys(names))
            raise KeyName(f"there is no key called {name!r}, nor a change by one; there are {known}")


def _names(reader: Reader, column: Any) -> list[str]:
    return [name for (name,) in reader.rows(column.model.select(column).distinct().order_by(column))]


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


def _undo_post(reader: Reader, post_id: int, turn: int, since: str, key: str | None) -> Undone | None:
    """Undo the changes of a post; without a transaction, only say so."""
    plan = _plan(reader, post_id, since, key)
    return plan and _carry_out(reader, post_id, plan, turn, since, key)


def _plan(reader: Reader, post_id: int, since: str, key: str | None) -> Plan | None:
    """Return what to do with a post, or None if there is nothing to undo."""
    changes = _changes(reader, post_id, since)
    first = next((number for number, change in enumerate(changes) if key in (None, change.by)), None)
    if first is None:
        return None
    before = changes[first].before
    present: Document = {}
    target: Document = {}
    try:
        with suppress(NotFound):
            present = documents.load(posts.find(reader, post_id))
        if before:
            target = _as_of_now(documents.load(history.find_version(reader, post_id, before)), present, reader.now)
    except Damaged:
        return Plan({"title": ""} | present, {}, "it is damaged")
    if before == 0:
        return Plan({"title": ""} | present, {}, "more was changed since than is kept")
    if _words(target) == _words(present):
        return None
    others = {change.by for change in changes[first:]} - {key, BY} if key else set()
    return Plan(present, target, f"{' and '.join(sorted(others))} changed it since" if others else "")


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


def _carry_out(reader: Reader, post_id: int, plan: Plan, turn: int, since: str, key: str | None) -> Undone:
    """Undo what was done with a post; without a transaction, only say so."""
    present, target, obstacle = plan
    tx = reader if isinstance(reader, Transaction) else None
    title = (target or present)["title"]
    if obstacle:
        return Undone(post_id, title, "left", obstacle)
    if not target:
        if tx:
            posts.delete(tx, post_id, history.accept, BY)
        return Undone(post_id, title, "deleted")
    slug, reason = target["slug"], ""
    if slug != present.get("slug") and stored.is_taken(reader, slug):
        if turn == SETTLE or not _will_be_free(reader, post_id, slug, since, key):
            target = target | {"slug": present.get("slug") or history.other_slug(reader, slug)}
            reason = f"its slug {slug} is taken, it {'has' if tx else 'would have'} {target['slug']}"
        elif tx:
            if turn == PARK and present:  # The other may wait for the slug of this one.
                _change(tx, post_id, present | {"slug": history.other_slug(tx, slug)})
            return Undone(post_id, title, "")
    if _words(target) == _words(present):
        return Undone(post_id, title, "left", reason)
    if tx:
        if present:
            _change(tx, post_id, target)
        else:
            history.recreate(tx, target, BY)
    return Undone(post_id, title, "changed back" if present else "restored", reason)


def _will_be_free(reader: Reader, post_id: int, slug: str, since: str, key: str | None) -> bool:
    """Return whether the undo takes a slug from the post that has it, perhaps once others have left theirs."""
    waiting = [post_id]
    while len(waiting) <= MAX_CHAIN:
        holder = reader.row(Post.select(Post.id).where(Post.slug == slug))
        if holder is None or holder[0] in waiting:
            return True
        plan = _plan(reader, holder[0], since, key)
        if plan is None or plan.obstacle or plan.target.get("slug") == slug:
            return False
        if not plan.target:
            return True
        waiting.append(holder[0])
        slug = plan.target["slug"]
    return True


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
