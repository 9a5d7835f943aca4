"""Staged changes: the table of text typed on the owner's page, and of proposals.

Both are merged with the post by fields: a field conflicts only if both sides changed it, to different values.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from blogapi.documents import dump
from blogapi.storage.engine import Reader, Transaction
from blogapi.storage.models import model

PROPOSED, APPLIED = "proposed", "applied"  # states; undo needs the applied ones
DraftCopy = model("draft_copy")
is_proposal = DraftCopy.state == PROPOSED


def conflicts(base: Mapping[str, Any], mine: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the fields that both sides changed to different values. The values can be hashes."""
    return [name for name in mine if mine[name] != base.get(name) and now[name] not in (base.get(name), mine[name])]


def posts_with_proposals(reader: Reader) -> set[int]:
    """Return the ids of the posts for which proposals wait."""
    return {post_id for (post_id,) in reader.rows(DraftCopy.select(DraftCopy.post_id).where(is_proposal).distinct())}


def withdraw(tx: Transaction, proposal_id: str) -> None:
    """Delete a proposal."""
    tx.execute(DraftCopy.delete().where(DraftCopy.id == proposal_id, is_proposal))


def withdraw_all(tx: Transaction, post_id: int) -> None:
    """Delete the proposals for a post that is deleted for good. What its owner left unsaved stays."""
    tx.execute(DraftCopy.delete().where(DraftCopy.post_id == post_id, is_proposal))


def made_since(reader: Reader, since: str, author: str | None) -> Iterator[tuple[str, int, str]]:
    """Return the id, post and author of each proposal made since a given time, by anybody or by one author."""
    columns = DraftCopy.id, DraftCopy.post_id, DraftCopy.browser
    query = DraftCopy.select(*columns).where(is_proposal, DraftCopy.saved_at >= since)
    return reader.rows(query.where(DraftCopy.browser == author) if author is not None else query)


def applied(reader: Reader, post_id: int) -> dict[int, str]:
    """Return the authors of the proposals applied to a post, by the version that each replaced."""
    of_post = (DraftCopy.state == APPLIED) & (DraftCopy.post_id == post_id)
    return dict(reader.rows(DraftCopy.select(DraftCopy.number, DraftCopy.browser).where(of_post)))


def retag(tx: Transaction, change: Callable[[list[str]], list[str]]) -> None:
    """Make a site-wide tag change in the proposals, too, so that it conflicts with none."""
    changes_tags = is_proposal & DraftCopy.fields.contains('"tags":[')  # In a string, the quotes would be escaped.
    query = DraftCopy.select(DraftCopy.id, DraftCopy.next, DraftCopy.fields).where(changes_tags)
    for proposal_id, base, document in list(tx.rows(query)):
        known, proposal = json.loads(base), json.loads(document)
        for fields in (known, proposal["changes"]):
            if "tags" in fields:
                fields["tags"] = change(fields["tags"])
        values = {"next": dump(known), "fields": dump(proposal), "bytes": len(dump(proposal).encode())}
        tx.execute(DraftCopy.update(values).where(DraftCopy.id == proposal_id))
