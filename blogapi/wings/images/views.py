"""Serve the endpoints for uploading, listing and deleting images, and the images at their public URLs."""

import logging
import re
from contextlib import ExitStack
from functools import cache
from urllib.parse import quote

from flask import Response
from marshmallow import ValidationError, fields
from werkzeug import exceptions
from werkzeug.datastructures import Range
from werkzeug.routing import BaseConverter

from blogapi.api import schemas
from blogapi.api.access import for_strangers
from blogapi.api.operations import ResponseSpec
from blogapi.api.request import Request, current_request
from blogapi.api.responses import document_response, list_response, no_content, respond
from blogapi.api.schemas import StrictSchema, Time, doc, matching, page_size, parameters, parsed_by
from blogapi.api.views import Views
from blogapi.config import is_loopback
from blogapi.documents import dump
from blogapi.paging import Cursor, Page
from blogapi.storage.errors import DoesNotExist
from blogapi.storage.keys import READ_SCOPES, WRITE_SCOPES
from blogapi.wings.images import storage as images
from blogapi.wings.images import uploads
from blogapi.wings.images.formats import EXTENSIONS
from blogapi.wings.images.storage import IMAGE_ID, StoredImage

log = logging.getLogger(__name__)

CURSOR = re.compile(rf"(?:(?P<time>{schemas.CURSOR_TIME})_)?(?P<id>{IMAGE_ID})")
FILE_NAME = re.compile(rf"({IMAGE_ID})\.[a-z]+")  # the last part of a public URL
PLAIN_NAME = re.compile(r"[ -~]+")  # stored names contain neither quotes nor backslashes
FOREVER = "public, max-age=31536000, immutable"  # The content for an id never changes.
PUBLIC_HEADERS = [
    ("Accept-Ranges", "bytes"),
    ("X-Content-Type-Options", "nosniff"),
    ("Content-Security-Policy", "default-src 'none'; sandbox"),
    ("Cross-Origin-Resource-Policy", "cross-origin"),
    ("Access-Control-Allow-Origin", "*"),
]
FILE_NAME_DOC = doc("Its file name, if the body is the image itself.", pattern=schemas.TEXT)
views = Views("images", __name__)


class ImageConverter(BaseConverter):
    """An image id in a URL."""

    regex = IMAGE_ID


views.record(lambda state: state.app.url_map.converters.update(image=ImageConverter))


class ImageSchema(StrictSchema):
    """An image."""

    example = {"id": "9f86d081884c7d659a2feaa0c55ad015"}
    example |= {"url": f"https://api.example.org/images/{example['id']}.jpg", "name": "loaf.jpg", "type": "image/jpeg"}
    example |= {"bytes": 183204, "width": 1600, "height": 1200, "created_at": "2026-11-20T10:10:00Z"}
    id = matching(IMAGE_ID, 32, 32, "The first 32 hexadecimal digits of the SHA-256 of its bytes.")
    url = fields.String(required=True, **doc("Its public URL, for use in the content of posts; it never changes."))
    name = fields.String(required=True, **doc("Its file name, without folder, control characters and double quotes."))
    type = fields.String(required=True, **doc("Its media type.", examples=list(EXTENSIONS)))
    bytes = fields.Integer(required=True, **doc("Its size in bytes, without metadata."))
    width = fields.Integer(required=True, **doc("In pixels, as displayed."))
    height = fields.Integer(required=True, **doc("In pixels, as displayed."))
    created_at = Time(required=True, **doc("When the image was first uploaded, in UTC, to the second."))


class UploadSchema(StrictSchema):
    """An image file to upload."""

    example = {"file": "(the bytes of loaf.jpg)"}
    file = fields.Raw(required=True, **doc("A JPEG, PNG, GIF, WebP or AVIF image.", type="string", format="binary"))


def parse_image_cursor(text: str) -> Cursor[str]:
    match = CURSOR.fullmatch(text)
    if not match:
        raise ValidationError("must be the id of an image, or the value from Link")
    return Cursor(match["time"] or "", match["id"])


def document_of(request: Request, image: StoredImage) -> bytes:
    url = request.service.config.base_url + image.path
    others = {name: getattr(image, name) for name in ImageSchema.example if name != "url"}
    return dump({"id": image.id, "url": url} | others).encode()


@cache
def warn(url: str) -> None:
    """Warn once that only this machine can open image URLs."""
    log.warning(f"image URLs begin with {url}, which only this machine can open: set BLOGAPI_URL")


