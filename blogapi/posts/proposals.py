"""What a change to a post does to the proposals for it."""

import json
from collections.abc import Callable

from blogapi.documents import dump
from blogapi.storage.engine import Transaction
from blogapi.storage.models import Proposal


def withdraw(tx: Transaction, proposal_id: int) -> None:
    """Delete a proposal."""
    tx.execute(Proposal.delete().where(Proposal.id == proposal_id))


def forget(tx: Transaction, post_id: int) -> None:
    """Delete the proposals for a post that is deleted for good."""
    tx.execute(Proposal.delete().where(Proposal.post_id == post_id))


def retag(tx: Transaction, change: Callable[[list[str]], list[str]]) -> None:
    """Make a site-wide tag change in the proposals, too, so that it conflicts with none."""
    changes_tags = Proposal.document.contains('"tags":[')  # In a string, the quotes would be escaped.
    query = Proposal.select(Proposal.id, Proposal.base, Proposal.document).where(changes_tags)
    for proposal_id, *texts in list(tx.rows(query)):
        base, proposal = map(json.loads, texts)
        for fields in (base, proposal["changes"]):
            if "tags" in fields:
                fields["tags"] = change(fields["tags"])
        values = {"base": dump(base), "document": dump(proposal), "bytes": len(dump(proposal).encode())}
        tx.execute(Proposal.update(values).where(Proposal.id == proposal_id))
