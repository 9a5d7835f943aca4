"""Errors: every failure becomes the one body, {"error": <status>, "message": <said to a person>}."""

import json
import logging
from collections.abc import Iterator
from typing import Any

from flask import Flask, Response, request
from marshmallow import ValidationError
from peewee import DoesNotExist, PeeweeException
from werkzeug.exceptions import BadRequest, HTTPException, InternalServerError, NotFound, ServiceUnavailable

MAX_MESSAGE = 500
MAX_NAME = 60
MESSAGES = {
    404: "no such path",
    405: "the method is not allowed for this path; the Allow header names those that are",
    500: "an error on the server's side; its log says more",
}

log = logging.getLogger(__name__)


def error_body(status: int, message: str) -> bytes:
    """Return the Error as JSON, its message without anything unprintable and cut to 500 characters."""
    if not message.isprintable():
        message = "".join(
            character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in message
        )
    if len(message) > MAX_MESSAGE:
        message = message[: MAX_MESSAGE - 1] + "…"
    return json.dumps({"error": status, "message": message}, ensure_ascii=False, separators=(",", ":")).encode()


def init_app(app: Flask) -> None:
    """Let every failure of the application be answered with the Error body."""
    app.register_error_handler(HTTPException, answer)
    app.register_error_handler(ValidationError, answer_invalid)
    app.register_error_handler(DoesNotExist, answer_missing)
    app.register_error_handler(PeeweeException, answer_unavailable)
    app.register_error_handler(Exception, answer_crash)


def answer(error: HTTPException) -> Response:
    """Answer an HTTP error; Allow, WWW-Authenticate and Retry-After stay as the exception has them."""
    own = error.description != type(error).description
    message = error.description if own else MESSAGES.get(error.code, error.name)
    headers = [(name, value) for name, value in error.get_headers() if name != "Content-Type"]
    return Response(error_body(error.code, message), error.code, headers, mimetype="application/json")


def answer_invalid(error: ValidationError) -> Response:
    """Answer 400 with every field that is wrong, and what would be right."""
    error.__traceback__ = None  # marshmallow's frame refers to the error: a cycle that would keep 4 MB for a while
    return answer(BadRequest("; ".join(_sentences(error.normalized_messages()))))


def answer_missing(error: DoesNotExist) -> Response:
    """Answer 404 for a row that is not there."""
    return answer(NotFound(f"no such {type(error).__name__.removesuffix('DoesNotExist').lower()}"))


def answer_unavailable(error: PeeweeException) -> Response:
    """Answer 503 where the database fails; the line that the log has of the request says why."""
    request.environ["blogapi.cause"] = str(error)
    retry_after = getattr(error, "retry_after", None)
    reason = "is busy" if retry_after else "cannot do this now"
    return answer(ServiceUnavailable(f"the database {reason}; nothing was changed", retry_after=retry_after))


def answer_crash(error: Exception) -> Response:
    """Answer 500; the log gets the traceback."""
    log.exception("unexpected error")
    return answer(InternalServerError())


def _sentences(messages: dict[Any, Any], prefix: str = "") -> Iterator[str]:
    """Flatten marshmallow's messages to "field: what would be right", with "tags[2]: …" for an item."""
    for key, value in messages.items():
        name = f"{prefix}[{key}]" if isinstance(key, int) else key[:MAX_NAME] or '""'
        if isinstance(value, dict):
            yield from _sentences(value, name)
        else:
            yield f"{name}: {', '.join(value)}"
