"""Read PNG, GIF, WebP and AVIF files, which consist of chunks."""

import re
import zlib
from collections.abc import Iterator
from struct import pack, unpack_from

from blogapi.wings.images.formats.file import READ_BYTES, FileReader, InvalidImage, Size

# PNG (W3C, third edition): chunks with a length, a name, data and a checksum

MANY = 2**31  # bytes; longer than any chunk
# Chunks of the image, its colors and its animation, and the maximum length of each in bytes
PNG_KEPT = {b"IHDR": 13, b"PLTE": 768, b"IDAT": MANY, b"IEND": 0, b"bKGD": 6, b"pHYs": 9, b"mDCV": 24, b"cLLI": 8}
PNG_KEPT |= {b"tRNS": 256, b"gAMA": 4, b"cHRM": 32, b"sRGB": 1, b"iCCP": MANY, b"sBIT": 4, b"cICP": 4}
PNG_KEPT |= {b"acTL": 8, b"fcTL": 26, b"fdAT": MANY}
COLOR_PROFILE = b"iCCP"  # Some programs write a wrong checksum for this chunk, which viewers then ignore.
PALETTE = 3  # color type
DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}  # allowed bit depths by color type


def read_png(reader: FileReader) -> Size:
    """Keep the chunks needed to show the image. Return the image's size."""
    reader.keep(0, 8)
    position, kind, with_data = 8, b"", set[bytes]()
    while kind != b"IEND":
        length, kind = unpack_from(">I4s", reader.read(position, 8))
        end = position + 12 + length
        reader.require(end)
        if (kind == b"IHDR") is not (position == 8):
            raise InvalidImage("it does not begin with a single header")
        if length > PNG_KEPT.get(kind, MANY) or (kind == b"IHDR" and length != PNG_KEPT[kind]):
            raise InvalidImage("a part has the wrong length")
        is_whole = has_checksum(reader, position + 4, end - 4)
        if not is_whole and kind != COLOR_PROFILE:
            raise InvalidImage("a checksum does not match")
        with_data |= {kind} if length else set()
        if kind in PNG_KEPT and is_whole:
            reader.keep(position, end)
        elif kind[:1].isupper():
            raise InvalidImage("it has an unknown part")
        position = end
    if b"IDAT" not in with_data:
        raise InvalidImage("it contains no image")
    width, height, depth, color = unpack_from(">IIBB", reader.read(16, 10))
    if depth not in DEPTHS.get(color, ()):
        raise InvalidImage("its color type is unknown")
    if color == PALETTE and b"PLTE" not in with_data:
        raise InvalidImage("it has no palette")
    return width, height


def has_checksum(reader: FileReader, start: int, end: int) -> bool:
    """Return whether these bytes match the CRC that follows them."""
    checksum = 0
    for position in range(start, end, READ_BYTES):
        checksum = zlib.crc32(reader.read(position, min(READ_BYTES, end - position)), checksum)
    return checksum.to_bytes(4, "big") == reader.read(end, 4)


# GIF (GIF89a): blocks whose data consists of sub-blocks of up to 255 bytes

IMAGE, EXTENSION, TRAILER = 0x2C, 0x21, 0x3B
CONTROL, APPLICATION = 0xF9, 0xFF
LOOPS = (b"NETSCAPE2.0", b"ANIMEXTS1.0")


def read_gif(reader: FileReader) -> Size:
    """Keep the frames, their control blocks, and the number of repeats. Return the image's size."""
    width, height, flags = unpack_from("<HHB", reader.read(6, 7))
    position = 13 + color_table(flags)
    reader.require(position)
    reader.keep(0, position)
    has_pixels = False
    while (kind := reader.read(position, 1)[0]) != TRAILER:
        start = position
        if kind == IMAGE:
            has_pixels = True
            position = skip_sub_blocks(reader, start + 11 + color_table(reader.read(start + 9, 1)[0]))
            reader.keep(start, position)
        elif kind == EXTENSION:
            position = skip_sub_blocks(reader, start + 2)
            keep_extension(reader, start, position)
        else:
            raise InvalidImage("there are bytes where a block should begin")
    reader.keep(position, position + 1)
    if not has_pixels:
        raise InvalidImage("it contains no image")
    return width, height


