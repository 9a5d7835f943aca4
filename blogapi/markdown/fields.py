"""Read a post's fields from front matter, under the names that blogapi and other programs use."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import Any

from blogapi.documents import FIELDS, STATUSES, Kind
from blogapi.markdown.dates import rfc3339_of
from blogapi.markdown.front_matter import MarkdownError, Plain, typed
from blogapi.markdown.programs import IMPORTED, NAMES_OF_FIELDS, OURS, Program

TRUTH_VALUES = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
TRUTH_NUMBERS = {"1": "true", "0": "false"}
# word for a status, in other programs and in blogapi -> status in blogapi
STATUS_WORDS = {
    **dict.fromkeys(("publish", "live", "public", "featured"), "published"),
    **{"future": "scheduled", "pending": "draft", "private": "draft", "trash": "trash"},
    **{status: status for status in STATUSES},
}
URL_KEYS = ("url", "src", "image", "path")  # keys for an image's URL if the image is a mapping
TAG_KEYS = ("name", "title", "label", "slug")  # keys for a tag's name if the tag is a mapping
LINKED_TAG = re.compile(r"#(?=\D)(.+)|\[\[(.+)\]\]")
IN_BRACKETS = re.compile(r"\[[^\[\]]*\]")  # Bear writes a list as a string in brackets.
EPOCH = re.compile(r"(\d{10})(\d{3})?", re.ASCII)  # Unix time in seconds or milliseconds


def renamed(values: dict[str, Any], lines: dict[str, int], program: Program) -> tuple[dict[str, Any], dict[str, int]]:
    """Rename another program's fields to names in NAMES_OF_FIELDS. Values already under these names take precedence."""
    values = {name: value for name, value in values.items() if not _is_null(value)}
    for name in [name for name in values if name.lower() in program.flattened and isinstance(values[name], dict)]:
        lifted = {key: value for key, value in values[name].items() if key.lower() in BY_LOWER_CASE}
        others = {key: value for key, value in values[name].items() if key not in lifted}
        lines = dict.fromkeys(lifted, lines[name]) | lines
        at_top = {key: value for key, value in values.items() if key != name}
        values = lifted | at_top | ({name: others} if others else {})
    names = {name: BY_LOWER_CASE.get(name.lower(), name) for name in values}  # as in Hugo, case does not matter
    lower = {name.lower(): name for name in values}
    fields = {FIELD_CONVERTERS[known][0] for name, known in names.items() if known in FIELD_CONVERTERS and values[name]}
    for field, theirs in program.field_names.items():
        for name in (lower[alias] for alias in theirs if alias in lower and values[lower[alias]]):
            is_begun = name.lower() in program.creation_dates and "status" not in fields
            if field in fields or is_begun or (field == "status" and str(values[name]).lower() not in TRUTH_VALUES):
                continue
            fields.add(field)
            names[name] = {"published_at": "date", "status": "published"}.get(field, field)
            if field == "cover_image":  # Keep the original name as well, because templates may use it.
                values, lines = values | {field: values[name]}, {field: lines[name]} | lines
                names |= {name: name, field: field}
    values = {names[name]: _as_time(value) if names[name] == "date" else value for name, value in values.items()}
    return values, {names[name]: lines[name] for name in names}


def _is_null(value: Any) -> bool:
    return isinstance(value, Plain) and value != "" and value.value is None


def _as_time(value: Any) -> Any:
    """Convert a Unix time, or a mapping with the date under `created` (MkDocs), to a date in text form."""
    value = value.get("created", value) if isinstance(value, dict) else value
    match = EPOCH.fullmatch(value) if isinstance(value, str) else None
    return datetime.fromtimestamp(int(match[1]), UTC).isoformat() if match else value


