"""Let pages from other origins call the API (CORS, as defined in the Fetch standard)."""

from flask import Blueprint, Response

from blogapi.api.request import Request, current_request
from blogapi.api.responses import no_content
from blogapi.config import Config

ALLOW_ORIGIN = "Access-Control-Allow-Origin"
EXPOSED = (
    "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Link, ETag, Location, Content-Location, Retry-After"
)
PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, If-Match, If-None-Match, Idempotency-Key",
    "Access-Control-Max-Age": "7200",  # in seconds; Chromium allows no more
}
cors = Blueprint("cors", __name__)  # registered only if origins are configured; runs before the key is checked


@cors.before_app_request
def answer_preflight() -> Response | None:
    """Return the response to a preflight request, which needs no API key and does not count towards the rate limit."""
    request = current_request()
    asks = request.method == "OPTIONS" and "HTTP_ACCESS_CONTROL_REQUEST_METHOD" in request.environ
    if asks and request.environ.get("HTTP_ORIGIN") and ALLOW_ORIGIN in headers_for(request):
        return no_content(request, PREFLIGHT.items())
    return None


@cors.after_app_request
def allow(response: Response) -> Response:
    headers = headers_for(current_request())
    if vary := headers.pop("Vary", ""):
        response.vary.add(vary)
    response.headers.extend(headers)
    return response


def headers_for(request: Request) -> dict[str, str]:
    return cors_headers(request.service.config, request.path, request.environ.get("HTTP_ORIGIN"))


def cors_headers(config: Config, path: str, origin: str | None) -> dict[str, str]:
    """Return the headers that let pages from an origin read a response from the API or from Micropub."""
    origins = config.cors_origins
    if not f"{path}/".startswith(("/v1/", "/micropub/")):
        return {}
    if "*" in origins:
        return {ALLOW_ORIGIN: "*", "Access-Control-Expose-Headers": EXPOSED}
    vary = {"Vary": "Origin"} if origins else {}
    if not origin or origin not in origins:
        return vary
    return vary | {ALLOW_ORIGIN: origin, "Access-Control-Expose-Headers": EXPOSED}
