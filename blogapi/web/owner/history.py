"""The views of the owner's page for the history of a post, and for the trash."""

import json

from flask import Response, g, render_template, request

from blogapi.storage import documents, history, posts
from blogapi.web.owner.blueprint import blueprint, done
from blogapi.web.owner.diff import changed_lines
from blogapi.web.owner.writing import FIELDS, as_typed, author, change_with_undo, must_match
from blogapi.web.schemas.posts import ListQuerySchema
from blogapi.web.service import database

SHOWN = 50  # at once: all revisions of a post
deleted_query = ListQuerySchema(only=("before", "sort"))  # "sort": pages that begin at a time
TRASH = "/trash/<id:post_id>"
REVISION = "/posts/<id:post_id>/history/<id:version>"


@blueprint.get("/posts/<id:post_id>/history")
def show_history(post_id: int) -> str:
    """Show the revisions of a post."""
    post = documents.load(posts.find(database(), post_id))
    kept = history.revisions(database(), post_id, SHOWN).kept
    return render_template("owner/history.html", post=post, kept=[(each, json.loads(each.post)) for each in kept])


@blueprint.get(REVISION)
def show_revision(post_id: int, version: int) -> str:
    """Show a post as it was, and what was changed since."""
    old, now = history.revision(database(), post_id, version), posts.find(database(), post_id)
    before, after = as_typed(old), as_typed(now)
    changed = {name: changed_lines(before[name], after[name]) for name in FIELDS}
    return render_template("owner/revision.html", post=documents.load(old), version=version, changed=changed)


@blueprint.post(f"{REVISION}/restore")
def restore_revision(post_id: int, version: int) -> Response:
    """Go back to a revision; or, with the entity tag of the post in the form, undo what was just changed."""
    etag = g.form.get("etag")
    if not etag:
        return change_with_undo(post_id, "is as it was.", history.restore, version)
    old = documents.load(history.revision(database(), post_id, version))
    changes = {name: old.get(name) for name in FIELDS}
    return change_with_undo(post_id, "is as it was before.", posts.change, changes, must_match(etag))


# The trash


@blueprint.get("/trash")
def show_trash() -> str:
    """Show the posts in the trash, the latest deleted first."""
    before = deleted_query.load(request.args.to_dict() | {"sort": "published_at"}).get("before")
    page = history.trash(database(), SHOWN, before)
    deleted = [(each, json.loads(each.post)) for each in page.kept]
    return render_template("owner/trash.html", deleted=deleted, older=page.before)


@blueprint.get(TRASH)
def show_deleted(post_id: int) -> str:
    """Show a post in the trash."""
    return render_template("owner/revision.html", post=documents.load(history.trashed(database(), post_id)))


@blueprint.post(f"{TRASH}/restore")
def restore_post(post_id: int) -> Response:
    """Restore a post from the trash."""
    old = documents.load(history.trashed(database(), post_id))
    new = documents.load(database().write(history.restore_deleted, post_id, author()))
    text = "was restored." if new["slug"] == old["slug"] else f"was restored, with the slug {new['slug']}."
    return done(f"/posts/{post_id}", text, new["title"], undo=(f"/posts/{post_id}/delete", {}))


@blueprint.post(f"{TRASH}/delete")
def forget_post(post_id: int) -> Response:
    """Delete a post in the trash for good."""
    title = documents.load(history.trashed(database(), post_id))["title"]
    database().write(history.forget, post_id)
    return done("/trash", "was deleted for good.", title)
