"""The owner's views for writing posts: the form, and copies of its unsaved draft."""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from flask import Blueprint, Response, g, jsonify, render_template
from werkzeug.exceptions import BadRequest

from blogapi import documents
from blogapi.api.request import request
from blogapi.api.responses import redirect
from blogapi.documents import etag_of
from blogapi.markdown import safe_markdown_of
from blogapi.markdown.front_matter import MarkdownError
from blogapi.posts import storage as posts
from blogapi.posts.slugs import find_free, slug_of
from blogapi.storage.errors import DoesNotExist
from blogapi.storage.models import Post
from blogapi.wings.owner import copies
from blogapi.wings.owner.copies import DISCARDED, FORMER, OPEN, SAVED, UNTOUCHED, Copy, Sent
from blogapi.wings.owner.fields import FORM_FIELDS, NEW, as_typed, base_of, changed_fields, differing, follow, load
from blogapi.wings.owner.frame import COPIES, PREVIEW, UPLOAD, address, done, form_token, own_path, shows_errors
from blogapi.wings.owner.images import add_image
from blogapi.wings.owner.posts import POST, change, outcome
from blogapi.wings.owner.sessions import browser_name

COPY = f"{COPIES}<copy_id>"
COPY_ID, DRAFT, NUMBER = map(re.compile, ("[A-Za-z0-9_-]{8,64}", "[0-9]{1,18}|[A-Za-z0-9_-]{8,64}", "[0-9]{1,15}"))
TYPED = [name for name in (*FORM_FIELDS, "base", "caret") if name != "status"]  # Only buttons change the status.
PREVIOUS = re.compile("([A-Za-z0-9_-]{8,64} [0-9]{1,15})( replaced)?")
DELETED = "This post was deleted elsewhere. The text here is kept; saving it creates a new post."
LIVE = "This post is live now. The page asks before readers see this text."
CHANGED = "This post was also changed elsewhere. When you save, you can compare the two texts."
views = Blueprint("writing", __name__)


@views.get("/posts/new")
@views.get(f"{POST}/edit")
def show_form(post_id: int | None = None, **shown: Any) -> str | Response:
    """Show a post's form with the rejected input, if any, or else with the unsaved text or the post."""
    draft, typed, post, now = request.args.get("copy", ""), g.form.to_dict(), NEW, {"base": base_of(NEW)}
    if post_id is not None:
        document, draft = posts.get(request.database, post_id), str(post_id)
        post, shown["changed_at"] = as_typed(old := documents.load(document)), old["updated_at"]
        now = {"etag": etag_of(document), "base": base_of(post)}
    if not typed:
        last = copies.current(request.database, draft)
        copy = shown["copy"] = last if last and last.state != DISCARDED else None
        if (of_post := copies.post_of(request.database, draft)) != post_id:
            return redirect(address(form_of(of_post)))  # The post was created in the meantime.
        typed = {**post, **now, "draft": draft} | ({"previous": copy.text_id} if copy else {})
        if copy and copy.state == OPEN:
            typed |= copies.text_of(request.database, copy.id) | {"etag": copy.etag}
        shown["earlier"] = request.database.read_in_thread(request.client, copies.changes_of, draft, typed, FORMER)
    if post_id:
        shown["changed"] = changed_fields(post, typed, follow(typed, post))
        typed |= {} if shown["changed"] else now
        (shown["changed_by"],) = request.database.one(Post.select(Post.author).where(Post.id == post_id))
    if slug := suggested_slug(typed, post):
        typed |= {"slug": slug, "suggested": slug}
    shown |= {"typed": typed, "post_id": post_id, "post": post, "etag": now.get("etag")}
    return render_template("owner/write.html", action=own_path(), **shown)


@views.post("/posts/new")
@shows_errors(show_form)
def create_post() -> Any:
    """Create a post only once. If the form is sent again because the response was lost, save the text typed since."""
    if added := add_image():
        return show_form(added=added)
    fields = load()
    post = request.database.write(copies.create, sent_form(NEW), fields, request.author)
    if post.outcome != "created":
        return save_post(post_id=post.id)
    undo = (f"/posts/{post.id}/status", {"to": "draft", "etag": etag_of(post.document)}) if g.form.get("to") else None
    return done(f"/posts/{post.id}", outcome("was created."), fields["title"], undo=undo)


