"""The views of the owner's page for writing posts: the form, and its unsaved copies."""

import re
from functools import partial
from typing import Any

from flask import Blueprint, Response, g, jsonify, render_template
from werkzeug.exceptions import BadRequest, PreconditionFailed

from blogapi import documents
from blogapi.api.request import request
from blogapi.api.responses import redirect
from blogapi.documents import etag_of
from blogapi.posts import storage as posts
from blogapi.posts.params import equal
from blogapi.posts.schemas import PostInputSchema
from blogapi.posts.slugs import find_free, slug_of
from blogapi.storage.errors import DoesNotExist
from blogapi.wings.markdown.front_matter import MarkdownError
from blogapi.wings.markdown.html import markdown_of
from blogapi.wings.owner import copies
from blogapi.wings.owner.copies import ASIDE, DISCARDED, OPEN, SAVED, Copy, Sent
from blogapi.wings.owner.fields import FORM_FIELDS, NEW, as_typed, base_of, changed_fields, follow, load, typed_fields
from blogapi.wings.owner.frame import COPIES, PREVIEW, UPLOAD, address, done, form_token, own_path, shows_errors
from blogapi.wings.owner.images import add_image
from blogapi.wings.owner.posts import POST, change, change_of_post, outcome
from blogapi.wings.owner.views import browser_name

COPY = f"{COPIES}<copy_id>"
COPY_ID, NUMBER = re.compile("[A-Za-z0-9_-]{8,64}"), re.compile("[0-9]{1,15}")
MAX_PASTED, MAX_ELEMENTS = 100_000, 400_000  # characters of HTML, and elements they can become; at most 0.3 s
LARGE_COPY = 256 * 1024  # characters; a thread writes larger copies, which takes milliseconds
new_post = PostInputSchema()
views = Blueprint("writing", __name__)


@views.get("/posts/new")
@views.get(f"{POST}/edit")
def show_form(post_id: int | None = None, **shown: Any) -> str | Response:
    """Show a post's form: after an error with the input, else with unsaved changes, else with the post.

    If the post has changed meanwhile, unedited fields show its new values, and the page compares the others.
    """
    database = request.database
    post = NEW if post_id is None else as_typed(posts.find(database, post_id))
    copy = None if g.form else copies.last(database, request.args.get("copy", "")) or copies.newest(database, post_id)
    if copy and copy.post_id and copy.post_id != post_id:
        return redirect(address(form_of(copy)))  # Its post was created meanwhile.
    if copy and copy.state not in copies.WITH_TEXT:
        copy = copies.newest(database, post_id)
    typed, changed = g.form.to_dict() or {**post}, {}
    if copy:
        typed = copies.text_of(database, copy.id) | {"etag": copy.etag, "over": copy.place}
    if post_id and typed.get("etag") != post["etag"]:
        changed = changed_fields(follow(typed, post), post, typed)
        typed |= {"etag": post["etag"], "base": post["base"]}
    values: dict[str, Any] = {"typed": typed, "changed": changed, "post_id": post_id, "copy": copy}
    values |= {"action": own_path(), "status": post["status"]}
    if post_id is None:
        values["others"] = [other for other in copies.listing(database, OPEN, ASIDE) if other != copy]
    return render_template("owner/write.html", **values | shown)


@views.post("/posts/new")
@shows_errors(show_form)
def create_post() -> Any:
    """Create a post, once. If the response was lost and the form is sent again, save what was typed since."""
    if added := add_image():
        return show_form(added=added)
    fields = load(new_post, *typed_fields())
    post, is_new = request.database.write(copies.create, sent_copy(), fields, request.author)
    return done(f"/posts/{post.id}", outcome("was created."), fields["title"]) if is_new else save_post(post_id=post.id)


@views.post(f"{POST}/edit")
@shows_errors(show_form)
def save_post(post_id: int) -> Any:
    """Save the fields changed in the form; if the post has changed as well, show both."""
    if added := add_image():
        return show_form(post_id, added=added)
    saved, now = copies.find(request.database, g.form.get("copy", "")), posts.find(request.database, post_id)
    if saved and saved.state == SAVED:  # The answer was lost, and the form was sent again.
        g.form["etag"], g.form["base"] = saved.etag, copies.text_of(request.database, saved.id)["base"]
    sent, old = sent_copy(), documents.load(now)
    if old["status"] == "published" != g.form.get("status") and not {"to", "knows"} & g.form.keys():
        return show_form(post_id, is_live=True), 412
    if g.form.get("etag") != etag_of(now) and not follow(g.form, as_typed(now)):
        g.form["etag"] = etag_of(now)
    typed, wrong = typed_fields(old)
    changes = {name: value for name, value in typed.items() if not equal(value, old.get(name, type(value)()))}
    empty = [name for name in changes if changes[name] in ("", {}) and name in change_of_post.cleared]
    fields = load(change_of_post, changes | dict.fromkeys(empty), wrong)
    if fields.get("params"):
        fields["params"] = dict(fields["params"])  # replaces all params: a plain dict is not a merge patch
    if "published_at" in old and "published_at" not in typed:
        fields["published_at"] = None
    if not typed["slug"] and old["status"] == "draft" and "published_at" not in old:
        fields |= new_slug(old["slug"], fields.get("title", old["title"]))
    try:
        return change(post_id, outcome("was saved."), partial(copies.save, sent=sent), fields)
    except PreconditionFailed:
        return show_form(post_id), 412


