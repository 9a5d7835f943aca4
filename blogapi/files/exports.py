"""Exports of WordPress and Ghost: their posts, one by one, and HTML as Markdown."""

import io
import json
import re
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree.ElementTree import Element, ParseError

from bs4 import BeautifulSoup, Comment, Tag
from bs4.exceptions import ParserRejectedMarkup
from defusedxml import DefusedXmlException
from defusedxml.ElementTree import iterparse
from markdownify import ATX, MarkdownConverter

from blogapi.clock import rfc3339
from blogapi.files.front_matter import MarkdownError, rfc3339_of

# Of an item of WordPress, which is kept in memory, and of an export of Ghost, which is parsed as a whole
MAX_ITEM_BYTES = 32 * 1024 * 1024
MAX_GHOST_BYTES = 128 * 1024 * 1024
# XML does not allow them, but WordPress writes them.
CONTROL_CHARACTERS = bytes({*range(0x20)} - {*b"\t\n\r"})
STATUSES = {"publish": "published", "future": "scheduled", "draft": "draft", "pending": "draft", "private": "draft"}
# Ghost's name for the address of the site, which is not in the export.
SITE = "__GHOST_URL__"
# How text begins in the formats of Ghost that are not HTML
TEXT_STARTS = {"lexical": r'"text":"[^"]', "mobiledoc": r'\[0,\[[\d,]*\],\d+,"[^"]'}

# Kept as it is: [gallery ids="1,2"], [/caption]
SHORTCODE = re.compile(r"(\[/?[a-z][\w-]*(?:\s[^\[\]]*)?/?\])")
# Text that CommonMark would take for markup: within a line, and at its start.
MARKUP = re.compile(r"[*`]|\\(?=[!-/:-@\[-`{-~])|<(?=[A-Za-z/!?])|&(?=#?\w{1,31};)|(?<!\w)_|_(?!\w)")
LINE_MARKUP = re.compile(r"(?:\A|(?<=\n))(\d{0,9})(#{1,6}(?=\s|$)|[-+](?=\s)|>|(?<=\d)[.)](?=\s)|-{3}|=)")
LANGUAGE = re.compile(r"\b(?:language|lang|brush)[-:]\s*([\w+#-]+)")
BLANKS = re.compile("[ \t]{2,}")
NOT_IN_ADDRESS = str.maketrans({" ": "%20", "\n": "%0A", "(": "%28", ")": "%29", "<": "%3C", ">": "%3E"})

# Elements in which WordPress makes no paragraphs of bare lines, and those that it leaves alone altogether.
BLOCK = re.compile(
    r"</?(?:address|article|aside|audio|blockquote|center|details|div|dl|fieldset|figure|footer|form|h[1-6]|header|hr"
    r"|iframe|main|nav|object|ol|p|section|summary|ul|video)\b[^<>]*>",
    re.IGNORECASE,
)
PART = re.compile(r"<(?:li|dt|dd|figcaption|source)\b", re.IGNORECASE)
WHOLE = re.compile(r"(<(pre|script|style|table|textarea)\b.*?(?:</\2\s*>|\Z))", re.IGNORECASE | re.DOTALL)
BLANK_LINES = re.compile(r"\n\s*\n")
BACKGROUND = re.compile(r"background-image:\s*url\(\s*[\"']?([^\"'()]+)", re.IGNORECASE)


class CleanFile(io.FileIO):
    """A file without control characters; MarkdownError if more than `left` bytes are read."""

    left = MAX_ITEM_BYTES

    def read(self, size: int = -1) -> bytes:
        """Read up to `size` bytes, fewer if some are left out, none only at the end."""
        while (data := super().read(size)) and not (clean := data.translate(None, CONTROL_CHARACTERS)):
            pass
        self.left -= len(data)
        if self.left < 0:
            raise MarkdownError(f"an item must have at most {MAX_ITEM_BYTES // 1024**2} MiB")
        return clean if data else b""


def wordpress_posts(path: Path) -> Iterator[dict[str, Any]]:
    """Read the items of an export (WXR): their `kind`, and for posts and pages their fields.

    Raise MarkdownError if it is no export. The memory that this takes does not grow with the file.
    """
    # An image is known by its number, and may come after the post.
    images = {_text(item, "post_id"): _text(item, "attachment_url") for item in _items(path, "attachment")}
    for item in _items(path):
        kind, status = _text(item, "post_type"), _text(item, "status")
        if kind not in ("post", "page"):
            yield {"kind": kind}
        elif status not in STATUSES:
            yield {"kind": f"{kind} ({status})"}
        else:
            yield {"kind": kind, "id": _text(item, "post_id"), **_wordpress_post(item, images)}


