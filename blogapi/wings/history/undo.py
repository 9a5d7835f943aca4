"""Undo: revert all changes to posts since a given time, or only the changes made with one key."""

import json
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import dropwhile
from typing import NamedTuple

from peewee import fn

from blogapi import documents
from blogapi.posts import due, proposal_rows, publication, slugs
from blogapi.posts import storage as posts
from blogapi.posts.storage import Fields
from blogapi.storage.database import Database, write_each
from blogapi.storage.engine import Reader, Transaction
from blogapi.storage.errors import BadKeyName, Damaged, DoesNotExist
from blogapi.storage.keys import check_not_secret
from blogapi.storage.models import AUTHORS, ApiKey, AppliedProposal, Author, Post, Proposal, Purge, Retagging, Revision
from blogapi.text import fold
from blogapi.wings.history import revisions

BY = Author("undo")
UNDO_SECONDS = 0.010  # approximate length of a transaction
UNDO_PAUSE_SECONDS = 0.025  # pause between transactions, so that other clients can write


class Undone(NamedTuple):
    """The result of an undo for one post, as performed or as predicted by a dry run."""

    post_id: int
    title: str  # "" if the post has been deleted permanently
    action: str  # "changed back", "restored", "moved to the trash" or "left alone"; "withdrawn" for a proposal
    reason: str = ""  # why the post was left alone, how its slugs differ from before, or what was withdrawn


class PastChange(NamedTuple):
    """An earlier change to a post: its author, and the version that it replaced."""

    author: str
    version: int | None  # None if the post did not exist, 0 if that version has been pruned
    tags: list[str] | None = None  # the tags before a site-wide tag change
    proposer: str | None = None  # who made the proposal, if the change applied one

    def is_by(self, key: str | None) -> bool:
        """Return whether this key made or proposed the change. None stands for any key."""
        return key in (None, self.author, self.proposer)


def check_author(reader: Reader, name: str) -> None:
    """Raise BadKeyName unless a key or a past author has this name."""
    check_not_secret(name)
    columns = ApiKey.name, Post.author, Revision.author, Revision.replaced_by, Retagging.author
    names = {name for column in columns for (name,) in reader.rows(column.model.select(column).distinct())}
    known = sorted({*AUTHORS, *names} - {""})
    if name not in known:
        raise BadKeyName(f"no key or author is called {name!r}; known: {', '.join(known)}")


def undo(database: Database, since: str, key: str | None = None, dry_run: bool = False) -> Iterator[Undone]:
    """Undo all changes since a time, or only those made with one key. Yield the result for each post.

    A post is left alone if another key has changed it after the given key did. Other clients can write during an undo.
    An interrupted undo can be repeated.
    """
    due.publish_all(database)
    titles: dict[int, str] = {}
    inexact: dict[int, Undone] = {}
    for undone in _undo_posts(database, since, key, _changed_since(database, since), dry_run):
        titles[undone.post_id] = undone.title
        if undone.reason:
            inexact[undone.post_id] = undone
        else:
            yield undone
    for undone in _undo_posts(database, since, key, [*inexact], dry_run):  # By now, other posts have released slugs.
        first = inexact.pop(undone.post_id)
        yield undone if first.action == "left alone" else first._replace(reason=undone.reason)
    yield from inexact.values()
    yield from _withdraw(database, since, key, titles, dry_run)
    purged = Purge.select(Purge.post_id).where(Purge.purged_at >= since).order_by(Purge.purged_at)
    for (post_id,) in list(database.rows(purged)):  # a list, so that no query stays open while the caller prints
        yield Undone(post_id, "", "left alone", "it was deleted for good")


def _undo_posts(database: Database, since: str, key: str | None, ids: list[int], dry_run: bool) -> Iterator[Undone]:
    """Undo the changes to posts in short transactions. Yield a result for each post that has changed."""
    undo_post = partial(_undo_post, since, key)
    results: Iterable[Undone | None] = map(partial(undo_post, database), ids)
    if not dry_run:
        results = write_each(database, undo_post, ids, UNDO_SECONDS, partial(_pause, database))
    return filter(None, results)


