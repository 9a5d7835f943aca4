"""The owner's views of tags: the list, and renaming, merging and deleting them."""

from collections.abc import Callable
from typing import Any

from flask import Blueprint, Response, g, render_template

from blogapi.api.request import request
from blogapi.paging import Page
from blogapi.storage.engine import Transaction
from blogapi.text import fold
from blogapi.wings.history import undo
from blogapi.wings.owner.frame import done, shows_errors
from blogapi.wings.tags import storage as tags
from blogapi.wings.tags.views import TagChangeSchema

TAGS_PER_PAGE, SEARCHED_TAGS = 100, 5000
tag_change = TagChangeSchema()
views = Blueprint("tags", __name__)


@views.get("/tags")
def show_tags(**shown: Any) -> str:
    """Show the tags in alphabetical order, each with its number of posts."""
    query, after = request.args.get("q", ""), fold(request.args.get("after", ""))
    limit = SEARCHED_TAGS if query else TAGS_PER_PAGE
    page = request.database.read_in_thread(request.client, tags.page, limit, after)
    if query:
        page = Page([tag for tag in page.items if fold(query) in fold(tag.name)][:TAGS_PER_PAGE], None)
    return render_template("owner/tags.html", page=page, **shown)


@views.post("/tags/rename")
@shows_errors(show_tags)
def rename_tag() -> Response:
    """Rename a tag in every post, or merge it with another."""
    change = tag_change.load({"name": g.form.get("name", ""), "merge": "merge" in g.form})
    return changed(g.form.get("tag", ""), f"is now “{change['name']}”.", tags.rename, change["name"], change["merge"])


@views.post("/tags/delete")
def delete_tag() -> Response:
    return changed(g.form.get("tag", ""), "was removed from every post.", tags.delete)


@views.post("/tags/undo")
def undo_tag() -> Response:
    tag = fold(g.form.get("tag", ""))
    count = request.database.write_in_thread(undo.undo_tag, tag, g.form.get("changed_at", ""), request.author)
    return done("/tags", f"The tags of {count} {'post' if count == 1 else 'posts'} were restored.")


def changed(tag: str, text: str, change: Callable, *arguments: Any) -> Response:
    """Change a tag in every post, using a thread, and offer Undo."""
    author = request.author  # The thread cannot access the request.

    def operation(tx: Transaction) -> str:
        change(tx, fold(tag), *arguments, author)
        return tx.now

    at = request.database.write_in_thread(operation)
    offer = ("/tags/undo", {"tag": tag, "changed_at": at}) if request.database.keeps_history else None
    return done("/tags", text, tag, undo=offer)