def color_table(flags: int) -> int:
    """Return the size in bytes of the color table that these flags describe, or 0 if there is none."""
    return 3 * 2 ** ((flags & 7) + 1) if flags & 0x80 else 0


def skip_sub_blocks(reader: FileReader, position: int) -> int:
    """Return the position after the sub-blocks that begin at `position`."""
    while length := reader.read(position, 1)[0]:
        position += 1 + length
    return position + 1


def keep_extension(reader: FileReader, start: int, end: int) -> None:
    """Keep an extension if it is a frame's control block or the number of repeats."""
    head = reader.read(start + 1, min(18, end - start - 1))
    if head[0] == CONTROL and end - start == 8:
        reader.keep(start, end)
    elif head[0] == APPLICATION and head[2:13] in LOOPS and head[13:15] == b"\x03\x01":
        reader.add(b"!" + head[:17] + b"\0")


# WebP (RFC 9649): chunks with a name and a length in a RIFF file

PICTURES = {b"VP8 ", b"VP8L"}
WEBP_KEPT = {b"ICCP", b"ANIM", b"ALPH", *PICTURES}
EXIF_AND_XMP = 0x0C  # flags of VP8X


def read_webp(reader: FileReader) -> Size:
    """Write a new header, and keep the chunks that belong to the image. Return the image's size."""
    end = 8 + unpack_from("<I", reader.read(4, 4))[0]
    reader.require(end)
    reader.add(b"")  # replaced with the header once the length is known
    chunks = list(keep_chunks(reader, 12, end))
    pictures = [size for kind, size in chunks if kind in PICTURES]
    frames = [size for kind, size in chunks if kind == b"ANMF"]
    if not pictures + frames:
        raise InvalidImage("it contains no image")
    canvas = dict(chunks).get(b"VP8X", (pictures + frames)[0])
    if len(pictures) > 1 or (pictures and not frames and pictures[0] != canvas):
        raise InvalidImage("it contains several images, or one of another size")
    reader.pieces[0] = b"RIFF" + pack("<I", 4 + sum(map(len, reader.pieces))) + b"WEBP"
    return canvas


def keep_chunks(reader: FileReader, start: int, end: int, in_frame: bool = False) -> Iterator[tuple[bytes, Size]]:
    """Keep known chunks. For the canvas and for each image and frame, yield the chunk's name and the size."""
    while start < end:
        kind, length = unpack_from("<4sI", reader.read(start, 8))
        following = start + 8 + length + (length & 1)
        if following > end:
            raise InvalidImage("the file ends early")
        if kind == b"VP8X" and length == 10:
            canvas = reader.read(start + 8, 10)
            reader.add(b"VP8X" + pack("<IB", 10, canvas[0] & ~EXIF_AND_XMP) + canvas[1:])
            yield kind, (1 + int.from_bytes(canvas[4:7], "little"), 1 + int.from_bytes(canvas[7:10], "little"))
        elif kind == b"ANMF":
            if in_frame:
                raise InvalidImage("it has a frame within a frame")
            yield from keep_frame(reader, start, start + 8 + length)
        elif kind in WEBP_KEPT:
            reader.keep(start, following)
            if kind in PICTURES:
                yield kind, webp_size(reader.read(start + 8, min(10, length)))
        start = following


def keep_frame(reader: FileReader, start: int, end: int) -> Iterator[tuple[bytes, Size]]:
    """Keep a frame of an animation without its unknown chunks. Yield the frame's chunk name and size."""
    head = reader.read(start + 8, 16)
    at = len(reader.pieces)
    reader.add(b"")
    sizes = [size for kind, size in keep_chunks(reader, start + 24, end, in_frame=True) if kind in PICTURES]
    if len(sizes) != 1:
        raise InvalidImage("it contains a frame without an image, or with several")
    yield b"ANMF", sizes[0]
    reader.pieces[at] = b"ANMF" + pack("<I", 16 + sum(map(len, reader.pieces[at:]))) + head


