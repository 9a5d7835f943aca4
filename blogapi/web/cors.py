"""CORS: the pages of other origins that may call the API (the CORS protocol of the Fetch standard)."""

from collections.abc import Collection

from flask import Flask, Response, request

from blogapi.web.responses import no_content

ALLOW_ORIGIN = "Access-Control-Allow-Origin"
EXPOSED = "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, Link, ETag, Location, Retry-After"
PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, If-Match, If-None-Match, Idempotency-Key",
    "Access-Control-Max-Age": "7200",  # seconds; Chromium takes no more
}


def init_app(app: Flask, origins: Collection[str]) -> None:
    """Let pages of these origins call what is under /v1. A preflight has no key: it must not meet the guard."""

    def answer_preflight() -> Response | None:
        environ = request.environ
        if request.method != "OPTIONS" or not {"HTTP_ORIGIN", "HTTP_ACCESS_CONTROL_REQUEST_METHOD"} <= environ.keys():
            return None
        if not is_covered() or ALLOW_ORIGIN not in headers_for(origins, environ["HTTP_ORIGIN"]):
            return None
        response = no_content()
        response.headers.update(PREFLIGHT)
        return response

    def set_headers(response: Response) -> Response:
        if is_covered():
            for name, value in headers_for(origins, request.environ.get("HTTP_ORIGIN")).items():
                there = response.headers.get(name)
                response.headers[name] = f"{there}, {value}" if there else value
        return response

    app.before_request(answer_preflight)
    app.after_request(set_headers)


def is_covered() -> bool:
    """Return whether the request is for the API itself."""
    return f"{request.path}/".startswith("/v1/")


def headers_for(origins: Collection[str], origin: str | None) -> dict[str, str]:
    """Return the headers that say whether pages of an origin may read an answer; "*" among `origins` stands for all."""
    if "*" in origins:
        return {ALLOW_ORIGIN: "*", "Access-Control-Expose-Headers": EXPOSED}
    vary = {"Vary": "Origin"} if origins else {}
    return vary | {ALLOW_ORIGIN: origin, "Access-Control-Expose-Headers": EXPOSED} if origin in origins else vary
