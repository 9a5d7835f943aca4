"""What a request carries, read strictly: its query and its JSON body, each loaded by a schema."""

import json
from typing import Any
from urllib.parse import parse_qsl

from flask import request
from marshmallow import Schema, ValidationError
from werkzeug.exceptions import BadRequest, RequestEntityTooLarge, UnsupportedMediaType

MAX_BODY_BYTES = 4 * 1024 * 1024
MAX_FIELDS = 100  # far beyond what any operation knows; each unknown one would make a message


def load_query(schema: Schema) -> dict[str, Any]:
    """Load the query by `schema`; raise ValidationError for unknown, repeated or invalid parameters."""
    try:
        pairs = parse_qsl(request.environ["QUERY_STRING"], keep_blank_values=True, errors="strict")
    except ValueError:
        raise BadRequest("query: must be percent-encoded UTF-8") from None
    values: dict[str, str] = {}
    for name, value in pairs:
        if name in values:
            raise ValidationError("given more than once", name)
        values[name] = value
    return schema.load(values)


def load_body(schema: Schema) -> dict[str, Any]:
    """Load the JSON body by `schema`; raise the HTTP error that says what is wrong with it."""
    require_json()
    try:
        text = read_body().decode()
        if text.startswith("\ufeff"):
            raise BadRequest("body: must not begin with a byte order mark")
        data = json.loads(text, object_pairs_hook=_without_repeats, parse_constant=_no_constant)
    except UnicodeDecodeError:
        raise BadRequest("body: must be UTF-8") from None
    except json.JSONDecodeError as error:
        raise BadRequest(f"body: must be JSON: {error.msg} at line {error.lineno} column {error.colno}") from None
    except RecursionError:
        raise BadRequest("body: must not be nested so deeply") from None
    except ValueError:  # from int()
        raise BadRequest("body: must not have a number of so many digits") from None
    if not isinstance(data, dict):
        raise BadRequest("body: must be a JSON object")
    if len(data) > MAX_FIELDS:
        raise BadRequest("body: must not have so many fields")
    return schema.load(data)


def require_json() -> None:
    """Raise UnsupportedMediaType unless the body is said to be JSON in UTF-8, without a content coding."""
    parameters = request.mimetype_params
    if request.mimetype != "application/json" or parameters.get("charset", "utf-8").lower() not in ("utf-8", "utf8"):
        raise UnsupportedMediaType("Content-Type: must be application/json")
    if request.headers.get("Content-Encoding", "").lower() not in ("", "identity"):
        raise UnsupportedMediaType("Content-Encoding: must be left out")


def read_body() -> bytes:
    """Read the body whole: raise RequestEntityTooLarge past MAX_BODY_BYTES, BadRequest if it ends early."""
    length = request.content_length
    if length is not None and length > MAX_BODY_BYTES:
        raise RequestEntityTooLarge(f"body: must be at most {MAX_BODY_BYTES:,} bytes")
    body = request.environ["wsgi.input"].read(MAX_BODY_BYTES + 1 if length is None else length)
    if len(body) > MAX_BODY_BYTES:
        raise RequestEntityTooLarge(f"body: must be at most {MAX_BODY_BYTES:,} bytes")
    if length is not None and len(body) < length:
        raise BadRequest("body: shorter than its Content-Length")
    return body


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise BadRequest("body: must not have the same name twice in an object")
    return values


def _no_constant(name: str) -> None:
    raise BadRequest(f"body: must be JSON, which has no {name}")