def ghost_posts(path: Path) -> Iterator[dict[str, Any]]:
    """Read the posts of an export (JSON) as `wordpress_posts` does; or the `error` in one."""
    if path.stat().st_size > MAX_GHOST_BYTES:
        raise MarkdownError(f"must have at most {MAX_GHOST_BYTES // 1024**2} MiB")
    try:
        export = json.loads(path.read_bytes())
        data = export["db"][0]["data"] if "db" in export else export["data"]
        tags = _ghost_tags(data)
        rows = [(row, "page" if row.get("page") else str(row.get("type", "post"))) for row in data["posts"]]
    except (ValueError, RecursionError):
        raise MarkdownError("not valid JSON") from None
    except (LookupError, TypeError, AttributeError):
        raise MarkdownError("not an export of Ghost") from None
    for row, kind in rows:
        post = {"kind": kind, "id": str(row.get("id")), "slug": row.get("slug")}
        try:
            yield post | _ghost_post(row, tags)
        except MarkdownError as error:
            yield post | {"error": error.reason}
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError):
            yield post | {"error": "its fields are not those of a post"}


# The readers of exports, by the extension of the file.
EXPORTS: dict[str, Callable[[Path], Iterator[dict[str, Any]]]] = {".xml": wordpress_posts, ".json": ghost_posts}


def _items(path: Path, kind: str = "") -> Iterator[Element]:
    parents: list[Element] = []
    is_export = False
    try:
        with CleanFile(path) as file:
            for event, element in iterparse(file, ("start", "end"), forbid_dtd=True):
                if event == "start":
                    parents.append(element)
                    continue
                parents.pop()
                if len(parents) == 2:
                    is_export = is_export or element.tag.endswith("}wxr_version")
                    if element.tag == "item" and is_export and kind in ("", _text(element, "post_type")):
                        yield element
                    parents[-1].clear()
                    file.left = MAX_ITEM_BYTES
    except ParseError as error:
        raise MarkdownError(f"not valid XML: {str(error).partition(':')[0]}", error.position[0]) from None
    except DefusedXmlException:
        raise MarkdownError("must not have a document type definition") from None
    except (LookupError, ValueError):  # of the parser
        raise MarkdownError("its encoding is not supported: convert it to UTF-8") from None
    if not is_export:
        raise MarkdownError("not an export of WordPress")


def _wordpress_post(item: Element, images: dict[str, str]) -> dict[str, Any]:
    status = _text(item, "status")
    when = _time(_text(item, "post_date_gmt")) or _time(_text(item, "post_date"))
    html = _text(item, "encoded", "content")
    terms = [(child.get("domain"), child.text) for child in item if child.tag == "category" and child.text]
    meta = [(_text(child, "meta_key"), _text(child, "meta_value")) for child in item.iterfind("{*}postmeta")]
    return {
        "path": _text(item, "link"),
        "title": text_of(_text(item, "title")),
        "slug": unquote(_text(item, "post_name")),
        # A post with a password was not public.
        "status": "draft" if _text(item, "post_password") else STATUSES[status],
        "published_at": when if status in ("publish", "future", "private") else "",
        "created_at": when,
        "tags": [text_of(text) for wanted in ("post_tag", "category") for domain, text in terms if domain == wanted],
        "excerpt": text_of(_text(item, "encoded", "excerpt")),
        "cover_image": images.get(next((value for key, value in meta if key == "_thumbnail_id"), ""), ""),
        "html": html if "<!-- wp:" in html else paragraphs(html),
        "comments": len(item.findall("{*}comment")),
    }


def _text(item: Element, name: str, space: str = "") -> str:
    """Return the text of a child. Its namespace has WordPress's version in it, so `space` need only be part of it."""
    return next((child.text or "" for child in item.iterfind(f"{{*}}{name}") if space in child.tag), "").strip()


def _ghost_tags(data: dict[str, Any]) -> dict[Any, list[str]]:
    """Return the names of the tags of each post. Those that Ghost calls internal are left out."""
    names = {tag["id"]: tag["name"] for tag in data.get("tags", []) if tag.get("visibility") != "internal"}
    tags: dict[Any, list[str]] = {}
    for link in sorted(data.get("posts_tags", []), key=lambda link: link.get("sort_order") or 0):
        if link["tag_id"] in names:
            tags.setdefault(link["post_id"], []).append(names[link["tag_id"]])
    return tags


