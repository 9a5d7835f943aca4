"""HTML as Markdown of the same meaning."""

import re
from html import escape, unescape

from bs4 import BeautifulSoup, Comment, NavigableString, Tag
from bs4.exceptions import ParserRejectedMarkup
from markdownify import ATX, MarkdownConverter

from blogapi.wings.markdown.front_matter import MarkdownError

# Kept as it is: [gallery ids="1,2"], [/caption]
SHORTCODE = re.compile(r"(\[/?[a-z][\w-]*(?:\s[^\[\]]*)?/?\](?!\())")
# Text that CommonMark would take for markup: within a line, and at its start.
MARKUP = re.compile(
    r"[*`]|~(?=~)|(?<=~)~|\](?=[(\[])|\\(?=[!-/:-@\[-`{-~])|<(?=[A-Za-z/!?])|&(?=#?\w{1,31};)|(?<!\w)_|_(?!\w)"
)
MARKUP_OR_BRACKET = re.compile(rf"[\[\]]|{MARKUP.pattern}")
LINE_MARKUP = re.compile(r"(?:\A|(?<=\n))(\d{0,9})(#{1,6}(?=\s|$)|[-+](?=\s)|>|(?<=\d)[.)](?=\s)|-{3}|=)")
LANGUAGE = re.compile(r"\b(?:language|lang|brush)[-:]\s*([\w+#-]+)")
BLANKS = re.compile("[ \t]{2,}")
MAX_HTML = 4_000_000  # characters
MAX_ELEMENTS = 100_000  # converted, they take five seconds; as many columns of cells that span several
MAX_DEPTH = 400  # elements within each other
MAX_MEAN_DEPTH = 40  # of the text: each element converts all that is in it once more
MAX_GROWTH = 4  # times as long as the HTML, and the mark-up of a small table
TOO_DEEP = "its HTML is nested too deeply"
ELEMENT = re.compile("<[A-Za-z]")
START = re.compile("[0-9]{1,9}")  # of a numbered list, as CommonMark has it
LINE = re.compile("^(?=.)", re.MULTILINE)
NOT_IN_ADDRESS = str.maketrans({each: f"%{ord(each):02X}" for each in "\t\n\r ()<>"} | {"\\": r"\\"})

# Elements in which WordPress creates no paragraphs from bare lines, and those that it leaves alone altogether.
BLOCK = re.compile(
    r"</?(?:address|article|aside|audio|blockquote|center|details|div|dl|fieldset|figure|footer|form|h[1-6]|header|hr"
    r"|iframe|main|nav|object|ol|p|section|summary|ul|video)\b[^<>]*>",
    re.IGNORECASE,
)
PART = re.compile(r"<(?:li|dt|dd|figcaption|source)\b", re.IGNORECASE)
WHOLE = re.compile(r"(<(pre|script|style|table|textarea)\b.*?(?:</\2\s*>|\Z))", re.IGNORECASE | re.DOTALL)
BLANK_LINES = re.compile(r"\n\s*\n")
BACKGROUND = re.compile(r"background-image:\s*url\(\s*[\"']?([^\"'()]+)", re.IGNORECASE)


class Converter(MarkdownConverter):
    """Converts HTML to Markdown of the same meaning; elements that Markdown lacks stay HTML."""

    def escape(self, text: str, parent_tags: set[str]) -> str:
        """Escape text that Markdown would take for markup, except in shortcodes."""
        if "a" in parent_tags:
            escaped = MARKUP_OR_BRACKET.sub(r"\\\g<0>", text)
        else:
            parts = SHORTCODE.split(text)
            parts[::2] = [LINE_MARKUP.sub(r"\1\\\2", MARKUP.sub(r"\\\g<0>", part)) for part in parts[::2]]
            escaped = "".join(parts)
        return escaped if parent_tags.isdisjoint(("td", "th")) else escaped.replace("|", r"\|")

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

    convert_audio = convert_embed = convert_object = convert_summary = convert_video = convert_iframe

    def convert_details(self, element: Tag, text: str, parent_tags: set[str]) -> str:
        """Leave an element as it is, with its content in Markdown."""
        return f"\n\n<details{' open' if element.has_attr('open') else ''}>\n\n{text.strip()}\n\n</details>\n\n"

    def convert_mark(self, element: Tag, text: str, parent_tags: set[str]) -> str:
        """Leave an element of a line as it is, with its text in Markdown."""
        if "_noformat" in parent_tags or not text.strip():
            return text
        title = f' title="{escape(_attribute(element, "title"))}"' if element.get("title") else ""
        return f"<{element.name}{title}>{text}</{element.name}>"

    def convert_li(self, element: Tag, text: str, parent_tags: set[str]) -> str:
        """Convert an item, numbered by `_prepare`: markdownify counts all items before it."""
        mark = f"{element['value']}. " if element.parent and element.parent.name == "ol" else "- "
        text = LINE.sub(" " * len(mark), text.strip())
        return f"{mark}{text[len(mark) :]}\n" if text else "\n"

    convert_abbr = convert_sub = convert_sup = convert_mark
    convert_aside = convert_figure = MarkdownConverter.convert_div  # type: ignore[attr-defined]


