"""The requests of Micropub: forms and JSON, read as one kind of message, and their keys."""

import re
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

from multipart import MultipartSegment
from werkzeug.exceptions import BadRequest, Forbidden

from blogapi.api.access import FORBIDDEN, key_required, rate_limited
from blogapi.api.request import JSON, MAX_BODY_BYTES, Request, check_content_type, parse_json, read_body
from blogapi.storage.keys import KnownKey
from blogapi.storage.models import FULL
from blogapi.wings.forms import FORM, Write, text_of
from blogapi.wings.images.uploads import FileForm, Upload

URLENCODED = "application/x-www-form-urlencoded"
MAX_STRANGER_BYTES = 1024 * 1024  # of a form before its key is known
MAX_FORM_BYTES = MAX_BODY_BYTES + 64 * 1024  # of a form besides its files
MAX_FIELDS = 200  # of a form
MAX_TOKEN_BYTES = 200  # of an `access_token`: more than any key has, even percent-encoded
MAX_FILES = 10
PARTS = re.compile(rb"(?:%[0-9A-Fa-f]{2}|[\s\S]){1,16384}")
RESERVED = ("h", "action", "url", "access_token", "q")  # names in a form that are no properties


class Message(NamedTuple):
    """A request to create, change or delete a post. Each property is a list of values."""

    action: str  # empty: create
    url: str
    type: str
    properties: dict[str, list[Any]]
    body: dict[str, Any]  # in JSON, with the parts of an update
    files: list[Upload]


@key_required
@rate_limited
def count_key(request: Request, key: KnownKey) -> None:
    """Count a request whose key may be in its body."""


def authorize(request: Request, tokens: Sequence[str] = ()) -> None:
    """Check and count the key of a request, once; it can be the `access_token` of a form (RFC 6750, section 2.2).

    Raises BadRequest if it has several.
    """
    found = {*tokens} | {request.environ.get("HTTP_AUTHORIZATION", "").partition(" ")[2].strip()} - {""}
    if len(found) > 1:
        raise BadRequest("access_token: must be the key in Authorization, or be left out")
    if tokens and "HTTP_AUTHORIZATION" not in request.environ:
        request.environ["HTTP_AUTHORIZATION"] = f"Bearer {tokens[0]}"
    if request.key is None:
        count_key(request)


def authorize_writer(request: Request, tokens: Sequence[str] = ()) -> None:
    """Check and count the key of a request, once, and that it may write."""
    authorize(request, tokens)
    assert request.key is not None  # as it is authorized
    if request.key.scope != FULL:
        raise Forbidden(FORBIDDEN[request.key.scope])


def read(request: Request, opened: ExitStack) -> Message:
    """Read a message and authorize its key; the files of a form are open as long as `opened` is.

    Raises an HTTPException.
    """
    if request.mimetype == JSON:
        authorize_writer(request)
        return _of_json(parse_json(read_body(request)))
    if request.mimetype == FORM:
        fields, files = read_form(request, opened)
    else:
        check_content_type(request, (URLENCODED, FORM, JSON))
        fields, files = _urlencoded(request), []
    values: dict[str, list[Any]] = defaultdict(list)
    for name, value in fields:
        values[name.removesuffix("[]")].append(value)
    action, url, kind = ("".join(values[name][:1]) for name in ("action", "url", "h"))
    properties = {name: found for name, found in values.items() if name not in RESERVED}
    return Message(action, url, f"h-{kind}" if kind else "", properties, {}, files)


def _of_json(body: dict[str, Any]) -> Message:
    """Return the message of a body in JSON: a single value counts as a list of one."""
    properties = body.get("properties", {})
    kinds = body.get("type") or [""]
    kind = kinds[0] if isinstance(kinds, list) else kinds
    action, url = body.get("action", ""), body.get("url", "")
    if not isinstance(properties, dict) or not all(isinstance(text, str) for text in (action, url, kind)):
        raise BadRequest("body: must have `properties`, an object; and `type`, `action` and `url`, if any, as text")
    lists: dict[str, list[Any]] = defaultdict(list)
    for name, each in properties.items():
        lists[name.removesuffix("[]")] += each if isinstance(each, list) else [each]
    return Message(action, url, kind, {**lists}, body, [])


def _urlencoded(request: Request) -> list[tuple[str, str]]:
    """Read a form, in a thread: four megabytes of percent-encoded text take up to a second."""
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
    return request.database.in_background(
        request.client, lambda: [(text_of(unquoted(name)), text_of(unquoted(value))) for name, _, value in pairs]
    )


def unquoted(data: bytes) -> bytes:
    """Percent-decode some text part by part: urllib takes 80 bytes of memory for each byte."""
    return b"".join(unquote_to_bytes(part[0]) for part in PARTS.finditer(data))


def read_form(request: Request, opened: ExitStack) -> tuple[list[tuple[str, str]], list[Upload]]:
    """Read a form with files, whose `access_token`, if it has one, comes before them."""
    form = MessageForm(request, opened)
    if "HTTP_AUTHORIZATION" in request.environ:
        form.authorize()
    form.read()
    form.authorize()
    # For a field without a file, a browser sends an empty one.
    return form.texts(), [each for each in form.files if each.name or each.file.tell()]


class MessageForm(FileForm):
    """A form with files, which need a key; without one, its fields must be short."""

    def __init__(self, request: Request, opened: ExitStack):
        super().__init__(request, opened, MAX_FILES, MAX_FORM_BYTES, MAX_FIELDS)
        self.max_field_bytes = MAX_STRANGER_BYTES

    def authorize(self) -> None:
        """Authorize the key, in the header or in a field. Then the fields may be larger."""
        authorize_writer(self.request, [value for name, value in self.texts() if name == "access_token"])
        self.max_field_bytes = MAX_FORM_BYTES

    def begin(self, part: MultipartSegment) -> Write:
        if part.filename is None:
            return super().begin(part)
        if not self.request.key:
            self.authorize()
        return self.begin_file(part)
