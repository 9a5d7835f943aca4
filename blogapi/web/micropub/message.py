"""The requests of Micropub: forms and JSON, read as one kind of message, and their keys."""

from collections import defaultdict
from contextlib import ExitStack
from functools import partial
from tempfile import TemporaryFile
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import parse_qsl

from werkzeug.exceptions import BadRequest, RequestEntityTooLarge
from werkzeug.sansio.multipart import Data, Field, File, MultipartDecoder

from blogapi.images import MAX_BYTES
from blogapi.web.access import authorize
from blogapi.web.request import JSON, MAX_BODY_BYTES, Request, check_content_type, parse_json, read_body
from blogapi.web.uploads import FORM, READ_BYTES, events, pieces, save

URLENCODED = "application/x-www-form-urlencoded"
MAX_STRANGER_BYTES = 1024 * 1024  # of a form before its key is known
MAX_FORM_BYTES = MAX_BODY_BYTES + 64 * 1024  # of a form besides its files
MAX_FIELDS = 200  # of a form
MAX_FILES = 10
NOT_UTF8 = "body: must be UTF-8"
RESERVED = ("h", "action", "url", "access_token", "q")  # names in a form that are no properties


class Upload(NamedTuple):
    """A file in a form."""

    part: str
    name: str
    file: BinaryIO


class Message(NamedTuple):
    """A request to create, change or delete a post. Each property is a list of values."""

    action: str  # empty: create
    url: str
    type: str
    properties: dict[str, list[Any]]
    body: dict[str, Any]  # in JSON, with what an update replaces, adds and deletes
    files: list[Upload]


def read(request: Request, opened: ExitStack) -> Message:
    """Read a message and authorize its key; the files of a form are open as long as `opened` is.

    Raises an HTTPException.
    """
    if request.mimetype == JSON:
        authorize(request)
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
    texts = [body.get(name, "") for name in ("action", "url")]
    if not isinstance(properties, dict) or not all(isinstance(text, str) for text in (*texts, kind)):
        raise BadRequest("body: must have `properties`, an object; and `type`, `action` and `url`, if any, as text")
    return Message(*texts, kind, as_lists(properties), body, [])


def as_lists(properties: dict[str, Any]) -> dict[str, list[Any]]:
    """Return properties with a list of values each."""
    return {
        name.removesuffix("[]"): value if isinstance(value, list) else [value] for name, value in properties.items()
    }


def _urlencoded(request: Request) -> list[tuple[str, str]]:
    """Read a form in a thread: a megabyte of percent-encoded text takes 0.3 s."""
    limit = MAX_STRANGER_BYTES
    if "HTTP_AUTHORIZATION" in request.environ:
        authorize(request)
        limit = MAX_BODY_BYTES
    body = read_body(request, limit)
    try:
        parse = partial(parse_qsl, body.decode(), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
        fields = request.database.in_background(parse)
    except UnicodeDecodeError:
        raise BadRequest(NOT_UTF8) from None
    except ValueError:
        raise BadRequest(f"body: must have at most {MAX_FIELDS} fields") from None
    authorize(request, [value for name, value in fields if name == "access_token"])
    return fields


def read_form(request: Request, opened: ExitStack) -> tuple[list[tuple[str, str]], list[Upload]]:
    """Read a form with files, whose `access_token`, if it has one, comes before them."""
    boundary = request.mimetype_params.get("boundary", "").encode()
    decoder = MultipartDecoder(boundary, max_form_memory_size=2 * READ_BYTES, max_parts=MAX_FIELDS)
    names: list[str] = []
    values: list[bytes] = []
    files: list[Upload] = []
    is_file, size, limit = False, 0, MAX_STRANGER_BYTES
    new_file = partial(TemporaryFile, buffering=0, dir=request.database.engine.folder)

    def decoded() -> list[tuple[str, str]]:
        try:
            return [(name, value.decode()) for name, value in zip(names, values, strict=True)]
        except UnicodeDecodeError:
            raise BadRequest(NOT_UTF8) from None

    def check() -> None:
        authorize(request, [value for name, value in decoded() if name == "access_token"])

    if "HTTP_AUTHORIZATION" in request.environ:
        check()
        limit = MAX_FORM_BYTES
    for event in events(decoder, pieces(request, MAX_FILES * MAX_BYTES + MAX_FORM_BYTES)):
        if isinstance(event, File):
            if not request.key:
                check()
                limit = MAX_FORM_BYTES
            if len(files) == MAX_FILES:
                raise BadRequest(f"body: must have at most {MAX_FILES} files")
            if not files:
                opened.enter_context(request.service.uploads.place(request.digest))
            files.append(Upload(event.name.removesuffix("[]"), event.filename, opened.enter_context(new_file())))
            is_file = True
        elif isinstance(event, Field):
            names.append(event.name)
            values.append(b"")
            is_file = False
        elif isinstance(event, Data) and is_file:
            save(event.data, files[-1].file)
        elif isinstance(event, Data):
            values[-1] += event.data
            size += len(event.data)
            if size > limit:
                raise RequestEntityTooLarge(f"body: must have at most {limit:,} bytes besides its files")
    check()
    return decoded(), [
        each for each in files if each.name or each.file.tell()
    ]  # A browser sends an empty one for none.
