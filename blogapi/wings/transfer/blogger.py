"""Read the posts in exports of Blogger: the feed.atom of Google Takeout, and the older backup."""

from urllib.parse import urlsplit
from xml.etree.ElementTree import Element

from blogapi.wings.markdown.dates import rfc3339_or_empty
from blogapi.wings.markdown.html import text_of
from blogapi.wings.transfer.items import ExportedPost, LeftOut
from blogapi.wings.transfer.xml_files import child_text

KIND = "http://schemas.google.com/g/2005#kind"  # the scheme of the category that says what an entry is


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
