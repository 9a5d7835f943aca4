"""Requests from a socket: heads, bounded bodies, and the server's own refusals."""

import re
from collections.abc import Iterable
from types import SimpleNamespace
from urllib.parse import quote

from gunicorn.config import Config
from gunicorn.http import body as gunicorn_body
from gunicorn.http import errors, message
from gunicorn.http.unreader import Unreader
from gunicorn.util import bytes_to_str
from werkzeug.exceptions import BadRequest, RequestEntityTooLarge, RequestTimeout, ServiceUnavailable

from blogapi.api.request import MAX_BODY_BYTES, RequestInfo
from blogapi.server.connection import KEPT_BYTES, ClientConnection
from blogapi.storage.errors import RETRY_SECONDS
from blogapi.storage.keys import KEY_LENGTH

# Settings of gunicorn's parser. In gunicorn's own object, each of about forty look-ups per request takes three calls.
PARSER_SETTINGS = SimpleNamespace(**{name: setting.get() for name, setting in Config().settings.items()})
PARSER_SETTINGS.is_ssl = False
PARSER_SETTINGS.limit_request_line = 8190  # bytes
# The parser ignores X-Forwarded headers. Trusting every sender with none of them saves parsing its address.
PARSER_SETTINGS.forwarded_allow_ips, PARSER_SETTINGS.forwarded_allow_networks = ["*"], tuple
PARSER_SETTINGS.forwarder_headers, PARSER_SETTINGS.secure_scheme_headers = [], {}
ASCII = bytes(range(128))
REMEMBERED = 256  # at most this many sets of header fields are cached
REMEMBERED_BYTES = 2048  # only heads up to this size are cached

# A request line that needs no urlsplit: its method, target, path, query and minor version
PLAIN_LINE = re.compile(rb'([A-Z]{3,20}) ((/(?!/)[!"$->@-~]*)(?:\?([!"$-~]*))?) HTTP/1\.([01])')

Refusal = tuple[int, str]

CODING: Refusal = (501, "Transfer-Encoding: must be chunked or left out")
TOO_LARGE: Refusal = (431, "the header must have at most 100 fields of at most 8,190 bytes, and 65,536 in all")
FRAGMENT: Refusal = (400, "the target must not have a fragment (#)")
HOST: Refusal = (400, "Host: must be given once, a host and perhaps a port")
REQUEST_LINE: Refusal = (400, "the request line must be a method, a target and HTTP/1.1; this port speaks plain HTTP")
MALFORMED: Refusal = (400, "the header is not valid HTTP")
# By the exception of gunicorn's parser, or by the name of the invalid field
REFUSALS: dict[type[Exception] | str, Refusal] = {
    "CONTENT-LENGTH": (400, "Content-Length: must be one whole number, and not together with Transfer-Encoding"),
    "CONTENT-TYPE": (400, "Content-Type: must be given once"),
    "HOST": HOST,
    "TRANSFER-ENCODING": (400, "Transfer-Encoding: must be chunked, once, and in HTTP/1.1"),
    errors.ExpectationFailed: (417, "Expect: must be 100-continue"),
    errors.InvalidHTTPVersion: (400, "the HTTP version must be 1.0 or 1.1"),
    errors.InvalidRequestLine: REQUEST_LINE,
    errors.InvalidRequestMethod: (400, "the method must have 3 to 20 upper-case letters"),
    errors.LimitRequestHeaders: TOO_LARGE,
    errors.LimitRequestLine: (414, "the request line must have at most 8,190 bytes"),
    errors.NoMoreData: (400, "the header is incomplete"),
    TimeoutError: (408, "the header did not arrive in time"),
    errors.UnsupportedTransferCoding: CODING,
}
MANY_BODIES = "too many large requests at the same time; nothing was changed"
STOPPED = "the service was stopped while the body was being sent; nothing was changed"
BUSY: Refusal = (503, "too many large responses are being sent; try again")
# Prefixes of fields that are parsed, in quadratic time: 2 ms for MAX_PARSED_BYTES.
PARSED_FIELDS = ("ACCEPT", "CACHE-CONTROL", "CONTENT-ENCODING", "CONTENT-TYPE", "IF-", "RANGE")
MAX_PARSED_BYTES = 2048
PARSED_TOO_LARGE: Refusal = (431, "Accept, Content-Type, If-Match and the like must have at most 2,048 bytes in all")
# RFC 3986, section 3.2: a host and an optional port
AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~%!$&'()*+,;=-]+)(:[0-9]{0,5})?")


