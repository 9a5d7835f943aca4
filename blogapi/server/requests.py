"""Read requests from a socket, find out the client's address, and refuse invalid requests."""

import re
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from urllib.parse import quote

from gunicorn.config import Config
from gunicorn.http import Request, errors, get_parser
from gunicorn.http.body import ChunkedReader, LengthReader
from gunicorn.http.unreader import SocketUnreader
from werkzeug.exceptions import BadRequest, RequestTimeout, ServiceUnavailable

from blogapi.api.request import MAX_BODY_BYTES, RequestInfo
from blogapi.config import Networks
from blogapi.server.connection import HEADER_BYTES, ClientConnection, Stopped
from blogapi.server.fairness import KEPT_BYTES, Client
from blogapi.storage.errors import RETRY_SECONDS

SETTINGS = Config()  # settings for gunicorn's parser
MAX_LINE = 8190  # bytes
SETTINGS.set("limit_request_line", MAX_LINE)
SETTINGS.set("forwarder_headers", "")  # The parser must not interpret X-Forwarded headers.
SETTINGS.set("secure_scheme_headers", {})
ASCII = bytes(range(128))
REMEMBERED = 256  # at most this many sets of header fields are cached
REMEMBERED_BYTES = 2048  # larger sets are not cached
HTTP_2 = b"PRI * HTTP/2.0"  # the first line sent by a client that assumes HTTP/2 (RFC 9113, section 3.4)

# Matches a request line that is simple enough to split without urlsplit, into method, target, path, query and minor
# version
PLAIN_LINE = re.compile(r'([A-Z]{3,20}) ((/(?!/)[!"$->@-~]*)(?:\?([!"$-~]*))?) HTTP/1\.([01])')

Fields = dict[str, str]  # entries of the WSGI environment
Refusal = tuple[int, str]

CODING: Refusal = (501, "Transfer-Encoding: must be chunked or left out")
TOO_LARGE: Refusal = (431, "the header must have at most 100 fields of at most 8,190 bytes, and 65,536 in total")
FRAGMENT: Refusal = (400, "the target must not have a fragment; in a path, # is written %23")
HOST: Refusal = (400, "Host: must be given once: a host and an optional port")
MALFORMED: Refusal = (400, "the header is not valid HTTP")
# The refusal for each exception of gunicorn's parser, or for the field that the exception reports as invalid
REFUSALS: dict[type[Exception] | str, Refusal] = {
    "AUTHORIZATION": (
        400,
        "Authorization: must have visible characters only; a key read from a file with Windows line breaks ends with a "
        r"carriage return: KEY=$(tr -d '\r' < FILE)",
    ),
    "CONTENT-LENGTH": (400, "Content-Length: must be one whole number, and must not be sent with Transfer-Encoding"),
    "CONTENT-TYPE": (400, "Content-Type: must be given once, without control characters"),
    "HOST": HOST,
    "TRANSFER-ENCODING": (400, "Transfer-Encoding: must be chunked, once, and in HTTP/1.1"),
    errors.ExpectationFailed: (417, "Expect: must be 100-continue"),
    errors.InvalidHTTPVersion: (505, "the HTTP version must be 1.0 or 1.1; a proxy in front can speak HTTP/2"),
    errors.InvalidRequestLine: (
        400,
        "the request line must be a method, a target (a space in it is %20) and HTTP/1.1; this port speaks plain HTTP",
    ),
    errors.InvalidRequestMethod: (400, "the method must have 3 to 20 upper-case letters"),
    errors.LimitRequestHeaders: TOO_LARGE,
    errors.LimitRequestLine: (414, "the request line must have at most 8,190 bytes"),
    errors.NoMoreData: (400, "the header is incomplete"),
    TimeoutError: (408, "the header did not arrive in time"),
    errors.UnsupportedTransferCoding: CODING,
}
EMPTY = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"  # any request: ChunkedReader needs one for trailers
MANY_BODIES = "too many large requests at the same time; nothing was changed"
MANY_REQUESTS = "too many requests or large responses at the same time; nothing was changed"
STOPPING: Refusal = (503, "the service is stopping")
STOPPED = "the service was stopped while the body was being sent; nothing was changed"
BUSY: Refusal = (503, "too many large responses are being sent; try again")
# Prefixes of the fields that take quadratic time to parse (2 ms for MAX_PARSED_BYTES)
PARSED_FIELDS = ("ACCEPT", "CACHE-CONTROL", "CONTENT-ENCODING", "CONTENT-TYPE", "IF-", "RANGE")
MAX_PARSED_BYTES = 2048
PARSED_TOO_LARGE: Refusal = (431, "Accept, Content-Type, If-Match and similar fields must not exceed 2,048 bytes")
ORIGIN = re.compile(rb"^origin:[ \t]*([!-~]+)", re.IGNORECASE | re.MULTILINE)
# RFC 3986, section 3.2: a host and an optional port
AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~%!$&'()*+,;=-]+)(:[0-9]{0,5})?")
MAX_PROXIES = 16  # at most this many X-Forwarded-For entries are read
# An X-Forwarded-For entry: an address, optionally with a port
HOP = re.compile(r"\[([0-9A-Fa-f:.]+)\](?::[0-9]{1,5})?|([0-9.]+)(?::[0-9]{1,5})?|([0-9A-Fa-f:.]+)", re.ASCII)