def read_fields(
    values: dict[str, Any], lines: dict[str, int], others: dict[str, Any], program: Program | None, zone: tzinfo
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the fields in front matter, and their names in the file. Values that do not fit a field go to `others`."""
    fields: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for name in [name for name in FIELD_CONVERTERS if name in values and (program or name not in NOT_IN_REQUESTS)]:
        if program and name == "date" and program.date_keywords.fullmatch(str(values[name])):
            others[name] = values[name]
            continue
        field, value = _read_field(name, values[name], lines[name], program, zone)
        size = len(values[name]) if field == "cover_image" and isinstance(values[name], dict | list) else 0
        if size > 1 or (field == "cover_image" and values[name] and not value and program):
            others[name] = values[name]  # The field holds only one URL.
        if not value and name != "former_slugs":  # An empty list clears the former slugs.
            continue
        source = sources.setdefault(field, name)
        if field == "tags":
            fields[field] = fields.get(field, []) + value
        elif fields.setdefault(field, value) != value:
            if not program:  # a request
                raise MarkdownError(f"`{name}` and `{source}` have different values", lines[name])
            if field == "status" and value == "draft" and fields[field] == "published":
                fields[field], sources[field], name = value, name, source
            if field != "status" or name == "status":
                others[name] = values[name]
    return fields, sources


def _read_field(name: str, value: Any, line: int, program: Program | None, zone: tzinfo) -> tuple[str, Any]:
    is_day = name == "published" and isinstance(value, str) and value[:1].isdigit() and value not in TRUTH_NUMBERS
    field, convert = FIELD_CONVERTERS["published_at" if is_day else name]
    if program:
        value = value if program is OURS else _simplify(name, field, value)
    try:
        result: Any = _time(value, zone) if convert is _time else convert(value)
    except ValueError as error:
        raise MarkdownError(f"`{name}` {error}", line) from None
    if field == "tags" and program:
        result = _split_tags(result, value if name in ("tags", "categories") else None, program)
    return field, result


def _simplify(name: str, field: str, value: Any) -> Any:
    """Convert another program's value to a form that is valid in a request."""
    if field == "title" and isinstance(value, str):
        return value.strip()
    if field == "status" and isinstance(value, str):
        return STATUS_WORDS.get(value.lower(), value) if name == "status" else TRUTH_NUMBERS.get(value, value)
    if field == "cover_image" and str(value).lower() in TRUTH_VALUES:
        return ""
    if field == "cover_image" and isinstance(value, list):
        value = next(iter(value), "")
    if field == "cover_image" and isinstance(value, dict) and not value.keys() & set(URL_KEYS):
        return ""
    if field == "tags" and isinstance(value, str) and IN_BRACKETS.fullmatch(value):
        return value[1:-1].replace('"', "")
    if field == "tags" and isinstance(value, list):
        return [part for element in value if not _is_null(element) for part in _tags_in(element)]
    return value


def _tags_in(value: Any) -> list[Any]:
    """Return the tags in one element of a list: a tag, a mapping that contains a tag's name, or a list of both."""
    if isinstance(value, list):
        return [part for element in value for part in _tags_in(element)]
    return [next((value[name] for name in TAG_KEYS if name in value), value)] if isinstance(value, dict) else [value]


def _split_tags(tags: list[str], value: Any, program: Program) -> list[str]:
    """Split tags in one string by the program's rules, and remove the `#` or `[[…]]` of linked tags."""
    if isinstance(value, str) and program.tag_separator == " " and len(tags) == 1:
        tags = tags[0].split()
    if isinstance(value, str) and program.tag_separator == "" and tags:
        tags = [value.strip()]
    if program.has_linked_tags:
        if isinstance(value, str) and all(word.startswith("#") for word in value.split()):
            tags = value.split()
        tags = [match[1] or match[2] if (match := LINKED_TAG.fullmatch(tag)) else tag for tag in tags]
    return tags


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("must be text")
    return str(value)


def _time(value: Any, zone: tzinfo = UTC) -> str:
    return rfc3339_of(text, zone) if (text := _text(value)) else ""


def _tags(value: Any) -> list[str]:
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("must be a list, or text with commas between the tags")
    return [name.strip() if isinstance(value, str) else str(name) for name in names if name.strip()]


def _url(value: Any) -> str:
    if isinstance(value, dict):
        value = next((value[name] for name in URL_KEYS if name in value), None)
        if value is None:
            raise ValueError("must be a URL, or have a `url` or `src`")
    return _text(value)


def _params(value: Any) -> dict[str, Any]:
    value = typed(value)
    if not isinstance(value, dict) and value not in (None, ""):
        raise ValueError("must be names with values")
    return value or {}


def _status(if_true: str, if_false: str, value: Any) -> str:
    if value == "":
        return ""
    if not isinstance(value, str) or value.lower() not in TRUTH_VALUES:
        raise ValueError("must be true or false")
    return if_true if TRUTH_VALUES[value.lower()] else if_false


CONVERTERS: dict[Kind, Callable[..., Any]] = {
    **dict.fromkeys(("line", "text", "slug", "status"), _text),
    **{"tags": _tags, "slugs": _tags, "time": _time, "url": _url, "params": _params},
}
FLAG_CONVERTERS = {"draft": partial(_status, "draft", "published"), "published": partial(_status, "published", "draft")}
# Maps each name to its field and to the function that converts the value. A field's own name precedes its other names.
FIELD_CONVERTERS: dict[str, tuple[str, Callable[..., Any]]] = {
    name: (field, FLAG_CONVERTERS.get(name, CONVERTERS[FIELDS[field].kind]))
    for field, names in NAMES_OF_FIELDS.items()
    for name in names
}
IGNORED = ("id", "created_at")  # names that a request may contain, but that have no effect
NOT_IN_REQUESTS = (*IGNORED, *IMPORTED)
FIELD_NAMES = tuple(field for field in NAMES_OF_FIELDS if field not in IGNORED)
KNOWN = (*FIELD_CONVERTERS, *IGNORED)  # names at the top level that are not kept as `params`
KNOWN_IN_REQUESTS = tuple(name for name in KNOWN if name not in IMPORTED)
BY_LOWER_CASE = {name.lower(): name for name in KNOWN}
