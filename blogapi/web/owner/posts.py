"""The views of the owner's page for posts: the list, a post to read, and its status."""

import json
from contextlib import suppress
from typing import Any

from flask import Response, redirect, render_template, request

from blogapi.storage import documents, pages, posts, stored
from blogapi.storage.errors import Damaged
from blogapi.web.owner.blueprint import address, blueprint, done
from blogapi.web.owner.forms import shows_errors
from blogapi.web.owner.writing import author, change_of_post, typed_fields
from blogapi.web.schemas.posts import ListQuerySchema
from blogapi.web.service import database, service
from blogapi.web.views.posts import find_page

SHOWN = 20  # posts at once
MAX_TRAIL = 100  # pages: the address must not become too long
LISTED = "id,title,status,tags,published_at,updated_at"
list_query = ListQuerySchema(only=("status", "before", "q", "sort"))
NOW = {"published": "published", "draft": "a draft", "scheduled": "scheduled", "archived": "archived"}


@blueprint.get("")
def index() -> Response:
    """Begin with the posts, or with the keys if there is no post yet."""
    return redirect(address("/posts" if any(pages.counts(database()).values()) else "/keys"))


@blueprint.get("/posts")
def show_posts() -> str:
    """Show the posts by latest change, and how many have each status.

    `newer` in the query has the starts of the pages between the first and this one.
    """
    asked = {name: value for name, value in request.args.items() if value}
    trail = asked.pop("newer", "").split()
    query = list_query.load(asked | {"sort": "published_at"})  # an order whose pages begin at a time
    page = find_page(database(), query | {"sort": "updated_at", "limit": SHOWN, "fields": LISTED}, client="owner")
    start = asked.pop("before", None)
    passed = [*trail, start][-MAX_TRAIL:] if start else []
    values = {
        "posts": list(map(json.loads, page.documents)),
        "asked": asked,
        "older": page.before and {"before": page.before, "newer": " ".join(passed)},
        "newer": start and {"before": trail[-1] if trail else "", "newer": " ".join(trail[:-1])},
        "counts": pages.counts(database()),
        "now": database().now,
    }
    with suppress(Damaged):
        values["late"] = stored.later_than_now(database())
    return render_template("owner/posts.html", most=pages.MAX_COUNTED, url=service().config.url, **values)


@blueprint.get("/posts/<id:post_id>")
def show_post(post_id: int, **shown: Any) -> str:
    """Show a post to read, and what can be done with it."""
    post = documents.load(posts.find(database(), post_id))
    return render_template("owner/post.html", post=post, is_kept=bool(author()), **shown)


# Changes of a post


@blueprint.post("/posts/<id:post_id>/status")
@shows_errors(show_post)
def change_status(post_id: int) -> Response:
    """Publish, schedule, archive or unpublish a post."""
    typed = typed_fields()
    old = documents.load(posts.find(database(), post_id))
    fields = change_of_post.load({name: typed[name] for name in ("status", "published_at") if name in typed})
    new = documents.load(database().write(posts.change, post_id, fields, no_check, author()))
    before = {name: old[name].removesuffix("Z") for name in ("status", "published_at") if name in old}
    undo = f"/posts/{post_id}/status", before
    return done(f"/posts/{post_id}", f"is {NOW[new['status']]} now.", new["title"], undo=undo)


@blueprint.post("/posts/<id:post_id>/delete")
def delete_post(post_id: int) -> Response:
    """Delete a post."""
    title = ""
    with suppress(Damaged):  # A damaged post can be deleted, too.
        title = documents.load(posts.find(database(), post_id))["title"]
    database().write(posts.delete, post_id, no_check, author())
    if not author():
        return done("/posts", "was deleted.", title)
    return done("/posts", "is in the trash.", title, undo=(f"/trash/{post_id}/restore", {}))


def no_check(document: bytes | None) -> None:
    """Accept every state of a post."""