@views.post(f"{POST}/edit")
@shows_errors(show_form)
def save_post(post_id: int) -> Any:
    """Save the form. If a field was edited both here and elsewhere, compare the two versions until one is chosen."""
    if added := add_image():
        return show_form(post_id, added=added)
    old = documents.load(now := posts.get(request.database, post_id))
    if saved := copies.find(request.database, g.form.get("copy", ""), SAVED):  # This is a retry after a lost response.
        g.form["etag"], g.form["base"] = saved.etag, copies.text_of(request.database, saved.id)["base"]
    sent = sent_form(as_typed(old))
    if old["status"] == "published" != g.form.get("status") and "to" not in g.form:
        return show_form(post_id, is_live=True), 412
    if follow(g.form, as_typed(old)) and g.form.get("replaces") != etag_of(now):
        return show_form(post_id), 412
    g.form["etag"] = etag_of(now)
    fields = dict.fromkeys(FORM_FIELDS) | load(old)  # The writer empties fields to clear them. None clears the date.
    fields["slug"] = fields["slug"] or suggested_slug(fields, old) or old["slug"]
    is_emptied = old["status"] == "published" and not fields["published_at"]  # The post keeps its date.
    if is_emptied or fields["published_at"] == old.get("published_at"):
        del fields["published_at"]  # An unedited date is not checked again, because a clock may have been set back.
    save = partial(copies.save, sent=sent)
    return change(post_id, outcome("was saved."), save, fields, lambda post_id: (show_form(post_id), 412))


def suggested_slug(typed: Mapping[str, Any], post: Mapping[str, Any]) -> str:
    """Return the slug that a post gets from its typed title, or "" if its slug was edited or the post was public."""
    slug, title = post["slug"], typed.get("title", "")
    # The slug may end in a number that makes it unique.
    fitting = [each for each in (post["title"], title) if re.fullmatch(rf"{re.escape(slug_of(each))}(-\d+)?", slug)]
    is_edited = typed.get("slug") and not (typed["slug"] == slug and post["title"] in fitting)
    if is_edited or not title or post["status"] != "draft" or post.get("published_at"):
        return ""
    return slug if title in fitting else find_free(request.database, slug_of(title))


def sent_form(post: Mapping[str, str]) -> Sent:
    """Return the form to save. Its `base` contains only the unedited fields that are older than in the post."""
    base = " ".join({*g.form.get("base", "").split()} & {*base_of(g.form).split()} - {*base_of(post).split()})
    text = etag_of("\0".join(g.form.get(name, "") for name in (*FORM_FIELDS, "to")).encode())
    return as_sent(g.form.get("copy", ""), g.form.to_dict() | {"base": base, "text": text})


def as_sent(copy_id: str, fields: dict[str, str]) -> Sent:
    """Return the copy that the form describes, with these fields. The id is empty if the form has no valid id."""
    form, number, previous = g.form, g.form.get("number", ""), PREVIOUS.fullmatch(g.form.get("previous", ""))
    draft = form.get("draft") or form.get("post_id") or copy_id  # Forms of 1.3.0 sent no `draft`.
    copy = Copy("", 0, "")
    if COPY_ID.fullmatch(copy_id) and DRAFT.fullmatch(draft) and NUMBER.fullmatch(number):
        post_id, etag = int(draft) if draft.isdecimal() else None, form.get("etag", "")[:64]
        copy = Copy(copy_id, int(number), draft, post_id, etag=etag, browser=browser_name(g.browser))
    return Sent(copy, fields, previous[1], bool(previous[2])) if previous else Sent(copy, fields)


@views.put(COPY)
def put_copy(copy_id: str) -> tuple[Response, int]:
    """Store a form's text, if it sends any; return new tokens, and the state of the form's post and draft."""
    sent = as_sent(copy_id, {name: g.form.get(name, "") for name in TYPED})
    copy = sent.copy
    if not copy.id:
        raise BadRequest("This is not a copy.")
    post_id = copies.post_of(request.database, copy.draft)
    news = news_of(post_id)
    base = news.pop("base", "")
    if news.get("is_saved"):
        saved = copy._replace(state=SAVED, etag=news["etag"])
        sent = sent._replace(copy=saved, fields={**sent.fields, "base": base})
    if "content" in g.form:
        request.database.write(copies.put, sent)
    path = form_of(post_id)
    answer: dict[str, Any] = {"form_token": form_token(path), "preview_token": form_token(PREVIEW)}
    answer |= {"upload_token": form_token(UPLOAD), "form": address(path)} | news
    now, rival = copies.current(request.database, copy.draft), copies.newer(request.database, sent)
    if now and now.id == copy_id and (now.state == SAVED or now.etag != g.form.get("etag", now.etag)):
        answer |= {"saved_etag": now.etag, "saved_base": copies.text_of(request.database, copy_id)["base"]}
        answer["is_saved"] = now.state == SAVED
        is_latest = now.state == SAVED and now.etag == news.get("etag")
        answer["is_merged"] = is_latest and not {*answer["saved_base"].split()} <= {*base.split()}
    answer["earlier"] = copies.removed(request.database, sent)
    if now and rival:
        mine = copies.find(request.database, copy_id) or copies.find(request.database, sent.previous)
        answer |= {"previous": now.text_id, "at": now.saved_at, "browser": now.browser, "mine": mine.id if mine else ""}
        answer["is_untouched"] = rival == UNTOUCHED
    return jsonify(answer), 409 if rival else 200


