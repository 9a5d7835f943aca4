"""Serve the endpoints for proposals."""

from functools import partial

from flask import Response
from marshmallow import fields
from werkzeug import exceptions

from blogapi.api.errors import error_response
from blogapi.api.operations import ResponseSpec
from blogapi.api.request import JSON_TYPES, Request, load_body
from blogapi.api.responses import POSTS_PATH, document_response, list_response, no_content
from blogapi.api.schemas import StrictSchema, Time, cursor, doc, matching, page_size, parameters, query_flag
from blogapi.api.views import Views
from blogapi.documents import ID_PATTERN
from blogapi.posts import storage as posts
from blogapi.posts.schemas import PostChangeSchema
from blogapi.posts.views import CHANGED_POST, LIST_HEADERS
from blogapi.storage.keys import READ_SCOPES, WRITE_SCOPES
from blogapi.wings.proposals import storage as proposals

BEFORE = cursor("Only proposals made before")
QUERY = parameters(limit=page_size("proposals"), before=BEFORE)
FORCE = parameters(force=query_flag("`true`: also overwrite fields that were changed after the proposal was made."))
views = Views("proposals", __name__)


class ProposalSchema(StrictSchema):
    """A proposed change to a post, to be applied or refused."""

    example = {
        "id": "7",
        "post_id": "1",
        "by": "agent",
        "created_at": "2026-11-20T10:10:00Z",
        "base": "185f8db32271fe25f561a6fc938b2e264306ec304eda518007d1764826381969",
        "changes": {"title": "Three days by the lake"},
    }
    id = matching(ID_PATTERN, 1, 19, "The id, a number as text.")
    post_id = matching(ID_PATTERN, 1, 19, "The id of the post.")
    by = fields.String(required=True, **doc("The name of the key that proposed the change."))
    created_at = Time(required=True, **doc("When the change was proposed, in UTC, to the second."))
    base = fields.String(required=True, **doc("The ETag that the post had then, without quotes."))
    changes = fields.Dict(required=True, **doc('The new values of the fields; `""`, `[]` or `{}` clears a field.'))


ONE = ResponseSpec(200, "The proposal.", ProposalSchema(), ("ETag",))
LIST = ResponseSpec(200, "The proposals.", ProposalSchema(many=True), LIST_HEADERS)


@views.operation(
    "POST /v1/posts/<id:post>/proposals",
    ONE,
    creates=ResponseSpec(201, "The new proposal.", ProposalSchema(), ("Location", "ETag")),
    body=PostChangeSchema(partial=True),
    content_types=JSON_TYPES,
    request_headers=("If-Match",),
    scopes=WRITE_SCOPES,
)
def propose_change(request: Request, post: posts.PostRef) -> Response:
    """Propose a change to a post.

    The body is the same as for a PATCH. The post does not change until somebody applies the proposal. A drafts-only key
    may propose a change to any post. Proposing the same change again with the same key returns the same proposal.
    """
    changes = load_body(request, lambda: posts.id_of(request.database, post))
    proposal = request.database.write(proposals.add, post, changes, request.author, request.check_preconditions)
    if not proposal.is_new:
        return document_response(request, proposal.document)
    path = request.with_prefix(f"{POSTS_PATH}{proposal.post_id}/proposals/{proposal.id}")
    return document_response(request, proposal.document, status=201, headers=[("Location", path)])


@views.operation("GET /v1/posts/<id:post>/proposals", LIST, query=QUERY, scopes=READ_SCOPES)
def list_proposals(request: Request, post: posts.PostRef) -> Response:
    """List the proposals for a post, newest first."""
    return list_response(request, proposals.page(request.database, post, **request.query))


@views.operation("GET /v1/proposals", LIST, query=QUERY, scopes=READ_SCOPES)
def list_all_proposals(request: Request) -> Response:
    """List the proposals for all posts, newest first."""
    return list_response(request, proposals.page(request.database, None, **request.query))


@views.operation("GET /v1/posts/<id:post>/proposals/<id:proposal>", ONE, scopes=READ_SCOPES)
def get_proposal(request: Request, post: posts.PostRef, proposal: int) -> Response:
    """Get a proposal."""
    return document_response(request, proposals.get(request.database, post, proposal).document)


@views.operation(
    "DELETE /v1/posts/<id:post>/proposals/<id:proposal>",
    ResponseSpec(204, "The proposal was deleted."),
    request_headers=("If-Match",),
    scopes=WRITE_SCOPES,
)
def delete_proposal(request: Request, post: posts.PostRef, proposal: int) -> Response:
    """Refuse or withdraw a proposal.

    A drafts-only key may delete only its own proposals.
    """
    check = partial(request.check_preconditions, what="proposal")
    request.database.write(proposals.delete, post, proposal, request.author, check)
    return no_content(request)


@views.operation(
    "POST /v1/posts/<id:post>/proposals/<id:proposal>/apply", CHANGED_POST, query=FORCE, request_headers=("If-Match",)
)
def apply_proposal(request: Request, post: posts.PostRef, proposal: int) -> Response:
    """Apply a proposal to its post.

    If a field that the proposal changes was changed in the meantime, the response is 412, unless `force` is `true`.
    """
    found, force = proposals.get(request.database, post, proposal), request.query.get("force", False)
    check = partial(request.check_preconditions, hint="; the ETag must be the post's, not the proposal's")
    changed = request.database.write(proposals.apply, post, proposal, request.author, check, force=force)
    found.log_applied()
    return document_response(request, changed.document)


@views.app_errorhandler(proposals.ChangedSince)
def changed_since(error: proposals.ChangedSince) -> Response:
    """Return a 412 with the names of the fields that have changed."""
    return error_response(exceptions.PreconditionFailed(str(error)))
