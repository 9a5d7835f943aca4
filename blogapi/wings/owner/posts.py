"""The views of the owner's page for posts: the list, a post to read and to write, its history, and the trash."""

import csv
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from flask import Response, g, jsonify, render_template
from marshmallow import Schema, ValidationError
from werkzeug.exceptions import PreconditionFailed

from blogapi import documents
from blogapi.api.request import etag_of, request
from blogapi.api.responses import redirect
from blogapi.api.schemas import parameters
from blogapi.api.views import Views
from blogapi.posts import publication
from blogapi.posts import storage as posts
from blogapi.posts.params import equal
from blogapi.posts.schemas import ListQuerySchema, PostChangeSchema, PutPostSchema
from blogapi.posts.slugs import find_free, slug_of
from blogapi.posts.views import find_page
from blogapi.storage.errors import Damaged, NotFound
from blogapi.storage.models import AUTOSAVE
from blogapi.wings import idempotency
from blogapi.wings.history import revisions
from blogapi.wings.history.storage import MAX_REVISIONS
from blogapi.wings.history.views import DELETED, REVISION
from blogapi.wings.idempotency import IdempotencyKey
from blogapi.wings.markdown.files import block, read_block
from blogapi.wings.markdown.front_matter import MarkdownError
from blogapi.wings.markdown.titles import title_of
from blogapi.wings.owner import shares
from blogapi.wings.owner.counts import MAX_COUNTED, counts
from blogapi.wings.owner.diff import changed_lines
from blogapi.wings.owner.frame import (
    address,
    asked,
    done,
    form_secret,
    form_token,
    local_time,
    own_path,
    paging,
    shows_errors,
    utc_time,
)
from blogapi.wings.owner.images import add_image

POSTS, TRASHED_POSTS = 20, 50  # shown at once
SHOWN = "id,title,status,tags,published_at,updated_at"
FORM_FIELDS = ("title", "content", "excerpt", "tags", "slug", "cover_image", "status", "published_at", "params")
POST, TRASHED = "/posts/<id:post_id>", "/trash/<id:post_id>"
VERSION = f"{POST}/history/<id:version>"

list_query = ListQuerySchema(only=("status", "tag", "before", "q", "sort"))
trash_query, history_query = parameters(before=DELETED), parameters(before=REVISION)
new_post, change_of_post = PutPostSchema(), PostChangeSchema(partial=True)
views = Views()


@views.get("")
@views.get("/")
def index() -> Response:
    """Begin with the posts."""
    return redirect(address("/posts"))


@views.get("/posts")
def show_posts() -> str:
    """Show the posts by latest change, and how many have each status."""
    given = asked()
    if "tag" in given:  # The posts with a tag have no order by their latest change.
        query = list_query.load(given)
    else:  # In both orders, a page begins at a time.
        query = list_query.load(given | {"sort": "published_at"}) | {"sort": "updated_at"}
    page = find_page(request.database, query | {"limit": POSTS, "fields": SHOWN}, client="owner")
    values: dict[str, Any] = {"posts": page.items, "counts": counts(request.database), "now": request.database.now}
    values |= paging(page.next)
    with suppress(Damaged):
        values["late"] = publication.later_than_now(request.database)
    return render_template("owner/posts.html", most=MAX_COUNTED, **values)


@views.get(POST)
def show_post(post_id: int, **shown: Any) -> str:
    """Show a post to read, and the actions on it."""
    post = documents.load(posts.find(request.database, post_id))
    links = shares.listing(request.database, post_id)
    return render_template("owner/post.html", post=post, links=links, is_kept=request.database.keeps_history, **shown)


@views.get("/posts/new")
@views.get(f"{POST}/edit")
def show_form(post_id: int | None = None, **shown: Any) -> str:
    """Show the form of a post.

    After an error it has what was typed; if the post was changed elsewhere, the page shows what saving would change.
    """
    post = {"status": "draft"} if post_id is None else as_typed(posts.find(request.database, post_id))
    typed, changed = g.form.to_dict() or post, {}
    if post_id and typed.get("etag") != post["etag"]:
        changed = {name: changed_lines(post[name], typed.get(name, "")) for name in FORM_FIELDS}
        typed["etag"] = post["etag"]
    values = {"typed": typed, "changed": changed, "post_id": post_id, "action": own_path()}
    return render_template("owner/write.html", **values | shown)


@views.post("/posts/new")
@shows_errors(show_form)
def create_post() -> Response | str:
    """Create a post.

    If the answer to a draft that saves itself was lost, this form comes again: what was typed since is saved, too.
    """
    if added := add_image():
        return show_form(added=added)
    fields = load(new_post, *typed_fields())
    key, own = (IdempotencyKey(form_secret(whatever_it_has=each), "form", b"") for each in (False, True))
    is_saved = author() == AUTOSAVE or idempotency.find(request.database, own)
    post = request.database.write(idempotency.add_once, fields, author(), own if is_saved else key)
    if is_saved:
        created = documents.load(post.document)
        is_unchanged = created["updated_at"] == created["created_at"]
        g.form["etag"] = etag_of(post.document) if is_unchanged else ""
        return save_post(post_id=post.id)
    return done(f"/posts/{post.id}", "was created.", fields["title"])


