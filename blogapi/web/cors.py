"""CORS: pages of other origins that may call the API (the CORS protocol of the Fetch standard)."""

import logging
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Any

ALLOW_ORIGIN = "Access-Control-Allow-Origin"
EXPOSED = "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Link, ETag, Location, Retry-After"
PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, If-Match, If-None-Match, Idempotency-Key",
    "Access-Control-Max-Age": "7200",  # seconds; the maximum in Chromium
}

log = logging.getLogger(__name__)


def is_preflight(environ: Mapping[str, Any], origins: Collection[str], path: str) -> bool:
    """Return whether an OPTIONS request is a CORS preflight for a page of one of these origins."""
    if not is_covered(path) or not {"HTTP_ORIGIN", "HTTP_ACCESS_CONTROL_REQUEST_METHOD"} <= environ.keys():
        return False
    if ALLOW_ORIGIN in headers_for(origins, environ["HTTP_ORIGIN"]):
        return True
    report(environ["HTTP_ORIGIN"][:100])
    return False


@lru_cache(maxsize=100)
def report(origin: str) -> None:
    """Log once that pages of an origin may not call the API."""
    log.warning("pages of %a may not call the API: BLOGAPI_CORS_ORIGINS does not name this origin", origin)


def is_covered(path: str) -> bool:
    """Return whether a path is one of the API itself."""
    return f"{path}/".startswith("/v1/")


def headers_for(origins: Collection[str], origin: str | None) -> dict[str, str]:
    """Return the headers that say whether pages of an origin may read an answer; "*" among `origins` means all."""
    if "*" in origins:
        return {ALLOW_ORIGIN: "*", "Access-Control-Expose-Headers": EXPOSED}
    vary = {"Vary": "Origin"} if origins else {}
    return vary | {ALLOW_ORIGIN: origin, "Access-Control-Expose-Headers": EXPOSED} if origin in origins else vary
