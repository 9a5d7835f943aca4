"""Previews: a post as it will look, in a sandboxed document."""

import re
import zlib
from functools import partial
from typing import Any

from flask import Blueprint, Response, g, render_template
from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_block.table import table
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markupsafe import Markup
from mdit_py_plugins.footnote import footnote_plugin

from blogapi import documents
from blogapi.api.access import for_strangers
from blogapi.api.request import request
from blogapi.wings.owner import copies, sessions
from blogapi.wings.owner.frame import PREVIEW, ROOT, done, read_cookie, sent_digest, shows_errors
from blogapi.wings.owner.posts import POST, VERSION, show_post, version_of

MAX_CHARACTERS = 100_000  # maximum length of the content; rendering it takes up to a second
MAX_BRACKETS = 20_000  # maximum number of opening brackets; each can begin a link, an image or a footnote (40 µs)
MAX_CELLS = 20_000  # maximum number of cells in all tables, because a row of one character can be padded to 400 cells
TASK = re.compile(r"\[([ xX])\]\s+")
BOX = '<input class="task-list-item-checkbox" aria-label="done"{} disabled="disabled" type="checkbox"> '
# The preview may load images and styles, but no scripts. Images from other hosts load only on request; otherwise, a
# hostile post could make the owner's browser call hosts in its network.
POLICY = (
    "default-src 'none'; img-src {}; style-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'; sandbox"
)
ORIGIN = re.compile("https?://[^/?#]+")
IMAGE = re.compile(r'<img src="(https?://[^/?#"]+)[^"]*" alt="([^"]*)"[^>]*>')
ELSEWHERE = '<span class="elsewhere">Image: {} ({})</span>'
MAX_CACHED = 16_000_000  # at most this many bytes of compressed HTML are cached: enough for all shared posts
pages: dict[str, bytes] = {}  # hash of the content -> compressed HTML, least recently used first
views = Blueprint("preview", __name__)


def bounded_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Parse a table, or show a message in its place once the tables together have too many cells."""
    is_table = table(state, start, end, True)
    if silent or not is_table:
        return is_table
    after = next((line for line in range(start + 2, end) if state.isEmpty(line)), end)
    columns = state.getLines(start + 1, start + 2, 0, False).count("|") + 1
    state.env["cells"] = state.env.get("cells", 0) + columns * (after - start)
    if state.env["cells"] <= MAX_CELLS:
        return table(state, start, end, False)
    state.push("html_block", "", 0).content = "<p>(This table is too large for the preview.)</p>\n"
    state.line = after
    return True


def show_tasks(state: StateCore) -> None:
    """Show a checkbox in list items that begin with `[ ]` or `[x]`, as GitHub does."""
    for item, _, text in zip(state.tokens, state.tokens[1:], state.tokens[2:], strict=False):
        task = TASK.match(text.content) if item.type == "list_item_open" and text.type == "inline" else None
        if task and text.children and text.children[0].type == "text":
            item.attrSet("class", "task-list-item")
            text.children[0].content = text.children[0].content[task.end() :]
            box = BOX.format("" if task[1] == " " else ' checked="checked"')
            text.children.insert(0, Token("html_inline", "", 0, content=box))


def set_attributes(state: StateCore) -> None:
    """Number blocks by line, let wide ones scroll, let lists and quotes run as their text does, and align columns.

    Columns are aligned with a class, because inline styles are forbidden.
    """
    for token in state.tokens:
        if token.map and token.nesting >= 0:
            token.attrSet("data-line", str(token.map[0]))
        if token.type in ("fence", "code_block", "table_open"):
            token.attrSet("tabindex", "0")  # lets the arrow keys scroll a wide block
        if token.type in ("bullet_list_open", "ordered_list_open", "blockquote_open"):
            token.attrSet("dir", "auto")  # puts bullets and bars on the side where the text begins
        style = token.attrs.pop("style", "")
        if isinstance(style, str) and style.startswith("text-align:"):
            token.attrSet("class", style.removeprefix("text-align:"))


markdown = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).use(footnote_plugin)
markdown.block.ruler.at("table", bounded_table, {"alt": ["paragraph", "reference"]})
markdown.core.ruler.after("inline", "tasks", show_tasks)
markdown.core.ruler.after("inline", "attributes", set_attributes)


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
    is_unsaved = bool(copies.listing(request.database, copies.OPEN, post_id=int(post["id"])))
    # If several visitors open the preview at once, the first one triggers the rendering, and the others wait for it.
    return show(post, f"preview of {post['id']}", is_unsaved=is_unsaved, is_owner=is_owner)


@views.post(f"{POST}/share")
@shows_errors(show_post)
def share_post(post_id: int) -> Response:
    link = f"{request.service.config.base_url}{ROOT}/shared?token={request.database.write(sessions.share, post_id)}"
    return done(f"/posts/{post_id}", "It shows the post as it was last saved, for seven days.", link=link)


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
    headers = {"Content-Security-Policy": POLICY.format(sources), "X-Robots-Tag": "noindex"}
    return Response(page, headers=headers)


def bounded(content: str) -> str:
    """Return the beginning of the content, up to the limits for rendering."""
    return "[".join(content[:MAX_CHARACTERS].split("[", MAX_BRACKETS + 1)[: MAX_BRACKETS + 1])


@views.app_template_filter()
def rendered(content: str, client: str = "") -> Markup:
    """Render Markdown as HTML without scripts."""
    render_text = partial(render, bounded(content))
    return Markup(request.database.compute_in_thread(client or request.client, render_text))


@views.app_template_filter()
def without_others(html: str) -> Markup:
    """Replace images from other hosts, which this page must not load, with their descriptions."""
    own = origin(request.service.config.base_url)
    return Markup(IMAGE.sub(lambda image: image[0] if image[1] == own else ELSEWHERE.format(image[2], image[1]), html))


def render(text: str) -> str:
    """Render Markdown, and cache the HTML, because strangers can request a shared post again and again."""
    digest = documents.etag_of(text.encode())
    page = pages.pop(digest, None) or zlib.compress(markdown.render(text).encode(), 1)
    pages[digest] = page  # now the most recently used
    while len(pages) > 1 and sum(map(len, list(pages.values()))) > MAX_CACHED:
        del pages[next(iter(pages))]
    return zlib.decompress(page).decode()


def origin(url: str) -> str:
    """Return the scheme and the host of a URL, or ""."""
    return match[0] if (match := ORIGIN.match(url)) else ""