def webp_size(head: bytes) -> Size:
    if head[3:6] == b"\x9d\x01\x2a" and len(head) == 10:
        return tuple(side & 0x3FFF for side in unpack_from("<HH", head, 6))
    if head[:1] == b"\x2f" and len(head) >= 5:
        (bits,) = unpack_from("<I", head, 1)
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    raise InvalidImage("it contains no image")


# AVIF (ISO/IEC 14496-12 and 23008-12): boxes with a length and a name. Metadata cannot be removed from an AVIF.

METADATA = "has metadata, which cannot be removed from an AVIF: run `exiftool -all= FILE` first"
MAX_HEAD = 1024 * 1024  # maximum size of a box without pixels, in bytes
# Patterns that detect metadata in each kind of box
BOXES = {
    b"ftyp": rb"(?!)",
    b"mdat": rb"(?!)",
    b"meta": rb"infe[\x00\x01]|uuid|udta|xml |bxml",
    b"moov": rb"uuid|udta|meta",
}
# The id of an item with metadata, of 16 or 32 bits
METADATA_ITEM = re.compile(rb"infe(?:\x02...(..)|\x03...(....))..(?:Exif|mime|uri )", re.DOTALL)


def read_avif(reader: FileReader) -> Size:
    """Keep the whole file if it contains only images. Return the size of the largest image."""
    start, boxes = 0, {b"meta": b""}
    while start + 8 <= reader.size:
        length, kind = unpack_from(">I4s", reader.read(start, 8))
        if length == 1:
            (length,) = unpack_from(">Q", reader.read(start + 8, 8))
        length = length or (reader.size - start if kind in BOXES else 0)
        if length < 8 or start + length > reader.size:
            if b"mdat" in boxes and kind not in BOXES:  # bytes after the image
                break
            raise InvalidImage("the file ends early")
        boxes[kind] = box = reader.read(start, min(length, 8 if kind == b"mdat" else MAX_HEAD))
        is_large = length > MAX_HEAD and kind != b"mdat"
        if kind not in BOXES or is_large or re.search(BOXES[kind], box) or has_metadata_items(box):
            raise InvalidImage(METADATA)
        start += length
    sizes = [unpack_from(">II", extents) for extents in re.findall(rb"(?s)ispe\x00{4}(.{8})", boxes[b"meta"])]
    if b"mdat" not in boxes or not sizes:
        raise InvalidImage("it contains no image")
    reader.keep(0, start)
    width, height = max(sizes)
    return (height, width) if re.search(rb"irot[\x01\x03]", boxes[b"meta"]) else (width, height)


def has_metadata_items(meta: bytes) -> bool:
    """Return whether an item with metadata has any bytes, because exiftool leaves empty items."""
    items = {short or long for short, long in METADATA_ITEM.findall(meta)}
    return bool(items and items - empty_items(meta))


def empty_items(meta: bytes) -> set[bytes]:
    """Return the ids of items without bytes, provided that each item has one extent (ISO/IEC 14496-12, 8.11.3)."""
    box = re.search(rb"(?s)(....)iloc(.)...(.)(.)", meta)  # its length, its version, and four sizes in bytes
    if not box:
        return set()
    version, sizes, more_sizes = b"".join(box.groups()[1:])
    id_size, offset_size, length_size = 4 if version == 2 else 2, sizes >> 4, sizes & 15
    base_size, index_size = more_sizes >> 4, more_sizes & 15 if version else 0
    count = id_size + (4 if version else 2) + base_size  # where an entry states the number of its extents
    size = count + 2 + index_size + offset_size + length_size  # of an entry with one extent
    end = min(box.start() + int.from_bytes(box[1]), len(meta))
    entries = [meta[start : start + size] for start in range(box.end() + id_size, end, size)]
    if not length_size or any(entry[count : count + 2] != b"\0\1" for entry in entries):
        return set()
    return {entry[:id_size] for entry in entries if not any(entry[-length_size:])}
