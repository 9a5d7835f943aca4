"""CORS: pages of other origins that may call the API (the CORS protocol of the Fetch standard)."""

from collections.abc import Collection, Mapping
from typing import Any

ALLOW_ORIGIN = "Access-Control-Allow-Origin"
EXPOSED = "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Link, ETag, Location, Retry-After"
PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, If-Match, If-None-Match, Idempotency-Key",
    "Access-Control-Max-Age": "7200",  # seconds; Chromium takes no more
}


def is_preflight(environ: Mapping[str, Any], origins: Collection[str], path: str) -> bool:
    """Return whether an OPTIONS request asks, for a page of one of these origins, what the API permits."""
    if not is_covered(path) or not {"HTTP_ORIGIN", "HTTP_ACCESS_CONTROL_REQUEST_METHOD"} <= environ.keys():
        return False
    return ALLOW_ORIGIN in headers_for(origins, environ["HTTP_ORIGIN"])


def is_covered(path: str) -> bool:
    """Return whether a path is one of the API itself."""
    return f"{path}/".startswith("/v1/")


def headers_for(origins: Collection[str], origin: str | None) -> dict[str, str]:
    """Return the headers that say whether pages of an origin may read an answer; "*" among `origins` means all."""
    if "*" in origins:
        return {ALLOW_ORIGIN: "*", "Access-Control-Expose-Headers": EXPOSED}
    vary = {"Vary": "Origin"} if origins else {}
    return vary | {ALLOW_ORIGIN: origin, "Access-Control-Expose-Headers": EXPOSED} if origin in origins else vary
