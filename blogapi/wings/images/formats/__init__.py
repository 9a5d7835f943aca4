"""Detect the type of an image file from its bytes, and choose the parts to keep.

The readers parse only the container format, never the pixels. They keep the parts needed to show the image, byte for
byte, and drop everything else: a photograph's location and camera, comments, thumbnails, and bytes after the image.
"""

import re
from collections.abc import Callable
from typing import BinaryIO

from blogapi.wings.images.formats.chunks import read_avif, read_gif, read_png, read_webp
from blogapi.wings.images.formats.file import FileReader, ImageFile, InvalidImage, Size, UnsupportedImage
from blogapi.wings.images.formats.jpeg import read_jpeg

MAX_IMAGE_BYTES = 20 * 1024 * 1024
MAX_SIDE, MAX_PIXELS = 16_384, 100_000_000
EXTENSIONS = {"image/jpeg": "jpg", "image/png": "png", "image/gif": "gif", "image/webp": "webp", "image/avif": "avif"}
SIGNATURES: list[tuple[re.Pattern[bytes], str, Callable[[FileReader], Size]]] = [
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg", read_jpeg),
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png", read_png),
    (re.compile(rb"GIF8[79]a"), "image/gif", read_gif),
    (re.compile(rb"RIFF.{4}WEBP", re.DOTALL), "image/webp", read_webp),
    (re.compile(rb".{4}ftypavi[fs]", re.DOTALL), "image/avif", read_avif),
]


def read_image(file: BinaryIO) -> ImageFile:
    """Return the image in a file. Raises UnsupportedImage for another type, or InvalidImage for a bad file."""
    reader = FileReader(file)
    start = reader.read(0, min(12, reader.size))
    for signature, media_type, read in SIGNATURES:
        if signature.match(start):
            width, height = read(reader)
            check_size(width, height)
            return ImageFile(file, media_type, width, height, reader.pieces)
    reason = ""
    if start.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<"):
        reason = "; an SVG can run scripts"
    elif start[4:8] == b"ftyp":
        reason = "; convert HEIC to JPEG first"
    elif start and start.isascii() and b"\0" not in start:
        reason = "; this seems to be text"
    raise UnsupportedImage(f"must be a JPEG, PNG, GIF, WebP or AVIF image{reason}")


def check_size(width: int, height: int) -> None:
    if not (0 < width <= MAX_SIDE and 0 < height <= MAX_SIDE):
        raise InvalidImage(f"must have 1 to {MAX_SIDE:,} pixels per side, not {width:,} x {height:,}")
    if width * height > MAX_PIXELS:
        raise InvalidImage(f"must have at most {MAX_PIXELS // 1_000_000} megapixels, not {width:,} x {height:,}")
