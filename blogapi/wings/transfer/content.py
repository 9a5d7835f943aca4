"""Find images in Markdown from other sites, and constructs that work only on those sites."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from html import escape, unescape
from typing import Any, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.common.utils import normalizeReference
from markdown_it.token import Token
from mdit_py_plugins.footnote import footnote_plugin

from blogapi.documents import FIELDS, MAX_CONTENT
from blogapi.markdown import ENCODED
from blogapi.text import CONTROL, CONTROL_OR_BREAK
from blogapi.wings.transfer.items import Note

TEXTS = (*(name for name, field in FIELDS.items() if field.kind == "text"), "html", "params")
LINES = [name for name, field in FIELDS.items() if field.kind == "line"]
# Splits Markdown into blocks. `_scan` reads their inline content, in linear time and with source positions.
PARSER = MarkdownIt("commonmark").enable("table").use(footnote_plugin)
LIQUID = r"\{\{[^{}\n]*\}\}|\{%[^{}\n]*%\}"
# The part after `]`: a URL, possibly with balanced parentheses or Liquid, and an optional title
TARGET = (
    rf"\(\s*+(?:<(?P<pointed>[^<>\n]*+)>|(?P<bare>(?:{LIQUID}|\\.|[^\s()\\<]|\((?:\\.|[^\s()\\])*+\))(?:{LIQUID}|\\.|[^\s()\\]"
    r"|\((?:\\.|[^\s()\\])*+\))*+))(?:\s++(?:\"(?:\\.|[^\"\\])*+\"|'(?:\\.|[^'\\])*+'|\((?:\\.|[^()\\])*+\)))?+\s*+\)"
)
LABEL = r"\[(?P<label>(?:\\.|[^\[\]\\])*+)\]"
EMBED = r"!\[\[(?P<name>[^\[\]|#\n]+)(?:#[^\[\]|\n]*)?(?:\|(?P<text>[^\[\]\n]*))?\]\]"  # Obsidian
INLINE = re.compile(
    rf"\\.|(?P<ticks>`++)|(?P<tag><[a-z/!?][^<>]*+>)|{EMBED}|(?P<open>!?\[)|\](?:{TARGET}|{LABEL})?+", re.I | re.S
)
TICKS = re.compile("`+")
ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
IMAGE_NAME = re.compile(r"\.(?:avif|gif|jpe?g|png|svg|webp)$", re.IGNORECASE)
DEFINITION = re.compile(r"\]:\s*(?:<([^<>\n]*)>|(\S+))")
# Tags that show images, and the attributes with their URLs
TAG = re.compile(r"<(?P<tag>img|source|video)\b[^<>]*+>", re.IGNORECASE)
ATTRIBUTE = re.compile(
    r"\s(?P<name>src|srcset|data-src|poster)\s*=\s*(?:\"([^\"<>]*+)\"|'([^'<>]*+)'|([^\s\"'<>]++))", re.IGNORECASE
)
SHOWN_BY = {"img": ("src", "srcset", "data-src"), "source": ("srcset",), "video": ("poster",)}
IN_SET = re.compile(r"([^\s,]\S*+)(?:\s++[\d.]++[wxh])?+\s*+,?")
WHOLE_VALUE = re.compile(r"(\S(?:.*\S)?)")
IS_RELATIVE = re.compile(r"(?![a-z][a-z0-9+.-]*:|//|[#{]).|\{\{", re.IGNORECASE)
HOST = re.compile(r"(?:https?:)?//(?:[^/?#@]*@)?(\[[^]/?#]*\]|[^/?#:]+)", re.IGNORECASE)
POST_LINK = r"\]\((?![a-z]+:)[^\s()]+\.mdx?[#)]"
# Links that begin with a slash are not matched, because they may still work.
FILE_LINK = r"(?:(?<!!)\[[^\[\]\n]*|\))\]\(<?(?![a-z]+:|[/#])[^\s()]+\.(?:avif|gif|jpe?g|mp[34]|pdf|png|svg|webp|zip)\b"
# Constructs that work only on the old site
NOT_PORTABLE = {
    Note.SHORTCODES: re.compile(
        r"\{\{|\{%|\[gallery\b|\[/[a-z][\w-]*\]|\[[a-z][\w-]*\s+[\w-]+=[^\[\]]*\]|^import .+ from ['\"]", re.MULTILINE
    ),
    Note.WIKI_LINKS: re.compile(r"\[\[[^\[\]\n]+\]\]"),
    Note.LINKS_TO_FILES: re.compile(f"{POST_LINK}|{FILE_LINK}", re.IGNORECASE),
    Note.HTML: re.compile(r"(?<![\\(])</?[a-z][\w.-]*(?:\s[^<>]*)?/?>", re.IGNORECASE),
    Note.SCRIPTS: re.compile(r"(?<!\\)<(?:script|form)\b", re.IGNORECASE),
}
# Matches every string with an image or one of NOT_PORTABLE. It is fast because each branch begins with a literal.
MAY_MATTER = re.compile(
    r"!\[|</?[A-Za-z]|\{[{%]|\[(?:\[|gallery\b|/[a-z]|[a-z][\w-]*\s+[\w-]+=|[^\[\]\n]+\]:)"
    r"|\]\(<?(?![A-Za-z]+:)[^\s()]+\.[A-Za-z]|import (?<=^import )",
    re.MULTILINE,
)


class Place(NamedTuple):
    """A span of Markdown: the URL of an image, an image that Obsidian embeds, or code."""

    start: int
    end: int
    url: str = ""  # for an embedded image, its file name; for code, empty
    is_html: bool = False
    label: str | None = None  # set for an embedded image


def host_of(url: str) -> str:
    """Return the host of an absolute URL, or "" for any other URL."""
    match = HOST.match(url)
    return match[1].lower() if match else ""


def with_images(
    content: str, replaced: Callable[[str], str], embedded: Callable[[str, str], str]
) -> tuple[str, dict[Note, int]]:
    """Replace the URLs of images in Markdown, and the images that Obsidian embeds.

    Also return the first line of each construct that works only on the old site: NOT_PORTABLE and relative URLs.
    """
    if not MAY_MATTER.search(content):
        return content, {}
    parts, without_code, end = [], [], 0
    relative: dict[Note, int] = {}
    for place in _read(content):
        if not end <= place.start <= place.end:
            continue
        old, new = content[place.start : place.end], ""
        if place.label is not None:
            new = embedded(place.url, place.label)
        elif (url := replaced(place.url) if place.url else "") != place.url:
            new = escape(url) if place.is_html else url.translate(ENCODED)
        elif not relative and IS_RELATIVE.match(url):
            relative[Note.RELATIVE_IMAGES] = content.count("\n", 0, place.start) + 1
        parts += [content[end : place.start], new or old]
        without_code += [parts[-2], parts[-1] if place.url else "\n" * old.count("\n")]
        end = place.end
    text = "".join((*without_code, content[end:]))
    matches = {note: match for note, pattern in NOT_PORTABLE.items() if (match := pattern.search(text))}
    lines = {note: text.count("\n", 0, match.start()) + 1 for note, match in matches.items()}
    return "".join((*parts, content[end:])), relative | lines


def without_controls(fields: dict[str, Any]) -> dict[Note, None]:
    """Remove control characters from a post's fields. Return a note if there were any."""
    cleaned: dict[str, Any] = {name: _clean(fields[name]) for name in TEXTS if name in fields}
    cleaned |= {name: CONTROL_OR_BREAK.sub(" ", fields[name]).strip() for name in LINES if name in fields}
    if all(fields[name] == value for name, value in cleaned.items()):
        return {}
    fields.update(cleaned)
    return {Note.CONTROL_CHARACTERS: None}