def _ghost_post(row: dict[str, Any], tags: dict[Any, list[str]]) -> dict[str, Any]:
    names = ("title", "slug", "html", "custom_excerpt", "feature_image", "image", "markdown", "mobiledoc", "lexical")
    text = {name: row.get(name) or "" for name in names}
    for name, value in text.items():
        if not isinstance(value, str):
            raise MarkdownError(f"`{name}` must be text")
    html = text["html"].replace(SITE, "")
    content = "" if html else text["markdown"] or _markdown_card(text["mobiledoc"])
    for name, start in TEXT_STARTS.items():
        if not html and not content and re.search(start, text[name]):
            raise MarkdownError(f"its content is `{name}` without HTML: publish it in Ghost, or export it with HTML")
    # Posts for members do not become public.
    status = row.get("status") if row.get("visibility", "public") == "public" else "draft"
    return {
        "title": text["title"],
        "slug": text["slug"],
        "status": status if status in ("published", "scheduled") else "draft",
        "published_at": _time(row.get("published_at")),
        "created_at": _time(row.get("created_at")),
        "tags": tags.get(row["id"], []),
        "excerpt": text["custom_excerpt"],
        "cover_image": (text["feature_image"] or text["image"]).replace(SITE, ""),
        "html": html,
        "content": content,
    }


def _markdown_card(mobiledoc: str) -> str:
    """Return the Markdown of a post of Ghost 1 or 2."""
    cards = json.loads(mobiledoc or "{}").get("cards", [])
    texts = [card[1].get("markdown", "") for card in cards if card[0] in ("card-markdown", "markdown")]
    return "\n\n".join(filter(None, texts))


def _time(value: Any) -> str:
    try:
        return rfc3339(value / 1000) if isinstance(value, int) else rfc3339_of(value or "")  # Ghost 0: milliseconds
    except (ValueError, OverflowError, OSError):
        return ""


class Converter(MarkdownConverter):
    """Converts HTML to Markdown of the same meaning; elements that Markdown lacks stay HTML."""

    def escape(self, text: str, parent_tags: set[str]) -> str:
        """Escape text that Markdown would take for markup, except in shortcodes."""
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
        """Leave an element as it is, in its own paragraph."""
        return f"\n\n{' '.join(str(element).split())}\n\n"

    convert_audio = convert_embed = convert_object = convert_video = convert_iframe
    convert_aside = convert_figure = MarkdownConverter.convert_div


def markdown_of(html: str) -> str:
    """Convert HTML to Markdown. Raise MarkdownError if it cannot be."""
    try:
        # Within an element Beautiful Soup takes nothing for the name of a file.
        soup = BeautifulSoup(f"<div>{html}</div>", "html.parser")
        _prepare(soup)
        text = Converter(heading_style=ATX, bullets="-").convert_soup(soup)
    except RecursionError:
        raise MarkdownError("its HTML is nested too deeply") from None
    except (ParserRejectedMarkup, ValueError):  # ValueError: for example of <ol start="²">
        raise MarkdownError("its HTML is malformed") from None
    return f"{text}\n" if text else ""


def text_of(html: str) -> str:
    """Return the text of a little HTML, for example of a title, without references to no character."""
    return unescape(re.sub(r"</?[A-Za-z][^<>]*>|&#\d{8,};?", "", html)).strip()


def _prepare(soup: BeautifulSoup) -> None:
    """Change HTML that markdownify does not convert well."""
    for comment in soup.find_all(string=lambda text: isinstance(text, Comment)):
        comment.extract()
    for block in soup.select("a :is(div, figcaption, figure, h1, h2, h3, h4, h5, h6, p)"):
        block.insert_after(" ")
        block.unwrap()  # A link in Markdown is within one paragraph.
    soup.smooth()
    for text in soup.find_all(string=BLANKS.search):  # markdownify takes quadratic time for them
        if not text.find_parent("pre"):
            text.replace_with(BLANKS.sub(" ", text))
    for element in soup.find_all(style=BACKGROUND):
        address = BACKGROUND.search(element["style"])[1].strip()
        if not element.find("img", src=address):
            element.insert(0, soup.new_tag("img", src=address, alt=""))
    for name, element in [(name, element) for name in ("href", "src") for element in soup.find_all(["a", "img"])]:
        if isinstance(address := element.get(name), str):
            element[name] = address.strip().translate(NOT_IN_ADDRESS)


def paragraphs(html: str) -> str:
    """Turn blank lines into paragraphs and other line breaks into `<br>`, as WordPress's wpautop does."""
    parts = WHOLE.split(html.replace("\r\n", "\n"))
    parts[::3] = ["".join(map(_paragraph, BLANK_LINES.split(BLOCK.sub(r"\n\n\g<0>\n\n", text)))) for text in parts[::3]]
    del parts[2::3]  # the names of the elements
    return "".join(parts)


def _paragraph(text: str) -> str:
    text = text.strip()
    if not text or BLOCK.fullmatch(text) or PART.match(text):
        return text
    return f"<p>{text.replace(chr(10), '<br>')}</p>"
