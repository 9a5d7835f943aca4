"""Previews: a post as it will look, in a sandboxed document."""

import re
from functools import partial
from typing import Any

from flask import Blueprint, Response, g, render_template
from markupsafe import Markup

from blogapi import documents
from blogapi.api.access import for_strangers
from blogapi.api.request import request
from blogapi.markdown import render
from blogapi.wings.owner import copies, sessions
from blogapi.wings.owner.frame import PREVIEW, ROOT, done, read_cookie, sent_digest, shows_errors
from blogapi.wings.owner.posts import POST, VERSION, show_post, version_of

# The preview may load images and styles, but no scripts. Images from other hosts load only on request; otherwise, a
# hostile post could make the owner's browser call hosts in its network.
POLICY = (
    "default-src 'none'; img-src {}; style-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; sandbox"
)
MAX_CHARACTERS = 100_000  # maximum length of the content; rendering it takes up to a second
MAX_BRACKETS = 20_000  # maximum number of opening brackets; each can begin a link, an image or a footnote (40 µs)
ORIGIN = re.compile("https?://[^/?#]+")
IMAGE = re.compile(r'<img src="(https?://[^/?#"]+)[^"]*" alt="([^"]*)"[^>]*>')
ELSEWHERE = '<span class="elsewhere">Image: {} ({})</span>'
views = Blueprint("preview", __name__)


@views.post(PREVIEW)
def preview_form() -> Response:
    """Preview the text that was typed into a post's form."""
    return show(g.form)


@views.get(f"{POST}/preview")
@views.get(f"{VERSION}/preview")
def preview_post(post_id: int, version: int | None = None) -> Response:
    """Show a post, or an earlier version of it."""
    return show(documents.load(version_of(post_id, version)))


@views.get("/shared")
@for_strangers
def show_shared() -> Response:
    """Show a post's preview to anyone who has the preview's URL. All invalid URLs get the same response."""
    post = documents.load(sessions.shared_post(request.database, request.args.get("token", "")))
    is_owner = sessions.find(request.database, sessions.SESSION, read_cookie()) is not None
    is_unsaved = bool(copies.listing(request.database, copies.OPEN, draft=post["id"]))
    # If several visitors open the preview at once, the first one triggers the rendering, and the others wait for it.
    return show(post, f"preview of {post['id']}", is_unsaved=is_unsaved, is_owner=is_owner)


@views.post(f"{POST}/share")
@shows_errors(show_post)
def share_post(post_id: int) -> Response:
    link = f"{request.service.config.base_url}{ROOT}/shared?token={request.database.write(sessions.share, post_id)}"
    return done(f"/posts/{post_id}", "For seven days, the link shows anyone the post as it was last saved.", link=link)


@views.post(f"{POST}/withdraw")
def withdraw_link(post_id: int) -> Response:
    request.database.write(sessions.withdraw, post_id, sent_digest())
    return done(f"/posts/{post_id}", "The preview is no longer shared.")


def show(post: Any, client: str = "", *, is_unsaved: bool = False, is_owner: bool = True) -> Response:
    """Show a post. The server renders one post at a time for `client`, which is the request's client by default."""
    title, content, cover = (post.get(name, "") for name in ("title", "content", "cover_image"))
    values, html = {"title": title}, rendered(content, client)
    own, sources = origin(request.service.config.base_url), "http: https:"
    if not is_owner or request.args.get("images") != "all":
        sources = f"'self' {own}"
        values["others"] = {origin(cover), *(image[1] for image in IMAGE.finditer(html))} - {own, ""}
        html, cover = without_others(html), cover if origin(cover) in (own, "") else ""
    values |= {"cover": cover, "content": html, "is_cut": bounded(content) != content}
    page = render_template("owner/preview.html", **values, is_unsaved=is_unsaved, is_owner=is_owner)
    return Response(page, headers={"Content-Security-Policy": POLICY.format(sources), "X-Robots-Tag": "noindex"})


@views.app_template_filter()
def rendered(content: str, client: str = "") -> Markup:
    """Render Markdown as HTML without scripts."""
    render_text = partial(render, bounded(content))
    return Markup(request.database.compute_in_thread(client or request.client, render_text))


def bounded(content: str) -> str:
    """Return the beginning of the content, up to the limits for rendering."""
    return "[".join(content[:MAX_CHARACTERS].split("[", MAX_BRACKETS + 1)[: MAX_BRACKETS + 1])


@views.app_template_filter()
def without_others(html: str) -> Markup:
    """Replace images from other hosts, which this page must not load, with their descriptions."""
    own = origin(request.service.config.base_url)
    return Markup(IMAGE.sub(lambda image: image[0] if image[1] == own else ELSEWHERE.format(image[2], image[1]), html))


def origin(url: str) -> str:
    """Return the scheme and the host of a URL, or ""."""
    return match[0] if (match := ORIGIN.match(url)) else ""