def _clean(value: Any) -> Any:
    if isinstance(value, dict):
        return {_clean(name): _clean(part) for name, part in value.items()}
    if isinstance(value, list):
        return list(map(_clean, value))
    return CONTROL.sub("", value) if isinstance(value, str) else value


def _read(content: str) -> list[Place]:
    """Return the images and the code in Markdown, in order. A Place without a URL is code."""
    places: set[Place] = set()
    labels: set[str] = set()  # labels of the link definitions that images use
    env: dict[str, Any] = {}
    tokens: list[Token] = []
    if len(content) > MAX_CONTENT:
        return []
    PARSER.block.parse(content.replace("\r", " "), PARSER, env, tokens)
    starts = [0, *(match.end() for match in re.finditer("\n", content)), len(content)]
    spans = {(token.type, starts[token.map[0]], starts[token.map[1]]): None for token in tokens if token.map}
    for kind, start, end in spans:  # Table cells in the same row share a span.
        if kind in ("fence", "code_block"):
            places.add(Place(start, end))
        elif kind == "inline" or (kind == "html_block" and "markdown=" in content[start:end]):
            places.update(_scan(content, labels, start, end))
        elif kind == "html_block":
            places.update(_shown_by_tags(content, start, end))
    return sorted(places.union(_definitions(content, starts, env.get("references", {}), labels)))


