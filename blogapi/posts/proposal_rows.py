"""Keep proposals up to date when posts are deleted or tags change."""

import json
from collections.abc import Callable
from contextlib import suppress

from blogapi.documents import dump
from blogapi.storage.engine import Compiled, Placeholder, Transaction, placeholders
from blogapi.storage.models import Proposal

PROPOSALS_PER_READ = 50  # read the tags of this many proposals in one round trip


def delete(tx: Transaction, proposal_id: int) -> None:
    tx.execute(Proposal.delete().where(Proposal.id == proposal_id))


def purge(tx: Transaction, post_id: int) -> None:
    """Delete the proposals for a permanently deleted post."""
    tx.execute(Proposal.delete().where(Proposal.post_id == post_id))


def retag(tx: Transaction, change: Callable[[list[str]], list[str]]) -> None:
    """Apply a site-wide tag change to the proposals, because they would otherwise conflict with the change.

    Only the documents of proposals with the tag are read, one at a time. Damaged proposals are skipped.
    """
    ids = [proposal_id for (proposal_id,) in tx.rows(Proposal.select(Proposal.id).where(Proposal.tags != ""))]
    for start in range(0, len(ids), PROPOSALS_PER_READ):
        query = Proposal.select(Proposal.id, Proposal.base, Proposal.tags)
        for proposal_id, *texts in list(tx.rows(query.where(Proposal.id.in_(ids[start : start + PROPOSALS_PER_READ])))):
            with suppress(TypeError, ValueError, KeyError):
                base, tags = map(json.loads, texts)
                changed = base | {"tags": change(base["tags"])}, change(tags)
                if changed != (base, tags):
                    _rewrite(tx, proposal_id, *changed)


def _rewrite(tx: Transaction, proposal_id: int, base: dict, tags: list[str]) -> None:
    (text,) = tx.one(SELECT_DOCUMENT, id=proposal_id)
    proposal = json.loads(text)
    changes = proposal["changes"] | {"tags": tags}
    texts = {"base": dump(base), "tags": dump(tags), "document": dump(proposal | {"changes": changes})}
    tx.defer(UPDATE_TEXTS, id=proposal_id, bytes=len(dump(changes).encode()), **texts)


_has_id = Proposal.id == Placeholder("id")
SELECT_DOCUMENT = Compiled(Proposal.select(Proposal.document).where(_has_id))
UPDATE_TEXTS = Compiled(Proposal.update(placeholders(Proposal, "base", "tags", "document", "bytes")).where(_has_id))
