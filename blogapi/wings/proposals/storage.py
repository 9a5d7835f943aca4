"""Storage of proposals."""

import hashlib
import json
import logging
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from peewee import Case, Expression, Tuple, fn

from blogapi import documents
from blogapi.clock import earlier
from blogapi.documents import etag_of
from blogapi.paging import LATEST, Cursor, ListQuery, Page, bounded, cursor_of, page_of
from blogapi.posts import slugs
from blogapi.posts import storage as posts
from blogapi.posts.params import equal
from blogapi.posts.proposals import withdraw
from blogapi.posts.storage import Check, Fields, PostRef, no_check
from blogapi.storage.engine import AsBytes, Reader, Transaction
from blogapi.storage.errors import Damaged, DoesNotExist, NotPermitted, Rejected
from blogapi.storage.models import MAX_ID, AppliedProposal, Author, Post, Proposal, Revision
from blogapi.wings.webhooks import storage as webhooks

MAX_OF_POST, MAX_PROPOSALS, MAX_BYTES = 20, 1000, 16_000_000  # the last two for all posts together
PROPOSAL_TTL = timedelta(days=90)
log = logging.getLogger(__name__)
EMPTY: Fields = {"tags": [], "params": {}, "former_slugs": []}  # how a change clears a field; "" for all others


class ChangedSince(Exception):
    """Fields of a post have changed since a proposal was made."""

    def __init__(self, names: list[str]):
        super().__init__(f"{', '.join(names)}: changed since; force=true applies the proposal anyway")


class StoredProposal(NamedTuple):
    """A stored proposal; its document is sent unchanged."""

    id: int
    post_id: int
    author: str
    created_at: str
    base: dict[str, Any]  # the fields of the post when it was made, as `_base` returns them
    document: bytes
    changes: Fields  # an empty value clears a field

    def conflicts(self, now: Fields) -> list[str]:
        """Return the fields that have changed since, to other values than the proposed ones."""
        return conflicts(self.base, _base(now | cleared(self.changes), self.changes), _base(now, self.changes))

    def log_applied(self) -> None:
        """Log who proposed it. The history names only who applied it."""
        log.info("proposal %s of %s was applied to post %s", self.id, self.author, self.post_id)


