"""The views of the owner's page for posts: the list, a post to read and to write, and its status."""

import hashlib
import json
import re
import secrets
from contextlib import suppress
from typing import Any

from flask import Response, g, redirect, render_template, request
from werkzeug.exceptions import PreconditionFailed

from blogapi.post import PostChangeSchema, PutPostSchema
from blogapi.storage import documents, pages, posts
from blogapi.storage.errors import Damaged
from blogapi.storage.keys import digest_of
from blogapi.storage.posts import Check, IdempotencyKey
from blogapi.web.owner.blueprint import address, blueprint, done
from blogapi.web.owner.diff import changed_lines
from blogapi.web.owner.forms import shows_errors
from blogapi.web.schemas.posts import ListQuerySchema
from blogapi.web.service import database, service
from blogapi.web.views.posts import find_page

SHOWN = 20  # posts at once
MAX_TRAIL = 100  # pages: the address must not become too long
FIELDS = ("title", "content", "excerpt", "tags", "slug", "cover_image", "status", "published_at")
LISTED = "id,title,status,tags,published_at,updated_at"
MINUTE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")
list_query = ListQuerySchema(only=("status", "before", "q", "sort"))
NOW = {"published": "published", "draft": "a draft", "scheduled": "scheduled", "archived": "archived"}
new_post, change_of_post = PutPostSchema(), PostChangeSchema(partial=True)


@blueprint.get("")
def index() -> Response:
    """Begin with the posts, or with the keys if there is no post yet."""
    return redirect(address("/posts" if any(pages.counts(database()).values()) else "/keys"))


@blueprint.get("/posts")
def show_posts() -> str:
    """Show the posts by latest change, and how many have each status.

    `newer` in the query has where the pages began that lie between the first and this one.
    """
    asked = {name: value for name, value in request.args.items() if value}
    trail = asked.pop("newer", "").split()
    query = list_query.load(asked | {"sort": "published_at"})  # another order whose pages begin at a time
    page = find_page(database(), query | {"sort": "updated_at", "limit": SHOWN, "fields": LISTED}, client="owner")
    start = asked.pop("before", None)
    passed = [*trail, start][-MAX_TRAIL:] if start else []
    values = {
        "posts": list(map(json.loads, page.documents)),
        "asked": asked,
        "older": page.before and {"before": page.before, "newer": " ".join(passed)},
        "newer": start and {"before": trail[-1] if trail else "", "newer": " ".join(trail[:-1])},
        "counts": pages.counts(database()),
    }
    return render_template("owner/posts.html", most=pages.MAX_COUNTED, url=service().config.url, **values)


@blueprint.get("/posts/<id:post_id>")
def show_post(post_id: int, **shown: Any) -> str:
    """Show a post to read, and what can be done with it."""
    post = documents.load(posts.find(database(), post_id))
    return render_template("owner/post.html", post=post, **shown)


# A post to write


@blueprint.get("/posts/new")
def show_new(**shown: Any) -> str:
    """Show the form of a new post."""
    typed = g.get("form") or {"status": "draft", "nonce": secrets.token_urlsafe(16)}
    return render_template("owner/write.html", typed=typed, action="/posts/new", **shown)


@blueprint.post("/posts/new")
@shows_errors(show_new)
def create_post() -> Response:
    """Create a post; the same form sent twice creates one."""
    fields = new_post.load(typed_fields())
    same = repr(sorted(fields.items())).encode()
    nonce = g.form.get("nonce")
    key = IdempotencyKey(digest_of(g.session), nonce, hashlib.sha256(same).digest()) if nonce else None
    post = database().write(posts.add_once, fields, key, author())
    return done(f"/posts/{post.id}", "was created.", fields["title"])


