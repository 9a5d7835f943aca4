"""Exports of WordPress and Ghost, and their HTML as Markdown."""

import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree.ElementTree import Element, ParseError

from bs4 import BeautifulSoup, Comment, Tag
from defusedxml import DefusedXmlException
from defusedxml.ElementTree import iterparse
from markdownify import ATX, MarkdownConverter

from blogapi.clock import rfc3339
from blogapi.files.front_matter import MarkdownError, rfc3339_of

# What XML does not allow, but WordPress writes.
CONTROL_CHARACTERS = bytes({*range(0x20)} - {*b"\t\n\r"})
# What is in the trash or was never saved is left out.
WORDPRESS_STATUSES = {
    "publish": "published",
    "future": "scheduled",
    "draft": "draft",
    "pending": "draft",
    "private": "draft",
}
NO_TIME = "0000-00-00 00:00:00"
GHOST_STATUSES = {"published": "published", "scheduled": "scheduled"}
# Ghost's name for the address of the site, which is not in the export.
SITE = "__GHOST_URL__"

# What is no Markdown and stays as it is: [gallery ids="1,2"], [/caption]
SHORTCODE = re.compile(r"(\[/?[a-z][\w-]*(?:\s[^\[\]]*)?/?\])")
# What CommonMark would take for markup: within a line, and at its start.
MARKUP = re.compile(r"[*`]|\\(?=[!-/:-@\[-`{-~])|<(?=[A-Za-z/!?])|&(?=#?\w{1,31};)|(?<!\w)_|_(?!\w)")
LINE_MARKUP = re.compile(r"(?:\A|(?<=\n))(\d{0,9})(#{1,6}(?=\s|$)|[-+](?=\s)|>|(?<=\d)[.)](?=\s)|-{3}|=)")
LANGUAGE = re.compile(r"\b(?:language|lang|brush)[-:]\s*([\w+#-]+)")
BLANKS = re.compile("[ \t]{2,}")
NOT_IN_ADDRESS = str.maketrans({" ": "%20", "\n": "%0A", "(": "%28", ")": "%29", "<": "%3C", ">": "%3E"})

# Where WordPress makes no paragraphs of bare lines, and what it leaves alone altogether.
BLOCK = re.compile(
    r"</?(?:address|article|aside|audio|blockquote|center|details|div|dl|fieldset|figure|footer|form|h[1-6]|header|hr"
    r"|iframe|main|nav|object|ol|p|section|summary|ul|video)\b[^>]*>",
    re.IGNORECASE,
)
PART = re.compile(r"<(?:li|dt|dd|figcaption|source)\b", re.IGNORECASE)
WHOLE = re.compile(r"(<(pre|script|style|table|textarea)\b.*?</\2\s*>)", re.IGNORECASE | re.DOTALL)
BLANK_LINES = re.compile(r"\n\s*\n")


class CleanFile(io.FileIO):
    """A file without control characters."""

    def read(self, size: int = -1) -> bytes:
        """Read up to `size` bytes, fewer where some are left out, none only at the end."""
        while (data := super().read(size)) and not (clean := data.translate(None, CONTROL_CHARACTERS)):
            pass
        return clean if data else b""


def wordpress_posts(path: Path) -> Iterator[dict[str, Any]]:
    """Read the posts: fields of a post, `created_at`, and the `html` of the content. Raise MarkdownError."""
    # An image is known by its number, and may come after the post.
    images = {_text(item, "post_id"): _text(item, "attachment_url") for item in _items(path, "attachment")}
    for item in _items(path, "post"):
        if _text(item, "status") in WORDPRESS_STATUSES:
            yield _wordpress_post(item, images)


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


