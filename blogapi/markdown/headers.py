"""Read headers without delimiters (Pelican, Nikola, Logseq, ABlog, Notion, Hexo) and JSON front matter (Hugo)."""

import json
import re
from typing import Any

from blogapi.bounded import OutOfBounds, check_json
from blogapi.markdown.dates import rfc3339_or_empty
from blogapi.markdown.front_matter import MAX_DEPTH, MAX_FRONT_MATTER_BYTES, MAX_VALUES, MarkdownError, Plain

HEADER_NAME = r"[A-Za-z][\w-]{0,40}(?: [\w-]{1,40})?"
# a program's `header_form` -> pattern. The group `title` is text above the headers, which stays in the content.
HEADER_FORMS = {
    "..": re.compile(rf"(?:<!--\s*\n)?(?P<headers>(?:\.\. {HEADER_NAME}:.*(?:\n|\Z))++)(?:-->[ \t]*\n)?\n?"),
    "::": re.compile(rf"(?P<headers>(?:(?:- |  )?{HEADER_NAME}::(?: .*)?(?:\n|\Z))++)\n?"),
    ":": re.compile(rf"(?P<headers>(?:{HEADER_NAME}:(?:[ \t].*)?(?:\n|\Z)(?:[ \t]+\S.*(?:\n|\Z))*+)++)(?:\n|\Z)"),
    "{post}": re.compile(
        r"(?P<title>(?:[^`~:\n].*\n|\n){0,4})"
        r"[`~:]{3,}\{post\}(?P<headers>.*\n(?::[\w-]+:.*\n)*+)[`~:]{3,}[ \t]*(?:\n\n?|\Z)"
    ),
    "#": re.compile(r"(?P<title># .+\n\n)(?P<headers>(?:[A-Z]\w{0,40}(?: \w{1,40}){0,3}: .+(?:\n|\Z))++)(?:\n|\Z)"),
}
# ABlog options that choose a paragraph or an image by number
POSITIONS = re.compile("^:(?:excerpt|image):.*", re.MULTILINE)
HEADER_LINE = re.compile(r"(?:\.\. |- |:)?([A-Za-z][\w-]{0,40}(?: [\w-]{1,40}){0,3})::?[ \t]*(.*)")
COMMON = {"title", "date", "tags", "created", "published", "slug", "status", "category", "layout", "author", "summary"}
NO_OPENING = re.compile(r"(?!---)((?:[\w-]+:(?:[ \t].*)?\n|[ \t]*- .*\n|[ \t]+.*\n|#.*\n)++)---[ \t]*(?:\n\n?|\Z)")
HAS_KNOWN = re.compile(r"^(?:title|date|layout|tags)\s*:", re.MULTILINE)
AS_YAML = "write it as YAML between lines of ---"
DELIMITERS = "front matter must be YAML or JSON between lines of ---, or TOML between lines of +++"
JAVASCRIPT = f"metadata in JavaScript cannot be read: {AS_YAML}"
MOVABLE_TYPE = "an export from Movable Type cannot be read: import it into WordPress, and use WordPress's export"
OTHER_HEADERS = "headers of Org, Pandoc or ikiwiki cannot be read: write them as YAML between lines of ---"
# Patterns of unsupported front matter, and the error message for each
UNSUPPORTED = {
    r"[;#]{3,}[ \t]*\n|\"[\w-]+\":(?s:.)*?\n;;;": DELIMITERS,
    r"\{\s*:[a-z]": f"front matter in EDN cannot be read: {AS_YAML}",
    r"%\{\s*\w+:": f"front matter in Elixir cannot be read: {AS_YAML}",
    r" {4}(?:Title|Date|Tags): |@def \w+ *=|<!--(?:t|d|tag|image|video) ": f"this header cannot be read: {AS_YAML}",
    r"(?:```|~~~|---|###)[ \t]*(?:ruby[ \t]*\n\s*front_matter|<%)": f"front matter in Ruby cannot be read: {AS_YAML}",
    r"(?:\s*import [^'\"]*['\"][^'\"\n]*['\"].*\n)*\s*export (?:const|let|default) "
    r"(?:(?:(?:meta|front)\w* *= *)?\{|\w+ *= *\{(?=[^{}]*\b(?:title|date)\b))": JAVASCRIPT,
    r"(?m)(?:[A-Z][A-Z ]{0,30}: .*\n){2,}(?:(?!-----).*\n)*-----$": MOVABLE_TYPE,
    r"#\+[A-Za-z_]+: |% .+\n%|\[\[!meta ": OTHER_HEADERS,
    r"(?:---|\+\+\+)[ \t]*\r": "line breaks must be LF or CRLF, not CR",
}
# Two lines that look like headers, or one line with another language's word for "title". Any other single line may be
# ordinary text.
LIKE_HEADERS = re.compile(
    r"(?:(?i:titel|titre|título|titolo|tytuł|başlık|название|заголовок|標題|标题|題名|タイトル|제목) ?[:：].*\n"
    r"|(?:[^\W\d][\w-]{0,30}(?: [\w-]{1,30})?:[ \t]+\S[^\n]*\n){2,})[ \t]*(?:\n|\Z)"
)
LOGSEQ_DAY = re.compile(r"\[\[([A-Z]\w+ \d+[a-z]{2}, \d{4})\]\]", re.ASCII)
JSON_START = re.compile(r"\{\s*\"(?:[^\"\\\n]|\\.)*+\"\s*:")
JSON_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
BREAKS = re.compile(r"\A[ \t]*(?:\r?\n){0,2}")


