"""The owner's views of posts: the list, a post's page with its proposals, its history, and the trash."""

import json
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import takewhile
from typing import Any

from flask import Blueprint, Response, g, render_template
from peewee import SQL, Select, fn
from werkzeug.exceptions import PreconditionFailed

from blogapi import documents
from blogapi.api.request import request
from blogapi.api.responses import redirect
from blogapi.api.schemas import parameters
from blogapi.documents import STATUSES, etag_of
from blogapi.posts import lists, publication
from blogapi.posts import storage as posts
from blogapi.posts.history import MAX_REVISIONS
from blogapi.posts.schemas import MAX_QUERY, ListQuerySchema, PostChangeSchema
from blogapi.storage.engine import Reader, Transaction
from blogapi.storage.errors import Damaged, DoesNotExist
from blogapi.storage.models import Author, Post
from blogapi.text import Lines
from blogapi.wings.history import revisions
from blogapi.wings.history.views import DELETED, REVISION
from blogapi.wings.owner import copies, sessions
from blogapi.wings.owner.fields import FORM_FIELDS, as_typed, base_of, changed_fields, differing, typed_fields
from blogapi.wings.owner.frame import address, asked, done, read_notice, shows_errors
from blogapi.wings.proposals import storage as proposals
from blogapi.wings.proposals.views import BEFORE

POSTS_PER_PAGE, TRASHED_PER_PAGE = 20, 50
PROPOSALS_PER_PAGE = 4  # few, because comparing and showing a proposal can take 10 MB
MAX_COUNTED = 100_000  # maximum number of posts counted for each status; counting this many takes 5 ms
SEARCHED_VERSIONS = 5  # how many recent versions to search for the one that a page was opened with
LIST_FIELDS = "id,title,status,tags,excerpt,cover_image,published_at,updated_at"
POST, TRASHED = "/posts/<id:post_id>", "/trash/<id:post_id>"
VERSION, PROPOSAL = f"{POST}/history/<id:version>", f"{POST}/proposals/<id:proposal_id>"

list_query = ListQuerySchema(only=("status", "tag", "before", "q", "sort"))
trash_query, history_query = parameters(before=DELETED), parameters(before=REVISION)
waiting_query, compare_query = parameters(before=BEFORE), parameters(old=REVISION, new=REVISION)
change_of_post = PostChangeSchema(partial=True)
views = Blueprint("posts", __name__)


@views.get("/posts")
def show_posts() -> str:
    """Show the posts, most recently changed (or published) first, and the number of posts with each status."""
    database, query = request.database, asked()
    words = query.get("q", "")
    if words and not any(map(str.isalnum, words)):
        del query["q"]  # Such a search has no words. The page says what to type.
    elif words[-1:].isalnum() and len(words) < MAX_QUERY:
        query["q"] = f"{words}*"  # The last word may be incomplete, so search for its beginning.
    # Posts with a tag cannot be sorted by `updated_at`. The schema also refuses to sort a search this way, so the query
    # is loaded as if it were sorted by `published_at`, where a cursor looks the same.
    order = {} if "tag" in query else {"sort": "published_at" if query.get("status") == "published" else "updated_at"}
    loaded = list_query.load(query | dict.fromkeys(order, "published_at")) | order
    loaded |= {"limit": POSTS_PER_PAGE, "fields": f"{LIST_FIELDS},content" if words else LIST_FIELDS}
    page = lists.list_page(database, loaded, request.client)
    shown: dict[str, Any] = {"page": page, "searched": query.get("q")}
    if not page.items:
        trashed = database.read_in_thread(request.client, revisions.trash, 1, text=words[:MAX_QUERY]).items
        shown["trashed"] = trashed or (not words and copies.listing(database, copies.DISCARDED))
    shown |= {"counts": counts(database), "most": MAX_COUNTED, "proposed": proposals.posts_with_proposals(database)}
    shown["copies"] = texts = copies.listing(database, copies.OPEN, *copies.FORMER)
    of_posts = Post.id.in_([copy.post_id for copy in texts if copy.post_id])
    shown |= {"statuses": dict(database.rows(Post.select(Post.id, Post.status).where(of_posts))), "now": database.now}
    with suppress(Damaged):
        shown["late"] = publication.latest_in_future(database)
    return render_template("owner/posts.html", **shown)