def _wordpress_post(item: Element, images: dict[str, str]) -> dict[str, Any]:
    status = WORDPRESS_STATUSES[_text(item, "status")]
    if _text(item, "post_password"):
        status = "draft"  # not everybody was to read it
    when = next(
        (time for name in ("post_date_gmt", "post_date") if (time := _text(item, name)) not in ("", NO_TIME)), ""
    )
    time = _wordpress_time(when)
    return {
        "id": _text(item, "post_id"),
        "title": text_of(_text(item, "title")),
        "slug": unquote(_text(item, "post_name")),
        "status": status,
        "published_at": time if _text(item, "status") in ("publish", "future", "private") else "",
        "created_at": time,
        "tags": _wordpress_tags(item),
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


def _wordpress_tags(item: Element) -> list[str]:
    terms = [(child.get("domain"), child.text) for child in item if child.tag == "category"]
    return [text_of(text) for wanted in ("post_tag", "category") for domain, text in terms if domain == wanted and text]


def _meta(item: Element, key: str) -> str:
    for child in item:
        if child.tag.endswith("}postmeta") and _text(child, "meta_key") == key:
            return _text(child, "meta_value")
    return ""


def _wordpress_time(text: str) -> str:
    try:
        return rfc3339_of(text)
    except ValueError:
        return ""


def ghost_posts(path: Path) -> Iterator[dict[str, Any]]:
    """Read the posts: fields of a post, `created_at`, and the `html` of the content. Raise MarkdownError."""
    try:
        export = json.loads(path.read_bytes())
        data = export["db"][0]["data"] if "db" in export else export["data"]
        rows = [row for row in data["posts"] if row.get("type", "post") == "post" and not row.get("page")]
        tags = _ghost_tags(data)
        found = [_ghost_post(row, tags.get(row["id"], [])) for row in rows]
    except (ValueError, RecursionError):
        raise MarkdownError("not valid JSON") from None
    except (KeyError, IndexError, TypeError, AttributeError):
        raise MarkdownError("not an export of Ghost") from None
    yield from found


def _ghost_tags(data: dict[str, Any]) -> dict[Any, list[str]]:
    """Return the names of the tags of each post. Those that Ghost calls internal are none."""
    names = {tag["id"]: tag["name"] for tag in data.get("tags", []) if tag.get("visibility") != "internal"}
    tags: dict[Any, list[str]] = {}
    for link in sorted(data.get("posts_tags", []), key=lambda link: link.get("sort_order") or 0):
        if link["tag_id"] in names:
            tags.setdefault(link["post_id"], []).append(names[link["tag_id"]])
    return tags


def _ghost_post(row: dict[str, Any], tags: list[str]) -> dict[str, Any]:
    public = row.get("visibility", "public") == "public"  # what only members may read is not made public
    html = (row.get("html") or "").replace(SITE, "")
    return {
        "id": str(row["id"]),
        "title": row.get("title") or "",
        "slug": row.get("slug") or "",
        "status": GHOST_STATUSES.get(row.get("status"), "draft") if public else "draft",
        "published_at": _ghost_time(row.get("published_at")),
        "created_at": _ghost_time(row.get("created_at")),
        "tags": tags,
        "excerpt": row.get("custom_excerpt") or "",
        "cover_image": (row.get("feature_image") or row.get("image") or "").replace(SITE, ""),
        "html": html,
        "content": "" if html else row.get("markdown") or _markdown_card(row.get("mobiledoc")),
    }


def _markdown_card(mobiledoc: str | None) -> str:
    """Return the Markdown of a post as Ghost 1 and 2 kept it."""
    cards = json.loads(mobiledoc or "{}").get("cards", [])
    texts = [card[1].get("markdown", "") for card in cards if card[0] in ("card-markdown", "markdown")]
    return "\n\n".join(filter(None, texts))


def _ghost_time(value: Any) -> str:
    try:
        return rfc3339(value / 1000) if isinstance(value, int) else rfc3339_of(value or "")  # Ghost 0: milliseconds
    except (ValueError, OverflowError, OSError):
        return ""


# The readers of exports, by the extension of the file.
EXPORTS: dict[str, Callable[[Path], Iterator[dict[str, Any]]]] = {".xml": wordpress_posts, ".json": ghost_posts}


class Converter(MarkdownConverter):
    """Markdown that means what the HTML meant; what it cannot say stays HTML."""

    def escape(self, text: str, parent_tags: set[str]) -> str:
        """Escape what Markdown would take for markup, but in shortcodes."""
        parts = SHORTCODE.split(text)
        parts[::2] = [LINE_MARKUP.sub(r"\1\\\2", MARKUP.sub(r"\\\g<0>", part)) for part in parts[::2]]
        return "".join(parts)

    def convert_pre(self, element: Tag, text: str, parent_tags: set[str]) -> str:
        """Fence a block of code, with more backticks than it has itself."""
        fence = max(["``", *re.findall("`+", text)], key=len) + "`"
        code = element.find("code")
        classes = [*element.get_attribute_list("class"), *(code.get_attribute_list("class") if code else [])]
        language = LANGUAGE.search(" ".join(filter(None, classes)))
        text = text.strip("\n")
        return f"\n\n{fence}{language[1] if language else ''}\n{text}\n{fence}\n\n" if text else ""

    def convert_iframe(self, element: Tag, text: str, parent_tags: set[str]) -> str:
        """Leave an element as it is, in a paragraph of its own."""
        return f"\n\n{' '.join(str(element).split())}\n\n"

    convert_audio = convert_embed = convert_object = convert_video = convert_iframe
    convert_aside = convert_figure = MarkdownConverter.convert_div


def markdown_of(html: str, *, bare: bool = False) -> str:
    """Return HTML as Markdown; `bare` lines are made paragraphs as WordPress does.

    Raise RecursionError where it is nested too deep.
    """
    # Within an element Beautiful Soup takes nothing for the name of a file.
    soup = BeautifulSoup(f"<div>{_paragraphs(html) if bare else html}</div>", "html.parser")
    for comment in soup.find_all(string=lambda text: isinstance(text, Comment)):
        comment.extract()
    soup.smooth()
    for text in soup.find_all(string=BLANKS.search):  # markdownify takes quadratic time for them
        if not text.find_parent("pre"):
            text.replace_with(BLANKS.sub(" ", text))
    for name, element in [(name, element) for name in ("href", "src") for element in soup.find_all(["a", "img"])]:
        if isinstance(address := element.get(name), str):
            element[name] = address.strip().translate(NOT_IN_ADDRESS)
    text = Converter(heading_style=ATX, bullets="-").convert_soup(soup)
    return f"{text}\n" if text else ""


def text_of(html: str) -> str:
    """Return the text of a little HTML, a title say."""
    return BeautifulSoup(f"<p>{html}</p>", "html.parser").get_text().strip() if re.search("[<&]", html) else html


def _paragraphs(html: str) -> str:
    """Make paragraphs of what blank lines divide, and line breaks of the others, as WordPress's wpautop."""
    parts = WHOLE.split(html.replace("\r\n", "\n"))
    whole, rest = parts[1::3], parts[::3]
    pieces = ["".join(map(_paragraph, BLANK_LINES.split(BLOCK.sub(r"\n\n\g<0>\n\n", text)))) for text in rest]
    return "".join(piece + kept for piece, kept in zip(pieces, [*whole, ""], strict=True))


def _paragraph(text: str) -> str:
    text = text.strip()
    if not text or BLOCK.fullmatch(text) or PART.match(text):
        return text
    return f"<p>{text.replace(chr(10), '<br>')}</p>"
