"""Convert HTML to equivalent Markdown. HTML from a clipboard or a request is sanitized, but imported HTML is not."""

import re
from html import escape, unescape
from itertools import islice
from secrets import token_hex

from turbohtml import Comment, Element, Markdown, Node, Text, parse_fragment
from turbohtml.clean import OnDisallowed, Policy, Sanitizer

from blogapi.markdown import ENCODED
from blogapi.markdown.footnotes import NOTE, mark_footnotes
from blogapi.markdown.front_matter import MarkdownError

# Text that is never escaped: [gallery ids="1,2"], [/caption], [^1], URLs, and characters inside a_b, 3.4 and C:\d
UNESCAPED = re.compile(
    r"\[/?[a-z][\w-]*(?:\s[^\[\]|]*)?/?\](?![(\[:])|\[\^\w+\]:?|https?://[^\s<>*`|\[\]\\]+"
    r"|(?<=[^\W_])_+(?=[^\W_])|(?<=\d)\.(?=\d)|\\(?=[^\W_])"
)
LANGUAGE_CLASS = re.compile(
    r"\b(?:language|lang|brush|highlight-source)[-:]\s*([\w+#.-]+)|\"language\":\s*\"([\w+#.-]+)\""
)
# Languages that are recognized even if the class of a code block contains nothing else
LANGUAGES = re.compile(
    "bash|c|cpp|css|diff|go|html|ini|java|javascript|js|json|kotlin|lua|make|perl|php|python|ruby|rust|scss|sh|shell|sql"
    "|swift|toml|ts|typescript|xml|yaml"
)
LANGUAGE_NAME = re.compile(r"[\w+#.-]{1,30}")
KEPT_COMMENT = re.compile(r"\s*(more|nextpage)\b")
# Ghost's raw HTML cards
HTML_CARD = re.compile(r"<!--kg-card-begin: html-->(.*?)(?:<!--kg-card-end: html-->|\Z)", re.DOTALL)
MAX_HTML = 4_000_000  # characters
MAX_SENT, MAX_SENT_ELEMENTS = 100_000, 400_000  # limits on HTML in a request; converting that much takes 0.3 s
MAX_ELEMENTS = 4_000_000  # at this limit, parsing takes five seconds and a few hundred MB
MAX_GROWTH = 4  # limit on the length of the Markdown: this many times the HTML's, plus 100 characters for small tables
# Tags that an HTML5 parser reopens in every paragraph until they are closed: up to three with the same name and
# attributes. A tag with attributes that do not match this pattern is assumed to differ from all others.
REOPENED = re.compile(
    r"<(?:b|big|code|em|font|i|nobr|s|small|strike|strong|tt|u)(?=[\s/>])"
    r"(?:(?:\s+[\w:-]+(?:=(?:\"[^\"<>]*\"|'[^'<>]*'|[\w#.:;/%-]+))?)*\s*/?(?P<simple>>))?",
    re.IGNORECASE,
)
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
# Elements that stay HTML: always, if they have an attribute, or if they contain certain elements
KEPT_TAGS = ("audio", "embed", "form", "iframe", "math", "object", "svg", "video")
KEPT_WITH_ATTRIBUTE = {"script": "src", "ol": "reversed"}
KEPT_WITH_CONTENT = {
    "table": ", ".join((*KEPT_TAGS, "blockquote", "details", "pre", "table", "td[rowspan]", "th[rowspan]")),
    "pre": "a[href]:not([href^='#']), img",
}
# Elements that get an anchor if a link points to their id
TARGETS = (*HEADINGS, "a", "aside", "dd", "div", "dt", "li", "p", "section", "span", "sup")
# Blocks to drop if they contain only white space, and the elements that may surround the white space
LINES, STYLES = (*HEADINGS, "div", "p"), ("b", "br", "em", "font", "i", "o:p", "span", "strong", "u")
RENAMED = {"center": "div", "legend": "p", "samp": "code", "tt": "code"}  # element -> replacement with the same meaning
LINE_BREAKS = re.compile(r"\s*[\n\r]\s*")
# Matches text that would turn the brackets before it into a link: `(`, `[` or `:`. Without footnotes, Markdown also
# turns `[^1]:` and a `javascript:` URL into a link.
FOLLOWING = r"(?=(?P<mark>[(\[:])?)(?=(?P<scheme>\s*(?:javascript|vbscript|data):)?)"