def counts(reader: Reader) -> dict[str, int]:
    """Count the posts with each status, up to MAX_COUNTED, because counting more would take too long."""
    return {status: reader.one(query)[0] for status, query in COUNTS.items()}


_limited = {status: Post.select(Post.id).where(Post.status == status).limit(MAX_COUNTED) for status in STATUSES}
COUNTS = {status: Select([query], [fn.COUNT(SQL("*"))]) for status, query in _limited.items()}


@views.get(POST)
def show_post(post_id: int, **shown: Any) -> str:
    """Show a post and its actions and, if `changed` is given, the changes made since its page was opened."""
    document = posts.get(request.database, post_id)
    shown |= {"post": documents.load(document), "etag": etag_of(document), "is_kept": request.database.keeps_history}
    shown["copies"] = copies.listing(request.database, copies.OPEN, copies.CONFLICT, draft=str(post_id))
    shown["links"] = sessions.previews(request.database, post_id)
    shown["proposals"], shown["older_proposals"] = waiting(post_id)
    return render_template("owner/post.html", **shown)


def show_changed(post_id: int) -> tuple[str, int]:
    """Show that a post has changed since its page was opened. If the old version is recent, show the changes."""
    latest = revisions.page(request.database, post_id, SEARCHED_VERSIONS).items
    versions = (revisions.get(request.database, post_id, kept.version) for kept in latest)
    old = next((version for version in versions if etag_of(version) == g.form.get("etag")), None)
    changed = differences(old, posts.get(request.database, post_id)) if old else {}
    return show_post(post_id, changed=changed), 412


def differences(old: bytes, new: bytes, names: list[str] = FORM_FIELDS) -> dict[str, Lines]:
    """Return the lines that differ between two versions of a post, by field."""
    return changed_fields(as_typed(documents.load(old)), as_typed(documents.load(new)), names)


@views.post(f"{POST}/status")
@shows_errors(show_post)
def change_status(post_id: int) -> Any:
    """Publish, schedule, archive or unpublish a post."""
    old = documents.load(posts.get(request.database, post_id))
    typed = typed_fields(old)[0]
    changes = {name: typed[name] for name in {*typed} & {"status", "published_at"} if typed[name] != old.get(name)}
    return change(post_id, outcome(), posts.change, change_of_post.load(changes))


def outcome(text: str = "") -> str:
    """Return a notice about the status that the button chose, or `text` if it chose none."""
    status = g.form.get("to") or ""
    return f"is now {'a draft' if status == 'draft' else status}." if status else text


@views.post(f"{POST}/delete")
def delete_post(post_id: int) -> Any:
    title, is_kept = title_by(posts.get, post_id), request.database.keeps_history
    try:
        request.database.write(posts.delete, post_id, request.author, partial(check_etag, g.form.get("etag")))
    except PreconditionFailed:
        return show_changed(post_id)
    text, undo = "is in the trash." if is_kept else "was deleted.", f"/trash/{post_id}/restore"
    return done("/posts", text, title, undo=(undo, {}) if is_kept else None)


def title_by(find: Callable, post_id: int) -> str:
    """Return the title of a post, or "" if the post is missing or damaged. A damaged post can still be deleted."""
    with suppress(Damaged, DoesNotExist):
        return documents.load(find(request.database, post_id))["title"]
    return ""


def check_etag(etag: str | None, document: bytes | None) -> None:
    """Raise PreconditionFailed unless a post's entity tag is still the one in its form."""
    if document is None or etag_of(document) != etag:
        raise PreconditionFailed("The post has changed in the meantime. Its history contains the earlier versions.")


def change(post_id: int, text: str, operation: Callable, argument: Any, show: Callable = show_changed) -> Any:
    """Change a post with a storage operation, and offer Undo. If others have changed the post, call `show` instead."""
    old, check = posts.get(request.database, post_id), partial(check_etag, g.form.get("etag"))
    try:
        document = request.database.write(operation, post_id, argument, check=check, author=request.author).document
    except PreconditionFailed:
        return show(post_id)
    new, path = documents.load(document), f"/posts/{post_id}"
    undo = f"{path}/undo", {"etag": etag_of(document), "to": g.form.get("to", "")}
    if document == old:  # The page may not have shown the notice of the previous change, which has an Undo button.
        return redirect(address(path), 303) if read_notice(path).get("undo") else done(path, "Nothing has changed.")
    if (former := documents.slug_in(old)) in new.get("former_slugs", ()):
        text += f" Its former slug {former} still leads to it."
    return done(path, text, "" if text[0].isupper() else new["title"], undo if request.database.keeps_history else None)


