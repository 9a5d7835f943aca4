"""HTML made Markdown."""

import re

from bs4 import BeautifulSoup, Comment, Tag
from markdownify import ATX, MarkdownConverter

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