class Head:
    """The head of a request. If `parse` fails, only the attributes of the valid parts are set."""

    method = uri = path = query = ""
    version = 1, 1
    fields: Fields = {}
    refusal: Refusal | None = None  # why the server refuses this head although gunicorn would accept it

    def parse(self, data: bytes) -> None:
        """Parse a head, including the empty line that ends it. Raises ParseException or NoMoreData."""
        line, end, block = data.removeprefix(b"\r\n").partition(b"\r\n")
        if line == HTTP_2:
            raise errors.InvalidHTTPVersion("HTTP/2.0")
        if len(line) <= REMEMBERED_BYTES and (match := PLAIN_LINE.fullmatch(line.decode("latin-1"))):
            self.method, self.uri, self.path, self.query, minor = match.groups("")
            self.version = 1, int(minor)
        else:
            if line.count(b" ") > 1:  # Set the method and target even if the line is invalid, for the log.
                self.method, self.uri, *rest = encoded(line).decode("latin-1").split(" ")
                if len(rest) > 1:
                    raise errors.InvalidRequestLine(self.uri)
            request = parse(encoded(line) + end * 2)
            self.version, self.path, self.query = request.version, request.path, request.query
        parse_block = parse_fields if len(block) <= REMEMBERED_BYTES else parse_fields.__wrapped__
        try:
            self.fields, self.refusal = parse_block(self.version, block)
        except errors.ParseException:
            if origin := ORIGIN.search(block):  # Keep Origin: CORS then lets a page read why its request was refused.
                self.fields = {"HTTP_ORIGIN": origin[1].decode()}
            raise
        if "#" in self.uri:
            self.refusal = self.refusal or FRAGMENT

    @property
    def is_persistent(self) -> bool:
        """Whether the client may send more requests (RFC 9112, section 9.3)."""
        options = self.fields.get("HTTP_CONNECTION", "").lower().replace("\t", "").replace(" ", "").split(",")
        wants_more = self.version >= (1, 1) or "keep-alive" in options
        return wants_more and "close" not in options and self.method != "CONNECT"


def read_head(connection: ClientConnection, unreader: SocketUnreader) -> bytes:
    """Read the head of the next request. Put any bytes that follow the head back into the unreader.

    Return an incomplete head if the client stops sending, and b"" if there is no further request.
    """
    data = unreader.read()
    connection.identify(connection.shared.client(data, connection.address))
    piece = data
    while data and not (end := end_of_head(data)):
        if len(data) > MAX_LINE and b"\n" not in data:
            raise errors.LimitRequestLine(len(data), MAX_LINE)
        if not connection.hold(len(piece)):
            raise TimeoutError
        connection.wait_turn_to_read()
        piece = unreader.read(None, HEADER_BYTES)  # Most heads fit in the first read, and all others in the second.
        if not piece:
            return data
        data += piece
    if not data:
        return b""
    unreader.unread(data[end:])
    return data[:end]


def end_of_head(data: bytes) -> int:
    """Return the length of the head at the start of `data`, or 0 if the rest of the head may still arrive."""
    if end := data.find(b"\r\n\r\n") + 1:
        return end + 3
    # A bare LF also ends the head, because gunicorn refuses a head that contains one.
    return len(data) if data.count(b"\n") > data.count(b"\r\n") else 0


def parse(data: bytes) -> Request:
    return next(get_parser(SETTINGS, [data], None))


def encoded(line: bytes) -> bytes:
    """Percent-encode all non-ASCII bytes in the target of a request line, because curl sends them unencoded."""
    method, space, rest = line.partition(b" ")
    return line if line.isascii() else method + space + quote(rest, safe=ASCII).encode()


