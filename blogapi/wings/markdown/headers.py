"""Read headers without delimiters around them: of Pelican, Nikola, Logseq and Notion, and Hexo's without `---`."""

import re
from typing import Any

from blogapi.wings.markdown.front_matter import MAX_BYTES, MAX_VALUES, TOO_MANY, MarkdownError, Plain

NAME = r"[A-Za-z][\w-]{0,40}(?: [\w-]{1,40})?"
# Headers by the `header` of a program; the group is the headers, and a first line of Notion's stays in the content
FORMS = {
    "..": re.compile(rf"(?:<!--\s*\n)?((?:\.\. {NAME}:.*(?:\n|\Z))++)(?:-->[ \t]*\n)?\n?"),
    "::": re.compile(rf"((?:(?:- )?{NAME}::(?: .*)?(?:\n|\Z))++)\n?"),
    ":": re.compile(rf"((?:{NAME}:(?:[ \t].*)?(?:\n|\Z)(?:[ \t]+\S.*(?:\n|\Z))*+)++)(?:\n|\Z)"),
    "#": re.compile(r"# .+\n\n((?:[A-Z]\w{0,40}(?: \w{1,40})?: .+(?:\n|\Z))++)(?:\n|\Z)"),
}
LINE = re.compile(rf"(?:\.\. |- )?({NAME})::?[ \t]*(.*)")
KNOWN = {"title", "date", "tags", "created", "published", "slug", "status", "category", "layout", "author", "summary"}
NO_OPENING = re.compile(r"(?!---)((?:[\w-]+:(?:[ \t].*)?\n|[ \t]*- .*\n|[ \t]+.*\n|#.*\n)++)---[ \t]*(?:\n\n?|\Z)")
HAS_KNOWN = re.compile(r"^(?:title|date|layout|tags)\s*:", re.MULTILINE)
# Front matter that is not read, and what to do
NOT_READ = {
    re.compile(
        r"\{\s*\"|;;;[ \t]*\n|\"[\w-]+\":(?s:.)*?\n;;;"
    ): "front matter must be YAML or JSON between lines of ---, or TOML between lines of +++",
    re.compile(
        r"(?:```|~~~|---|###)[ \t]*(?:ruby[ \t]*\n\s*front_matter|<%)"
    ): "front matter in Ruby cannot be read: write it as YAML between lines of ---",
    re.compile(
        r"(?:\s*import .*\n)*\s*export (?:const|let|default) (?:(?:meta|front)\w* *= *)?\{"
    ): "metadata in JavaScript cannot be read: write it as YAML between lines of ---",
    re.compile(
        r"(?:[A-Z][A-Z ]{0,30}: .*\n){2,}(?:(?!-----).*\n)*-----$", re.MULTILINE
    ): "an export of Movable Type cannot be read: import it into WordPress, and use the export of that",
    re.compile(
        r"#\+[A-Za-z_]+: |% .+\n%|\[\[!meta "
    ): "headers of Org, Pandoc or ikiwiki cannot be read: write them as YAML between lines of ---",
    re.compile(r"(?:---|\+\+\+)[ \t]*\r"): "line breaks must be LF or CRLF, not CR",
}
# Two lines that look like headers, or one with the word for a title in another language; other lines may be text
UNKNOWN = re.compile(
    r"(?:(?i:titel|titre|título|titolo|tytuł|başlık|название|заголовок|標題|标题|題名|タイトル|제목) ?[:：].*\n"
    r"|(?:[^\W\d][\w-]{0,30}(?: [\w-]{1,30})?:[ \t]+\S[^\n]*\n){2,})[ \t]*(?:\n|\Z)"
)
NOTION_TIME = re.compile(r"(.*\d{4},?) (\d\d?):(\d\d) ([AP])M", re.ASCII)
LOGSEQ_DAY = re.compile(r"\[\[([A-Z]\w+ \d+)(?:st|nd|rd|th)(, \d{4})\]\]")


def split_headers(content: str) -> tuple[bytes, str, str, int]:
    """Return what headers a text begins with, the headers, the content and its line. Raises MarkdownError.

    What they begin with is the `header` of a program, or a delimiter if only the first one is missing; b"" if the text
    has no headers.
    """
    head = content[:MAX_BYTES]
    text = head.replace("\r\n", "\n")
    if reason := next((reason for pattern, reason in NOT_READ.items() if pattern.match(text)), ""):
        raise MarkdownError(reason, 1)
    if (match := NO_OPENING.match(text)) and HAS_KNOWN.search(match[1]):
        # A line before it, for the delimiter that is missing: lines are counted from the second.
        return b"---", match[1], _after(content, text, match.end()), text.count("\n", 0, match.end()) + 1
    for form, pattern in FORMS.items():
        if (match := pattern.match(text)) and _is_known(match[1], form):
            kept = text[: match.start(1)] if form == "#" else ""
            return (
                form.encode(),
                match[1],
                kept + _after(content, text, match.end()),
                text.count("\n", 0, match.end()) + 1,
            )
    if UNKNOWN.match(text):
        raise MarkdownError("these look like headers: put them between lines of ---, or an empty line before them", 1)
    return b"", "", content, 1


def _is_known(headers: str, form: str) -> bool:
    """Return whether enough names of headers are known; a paragraph can begin with one of them."""
    names = {match[1].lower() for match in map(LINE.match, headers.splitlines()) if match}
    return "title" in names or form == "::" or len(names & KNOWN) > (form in ":#")


def _after(content: str, text: str, end: int) -> str:
    """Return the content after a position in its beginning `text`, in which line breaks are shorter."""
    return content[end + (text.count("\n", 0, end) if "\r\n" in content[: end + 1] else 0) :]


def read_headers(text: str) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the values in headers, and the lines of their names. Raises MarkdownError."""
    values: dict[str, Any] = {}
    lines: dict[str, int] = {}
    name = ""
    for number, line in enumerate(text.split("\n"), 1):
        if line[:1] in (" ", "\t") and name:
            values[name] = Plain(f"{values[name]} {line.strip()}".strip())
        elif match := LINE.match(line):
            name = match[1].lower()
            values[name], lines[name] = Plain(_as_time(match[2].strip())), number
        if len(values) > MAX_VALUES:
            raise MarkdownError(TOO_MANY, 1)
    return values, lines


def _as_time(value: str) -> str:
    """Write times of Logseq, Nikola and Notion as other programs do; return other values as they are."""
    if match := LOGSEQ_DAY.fullmatch(value):
        return match[1] + match[2]
    if match := NOTION_TIME.fullmatch(value):
        return f"{match[1]} {int(match[2]) % 12 + 12 * (match[4] == 'P')}:{match[3]}"
    return re.sub(r"^([\d-]+ [\d:]+ )UTC(?=[+-]\d)", r"\1", value)
