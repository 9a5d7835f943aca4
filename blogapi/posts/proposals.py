"""The effects of changes to posts and tags on proposals."""

import json
from collections.abc import Callable

from blogapi.documents import dump
from blogapi.storage.engine import Compiled, Placeholder, Transaction, placeholders
from blogapi.storage.models import Proposal

RETAGGED = 50  # proposals that are read, and on PostgreSQL written, in one round trip


def withdraw(tx: Transaction, proposal_id: int) -> None:
    """Delete a proposal."""
    tx.execute(Proposal.delete().where(Proposal.id == proposal_id))


def forget(tx: Transaction, post_id: int) -> None:
    """Delete the proposals for a post that is deleted for good."""
    tx.execute(Proposal.delete().where(Proposal.post_id == post_id))


def retag(tx: Transaction, change: Callable[[list[str]], list[str]]) -> None:
    """Make a site-wide tag change in the proposals, too; otherwise they would conflict with it."""
    changes_tags = Proposal.document.contains('"tags":[')  # In a string, the quotes would be escaped.
    ids = [proposal_id for (proposal_id,) in tx.rows(Proposal.select(Proposal.id).where(changes_tags))]
    for start in range(0, len(ids), RETAGGED):
        query = Proposal.select(Proposal.id, Proposal.base, Proposal.document)
        for proposal_id, *texts in list(tx.rows(query.where(Proposal.id.in_(ids[start : start + RETAGGED])))):
            base, proposal = map(json.loads, texts)
            for fields in (base, proposal["changes"]):
                if "tags" in fields:
                    fields["tags"] = change(fields["tags"])
            if [dump(base), document := dump(proposal)] != texts:
                tx.defer(SET_TEXTS, id=proposal_id, base=dump(base), document=document, bytes=len(document.encode()))


_texts = placeholders(Proposal, "base", "document", "bytes")
SET_TEXTS = Compiled(Proposal.update(_texts).where(Proposal.id == Placeholder("id")))
