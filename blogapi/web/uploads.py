"""Uploads: the file in a body, received in pieces and checked, without ever being held as a whole."""

import errno
import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from tempfile import TemporaryFile
from typing import BinaryIO

from werkzeug import exceptions
from werkzeug.exceptions import BadRequest
from werkzeug.sansio.multipart import Data, Epilogue, Event, Field, File, MultipartDecoder, NeedData

from blogapi.images import EXTENSIONS, MAX_BYTES, ImageFile, InvalidImage, UnsupportedImage
from blogapi.storage import images
from blogapi.storage.errors import DiskFull, Unavailable
from blogapi.storage.images import PART_BYTES, StoredImage
from blogapi.web.request import Request, Unsupported, body_length

READ_BYTES = 64 * 1024
FORM_BYTES = 64 * 1024  # of a form besides its file
MAX_PARTS = 8  # of a form
FORM = "multipart/form-data"
CONTENT_TYPES = f"{FORM} with a part `file`, or an image/* type"
MAX_NAME = 60  # characters of a part's name in a message
TURNED_OFF = "uploads are turned off: BLOGAPI_IMAGES_MB is 0"
TOO_LARGE = f"an image must have at most {MAX_BYTES:,} bytes"


def store(
    request: Request, name: str = "", check: Callable[[dict[str, str]], None] | None = None
) -> tuple[StoredImage, bool]:
    """Store the image in the body; return it, and whether it is new. Raises an HTTPException or Unavailable.

    `check` gets the other fields of a form before anything is stored.
    """
    if not request.service.config.images_mb:
        raise exceptions.RequestEntityTooLarge(TURNED_OFF)
    folder = request.database.engine.folder
    with request.service.uploads.place(request.digest), TemporaryFile(buffering=0, dir=folder) as file:
        try:
            sent_name, others = receive(request, file, has_fields=check is not None)
        except OSError as error:
            cause = f"cannot write an upload: {error.strerror}"
            raise (DiskFull(cause) if error.errno == errno.ENOSPC else Unavailable(cause)) from error
        if check:
            check(others)
        return keep(request, file, sent_name or name)


def keep(request: Request, file: BinaryIO, name: str) -> tuple[StoredImage, bool]:
    """Store the image in a file; return it, and whether it is new. Raises an HTTPException or Unavailable."""
    database, limit = request.database, request.service.config.images_mb
    image, kept = identified(request, file, name)
    if known := images.find_any(database, image.id):
        return known, False
    if images.total_bytes(database) + image.bytes > limit * 1024**2:
        reason = f"all images together must have at most {limit:,} MiB (BLOGAPI_IMAGES_MB)" if limit else TURNED_OFF
        raise exceptions.RequestEntityTooLarge(reason)
    image = image._replace(upload=images.new_upload(database))
    stored = images.store(database.write, image, kept.parts(file, PART_BYTES))
    return stored, stored.upload == image.upload


def identified(request: Request, file: BinaryIO, name: str) -> tuple[StoredImage, ImageFile]:
    """Return the image that a file has, and what is kept of the file. Raises an HTTPException."""
    try:
        return request.database.in_background(request.digest, partial(images.identify, file, name))
    except InvalidImage as error:
        raise BadRequest(f"file: {error}") from None
    except UnsupportedImage as error:
        raise Unsupported(f"file: {error}", "Accept", ", ".join(EXTENSIONS)) from None


def receive(request: Request, target: BinaryIO, has_fields: bool) -> tuple[str, dict[str, str]]:
    """Write the file in the body to `target`; return its name, "" if it has none, and the other fields.

    Raises an HTTPException.
    """
    mimetype = request.mimetype
    if mimetype != FORM and not mimetype.startswith("image/") and mimetype:
        raise Unsupported(f"Content-Type: must be {CONTENT_TYPES}", "Accept", f"{FORM}, image/*")
    if mimetype == FORM:
        return receive_form(request, target, has_fields)
    for piece in pieces(request, MAX_BYTES):
        save(piece, target)
    return "", {}


def receive_form(request: Request, target: BinaryIO, has_fields: bool) -> tuple[str, dict[str, str]]:
    """Write the part `file` of a form to `target`; return its name, and the other fields, if it may have some."""
    decoder = MultipartDecoder(
        request.mimetype_params.get("boundary", "").encode(), max_form_memory_size=2 * READ_BYTES, max_parts=MAX_PARTS
    )
    name, part = None, ""
    others: dict[str, bytes] = defaultdict(bytes)
    for event in events(decoder, pieces(request, MAX_BYTES + FORM_BYTES)):
        if isinstance(event, File | Field):
            part = event.name
            if part == "file" and name is not None:
                raise BadRequest("file: must be given once")
            if part != "file" and (isinstance(event, File) or not has_fields):
                raise BadRequest(
                    f"{part[:MAX_NAME]}: unknown; the form must have one part, `file`: curl -F file=@loaf.jpg"
                )
            name = getattr(event, "filename", "") if part == "file" else name
        elif isinstance(event, Data) and part == "file":
            save(event.data, target)
        elif isinstance(event, Data):
            others[part] += event.data
            if sum(map(len, others.values())) > FORM_BYTES:
                raise exceptions.RequestEntityTooLarge(f"body: must have at most {FORM_BYTES:,} bytes besides the file")
    if name is None:
        raise BadRequest("file: missing; the form must have a part of this name, as curl -F file=@loaf.jpg sends it")
    return name, {field: value.decode(errors="replace") for field, value in others.items()}


def events(decoder: MultipartDecoder, data: Iterator[bytes]) -> Iterator[Event]:
    """Yield the events of a form. Raises BadRequest if it is malformed."""
    for piece in data:
        yield from _next_events(decoder, piece)
    yield from _next_events(decoder, None)


def _next_events(decoder: MultipartDecoder, piece: bytes | None) -> Iterator[Event]:
    try:
        decoder.receive_data(piece)
        while not isinstance(event := decoder.next_event(), NeedData | Epilogue):
            yield event
    except (ValueError, exceptions.RequestEntityTooLarge):
        raise BadRequest(f"body: must be {FORM} that ends with its boundary, as curl -F sends it") from None


def save(piece: bytes, target: BinaryIO) -> None:
    """Write a piece of a file. Raises RequestEntityTooLarge, OSError."""
    if target.tell() + len(piece) > MAX_BYTES:
        raise exceptions.RequestEntityTooLarge(TOO_LARGE)
    if target.write(piece) != len(piece):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def pieces(request: Request, max_bytes: int) -> Iterator[bytes]:
    """Yield the body in pieces; raise RequestEntityTooLarge beyond `max_bytes`, BadRequest if it ends early."""
    request.info.max_body_bytes = max_bytes
    length, read, source = body_length(request), 0, request.environ["wsgi.input"]
    if length > max_bytes:
        raise exceptions.RequestEntityTooLarge(TOO_LARGE)
    while piece := source.read(READ_BYTES if length < 0 else min(READ_BYTES, length - read)):
        read += len(piece)
        if read > max_bytes:
            raise exceptions.RequestEntityTooLarge(TOO_LARGE)
        yield piece
    if read < length:
        raise BadRequest("body: shorter than its Content-Length")
