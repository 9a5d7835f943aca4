"""Pictures of every kind, made with Pillow, with segments and chunks that are not part of the picture."""

import io
import zlib
from functools import cache
from random import Random
from struct import pack

from PIL import Image, ImageCms, PngImagePlugin

SIZE = 61, 43  # pixels
SECRET = b"48.137 N 11.575 E, with a telephone"
XMP = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><secret>%b</secret></x:xmpmeta>' % SECRET
PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


@cache
def photograph(mode: str = "RGB") -> Image.Image:
    """Return a picture of noise on a gradient, which shows any difference."""
    random = Random(7)
    pixels = bytes((x * 3 + y * 2 + random.randrange(32)) % 256 for y in range(SIZE[1]) for x in range(3 * SIZE[0]))
    return Image.frombytes("RGB", SIZE, pixels).convert(mode)


def exif(orientation: int = 1) -> bytes:
    """Return a photograph's Exif: location, camera and orientation."""
    found = Image.Exif()
    found[0x0112] = orientation
    found[0x010F] = SECRET.decode()  # the camera
    found.get_ifd(0x8825)[29] = "2026:11:20"  # GPS
    return found.tobytes()


def save(image: Image.Image, kind: str, **options: object) -> bytes:
    """Return a picture as a file."""
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


@cache
def large(width: int = 1600, height: int = 1200) -> bytes:
    """Return a PNG without compression, by default of 22 parts."""
    return save(photograph().resize((width, height)), "PNG", compress_level=0)


def jpeg(orientation: int = 1, mode: str = "RGB", **options: object) -> bytes:
    """Return a photograph with Exif, a color profile, a comment, other applications' data, and a trailing video."""
    plain = save(photograph(mode), "JPEG", exif=exif(orientation), icc_profile=PROFILE, comment=SECRET, **options)
    segments = b"".join(b"\xff" + bytes([marker]) + pack(">H", 2 + len(SECRET)) + SECRET for marker in (0xE2, 0xED))
    return plain[:2] + segments + plain[2:] + b"ftypmp4 " + SECRET


def chunk(kind: bytes, data: bytes) -> bytes:
    """Return a chunk of a PNG."""
    return pack(">I", len(data)) + kind + data + pack(">I", zlib.crc32(kind + data))


def png(image: Image.Image | None = None, **options: object) -> bytes:
    """Return a PNG with texts, Exif, a time, an unknown chunk, and trailing bytes."""
    texts = PngImagePlugin.PngInfo()
    texts.add_text("Comment", SECRET.decode())
    texts.add_text("Author", SECRET.decode(), zip=True)
    texts.add_itxt("XML:com.adobe.xmp", XMP.decode())
    found = save(image or photograph(), "PNG", pnginfo=texts, exif=exif(), icc_profile=PROFILE, **options)
    return found[:33] + chunk(b"tIME", b"\x07\xea\x0b\x14\x0a\x0a\x00") + chunk(b"prVt", SECRET) + found[33:] + SECRET


def gif() -> bytes:
    """Return an animation that repeats, with a comment and another application's data."""
    frames = [photograph("P"), photograph("L").convert("P"), photograph("1").convert("P")]
    found = save(frames[0], "GIF", save_all=True, append_images=frames[1:], duration=80, loop=3, comment=SECRET)
    data = bytes([len(SECRET)]) + SECRET + b"\0"
    return found[:-1] + b"!\xff\x0bXMP DataXMP" + data + b"!\x01\x0c" + bytes(12) + data + b";" + SECRET


def riff(*chunks: tuple[bytes, bytes]) -> bytes:
    """Return a WebP file made of these chunks."""
    body = b"".join(kind + pack("<I", len(data)) + data + b"\0" * (len(data) % 2) for kind, data in chunks)
    return b"RIFF" + pack("<I", 4 + len(body)) + b"WEBP" + body


def webp(**options: object) -> bytes:
    """Return a WebP with Exif, XMP, a profile, an unknown chunk, and trailing bytes."""
    found = save(photograph(), "WEBP", exif=exif(), xmp=XMP, icc_profile=PROFILE, **options)
    unknown = b"SECR" + pack("<I", len(SECRET)) + SECRET + b"\0" * (len(SECRET) % 2)
    return found[:4] + pack("<I", len(found) - 8 + len(unknown)) + found[8:] + unknown + SECRET


@cache
def pictures() -> dict[str, bytes]:
    animation = {"save_all": True, "append_images": [photograph("L").convert("RGB")], "duration": 80}
    return {
        "jpeg": jpeg(),
        "jpeg, turned": jpeg(orientation=6),
        "jpeg, grey": jpeg(mode="L"),
        "jpeg, cmyk": jpeg(mode="CMYK"),
        "jpeg, progressive": jpeg(progressive=True),
        "jpeg, restarts": jpeg(restart_marker_blocks=1),
        "png": png(),
        "png, 16 bits": png(photograph("L").convert("I;16")),
        "png, palette with transparency": png(photograph("P"), transparency=0),
        "png, animated": png(**animation),
        "gif": gif(),
        "webp": webp(),
        "webp, lossless": webp(lossless=True),
        "webp, simple": save(photograph(), "WEBP"),
        "webp, simple and lossless": save(photograph(), "WEBP", lossless=True),
        "webp, animated": save(photograph(), "WEBP", **animation, exif=exif(), xmp=XMP),
        "avif": save(photograph(), "AVIF"),
        "avif, and more": save(photograph(), "AVIF") + SECRET,
        "avif, animated": save(photograph(), "AVIF", **animation),
    }