def conflicts(base: Mapping[str, Any], mine: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the fields that both sides changed to different values. The values can be hashes."""
    return [name for name in mine if mine[name] != base.get(name) and now[name] not in (base.get(name), mine[name])]


def cleared(changes: Fields) -> Fields:
    """Return the changes of a proposal with None for fields that they clear; tags are never None."""
    return {name: value or (value if name == "tags" else None) for name, value in changes.items()}


# Read

_document = AsBytes(Proposal.document)
_columns = Proposal.id, Proposal.post_id, Proposal.author, Proposal.created_at, Proposal.base, _document
# A post in the trash hides its proposals.
_of_present = Proposal.select().join(Post, on=Post.id == Proposal.post_id)


def page(
    reader: Reader, ref: PostRef | None, limit: int, before: Cursor[int] | None = None
) -> Page[bytes, Cursor[int]]:
    """Return a page of the proposals for a post, or for all posts, newest first. Raises DoesNotExist."""
    is_wanted = Tuple(Proposal.created_at, Proposal.number) < Tuple(*(before or (LATEST, MAX_ID)))
    if ref is not None:
        is_wanted &= Proposal.post_id == posts.id_of(reader, ref)
    is_postgresql = reader.dialect == "postgresql"
    document = Proposal.document if is_postgresql else _document
    query = _of_present.select(Proposal.number, Proposal.id, document, Proposal.created_at).where(is_wanted)
    query = query.order_by(Proposal.created_at.desc(), Proposal.number.desc()).limit(limit + 1)
    if is_postgresql:
        query = bounded(query, "created_at", before=("number", "id"))
    return page_of(reader.rows(query), ListQuery(limit), reader.now, cursor_of)


def posts_with_proposals(reader: Reader) -> set[int]:
    """Return the ids of posts with proposals."""
    return {post_id for (post_id,) in reader.rows(Proposal.select(Proposal.post_id).distinct())}


def find(reader: Reader, ref: PostRef, proposal_id: int) -> StoredProposal:
    """Return a proposal for a post. Raises DoesNotExist, Damaged."""
    if found := _find(reader, posts.id_of(reader, ref), proposal_id):
        return found
    raise DoesNotExist("proposal")


def _find(reader: Reader, post_id: int, proposal_id: int) -> StoredProposal | None:
    found = reader.row(_of_present.select(*_columns).where(_is(post_id, proposal_id)))
    if found is None:
        return None
    *columns, base, document = found
    try:
        return StoredProposal._make((*columns, json.loads(base), document, json.loads(document)["changes"]))
    except (TypeError, ValueError) as error:
        raise Damaged from error


def _is(post_id: int, proposal_id: int) -> Expression:
    return (Proposal.id == proposal_id) & (Proposal.post_id == post_id)


# Write


def add(
    tx: Transaction, ref: PostRef, fields: Fields, author: Author, check: Check = no_check
) -> tuple[StoredProposal, bool]:
    """Propose a change, with fields as for `posts.change`; return the proposal, and whether it is new.

    If the author has already proposed this change, that proposal is updated: its base becomes the current post. Raises
    DoesNotExist, Rejected.
    """
    posts.check_size(tx, fields.get("content", ""))
    post = posts.find_to_change(tx, ref)
    check(post.document)
    old = documents.load(post.document)
    changes = _differences(tx, post.id, old, fields)
    before = _find(tx, post.id, _id_of(post.id, author.name, changes))
    new = _proposal(post, old, author.name, before.created_at if before else tx.now, changes)
    if before is None:
        _insert(tx, new)
        shown = {name: value for name, value in json.loads(new.document).items() if name != "changes"}
        webhooks.record(tx, {"post": old, "proposal": shown | {"fields": [*changes]}}, "post.proposed")
    elif before != new:
        tx.execute(Proposal.update(_texts(new)).where(Proposal.id == new.id))
    return new, before is None


def _differences(tx: Transaction, post_id: int, old: Fields, fields: Fields) -> Fields:
    """Return the fields that a change would alter, with their new values. Raises Rejected."""
    new = posts.as_changed(tx, old, fields)
    if new["slug"] != old["slug"]:
        slugs.check_free(tx, new["slug"], post_id)
    slugs.check_former(tx, post_id, old, new)
    differing = [name for name in fields if not equal(old.get(name), new.get(name))]
    if not differing:
        raise Rejected("body", "must have a field that differs from the post")
    return {name: new.get(name, EMPTY.get(name, "")) for name in documents.FIELDS if name in differing}


def _id_of(post_id: int, author: str, changes: Fields) -> int:
    digest = hashlib.sha256(documents.dump([post_id, author, changes]).encode()).hexdigest()
    return int(digest[:15], 16) + 1


def _proposal(post: posts.StoredPost, old: Fields, author: str, created_at: str, changes: Fields) -> StoredProposal:
    proposal_id = _id_of(post.id, author, changes)
    shown = {"id": str(proposal_id), "post_id": str(post.id), "by": author, "created_at": created_at}
    document = documents.dump(shown | {"base": etag_of(post.document), "changes": changes}).encode()
    return StoredProposal(proposal_id, post.id, author, created_at, _base(old, changes), document, changes)


def _base(post: Fields, names: Fields) -> dict[str, Any]:
    """Return hashes of fields of a post, but its tags as they are, because a site-wide tag change must edit them."""
    hashes = {name: etag_of(documents.dump([post.get(name)]).encode()) for name in names}
    return hashes | ({"tags": post["tags"]} if "tags" in names else {})


def _insert(tx: Transaction, new: StoredProposal) -> None:
    """Insert a proposal. Raises Rejected if too many wait."""
    of_post = Case(None, [(Proposal.post_id == new.post_id, 1)], 0)
    totals = [fn.COALESCE(fn.SUM(each), 0) for each in (1, Proposal.bytes, of_post)]
    count, size, count_of_post = tx.one(_of_present.select(*totals))
    if count_of_post >= MAX_OF_POST:
        raise Rejected("proposals", f"this post already has {MAX_OF_POST}; apply or delete one first")
    if count >= MAX_PROPOSALS:
        raise Rejected("proposals", f"there are already {MAX_PROPOSALS:,}; apply or delete one first")
    if size + len(new.document) > MAX_BYTES:
        raise Rejected("proposals", f"can have {MAX_BYTES:,} bytes in all; apply or delete one first")
    (last,) = tx.one(Proposal.select(fn.COALESCE(fn.MAX(Proposal.number), 0)))
    row = {"id": new.id, "post_id": new.post_id, "author": new.author, "created_at": tx.now, "number": last + 1}
    tx.execute(Proposal.insert(row | _texts(new)))


def _texts(proposal: StoredProposal) -> dict[str, Any]:
    """Return the columns to update if the same change is proposed again."""
    document = proposal.document.decode()
    return {"base": documents.dump(proposal.base), "document": document, "bytes": len(proposal.document)}


def apply(
    tx: Transaction, ref: PostRef, proposal_id: int, author: Author, check: Check = no_check, *, force: bool = False
) -> tuple[bytes, StoredProposal]:
    """Make the changes of a proposal; return the post's document, and the proposal.

    Raises like `posts.change`, and ChangedSince.
    """
    proposal, post = find(tx, ref, proposal_id), posts.find_to_change(tx, ref)
    check(post.document)
    if not force and (both := proposal.conflicts(documents.load(post.document))):
        raise ChangedSince(both)
    changed = posts.change(tx, post.id, cleared(proposal.changes), author)
    withdraw(tx, proposal_id)
    if changed != post.document:
        row = {"post_id": post.id, "version": post.version, "author": proposal.author, "applied_at": tx.now}
        tx.execute(AppliedProposal.insert(row))
    return changed, proposal


def remove(tx: Transaction, ref: PostRef, proposal_id: int, author: Author) -> None:
    """Withdraw or refuse a proposal. Raises DoesNotExist; NotPermitted if a drafts-only key did not make it."""
    found = tx.row(_of_present.select(Proposal.author).where(_is(posts.id_of(tx, ref), proposal_id)))
    if found is None:
        raise DoesNotExist("proposal")
    if author.drafts_only and found[0] != author.name:
        raise NotPermitted("another key made this proposal")
    withdraw(tx, proposal_id)


def clear(tx: Transaction) -> int:
    """Delete the proposals for posts that were deleted for good; return how many."""
    in_trash = Revision.select(Revision.post_id).where(Revision.state == "deleted")
    is_gone = Proposal.post_id.not_in(Post.select(Post.id)) & Proposal.post_id.not_in(in_trash)
    return tx.execute(Proposal.delete().where(is_gone))


def prune(tx: Transaction, days: int) -> int:
    """Delete expired proposals, and the records of proposals applied more than `days` ago; return how many."""
    old, applied = earlier(tx.now, PROPOSAL_TTL), earlier(tx.now, timedelta(days=days))
    count = tx.execute(Proposal.delete().where(Proposal.created_at <= old))
    return count + tx.execute(AppliedProposal.delete().where(AppliedProposal.applied_at <= applied))
