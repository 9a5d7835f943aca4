"""Read the posts in WordPress exports (WXR)."""

import re
from collections.abc import Iterator
from datetime import UTC, tzinfo
from html import escape, unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from blogapi.documents import is_slug
from blogapi.markdown.dates import rfc3339_or_empty
from blogapi.markdown.fields import STATUS_WORDS
from blogapi.markdown.front_matter import MarkdownError
from blogapi.markdown.html import paragraphs, text_of
from blogapi.wings.transfer.feeds import child_text, elements
from blogapi.wings.transfer.folder import load_json
from blogapi.wings.transfer.items import ExportedPost, LeftOut

# [caption width="9" caption="Text"]<img src="…"> Text[/caption], possibly with a link around the image
CAPTION = re.compile(
    r"\[caption\b([^\[\]]*+)\](\s*(?:<a\b[^<>]*>)?\s*<img\b[^<>]*>\s*(?:</a>)?)((?:(?!\[/?caption\b).)*)\[/caption\]",
    re.DOTALL,
)
CAPTION_TEXT = re.compile(r"\bcaption=(?:\"([^\"]*)\"|'([^']*)')")
# [code language="python"]…[/code], as plugins write it
CODE = re.compile(r"\[(code|sourcecode)\b([^\[\]]*+)\](?:\r?\n)?((?:(?!\[/?(?:source)?code\b).)*+)\[/\1\]", re.DOTALL)
CODE_LANGUAGE = re.compile(r"(?:\blang(?:uage)?=[\"']?|^\s*)([\w+#.-]{1,30})(?![\w+#.=-])")
REUSABLE_BLOCK = re.compile(r"<!-- wp:block \{\"ref\":(\d+)[^>]*/-->")  # `ref` is the id of another item
MAX_BLOCK, MAX_BLOCKS = 100_000, 100  # maximum length of a block, and maximum number of blocks in a post
# A match does not extend past the next footnote, so that the search takes linear time.
FOOTNOTE = re.compile(r"<sup\b(?=[^<>]*+>)[^<>]*\bdata-fn=\"([\w-]+)\"[^<>]*>(?:(?!<sup\b).)*?</sup>", re.DOTALL)
DATES = ("post_date_gmt", "post_date", "pubDate")
EXPORT_STATUSES = {name: status for name, status in STATUS_WORDS.items() if name != "trash"} | {"draft": "draft"}


def read_posts(path: Path, zone: tzinfo = UTC) -> Iterator[ExportedPost | LeftOut]:
    """Yield the posts and pages in an export, and a LeftOut for any other item. Raises MarkdownError.

    Local times are in `zone`. Memory use does not grow with the size of the file.
    """
    # Read images and blocks first. Posts refer to both by id, but in the file, both may follow the posts.
    images, blocks = {}, {}
    for item in _items(path, "attachment", "wp_block"):
        number, content = child_text(item, "post_id"), child_text(item, "encoded", "content")
        if url := child_text(item, "attachment_url"):
            images[number] = url
        elif len(content) <= MAX_BLOCK:
            blocks[number] = content
    for item in _items(path):
        kind, status = child_text(item, "post_type"), child_text(item, "status")
        if kind not in ("post", "page"):
            yield LeftOut(kind)
        elif status not in EXPORT_STATUSES:
            yield LeftOut(f"{kind} ({status})")
        else:
            yield _post(item, images, blocks, zone)


def _items(path: Path, *kinds: str) -> Iterator[Element]:
    is_export = False
    for element in elements(path):
        is_export |= element.tag.endswith("}wxr_version")
        if element.tag == "item" and is_export and (not kinds or child_text(element, "post_type") in kinds):
            yield element
    if not is_export:
        raise MarkdownError("not an export from WordPress")


