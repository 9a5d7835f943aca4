"""Images: detecting the type of a file, and which parts of it are kept."""

import io
import re
import shutil
import subprocess
from contextlib import suppress
from random import Random
from struct import pack

import pytest
from PIL import Image, ImageSequence

from blogapi.wings.images.formats import InvalidImage, UnsupportedImage, read_image
from tests.cases import cases
from tests.images.pictures import PROFILE, SECRET, SIZE, chunk, exif, jpeg, photograph, pictures, riff, save
from tests.timing import memory_limit

KINDS = ("jpeg, turned", "png", "gif", "webp", "webp, animated", "avif")
# The exiftool groups for the file, its size, its structure, its colors and its orientation
GROUPS = {"ExifTool", "File", "Composite", "JFIF", "APP14", "PNG", "GIF", "RIFF", "QuickTime", "ICC_Profile", "EXIF"}


def kept(content: bytes) -> bytes:
    """Return the bytes of a file that are kept."""
    return b"".join(read_image(io.BytesIO(content)).parts(1000))


def frames(content: bytes) -> list[tuple]:
    """Return everything visible: the frames with their size, mode, pixels and duration."""
    with Image.open(io.BytesIO(content)) as image:
        loop = image.info.get("loop")
        return [
            (frame.size, frame.mode, frame.tobytes(), frame.info.get("duration"), loop)
            for frame in ImageSequence.Iterator(image)
        ]


def test_type_and_size_are_found_pixels_stay_as_they_are_and_only_what_is_visible_is_kept():
    for name, content in pictures().items():
        image = read_image(io.BytesIO(content))
        size = SIZE[::-1] if "turned" in name else SIZE
        assert (name, image.type, image.width, image.height) == (name, f"image/{name.partition(',')[0]}", *size)
        assert frames(kept(content)) == frames(content), name
        assert SECRET not in kept(content), name
        assert kept(kept(content)) == kept(content), name


def test_bytes_after_the_adobe_color_data_are_removed():
    plain = save(photograph("CMYK"), "JPEG")
    start = plain.index(b"\xff\xee\0\x0eAdobe")
    longer = plain[: start + 2] + pack(">H", 14 + len(SECRET)) + plain[start + 4 : start + 16] + SECRET
    assert kept(longer + plain[start + 16 :]) == kept(plain)


@cases("name", ["jpeg", "jpeg, cmyk", "png", "webp"])
def test_color_profile_is_kept(name):
    with Image.open(io.BytesIO(kept(pictures()[name]))) as image:
        assert image.info["icc_profile"] == PROFILE


@cases("orientation", range(1, 9))
def test_orientation_of_a_jpeg_is_kept_without_the_rest_of_its_exif(orientation):
    with Image.open(io.BytesIO(kept(jpeg(orientation)))) as image:
        assert dict(image.getexif()) == ({} if orientation == 1 else {0x0112: orientation})


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("exiftool"), reason="exiftool is not installed")
def test_exiftool_finds_only_size_orientation_and_color(tmp_path):
    for name, content in pictures().items():
        (tmp_path / name).write_bytes(kept(content))
    command = ["exiftool", "-a", "-G0", "-s", *(tmp_path / name for name in pictures())]
    lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    assert len([line for line in lines if line.startswith("=====")]) == len(pictures())
    found = [line.lstrip("[").replace("]", " ").split()[:2] for line in lines if line.startswith("[")]
    assert {group for group, _ in found} <= GROUPS
    assert {name for group, name in found if group == "EXIF"} <= {"Orientation"}


@cases("name", KINDS)
def test_every_truncation_is_refused(name):
    whole = kept(pictures()[name])
    for end in range(len(whole)):
        with pytest.raises((InvalidImage, UnsupportedImage)):
            read_image(io.BytesIO(whole[:end]))


@cases("name", KINDS)
def test_changed_bytes_never_crash(name, scale):
    random = Random(name)
    whole = pictures()[name]
    for _ in range(500 * scale):
        content = bytearray(whole)
        for _ in range(random.randint(1, 4)):
            content[random.randrange(len(content))] = random.randrange(256)
        with suppress(InvalidImage, UnsupportedImage):
            kept(bytes(content))


PNG = save(photograph(), "PNG")
AVIF = b"\0\0\0\x10ftypavif" + bytes(4)


def sized(width: int, height: int) -> bytes:
    """Return a PNG whose header states this size."""
    return PNG[:8] + chunk(b"IHDR", pack(">II", width, height) + b"\x08\x02\0\0\0") + PNG[33:]


