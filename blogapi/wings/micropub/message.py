"""Read Micropub requests, which are forms or JSON, and check their API keys."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

from multipart import MultipartSegment
from werkzeug.exceptions import BadRequest, Forbidden

from blogapi.api.access import why_forbidden
from blogapi.api.forms import FORM, Receive, text_of
from blogapi.api.operations import JSON
from blogapi.api.request import LIST_INDEX, MAX_BODY_BYTES, Request, check_content_type, parse_json, read_body
from blogapi.posts.admission import admit
from blogapi.storage.keys import WRITE_SCOPES
from blogapi.storage.models import SCOPES
from blogapi.wings.images.uploads import FileForm, Upload

TYPES = "application/x-www-form-urlencoded", FORM, JSON
MAX_STRANGER_BYTES = 1024 * 1024  # maximum size of a form whose key has not been checked
MAX_FORM_BYTES = MAX_BODY_BYTES + 64 * 1024  # maximum size of a form, not counting its files
MAX_FIELDS = 200  # per form
MAX_TOKEN_BYTES = 200  # maximum size of an `access_token`; percent-encoded keys are shorter
MAX_FILES = 10
PARTS = re.compile(rb"(?:%[0-9A-Fa-f]{2}|[\s\S]){1,16384}")
# Field names as PHP and qs write them: x[] and x[0] mean x; content[html] and photo[0][alt] mean a part of an object
FIELD_NAME = re.compile(r"(?P<name>[^\[\]]*)(?P<index>\[[0-9]{0,4}\])?(?:\[(?P<part>html|value|alt)\])?")
BY_POSITION = "mp-photo-alt"  # keeps empty values, because each value belongs to the photo at the same position
RESERVED = ("h", "action", "url", "access_token", "q")  # form fields that are not properties


class Submission(NamedTuple):
    """A request to create, update, delete or restore a post. Each property is a list of values."""

    action: str  # "" to create a post
    url: str
    type: str
    properties: dict[str, list[Any]]
    body: dict[str, Any]  # the JSON body, which contains the parts of an update
    files: list[Upload]


def authorize(request: Request, tokens: Sequence[str] = (), scopes: Sequence[str] = SCOPES) -> None:
    """Check a request's key and count the request, but only once. Raises Forbidden unless the key has one of `scopes`.

    A form may contain the key as `access_token` (RFC 6750, section 2.2), which the caller passes in `tokens`. Raises
    BadRequest if the request contains different keys.
    """
    secrets = {*tokens} | {request.environ.get("HTTP_AUTHORIZATION", "").partition(" ")[2].strip()} - {""}
    if len(secrets) > 1:
        raise BadRequest("access_token: must be the key in Authorization, or be left out")
    if tokens and "HTTP_AUTHORIZATION" not in request.environ:
        request.environ["HTTP_AUTHORIZATION"] = f"Bearer {tokens[0]}"
    if request.key is None:
        admit(request)
    assert request.key is not None  # because `admit` has checked it
    if request.key.scope not in scopes:
        raise Forbidden(why_forbidden(request.key.scope))


authorize_writer = partial(authorize, scopes=WRITE_SCOPES)


def read(request: Request, opened: ExitStack) -> Submission:
    """Read a request, and authorize its key. Closing `opened` closes the form's files. Raises an HTTPException."""
    if request.mimetype == FORM:
        fields, files = read_form(request, opened)
    elif request.mimetype == JSON:
        authorize_writer(request)
        check_content_type(request, TYPES)
        return _parse_json(parse_json(read_body(request)))
    else:
        check_content_type(request, TYPES)
        fields, files = _read_urlencoded(request), []
    texts = dict(reversed(fields))  # If a name occurs several times, the first field wins.
    action, url, kind = (texts.get(name, "") for name in ("action", "url", "h"))
    properties = without_empty(_properties(pair for pair in fields if pair[0] not in RESERVED))
    return Submission(action, url, f"h-{kind}" if kind else "", properties, {}, files)