# Tags that end a paragraph, and that WordPress does not put into a paragraph
BLOCK_TAG = re.compile(
    r"</?(?:address|article|aside|audio|blockquote|center|details|div|dl|fieldset|figure|footer|form|h[1-6]|header|hr"
    r"|iframe|main|nav|object|ol|p|section|summary|ul|video)\b[^<>]*>|<!--(?:more|nextpage)\b[^<>]*-->",
    re.IGNORECASE,
)
PART = re.compile(r"<(?:li|dt|dd|figcaption|source)\b", re.IGNORECASE)
# Elements whose line breaks WordPress leaves alone
LEFT_ALONE = re.compile(r"(<(pre|script|style|table|textarea)\b.*?(?:</\2\s*>|\Z))", re.IGNORECASE | re.DOTALL)
BLANK_LINES = re.compile(r"\n\s*\n")
BACKGROUND = re.compile(r"background-image:\s*url\(\s*[\"']?([^\"'()]+)", re.IGNORECASE)

# Elements that sanitized HTML may contain. Most others are replaced with their text.
TEXT = (
    "a abbr acronym address article aside b bdi bdo big blockquote br caption center cite code col colgroup dd del "
    "details dfn div dl dt em fieldset figcaption figure font footer h1 h2 h3 h4 h5 h6 header hgroup hr i img input "
    "ins kbd label legend li main mark nav nobr ol p pre q rp rt ruby s samp section small span strike strong sub "
    "summary sup table tbody td tfoot th thead time tr tt u ul var wbr audio picture source track video"
)
FORMULAS = (
    "math annotation menclose merror mfenced mfrac mi mmultiscripts mn mo mover mpadded mphantom mprescripts mroot "
    "mrow ms mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr munder munderover semantics"
)
ATTRIBUTES = {
    "*": "align class colspan data-enlighter-language data-lang data-language datetime id lang rowspan title",
    "a": "href name",
    "audio": "controls src",
    "details": "open",
    "img": "alt src",
    "input": "checked type",
    "li": "value",
    "ol": "reversed start type",
    "source": "src type",
    "video": "controls height poster src width",
}
URL_ATTRIBUTES = ("href", "src", "poster")
sanitizer = Sanitizer(
    Policy(
        tags=frozenset(f"{TEXT} {FORMULAS}".split()),
        attributes={tag: frozenset(names.split()) for tag, names in ATTRIBUTES.items()},
        url_schemes=frozenset({"http", "https", "mailto", "tel"}),
        allow_fragment_urls=True,
        on_disallowed_tag=OnDisallowed.STRIP,
        remove_with_content=frozenset({"iframe", "script", "style", "svg", "template", "textarea"}),
        strip_comments=False,  # A comment can contain the language of a code block.
    )
)


def _as_html(element: Element, text: str) -> str:
    """Return an inline element as an HTML tag around Markdown text."""
    title = f' title="{escape(title)}"' if (title := " ".join((element.attr("title") or "").split())) else ""
    return f"<{element.tag}{title}>{text}</{element.tag}>" if text.strip() else text


TAG_CONVERTERS = dict.fromkeys(("abbr", "ins", "kbd", "mark", "sub", "sup", "u"), _as_html) | {
    "details": lambda tag, text: f"<details{' open' if 'open' in tag.attrs else ''}>\n\n{text.strip()}\n\n</details>",
    NOTE: lambda element, text: re.sub(r"\n(?!\n)", "\n    ", text.strip()),
    "rp": lambda element, text: text,
    "summary": lambda element, text: _one_block(element.html),
}
STYLE = Markdown(converters=TAG_CONVERTERS)


def markdown_of(html: str) -> str:
    """Convert HTML to Markdown in linear time. Raises MarkdownError if the HTML or the Markdown is too large."""
    check_size(html)
    preparation = Preparation()
    tree = parse_fragment(HTML_CARD.sub(lambda card: f"<p>{preparation.protect(_one_block(card[1]))}</p>", html))
    return preparation.markdown(tree, len(html))


