"""What a request carries, read strictly: its query and its body, each loaded by the schema that is declared."""

import json
import re
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl

from flask import g, request
from marshmallow import Schema, ValidationError
from werkzeug.exceptions import BadRequest, RequestEntityTooLarge, UnsupportedMediaType

from blogapi.files.front_matter import MarkdownError
from blogapi.files.markdown import parse_strictly
from blogapi.web.responses import MARKDOWN

MAX_BODY_BYTES = 4 * 1024 * 1024
MAX_VALUES = 10_000
STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
MAX_FIELDS = 100  # far beyond what any operation knows; each unknown one would make a message


def cookie(name: str) -> str:
    """Return the value of a cookie, or "". Werkzeug parses all of them, in time that grows with the square."""
    for pair in request.environ.get("HTTP_COOKIE", "").split(";"):
        key, _, value = pair.strip().partition("=")
        if key == name:
            return value
    return ""


def load_query(schema: Schema) -> dict[str, Any]:
    """Load the query by `schema`; raise ValidationError for unknown, repeated or invalid parameters.

    What it returns is shared: not to be changed.
    """
    return _load_query(schema, request.environ["QUERY_STRING"])


@lru_cache(maxsize=256)  # Nothing but the text decides. Scripts repeat themselves: 7 % of a list.
def _load_query(schema: Schema, query: str) -> dict[str, Any]:
    try:
        pairs = parse_qsl(query, keep_blank_values=True, errors="strict")
    except ValueError:
        raise BadRequest("query: must be UTF-8, with or without percent-encoding") from None
    values: dict[str, str] = {}
    for name, value in pairs:
        if name in values:
            raise ValidationError("given more than once", name)
        values[name] = value
    return schema.load(values)


def load_body() -> dict[str, Any]:
    """Load the body as the operation declares it; `g.body` has its bytes.

    Raises ValidationError, or the HTTP error that says what is wrong with it.
    """
    return load_parsed(parse_body())


def load_parsed(fields: dict[str, Any]) -> dict[str, Any]:
    """Load what `parse_body` has returned as the operation declares it; raise ValidationError."""
    return g.operation.body.load(fields)


def parse_body() -> dict[str, Any]:
    """Return what the body says, JSON or Markdown, not validated yet; raise the HTTP error that says what is wrong.

    `g.lines` has the lines of the fields in a Markdown file, which what is said of them names.
    """
    mimetype = check_content_type(g.operation.content_types)
    g.body = body = read_body()
    return parse_markdown(body) if mimetype == MARKDOWN else parse_json(body)


def check_content_type(content_types: tuple[str, ...]) -> str:
    """Return of which of these types the body is said to be, in UTF-8 and not encoded; raise UnsupportedMediaType."""
    environ = request.environ
    if (exact := environ.get("CONTENT_TYPE")) in content_types and "HTTP_CONTENT_ENCODING" not in environ:
        return exact  # as mostly: to parse it takes a tenth of the time
    charset = request.mimetype_params.get("charset", "utf-8").lower()
    if request.mimetype not in content_types or charset not in ("utf-8", "utf8"):
        raise UnsupportedMediaType(f"Content-Type: must be {' or '.join(content_types)}")
    if request.headers.get("Content-Encoding", "").lower() not in ("", "identity"):
        raise UnsupportedMediaType("Content-Encoding: must be left out")
    return request.mimetype


def read_body(max_bytes: int = MAX_BODY_BYTES) -> bytes:
    """Read the body whole: raise RequestEntityTooLarge past `max_bytes`, BadRequest if it ends early."""
    length = request.content_length
    if length is not None and length > max_bytes:
        raise RequestEntityTooLarge(f"body: must be at most {max_bytes:,} bytes")
    body = request.environ["wsgi.input"].read(max_bytes + 1 if length is None else length)
    if len(body) > max_bytes:
        raise RequestEntityTooLarge(f"body: must be at most {max_bytes:,} bytes")
    if length is not None and len(body) < length:
        raise BadRequest("body: shorter than its Content-Length")
    return body


def parse_markdown(body: bytes) -> dict[str, Any]:
    """Return the fields of a post that a Markdown file gives; raise BadRequest saying what is wrong with it."""
    try:
        document = parse_strictly(body)
        g.lines = document.lines
        return document.fields
    except MarkdownError as error:
        raise BadRequest(f"body: {error}") from None


def parse_json(body: bytes) -> dict[str, Any]:
    """Parse a JSON object strictly (RFC 8259); raise BadRequest saying what is wrong with it."""
    try:
        text = body.decode()
        if text.startswith("\ufeff"):
            raise BadRequest("body: must not begin with a byte order mark")
        _check_size(text)
        data = json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise BadRequest("body: must be UTF-8") from None
    except json.JSONDecodeError as error:
        raise BadRequest(f"body: must be JSON: {error.msg} at line {error.lineno} column {error.colno}") from None
    except RecursionError:
        raise BadRequest("body: must not be nested so deeply") from None
    except ValueError:  # from int()
        raise BadRequest("body: must have numbers of at most 4,300 digits") from None
    if not isinstance(data, dict):
        raise BadRequest("body: must be a JSON object")
    if len(data) > MAX_FIELDS:
        raise BadRequest(f"body: must have at most {MAX_FIELDS} fields")
    return data


def _check_size(text: str) -> None:
    """Raise BadRequest for far more values than any operation takes: 4 MiB of brackets would take a second to parse."""
    if sum(map(text.count, '[{,"')) < MAX_VALUES:
        return
    values = end = 0
    for string in STRING.finditer(text):
        values += 1 + sum(map(text[end : string.start()].count, "[{,"))
        end = string.end()
        if values > MAX_VALUES:
            break
    if values + sum(map(text[end:].count, "[{,")) > MAX_VALUES:
        raise BadRequest(f"body: must have at most {MAX_VALUES:,} values")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise BadRequest("body: must not have the same name twice in an object")
    return values


def _no_constant(name: str) -> None:
    raise BadRequest(f"body: must be JSON, which has no {name}")
