"""Render Markdown as HTML, for previews: without scripts, and within limits on time and memory."""

import re
import zlib

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_block.table import table
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from mdit_py_plugins.footnote import footnote_plugin

from blogapi.documents import etag_of

MAX_URLS = 1_000_000  # maximum total length of the links' URLs and titles, which `[a]` can repeat many times
MAX_CELLS = 20_000  # maximum number of cells in all tables, because a row of one character can be padded to 400 cells
TASK = re.compile(r"\[([ xX])\]\s+")
BOX = '<input class="task-list-item-checkbox" aria-label="done"{} disabled="disabled" type="checkbox"> '
MAX_CACHED = 16_000_000  # at most this many bytes of compressed HTML are cached: enough for all shared posts
pages: dict[str, bytes] = {}  # hash of the content -> compressed HTML, least recently used first


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
    """Number blocks by line, let wide ones scroll, give lists and quotes their text's direction, and align columns.

    Columns are aligned with a class, because inline styles are forbidden. Links beyond MAX_URLS lose their URLs.
    """
    size = 0
    for token in state.tokens:
        for link in token.children or ():
            size += sum(len(str(value)) for value in link.attrs.values())
            link.attrs = link.attrs if size <= MAX_URLS else {}
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


def render(text: str) -> str:
    """Render Markdown, and cache the HTML, because strangers can request a shared post again and again."""
    digest = etag_of(text.encode())
    page = pages.pop(digest, None) or zlib.compress(markdown.render(text).encode(), 1)
    pages[digest] = page  # now the most recently used
    while len(pages) > 1 and sum(map(len, list(pages.values()))) > MAX_CACHED:
        del pages[next(iter(pages))]
    return zlib.decompress(page).decode()