def news_of(post_id: int | None) -> dict[str, Any]:
    """Return the state of a post, whether it has the form's text, and the slug and URL that the form would give it."""
    post, news, url_of = NEW, dict[str, Any](), request.service.config.url_on_site
    if post_id:
        try:
            document = posts.get(request.database, post_id)
        except DoesNotExist:
            return {"etag": "", "warning": DELETED}
        post = documents.load(document)
        news = {"etag": etag_of(document), "status_of_post": post["status"], "published_at": post.get("published_at")}
        base = base_of(saved := as_typed(post))
        warning = "" if {*base.split()} == {*g.form.get("base", "").split()} else CHANGED  # unless it was changed back
        news["warning"] = LIVE if post["status"] == "published" != g.form.get("status") else warning
        news |= {"base": base, "url": url_of(post) if post["status"] == "published" else ""}
        form = g.form.to_dict() | {"slug": g.form.get("slug") or post["slug"]}
        news |= {"is_saved": "content" in form and saved.items() <= form.items(), "is_cut": copies.lacks(form, saved)}
    if "content" in g.form:
        news["slug"] = suggested_slug(g.form, post)
        slug = g.form.get("slug", "")[: documents.MAX_SLUG] or news["slug"] or post["slug"]
        news["address"] = url_of({"slug": slug, "id": str(post_id or "…")}) if slug else ""
    return news


@views.get(COPY)
def show_copy(copy_id: str) -> str:
    """Show a text, and what it would change in the current unsaved text or, if there is none, in the post."""
    copy = copies.with_text(request.database, copy_id)
    now = copies.current(request.database, copy.draft)
    other = now if now and now.state == OPEN and now.id != copy.id else None
    document = posts.get(request.database, copy.post_id) if copy.post_id else b""
    post = documents.load(document) if document else {}
    saved = as_typed(post) if post else NEW
    old, new = ({**saved} | (copies.text_of(request.database, each.id) if each else {}) for each in (other, copy))
    follow(old, saved)
    follow(new, saved)
    shown = {"copy": copy, "other": other, "post": post, "text": new, "etag": etag_of(document) if document else ""}
    compute = request.database.compute_in_thread
    only = compute(request.client, lambda: (differing(old, new), differing(new, old))) if other else ()
    return render_template("owner/copy.html", changed=changed_fields(old, new), only=only, **shown)


@views.put("/markdown")
def convert_html() -> Response:
    """Convert pasted HTML to Markdown, without its scripts and forms, the same way Micropub does."""
    convert = partial(safe_markdown_of, g.form.get("html", ""))
    try:
        return Response(request.database.compute_in_thread(request.client, convert)[0], mimetype="text/plain")
    except MarkdownError as error:
        raise BadRequest(error.reason) from None


def form_of(post_id: int | None) -> str:
    return f"/posts/{post_id}/edit" if post_id else "/posts/new"


@views.post(f"{COPY}/discard")
def discard_copy(copy_id: str) -> Response:
    """Discard the copy that a form has written or, if it has written none, the copy it was opened with."""
    mine = copies.find(request.database, copy_id)
    copy = request.database.write(copies.discard, copy_id if mine else g.form.get("previous", ""))
    undo: Any = f"{COPIES}{copy.id}/use", {}
    if copy.post_id:
        return done(form_of(copy.post_id), "The unsaved changes were discarded.", undo=undo)
    return done("/posts", "is in the trash.", copy.title.strip(), undo=undo)


@views.post(f"{COPY}/use")
def use_copy(copy_id: str) -> Response:
    """Make a copy the current one, to undo Discard or, if the writer has seen the latest text, to replace that."""
    copy = request.database.write(copies.use, copy_id, g.form.get("other", ""), g.form.get("etag", ""))
    if copy.id != copy_id:
        return redirect(f"{address(COPIES)}{copy_id}?both=1&again=1", 303)
    return redirect(address(form_of(copy.post_id)) + ("" if copy.post_id else f"?copy={copy.draft}"), 303)
