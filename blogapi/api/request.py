"""Parse requests strictly: the query, the body, and preconditions."""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, cast
from urllib.parse import parse_qsl

import flask
from marshmallow import Schema, ValidationError, fields
from werkzeug import exceptions
from werkzeug.exceptions import BadRequest

from blogapi.api.limiter import Quota
from blogapi.api.operations import JSON, MARKDOWN, Operation
from blogapi.api.service import SERVICE, Service
from blogapi.bounded import OutOfBounds, check_json, check_number
from blogapi.documents import SET_BY_SERVICE, etags
from blogapi.storage.database import Database
from blogapi.storage.keys import KnownKey
from blogapi.storage.models import DRAFTS_ONLY, OWNER, PUBLISHED_ONLY, Author

JSON_TYPES = (JSON, "application/merge-patch+json")  # accepted for a PATCH body (RFC 7396)
READ_METHODS = ("GET", "HEAD")
INFO = "blogapi.info"  # key of the RequestInfo in the WSGI environment
MAX_BODY_BYTES = 4 * 1024 * 1024
MAX_BODY_VALUES = 10_000
MAX_BODY_DEPTH = 100  # maximum depth of nested arrays and objects
MAX_SHOWN = 80  # messages quote at most this many characters of a header or a name
MAX_QUOTED = 20  # messages quote at most this many characters of an invalid body
MAX_BODY_FIELDS = 100  # well above the number of fields in any schema; this limit keeps error messages short
LIST_INDEX = re.compile(r"\[[0-9]{0,4}\]$")  # allowed after the name of a list: fields[]=slug or fields[0]=slug


class RequestInfo:
    """The data about a request that our server needs for its log, metrics and limits. Other servers do not use it."""

    key_name = ""  # name of the valid API key
    credential = ""  # the valid API key, or the token of the session
    endpoint: str | None = None  # BLUEPRINT.VIEW
    cause = ""  # cause of an error
    max_body_bytes = 0  # maximum size of a body that is read in pieces; 0 if it is read at once
    kept_bytes = 0  # number of bytes in memory of a body that is read in pieces


class Request(flask.Request):
    """A request with its key, its loaded query, and other state for later stages."""

    key: KnownKey | None = None  # the valid API key, if any
    quota: Quota | None = None  # the remaining quota of the key
    session = ""  # the token of the valid session on the owner's page
    error_page: Callable[[int, str], str] | None = None  # renders an error page from a status and a message
    operation: Operation  # the requested operation
    query: Mapping[str, Any]  # loaded with the operation's schema
    body = b""
    file: Any = None  # the MarkdownFile in the body, if any; its `line_of` returns the line of a field

    def __init__(self, environ: dict[str, Any]):
        super().__init__(environ)
        self.service: Service = environ[SERVICE]
        self.info: RequestInfo = environ.get(INFO) or RequestInfo()

    @property
    def client(self) -> bytes | str:
        """The client that takes turns with others: a key or session, or "", which all strangers share here."""
        return self.key.digest if self.key else self.session

    @property
    def database(self) -> Database:
        return self.service.database

    def with_prefix(self, path: str) -> str:
        """Return a path of the service, prefixed with the path of BLOGAPI_URL."""
        return self.service.config.prefix + path

    @property
    def author(self) -> Author:
        """The author of the request's changes: the key or, on the owner's page, the owner."""
        return Author(self.key.name, self.key.scope == DRAFTS_ONLY) if self.key else OWNER

    @property
    def published_only(self) -> bool:
        """Whether the request's key may only see published posts."""
        return self.key is not None and self.key.scope == PUBLISHED_ONLY

    def check_preconditions(self, document: bytes | None, hint: str = "", what: str = "post") -> None:
        """Raise PreconditionFailed unless the request's conditions hold for a document (RFC 9110, section 13.1).

        The document of a missing post is None. A post's entity tag can be that of the JSON or of the Markdown file. In
        the error message, `what` is the word for the document. A message about If-Match ends with the hint.
        """
        environ = self.environ
        if "HTTP_IF_MATCH" in environ and not any(map(self.if_match.contains, etags(document))):
            raise exceptions.PreconditionFailed(f"If-Match: {self._why_no_match(document, what)}{hint}")
        writes = self.method not in READ_METHODS  # for a read, the response is 304 instead
        if writes and "HTTP_IF_NONE_MATCH" in environ and any(map(self.if_none_match.contains_weak, etags(document))):
            why = "already exists" if self.if_none_match.star_tag else "still has this entity tag"
            raise exceptions.PreconditionFailed(f"If-None-Match: the {what} {why}")

    def _why_no_match(self, document: bytes | None, what: str) -> str:
        """Return why If-Match does not match a document (RFC 9110, section 13.1.1)."""
        if document is None:
            return f"there is no such {what}"
        if_match = self.environ["HTTP_IF_MATCH"]
        if if_match.startswith("W/") or any(map(self.if_match.contains_weak, etags(document))):
            return "a weak ETag (W/) never matches; a proxy that compresses responses makes them weak"
        if '"' not in if_match:
            return "must be an ETag with its quotes"
        return f"the {what} has changed since; get it again"


