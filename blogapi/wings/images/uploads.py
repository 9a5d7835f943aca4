"""Receive, check and store an uploaded image piece by piece, so that memory never holds the whole image."""

import errno
import os
import threading
from collections import Counter
from collections.abc import Hashable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from tempfile import TemporaryFile
from typing import BinaryIO, NamedTuple

from multipart import MultipartSegment
from werkzeug import exceptions
from werkzeug.exceptions import BadRequest

from blogapi.api.forms import FORM, Form, Receive, pieces
from blogapi.api.request import Request, Unsupported
from blogapi.api.schemas import MAX_SHOWN_NAME
from blogapi.storage.engine import Reader
from blogapi.storage.errors import RETRY_SECONDS, DiskFull, Unavailable
from blogapi.wings.images import storage as images
from blogapi.wings.images.formats import EXTENSIONS, MAX_IMAGE_BYTES, ImageFile, InvalidImage, UnsupportedImage
from blogapi.wings.images.storage import StoredImage

FORM_BYTES, MAX_PARTS = 64 * 1024, 8  # limits on a form: its bytes without the file, and its number of parts
CONTENT_TYPES = f"{FORM} with a part `file`, or an image/* type"
TURNED_OFF = "uploads are turned off: BLOGAPI_IMAGES_MB is 0"
MISSING = "file: missing; the form must have a part with this name, as curl -F file=@loaf.jpg sends it"
TOO_LARGE = f"an image must have at most {MAX_IMAGE_BYTES:,} bytes"
MAX_UPLOADS, MAX_UPLOADS_OF_CLIENT = 4, 2  # concurrent uploads: total, and per client


class Upload(NamedTuple):
    """An uploaded file: the name of its form field, its file name or "", and its content."""

    field: str
    name: str
    file: BinaryIO


uploads_of_clients: Counter[Hashable] = Counter()  # concurrent uploads
_lock = threading.Lock()


@contextmanager
def slot(client: Hashable) -> Iterator[None]:
    """Count an upload while it runs. Raises ServiceUnavailable if too many are running, in total or for the client."""
    with _lock:
        if uploads_of_clients.total() >= MAX_UPLOADS or uploads_of_clients[client] >= MAX_UPLOADS_OF_CLIENT:
            raise exceptions.ServiceUnavailable("too many uploads at once; try again", retry_after=RETRY_SECONDS)
        uploads_of_clients[client] += 1
    try:
        yield
    finally:
        with _lock:
            uploads_of_clients[client] -= 1
            if not uploads_of_clients[client]:
                del uploads_of_clients[client]


@contextmanager
def disk_errors() -> Iterator[None]:
    """Raise Unavailable in place of an OSError from writing a file."""
    try:
        yield
    except OSError as error:
        cause = f"cannot write an upload: {error.strerror}"
        raise (DiskFull(cause) if error.errno == errno.ENOSPC else Unavailable(cause)) from error


def store_file(request: Request, sent: Upload) -> tuple[StoredImage, bool]:
    """Store the image in a file. Return it, and whether it is new. Raises an HTTPException or Unavailable."""
    return store_image(request, *identify(request, sent))


def store_image(request: Request, image: StoredImage, kept: ImageFile) -> tuple[StoredImage, bool]:
    """Store an image that `identify` has returned, as `store_file` does."""
    database, limit = request.database, request.service.config.images_mb
    if known := images.find(database, image.id):
        return known, False

    def check(reader: Reader) -> None:
        if images.total_bytes(reader) + image.bytes > limit * 1024**2:
            reason = f"images must not exceed {limit:,} MiB in total (BLOGAPI_IMAGES_MB)" if limit else TURNED_OFF
            raise exceptions.RequestEntityTooLarge(reason)

    check(database)  # `store` checks again at the end, because other uploads may have finished by then.
    return images.store(database, database.write, image, kept, check)


def identify(request: Request, sent: Upload) -> tuple[StoredImage, ImageFile]:
    """Return the image in a file, and the pieces of the file to store. Raises an HTTPException."""
    try:
        return request.database.compute_in_thread(request.client, partial(images.identify, sent.file, sent.name))
    except InvalidImage as error:
        raise BadRequest(f"file: {error}") from None
    except UnsupportedImage as error:
        raise Unsupported(f"file: {error}", "Accept", ", ".join(EXTENSIONS)) from None


def receive(request: Request, opened: ExitStack) -> Upload:
    """Return the file in the body. Closing `opened` closes the file. Raises an HTTPException or Unavailable."""
    if not request.service.config.images_mb:
        raise exceptions.RequestEntityTooLarge(TURNED_OFF)
    if request.mimetype == FORM:
        form = UploadForm(request, opened, 1, FORM_BYTES, MAX_PARTS)
        form.read()
        if not form.files:
            raise BadRequest(MISSING)
        return form.files[0]
    if request.mimetype and not request.mimetype.startswith("image/"):
        raise Unsupported(f"Content-Type: must be {CONTENT_TYPES}", "Accept", f"{FORM}, image/*")
    opened.enter_context(slot(request.client))
    file = new_file(request, opened)
    for piece in pieces(request, MAX_IMAGE_BYTES, TOO_LARGE):
        save(piece, file)
    return Upload("file", request.query.get("name", ""), file)


class FileForm(Form):
    """A form with files: the parts that have a file name. Closing `opened` closes the files."""

    too_large = TOO_LARGE

    def __init__(self, request: Request, opened: ExitStack, max_files: int, max_field_bytes: int, max_parts: int):
        super().__init__(request, max_files * MAX_IMAGE_BYTES + max_field_bytes, max_field_bytes, max_parts)
        self.opened = opened
        self.max_files = max_files
        self.files: list[Upload] = []

    def begin(self, part: MultipartSegment) -> Receive:
        # Browsers send an empty file name if the user chose no file.
        return self.begin_file(part) if part.filename else super().begin(part)

    def begin_file(self, part: MultipartSegment) -> Receive:
        """Open a file, and return the function that receives its content. Raises an HTTPException or Unavailable."""
        if len(self.files) == self.max_files:
            raise BadRequest(f"body: must have at most {self.max_files} files")
        if not self.files:
            self.opened.enter_context(slot(self.request.client))
        file = new_file(self.request, self.opened)
        self.files.append(Upload(part.name.removesuffix("[]"), part.filename or "", file))
        return partial(save, target=file)


class UploadForm(FileForm):
    """A form whose only part is `file`."""

    def begin(self, part: MultipartSegment) -> Receive:
        if part.name != "file":
            reason = "unknown; the form must have one part, `file`: curl -F file=@loaf.jpg"
            raise BadRequest(f"{part.name[:MAX_SHOWN_NAME]}: {reason}")
        if self.files:
            raise BadRequest("file: must be given once")
        return self.begin_file(part)


def new_file(request: Request, opened: ExitStack) -> BinaryIO:
    """Open a temporary file for an upload. Raises Unavailable."""
    with disk_errors():
        return opened.enter_context(TemporaryFile(buffering=0, dir=request.database.engine.folder))


@disk_errors()
def save(piece: bytes, target: BinaryIO) -> None:
    """Append a piece to a file. Raises RequestEntityTooLarge if the file gets too large, or Unavailable."""
    if target.tell() + len(piece) > MAX_IMAGE_BYTES:
        raise exceptions.RequestEntityTooLarge(TOO_LARGE)
    if target.write(piece) != len(piece):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
