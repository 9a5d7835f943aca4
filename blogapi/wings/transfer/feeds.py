"""Read the posts in feeds: RSS, Atom and JSON Feed."""

from collections.abc import Iterator
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from xml.etree.ElementTree import Element, tostring

from blogapi.documents import is_slug
from blogapi.wings.markdown.dates import time_or_nothing
from blogapi.wings.markdown.front_matter import MarkdownError
from blogapi.wings.markdown.html import text_of
from blogapi.wings.transfer import blogger
from blogapi.wings.transfer.xml_files import elements, local, text

PARTIAL = {"kind": "partial feed"}  # comes last if a feed probably has only the latest posts
# Numbers of items to which programs cut a feed
USUAL_LENGTHS = (5, 10, 12, 15, 20, 25, 30, 40, 50, 100, 150, 200, 250, 300, 500, 1000)


def read_posts(path: Path, zone: tzinfo = UTC) -> Iterator[dict[str, Any]]:
    """Yield the posts of a feed in XML, or of an export of Blogger, like `wordpress.read_posts`."""
    count, has_next = 0, False
    for element in elements(path):
        has_next |= local(element) == "link" and element.get("rel") == "next"
        if local(element) in ("entry", "item"):
            kind = blogger.kind_of(element)
            count += not kind
            if kind in ("post", "page"):
                yield blogger.read_entry(element, kind)
            else:
                yield {"kind": kind} if kind else _entry(element, zone)
    if has_next or count in USUAL_LENGTHS:
        yield PARTIAL


def _entry(entry: Element, zone: tzinfo) -> dict[str, Any]:
    links = [link for link in entry.iterfind("{*}link") if link.get("rel", "alternate") == "alternate"]
    dates = [time_or_nothing(text(entry, name), zone) for name in ("pubDate", "published", "date", "updated")]
    html = text(entry, "encoded") or _html(entry.find("{*}content")) or _html(entry.find("{*}description"))
    summary = _html(entry.find("{*}summary"))
    author = text(entry, "creator") or text(entry, "author/{*}name") or text(entry, "author")
    terms = [child.get("term") or child.text or "" for child in entry.iterfind("{*}category")]
    return _post(
        values={"draft": text(entry, "control/{*}draft")},
        link="".join(link.get("href") or link.text or "" for link in links[:1]).strip(),
        title=text_of(text(entry, "title")),
        when=next(filter(None, dates), ""),
        html=html or summary,
        excerpt=text_of(summary) if html else "",
        tags=terms,
        params={"author": author} if author else {},
    )


def _html(element: Element | None) -> str:
    """Return the HTML of a text that is escaped, or of elements."""
    if element is None:
        return ""
    for each in element.iter():
        each.tag = local(each)
    children = [tostring(child, encoding="unicode", method="html") for child in element]
    return "".join((element.text or "", *children)).strip()


def _post(*, link: str, title: str, when: str, **fields: Any) -> dict[str, Any]:
    path = urlsplit(link).path
    slug = path.rstrip("/").rpartition("/")[2].removesuffix(".html")
    post = {"kind": "post", "id": link or title, "path": path, "slug": slug if is_slug(slug) else "", "title": title}
    return post | fields | {"status": "published", "published_at": when, "created_at": when}


def read_json_feed(feed: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the posts of a JSON Feed like `read_posts`."""
    items = feed.get("items")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise MarkdownError("`items` must be a list of posts")
    for item in items:
        said = {name: value if isinstance(value := item.get(name), str) else "" for name in ITEM_TEXTS}
        tags = item.get("tags") if isinstance(item.get("tags"), list) else []
        yield _post(
            values=item,
            link=said["url"],
            title=said["title"],
            when=time_or_nothing(said["date_published"] or said["date_modified"]),
            html=said["content_html"],
            content="" if said["content_html"] else said["content_text"],
            excerpt=said["summary"],
            tags=[tag for tag in tags if isinstance(tag, str)],
            cover_image=said["image"],
            params={},
        )
    if feed.get("next_url") or len(items) in USUAL_LENGTHS:
        yield PARTIAL


ITEM_TEXTS = ("url", "title", "date_published", "date_modified", "content_html", "content_text", "summary", "image")
