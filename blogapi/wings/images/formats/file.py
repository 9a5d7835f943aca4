"""Read an image file at any position, and collect the parts to keep."""

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

MAX_READS = 200_000  # far more than any real file needs, but still fast
READ_BYTES = 64 * 1024

Size = tuple[int, int]  # width and height


class InvalidImage(Exception):
    """The file is damaged or too large, or contains metadata that cannot be removed."""


class UnsupportedImage(Exception):
    """The file is not an image of a supported type."""


class ImageFile(NamedTuple):
    """An image in a file: its media type, its size as displayed, and the pieces to keep, in order."""

    file: BinaryIO
    type: str
    width: int
    height: int
    pieces: list[bytes | range]  # new bytes, or a range of bytes in the file

    def parts(self, size: int) -> Iterator[bytes]:
        """Yield the bytes to keep in parts of `size` bytes. The last part may be shorter."""
        part = bytearray()
        for piece in self.pieces:
            for start in range(0, len(piece), size):
                content = piece[start : start + size]
                if isinstance(content, range):
                    self.file.seek(content.start)
                    content = self.file.read(len(content))
                part += content
                if len(part) >= size:
                    yield bytes(part[:size])
                    del part[:size]
        if part:
            yield bytes(part)


class FileReader:
    """Reads a file at any position, and records which pieces to keep."""

    def __init__(self, file: BinaryIO):
        self.file = file
        self.size = file.seek(0, 2)
        self.pieces: list[bytes | range] = []
        self._reads = 0

    def read(self, start: int, length: int) -> bytes:
        """Return the bytes at a position. Raises InvalidImage if the file ends early."""
        self.require(start + length)
        self.file.seek(start)
        return self.file.read(length)

    def require(self, end: int) -> None:
        """Raise InvalidImage if the file ends before this position, or if this is called more than MAX_READS times."""
        self._reads += 1
        if end > self.size:
            raise InvalidImage("the file ends early")
        if self._reads > MAX_READS:
            raise InvalidImage("it has too many parts")

    def keep(self, start: int, end: int) -> None:
        last = self.pieces[-1] if self.pieces else None
        if isinstance(last, range) and last.stop == start:
            self.pieces[-1] = range(last.start, end)
        else:
            self.pieces.append(range(start, end))

    def add(self, content: bytes) -> None:
        """Keep bytes that are not from the file."""
        self.pieces.append(content)