class ChunkedReader(gunicorn_body.ChunkedReader):
    """Reads a chunked body, and refuses it as soon as a chunk's size exceeds the limit."""

    announced = 0  # bytes so far
    max_bytes = MAX_BODY_BYTES
    in_pieces = False  # whether the application keeps only a piece at a time

    def parse_chunk_size(self, unreader: Unreader, data: bytes | None = None) -> tuple[int, bytes | None]:
        """Return the size of the next chunk, and its bytes that have already been read."""
        size, rest = super().parse_chunk_size(unreader, data)
        before, self.announced = self.announced, self.announced + size
        if before <= KEPT_BYTES < self.announced <= self.max_bytes and not self.in_pieces:
            reserve(unreader.sock, MAX_BODY_BYTES)
        if self.announced > self.max_bytes:
            raise RequestEntityTooLarge(f"body: must be at most {self.max_bytes:,} bytes")
        return size, rest


class HeaderFields:
    """The parsed header fields of a request, which other requests may share."""

    def __init__(self, fields: Iterable[tuple[str, str]] = ()):
        self.environ: dict[str, str] = {}  # entries of the WSGI environment
        self.refusal: Refusal | None = None  # why the server refuses fields that gunicorn would accept
        parsed = 0
        for name, value in fields:
            key = name.replace("-", "_")
            if key not in ("CONTENT_TYPE", "CONTENT_LENGTH"):
                key = f"HTTP_{key}"
            separator = "; " if key == "HTTP_COOKIE" else ","  # RFC 9110, section 5.3; RFC 6265, section 5.4
            self.environ[key] = f"{self.environ[key]}{separator}{value}" if key in self.environ else value
            if name == "TRANSFER-ENCODING" and value.lower() != "chunked":
                self.refusal = CODING
            elif name.startswith(PARSED_FIELDS):
                parsed += len(value)
        if parsed > MAX_PARSED_BYTES:
            self.refusal = self.refusal or PARSED_TOO_LARGE
        self.host = self.environ.get("HTTP_HOST")
        if self.host is not None and not AUTHORITY.fullmatch(self.host):
            self.refusal = self.refusal or HOST
        connection = self.environ.get("HTTP_CONNECTION", "").lower().replace("\t", "").replace(" ", "")
        self.connection_options = connection.split(",")

    @property
    def depend_on_version(self) -> bool:
        """Whether HTTP/1.0 changes their meaning, or they announce a chunked body."""
        return not self.environ.keys().isdisjoint(("HTTP_EXPECT", "HTTP_TRANSFER_ENCODING"))


parsed_fields: dict[bytes, HeaderFields] = {}


def remember(block: bytes, fields: HeaderFields) -> None:
    """Cache parsed header fields in place of the oldest ones."""
    if len(parsed_fields) >= REMEMBERED:
        del parsed_fields[next(iter(parsed_fields))]
    parsed_fields[block] = fields


def split_head(data: bytes) -> tuple[bytes, bytes, bytes] | None:
    """Return request line, header fields and rest, or None if the head is long or incomplete."""
    head, end, rest = data.partition(b"\r\n\r\n")
    line, _, fields = head.partition(b"\r\n")
    if not end or not line or b"\n" in line or len(head) > REMEMBERED_BYTES:
        return None
    return line, fields, rest