@lru_cache(REMEMBERED)
def parse_fields(version: tuple[int, int], block: bytes) -> tuple[Fields, Refusal | None]:
    """Parse header fields. Return them, and a refusal if RFC 9112 forbids something that gunicorn accepts."""
    environ: Fields = {}
    refusal, parsed = None, 0
    for name, value in parse(b"POST / HTTP/%d.%d\r\n%b" % (*version, block)).headers:
        key = name.replace("-", "_")
        if key not in ("CONTENT_TYPE", "CONTENT_LENGTH"):
            key = f"HTTP_{key}"
        separator = "; " if key == "HTTP_COOKIE" else ","  # RFC 9110, section 5.3; RFC 6265, section 5.4
        environ[key] = f"{environ[key]}{separator}{value}" if key in environ else value
        if name == "TRANSFER-ENCODING" and value.lower() != "chunked":
            refusal = CODING
        elif name.startswith(PARSED_FIELDS):
            parsed += len(value)
    if parsed > MAX_PARSED_BYTES:
        refusal = refusal or PARSED_TOO_LARGE
    host = environ.get("HTTP_HOST")
    is_wrong = version >= (1, 1) if host is None else not AUTHORITY.fullmatch(host)
    if is_wrong:
        refusal = refusal or HOST
    return environ, refusal


def client_address(peer: str, forwarded_for: str, trusted: Networks) -> str:
    """Return the last valid address that is not a trusted proxy's. Clients can forge the addresses before it."""
    client = peer
    hops = forwarded_for.rsplit(",", MAX_PROXIES)
    address = parse_address(peer.partition("%")[0])
    while address and any(address in network for network in trusted):
        address = parse_address(hops.pop().strip()) if hops else None
        client = str(address or client)
    return client


def parse_address(hop: str) -> IPv4Address | IPv6Address | None:
    """Return the address in an X-Forwarded-For entry, or None if it is malformed. Unwraps IPv4-mapped addresses."""
    match = HOP.fullmatch(hop)
    try:
        address = ip_address(match[match.lastindex]) if match and match.lastindex else None
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def network(address: str) -> str:
    """Return an IPv4 address, or the /64 network of an IPv6 address, because one client may own the whole network."""
    if ":" not in address:
        return address
    parsed = parse_address(address.partition("%")[0])
    return str(ip_network((parsed, 64), strict=False)) if isinstance(parsed, IPv6Address) else str(parsed)


class Body:
    """The body of a request, passed to the application as `wsgi.input`."""

    def __init__(self, head: Head, info: RequestInfo, connection: ClientConnection, unreader: SocketUnreader):
        self.info, self.connection, self.unreader = info, connection, unreader
        self.is_chunked = "HTTP_TRANSFER_ENCODING" in head.fields
        self.expects_continue = "HTTP_EXPECT" in head.fields and head.version >= (1, 1)
        self.length = int(head.fields.get("CONTENT_LENGTH", 0))
        self.reader = ChunkedReader(parse(EMPTY), unreader) if self.is_chunked else LengthReader(unreader, self.length)
        self.is_begun = False
        self.is_change = False  # whether the request must take a place for a change once its body has arrived

    @property
    def is_complete(self) -> bool:
        """Whether the whole body has been read."""
        return not (self.reader.parser if self.is_chunked else self.reader.length)

    def read(self, size: int) -> bytes:
        """Read up to `size` bytes. Raises an HTTPException if the body does not arrive or cannot be accepted."""
        try:
            if not self.is_begun:
                self._begin()
            data = self._read(size)
            if self.info.max_body_bytes:
                self.connection.release()
                if self.info.kept_bytes > KEPT_BYTES:
                    self._reserve(self.info.kept_bytes)
            if self.is_change and self.is_complete:
                self._take_place()
            return data
        except TimeoutError:
            raise RequestTimeout("body: did not arrive in time") from None
        except errors.ParseException:
            raise BadRequest("body: invalid chunk, or too many chunks") from None
        except Stopped:
            raise ServiceUnavailable(STOPPED, retry_after=RETRY_SECONDS) from None
        except OSError:
            raise BadRequest("body: incomplete") from None

    def _begin(self) -> None:
        self.is_begun = True
        if self.info.credential:
            self.connection.identify(Client(self.info.credential, is_known=True))
            self.connection.is_accepted = True
        if self.info.max_body_bytes:
            self.unreader.max_body_chunk = KEPT_BYTES
        else:
            self._reserve(KEPT_BYTES if self.is_chunked else self.length)
        self.connection.expect_body(self.info.max_body_bytes or MAX_BODY_BYTES)
        if self.expects_continue:
            self.connection.send(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _read(self, size: int) -> bytes:
        # gunicorn's own body object is not used, because it would copy the data three times.
        data = self.reader.read(min(size, KEPT_BYTES) if self.is_chunked else size)
        if self.is_chunked and len(data) == KEPT_BYTES < size and not self.info.max_body_bytes:
            self._reserve(MAX_BODY_BYTES)
            data += self.reader.read(size - KEPT_BYTES)
        return data

    def _take_place(self) -> None:
        try:
            self.connection.take_places()
        except TimeoutError:
            raise ServiceUnavailable(MANY_REQUESTS, retry_after=RETRY_SECONDS) from None

    def _reserve(self, size: int) -> None:
        if not self.connection.hold(size):
            raise ServiceUnavailable(MANY_BODIES, retry_after=RETRY_SECONDS)
