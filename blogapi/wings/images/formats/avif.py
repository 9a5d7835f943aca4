"""AVIF (ISO/IEC 14496-12 and 23008-12): boxes with a length and a name. Metadata is found, but cannot be removed."""

import re
from struct import unpack_from

from blogapi.wings.images.formats.file import FileReader, InvalidImage, Size

METADATA = "has metadata, which cannot be removed from an AVIF: run `exiftool -all= FILE` first"
MAX_HEAD = 1024 * 1024  # bytes of a box other than the pixels
# What is metadata in each box that a file can have: items of these types, and boxes that can contain anything
BOXES = {
    b"ftyp": rb"(?!)",
    b"mdat": rb"(?!)",
    b"meta": rb"(?s)infe([\x00\x01]|(\x02.{7}|\x03.{9})(Exif|mime|uri ))|uuid|udta|xml |bxml",
    b"moov": rb"uuid|udta|meta",
}


def read_avif(reader: FileReader) -> Size:
    """Keep the whole file if it contains only pictures; return the size of the largest."""
    start, boxes = 0, {b"meta": b""}
    while start < reader.size:
        length, kind = unpack_from(">I4s", reader.read(start, 8))
        if length == 1:
            (length,) = unpack_from(">Q", reader.read(start + 8, 8))
        length = length or reader.size - start
        if length < 8 or start + length > reader.size:
            raise InvalidImage("the file ends early")
        boxes[kind] = reader.read(start, min(length, 8 if kind == b"mdat" else MAX_HEAD))
        if kind not in BOXES or re.search(BOXES[kind], boxes[kind]) or (length > MAX_HEAD and kind != b"mdat"):
            raise InvalidImage(METADATA)
        start += length
    sizes = [unpack_from(">II", extents) for extents in re.findall(rb"(?s)ispe\x00{4}(.{8})", boxes[b"meta"])]
    if b"mdat" not in boxes or not sizes:
        raise InvalidImage("it has no picture")
    reader.keep(0, reader.size)
    width, height = max(sizes)
    return (height, width) if re.search(rb"irot[\x01\x03]", boxes[b"meta"]) else (width, height)
