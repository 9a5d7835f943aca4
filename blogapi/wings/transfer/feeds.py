"""Read the posts in feeds (RSS, Atom, JSON Feed) and in Blogger exports. Parse XML safely and in bounded memory."""

import io
from collections.abc import Iterator
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from xml.etree.ElementTree import Element, ParseError, TreeBuilder, tostring

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser, iterparse

from blogapi.documents import is_slug
from blogapi.markdown.dates import rfc3339_or_empty
from blogapi.markdown.front_matter import MarkdownError
from blogapi.markdown.html import text_of
from blogapi.wings.transfer.items import ExportedPost, LeftOut

MAX_ITEM_BYTES = 32 * 1024 * 1024  # maximum size of an item, which is held in memory as a whole
MAX_TAG_BYTES = 1024 * 1024  # maximum size of a tag or comment; an incomplete one is parsed again with each piece read
# XML forbids these characters, but WordPress writes them.
CONTROL_CHARACTERS = bytes({*range(0x20)} - {*b"\t\n\r"})


class CleanFile(io.FileIO):
    """An XML file, read without its control characters. Raises MarkdownError if an item or a tag is too large."""

    remaining = MAX_ITEM_BYTES
    passed = 0  # bytes passed to the parser

    def __init__(self, path: Path, parser: DefusedXMLParser):
        super().__init__(path)
        self.expat = parser.parser
        if hasattr(self.expat, "SetReparseDeferralEnabled"):  # Otherwise, CurrentByteIndex lags behind.
            self.expat.SetReparseDeferralEnabled(False)

    def read(self, size: int | None = -1) -> bytes:
        """Read up to `size` bytes and remove control characters. Return b"" only at the end of the file."""
        while (data := super().read(size)) and not (clean := data.translate(None, CONTROL_CHARACTERS)):
            pass
        self.remaining -= len(data)
        if self.remaining < 0:
            raise MarkdownError(f"an item must have at most {MAX_ITEM_BYTES // 1024**2} MiB")
        if self.passed - self.expat.CurrentByteIndex > MAX_TAG_BYTES:
            raise MarkdownError(f"a tag must have at most {MAX_TAG_BYTES // 1024**2} MiB")
        self.passed += len(clean) if data else 0
        return clean if data else b""


def elements(path: Path) -> Iterator[Element]:
    """Yield the children of an RSS channel, or of the root of an Atom or RDF file. Raises MarkdownError."""
    parents: list[Element] = []
    depth = 2
    try:
        parser = DefusedXMLParser(target=TreeBuilder(), forbid_dtd=True)
        with CleanFile(path, parser) as file:
            for event, element in iterparse(file, ("start", "end"), parser):
                if event == "start":
                    depth = depth if parents else 1 if local_name(element) in ("feed", "RDF") else 2
                    parents.append(element)
                    continue
                parents.pop()
                if len(parents) == depth:
                    yield element
                    parents[-1].clear()
                    file.remaining = MAX_ITEM_BYTES
    except ParseError as error:
        raise MarkdownError(f"not valid XML: {str(error).partition(':')[0]}", error.position[0]) from None
    except DefusedXmlException:
        raise MarkdownError("must not have a document type definition") from None
    except (LookupError, ValueError):  # raised by the parser
        raise MarkdownError("its encoding is not supported: convert it to UTF-8") from None


def local_name(element: Element) -> str:
    """Return the name of an element without its namespace."""
    return element.tag.rpartition("}")[2]


def child_text(item: Element, name: str, space: str = "") -> str:
    """Return the text of the first child with this name whose namespace contains `space`."""
    return next((child.text or "" for child in item.iterfind(f"{{*}}{name}") if space in child.tag), "").strip()


KIND = "http://schemas.google.com/g/2005#kind"  # scheme of the category that says what an entry is


def _blogger_kind(entry: Element) -> str:
    """Return Blogger's word for an entry, such as "post", "page" or "comment", or "" in any other feed."""
    if kind := child_text(entry, "type", "blogger"):
        return kind.lower()
    terms = [child.get("term", "") for child in entry.iterfind("{*}category") if child.get("scheme") == KIND]
    return terms[0].rpartition("#")[2] if terms else ""


