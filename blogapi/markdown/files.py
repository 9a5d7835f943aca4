"""Read and write a post as a Markdown file."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, tzinfo
from functools import lru_cache
from typing import Any, NamedTuple

from blogapi.config import zone_named
from blogapi.documents import ID_PATTERN
from blogapi.markdown.fields import BY_LOWER_CASE, FIELD_NAMES, KNOWN, KNOWN_IN_REQUESTS, read_fields, renamed
from blogapi.markdown.front_matter import MarkdownError, read_toml, read_yaml, shortened, split, typed
from blogapi.markdown.headers import read_headers, read_json, split_headers
from blogapi.markdown.programs import ANY, OURS, WRITTEN, Program, recognized_by, with_date_name
from blogapi.markdown.public import hides
from blogapi.text import CONTROL, VISIBLE

MAX_FILE_BYTES = 4 * 1024 * 1024  # maximum size of an imported file; exported files are always smaller
CACHED_CHARACTERS = 1024  # longer front matter is not cached
FRONT_MATTER_LANGUAGE = re.compile(rb"---(\w+)[ \t]*(?=\r?\n)")  # an opening line with a language: ---json
PARSERS = {b"+++": read_toml, b"---": read_yaml, b"": read_yaml, b"{": read_json}  # delimiter -> parser
TITLE_HEADING = re.compile(r"^ {0,3}#(?:[ \t]+([^\r\n]*)|$)", re.MULTILINE)

UNQUOTED = ("published_at", "created_at", "date", "lastmod", "draft", "permalink")  # written without quotes
LASTMOD, PERMALINK = "lastmod", "permalink"  # `render` adds these to flat files, for Hugo and Eleventy
EXPORTED_NAMES = {"id", "created_at", "title", "slug"}  # `render` writes these, and a status if the file is not flat
# Words that YAML 1.1 or 1.2 does not read as text
YAML_WORDS = {"true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf", "infinity"}
# Characters that some YAML parsers refuse inside quotes
ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
EXPONENT = re.compile("^(-?[0-9]+)(e)")  # YAML 1.1 reads 1e5 as text, but 1.0e5 as a number.


class MarkdownFile(NamedTuple):
    """A parsed Markdown file."""

    fields: dict[str, Any]  # the post's fields as in JSON, including `content`; times are in RFC 3339
    created_at: str | None = None  # in RFC 3339
    number: int = 0  # the post's `id` in the service that exported it, or 0
    others: Mapping[str, Any] = {}  # values that belong to no field, before conversion; they are also in `params`
    values: Mapping[str, Any] = {}  # all values in the front matter, before conversion
    sources: Mapping[str, str] = {}  # the name that the file uses for each field
    lines: Mapping[str, int] = {}  # name -> line number
    content_line: int = 0  # the line where the content begins; 0 if the post is from an export
    program: Program = ANY  # the program that wrote the file
    is_exported: bool = False  # whether the file is a complete export; if so, its path adds nothing to the post

    def line_of(self, field: str) -> int | None:
        """Return the line number of a field, if known. For `content`, return that of its first control character."""
        field, _, place = field.partition(".")
        field = max(filter(place.startswith, self.others), key=len, default=field) if place else field.partition("[")[0]
        if field != "content" or not self.content_line:
            return self.lines.get(self.sources.get(field, field))
        content = self.fields["content"]
        control = CONTROL.search(content)
        return control and self.content_line + content.count("\n", 0, control.start())


class ReadOptions(NamedTuple):
    """How to read front matter. By default, any program may have written it."""

    program: Program | None = ANY  # None for a request, which must use this service's names
    keeps_others: bool = True  # whether to keep unknown names in `params` rather than report them as errors
    zone: tzinfo = UTC  # time zone for times without an offset
    date_from: str = ""  # the name to read the date from if the file has no other date


DEFAULT = ReadOptions()


def parse(data: bytes, options: ReadOptions = DEFAULT) -> MarkdownFile:
    """Read a Markdown file. Raises MarkdownError."""
    is_request = options.program is None
    language = None if is_request else FRONT_MATTER_LANGUAGE.match(data)
    if language:
        if language[1] not in (b"json", b"toml", b"yaml", b"yml"):  # The YAML parser also reads JSON.
            name = "JavaScript" if language[1].startswith(b"j") else shortened(language[1].decode(errors="replace"))
            raise MarkdownError(f"front matter in {name} cannot be read: write it as YAML", 1)
        data = b"---" + data[language.end() :]
    delimiter, text, content, line = split(data, skip_blank=not is_request)
    if language and language[1] == b"toml":
        delimiter = b"+++"
    if not delimiter and not is_request:
        delimiter, text, content, line = split_headers(content)
    read = _read if len(text) <= CACHED_CHARACTERS else _read.__wrapped__
    file = read(delimiter, text, options)
    fields = {**file.fields, "content": content}
    if "title" not in fields and (title := heading(content)):
        fields["title"] = title
    return file._replace(fields=fields, content_line=line)


@lru_cache(maxsize=512)  # Clients that sync a folder send the same files again and again.
def _read(delimiter: bytes, text: str, options: ReadOptions) -> MarkdownFile:
    values, lines = all_values, all_lines = PARSERS.get(delimiter, read_headers)(text)
    program, zone = options.program, options.zone
    if program is ANY:
        program = recognized_by(delimiter.decode(), values)
        zone = zone_named(program.zone) or zone
    if program:
        program = OURS if lines.keys() >= EXPORTED_NAMES else program
        dated = with_date_name(program, options.date_from) if options.date_from else program
        values, lines = renamed(values, lines, dated)
    is_exported = lines.keys() >= EXPORTED_NAMES and ("status" in lines or "published_at" not in all_lines)
    if is_exported and options.keeps_others and ("status" not in values or "draft" in values):
        values = _without_added(values)
    known = KNOWN if program else KNOWN_IN_REQUESTS
    others = {name: value for name, value in values.items() if name not in known}
    if others and not options.keeps_others:
        name = next(iter(others))
        names = f"{', '.join(FIELD_NAMES)}, and `id` and `created_at`, which are ignored"
        ways_out = "put it into `params`, or add ?unknown=params to the URL"
        raise MarkdownError(f"{shortened(name)} is unknown: {ways_out}; known: {names}", lines[name])
    fields, sources = read_fields(values, lines, others, program, zone)
    if options.keeps_others and (params := typed(others) | fields.get("params", {})):
        for name in others.keys() & fields.get("params", {}).keys():
            raise MarkdownError(f"{shortened(name)} is also in `params`", lines[name])
        fields["params"] = params
    number = re.fullmatch(ID_PATTERN, str(values.get("id", "")))
    created_at, own_id = fields.pop("created_at", None), int(number[0]) if number else 0
    contents = fields, created_at, own_id, others, all_values | values, sources, all_lines | lines
    return MarkdownFile(*contents, program=program or ANY, is_exported=is_exported)


def _without_added(values: dict[str, Any]) -> dict[str, Any]:
    """Return a flat file's values without those that `render` added. Names after `created_at` are the author's."""
    names = [*values]
    added = {LASTMOD, PERMALINK}.intersection(names[: names.index("created_at")])
    return {name: value for name, value in values.items() if name not in added}


def _is_read(name: str, post: Mapping[str, Any]) -> bool:
    """Return whether a param would be read as a field, or make the post a draft, if it moved to the top level."""
    is_hiding = post["status"] in ("published", "scheduled") and hides(name, post["params"][name])
    return is_hiding or name.lower() in BY_LOWER_CASE


def render(post: Mapping[str, Any], *, flat: bool = False) -> bytes:
    """Return a post as a Markdown file that `parse` reads back as the same post.

    With `flat`, other programs can also read the file. The status and the date have the names that such programs use,
    and `params` move to the top level. A param does not move if its name would mean something else there.
    """
    values = {name: post[name] for name in WRITTEN if post.get(name)}
    params = values.get("params", {})
    at_top = {name: value for name, value in params.items() if flat and not _is_read(name, post)}
    if PERMALINK in at_top and post["status"] != "published":
        at_top = dict([*at_top.items()][: [*at_top].index(PERMALINK)])
    if at_top:
        values["params"] = {name: value for name, value in params.items() if name not in at_top}
    lines = []
    for name, value in (_for_others(values, post) if flat else values).items():
        if name == "params":
            lines += [block(at_top), block({name: value}) if value else ""]
        else:
            lines.append(f"{name}: {value if name in UNQUOTED else _written(value)}\n")
    return f"---\n{''.join(lines)}---\n\n{post['content']}".encode()


def _for_others(values: dict[str, Any], post: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a flat file. Hugo and Eleventy skip a draft's file, but Jekyll publishes it."""
    status, params = values["status"], {name.lower() for name in post.get("params", {})}
    ours = {name: value for name, value in values.items() if name not in ("status", "published_at")}
    top: dict[str, Any] = {"title": values["title"], "slug": values["slug"]}
    if status != "published":
        top |= {"draft": "true", PERMALINK: "false"}
    top |= {"status": status} if status in ("scheduled", "archived") else {}
    top |= {"date": values["published_at"]} if "published_at" in values else {}
    top |= {} if LASTMOD in params else {LASTMOD: post.get("updated_at")}
    return {name: value for name, value in (top | ours).items() if value or name == "params"}


