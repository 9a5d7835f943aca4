"""Keep earlier versions of posts and deleted posts for a while.

The table `post` stores when the current version was written, and by whom. `revision` stores earlier versions, each with
the time and the author of the change that replaced it. The trash consists of the last versions of deleted posts. A
site-wide tag change creates no versions; instead, `retagging` stores the old tags.
"""

import json
import time
from datetime import timedelta
from typing import Literal, get_args

from peewee import Expression, fn

from blogapi.clock import earlier
from blogapi.storage.engine import Compiled, Placeholder, Transaction
from blogapi.storage.models import Post, Purge, Retagging, Revision

MAX_REVISIONS = 50  # at most this many revisions are kept for a post
PRUNED_REVISIONS = 50  # at most this many revisions are deleted in a transaction
MAX_PRUNED = 500  # a transaction prunes the retaggings or purges of at most this many posts
PRUNING_SECONDS = 0.010  # a pruning transaction ends after this time, because other writers wait for it

RevisionState = Literal["replaced", "deleted", "restored"]


def add_revision(tx: Transaction, post_id: int, version: int, author: str, state: RevisionState) -> None:
    """Store the version of a post that `author` is replacing, and delete the oldest version beyond MAX_REVISIONS."""
    tx.defer(INSERT_REVISION, id=post_id, now=tx.now, author=author, state=state)
    if version > MAX_REVISIONS:
        tx.defer(DELETE_OLDEST, id=post_id, oldest=version - MAX_REVISIONS)


_present = Post.select(
    *(Post.id, Post.version, Post.since, Post.author),
    *(Placeholder("now"), Placeholder("author"), Placeholder("state"), Post.document),
).where(Post.id == Placeholder("id"))
INSERT_REVISION = Compiled(Revision.insert_from(_present, Revision._meta.sorted_fields))
DELETE_OLDEST = Compiled(
    Revision.delete().where(Revision.post_id == Placeholder("id"), Revision.version <= Placeholder("oldest"))
)


def add_retagging(tx: Transaction, post_id: int, author: str, tags: list[str]) -> None:
    """Store the tags that a post had before a site-wide tag change."""
    tx.defer(INSERT_RETAGGING, id=post_id, now=tx.now, author=author, tags=json.dumps(tags, ensure_ascii=False))


_number = Retagging.select(fn.COUNT(Retagging.number)).where(
    Retagging.post_id == Post.id, Retagging.version == Post.version
)
_retagged = Post.select(Post.id, Post.version, _number, Placeholder("now"), Placeholder("author"), Placeholder("tags"))
INSERT_RETAGGING = Compiled(
    Retagging.insert_from(_retagged.where(Post.id == Placeholder("id")), Retagging._meta.sorted_fields)
)


def purge(tx: Transaction, post_id: int) -> None:
    """Record that a post is deleted for good, and delete some of its versions; `prune_purged` deletes the rest."""
    of_post = Revision.post_id == post_id
    # Without the deleted version, the post is not in the trash, so its other versions can be deleted later.
    tx.execute(Revision.delete().where(of_post, Revision.state == "deleted"))
    tx.execute(Retagging.delete().where(Retagging.post_id == post_id))
    if tx.keeps_history:
        tx.execute(Purge.insert(post_id=post_id, purged_at=tx.now))
    _delete_some(tx, of_post)


def prune_purged(tx: Transaction) -> int:
    """Delete a batch of versions of posts deleted for good in the last 24 hours; return the number deleted."""
    recent = Purge.select(Purge.post_id).where(Purge.purged_at >= earlier(tx.now, timedelta(days=1)))
    return _delete_some(tx, Revision.post_id.in_(recent))


def _delete_some(tx: Transaction, condition: Expression) -> int:
    """Delete a batch of versions; return the number deleted."""
    some = Revision.select(Revision.post_id, Revision.version).where(condition).limit(PRUNED_REVISIONS)
    until, count = time.monotonic() + PRUNING_SECONDS, 0
    for post_id, version in list(tx.rows(some)):
        if count and time.monotonic() > until:  # A version can be megabytes long.
            break
        count += tx.execute(Revision.delete().where(Revision.post_id == post_id, Revision.version == version))
    return count


def prune(tx: Transaction, days: int) -> int:
    """Delete a batch of versions, retaggings or purges older than `days`; return the number deleted."""
    horizon = earlier(tx.now, timedelta(days=days))
    for model, column in ((Retagging, Retagging.changed_at), (Purge, Purge.purged_at)):
        some = model.select(model.post_id).where(column <= horizon).limit(MAX_PRUNED)
        if chosen := {post_id for (post_id,) in tx.rows(some)}:
            return tx.execute(model.delete().where(column <= horizon, model.post_id.in_(chosen)))
    return _delete_some(tx, Revision.state.in_(get_args(RevisionState)) & (Revision.until <= horizon))
