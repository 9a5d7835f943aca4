"""Store, list, apply and delete proposals."""

import json
import logging
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from peewee import Case, Expression, Tuple, fn

from blogapi import documents
from blogapi.clock import LATEST, earlier
from blogapi.paging import Cursor, Page, bounded, cursor_of, page_of
from blogapi.posts import proposal_rows, slugs
from blogapi.posts import storage as posts
from blogapi.posts.params import equal
from blogapi.posts.storage import Check, Fields, PostRef, StoredPost, no_check
from blogapi.storage.engine import AsBytes, Reader, Transaction
from blogapi.storage.errors import Damaged, DoesNotExist, NotPermitted, Rejected
from blogapi.storage.models import MAX_ID, AppliedProposal, Author, Post, Proposal, Revision
from blogapi.webhooks import storage as webhooks

# Maximum number of proposals for one post and for all posts (including those in the trash), and maximum total size
MAX_OF_POST, MAX_PROPOSALS, MAX_BYTES = 20, 1000, 16_000_000
PROPOSAL_TTL, REFUSED_TTL = timedelta(days=90), timedelta(hours=1)
IN_TRASH = ", including those for posts in the trash; apply or delete one first"
log = logging.getLogger(__name__)


class ChangedSince(Exception):
    """Fields that a proposal changes have changed in the post since the proposal was made."""

    def __init__(self, names: list[str]):
        super().__init__(f"{', '.join(names)}: changed in the meantime; force=true applies the proposal anyway")


class StoredProposal(NamedTuple):
    """A stored proposal. The document is the JSON that the API sends."""

    id: int
    post_id: int
    author: str
    created_at: str
    base: dict[str, Any]  # the hashes of the post's fields when the proposal was made, from `_base`
    document: bytes
    changes: Fields  # the new values; an empty value clears the field
    is_new: bool = False  # whether `add` has just created it

    def conflicts(self, now: Fields) -> list[str]:
        """Return the proposed fields that have since changed in the post to values other than the proposed ones."""
        mine = documents.in_order(now | self.changes)
        return conflicts(self.base, _base(mine, self.changes), _base(now, self.changes))

    def log_applied(self) -> None:
        """Log who proposed a change, because the history shows only the key that applied it."""
        log.info("proposal %s by %s was applied to post %s", self.id, self.author, self.post_id)


