"""AVIF (ISO/IEC 14496-12 and 23008-12): boxes with a length and a name, which refer to each other by position."""

from collections.abc import Iterator
from struct import unpack_from
from typing import NamedTuple

from blogapi.wings.images.formats.file import FileReader, InvalidImage, Size

METADATA = "has metadata, which cannot be removed from an AVIF: run `exiftool -all= FILE` first"
BOXES = {b"ftyp", b"meta", b"mdat", b"moov"}
FORBIDDEN_BOXES = {b"udta", b"uuid", b"meta"}  # boxes not allowed in a movie or in one of its tracks


class Box(NamedTuple):
    """A box, and the position of its content."""

    kind: bytes
    start: int
    end: int


def boxes(reader: FileReader, start: int, end: int) -> Iterator[Box]:
    """Yield the boxes in a part of the file."""
    while start < end:
        size, kind = unpack_from(">I4s", reader.read(start, 8))
        head = 8
        if size == 1:
            (size,) = unpack_from(">Q", reader.read(start + 8, 8))
            head = 16
        elif size == 0:
            size = end - start
        if size < head or start + size > end:
            raise InvalidImage("the file ends early")
        yield Box(kind, start + head, start + size)
        start += size


def read_avif(reader: FileReader) -> Size:
    """Keep the whole file, if it contains nothing but the picture."""
    size, has_pixels = None, False
    for box in boxes(reader, 0, reader.size):
        if box.kind not in BOXES:
            raise InvalidImage(METADATA)
        has_pixels |= box.kind == b"mdat"
        if box.kind == b"meta":
            size = size_of_primary(reader, box)
        elif box.kind == b"moov":
            check_movie(reader, box)
    if size is None or not has_pixels:
        raise InvalidImage("it has no picture")
    reader.keep(0, reader.size)
    return size


def check_movie(reader: FileReader, movie: Box) -> None:
    """Raise InvalidImage if a movie or one of its tracks has metadata."""
    found = list(boxes(reader, movie.start, movie.end))
    for track in [box for box in found if box.kind == b"trak"]:
        found += boxes(reader, track.start, track.end)
    if any(box.kind in FORBIDDEN_BOXES for box in found):
        raise InvalidImage(METADATA)


def size_of_primary(reader: FileReader, meta: Box) -> Size:
    """Return the size of the primary item as displayed. Raises InvalidImage if another item is metadata."""
    found = children(reader, meta.start + 4, meta.end, b"pitm", b"iinf", b"iprp")
    check_items(reader, found[b"iinf"])
    version = reader.read(found[b"pitm"].start, 1)[0]
    primary = int.from_bytes(reader.read(found[b"pitm"].start + 4, 4 if version else 2), "big")
    parts = children(reader, found[b"iprp"].start, found[b"iprp"].end, b"ipco", b"ipma")
    properties = list(boxes(reader, parts[b"ipco"].start, parts[b"ipco"].end))
    width = height = turns = 0
    for number in associated(reader, parts[b"ipma"], primary):
        box = properties[number - 1] if 0 < number <= len(properties) else Box(b"", 0, 0)
        if box.kind == b"ispe":
            width, height = unpack_from(">II", reader.read(box.start + 4, 8))
        elif box.kind == b"irot":
            turns = reader.read(box.start, 1)[0]
    return (height, width) if turns & 1 else (width, height)


def children(reader: FileReader, start: int, end: int, *kinds: bytes) -> dict[bytes, Box]:
    """Return the boxes in a part of the file by their names. Raises InvalidImage if one of `kinds` is missing."""
    found = {box.kind: box for box in boxes(reader, start, end)}
    if not found.keys() >= {*kinds}:
        raise InvalidImage("it has no picture")
    return found


def check_items(reader: FileReader, items: Box) -> None:
    """Raise InvalidImage if an item is Exif or XMP."""
    version = reader.read(items.start, 1)[0]
    for entry in boxes(reader, items.start + (8 if version else 6), items.end):
        kind = entry.start + (10 if reader.read(entry.start, 1)[0] == 3 else 8)
        if reader.read(kind, 4) in (b"Exif", b"mime", b"uri "):
            raise InvalidImage(METADATA)


def associated(reader: FileReader, box: Box, item: int) -> Iterator[int]:
    """Yield the numbers of the properties of an item, from 1."""
    version, flags = reader.read(box.start, 4)[::3]
    (count,) = unpack_from(">I", reader.read(box.start + 4, 4))
    position, id_bytes, index_bytes = box.start + 8, 4 if version else 2, 1 + (flags & 1)
    for _ in range(count):
        head = reader.read(position, id_bytes + 1)
        position += id_bytes + 1
        entries = reader.read(position, head[-1] * index_bytes)
        position += len(entries)
        if int.from_bytes(head[:-1], "big") == item:
            for at in range(0, len(entries), index_bytes):
                yield int.from_bytes(entries[at : at + index_bytes], "big") & (0x7FFF if flags & 1 else 0x7F)
