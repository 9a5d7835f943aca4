"""The views of the owner's page that write posts: a new one, and the form of each."""

import hashlib
import re
import secrets
from collections.abc import Callable
from typing import Any

from flask import Response, g, render_template
from werkzeug.exceptions import PreconditionFailed

from blogapi.post import PostChangeSchema, PutPostSchema
from blogapi.storage import documents, history, posts
from blogapi.storage.engine import Reader, Transaction
from blogapi.storage.keys import digest_of
from blogapi.storage.posts import Check, IdempotencyKey
from blogapi.web.owner.blueprint import blueprint, done, path
from blogapi.web.owner.diff import changed_lines
from blogapi.web.owner.forms import shows_errors
from blogapi.web.service import database, service

FIELDS = ("title", "content", "excerpt", "tags", "slug", "cover_image", "status", "published_at")
MINUTE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")
new_post, change_of_post = PutPostSchema(), PostChangeSchema(partial=True)


@blueprint.get("/posts/new")
@blueprint.get("/posts/<id:post_id>/edit")
def show_form(post_id: int | None = None, **shown: Any) -> str:
    """Show the form of a post.

    After an error it has what was typed; if the post was changed elsewhere, the page shows what saving would change.
    """
    new = {"status": "draft", "nonce": secrets.token_urlsafe(16)}
    post = new if post_id is None else as_typed(posts.find(database(), post_id))
    typed, changed = g.form.to_dict() if "form" in g else post, {}
    if post is not new and typed.get("etag") != post["etag"]:
        changed = {name: changed_lines(post[name], typed.get(name, "")) for name in FIELDS}
        typed["etag"] = post["etag"]
    values = {"typed": typed, "changed": changed, "post_id": post_id, "action": path()}
    return render_template("owner/write.html", **values, **shown)


@blueprint.post("/posts/new")
@shows_errors(show_form)
def create_post() -> Response:
    """Create a post; the same form sent twice creates one."""
    fields = new_post.load(typed_fields())
    same = repr(sorted(fields.items())).encode()
    nonce = g.form.get("nonce")
    key = IdempotencyKey(digest_of(g.session), nonce, hashlib.sha256(same).digest()) if nonce else None
    post = database().write(posts.add_once, fields, key, author())
    return done(f"/posts/{post.id}", "was created.", fields["title"])


@blueprint.post("/posts/<id:post_id>/edit")
@shows_errors(show_form)
def save_post(post_id: int) -> Response | tuple[str, int]:
    """Save the fields that the form changes, unless the post was changed since the form was opened: show both then."""
    document = posts.find(database(), post_id)
    old = documents.load(document)
    typed = typed_fields(old["content"])
    changes = {name: value for name, value in typed.items() if value != old.get(name, type(value)())}
    cleared = {name: None for name in ("excerpt", "cover_image") if changes.get(name) == ""}
    fields = change_of_post.load(changes | cleared)
    try:
        return change_with_undo(post_id, "was saved.", posts.change, fields, must_match(g.form.get("etag", "")))
    except PreconditionFailed:
        return show_form(post_id), 412


def change_with_undo(post_id: int, text: str, operation: Callable, *arguments: Any) -> Response:
    """Change a post by an operation of the storage, and say so; a form can go back to the version before."""
    document, version = database().write(with_version, operation, post_id, *arguments, author())
    undo = version and (f"/posts/{post_id}/history/{version}/restore", {"etag": documents.etag(document)})
    return done(f"/posts/{post_id}", text, documents.load(document)["title"], undo=undo)


def with_version(tx: Transaction, operation: Callable, post_id: int, *arguments: Any) -> tuple[bytes, int | None]:
    """Change a post; return its document, and the number of the version before, if a new one was created."""
    before = newest_version(tx, post_id)
    document = operation(tx, post_id, *arguments)
    version = newest_version(tx, post_id)
    return document, version if version != before else None


def newest_version(reader: Reader, post_id: int) -> int | None:
    """Return the newest version that is kept of a post."""
    kept = history.revisions(reader, post_id, 1).kept
    return kept[0].version if kept else None


def author() -> str:
    """Return the name of this page in the history of posts; "" if no history is kept."""
    return service().config.author("settings")


def must_match(etag: str) -> Check:
    """Return a check that raises PreconditionFailed unless a post has this entity tag. It may run in a thread."""

    def check(document: bytes | None) -> None:
        if document is None or documents.etag(document) != etag:
            raise PreconditionFailed("The post was changed meanwhile. Its history has every version.")

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

    Browsers send every line break as CRLF; the content keeps the kind that it had.
    """
    typed: dict[str, Any] = {name: g.form.get(name, "") for name in FIELDS}
    if "\r\n" in old_content:
        same = typed["content"] == old_content.replace("\r\n", "\n")
        typed["content"] = old_content if same else typed["content"].replace("\n", "\r\n")
    typed["tags"] = [name for name in typed["tags"].split("\n") if name.strip()]
    if time := typed.pop("published_at"):
        typed["published_at"] = f"{time}{':00' * bool(MINUTE.fullmatch(time))}Z"
    return typed