request = cast(Request, flask.request)  # the current request, for views that do not receive it
# This function returns the current request itself, because each access through Flask's proxy costs a function call.
current_request: Callable[[], Request] = cast(Any, flask.request)._get_current_object


@lru_cache(maxsize=256)  # The result depends only on the string, and scripts repeat their queries.
def load_query(schema: Schema, query: str) -> Mapping[str, Any]:
    """Load a query; raise ValidationError for unknown, repeated or invalid parameters.

    A list can be given as a=x,y, as a=x&a=y, or as a[]=x&a[]=y. The result is cached, so callers must not change it.
    """
    try:
        pairs = parse_qsl(query, keep_blank_values=True, errors="strict")
    except ValueError:
        raise BadRequest("query: must be UTF-8, with or without percent-encoding") from None
    values: dict[str, str] = {}
    for name, value in pairs:
        if isinstance(schema.fields.get(listed := LIST_INDEX.sub("", name)), fields.List):
            name, value = listed, f"{values[listed]},{value}" if listed in values else value
        elif name in values:
            raise ValidationError("given more than once", name)
        values[name] = value
    return schema.load(values)


# The body


def load_body(request: Request, check_exists: Callable[[], Any] | None = None) -> dict[str, Any]:
    """Load the body with the operation's schema. Raises ValidationError if it is invalid, or an HTTP error.

    If the body is invalid, `load_body` first calls `check_exists`, which raises DoesNotExist if the post is missing.
    """
    schema = request.operation.body
    assert schema is not None  # Every operation that reads a body has one.
    try:
        return schema.load(parse_body(request))
    except (ValidationError, exceptions.HTTPException):
        if check_exists:
            check_exists()
        raise


def parse_body(request: Request) -> dict[str, Any]:
    """Return the unvalidated fields of the body, which is JSON or a file. Raises an HTTP error."""
    mimetype = check_content_type(request, request.operation.content_types)
    request.body = read_body(request)
    if mimetype not in JSON_TYPES and request.operation.parse_file:
        return request.operation.parse_file(request)
    if "unknown" in request.query:
        raise ValidationError("applies only to text/markdown", "unknown")
    body = parse_json(request.body)
    for name in SET_BY_SERVICE:  # dropped, so that clients can edit a post and send it back
        body.pop(name, None)
    return body


class Unsupported(exceptions.UnsupportedMediaType):
    """A 415 with a header that lists the supported values (RFC 9110, section 15.5.16; RFC 5789, section 3.1)."""

    def __init__(self, description: str, header: str, supported: str):
        super().__init__(description)
        self.header = (header, supported)

    def get_headers(self, *arguments: Any) -> list[tuple[str, str]]:
        return [*super().get_headers(*arguments), self.header]