def block(values: Mapping[str, Any], indent: str = "") -> str:
    """Write values as block YAML that parsers of YAML 1.1 and of YAML 1.2 read the same way."""
    return "".join(_entry(f"{indent}{_written(name)}:", value, indent) for name, value in values.items())


def read_block(text: str) -> dict[str, Any]:
    """Read YAML written by `block`. Raises MarkdownError with a line number in `text`."""
    try:
        return typed(read_yaml(text)[0])
    except MarkdownError as error:
        # `read_yaml` counts an opening delimiter as line 1, but `text` has no delimiter.
        raise MarkdownError(error.reason, error.line and max(1, error.line - 1)) from None


def _entry(start: str, value: Any, indent: str) -> str:
    if isinstance(value, dict) and value:
        return f"{start}\n{block(value, f'{indent}  ')}"
    if isinstance(value, list) and value:
        return f"{start}\n" + "".join(_entry(f"{indent}  -", element, f"{indent}  ") for element in value)
    if isinstance(value, str):
        return f"{start} {_written(value)}\n"
    number = EXPONENT.sub(r"\1.0\2", json.dumps(value))
    return f"{start} {number}\n"


def heading(content: str) -> str:
    """Return the text of a level-1 ATX heading (CommonMark, 4.2) at the beginning of the content, or ""."""
    match = TITLE_HEADING.search(content)
    if not match or VISIBLE.search(content[: match.start()]):
        return ""
    text = (match[1] or "").rstrip(" \t")
    opened = text.rstrip("#")  # without the closing sequence, if any
    return opened.strip(" \t") if opened[-1:] in ("", " ", "\t") else text


def _written(value: str | list[str], also_special: str = "") -> str:
    """Write a string in double quotes, or without quotes if every YAML parser then still reads the same string."""
    if isinstance(value, list):
        return f"[{', '.join(_written(text, ',[]{}:?') for text in value)}]"
    is_text = value[:1].isalpha() and value.isprintable() and value.lower() not in YAML_WORDS
    if is_text and value[-1] not in " :" and not any(map(value.__contains__, (": ", " #", *also_special))):
        return value
    return ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(value, ensure_ascii=False))