def new_slug(slug: str, title: str) -> dict[str, str]:
    """Return the new slug of a draft whose title has changed, if it needs one."""
    wanted = slug_of(title)
    is_same = re.fullmatch(rf"{re.escape(wanted)}(-\d+)?", slug)
    return {} if is_same else {"slug": find_free(request.database, wanted)}


def sent_copy() -> Sent:
    """Return the submitted form for `copies`."""
    copy_id, number = g.form.get("copy", ""), g.form.get("number", "")
    number = int(number) if NUMBER.fullmatch(number) else 0
    text = etag_of("\0".join(g.form.get(name, "") for name in (*FORM_FIELDS, "to")).encode())
    copy_id = copy_id if COPY_ID.fullmatch(copy_id) else ""
    return Sent(copy_id, number, g.form.get("over", ""), base_of(g.form), text)


@views.put(COPY)
def put_copy(copy_id: str) -> tuple[Response, int]:
    """Store a copy of a form; answer with its tokens in this session, and with changes made elsewhere."""
    form = g.form
    post_id, number = form.get("post_id", ""), form.get("number", "")
    if not (COPY_ID.fullmatch(copy_id) and NUMBER.fullmatch(number) and (NUMBER.fullmatch(post_id) or not post_id)):
        raise BadRequest("This is not a copy.")
    fields = {name: form.get(name, "") for name in (*FORM_FIELDS, "base")}
    key = int(post_id) if post_id else None
    copy = Copy(copy_id, key, OPEN, int(number), form.get("etag", "")[:64], browser=browser_name(g.browser))
    is_large = sum(map(len, fields.values())) > LARGE_COPY
    write = request.database.write_in_thread if is_large else request.database.write
    other, of_post = write(copies.put, copy, fields, form.get("over", "")[:100])
    mine, key = copies.find(request.database, copy_id), of_post or key
    path = form_of(copy._replace(post_id=key))
    answer: dict[str, Any] = {"form_token": form_token(path), "preview_token": form_token(PREVIEW)}
    answer |= {"upload_token": form_token(UPLOAD), "form": address(path)}
    if mine and mine.state == SAVED:
        answer |= {"saved_etag": mine.etag, "saved_base": copies.text_of(request.database, copy_id)["base"]}
    if other:
        answer |= {"over": other.instead, "at": other.saved_at, "browser": other.browser, "state": other.state}
        answer["is_aside"] = mine is not None and mine.state == ASIDE
    elif key:
        try:
            document = posts.find(request.database, key)
            post = documents.load(document)
            answer |= {"etag": etag_of(document), "status_of_post": post["status"]}
            answer["published_at"] = post.get("published_at", "")
        except DoesNotExist:
            answer["etag"] = ""
    return jsonify(answer), 409 if other else 200


@views.get(f"{COPY}/compare")
def compare_copies(copy_id: str) -> str:
    """Show the differences between two copies of the same post."""
    other, mine = copies.find(request.database, request.args.get("with", "")), copies.find(request.database, copy_id)
    if other is None or mine is None:
        raise DoesNotExist("copy")
    texts = [NEW | copies.text_of(request.database, each.id) for each in (other, mine)]
    return render_template("owner/compare.html", changed=changed_fields(FORM_FIELDS, *texts), old=other, new=mine)


@views.put("/markdown")
def convert_html() -> Response:
    """Convert HTML that was pasted into a form to Markdown, without its scripts and forms, as Micropub does."""
    html = g.form.get("html", "")
    if len(html) > MAX_PASTED:
        raise BadRequest("This is too long to be converted.")
    convert = partial(markdown_of, html, MAX_ELEMENTS, dropped=set())
    try:
        return Response(request.database.compute_in_thread(request.client, convert), mimetype="text/plain")
    except MarkdownError as error:
        raise BadRequest(error.reason) from None


def form_of(copy: Copy) -> str:
    """Return the path of a copy's form."""
    return f"/posts/{copy.post_id}/edit" if copy.post_id else "/posts/new"


@views.post(f"{COPY}/discard")
def discard_copy(copy_id: str) -> Response:
    """Discard a copy."""
    copy = request.database.write(copies.mark, copy_id, DISCARDED)
    return done(form_of(copy), "The unsaved changes are discarded.", undo=(f"{COPIES}{copy.id}/undo", {}))


@views.post(f"{COPY}/undo")
def undo_discard(copy_id: str) -> Response:
    """Undo discarding a copy."""
    copy = request.database.write(copies.mark, copy_id, OPEN)
    return redirect(address(f"{form_of(copy)}?copy={copy.id}"), 303)