def _scan(text: str, labels: set[str], position: int, end: int) -> Iterator[Place]:
    """Yield the images and the code in inline content. Add the labels that images use to `labels`."""
    runs = defaultdict(list)  # length -> positions of runs of backticks
    for run in TICKS.finditer(text, position, end):
        runs[len(run[0])].append(run.start())
    opened: list[tuple[bool, int]] = []  # each open bracket: whether it begins an image, and its position
    while match := INLINE.search(text, position, end):
        position = match.end()
        if ticks := match["ticks"]:
            of_length = runs[len(ticks)]
            closing = bisect_right(of_length, match.start())
            if closing < len(of_length):
                position = of_length[closing] + len(ticks)
                yield Place(match.start(), position)
        elif match["tag"]:
            yield from _shown_by_tags(text, *match.span())
        elif match["name"]:
            yield Place(*match.span(), match["name"], label=match["text"] or "")
        elif match["open"]:
            opened.append((match["open"] == "![", position))
        elif match[0][0] == "]" and not opened:
            position = match.start() + 1
        elif match[0][0] == "]":
            is_image, begin = opened.pop()
            kind = "pointed" if match["pointed"] else "bare"
            if is_image and match[kind]:
                yield Place(*match.span(kind), unescape(ESCAPE.sub(r"\1", match[kind])))
            elif is_image:
                labels.add(normalizeReference(match["label"] or text[begin : match.start()]))


def _shown_by_tags(html: str, start: int, end: int) -> Iterator[Place]:
    for tag in TAG.finditer(html, start, end):
        for attribute in ATTRIBUTE.finditer(html, *tag.span()):
            name, value = attribute["name"].lower(), attribute.lastindex or 0
            for part in (IN_SET if name == "srcset" else WHOLE_VALUE).finditer(html, *attribute.span(value)):
                url = part[1].rstrip(",")
                if name in SHOWN_BY[tag["tag"].lower()]:
                    yield Place(part.start(1), part.start(1) + len(url), unescape(url), is_html=True)


def _definitions(content: str, starts: list[int], references: Mapping[str, Any], labels: set[str]) -> Iterator[Place]:
    """Yield the URLs of link definitions that an image uses or that point to an image."""
    for label, reference in references.items():
        first, last = reference["map"]
        match = DEFINITION.search(content, starts[first], starts[last])
        url = unescape(ESCAPE.sub(r"\1", match[1] or match[2])) if match else ""
        if match and url and (label in labels or IMAGE_NAME.search(url)):
            yield Place(*match.span(match.lastindex or 0), url)
