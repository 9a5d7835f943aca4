"""The owner's views of proposals: what each would change, and applying, editing and refusing it."""

import json
import secrets
from typing import Any

from flask import Blueprint, Response, g
from werkzeug.exceptions import PreconditionFailed

from blogapi import documents
from blogapi.api.request import request
from blogapi.api.responses import redirect
from blogapi.api.schemas import parameters
from blogapi.posts import storage as posts
from blogapi.storage.engine import Transaction
from blogapi.storage.models import Author
from blogapi.wings.owner import copies
from blogapi.wings.owner.fields import as_typed, base_of
from blogapi.wings.owner.frame import address, asked, done, shows_errors
from blogapi.wings.owner.posts import POST, change, differences, show_post
from blogapi.wings.proposals import storage as proposals
from blogapi.wings.proposals.views import BEFORE

PROPOSAL = f"{POST}/proposals/<id:proposal_id>"
PROPOSALS_PER_PAGE = 4  # proposals on a page; comparing and showing one can take 10 MB
waiting_query = parameters(before=BEFORE)
views = Blueprint("proposals", __name__)


@views.app_template_filter("proposals")
def waiting(post_id: int) -> tuple[list[dict[str, Any]], Any]:
    """Return a page of the proposals for a post, newest first, as `shown`, and the start of the next page, if any."""
    database = request.database
    page = proposals.page(database, post_id, PROPOSALS_PER_PAGE, **waiting_query.load(asked()))
    ids, start = [int(json.loads(document)["id"]) for document in page.items], page.next
    del page  # Each of its documents can be a megabyte.
    now = posts.find(database, post_id)
    return [shown(now, proposals.find(database, post_id, proposal_id)) for proposal_id in ids], start


def shown(now: bytes, proposal: proposals.StoredProposal) -> dict[str, Any]:
    """Return what a proposal would change in a post, without its whole texts, which can be long."""
    facts = {"id": proposal.id, "by": proposal.author, "created_at": proposal.created_at, "etag": proposal.etag}
    facts |= {"conflicts": proposal.conflicts(documents.load(now))}
    facts |= {"former_slugs": proposal.changes.get("former_slugs")}  # None if they stay
    return facts | {"changed": differences(now, proposed(now, proposal.changes))}


def proposed(document: bytes, fields: posts.Fields) -> bytes:
    """Return the document that a post would have with these changes."""
    return documents.dump(documents.in_order(documents.load(document) | proposals.cleared(fields))).encode()


@views.post(f"{PROPOSAL}/apply")
def apply_proposal(post_id: int, proposal_id: int) -> Any:
    """Apply a proposal if it and the post are as they were shown; otherwise show them again."""
    proposal = proposals.find(request.database, post_id, proposal_id)
    answer = change(post_id, "was changed as proposed.", apply, (proposal_id, g.form.get("proposal")))
    if isinstance(answer, Response):
        proposal.log_applied()
    return answer


def apply(tx: Transaction, post_id: int, shown: tuple[int, str], author: Author, check: posts.Check) -> bytes:
    """Apply a proposal, even over its conflicts. Raises PreconditionFailed unless it has the entity tag shown."""
    proposal_id, etag = shown
    if proposals.find(tx, post_id, proposal_id).etag != etag:  # A site-wide tag change has edited it.
        raise PreconditionFailed
    return proposals.apply(tx, post_id, proposal_id, author, check, force=True)[0]


@views.post(f"{PROPOSAL}/edit")
def edit_proposal(post_id: int, proposal_id: int) -> Response:
    """Open the form with a proposal as unsaved text."""
    copy_id = request.database.write(take, post_id, proposal_id, request.author)
    return redirect(address(f"/posts/{post_id}/edit?copy={copy_id}"), 303)


def take(tx: Transaction, post_id: int, proposal_id: int, author: Author) -> str:
    """Turn a proposal into a copy; return its id. Raises DoesNotExist."""
    now, proposal = posts.find(tx, post_id), proposals.find(tx, post_id, proposal_id)
    fields = as_typed(proposed(now, proposal.changes)) | {"base": base_of(as_typed(now))}
    copy = copies.Copy(secrets.token_urlsafe(16), 1, str(post_id), post_id, etag=documents.etag_of(now))
    copies.put(tx, copies.Sent(copy._replace(browser=f"a proposal of {proposal.author}"), fields))
    proposals.remove(tx, post_id, proposal_id, author)
    return copy.id


@views.post(f"{PROPOSAL}/refuse")
def refuse_proposal(post_id: int, proposal_id: int) -> Response:
    """Refuse a proposal."""
    request.database.write(proposals.refuse, post_id, proposal_id)
    path = f"/posts/{post_id}"
    return done(path, "The proposal was refused.", undo=(f"{path}/proposals/{proposal_id}/restore", {}))


@views.post(f"{PROPOSAL}/restore")
@shows_errors(show_post)
def restore_proposal(post_id: int, proposal_id: int) -> Response:
    """Undo the refusal of a proposal."""
    request.database.write(proposals.restore, post_id, proposal_id)
    return done(f"/posts/{post_id}", "The proposal waits again.")
