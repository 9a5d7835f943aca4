"""Read the posts in feeds (RSS, Atom, JSON Feed) and in exports of Blogger, which are feeds, too."""

from collections.abc import Iterator
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from xml.etree.ElementTree import Element, tostring

from blogapi.documents import is_slug
from blogapi.wings.markdown.dates import rfc3339_or_empty
from blogapi.wings.markdown.front_matter import MarkdownError
from blogapi.wings.markdown.html import text_of
from blogapi.wings.transfer.items import ExportedPost, LeftOut
from blogapi.wings.transfer.xml_files import child_text, elements, local_name

KIND = "http://schemas.google.com/g/2005#kind"  # scheme of the category that says what an entry is


def kind_of(entry: Element) -> str:
    """Return what an entry is: "post", "page", "comment" and so on; "" if it is not from Blogger."""
    if kind := child_text(entry, "type", "blogger"):
        return kind.lower()
    terms = [child.get("term", "") for child in entry.iterfind("{*}category") if child.get("scheme") == KIND]
    return terms[0].rpartition("#")[2] if terms else ""


def read_entry(entry: Element, kind: str) -> ExportedPost | LeftOut:
    """Return a post or a page of Blogger."""
    status = child_text(entry, "status", "blogger").lower()
    when = rfc3339_or_empty(child_text(entry, "published"))
    is_draft = status not in ("", "live", "scheduled") or child_text(entry, "control/{*}draft") == "yes"
    is_draft |= status == "scheduled" and not when
    if "trash" in status or child_text(entry, "trashed", "blogger"):
        return LeftOut(f"{kind} (trash)")
    links = [child.get("href", "") for child in entry.iterfind("{*}link") if child.get("rel") == "alternate"]
    path = child_text(entry, "filename", "blogger") or urlsplit(next(iter(links), "")).path
    labels = [child for child in entry.iterfind("{*}category") if "google.com" not in child.get("scheme", "")]
    fields = {
        "slug": path.rpartition("/")[2].partition(".")[0],
        "title": text_of(child_text(entry, "title")),
        "status": "draft" if is_draft else "published",
        "published_at": when,
        "tags": [child.get("term", "") for child in labels],
        "html": child_text(entry, "content"),
        "params": {"author": author} if (author := child_text(entry, "author/{*}name")) else {},
    }
    return ExportedPost(
        child_text(entry, "id").rpartition("-")[2],
        fields,
        kind,
        created_at=rfc3339_or_empty(child_text(entry, "created", "blogger")) or when,
        paths=(path,),
        date_text=child_text(entry, "published"),
        values={"status": status or fields["status"]},
    )


PARTIAL = LeftOut("older post")  # comes last if a feed probably has only the latest posts
# Numbers of items at which programs cut off a feed
USUAL_LENGTHS = (5, 10, 12, 15, 20, 25, 30, 40, 50, 100, 150, 200, 250, 300, 500, 1000)
# Names in a JSON Feed
ITEM_TEXTS = ("url", "title", "date_published", "date_modified", "content_html", "content_text", "summary", "image")


def read_posts(path: Path, zone: tzinfo = UTC) -> Iterator[ExportedPost | LeftOut]:
    """Yield the posts of a feed in XML, or of an export of Blogger. Raises MarkdownError."""
    count, has_next = 0, False
    for element in elements(path):
        has_next |= local_name(element) == "link" and element.get("rel") == "next"
        if local_name(element) in ("entry", "item"):
            kind = kind_of(element)
            count += not kind
            if kind in ("post", "page"):
                yield read_entry(element, kind)
            else:
                yield LeftOut(kind) if kind else _entry(element, zone)
    if has_next or count in USUAL_LENGTHS:
        yield PARTIAL


def _entry(entry: Element, zone: tzinfo) -> ExportedPost:
    links = [link for link in entry.iterfind("{*}link") if link.get("rel", "alternate") == "alternate"]
    dates = [*filter(None, (child_text(entry, name) for name in ("pubDate", "published", "date", "updated")))]
    html = child_text(entry, "encoded") or _html(entry.find("{*}content")) or _html(entry.find("{*}description"))
    summary = _html(entry.find("{*}summary"))
    author = child_text(entry, "creator") or child_text(entry, "author/{*}name") or child_text(entry, "author")
    terms = [child.get("term") or child.text or "" for child in entry.iterfind("{*}category")]
    return _post(
        values={"draft": child_text(entry, "control/{*}draft")},
        link="".join(link.get("href") or link.text or "" for link in links[:1]).strip(),
        title=text_of(child_text(entry, "title")),
        when=next(filter(None, (rfc3339_or_empty(text, zone) for text in dates)), ""),
        date_text=next(iter(dates), ""),
        html=html or summary,
        excerpt=text_of(summary) if html else "",
        tags=terms,
        params={"author": author} if author else {},
    )


def _html(element: Element | None) -> str:
    """Return HTML, which is escaped text or elements."""
    if element is None:
        return ""
    for node in element.iter():
        node.tag = local_name(node)
    children = [tostring(child, encoding="unicode", method="html") for child in element]
    return "".join((element.text or "", *children)).strip()


def _post(link: str, when: str, date_text: str, values: dict[str, Any], **fields: Any) -> ExportedPost:
    path = urlsplit(link).path
    slug = path.rstrip("/").rpartition("/")[2].removesuffix(".html")
    fields |= {"slug": slug if is_slug(slug) else "", "status": "published", "published_at": when}
    number = link or fields["title"]
    return ExportedPost(number, fields, created_at=when, date_text=date_text, paths=(path,), values=values)


def read_json_feed(feed: dict[str, Any]) -> Iterator[ExportedPost | LeftOut]:
    """Yield the posts of a JSON Feed. Raises MarkdownError."""
    items = feed.get("items")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise MarkdownError("`items` must be a list of posts")
    for item in items:
        texts = {name: value if isinstance(value := item.get(name), str) else "" for name in ITEM_TEXTS}
        tags = item.get("tags") if isinstance(item.get("tags"), list) else []
        yield _post(
            values=item,
            link=texts["url"],
            title=texts["title"],
            when=rfc3339_or_empty(texts["date_published"] or texts["date_modified"]),
            date_text=texts["date_published"] or texts["date_modified"],
            html=texts["content_html"],
            content="" if texts["content_html"] else texts["content_text"],
            excerpt=texts["summary"],
            tags=[tag for tag in tags if isinstance(tag, str)],
            cover_image=texts["image"],
        )
    if feed.get("next_url") or len(items) in USUAL_LENGTHS:
        yield PARTIAL
