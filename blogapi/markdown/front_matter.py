"""Read front matter in YAML or TOML. Scalars stay text, as spelled in the file, until `typed` converts them."""

import re
import tomllib
from bisect import bisect_left
from typing import Any

import yaml

from blogapi.bounded import TOML_TEXT, OutOfBounds, check_toml, yaml_events
from blogapi.documents import MAX_INTEGER

MAX_FRONT_MATTER_BYTES = 64 * 1024
MAX_DEPTH = 16
MAX_DIGITS = 400  # A longer integer in YAML is read as text.
MAX_VALUES = 2000  # maximum number of values, including names and the ends of lists

NOT_UTF_8 = "must be UTF-8"
OPENING = re.compile(rb"(---|\+\+\+)[ \t]*(?:\r?\n|\Z)")
BLANK = re.compile(rb"\s+(?=(?:---|\+\+\+)[ \t]*\r?\n)")
# Each pattern includes the line break after the delimiter and one blank line, which are not part of the content.
CLOSING = {
    b"---": re.compile(rb"^(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)(\r?\n)?", re.MULTILINE),
    b"+++": re.compile(rb"^\+\+\+[ \t]*(?:\r?\n|\Z)(\r?\n)?", re.MULTILINE),
}
# Characters that YAML 1.2 forbids (5.1), except surrogates, which decoding has already rejected
NOT_PRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff]")

# phrase in a parser's message -> message to show instead. libyaml and PyYAML share these phrases, but not the rest of
# their messages.
PARSER_HINTS = {
    "mapping values are not allowed": "mapping values are not allowed here: put the text in quotes",
    "cannot start any token": "a character cannot start any token: put the text in quotes, and spaces instead of tabs",
    "Invalid value": "Invalid value: text must be in quotes",
}