def _post(item: Element, images: dict[str, str], blocks: dict[str, str], zone: tzinfo) -> ExportedPost:
    status, (when, date_text) = child_text(item, "status"), _date(item, zone)
    terms = [(child.get("domain"), child.text) for child in item.iterfind("category") if child.text]
    meta = [(child_text(child, "meta_key"), child_text(child, "meta_value")) for child in item.iterfind("{*}postmeta")]
    first = dict(reversed(meta))  # the first value of each name
    content = child_text(item, "encoded", "content")
    html = REUSABLE_BLOCK.sub(lambda match: blocks.get(match[1], match[0]), content, MAX_BLOCKS)
    without_shortcodes = CODE.sub(_code, CAPTION.sub(_figure, html))
    in_paragraphs = without_shortcodes if "<!-- wp:" in without_shortcodes else paragraphs(without_shortcodes)
    link, slug = child_text(item, "link"), unquote(child_text(item, "post_name"))
    older = [value for name, value in meta if name == "_wp_old_slug" and value]
    fields = {
        "title": text_of(child_text(item, "title")),
        "slug": slug,
        "former_slugs": [value for value in reversed(older) if is_slug(value)],
        "status": EXPORT_STATUSES[status],
        "published_at": when if status in ("publish", "future", "private") else "",
        "tags": [text_of(term) for kind in ("post_tag", "category") for domain, term in terms if domain == kind],
        "excerpt": text_of(child_text(item, "encoded", "excerpt")),
        "cover_image": images.get(first.get("_thumbnail_id") or "", ""),
        "html": with_footnotes(in_paragraphs, first.get("footnotes", "")),
        "params": _params(item, meta),
    }
    post = ExportedPost(child_text(item, "post_id"), fields, child_text(item, "post_type"), when, date_text)
    post.paths = (link, *(_renamed(link, slug, value) for value in older))
    post.values = first | {"status": status, "post_password": child_text(item, "post_password")}
    post.comments = len(item.findall("{*}comment"))
    post.has_missing_blocks = bool(REUSABLE_BLOCK.search(html))
    return post


def _date(item: Element, zone: tzinfo) -> tuple[str, str]:
    """Return a post's date in RFC 3339 format, and as written. Squarespace may omit the first two of DATES."""
    texts = {name: text for name in DATES if re.search("[1-9]", text := child_text(item, name))}
    dates = (rfc3339_or_empty(text, zone if name == "post_date" else UTC) for name, text in texts.items())
    return next(filter(None, dates), ""), next(iter(texts.values()), "")


def _figure(caption: re.Match[str]) -> str:
    attribute = CAPTION_TEXT.search(caption[1])
    text = caption[3].strip() or (attribute and (attribute[1] or attribute[2])) or ""
    return f"<figure>{caption[2]}<figcaption>{text}</figcaption></figure>"


def _code(code: re.Match[str]) -> str:
    language = CODE_LANGUAGE.search(code[2])
    return f'\n<pre lang="{language[1] if language else ""}">{escape(unescape(code[3].rstrip()))}</pre>\n'


def _renamed(link: str, slug: str, old: str) -> str:
    """Return the URL that a post had under an older slug."""
    above, separator, below = unquote(link).rpartition(f"/{slug}")
    return f"{above}/{unquote(old)}{below}" if separator and slug else f"/{unquote(old)}"


def _params(item: Element, meta: list[tuple[str, str]]) -> dict[str, Any]:
    """Return values that only a site's templates use, such as the author and the custom fields of plugins."""
    values: dict[str, list[str]] = {}
    for name, value in meta:
        if name[:1] not in ("", "_") and name != "footnotes":
            values.setdefault(name, []).append(value)
    formats = [child.get("nicename", "") for child in item if child.get("domain") == "post_format"]
    return {name: texts[0] if len(texts) == 1 else texts for name, texts in values.items()} | {
        "author": child_text(item, "creator"),
        "sticky": child_text(item, "is_sticky") == "1" or "",
        "format": formats[0].removeprefix("post-format-") if formats else "",
    }


def with_footnotes(html: str, footnotes: str) -> str:
    """Replace footnotes in HTML with Markdown footnotes. `footnotes` is WordPress's JSON with their content."""
    try:
        texts = {note["id"]: note["content"] for note in load_json(footnotes)} if footnotes else {}
        numbers = {name: number for number, name in enumerate(texts, 1)}
        definitions = "".join(f"<p>[^{numbers[name]}]: {text}</p>" for name, text in texts.items())
    except (ValueError, TypeError, LookupError):
        return html
    html = FOOTNOTE.sub(lambda match: f"[^{numbers[match[1]]}]" if match[1] in numbers else match[0], html)
    return html + definitions