def _withdraw(
    database: Database, since: str, key: str | None, titles: dict[int, str], dry_run: bool
) -> Iterator[Undone]:
    """Withdraw all pending proposals made since a time, or only those made with one key. Yield a result for each."""
    is_pending = (Proposal.created_at >= since) & Proposal.refused_at.is_null()
    pending = Proposal.select(Proposal.id, Proposal.post_id, Proposal.author).where(is_pending)
    for proposal_id, post_id, author in list(database.rows(pending)):
        if key in (None, author):
            with suppress(DoesNotExist, Damaged):
                titles.setdefault(post_id, documents.load(posts.get(database, post_id))["title"])
            if not dry_run:
                database.write(proposal_rows.delete, proposal_id)
            yield Undone(post_id, titles.get(post_id, ""), "withdrawn", f"a proposal by {author}")


def _pause(database: Database) -> None:
    database.engine.shrink()  # otherwise, the server's next write would shrink the file while its client waits
    time.sleep(UNDO_PAUSE_SECONDS)


def undo_tag(tx: Transaction, tag: str, changed_at: str, author: Author) -> int:
    """Undo an author's site-wide change to a (folded) tag in the posts not changed since. Return their number."""
    later = Retagging.alias()
    of_post = (later.post_id == Retagging.post_id) & (later.version == Retagging.version)
    is_last = ~fn.EXISTS(later.select(later.number).where(of_post, later.number > Retagging.number))
    of_change = (Retagging.changed_at == changed_at) & (Retagging.author == author.name)
    count = 0
    changed = Retagging.select(Retagging.post_id, Retagging.version, Retagging.tags).where(of_change, is_last)
    for post_id, version, tags in list(tx.rows(changed)):
        with suppress(DoesNotExist, Damaged):
            if tag in map(fold, json.loads(tags)) and posts.get_to_change(tx, post_id).version == version:
                posts.change(tx, post_id, {"tags": json.loads(tags)}, author)
                count += 1
    return count


def _changed_since(reader: Reader, since: str) -> list[int]:
    """Return the ids of the posts changed or deleted since a time, the most recently changed first."""
    changed = Post.select(Post.updated_at, Post.id).where(Post.status.in_(documents.STATUSES), Post.updated_at >= since)
    is_deleted = (Revision.state == "deleted") & (Revision.until >= since)
    deleted = Revision.select(Revision.until, Revision.post_id).where(is_deleted)
    return [post_id for _, post_id in sorted(reader.rows(changed + deleted), reverse=True)]


def _undo_post(since: str, key: str | None, reader: Reader, post_id: int) -> Undone | None:
    """Undo the changes to a post, if any. A dry run, which has no Transaction, does not notice taken slugs."""
    changes = list(dropwhile(lambda change: not change.is_by(key), _changes(reader, post_id, since)))
    if not changes:
        return None
    present: Fields = {}
    try:
        with suppress(DoesNotExist):
            present = documents.load(posts.get(reader, post_id))
        is_new = key is None and present.get("created_at", "") >= since
        if changes[0].version == 0 and not is_new:
            return Undone(post_id, present.get("title", ""), "left alone", "its state at that time is no longer kept")
        target = _state_before(reader, post_id, changes[0], present)
    except Damaged:
        return Undone(post_id, present.get("title", ""), "left alone", "it is damaged")
    if posts.is_same(target, present):
        return None
    action, reason = "left alone", _conflict(changes, key)
    if not reason:
        action, reason = _restore(reader if isinstance(reader, Transaction) else None, post_id, present, target)
    return Undone(post_id, (target or present)["title"], action, reason)