def _blogger_post(entry: Element, kind: str) -> ExportedPost | LeftOut:
    status, published = child_text(entry, "status", "blogger").lower(), child_text(entry, "published")
    if "trash" in status or child_text(entry, "trashed", "blogger"):
        return LeftOut(f"{kind} (trash)")
    when = rfc3339_or_empty(published)
    is_public = status in ("", "live") or (status == "scheduled" and bool(when))
    links = [child.get("href", "") for child in entry.iterfind("{*}link") if child.get("rel") == "alternate"]
    path = child_text(entry, "filename", "blogger") or urlsplit(next(iter(links), "")).path
    labels = [child for child in entry.iterfind("{*}category") if "google.com" not in child.get("scheme", "")]
    fields = {
        "slug": path.rpartition("/")[2].partition(".")[0],
        "title": text_of(child_text(entry, "title")),
        "status": "published" if is_public and child_text(entry, "control/{*}draft") != "yes" else "draft",
        "published_at": when,
        "tags": [child.get("term", "") for child in labels],
        "html": child_text(entry, "content"),
        "params": {"author": child_text(entry, "author/{*}name")},
    }
    post = ExportedPost(child_text(entry, "id").rpartition("-")[2], fields, kind, date_text=published, paths=(path,))
    post.created_at = rfc3339_or_empty(child_text(entry, "created", "blogger"))
    post.values = {"status": status or fields["status"]}
    return post


PARTIAL = LeftOut("older post")  # yielded last if a feed probably contains only the latest posts
# Programs usually limit a feed to one of these numbers of posts
USUAL_LENGTHS = (5, 10, 12, 15, 20, 25, 30, 40, 50, 100, 150, 200, 250, 300, 500, 1000)
# Text values of an item in a JSON Feed
ITEM_TEXTS = ("url", "title", "date_published", "date_modified", "content_html", "content_text", "summary", "image")


def read_posts(path: Path, zone: tzinfo = UTC) -> Iterator[ExportedPost | LeftOut]:
    """Yield the posts in an XML feed or a Blogger export. Raises MarkdownError."""
    count, has_next = 0, False
    for element in elements(path):
        has_next |= local_name(element) == "link" and element.get("rel") == "next"
        if local_name(element) in ("entry", "item"):
            kind = _blogger_kind(element)
            count += not kind
            if kind in ("post", "page"):
                yield _blogger_post(element, kind)
            else:
                yield LeftOut(kind) if kind else _feed_post(element, zone)
    if has_next or count in USUAL_LENGTHS:
        yield PARTIAL


def _feed_post(entry: Element, zone: tzinfo) -> ExportedPost:
    links = [link for link in entry.iterfind("{*}link") if link.get("rel", "alternate") == "alternate"]
    dates = [child_text(entry, name) for name in ("pubDate", "published", "date", "updated")]
    html = child_text(entry, "encoded") or _html(entry.find("{*}content")) or _html(entry.find("{*}description"))
    summary = _html(entry.find("{*}summary"))
    author = child_text(entry, "creator") or child_text(entry, "author/{*}name") or child_text(entry, "author")
    return _post(
        values={"draft": child_text(entry, "control/{*}draft")},
        dates=dates,
        zone=zone,
        link="".join(link.get("href") or link.text or "" for link in links[:1]).strip(),
        title=text_of(child_text(entry, "title")),
        html=html or summary,
        excerpt=text_of(summary) if html else "",
        tags=[child.get("term") or child.text or "" for child in entry.iterfind("{*}category")],
        params={"author": author},
    )


def _html(element: Element | None) -> str:
    """Return the HTML in an element, which may contain escaped text or child elements."""
    if element is None:
        return ""
    for node in element.iter():
        node.tag = local_name(node)
    children = [tostring(child, encoding="unicode", method="html") for child in element]
    return "".join((element.text or "", *children)).strip()


def _post(values: dict[str, Any], dates: list[str], zone: tzinfo, link: str, **fields: Any) -> ExportedPost:
    """Return a published post, dated by the first of `dates` that can be parsed."""
    path, dates = urlsplit(link).path, [*filter(None, dates)]
    slug = path.rstrip("/").rpartition("/")[2].removesuffix(".html")
    when = next(filter(None, (rfc3339_or_empty(text, zone) for text in dates)), "")
    fields |= {"slug": slug if is_slug(slug) else "", "status": "published", "published_at": when}
    return ExportedPost(link or fields["title"], fields, date_text=next(iter(dates), ""), paths=(path,), values=values)


def read_json_feed(feed: dict[str, Any]) -> Iterator[ExportedPost | LeftOut]:
    """Yield the posts in a JSON Feed. Raises MarkdownError."""
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
            dates=[texts["date_published"] or texts["date_modified"]],
            zone=UTC,
            html=texts["content_html"],
            content="" if texts["content_html"] else texts["content_text"],
            excerpt=texts["summary"],
            tags=[tag for tag in tags if isinstance(tag, str)],
            cover_image=texts["image"],
        )
    if feed.get("next_url") or len(items) in USUAL_LENGTHS:
        yield PARTIAL