def safe_markdown_of(html: str) -> tuple[str, set[str]]:
    """Convert HTML from a request, dropping scripts, frames, forms, and URLs that a browser would execute.

    Also return the names of elements that were removed or lost their URL. Raises the same exceptions as
    `markdown_of`.
    """
    if len(html) > MAX_SENT:
        raise MarkdownError(f"must have at most {MAX_SENT:,} characters; send Markdown instead")
    check_size(html, MAX_SENT_ELEMENTS)
    tree, removed = sanitizer.sanitize_report_node(parse_fragment(html))
    mark_footnotes(tree)
    for image in tree.select("img:not([src])"):
        image.replace_with(Text(image.attr("alt") or ""))
    dropped = {removal.tag for removal in removed if removal.attribute in (None, *URL_ATTRIBUTES)}
    return Preparation().markdown(tree, len(html)), dropped


def check_size(html: str, max_elements: int = MAX_ELEMENTS) -> None:
    """Raise MarkdownError if parsing this HTML would take too much time or memory."""
    if len(html) > MAX_HTML:
        raise MarkdownError(f"its HTML must have at most {MAX_HTML:,} characters")
    kinds = {match[0] if match["simple"] else match.start() for match in REOPENED.finditer(html)}
    if html.count("<") * (1 + 3 * len(kinds)) > max_elements:
        raise MarkdownError("its HTML has too many elements")


def text_of(html: str) -> str:
    """Return the text of a short piece of HTML, such as a title, without references to nonexistent characters."""
    return unescape(re.sub(r"</?[A-Za-z][^<>]*>|&#\d{8,};?", "", html)).strip()