# Scalars of YAML's core schema (YAML 1.2, 10.3.2) that are not text
NULL = re.compile("|null|Null|NULL|~")
BOOLEAN = re.compile("(true|True|TRUE)|false|False|FALSE")
INTEGER = re.compile("[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
FLOAT = re.compile(r"[-+]?((\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|\.inf|\.Inf|\.INF)|\.nan|\.NaN|\.NAN")

# The second group matches a number, boolean or date, which `read_toml` puts in quotes to keep it as text. If that
# group is empty, the pattern has matched a string or a table header (which looks like a list), which is not changed.
TOML_VALUE = re.compile(
    rf"{TOML_TEXT}|^[ \t]*\[{{1,2}}[^\],\n]*\]{{1,2}}[ \t]*(?:\#[^\n]*)?$"
    r"|([=,\[](?:\s|\#[^\n]*\n)*)([^\s\"'#\[\]{}=,]++(?:[ ]\d\d:[^\s#\]},]++)?+)(?![ \t]*[.=])",
    re.DOTALL | re.MULTILINE | re.ASCII,
)
TOML_NAME = re.compile(r"[ \t]*+\[{0,2}[ \t]*+[\"']?([^\"'.=\]]++)[\"']?[ \t]*+[.=\]]")

# Characters unsafe on a terminal: control characters, line separators, direction marks, and unpaired surrogates
NOT_SHOWN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class MarkdownError(Exception):
    """An error in a Markdown file, described for the file's author, with the line number if known."""

    def __init__(self, reason: str, line: int | None = None):
        super().__init__(f"line {line}: {reason}" if line else reason)
        self.reason = reason
        self.line = line


class Plain(str):
    """The text of an unquoted scalar."""

    @property
    def value(self) -> Any:
        """The scalar's value in YAML's core schema."""
        if NULL.fullmatch(self):
            return None
        if match := BOOLEAN.fullmatch(self):
            return match[1] is not None
        if INTEGER.fullmatch(self):
            base = 0 if self.startswith(("0o", "0x")) else 10  # 0: the prefix determines the base
            number = int(self, base) if len(self) < MAX_DIGITS else MAX_INTEGER + 1
            return number if abs(number) <= MAX_INTEGER else str(self)
        if FLOAT.fullmatch(self):
            return float(self.lower().replace(".inf", "inf").replace(".nan", "nan"))
        return str(self)


class TomlScalar(Plain):
    """The text of a number or boolean in TOML, with its value."""

    value: Any = None


def typed(value: Any) -> Any:
    """Convert parsed front matter to strings, numbers, booleans, lists and mappings, skipping null values."""
    if isinstance(value, dict):
        return {name: element for name, part in value.items() if (element := typed(part)) is not None}
    if isinstance(value, list):
        return [element for part in value if (element := typed(part)) is not None]
    return value.value if isinstance(value, Plain) else value


def split(data: bytes, *, skip_blank: bool = False) -> tuple[bytes, str, str, int]:
    """Return a Markdown file's delimiter, front matter, content, and the line number where the content begins.

    With `skip_blank`, the file may begin with blank lines. The returned front matter then begins with as many empty
    lines, so that line numbers stay correct.
    """
    if b"\0" in data[:4]:
        raise MarkdownError(f"{NOT_UTF_8}: this seems to be UTF-16", 1)
    data = data.removeprefix(b"\xef\xbb\xbf")
    blank = BLANK.match(data) if skip_blank else None
    skipped, data = (blank[0].count(b"\n"), data[blank.end() :]) if blank else (0, data)
    opening = OPENING.match(data)
    if not opening:
        return b"", "", _decode(data, 1), 1
    closing = CLOSING[opening[1]].search(data, opening.end(), opening.end() + MAX_FRONT_MATTER_BYTES + 7)
    if not closing or closing.start() - opening.end() > MAX_FRONT_MATTER_BYTES:
        if len(data) - opening.end() > MAX_FRONT_MATTER_BYTES:
            raise MarkdownError(f"the front matter must have at most {MAX_FRONT_MATTER_BYTES // 1024} KiB", 1 + skipped)
        reason = f"the front matter never ends: the closing line {opening[1].decode()} is missing"
        raise MarkdownError(reason, 1 + skipped)
    text = "\n" * skipped + _decode(data[opening.end() : closing.start()], 2 + skipped)
    line = text.count("\n") + (4 if closing[1] else 3)
    return opening[1], text, _decode(data[closing.end() :], line), line


def shortened(name: str) -> str:
    return f"`{name}`" if len(name) <= 40 else f"`{name[:40]}…`"


def shown(text: str) -> str:
    """Make a string, such as a file name, safe to print on a terminal."""
    return NOT_SHOWN.sub("\ufffd", text)


def _decode(data: bytes, first_line: int) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise MarkdownError(NOT_UTF_8, first_line + data.count(b"\n", 0, error.start)) from None


class YamlReader:
    """Reads a YAML mapping event by event, and checks every event before building a value from it."""

    def __init__(self, text: str):
        self.breaks = [match.start() for match in re.finditer("\n", text)]
        self.next = yaml_events(text, MAX_VALUES, MAX_DEPTH).__next__
        self.lines: dict[str, int] = {}  # name -> line number

    def line(self, mark: Any) -> int:
        """Return a mark's line number. The parser's own number also counts other characters than LF as line breaks."""
        return bisect_left(self.breaks, mark.index) + 2  # In the file, the YAML begins on line 2.

    def read(self) -> dict[str, Any]:
        self.next()  # the start of the stream
        if isinstance(self.next(), yaml.StreamEndEvent):
            return {}
        event = self.next()
        values = self._node(event, 0)
        if not isinstance(values, dict):
            raise self._error("must be names with values, such as `title: Hello`", event)
        self.next()  # the end of the document
        if not isinstance(event := self.next(), yaml.StreamEndEvent):
            raise self._error("the front matter must be one document", event)
        return values

    def _error(self, reason: str, event: yaml.Event) -> MarkdownError:
        return MarkdownError(reason, self.line(event.start_mark))

    def _node(self, event: yaml.Event, depth: int) -> Any:
        if getattr(event, "anchor", None) is not None:
            raise self._error("anchors and aliases (& and *) are not allowed", event)
        if getattr(event, "tag", None) is not None:
            raise self._error("tags (!) are not allowed", event)
        if isinstance(event, yaml.ScalarEvent):
            return Plain(event.value) if event.implicit[0] else event.value
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(depth + 1)
        items = []
        while not isinstance(event := self.next(), yaml.SequenceEndEvent):
            items.append(self._node(event, depth + 1))
        return items

    def _mapping(self, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        while not isinstance(event := self.next(), yaml.MappingEndEvent):
            if not isinstance(name := self._node(event, depth), str):
                raise self._error("a name must be text", event)
            name = str(name)
            if name in values:
                raise self._error(f"{shortened(name)} is given twice", event)
            values[name] = self._node(self.next(), depth)
            if depth == 1:
                self.lines[name] = self.line(event.start_mark)
        return values


def read_yaml(text: str) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the values in YAML as strings, lists and mappings, and the line number of each top-level name."""
    if unusable := NOT_PRINTABLE.search(text):
        raise MarkdownError("control characters are not allowed", text.count("\n", 0, unusable.start()) + 2)
    reader = YamlReader(text)
    try:
        return reader.read(), reader.lines
    except OutOfBounds as error:
        raise MarkdownError(f"the front matter {error}", error.line + 1) from None
    except yaml.MarkedYAMLError as error:
        # Report an unclosed quotation where it begins, not at the end of the file.
        mark = ((error.context or "").startswith("while scanning") and error.context_mark) or error.problem_mark
        raise MarkdownError(f"not valid YAML: {_hint(error.problem)}", reader.line(mark)) from None


def _hint(problem: str | None) -> str:
    """Return our own message for a problem that a parser reports, or the parser's message if we have none."""
    problem = problem or ""
    return next((message for words, message in PARSER_HINTS.items() if words in problem), problem)


def read_toml(text: str) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the values in TOML as strings, lists and mappings, and the line number of each top-level name."""
    text = text.replace("\r\n", "\n")
    try:
        check_toml(text, MAX_VALUES, MAX_DEPTH)
        values = tomllib.loads(text)
        texts = tomllib.loads(TOML_VALUE.sub(lambda match: f"{match[1]}'{match[2]}'" if match[2] else match[0], text))
    except tomllib.TOMLDecodeError as error:
        reason, _, place = str(error).rpartition(" (at ")
        position = re.match(r"line (\d+)", place)
        line = int(position[1]) + 1 if position else text.rstrip("\n").count("\n") + 2
        raise MarkdownError(f"not valid TOML: {_hint(reason[:200])}", line) from None
    except OutOfBounds as error:
        raise MarkdownError(f"the front matter {error}", error.line + 1) from None
    except (RecursionError, ValueError):
        raise MarkdownError("not valid TOML: nested too deeply, or a number with too many digits", 2) from None
    names = [*enumerate(map(TOML_NAME.match, text.split("\n")), 2)]
    lines = {name[1].strip(): number for number, name in reversed(names) if name}  # the first line of each name
    return _with_values(texts, values), {name: lines.get(name, 2) for name in values}


def _with_values(text: Any, value: Any) -> Any:
    """Return a TOML value with its scalars as text, where numbers and booleans also hold the parsed value."""
    if isinstance(value, dict):
        return {name: _with_values(text[name], part) for name, part in value.items()}
    if isinstance(value, list):
        return list(map(_with_values, text, value))
    if isinstance(value, bool | int | float):
        text = TomlScalar(text)
        text.value = value
    return text