def _properties(fields: Iterable[tuple[str, str]]) -> dict[str, list[Any]]:
    properties: dict[str, list[Any]] = defaultdict(list)
    objects: dict[tuple[str, str], dict[str, str]] = {}
    for field, value in fields:
        match = FIELD_NAME.fullmatch(field)
        name = match["name"] if match else field
        if not match or not match["part"]:
            properties[name].append(value)
            continue
        place = name, match["index"] or ""
        if place not in objects:
            objects[place] = {}
            properties[name].append(objects[place])
        objects[place][match["part"]] = value
    return properties


def without_empty(properties: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Remove empty values, and properties that have only empty values."""
    filled = {name: [value for value in values if not _is_empty(value)] for name, values in properties.items()}
    return {name: properties[name] if name == BY_POSITION else values for name, values in filled.items() if values}


def _is_empty(value: Any) -> bool:
    values = value.values() if isinstance(value, dict) else [value]
    return all(value in ("", None, []) for value in values)


def _parse_json(body: dict[str, Any]) -> Submission:
    """Return the submission in a JSON body. A value that is not in a list is treated as a list of one."""
    properties = body.get("properties", {})
    kinds = body.get("type") or [""]
    kind = kinds[0] if isinstance(kinds, list) else kinds
    action, url = body.get("action", ""), body.get("url", "")
    if not isinstance(properties, dict) or not all(isinstance(text, str) for text in (action, url, kind)):
        raise BadRequest("body: must have `properties`, an object; and `type`, `action` and `url`, if any, as text")
    lists: dict[str, list[Any]] = defaultdict(list)
    for name, value in properties.items():
        lists[LIST_INDEX.sub("", name)] += value if isinstance(value, list) else [value]
    return Submission(action, url, kind, without_empty(lists), body, [])


def _read_urlencoded(request: Request) -> list[tuple[str, str]]:
    """Read a form without files. It is decoded in a thread, because 4 MB of percent-encoded text can take a second."""
    limit = MAX_STRANGER_BYTES
    if "HTTP_AUTHORIZATION" in request.environ:
        authorize_writer(request)
        limit = MAX_BODY_BYTES
    body = read_body(request, limit)
    if body.count(b"&") >= MAX_FIELDS:
        raise BadRequest(f"body: must have at most {MAX_FIELDS} fields")
    pairs = [pair.partition(b"=") for pair in body.replace(b"+", b" ").split(b"&") if pair]
    tokens = [value for name, _, value in pairs if unquoted(name[:MAX_TOKEN_BYTES]) == b"access_token"]
    authorize_writer(request, [text_of(unquoted(token[:MAX_TOKEN_BYTES])) for token in tokens])
    return request.database.compute_in_thread(
        request.client, lambda: [(text_of(unquoted(name)), text_of(unquoted(value))) for name, _, value in pairs]
    )


def unquoted(data: bytes) -> bytes:
    """Percent-decode text part by part, because urllib uses 80 bytes of memory per byte of text."""
    return b"".join(unquote_to_bytes(part[0]) for part in PARTS.finditer(data))


def read_form(request: Request, opened: ExitStack) -> tuple[list[tuple[str, str]], list[Upload]]:
    """Read a form that may contain files. An `access_token` must precede the files."""
    form = SubmissionForm(request, opened)
    if "HTTP_AUTHORIZATION" in request.environ:
        form.authorize()
    form.read()
    form.authorize()
    # Browsers send an empty file if the user chose none.
    files = [file for file in form.files if file.name or file.file.tell()]
    return form.texts(), [file._replace(field=LIST_INDEX.sub("", file.field)) for file in files]


class SubmissionForm(FileForm):
    """A form that may contain files. The key must be known before the first file, and before any large field."""

    def __init__(self, request: Request, opened: ExitStack):
        super().__init__(request, opened, MAX_FILES, MAX_FORM_BYTES, MAX_FIELDS)
        self.max_field_bytes = MAX_STRANGER_BYTES

    def authorize(self) -> None:
        """Authorize the key from the header or a field, and allow larger fields after that."""
        authorize_writer(self.request, [value for name, value in self.texts() if name == "access_token"])
        self.max_field_bytes = MAX_FORM_BYTES

    def begin(self, part: MultipartSegment) -> Receive:
        if part.filename is None:
            return super().begin(part)
        if not self.request.key:
            self.authorize()
        return self.begin_file(part)