class HttpRequest(message.Request):
    """A request, which is also its `wsgi.input`. If it cannot be read, the exception's `request` refers to it."""

    cfg = PARSER_SETTINGS
    limit_request_fields, limit_request_field_size = cfg.limit_request_fields, cfg.limit_request_field_size
    fields = HeaderFields()
    path = uri = ""
    method: str | None = None
    body_begun = False

    def __init__(self, unreader: Unreader, address: tuple):
        self.unreader = unreader
        self.connection: ClientConnection = unreader.sock
        self.peer_addr = self.remote_addr = address
        self.info = RequestInfo()
        try:
            self.parse_head()
        except Exception as error:
            error.request = self  # type: ignore[attr-defined]
            raise

    def parse_head(self) -> None:
        """Parse repeated header fields only once; gunicorn parses long or incomplete heads."""
        data = self.unreader.read()
        if not data:
            raise StopIteration
        parts = split_head(data)
        if parts is None:
            self.unreader.unread(data)
            del data  # freed, because the rest may take long to arrive
            super().__init__(self.cfg, self.unreader, self.peer_addr)
            return
        line, fields, rest = parts
        if rest:
            self.unreader.unread(rest)
        self._parse_line(line)
        self._recall_fields(fields)

    def _parse_line(self, line: bytes) -> None:
        if match := PLAIN_LINE.fullmatch(line):
            self.method, self.uri, self.path, self.query, minor = map(bytes_to_str, match.groups(b""))
            self.version = 1, int(minor)
        else:
            self.parse_request_line(line)

    def _recall_fields(self, block: bytes) -> None:
        if block in parsed_fields:
            self.fields = parsed_fields[block]
            length = int(self.fields.environ.get("CONTENT_LENGTH", 0))
            self.reader = gunicorn_body.LengthReader(self.unreader, length)
            return
        self.headers = self.parse_headers(block) if block else []
        self.set_body_reader()
        if not self.fields.depend_on_version:
            remember(block, self.fields)

    def parse_request_line(self, line_bytes: bytes) -> None:
        """Percent-encode the target's bytes beyond ASCII, which curl sends as they are."""
        if not line_bytes.isascii():
            method, space, rest = line_bytes.partition(b" ")
            line_bytes = method + space + quote(rest, safe=ASCII).encode()
        super().parse_request_line(line_bytes)

    def set_body_reader(self) -> None:
        self.fields = HeaderFields(self.headers)
        super().set_body_reader()
        is_chunked = isinstance(self.body.reader, gunicorn_body.ChunkedReader)
        self.reader = ChunkedReader(self, self.unreader) if is_chunked else self.body.reader

    def read(self, size: int) -> bytes:
        """Read up to `size` bytes of the body. Raises an HTTPException if they do not arrive."""
        try:
            if not self.body_begun:
                self._begin_body()
            data = self.reader.read(size)  # gunicorn's own `body` would copy it three times
            if self.info.max_body_bytes:
                self.connection.release()
                if self.info.kept_bytes > KEPT_BYTES:
                    reserve(self.connection, self.info.kept_bytes)
            return data
        except TimeoutError:
            raise RequestTimeout("body: did not arrive in time") from None
        except errors.ParseException:
            raise BadRequest("body: invalid chunk, or too many chunks") from None
        except OSError:
            if self.connection.stopped:
                raise ServiceUnavailable(STOPPED, retry_after=RETRY_SECONDS) from None
            raise BadRequest("body: incomplete") from None

    def _begin_body(self) -> None:
        self.body_begun = True
        self.remember_key()
        self.connection.identify(self.key, self.info.is_known)
        length = getattr(self.reader, "length", 0)
        if max_bytes := self.info.max_body_bytes:
            self.reader.max_bytes, self.reader.in_pieces = max_bytes, True
            self.unreader.max_body_chunk = KEPT_BYTES
        elif length > KEPT_BYTES:
            reserve(self.connection, length)
        self.connection.expect_body(max_bytes or MAX_BODY_BYTES)
        if self._expected_100_continue:
            self.connection.send(b"HTTP/1.1 100 Continue\r\n\r\n")

    def remember_key(self) -> None:
        """Remember the key if the application found it valid. It may have come in the body."""
        if self.info.key_name and (key := self.key):
            self.connection.shared.keys.add(key)

    @property
    def key(self) -> str:
        """The API key at the end of the Authorization header, if there is one."""
        return self.fields.environ.get("HTTP_AUTHORIZATION", "")[-KEY_LENGTH:]

    @property
    def is_persistent(self) -> bool:
        """Whether the whole body was read and the client may send more requests (RFC 9112, section 9.3)."""
        if getattr(self.reader, "length", 0) or getattr(self.reader, "parser", None) or self.method == "CONNECT":
            return False
        options = self.fields.connection_options
        return "close" not in options and (self.version >= (1, 1) or "keep-alive" in options)

    @property
    def refusal(self) -> Refusal | None:
        """The refusal of a head that gunicorn accepts but RFC 9112 (section 3.2) does not, or None."""
        missing = HOST if self.fields.host is None and self.version >= (1, 1) else None
        return self.fields.refusal or missing or (FRAGMENT if "#" in self.uri else None)


def reserve(connection: ClientConnection, size: int) -> None:
    """Reserve memory for a large body. Raises ServiceUnavailable."""
    if not connection.shared.large[connection.keyed].reserve(connection, size):
        raise ServiceUnavailable(MANY_BODIES, retry_after=RETRY_SECONDS)