@views.operation(
    "POST /v1/images",
    ResponseSpec(200, "The existing image.", ImageSchema(), ("ETag",)),
    creates=ResponseSpec(201, "The new image.", ImageSchema(), ("Location", "ETag")),
    query=parameters(name=schemas.Text(schemas.length(1, 255), **FILE_NAME_DOC)),
    body=UploadSchema(),
    content_types=(uploads.FORM,),
    scopes=WRITE_SCOPES,
)
def create_image(request: Request) -> Response:
    """Upload an image.

    The body is a multipart form with a part named `file`, or the raw image, sent as `image/*`. The image is a JPEG,
    PNG, GIF, WebP or AVIF of at most 20 MiB, 16,384 pixels per side and 100 megapixels. The server stores only the
    image itself, without metadata such as a photograph's location and camera, comments and thumbnails. If the image
    already exists, the response is 200.
    """
    with ExitStack() as opened:
        image, is_new = uploads.store_file(request, uploads.receive(request, opened))
    if not is_new:
        return document_response(request, document_of(request, image))
    if is_loopback(request.service.config.base_url):
        warn(request.service.config.base_url)
    location = request.with_prefix(f"/v1/images/{image.id}")
    return document_response(request, document_of(request, image), status=201, headers=[("Location", location)])


@views.operation(
    "GET /v1/images",
    ResponseSpec(200, "The images, newest first.", ImageSchema(many=True), ("Link", "ETag")),
    query=parameters(
        limit=page_size("images"),
        before=parsed_by(
            parse_image_cursor,
            "Only images older than the image with this id, or the value from `Link`.",
            pattern=f"^({schemas.CURSOR_TIME}_)?{IMAGE_ID}$",
        ),
    ),
    scopes=READ_SCOPES,
)
def list_images(request: Request) -> Response:
    """List images, newest first.

    A page has at most `limit` images. If there are more, the `Link` header contains the URL of the next page.
    """
    page = images.page(request.database, **request.query)
    return list_response(request, Page([document_of(request, image) for image in page.items], page.next))


@views.operation(
    "GET /v1/images/<image:image_id>", ResponseSpec(200, "The image.", ImageSchema(), ("ETag",)), scopes=READ_SCOPES
)
def get_image(request: Request, image_id: str) -> Response:
    """Get the metadata of an image. The image itself is at its `url`."""
    return document_response(request, document_of(request, images.get(request.database, image_id)))


@views.operation("DELETE /v1/images/<image:image_id>", ResponseSpec(204, "It is gone."), request_headers=("If-Match",))
def delete_image(request: Request, image_id: str) -> Response:
    """Delete an unused image.

    If the image is used in a post, a revision, a post in the trash, a proposal or an unsaved draft, the response is 400
    and lists up to three of these uses.
    """
    request.check_preconditions(document_of(request, images.get(request.database, image_id)), what="image")
    delete_unused(request, image_id)
    return no_content(request)


def delete_unused(request: Request, image_id: str) -> StoredImage:
    """Delete an unused image, and return it. Raises DoesNotExist, or Rejected if the image is in use."""
    image, since = images.get(request.database, image_id), request.database.now
    images.refuse_used(request.database.read_in_thread(request.client, images.uses_of, image_id))
    write = request.database.write_freeing
    images.delete_upload(request.database, write, write(images.delete, image_id, since))
    return image


# The public URL


@views.get("/images/<path:name>")
@for_strangers
def show_image(name: str) -> Response:
    """Send an image, or one range of its bytes (RFC 9110, section 14). No API key is needed."""
    request = current_request()
    match = FILE_NAME.fullmatch(name)
    image = match and images.find(request.database, match[1])
    if not image or request.path != image.path:
        raise DoesNotExist("image")
    tag = f'"{image.id}"'
    headers = [("ETag", tag), ("Content-Disposition", f"inline; {file_name(image.name)}"), *PUBLIC_HEADERS]
    if "HTTP_IF_NONE_MATCH" in request.environ and request.if_none_match.contains_weak(image.id):
        return respond(request, b"", image.type, 304, headers, cache_control=FOREVER)
    start, end, status = 0, image.bytes, 200
    if asked := asked_range(request, tag, image.bytes):
        start, end, status = *asked, 206
        headers.append(("Content-Range", f"bytes {start}-{end - 1}/{image.bytes}"))
    response = respond(request, b"", image.type, status, headers, cache_control=FOREVER)
    response.headers["Content-Length"] = str(end - start)
    response.response = images.read(request.database, image, start, end)
    return response


def asked_range(request: Request, tag: str, size: int) -> tuple[int, int] | None:
    """Return the requested range if there is only one and If-Range matches. Raises RequestedRangeNotSatisfiable."""
    asked = request.range if request.method == "GET" else None
    has_changed = request.environ.get("HTTP_IF_RANGE", tag) != tag
    if not asked or has_changed or asked.units != "bytes" or len(asked.ranges) != 1:
        return None
    start, end = asked.ranges[0]
    # A suffix range (the last n bytes) may be longer than the file.
    part = Range("bytes", [(max(start, -size), end)]).range_for_length(size)
    if not part:
        raise exceptions.RequestedRangeNotSatisfiable(size, description=f"Range: the image has {size:,} bytes")
    return part


def file_name(name: str) -> str:
    """Format a file name as a parameter of Content-Disposition (RFC 6266, RFC 8187)."""
    return f'filename="{name}"' if PLAIN_NAME.fullmatch(name) else f"filename*=UTF-8''{quote(name, safe='')}"