def check_content_type(request: Request, content_types: tuple[str, ...]) -> str:
    """Return the body's content type. Raises Unsupported unless its type, charset and encoding are supported."""
    environ = request.environ
    if (exact := environ.get("CONTENT_TYPE")) in content_types and "HTTP_CONTENT_ENCODING" not in environ:
        return exact  # the common case, which needs no parsing
    charset = request.mimetype_params.get("charset", "utf-8").lower()
    if request.mimetype not in content_types or charset not in ("utf-8", "utf8"):
        header = "Accept-Patch" if request.method == "PATCH" else "Accept"
        sent = environ.get("CONTENT_TYPE", "")[:MAX_SHOWN] or "missing"
        hint = "; curl sends JSON with --json" if JSON in content_types else ""
        if MARKDOWN in content_types:
            hint += ", and a Markdown file with -H 'Content-Type: text/markdown' --data-binary @FILE"
        message = f"Content-Type: must be {' or '.join(content_types)}, but is {sent}{hint}"
        raise Unsupported(message, header, ", ".join(content_types))
    if environ.get("HTTP_CONTENT_ENCODING", "").lower() not in ("", "identity"):
        raise Unsupported("Content-Encoding: must be left out", "Accept-Encoding", "identity")
    return request.mimetype


def read_body(request: Request, max_bytes: int = MAX_BODY_BYTES) -> bytes:
    """Read the whole body. Raises RequestEntityTooLarge beyond `max_bytes`, or BadRequest if it ends early."""
    length = body_length(request)
    body = b"" if length > max_bytes else request.environ["wsgi.input"].read(max_bytes + 1 if length < 0 else length)
    if max(length, len(body)) > max_bytes:
        hint = '; in JSON, "\\u00e9" takes six of them, and "é" two' if request.mimetype in JSON_TYPES else ""
        raise exceptions.RequestEntityTooLarge(f"body: must be at most {max_bytes:,} bytes{hint}")
    if len(body) < length:
        raise BadRequest("body: shorter than its Content-Length")
    return body


def has_body(request: Request) -> bool:
    """Return whether the request has a body, which can be empty if it is chunked."""
    environ = request.environ
    return "HTTP_TRANSFER_ENCODING" in environ or environ.get("CONTENT_LENGTH", "0") != "0"


def body_length(request: Request) -> int:
    """Return the length of the body in bytes, or -1 if it is chunked."""
    ends_by_itself = request.environ.get("wsgi.input_terminated", False)  # Without this, a body needs a Content-Length.
    return int(request.environ.get("CONTENT_LENGTH") or (-1 if ends_by_itself else 0))


def parse_json(body: bytes) -> dict[str, Any]:
    """Parse a JSON object strictly (RFC 8259). Raises BadRequest."""
    try:
        text = body.decode()
        if text.startswith("\ufeff"):
            raise BadRequest("body: must not begin with a byte order mark")
        check_json(body, MAX_BODY_VALUES, MAX_BODY_DEPTH)
        data = STRICT.decode(text)
    except UnicodeDecodeError:
        raise BadRequest("body: must be UTF-8") from None
    except json.JSONDecodeError as error:
        rest = text[error.pos : error.pos + MAX_QUOTED]
        place = f"line {error.lineno} column {error.colno}, {f'where it has {rest}' if rest else 'at its end'}"
        raise BadRequest(f"body: must be JSON: {error.msg.removesuffix(' at')} at {place}") from None
    except OutOfBounds as error:
        raise BadRequest(f"body: {error}") from None
    if not isinstance(data, dict):
        raise BadRequest("body: must be a JSON object")
    if len(data) > MAX_BODY_FIELDS:
        raise BadRequest(f"body: must have at most {MAX_BODY_FIELDS} fields")
    return data


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        name, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise BadRequest(f'body: must not have "{name[:MAX_SHOWN]}" twice in an object')
    return values


def _no_constant(name: str) -> None:
    raise BadRequest(f"body: must be JSON, which does not allow {name}")


STRICT = json.JSONDecoder(
    object_pairs_hook=_without_repeats,
    parse_int=lambda text: int(check_number(text)),
    parse_float=lambda text: float(check_number(text)),
    parse_constant=_no_constant,
)
