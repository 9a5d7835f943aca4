"""Read JPEG files (ITU T.81): segments with a marker and a length, and coded pixels after each start of a scan."""

import re
from struct import pack, unpack_from

from blogapi.wings.images.formats.file import READ_BYTES, FileReader, InvalidImage, Size

SOI, EOI, SOS, COM = 0xD8, 0xD9, 0xDA, 0xFE
APP0, EXIF, ICC, ADOBE, APP15 = 0xE0, 0xE1, 0xE2, 0xEE, 0xEF
PICTURE = {SOS, 0xC4, 0xCC, 0xDB, 0xDD}  # markers of a scan, its tables and its restart interval
FRAMES = {0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF}
SCAN_END = re.compile(rb"\xff[^\x00\xd0-\xd7\xff]")  # a marker that ends the coded pixels
ORIENTATION = 0x0112  # the Exif tag


def read_jpeg(reader: FileReader) -> Size:
    """Keep an image without its metadata, but store its orientation in a new Exif segment. Return the image's size."""
    reader.keep(0, 2)
    size, orientation, has_scan, position = None, 1, False, 2
    while True:
        position, marker = next_marker(reader, position)
        if marker == EOI:
            reader.keep(position, position + 2)
            break
        end = segment_end(reader, position)
        if marker in FRAMES:
            if size:
                raise InvalidImage("it contains several images")
            size = unpack_from(">HH", reader.read(position + 5, 4))[::-1]
        if marker == EXIF and orientation == 1:
            orientation = orientation_in(reader.read(position + 4, end - position - 4))
            if orientation != 1:
                reader.add(exif_segment(orientation))
        keep_segment(reader, marker, position, end)
        position = end
        if marker == SOS:
            has_scan = True
            position = end_of_scan(reader, end)
            reader.keep(end, position)
    if size is None or not has_scan:
        raise InvalidImage("it contains no image")
    return size[::-1] if orientation >= 5 else size


def next_marker(reader: FileReader, position: int) -> tuple[int, int]:
    """Skip fill bytes, and return the position of the next marker and the marker."""
    while (marker := reader.read(position, 2)) == b"\xff\xff":
        position += 1
    if marker[0] != 0xFF or marker[1] in (0, 1, SOI) or 0xD0 <= marker[1] <= 0xD7:
        raise InvalidImage("there are bytes where a segment should begin")
    return position, marker[1]


def segment_end(reader: FileReader, start: int) -> int:
    end = start + 2 + unpack_from(">H", reader.read(start + 2, 2))[0]
    reader.require(end)
    if end < start + 4:
        raise InvalidImage("it has a segment without a length")
    return end


def keep_segment(reader: FileReader, marker: int, start: int, end: int) -> None:
    """Keep a segment unless it is metadata. A JFIF segment is kept without its thumbnail."""
    head = reader.read(start + 4, min(16, end - start - 4))
    if marker == APP0 and head.startswith(b"JFIF\0") and len(head) >= 14:
        reader.add(b"\xff\xe0\x00\x10" + head[:12] + b"\0\0")
    elif marker == ADOBE and head.startswith(b"Adobe") and len(head) >= 12:
        reader.add(b"\xff\xee\x00\x0e" + head[:12])
    elif marker in PICTURE or marker in FRAMES or (marker == ICC and head.startswith(b"ICC_PROFILE\0")):
        reader.keep(start, end)
    elif not (APP0 <= marker <= APP15 or marker == COM):
        raise InvalidImage("it has an unknown segment")


def end_of_scan(reader: FileReader, start: int) -> int:
    """Return the position of the marker that ends the coded pixels."""
    position = start
    while True:
        chunk = reader.read(position, min(READ_BYTES, reader.size - position))
        if end := SCAN_END.search(chunk):
            return position + end.start()
        if position + len(chunk) >= reader.size:
            raise InvalidImage("the file ends early")
        position += len(chunk) - 1  # The last byte may be the start of a marker.


def orientation_in(segment: bytes) -> int:
    """Return the orientation (1 to 8) in an Exif segment, or 1 if the segment has none."""
    if not segment.startswith(b"Exif\0\0") or segment[6:10] not in (b"II*\0", b"MM\0*"):
        return 1
    tiff, order = segment[6:], "<" if segment[6:7] == b"I" else ">"
    directory = int.from_bytes(tiff[4:8], "little" if order == "<" else "big")
    if directory + 2 > len(tiff):
        return 1
    (count,) = unpack_from(f"{order}H", tiff, directory)
    for entry in range(directory + 2, min(directory + 2 + 12 * count, len(tiff) - 11), 12):
        tag, kind, _, value = unpack_from(f"{order}HHIH", tiff, entry)
        if tag == ORIENTATION and kind == 3 and 1 <= value <= 8:
            return value
    return 1


def exif_segment(orientation: int) -> bytes:
    content = b"Exif\0\0MM\0*" + pack(">IH", 8, 1) + pack(">HHIHH", ORIENTATION, 3, 1, orientation, 0) + pack(">I", 0)
    return b"\xff\xe1" + pack(">H", len(content) + 2) + content
