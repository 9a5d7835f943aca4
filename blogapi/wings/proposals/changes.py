"""Proposals: making, listing, applying and deleting them."""

import hashlib
import json
import logging
from datetime import timedelta
from typing import Any, NamedTuple

from peewee import Case, Tuple, fn

from blogapi import documents
from blogapi.clock import earlier
from blogapi.documents import etag_of
from blogapi.paging import LATEST, Cursor, ListQuery, Page, cursor_of, page_of
from blogapi.posts import effects, slugs
from blogapi.posts import storage as posts
from blogapi.posts.params import equal
from blogapi.posts.storage import Check, Fields, PostRef, no_check
from blogapi.storage.engine import AsBytes, Reader, Transaction
from blogapi.storage.errors import Damaged, NotFound, NotPermitted, Rejected
from blogapi.storage.models import MAX_ID, Drafter, Post, Revision
from blogapi.wings.staged import APPLIED, PROPOSED, DraftCopy, conflicts, is_proposal, withdraw

MAX_OF_POST, MAX_PROPOSALS, MAX_BYTES = 20, 1000, 16_000_000  # the last two for all posts together
PROPOSAL_TTL = timedelta(days=90)
log = logging.getLogger(__name__)
EMPTY: Fields = {"tags": [], "params": {}, "former_slugs": []}  # how a change clears a field; "" for all others


class ChangedSince(Exception):
    """Fields of a proposal have other values than when it was made."""

    def __init__(self, names: list[str]):
        super().__init__(f"{', '.join(names)}: changed since; force=true applies the proposal all the same")


class Proposal(NamedTuple):
    """A proposal: its author, the fields as they were when it was made, and its JSON, which is sent unchanged."""

    id: str
    post_id: int
    author: str
    base: dict[str, Any]
    document: bytes
    changes: Fields  # an empty value clears a field

    def conflicts(self, now: Fields) -> list[str]:
        """Return the fields that have another value by now, and not the proposed one."""
        return conflicts(self.base, _known(now | cleared(self.changes), self.changes), _known(now, self.changes))

    def log_applied(self) -> None:
        """Log that it was applied, and who proposed it: the history names who applied it."""
        log.info("proposal %s of %s was applied to post %s", self.id, self.author, self.post_id)


def cleared(changes: Fields) -> Fields:
    """Return the changes of a proposal with None for fields that they clear; tags are never None."""
    return {name: value or (value if name == "tags" else None) for name, value in changes.items()}


_document = AsBytes(DraftCopy.fields)
_columns = DraftCopy.id, DraftCopy.post_id, DraftCopy.browser, DraftCopy.next, _document
# A post in the trash hides its proposals.
_of_present = DraftCopy.select().join(Post, on=Post.id == DraftCopy.post_id).where(is_proposal)


def page(
    reader: Reader, ref: PostRef | None, limit: int, before: Cursor[int] | None = None
) -> Page[bytes, Cursor[int]]:
    """Return a page of the proposals for a post, or for all posts, newest first. Raises NotFound."""
    is_wanted = Tuple(DraftCopy.saved_at, DraftCopy.number) < Tuple(*(before or (LATEST, MAX_ID)))
    if ref is not None:
        is_wanted &= DraftCopy.post_id == posts.id_of(reader, ref)
    query = _of_present.select(DraftCopy.number, DraftCopy.id, _document, DraftCopy.saved_at).where(is_wanted)
    query = query.order_by(DraftCopy.saved_at.desc(), DraftCopy.number.desc()).limit(limit + 1)
    return page_of(reader.rows(query), ListQuery(limit), reader.now, cursor_of, lambda _, document: document)


def find(reader: Reader, ref: PostRef, proposal_id: int) -> Proposal:
    """Return a proposal for a post. Raises NotFound."""
    found = _find(reader, posts.id_of(reader, ref), str(proposal_id))
    if found is None:
        raise NotFound("proposal")
    return found


def _find(reader: Reader, post_id: int, proposal_id: str) -> Proposal | None:
    of_both = (DraftCopy.id == proposal_id) & (DraftCopy.post_id == post_id)
    found = reader.row(_of_present.select(*_columns).where(of_both))
    if found is None:
        return None
    try:
        return Proposal._make((*found[:3], json.loads(found[3]), found[4], json.loads(found[4])["changes"]))
    except (TypeError, ValueError) as error:
        raise Damaged from error