def _state_before(reader: Reader, post_id: int, change: PastChange, present: Fields) -> Fields:
    """Return a post as it was before a change, or {} if it did not exist. Raises Damaged."""
    if not change.version:
        return {}
    post = present
    with suppress(DoesNotExist):  # The current version is not in the history.
        post = documents.load(revisions.get_version(reader, post_id, change.version))
    if change.tags is not None:
        post = post | {"tags": change.tags}
    post = publication.unscheduled(post, reader.now, is_published=present.get("status") == "published")
    return documents.in_order(post | {"updated_at": present.get("updated_at", reader.now)})


def _conflict(changes: list[PastChange], key: str | None) -> str:
    """Return the reason to leave a post alone if another key has changed it since, and "" otherwise."""
    others = {change.author for change in changes if not change.is_by(key)} - {BY.name}
    is_retagged = any(change.tags is not None for change in changes if change.is_by(key))
    stays = "; its tags stay renamed or removed" if is_retagged else ""
    verb = "have" if len(others) > 1 else "has"
    return f"{' and '.join(sorted(others))} {verb} changed it since{stays}" if others else ""


def _restore(tx: Transaction | None, post_id: int, present: Fields, target: Fields) -> tuple[str, str]:
    """Write the earlier state of a post. Return the action, and how the new state differs from the earlier one."""
    if not target:
        if tx:
            posts.delete(tx, post_id, BY)
        return "moved to the trash", ""
    action, reason = "changed back" if present else "restored", ""
    if tx:
        target, reason = _with_free_slugs(tx, post_id, target)
        if posts.is_same(target, present):
            return "left alone", reason
        if present:
            post = posts.get_to_change(tx, post_id)
            posts.write_version(tx, post, documents.load(post.document), target, BY)
        else:
            revisions.recreate(tx, target, BY)
    return action, reason


def _with_free_slugs(tx: Transaction, post_id: int, target: Fields) -> tuple[Fields, str]:
    """Replace the taken slugs in the earlier state of a post. Return the state, and how it differs from before."""
    # Even if a number is appended to its slug, the post gives up its current slug, which another post may need.
    slug, former = slugs.find_free(tx, target["slug"], post_id), target.get("former_slugs", [])
    free = slugs.still_free(tx, former, post_id)
    differences = [f"its slug {target['slug']} is taken, so it now has {slug}"] if slug != target["slug"] else []
    differences += [f"its former slug {taken} is taken" for taken in former if taken not in free]
    return documents.in_order(target | {"slug": slug, "former_slugs": free}), "; ".join(differences)


def _changes(reader: Reader, post_id: int, since: str) -> Iterator[PastChange]:
    columns = Revision.version, Revision.since, Revision.author, Revision.until, Revision.replaced_by, Revision.state
    query = Revision.select(*columns).where(Revision.post_id == post_id).order_by(Revision.version)
    versions = list(reader.rows(query))
    if present := reader.row(Post.select(Post.version, Post.since, Post.author).where(Post.id == post_id)):
        versions.append((*present, "", "", "present"))
    retaggings = Retagging.select(Retagging.version, Retagging.author, Retagging.tags)
    recent = retaggings.where(Retagging.post_id == post_id, Retagging.changed_at >= since)
    retagged = list(reader.rows(recent.order_by(Retagging.version, Retagging.number)))
    applied = AppliedProposal.select(AppliedProposal.version, AppliedProposal.author)
    proposers = dict(reader.rows(applied.where(AppliedProposal.post_id == post_id)))
    last, last_state = 0, "restored"
    for version, begun, author, until, replaced_by, state in versions:
        follows = last == version - 1
        if begun >= since and not (follows and last_state == "replaced"):
            yield PastChange(author, None if follows else 0)  # created or restored, or earlier versions are missing
        for of_version, retagger, tags in retagged:
            if of_version == version:
                yield PastChange(retagger, version, json.loads(tags))
        if until >= since:
            yield PastChange(replaced_by, version, proposer=proposers.get(version))
        last, last_state = version, state
