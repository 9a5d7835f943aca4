"""Parse forms (`multipart/form-data`, RFC 7578) piece by piece."""

from collections.abc import Callable, Iterator

from multipart import MultipartError, MultipartSegment, PushMultipartParser
from werkzeug.exceptions import BadRequest, RequestEntityTooLarge

from blogapi.api.request import Request, body_length

FORM = "multipart/form-data"
READ_BYTES = 64 * 1024
Receive = Callable[[bytes], object]  # receives a piece of a part


class Form:
    """Reads a form, and keeps its fields. A subclass can override `begin` to receive other parts, such as files."""

    too_large = "body: must be at most {:,} bytes"

    def __init__(self, request: Request, max_bytes: int, max_field_bytes: int, max_parts: int):
        self.request = request
        self.max_bytes = max_bytes
        self.max_field_bytes = max_field_bytes  # for all fields together
        self.max_parts = max_parts
        self.fields: list[tuple[str, bytearray]] = []
        self.size = 0  # bytes in all fields so far

    def read(self) -> None:
        """Read the form. Raises BadRequest if it is malformed, or RequestEntityTooLarge if it is too large."""
        receive: Receive = self.keep
        for event in self._events():
            if isinstance(event, MultipartSegment):
                receive = self.begin(event)
            else:
                receive(event)

    def begin(self, part: MultipartSegment) -> Receive:
        """Begin a part, and return the function that receives its content. By default, the part is a field."""
        self.fields.append((part.name, bytearray()))
        return self.keep

    def keep(self, piece: bytes) -> None:
        self.fields[-1][1].extend(piece)
        self.size += len(piece)
        self.request.info.kept_bytes += len(piece)
        if self.size > self.max_field_bytes:
            raise RequestEntityTooLarge(f"body: must have at most {self.max_field_bytes:,} bytes besides its files")

    def texts(self) -> list[tuple[str, str]]:
        """Return the names and values of the fields. Raises BadRequest."""
        return [(name, text_of(value)) for name, value in self.fields]

    def _events(self) -> Iterator[MultipartSegment | bytes]:
        boundary = self.request.mimetype_params.get("boundary", "")
        try:
            with PushMultipartParser(boundary, max_segment_count=self.max_parts, strict=True) as parser:
                for piece in _joined(pieces(self.request, self.max_bytes, self.too_large)):
                    yield from filter(None, parser.parse(piece))
        except MultipartError:
            reason = f"of at most {self.max_parts} parts, as curl -F sends it"
            raise BadRequest(f"body: must be a complete {FORM} body {reason}") from None


def _joined(parts: Iterator[bytes]) -> Iterator[bytes]:
    """Join every short piece to the one before it: the parser fails if the last piece is only a line break."""
    held = b""
    for piece in parts:
        if len(piece) > 2 or len(held) > READ_BYTES:
            yield from filter(None, [held])
            held = piece
        else:
            held += piece
    yield from filter(None, [held])


def text_of(data: bytes | bytearray) -> str:
    """Return the text of a field. Raises BadRequest."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise BadRequest("body: must be UTF-8") from None


def pieces(request: Request, max_bytes: int, too_large: str) -> Iterator[bytes]:
    """Yield the body in pieces. Raises RequestEntityTooLarge if it is too large, or BadRequest if it ends early."""
    request.info.max_body_bytes = max_bytes
    length, read, source = body_length(request), 0, request.environ["wsgi.input"]
    if length > max_bytes:
        raise RequestEntityTooLarge(too_large.format(max_bytes))
    while piece := source.read(READ_BYTES if length < 0 else min(READ_BYTES, length - read)):
        read += len(piece)
        if read > max_bytes:
            raise RequestEntityTooLarge(too_large.format(max_bytes))
        yield piece
    if read < length:
        raise BadRequest("body: shorter than its Content-Length")