WITHOUT_IMAGE = [PNG[:33] + chunk(b"IDAT", b"") + chunk(b"IEND", b""), PNG[:33] + chunk(b"IEND", b"")]
WITHOUT_IMAGE += [b"\xff\xd8\xff\xd9", b"GIF89a\1\0\1\0\0\0\0;", AVIF + b"\0\0\0\x08meta\0\0\0\x08mdat"]
WITHOUT_IMAGE += [riff(), riff((b"VP8 ", b"nothing at all")), riff((b"VP8X", bytes(10)))]


@cases(
    ("content", "why"),
    *((content, "it contains no image") for content in WITHOUT_IMAGE),
    *((part + PNG[8:], "it does not begin with a single header") for part in (PNG[:8] + chunk(b"IDAT", b""), PNG[:33])),
    (PNG[:8] + chunk(b"IHDR", PNG[16:25] + b"\5\0\0\0") + PNG[33:], "its color type is unknown"),
    (PNG[:33] + chunk(b"gAMA", bytes(5)) + PNG[33:], "a part has the wrong length"),
    (PNG[:-12] + chunk(b"IEND", SECRET), "a part has the wrong length"),
    (PNG[:33] + chunk(b"SECR", b"") + PNG[33:], "it has an unknown part"),
    (PNG[:33] + b"\xff\xff\xff\xfftEXt" + PNG[33:], "the file ends early"),
    (PNG[:45] + b"?" + PNG[46:], "a checksum does not match"),
    (PNG[:8] + chunk(b"IHDR", PNG[16:26]) + PNG[33:], "a part has the wrong length"),
    (PNG[:8] + chunk(b"IHDR", PNG[16:25] + b"\3\0\0\0") + PNG[33:], "it has no palette"),
    (sized(16_385, 1), "must have 1 to 16,384 pixels per side, not 16,385 x 1"),
    (sized(16_384, 16_384), "must have at most 100 megapixels, not 16,384 x 16,384"),
    (sized(0, 0), "must have 1 to 16,384 pixels per side, not 0 x 0"),
    (b"\xff\xd8\xff\xe1\0\1", "it has a segment without a length"),
    (b"\xff\xd8\xff\xc8\0\x04xx", "it has an unknown segment"),
    (b"\xff\xd8" + 2 * b"\xff\xc0\0\x08\x08\0\x01\0\x01\1", "it contains several images"),
    (b"\xff\xd8\xff\xe0\0\x04xxscript", "there are bytes where a segment should begin"),
    (b"GIF89a\1\0\1\0\0\0\0<script>", "there are bytes where a block should begin"),
    (riff((b"ANMF", bytes(16) + b"SECR" + bytes(4))), "it contains a frame without an image"),
    (riff((b"ANMF", bytes(16) + b"ANMF" + pack("<I", 16) + bytes(16))), "it has a frame within a frame"),
    (riff(*2 * [(b"VP8L", b"\x2f" + bytes(4))]), "it contains several images, or one of another size"),
    (riff((b"VP8X", b"\0" * 9 + b"\1"), (b"VP8L", b"\x2f" + bytes(4))), "it contains several images, or one of"),
    (b"RIFF\xff\xff\xff\xffWEBPVP8 ", "the file ends early"),
    (b"\0\0\0\x08ftypavif" + bytes(8), "the file ends early"),
    (AVIF + b"\0\0\0\x20metainfe\3" + bytes(9) + b"Exif" + bytes(6), "has metadata"),
    (AVIF + b"\0\0\0\x10moovtrakudta", "has metadata"),
)
def test_damaged_files_are_refused(content, why):
    with pytest.raises(InvalidImage, match=f"^{why}"):
        read_image(io.BytesIO(content))


@pytest.mark.parametrize("options", [{"exif": exif()}, {"xmp": b"<x:xmpmeta/>"}])
def test_avif_with_metadata_is_refused_until_exiftool_has_emptied_it(options):
    content = save(photograph(), "AVIF", **options)
    with pytest.raises(InvalidImage, match=r"^has metadata, which cannot be removed from an AVIF: run `exiftool -all="):
        kept(content)
    emptied = re.sub(rb"(?s)(\x00\x02\0\0\0\x01.{4}).{4}", rb"\1\0\0\0\0", content, count=1)  # the length of item 2
    assert kept(emptied) == emptied


@cases(("item", "why"), (b"infe\2" + bytes(7) + b"Exif", "has metadata"), (b"", "it contains no image"))
def test_the_length_that_a_box_claims_takes_no_memory(item, why):
    box = b"meta" + item + pack(">I", 2**26) + b"iloc" + bytes(4) + b"\4\0" + bytes(8)
    with memory_limit(1_000_000), pytest.raises(InvalidImage, match=why):
        kept(AVIF + pack(">I", 4 + len(box)) + box)


def test_many_tiny_parts_are_refused_quickly():
    with pytest.raises(InvalidImage, match=r"^it has too many parts$"):
        read_image(io.BytesIO(PNG[:33] + 100_000 * chunk(b"prVt", b"") + PNG[33:]))