class Preparation:
    """Changes the elements of an HTML tree that turbohtml would drop, or would convert in a way that we do not want.

    Until turbohtml has converted the tree, a random placeholder stands for each text that must not be escaped.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.name = f"x{token_hex(8)}"
        self.targets: set[str] = set()  # ids that links in the tree point to

    def markdown(self, tree: Element, length: int) -> str:
        """Convert a tree to Markdown. Raises MarkdownError if the result is too long for HTML of this `length`."""
        self.targets = {(link.attr("href") or "")[1:] for link in tree.select("a[href^='#']")} - {""}
        self._prepare(tree)
        text = re.sub(rf"(?i){self.name}(\d+)x{FOLLOWING}", self._original, tree.to_markdown(STYLE))
        if len(text) > MAX_GROWTH * length + 100:
            raise MarkdownError(f"its Markdown must be at most {MAX_GROWTH} times as long as its HTML")
        return f"{text}\n" if text else ""

    def _original(self, name: re.Match[str]) -> str:
        """Return the text for a placeholder. Escape its brackets if the text after it would make them a link."""
        text = self.texts[int(name[1])]
        is_link = (name["mark"] and text.endswith("]")) or (name["scheme"] and text.endswith("]:"))
        return re.sub(r"[\[\]]", r"\\\g<0>", text) if is_link else text

    def protect(self, text: str) -> str:
        """Store a string, and return a placeholder for it."""
        self.texts.append(text)
        return f"{self.name}{len(self.texts) - 1}x"

    def _block(self, html: str) -> Element:
        """Return an element that turbohtml converts to a paragraph of raw HTML."""
        return Element("div", {}, [Text(self.protect(_one_block(html)))])

    def _prepare(self, tree: Node) -> None:
        pending: list[tuple[Node, bool]] = [(tree, False)]
        while pending:
            parent, is_heading = pending.pop()
            for node in list(parent.children):
                if isinstance(node, Text):
                    node.data = UNESCAPED.sub(lambda match: self.protect(match[0]), node.data.replace("\r", "\n"))
                elif isinstance(node, Comment) and (match := KEPT_COMMENT.match(node.data)):
                    node.replace_with(self._block(f"<!--{match[1]}-->"))
                elif isinstance(node, Element) and _stays_html(node):
                    node.replace_with(self._block(node.html))
                elif isinstance(node, Element) and node.tag == "input":
                    box = "[x]" if "checked" in node.attrs else "[ ]"
                    node.replace_with(Text(self.protect(box) if node.attr("type") == "checkbox" else ""))
                elif isinstance(node, Element) and is_heading and node.tag == "br":
                    node.replace_with(Text(self.protect("<br>")))
                elif isinstance(node, Element):
                    self._prepare_element(node)
                    pending.append((node, is_heading or node.tag in HEADINGS))

    def _prepare_element(self, element: Element) -> None:
        if element.tag in LINES:
            inside = list(islice(element.descendants, 9))  # reading all of them would take quadratic time
            if len(inside) < 9 and all(
                part.data.isspace() if isinstance(part, Text) else getattr(part, "tag", "") in STYLES for part in inside
            ):
                element.clear()
                element.tag = "p"
        match element.tag:
            case "a" if "href" in element.attrs and element.select_one(", ".join(HEADINGS)):
                _link_parts(element)
            case "a" | "img":
                for name, value in list(element.attrs.items()):
                    if name in ("href", "src"):
                        element.attrs[name] = str(value or "").strip().translate(ENCODED)
                    elif name in ("alt", "title"):
                        element.attrs[name] = " ".join(str(value or "").split())
                if not element.attr("title"):
                    element.attrs.pop("title", None)
            case "pre":
                parts = [child for child in element.children if isinstance(child, Element) and child.tag == "code"]
                if language := _language([element, *parts]):
                    for part in (element, *parts):
                        part.attrs["class"] = f"language-{language}"
        element.tag = RENAMED.get(element.tag, element.tag)
        if match := BACKGROUND.search(element.attr("style") or ""):
            url, image = match[1].strip(), element.find("img")
            if not image or image.attr("src") != url:
                element.insert(0, Element("img", {"src": url, "alt": ""}))
        self._mark_target(element)

    def _mark_target(self, element: Element) -> None:
        """Insert an anchor at an element that a link in the same HTML points to, such as a footnote."""
        anchor = element.attr("id") or (element.tag == "a" and element.attr("name")) or ""
        if anchor in self.targets and element.tag in TARGETS and not re.search(r"\s", anchor):
            mark = Text(self.protect(f'<a id="{escape(anchor)}"></a>'))
            first = next((child for child in element.children if isinstance(child, Element)), None)
            if element.tag == "a":
                element.insert_before(mark)
            else:
                (first if first and first.tag == "p" else element).insert(0, mark)
            self.targets.discard(anchor)


def _one_block(html: str) -> str:
    """Put HTML on one line, which makes it one Markdown block. Escape anything that looks like a Markdown link."""
    html = html.strip().replace("](", "]&#40;")
    return html.replace("\n", "&#10;").replace("\r", "&#13;") if "<pre" in html else LINE_BREAKS.sub(" ", html)


def _stays_html(element: Element) -> bool:
    if element.tag in KEPT_WITH_CONTENT:
        return bool(element.select_one(KEPT_WITH_CONTENT[element.tag]))
    return element.tag in KEPT_TAGS or KEPT_WITH_ATTRIBUTE.get(element.tag) in element.attrs


def _link_parts(link: Element) -> None:
    """Replace a link around several blocks with a link in each block, because a Markdown link cannot span blocks."""
    for part in list(link.children):
        inner = Element("a", {"href": link.attr("href") or ""}, [])
        if isinstance(part, Element):
            inner.extend(list(part.children))
            part.append(inner)
        elif isinstance(part, Text) and part.data.strip():
            inner.append(Text(part.data))
            part.replace_with(inner)
    link.tag = "div"
    del link.attrs["href"]


def _language(parts: list[Element]) -> str:
    """Return the language of a code block, from the attributes that plugins set or the comment that WordPress adds."""
    before = parts[0].previous_sibling
    texts = [before.data] if isinstance(before, Comment) else []
    texts += [" ".join(part.attrs.get("class") or []) for part in parts]
    if isinstance(parent := parts[0].parent, Element) and parent.tag == "div":  # as on GitHub
        texts += [name for name in parent.attrs.get("class") or [] if name.startswith("highlight-source-")]
    for part in parts:
        for name in ("lang", "data-lang", "data-language", "data-enlighter-language"):
            if LANGUAGE_NAME.fullmatch(value := part.attr(name) or ""):
                return value
    match = LANGUAGE_CLASS.search(" ".join(texts))
    return match[1] or match[2] if match else next(filter(LANGUAGES.fullmatch, texts), "")


def paragraphs(html: str) -> str:
    """Wrap text between blank lines in `<p>` and turn other line breaks into `<br>`, as WordPress's wpautop does."""
    parts = LEFT_ALONE.split(html.replace("\r\n", "\n"))
    parts[::3] = [
        "".join(map(_paragraph, BLANK_LINES.split(BLOCK_TAG.sub(r"\n\n\g<0>\n\n", text)))) for text in parts[::3]
    ]
    del parts[2::3]  # the element names, which `split` also returns
    return "".join(parts)


def _paragraph(text: str) -> str:
    text = text.strip()
    if not text or BLOCK_TAG.fullmatch(text) or PART.match(text):
        return text
    return f"<p>{text.replace(chr(10), '<br>')}</p>"