@blueprint.get("/posts/<id:post_id>/edit")
def show_form(post_id: int, **shown: Any) -> str:
    """Show the form of a post; after an error with what was typed, and what it changes if the post changed, too."""
    document = posts.find(database(), post_id)
    post = as_typed(document)
    if "form" not in g:
        return render_template("owner/write.html", typed=post, post_id=post_id, action=f"/posts/{post_id}/edit")
    typed = g.form.to_dict()
    changed = {}
    if typed.get("etag") != post["etag"]:
        changed = {name: changed_lines(post[name], typed.get(name, "")) for name in FIELDS}
        typed["etag"] = post["etag"]
    values = {"typed": typed, "changed": changed, "post_id": post_id, "action": f"/posts/{post_id}/edit"}
    return render_template("owner/write.html", **values, **shown)


@blueprint.post("/posts/<id:post_id>/edit")
@shows_errors(show_form)
def save_post(post_id: int) -> Response | tuple[str, int]:
    """Change what the form changes of a post; if the post changed since it was opened, show both instead."""
    document = posts.find(database(), post_id)
    old = documents.load(document)
    typed = typed_fields(old["content"])
    changes = {name: value for name, value in typed.items() if value != old.get(name, type(value)())}
    cleared = {name: None for name in ("excerpt", "cover_image") if changes.get(name) == ""}
    fields = change_of_post.load(changes | cleared)
    try:
        check = must_match(g.form.get("etag", ""))
        new = documents.load(database().write(posts.change, post_id, fields, check, author()))
    except PreconditionFailed:
        return show_form(post_id), 412
    return done(f"/posts/{post_id}", "was saved.", new["title"])


def author() -> str:
    """Return the name by which the history knows this page."""
    return service().config.author("settings")


def must_match(etag: str) -> Check:
    """Return a check that raises PreconditionFailed unless a post has this entity tag. It may run in a thread."""

    def check(document: bytes | None) -> None:
        if document is None or documents.etag(document) != etag:
            raise PreconditionFailed

    return check


def as_typed(document: bytes) -> dict[str, str]:
    """Return the fields of a post as its form shows them."""
    post = documents.load(document)
    values = {name: post.get(name, "") for name in FIELDS}
    return values | {
        "etag": documents.etag(document),
        "content": post["content"].replace("\r\n", "\n"),
        "tags": "\n".join(post["tags"]),
        "published_at": values["published_at"].removesuffix("Z"),
    }


def typed_fields(old_content: str = "") -> dict[str, Any]:
    """Return the fields of a post that were typed, as a body in JSON would have them.

    A browser does not tell which line breaks a text has: a content keeps those that it had.
    """
    typed: dict[str, Any] = {name: g.form.get(name, "") for name in FIELDS}
    if "\r\n" in old_content:
        same = typed["content"] == old_content.replace("\r\n", "\n")
        typed["content"] = old_content if same else typed["content"].replace("\n", "\r\n")
    typed["tags"] = [name for name in typed["tags"].split("\n") if name.strip()]
    if time := typed.pop("published_at"):
        typed["published_at"] = f"{time}{':00' * bool(MINUTE.fullmatch(time))}Z"
    return typed


# What becomes of a post


@blueprint.post("/posts/<id:post_id>/status")
@shows_errors(show_post)
def change_status(post_id: int) -> Response:
    """Publish, schedule, archive or unpublish a post."""
    typed = typed_fields()
    old = documents.load(posts.find(database(), post_id))
    fields = change_of_post.load({name: typed[name] for name in ("status", "published_at") if name in typed})
    new = documents.load(database().write(posts.change, post_id, fields, lambda document: None, author()))
    before = {name: old[name].removesuffix("Z") for name in ("status", "published_at") if name in old}
    undo = f"/posts/{post_id}/status", before
    return done(f"/posts/{post_id}", f"is {NOW[new['status']]} now.", new["title"], undo=undo)


@blueprint.post("/posts/<id:post_id>/delete")
def delete_post(post_id: int) -> Response:
    """Delete a post."""
    title = ""
    with suppress(Damaged):  # It can be deleted all the same.
        title = documents.load(posts.find(database(), post_id))["title"]
    database().write(posts.delete, post_id, lambda document: None, author())
    return done("/posts", "was deleted.", title)