def conflicts(base: Mapping[str, Any], mine: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the fields that `mine` and `now` both change from `base` to different values. The values may be hashes."""
    return [name for name in mine if mine[name] != base.get(name) and now[name] not in (base.get(name), mine[name])]


# Read

_document = AsBytes(Proposal.document)
_columns = Proposal.id, Proposal.post_id, Proposal.author, Proposal.created_at, Proposal.base, _document
_is_pending = Proposal.refused_at.is_null()
# The join excludes proposals for posts in the trash.
_of_present = Proposal.select().join(Post, on=Post.id == Proposal.post_id).where(_is_pending)


def page(
    reader: Reader, ref: PostRef | None, limit: int, before: Cursor[int] | None = None
) -> Page[bytes, Cursor[int]]:
    """Return a page of the proposals for one post or all posts, newest first. Raises DoesNotExist."""
    condition = Tuple(Proposal.created_at, Proposal.id) < Tuple(*(before or (LATEST, MAX_ID)))
    if ref is not None:
        condition &= Proposal.post_id == posts.id_of(reader, ref)
    is_postgresql = reader.engine.dialect == "postgresql"
    document = Proposal.document if is_postgresql else _document
    query = _of_present.select(Proposal.id, document, Proposal.created_at).where(condition)
    query = query.order_by(Proposal.created_at.desc(), Proposal.id.desc()).limit(limit + 1)
    if is_postgresql:
        query = bounded(query, "created_at")
    return page_of(reader.rows(query), limit, cursor_of)


def posts_with_proposals(reader: Reader) -> set[int]:
    return {post_id for (post_id,) in reader.rows(Proposal.select(Proposal.post_id).where(_is_pending).distinct())}


def get(reader: Reader, ref: PostRef, proposal_id: int) -> StoredProposal:
    """Return a proposal for a post. Raises DoesNotExist, or Damaged if it is corrupt."""
    query = _of_present.select(*_columns).where(_is(posts.id_of(reader, ref), proposal_id))
    return _stored(reader.get("proposal", query))


def _stored(row: tuple) -> StoredProposal:
    *columns, base, document = row
    try:
        return StoredProposal._make((*columns, json.loads(base), document, json.loads(document)["changes"], False))
    except (TypeError, ValueError) as error:
        raise Damaged from error


def _is(post_id: int, proposal_id: int) -> Expression:
    return (Proposal.id == proposal_id) & (Proposal.post_id == post_id)


# Write


def add(tx: Transaction, ref: PostRef, fields: Fields, author: Author, check: Check = no_check) -> StoredProposal:
    """Propose a change to a post. Raises DoesNotExist or Rejected.

    `fields` are the same as for `posts.change`. Proposing the same change again only updates the base of the existing
    proposal to the current post.
    """
    posts.check_size(tx, fields.get("content", ""))
    post = posts.get_to_change(tx, ref)
    check(post.document)
    old = documents.load(post.document)
    changes = _differences(tx, post.id, old, fields)
    text = documents.dump(changes).encode()
    if same := _find_same(tx, post.id, author.name, text):
        columns = same[:4]
    else:
        _check_room(tx, post.id, len(text))
        row = {"post_id": post.id, "author": author.name, "created_at": tx.now, "bytes": len(text)}
        columns = tx.insert(Proposal.insert(row | {"base": "", "document": ""})), post.id, author.name, tx.now
    shown = dict(zip(("id", "post_id", "by", "created_at"), map(str, columns), strict=True))
    shown["base"] = documents.etag_of(post.document)
    document = b'%b,"changes":%b}' % (documents.dump(shown)[:-1].encode(), text)
    new = StoredProposal(*columns, _base(old, changes), document, changes, is_new=same is None)
    if new != same:
        tags = documents.dump(changes["tags"]) if "tags" in changes else ""
        texts = {"base": documents.dump(new.base), "tags": tags, "document": document.decode()}
        tx.execute(Proposal.update(texts).where(Proposal.id == new.id))
    if new.is_new:
        webhooks.record(tx, {"post": old, "proposal": shown | {"fields": [*changes]}}, webhooks.PROPOSED)
    return new


def _differences(tx: Transaction, post_id: int, old: Fields, fields: Fields) -> Fields:
    """Return the fields that a change would alter, with their new values. Raises Rejected."""
    new = posts.as_changed(tx, old, fields)
    if new["slug"] != old["slug"]:
        slugs.check_free(tx, new["slug"], post_id)
    slugs.check_former(tx, post_id, old, new)
    differing = [name for name in fields if not equal(old.get(name), new.get(name))]
    if not differing:
        raise Rejected("body", "must have a field that differs from the post")
    return {name: new.get(name, documents.EMPTY.get(name)) for name in documents.FIELDS if name in differing}


def _find_same(tx: Transaction, post_id: int, author: str, changes: bytes) -> StoredProposal | None:
    is_similar = (Proposal.post_id == post_id) & (Proposal.author == author) & (Proposal.bytes == len(changes))
    for row in list(tx.rows(Proposal.select(*_columns).where(is_similar, _is_pending))):
        if (row[-1] or b"").endswith(b'"changes":%b}' % changes):
            return _stored(row)
    return None


def _base(post: Fields, names: Fields) -> dict[str, Any]:
    """Return hashes of a post's fields. Tags are not hashed, so that a site-wide tag change can edit them."""
    hashes = {name: documents.hash_of(documents.dump([post.get(name)]).encode()) for name in names}
    return hashes | ({"tags": post["tags"]} if "tags" in names else {})


def _check_room(tx: Transaction, post_id: int, size: int) -> None:
    """Raise Rejected if another proposal of this size would exceed a limit."""
    of_post = Case(None, [(Proposal.post_id == post_id, 1)], 0)
    totals = [fn.COALESCE(fn.SUM(term), 0) for term in (1, Proposal.bytes, of_post)]
    count, total, count_of_post = tx.one(Proposal.select(*totals).where(_is_pending))
    if count_of_post >= MAX_OF_POST:
        raise Rejected("proposals", f"this post already has {MAX_OF_POST}; apply or delete one first")
    if count >= MAX_PROPOSALS:
        raise Rejected("proposals", f"there are already {MAX_PROPOSALS:,}{IN_TRASH}")
    if total + size > MAX_BYTES:
        raise Rejected("proposals", f"must not exceed {MAX_BYTES:,} bytes in total{IN_TRASH}")


def apply(
    tx: Transaction, ref: PostRef, proposal_id: int, author: Author, check: Check = no_check, *, force: bool = False
) -> StoredPost:
    """Apply a proposal to its post. Raises ChangedSince, and the same exceptions as `posts.change`."""
    proposal, post = get(tx, ref, proposal_id), posts.get_to_change(tx, ref)
    check(post.document)
    if not force and (both := proposal.conflicts(documents.load(post.document))):
        raise ChangedSince(both)
    changed = posts.change(tx, post.id, proposal.changes, author)
    proposal_rows.delete(tx, proposal_id)
    if changed.outcome == "updated":
        row = {"post_id": post.id, "version": post.version, "author": proposal.author, "applied_at": tx.now}
        tx.execute(AppliedProposal.insert(row))
    return changed


def delete(tx: Transaction, ref: PostRef, proposal_id: int, author: Author, check: Check = no_check) -> None:
    """Delete a proposal. Raises DoesNotExist, or NotPermitted if a drafts-only key deletes another key's proposal."""
    query = _of_present.select(Proposal.author, _document).where(_is(posts.id_of(tx, ref), proposal_id))
    proposer, document = tx.get("proposal", query)
    if author.drafts_only and proposer != author.name:
        raise NotPermitted("another key made this proposal")
    check(document)
    proposal_rows.delete(tx, proposal_id)


def refuse(tx: Transaction, post_id: int, proposal_id: int) -> None:
    """Hide a proposal for an hour, or until another proposal is refused. Raises DoesNotExist."""
    refused = Proposal.update(refused_at=tx.now).where(_is(posts.id_of(tx, post_id), proposal_id), _is_pending)
    if not tx.execute(refused):
        raise DoesNotExist("proposal")
    tx.execute(Proposal.delete().where(~_is_pending, Proposal.id != proposal_id))


def restore(tx: Transaction, post_id: int, proposal_id: int) -> None:
    """Undo the refusal of a proposal. Raises DoesNotExist, or Rejected if there is no room for it."""
    is_refused = _is(posts.id_of(tx, post_id), proposal_id) & ~_is_pending
    _check_room(tx, post_id, *tx.get("proposal", Proposal.select(Proposal.bytes).where(is_refused)))
    tx.execute(Proposal.update(refused_at=None).where(is_refused))


def prune_purged(tx: Transaction) -> int:
    """Delete the proposals for purged posts, and return the number deleted."""
    in_trash = Revision.select(Revision.post_id).where(Revision.state == "deleted")
    is_gone = Proposal.post_id.not_in(Post.select(Post.id)) & Proposal.post_id.not_in(in_trash)
    return tx.execute(Proposal.delete().where(is_gone))


def prune(tx: Transaction, days: int) -> int:
    """Delete expired proposals, and records of proposals applied `days` ago or earlier. Return the number deleted."""
    old, applied = earlier(tx.now, PROPOSAL_TTL), earlier(tx.now, timedelta(days=days))
    is_expired = (Proposal.created_at <= old) | (Proposal.refused_at <= earlier(tx.now, REFUSED_TTL))
    count = tx.execute(Proposal.delete().where(is_expired))
    return count + tx.execute(AppliedProposal.delete().where(AppliedProposal.applied_at <= applied))
