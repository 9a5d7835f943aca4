"""Read the posts in exports of Medium: HTML files with microformats."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from turbohtml import Element, parse

from blogapi.posts.slugs import slug_of
from blogapi.wings.markdown.dates import rfc3339_or_empty
from blogapi.wings.markdown.files import MAX_FILE_BYTES
from blogapi.wings.markdown.front_matter import MarkdownError
from blogapi.wings.markdown.html import check_size
from blogapi.wings.transfer.items import ExportedPost

FILE_NAME = re.compile(r"(draft|\d{4}-\d\d-\d\d)_(.*)-([0-9a-f]{8,12}|-+[0-9a-f]{8,12})\.html", re.DOTALL)


def read_posts(path: Path) -> Iterator[ExportedPost]:
    """Yield the post in a file. Raises MarkdownError."""
    match = FILE_NAME.fullmatch(path.name)
    with path.open("rb") as file:
        html = file.read(MAX_FILE_BYTES).decode(errors="replace")
    check_size(html)
    entry = parse(html).select_one(".h-entry")
    body = entry.select_one(".e-content") if entry else None
    if not match or not entry or not body:
        raise MarkdownError("not an export of Medium")
    yield _post(match, entry, body)


def _post(match: re.Match[str], entry: Element, body: Element) -> ExportedPost:
    title = _text(entry.select_one(".p-name")) or match[2].strip("-")
    heading = body.select_one("h1, h2, h3, h4")
    if heading and heading.text.strip() == title:  # The title is repeated in the text.
        heading.decompose()
    time, link = entry.select_one("time.dt-published"), entry.select_one("a.p-canonical")
    date_text = time.attr("datetime") or "" if time else ""
    when = rfc3339_or_empty(date_text)
    address = link.attr("href") or "" if link else ""
    author = _text(entry.select_one(".p-author"))
    status = "draft" if match[1] == "draft" else "published"
    fields = {
        "slug": slug_of(title),
        "title": title,
        "status": status,
        "published_at": when,
        "excerpt": _text(entry.select_one(".p-summary")),
        "html": body.inner_html,
        "params": ({"author": author} if author else {}) | ({"canonical_url": address} if address else {}),
    }
    post = ExportedPost(match[3], fields, created_at=when, date_text=date_text, values={"status": status})
    post.paths = (urlsplit(address).path,)
    return post


def _text(element: Element | None) -> str:
    return " ".join(element.text.split()) if element else ""