def markdown_of(html: str, max_elements: int = MAX_ELEMENTS) -> str:
    """Convert HTML to Markdown in linear time. Raise MarkdownError if it is too large, too deep or malformed."""
    if len(html) > MAX_HTML:
        raise MarkdownError(f"its HTML must have at most {MAX_HTML:,} characters")
    if len(ELEMENT.findall(html)) > max_elements:
        raise MarkdownError(f"its HTML must have at most {max_elements:,} elements")
    try:
        # Within an element Beautiful Soup takes nothing for the name of a file.
        soup = BeautifulSoup(f"<div>{html}</div>", "html.parser")
        _check_depth(soup, len(html))
        _check_columns(soup, max_elements)
        _prepare(soup)
        text = Converter(heading_style=ATX, bullets="-").convert_soup(soup)
    except RecursionError:
        raise MarkdownError(TOO_DEEP) from None
    except (ParserRejectedMarkup, ValueError):  # ValueError: for example of <ol start="²">
        raise MarkdownError("its HTML is malformed") from None
    if len(text) > MAX_GROWTH * len(html) + 100:
        raise MarkdownError(f"it must not become {MAX_GROWTH} times as long as its HTML")
    return f"{text}\n" if text else ""


def image_of(label: str, address: str) -> str:
    """Return the Markdown of an image."""
    return f"![{_escaped(label)}]({address})"


def _escaped(label: str) -> str:
    return re.sub(r"[\[\]\\]", r"\\\g<0>", label)


def text_of(html: str) -> str:
    """Return the text of a little HTML, for example of a title, without references to no character."""
    return unescape(re.sub(r"</?[A-Za-z][^<>]*>|&#\d{8,};?", "", html)).strip()


def _attribute(element: Tag, name: str) -> str:
    value = element.get(name) or ""
    return value if isinstance(value, str) else " ".join(value)


def _check_depth(soup: BeautifulSoup, size: int) -> None:
    """Raise MarkdownError for HTML that would take quadratic time."""
    depths = {id(soup): 0}
    left = MAX_MEAN_DEPTH * size
    for element in soup.descendants:
        depths[id(element)] = depth = depths[id(element.parent)] + 1
        if isinstance(element, NavigableString):
            left -= depth * len(element)
        if depth > MAX_DEPTH or left < 0:
            raise MarkdownError(TOO_DEEP)


def _check_columns(soup: BeautifulSoup, max_columns: int) -> None:
    """Raise MarkdownError for tables that are wider than their cells, by too many columns in all."""
    spans = [_attribute(element, "colspan") for element in soup.find_all(["td", "th"], colspan=True)]
    if sum(min(1000, int(span[:4])) for span in spans if span.isdecimal()) > max_columns:
        raise MarkdownError(f"its tables must have at most {max_columns:,} columns")


def _prepare(soup: BeautifulSoup) -> None:
    """Change HTML that markdownify does not convert well."""
    for comment in soup.find_all(string=lambda text: isinstance(text, Comment)):
        comment.extract()
    inline: set[int] = set()
    for block in reversed(soup.select("a :is(div, figcaption, figure, h1, h2, h3, h4, h5, h6, p)")):
        if not block.contents or id(block.contents[-1]) not in inline:  # which ends in a space
            block.append(" ")
        block.name, block.attrs = "span", {}  # A link in Markdown is within one paragraph; unwrap() is quadratic.
        inline.add(id(block))
    for numbered in soup.find_all("ol"):
        first = int(start) if START.fullmatch(start := _attribute(numbered, "start")) else 1
        for number, item in enumerate(numbered.find_all("li", recursive=False), first):
            item["value"] = str(number)
    soup.smooth()
    for text in soup.find_all(
        string=lambda text: bool(BLANKS.search(text or ""))
    ):  # markdownify takes quadratic time for them
        if not text.find_parent("pre"):
            text.replace_with(BLANKS.sub(" ", text))
    for element in soup.find_all(style=BACKGROUND):
        found = BACKGROUND.search(_attribute(element, "style"))
        address = found[1].strip() if found else ""
        if not element.find("img", src=address):
            element.insert(0, soup.new_tag("img", src=address, alt=""))
    for image in soup.find_all("img", alt=True):
        image["alt"] = _escaped(" ".join(_attribute(image, "alt").split()))
    for element in soup.find_all(["a", "img"], title=True):  # markdownify escapes the quotes
        element["title"] = " ".join(_attribute(element, "title").split()).replace("\\", r"\\")
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
