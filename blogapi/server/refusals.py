"""Requests that the server refuses itself: the status and message for each cause."""

import re

from gunicorn.http.errors import (
    ExpectationFailed,
    InvalidHeader,
    InvalidHTTPVersion,
    InvalidRequestLine,
    InvalidRequestMethod,
    LimitRequestHeaders,
    LimitRequestLine,
    NoMoreData,
    UnsupportedTransferCoding,
)
from gunicorn.http.message import Request

Refusal = tuple[int, str]

CODING: Refusal = (501, "Transfer-Encoding: must be chunked or left out")
HOST: Refusal = (400, "Host: must be given once, a host and perhaps a port")
MALFORMED: Refusal = (400, "the header is not valid HTTP")
FIELDS: dict[str, Refusal] = {
    "CONTENT-LENGTH": (400, "Content-Length: must be one whole number, without Transfer-Encoding beside it"),
    "CONTENT-TYPE": (400, "Content-Type: must be given once"),
    "HOST": HOST,
    "TRANSFER-ENCODING": (400, "Transfer-Encoding: must be chunked, once, and in HTTP/1.1"),
}
CAUSES: dict[type[Exception], Refusal] = {
    ExpectationFailed: (417, "Expect: must be 100-continue"),
    InvalidHTTPVersion: (400, "the HTTP version must be 1.0 or 1.1"),
    InvalidRequestLine: (400, "the request line must be a method, a target and HTTP/1.1; this port speaks plain HTTP"),
    InvalidRequestMethod: (400, "the method must have 3 to 20 upper-case letters"),
    LimitRequestHeaders: (431, "the header must have at most 100 fields of at most 8,190 bytes, and 65,536 in all"),
    LimitRequestLine: (414, "the request line must have at most 8,190 bytes"),
    NoMoreData: (400, "the header was broken off"),
    TimeoutError: (408, "the header did not come in time"),
    UnsupportedTransferCoding: CODING,
}
BUSY: Refusal = (503, "too many large responses are being sent; try again")
# Fields that are parsed: the time grows with the square of their length, to 2 ms for MAX_PARSED_BYTES.
PARSED = {
    "ACCEPT",
    "ACCEPT-CHARSET",
    "ACCEPT-ENCODING",
    "ACCEPT-LANGUAGE",
    "CACHE-CONTROL",
    "CONTENT-ENCODING",
    "CONTENT-TYPE",
    "IF-MATCH",
    "IF-NONE-MATCH",
    "IF-RANGE",
    "RANGE",
}
MAX_PARSED_BYTES = 2048
PARSED_TOO_LARGE: Refusal = (
    431,
    f"Accept, Content-Type, If-Match and the like must have at most {MAX_PARSED_BYTES:,} bytes in all",
)
# RFC 3986, section 3.2: a host, and perhaps a port
AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._~%!$&'()*+,;=-]+)(:[0-9]{0,5})?")


def refusal_for(error: Exception) -> Refusal:
    """Tell why a header could not be read, from the exception of reading it."""
    if isinstance(error, InvalidHeader) and error.hdr in FIELDS:
        return FIELDS[error.hdr]
    return CAUSES.get(type(error), MALFORMED)


def refusal_of(request: Request) -> Refusal | None:
    """Tell what is wrong with a header that gunicorn has let through (RFC 9112, sections 3.2 and 6.1), if anything."""
    host = None
    parsed = 0
    for name, value in request.headers:
        if name == "HOST":
            host = value
        elif name == "TRANSFER-ENCODING" and value.lower() != "chunked":
            return CODING
        elif name in PARSED:
            parsed += len(value)
    if parsed > MAX_PARSED_BYTES:
        return PARSED_TOO_LARGE
    if (host is None and request.version >= (1, 1)) or (host is not None and not AUTHORITY.fullmatch(host)):
        return HOST
    if "#" in request.uri:
        return 400, "the target must not have a fragment (#)"
    return None


def wants_close(request: Request) -> bool:
    """Return whether the client wants the connection to end after the answer (RFC 9112, section 9.3)."""
    options = {
        option.strip().lower() for name, value in request.headers if name == "CONNECTION" for option in value.split(",")
    }
    return "close" in options or (request.version < (1, 1) and "keep-alive" not in options)