def waiting(post_id: int) -> tuple[list[dict[str, Any]], Any]:
    """Return a page of a post's proposals, newest first, each as a `brief`, and the cursor of the next page."""
    database = request.database
    page = proposals.page(database, post_id, PROPOSALS_PER_PAGE, **waiting_query.load(asked()))
    now, ids = documents.load(posts.get(database, post_id)), [json.loads(each)["id"] for each in page.items]
    return [brief(now, proposals.get(database, post_id, int(proposal_id))) for proposal_id in ids], page.next


def brief(now: posts.Fields, proposal: proposals.StoredProposal) -> dict[str, Any]:
    """Summarize a proposal: return the lines that it would change, but not its full text, which can be long."""
    facts = {"id": proposal.id, "by": proposal.author, "created_at": proposal.created_at}
    facts |= {"etag": etag_of(proposal.document), "conflicts": proposal.conflicts(now)}
    facts |= {"former_slugs": proposal.changes.get("former_slugs")}
    return facts | {"changed": changed_fields(as_typed(now), as_typed(now | proposal.changes))}


@views.post(f"{PROPOSAL}/apply")
def apply_proposal(post_id: int, proposal_id: int) -> Any:
    """Apply a proposal, unless it or its post has changed since the page was shown."""
    proposal = proposals.get(request.database, post_id, proposal_id)
    apply = partial(apply_shown, etag=g.form.get("proposal"))
    response = change(post_id, "was changed as proposed.", apply, proposal_id)
    if isinstance(response, Response):
        proposal.log_applied()
    return response


def apply_shown(tx: Transaction, post_id: int, proposal_id: int, etag: str, **options: Any) -> posts.StoredPost:
    """Apply a proposal despite conflicts. Raises PreconditionFailed if the proposal is not the one that was shown."""
    if etag_of(proposals.get(tx, post_id, proposal_id).document) != etag:  # Renaming a tag changes proposals.
        raise PreconditionFailed
    return proposals.apply(tx, post_id, proposal_id, force=True, **options)


@views.post(f"{PROPOSAL}/edit")
def edit_proposal(post_id: int, proposal_id: int) -> Response:
    """Open a post's form with a proposal as its unsaved draft."""
    request.database.write(take, post_id, proposal_id, request.author)
    return redirect(address(f"/posts/{post_id}/edit"), 303)


def take(tx: Transaction, post_id: int, proposal_id: int, author: Author) -> None:
    """Turn a proposal into the unsaved text of its post, and set any other such text aside. Raises DoesNotExist."""
    document, proposal = posts.get(tx, post_id), proposals.get(tx, post_id, proposal_id)
    now, browser = documents.load(document), f"a proposal by {proposal.author}"
    fields = as_typed(now | proposal.changes) | {"base": base_of(as_typed(now))}
    copy = copies.Copy(secrets.token_urlsafe(16), 1, str(post_id), post_id, etag=etag_of(document), browser=browser)
    copies.put(tx, copies.Sent(copy, fields))
    copies.use(tx, copy.id)
    proposals.delete(tx, post_id, proposal_id, author)


@views.post(f"{PROPOSAL}/refuse")
def refuse_proposal(post_id: int, proposal_id: int) -> Response:
    request.database.write(proposals.refuse, post_id, proposal_id)
    path = f"/posts/{post_id}"
    return done(path, "The proposal was refused.", undo=(f"{path}/proposals/{proposal_id}/restore", {}))


@views.post(f"{PROPOSAL}/restore")
@shows_errors(show_post)
def restore_proposal(post_id: int, proposal_id: int) -> Response:
    """Undo the refusal of a proposal."""
    request.database.write(proposals.restore, post_id, proposal_id)
    return done(f"/posts/{post_id}", "The proposal is waiting again.")


@views.get(f"{POST}/history")
def show_history(post_id: int) -> str:
    document = posts.get(request.database, post_id)
    post, etag = documents.load(document), etag_of(document)
    page = revisions.page(request.database, post_id, MAX_REVISIONS, **history_query.load(asked()))
    read, versions = request.database.read_in_thread, [revision.version for revision in page.items]
    changes = read(request.client, changes_in, post_id, versions)
    unsaved = read(request.client, copies.changes_of, str(post_id), as_typed(post), copies.WITH_TEXT)
    return render_template("owner/history.html", post=post, etag=etag, page=page, changes=changes, unsaved=unsaved)