@views.post(f"{POST}/edit")
@shows_errors(show_form)
def save_post(post_id: int) -> Response | str | tuple[str, int]:
    """Save the fields that the form changes, unless the post was changed since the form was opened: show both then."""
    if added := add_image():
        return show_form(post_id, added=added)
    old = documents.load(posts.find(request.database, post_id))
    typed, wrong = typed_fields(old)
    changes = {name: value for name, value in typed.items() if not equal(value, old.get(name, type(value)()))}
    empty = [name for name in changes if changes[name] in ("", {}) and change_of_post.fields[name].allow_none]
    fields = load(change_of_post, changes | dict.fromkeys(empty), wrong)
    if fields.get("params"):
        fields["params"] = dict(fields["params"])  # all of them, and no merge patch
    if "published_at" in old and "published_at" not in typed:
        fields["published_at"] = None
    if not typed["slug"] and old["status"] == "draft" and "published_at" not in old:
        fields |= new_slug(old["slug"], fields.get("title", old["title"]))
    try:
        return change(post_id, "was saved.", posts.change, fields, g.form.get("etag"))
    except PreconditionFailed:
        return show_form(post_id), 412


@views.post(f"{POST}/status")
@shows_errors(show_post)
def change_status(post_id: int) -> Response:
    """Publish, schedule, archive or unpublish a post."""
    dated = {name: value for name, value in typed_fields()[0].items() if name in ("status", "published_at")}
    fields = change_of_post.load(dated)
    status = "a draft" if fields["status"] == "draft" else fields["status"]
    return change(post_id, f"is {status} now.", posts.change, fields)


@views.post(f"{POST}/delete")
def delete_post(post_id: int) -> Response:
    """Delete a post."""
    title = title_by(posts.find, post_id)
    request.database.write(posts.delete, post_id, request.author)
    undo: tuple[str, dict[str, str]] | None = (
        (f"/trash/{post_id}/restore", {}) if request.database.keeps_history else None
    )
    return done("/posts", "is in the trash." if undo else "was deleted.", title, undo=undo)


def title_by(find: Callable, post_id: int) -> str:
    """Return the title of a post to delete; nothing if it is damaged, which can be deleted, too."""
    with suppress(Damaged):
        return documents.load(find(request.database, post_id))["title"]
    return ""


def change(post_id: int, text: str, operation: Callable, argument: Any, expected: str | None = None) -> Response:
    """Change a post by an operation of the storage, and say so with an undo. Raises PreconditionFailed.

    The post must have this entity tag; without one, that of now.
    """
    old = posts.find(request.database, post_id)
    before, former = etag_of(old), documents.slug_in(old)

    def check(document: bytes) -> None:
        if etag_of(document) != (before if expected is None else expected):
            raise PreconditionFailed("The post was changed meanwhile. Its history has every version.")

    document = request.database.write(operation, post_id, argument, check=check, author=author())
    if AUTOSAVE in g.form:
        return autosaved(post_id, document)
    after = etag_of(document)
    undo = (f"/posts/{post_id}/undo", {"etag": after}) if request.database.keeps_history and after != before else None
    new = documents.load(document)
    if former in new.get("former_slugs", ()):
        text += f" Its former slug {former} still leads to it."
    return done(f"/posts/{post_id}", text, new["title"], undo=undo)


def author() -> str:
    """Return the name in the history for a change of a post. Only a draft saves itself, and without events."""
    return AUTOSAVE if AUTOSAVE in g.form and g.form.get("status") == "draft" else request.author


def autosaved(post_id: int, document: bytes) -> Response:
    """Answer the script that saves a draft with the form that it sends next, over this version."""
    path = f"/posts/{post_id}/edit"
    form = {"action": address(path), "form_token": form_token(path), "etag": etag_of(document)}
    return jsonify(form)


def new_slug(slug: str, title: str) -> dict[str, str]:
    """Return a slug for a draft that has another title now, if any."""
    wanted = slug_of(title)
    is_same = re.fullmatch(rf"{re.escape(wanted)}(-\d+)?", slug)
    return {} if is_same else {"slug": find_free(request.database, wanted)}


def as_typed(document: bytes) -> dict[str, str]:
    """Return the fields of a post as its form shows them."""
    post = documents.load(document)
    return {name: post.get(name, "") for name in FORM_FIELDS} | {
        "etag": etag_of(document),
        "content": with_line_feeds(post["content"]),
        "excerpt": with_line_feeds(post.get("excerpt", "")),
        "tags": as_line(post["tags"]),
        "params": block(post.get("params", {})),
        "published_at": local_time(post.get("published_at", "")),
    }


def as_line(tags: list[str]) -> str:
    """Return tags with commas between them; one with a comma or a quote is in quotes."""
    return ", ".join('"{}"'.format(tag.replace('"', '""')) if {*tag} & {*',"'} else tag for tag in tags)