def split_headers(content: str) -> tuple[bytes, str, str, int]:
    """Return the headers' form, the headers, the content, and the content's first line number. Raises MarkdownError.

    The form is a program's `header_form`, b"---" if only the opening delimiter is missing, b"{" for JSON, or b"" if
    there are no headers.
    """
    head = content[:MAX_FRONT_MATTER_BYTES]
    if JSON_START.match(head):
        end = _end_of_json(head)
        rest = BREAKS.sub("", content[end:], count=1)
        return b"{", content[:end], rest, content.count("\n", 0, len(content) - len(rest)) + 1
    text = head.replace("\r\n", "\n")
    for unread, reason in UNSUPPORTED.items():
        if re.match(unread, text):
            raise MarkdownError(reason, 1)
    if (match := NO_OPENING.match(text)) and HAS_KNOWN.search(match[1]):
        return b"---", match[1], *_after(content, text, match.end())
    for form, pattern in HEADER_FORMS.items():
        if match := pattern.match(text):
            headers, title = _plain(match["headers"], form), match.groupdict().get("title", "")
            if _is_known(headers, form):
                rest, line = _after(content, text, match.end())
                return form.encode(), "\n" * title.count("\n") + headers, title + rest, line
    if LIKE_HEADERS.match(text):
        raise MarkdownError("these look like headers: put them between lines of ---, or put an empty line first", 1)
    return b"", "", content, 1


def _is_known(headers: str, form: str) -> bool:
    """Return whether enough names are known to rule out an ordinary paragraph that happens to begin like a header."""
    names = {match[1].lower() for match in map(HEADER_LINE.match, headers.splitlines()) if match}
    is_dated = names == {"date"} and bool(rfc3339_or_empty(headers.partition(":")[2]))  # Blot
    return "title" in names or form == "::" or is_dated or len(names & COMMON) > (form in ":#")


def _plain(headers: str, form: str) -> str:
    """Convert headers to the form that `read_headers` reads."""
    if form == "::":
        return headers.replace("\n  ", "\n")
    return f"date:{POSITIONS.sub('', headers)}" if form == "{post}" else headers


def _after(content: str, text: str, end: int) -> tuple[str, int]:
    """Return the content after the headers, which end at position `end` in `text`, and the number of its first line."""
    breaks = text.count("\n", 0, end)  # `text` is the beginning of `content` with LF in place of CRLF.
    return content[end + (breaks if "\r\n" in content[: end + 1] else 0) :], breaks + 1


def read_headers(text: str) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the values in headers, and the line number of each name. Raises MarkdownError if there are too many."""
    values: dict[str, Any] = {}
    lines: dict[str, int] = {}
    name = ""
    for number, line in enumerate(text.split("\n"), 1):
        if line[:1] in (" ", "\t") and name:
            values[name] = Plain(f"{values[name]} {line.strip()}".strip())
        elif match := HEADER_LINE.match(line):
            name = match[1].lower()
            values[name], lines[name] = Plain(LOGSEQ_DAY.sub(r"\1", match[2].strip())), number
        if len(values) > MAX_VALUES:
            raise MarkdownError(f"the front matter must have at most {MAX_VALUES:,} values", 1)
    return values, lines


def _end_of_json(text: str) -> int:
    """Return where the JSON object at the start of a string ends. Raises MarkdownError if it never ends."""
    without_text = JSON_STRING.sub(lambda match: " " * len(match[0]), text)
    depth = 0
    for match in re.finditer(r"[\[{\]}]", without_text):
        depth += 1 if match[0] in "[{" else -1
        if not depth:
            return match.end()
    raise MarkdownError(
        f"the front matter in JSON never ends, or is longer than {MAX_FRONT_MATTER_BYTES // 1024} KiB", 1
    )


def read_json(text: str) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the values in a JSON object as strings, lists and mappings, and the line number of each top-level name."""
    try:
        check_json(text.encode(), MAX_VALUES, MAX_DEPTH)
        values = json.loads(text, object_pairs_hook=_mapping, parse_float=Plain, parse_int=Plain, parse_constant=Plain)
        json.dumps(values, ensure_ascii=False).encode()  # raises UnicodeEncodeError for unpaired surrogates
    except OutOfBounds as error:
        raise MarkdownError(f"the front matter {error}", error.line) from None
    except json.JSONDecodeError as error:
        raise MarkdownError(f"not valid JSON: {error.msg}", error.lineno) from None
    except UnicodeEncodeError:
        raise MarkdownError("not valid JSON: half of a surrogate pair", 1) from None
    return values, {name: text.count("\n", 0, text.find(json.dumps(name, ensure_ascii=False))) + 1 for name in values}


def _mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a mapping whose scalars are text. Raises MarkdownError for a duplicate name."""
    values = {name: _as_text(value) for name, value in pairs}
    if len(values) < len(pairs):
        raise MarkdownError("a name is given twice", 1)
    return values


def _as_text(value: Any) -> Any:
    if isinstance(value, list):
        return list(map(_as_text, value))
    return Plain("" if value is None else str(value).lower()) if value is None or isinstance(value, bool) else value