def changes_in(reader: Reader, post_id: int, versions: list[int]) -> dict[int, dict[str, str]]:
    """Return the fields that each version has changed (0: the current one), or none after COMPARING_SECONDS."""
    until = time.monotonic() + copies.COMPARING_SECONDS
    newer = as_typed(documents.load(posts.get(reader, post_id)))
    changes, changing = dict[int, dict[str, str]](), 0
    for version in takewhile(lambda _: time.monotonic() < until, versions):
        older = as_typed(documents.load(revisions.get(reader, post_id, version)))
        changes[changing] = differing(older, newer)
        newer, changing = older, version
    return changes


@views.get(f"{POST}/compare")
def compare_versions(post_id: int) -> str:
    """Show the differences between two versions of a post. Either defaults to the current version."""
    query = compare_query.load(asked())
    old, new = (version_of(post_id, query.get(name)) for name in ("old", "new"))
    shown = {"old": documents.load(old), "new": documents.load(new)}
    return render_template("owner/compare.html", changed=differences(old, new), **shown)


def version_of(post_id: int, version: int | None) -> bytes:
    """Return an earlier version of a post, or the current one."""
    return revisions.get(request.database, post_id, version) if version else posts.get(request.database, post_id)


@views.get(VERSION)
def show_version(post_id: int, version: int) -> str:
    """Show an earlier version of a post, and the changes that restoring it would make."""
    old, now = revisions.get(request.database, post_id, version), posts.get(request.database, post_id)
    shown = {"post": documents.load(old), "version": version, "etag": etag_of(now)}
    shown["changed"] = differences(now, old, [name for name in FORM_FIELDS if name in revisions.RESTORED])
    return render_template("owner/revision.html", status=documents.load(now)["status"], **shown)


@views.post(f"{VERSION}/restore")
def restore_version(post_id: int, version: int) -> Any:
    """Restore a version, except for its slug, status and date."""
    return change(post_id, "was restored to an earlier version.", revisions.restore, version)


@views.post(f"{POST}/undo")
def undo_change(post_id: int) -> Any:
    """Undo the last change to a post, including its slug, status and date. Undoing a publication keeps the text."""
    kept = revisions.page(request.database, post_id, 1).items
    version = kept[0].version if kept else 0  # Version 0 does not exist, so restoring it raises DoesNotExist.
    names = ["status", "published_at"] if g.form.pop("to", "") else FORM_FIELDS
    return change(post_id, "Change undone.", partial(revisions.restore, names=names), version)


@views.get("/trash")
def show_trash() -> str:
    """Show the posts in the trash, most recently deleted first, and the discarded drafts. A search finds only posts."""
    query = asked()
    text = query.pop("q", "")[:MAX_QUERY]
    options = trash_query.load(query)
    page = request.database.read_in_thread(request.client, revisions.trash, TRASHED_PER_PAGE, **options, text=text)
    discarded = [] if options or text else copies.listing(request.database, copies.DISCARDED)
    return render_template("owner/trash.html", page=page, drafts=[copy for copy in discarded if not copy.post_id])


@views.get(TRASHED)
def show_deleted(post_id: int) -> str:
    post = documents.load(revisions.get_in_trash(request.database, post_id))
    return render_template("owner/revision.html", post=post)


@views.post(f"{TRASHED}/restore")
def restore_post(post_id: int) -> Response:
    old = documents.load(revisions.get_in_trash(request.database, post_id))
    document = request.database.write(revisions.restore_deleted, post_id, request.author).document
    new, undo = documents.load(document), (f"/posts/{post_id}/delete", {"etag": etag_of(document)})
    text = "was restored." if new["slug"] == old["slug"] else f"was restored, with the slug {new['slug']}."
    return done(f"/posts/{post_id}", text, new["title"], undo=undo)


@views.post(f"{TRASHED}/delete")
def purge_post(post_id: int) -> Response:
    """Delete a post in the trash for good."""
    title = title_by(revisions.get_in_trash, post_id)
    request.database.write_freeing(revisions.purge, post_id)
    return done("/trash", "was deleted for good.", title)