def from_line(line: str) -> list[str]:
    """Return the tags in a line, or in several."""
    try:
        rows = [*csv.reader(line.split("\n"), skipinitialspace=True)]
    except csv.Error:
        raise ValueError(f"must be tags of 1 to {documents.MAX_TAG} characters") from None
    return [name.strip() for row in rows for name in row if name.strip()]


def with_line_feeds(text: str) -> str:
    """Return a text with LF for each line break, as browsers show it in a form."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def load(schema: Schema, typed: dict[str, Any], wrong: dict[str, list[str]]) -> dict[str, Any]:
    """Load the typed fields. Raises ValidationError for all that are wrong, also for those that cannot be read."""
    try:
        fields = schema.load(typed)
    except ValidationError as error:
        raise ValidationError({**error.normalized_messages(), **wrong}) from None
    if wrong:
        raise ValidationError(wrong)
    return fields


def typed_fields(old: Mapping[str, Any] = {}) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Return the typed fields of a post, as in JSON, and the reasons why others cannot be read.

    Browsers send every line break as CRLF. A text that was not touched stays as it was in the `old` post; one that was
    changed keeps CRLF if it had that.
    """
    typed: dict[str, Any] = {name: g.form.get(name, "") for name in FORM_FIELDS}
    for name in ("content", "excerpt"):
        before = old.get(name, "")
        if typed[name] == with_line_feeds(before):
            typed[name] = before
        elif "\r\n" in before:
            typed[name] = typed[name].replace("\n", "\r\n")
    if AUTOSAVE in g.form and not typed["title"].strip():
        typed["title"] = title_of(typed["content"])
    elif AUTOSAVE in g.form and not typed["content"].strip() and old.get("content") == old.get("title"):
        typed["content"] = typed["title"]  # until a draft has one
    wrong: dict[str, list[str]] = {}
    for name, read in (("tags", from_line), ("params", read_block)):
        try:
            typed[name] = read(typed[name])
        except (MarkdownError, ValueError) as error:
            wrong[name] = [str(error)]
            del typed[name]
    if time := typed.pop("published_at"):
        before = old.get("published_at", "")
        is_same = not time.endswith("Z") and f"{time}:00"[:19] == local_time(before)  # Browsers leave out seconds of 0.
        typed["published_at"] = before if is_same else utc_time(time)
    return typed, wrong


@views.get(f"{POST}/history")
def show_history(post_id: int) -> str:
    """Show the versions of a post."""
    post = documents.load(posts.find(request.database, post_id))
    page = revisions.page(request.database, post_id, MAX_REVISIONS, **history_query.load(asked()))
    return render_template("owner/history.html", post=post, page=page, **paging(page.next))


@views.get(VERSION)
def show_version(post_id: int, version: int) -> str:
    """Show an earlier version of a post, and the changes since."""
    old, now = revisions.find(request.database, post_id, version), posts.find(request.database, post_id)
    before, after = as_typed(old), as_typed(now)
    changed = {name: changed_lines(before[name], after[name]) for name in FORM_FIELDS}
    return render_template("owner/revision.html", post=documents.load(old), version=version, changed=changed)


@views.post(f"{VERSION}/restore")
def restore_version(post_id: int, version: int) -> Response:
    """Go back to the words of a version; slug, status and date stay."""
    return change(post_id, "is as it was.", revisions.restore, version)


@views.post(f"{POST}/undo")
def undo_change(post_id: int) -> Response:
    """Undo the last change of a post: text, slug, status and date are as before."""
    kept = revisions.page(request.database, post_id, 1).items
    if not kept:
        raise NotFound("revision")
    old = documents.load(revisions.find(request.database, post_id, kept[0].version))
    changes = {name: old.get(name) for name in FORM_FIELDS}
    return change(post_id, "is as it was before.", posts.change, changes, g.form.get("etag"))


@views.get("/trash")
def show_trash() -> str:
    """Show the posts in the trash, most recently deleted first."""
    page = revisions.trash(request.database, TRASHED_POSTS, **trash_query.load(asked()))
    return render_template("owner/trash.html", page=page, **paging(page.next))


@views.get(TRASHED)
def show_deleted(post_id: int) -> str:
    """Show a post in the trash."""
    post = documents.load(revisions.find_in_trash(request.database, post_id))
    return render_template("owner/revision.html", post=post)


@views.post(f"{TRASHED}/restore")
def restore_post(post_id: int) -> Response:
    """Restore a post from the trash."""
    old = documents.load(revisions.find_in_trash(request.database, post_id))
    new = documents.load(request.database.write(revisions.restore_deleted, post_id, request.author))
    text = "was restored." if new["slug"] == old["slug"] else f"was restored, with the slug {new['slug']}."
    return done(f"/posts/{post_id}", text, new["title"], undo=(f"/posts/{post_id}/delete", {}))


@views.post(f"{TRASHED}/delete")
def forget_post(post_id: int) -> Response:
    """Delete a post in the trash for good."""
    title = title_by(revisions.find_in_trash, post_id)
    request.database.write(revisions.delete_from_trash, post_id)
    return done("/trash", "was deleted for good.", title)