def add(tx: Transaction, ref: PostRef, fields: Fields, author: str, check: Check = no_check) -> tuple[Proposal, bool]:
    """Propose a change, with fields as for `posts.change`; return the proposal, and whether it is new.

    The same change by the same author is the same proposal. Proposed again after the post has changed, it is based on
    the current post. Raises NotFound, Rejected.
    """
    posts.check_size(tx, fields.get("content", ""))
    post = posts.find_to_change(tx, ref)
    check(post.document)
    old = documents.load(post.document)
    changes = _differences(tx, post.id, old, fields)
    digest = hashlib.sha256(documents.dump([post.id, author, changes]).encode()).hexdigest()
    proposal_id = str(int(digest[:15], 16) + 1)
    before = _find(tx, post.id, proposal_id)
    made_at = json.loads(before.document)["created_at"] if before else tx.now
    proposal = {"id": proposal_id, "post_id": str(post.id), "by": str(author), "created_at": made_at}
    proposal |= {"base": etag_of(post.document), "changes": changes}
    base, document = _known(old, changes), documents.dump(proposal).encode()
    new = Proposal(proposal_id, post.id, str(author), base, document, changes)
    row = {"etag": proposal["base"], "next": documents.dump(base), "fields": document.decode(), "bytes": len(document)}
    if before is None:
        row |= {"id": proposal_id, "post_id": post.id, "state": PROPOSED, "number": _free_number(tx, new)}
        tx.execute(DraftCopy.insert(row | {"saved_at": tx.now, "browser": new.author, "title": ""}))
        shown = {name: value for name, value in proposal.items() if name != "changes"}
        effects.run_for_proposal(tx, old, shown | {"fields": [*changes]})
    elif before != new:
        tx.execute(DraftCopy.update(row).where(DraftCopy.id == proposal_id))
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


def _known(post: Fields, names: Fields) -> dict[str, Any]:
    """Return the tags of a post, which a site-wide tag change must be able to edit, and hashes of its other fields."""
    hashes = {name: etag_of(documents.dump([post.get(name)]).encode()) for name in names}
    return hashes | ({"tags": post["tags"]} if "tags" in names else {})


def _free_number(tx: Transaction, new: Proposal) -> int:
    """Return the number of a new proposal, which is greater than all others. Raises Rejected if too many wait."""
    of_post = Case(None, [(DraftCopy.post_id == new.post_id, 1)], 0)
    totals = [fn.COALESCE(fn.SUM(each), 0) for each in (1, DraftCopy.bytes, of_post)]
    count, size, count_of_post = tx.one(_of_present.select(*totals))
    if count_of_post >= MAX_OF_POST:
        raise Rejected("proposals", f"{MAX_OF_POST} wait for this post already; apply or delete one first")
    if count >= MAX_PROPOSALS:
        raise Rejected("proposals", f"{MAX_PROPOSALS:,} wait already; apply or delete one first")
    if size + len(new.document) > MAX_BYTES:
        most = f"those that wait can have {MAX_BYTES:,} bytes in all"
        raise Rejected("proposals", f"{most}; apply or delete one first")
    (last,) = tx.one(DraftCopy.select(fn.COALESCE(fn.MAX(DraftCopy.number), 0)).where(is_proposal))
    return last + 1


def apply(
    tx: Transaction, ref: PostRef, proposal_id: int, author: str, check: Check = no_check, *, force: bool = False
) -> tuple[bytes, Proposal]:
    """Make the changes of a proposal; return the post's document, and the proposal.

    Raises like `posts.change`, and ChangedSince.
    """
    proposal, post = find(tx, ref, proposal_id), posts.find_to_change(tx, ref)
    check(post.document)
    if not force and (both := proposal.conflicts(documents.load(post.document))):
        raise ChangedSince(both)
    changed = posts.change(tx, post.id, cleared(proposal.changes), author)
    if changed == post.document:
        withdraw(tx, proposal.id)
        return changed, proposal
    trace = {"id": f"{proposal_id}-{post.version}", "state": APPLIED, "number": post.version, "saved_at": tx.now}
    trace |= {"next": "", "bytes": 0, "fields": "{}"}  # for undo
    tx.execute(DraftCopy.update(trace).where(DraftCopy.id == str(proposal_id)))
    return changed, proposal


def remove(tx: Transaction, ref: PostRef, proposal_id: int, author: str) -> None:
    """Withdraw or refuse a proposal. Raises NotFound; NotPermitted if a drafts-only key did not make it."""
    of_both = (DraftCopy.id == str(proposal_id)) & (DraftCopy.post_id == posts.id_of(tx, ref))
    found = tx.row(_of_present.select(DraftCopy.browser).where(of_both))
    if found is None:
        raise NotFound("proposal")
    if isinstance(author, Drafter) and found[0] != author:
        raise NotPermitted("another key made this proposal")
    withdraw(tx, str(proposal_id))


def clear(tx: Transaction) -> int:
    """Delete the proposals whose post is gone for good; return how many."""
    in_trash = Revision.select(Revision.post_id).where(Revision.state == "deleted")
    is_gone = DraftCopy.post_id.not_in(Post.select(Post.id)) & DraftCopy.post_id.not_in(in_trash)
    return tx.execute(DraftCopy.delete().where(is_proposal, is_gone))


def prune(tx: Transaction, days: int) -> int:
    """Delete old proposals, and the traces of those applied more than `days` ago; return how many."""
    is_old = is_proposal & (DraftCopy.saved_at <= earlier(tx.now, PROPOSAL_TTL))
    is_trace = (DraftCopy.state == APPLIED) & (DraftCopy.saved_at <= earlier(tx.now, timedelta(days=days)))
    return tx.execute(DraftCopy.delete().where(is_old | is_trace))
