"""The preview of a post on the owner's page: as it will read, in a document that can do nothing."""

from functools import partial
from typing import Any

from flask import Response, g, render_template, request
from markdown_it import MarkdownIt
from markupsafe import Markup
from mdit_py_plugins.footnote import footnote_plugin
from mdit_py_plugins.tasklists import tasklists_plugin
from werkzeug.datastructures import Headers

from blogapi.storage import documents, posts, revisions
from blogapi.web.owner.blueprint import PREVIEW, blueprint
from blogapi.web.owner.posts import POST, TRASHED, VERSION

MAX_CHARACTERS = 100_000  # of a content: these take up to a second
# Images come from anywhere, styles from here; the rest is forbidden, scripts and links that leave the frame included.
POLICY = (
    "default-src 'none'; img-src http: https:; style-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'; sandbox"
)

markdown = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
markdown.use(footnote_plugin).use(tasklists_plugin)


@blueprint.post(PREVIEW)
def preview_form() -> Response:
    """Show the text in the form of a post."""
    return show(g.form)


@blueprint.get(f"{POST}/preview")
def preview_post(post_id: int) -> Response:
    """Show a post as it is."""
    return show(documents.load(posts.find(request.database, post_id)))


@blueprint.get(f"{VERSION}/preview")
def preview_version(post_id: int, version: int) -> Response:
    """Show an earlier version of a post."""
    return show(documents.load(revisions.find(request.database, post_id, version)))


@blueprint.get(f"{TRASHED}/preview")
def preview_deleted(post_id: int) -> Response:
    """Show a post in the trash."""
    return show(documents.load(revisions.find_in_trash(request.database, post_id)))


def show(post: Any) -> Response:
    """Render a post in a thread, while other requests are answered."""
    content = post.get("content", "")
    html = request.database.in_background(partial(markdown.render, content[:MAX_CHARACTERS]))
    values = {"title": post.get("title", ""), "cover": post.get("cover_image", ""), "content": Markup(html)}
    page = render_template("owner/preview.html", **values, is_cut=len(content) > MAX_CHARACTERS)
    headers = Headers({"Content-Security-Policy": POLICY, "X-Frame-Options": "SAMEORIGIN"})
    return Response(page, headers=headers)
