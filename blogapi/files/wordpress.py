"""The export of WordPress (WXR): its posts, one by one, however large the file is."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import iterparse

from blogapi.files.dates import rfc3339_of
from blogapi.files.front_matter import MarkdownError
from blogapi.files.html import text_of

# What XML does not allow, but WordPress writes.
CONTROL_CHARACTERS = bytes({*range(0x20)} - {*b"\t\n\r"})
# What is in the trash or was never saved is left out.
STATUSES = {"publish": "published", "future": "scheduled", "draft": "draft", "pending": "draft", "private": "draft"}
NO_TIME = "0000-00-00 00:00:00"


class CleanFile(io.FileIO):
    """A file without control characters."""

    def read(self, size: int = -1) -> bytes:
        """Read up to `size` bytes, fewer where some are left out, none only at the end."""
        while (data := super().read(size)) and not (clean := data.translate(None, CONTROL_CHARACTERS)):
            pass
        return clean if data else b""


def posts(path: Path) -> Iterator[dict[str, Any]]:
    """Read the posts: fields of a post, `created_at`, and the `html` of the content. Raise MarkdownError."""
    # An image is known by its number, and may come after the post.
    images = {_text(item, "post_id"): _text(item, "attachment_url") for item in _items(path, "attachment")}
    for item in _items(path, "post"):
        if _text(item, "status") in STATUSES:
            yield _post(item, images)


def _items(path: Path, kind: str) -> Iterator[Element]:
    try:
        with CleanFile(path) as file:
            parents: list[Element] = []
            for event, element in iterparse(file, ("start", "end"), forbid_dtd=True):
                if event == "start":
                    parents.append(element)
                    continue
                parents.pop()
                if parents and element.tag == "item":
                    if _text(element, "post_type") == kind:
                        yield element
                    parents[-1].remove(element)
                elif not parents and element.find("channel/{*}wxr_version") is None:
                    raise MarkdownError("not an export of WordPress")
    except ParseError as error:
        raise MarkdownError(f"not valid XML: {str(error).partition(':')[0]}", error.position[0]) from None
    except DefusedXmlException:
        raise MarkdownError("must not have a document type definition") from None


def _post(item: Element, images: dict[str, str]) -> dict[str, Any]:
    status = STATUSES[_text(item, "status")]
    if _text(item, "post_password"):
        status = "draft"  # not everybody was to read it
    when = next(
        (time for name in ("post_date_gmt", "post_date") if (time := _text(item, name)) not in ("", NO_TIME)), ""
    )
    time = _time(when)
    return {
        "id": _text(item, "post_id"),
        "title": text_of(_text(item, "title")),
        "slug": unquote(_text(item, "post_name")),
        "status": status,
        "published_at": time if _text(item, "status") in ("publish", "future", "private") else "",
        "created_at": time,
        "tags": _tags(item),
        "excerpt": text_of(_text(item, "encoded", "excerpt")),
        "cover_image": images.get(_meta(item, "_thumbnail_id"), ""),
        "html": _text(item, "encoded", "content"),
        "bare": "<!-- wp:" not in _text(item, "encoded", "content"),
    }


def _text(item: Element, name: str, space: str = "") -> str:
    """Return the text of a child. Its namespace has WordPress's version in it, so `space` need only be part of it."""
    for child in item:
        uri, _, local = child.tag.rpartition("}")
        if local == name and space in uri:
            return (child.text or "").strip() if name != "encoded" else child.text or ""
    return ""


def _tags(item: Element) -> list[str]:
    terms = [(child.get("domain"), child.text) for child in item if child.tag == "category"]
    return [text_of(text) for wanted in ("post_tag", "category") for domain, text in terms if domain == wanted and text]


def _meta(item: Element, key: str) -> str:
    for child in item:
        if child.tag.endswith("}postmeta") and _text(child, "meta_key") == key:
            return _text(child, "meta_value")
    return ""


def _time(text: str) -> str:
    try:
        return rfc3339_of(text)
    except ValueError:
        return ""
