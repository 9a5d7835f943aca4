"""The forms of the owner's page: read from a body, and answered when a field is wrong."""

import re
from collections.abc import Callable
from functools import wraps
from typing import Any

from flask import request
from marshmallow import ValidationError
from werkzeug.datastructures import MultiDict
from werkzeug.exceptions import BadRequest

from blogapi.post import sentences
from blogapi.storage.errors import Conflict, KeyName
from blogapi.web.request import check_content_type, read_body

MAX_FIELDS = 100
NAME = re.compile(rb'Content-Disposition: form-data; name="([a-z_]{1,40})"', re.IGNORECASE)
ITEM = re.compile(r"^(\w+)s\[(\d+)\]")  # of a list: tags[1] is tag 2


def load_form(max_bytes: int) -> MultiDict[str, str]:
    """Return the fields of the form that was sent; raise the HTTP error that says what is wrong.

    As `multipart/form-data` (RFC 7578): a megabyte of percent-encoded Cyrillic would take 0.3 s to parse.
    Browsers send every line break as CRLF.
    """
    check_content_type(request, ("multipart/form-data",))
    boundary = b"\r\n--" + request.mimetype_params.get("boundary", "").encode()
    _, *parts = (b"\r\n" + read_body(request, max_bytes)).split(boundary, MAX_FIELDS + 1)
    form: MultiDict[str, str] = MultiDict()
    try:
        if not parts.pop().startswith(b"--"):
            raise ValueError("too many fields, or no end")
        for part in parts:
            head, _, value = part.partition(b"\r\n\r\n")
            form.add(NAME.search(head)[1].decode(), value.decode().replace("\r\n", "\n"))
    except (IndexError, TypeError, ValueError):
        raise BadRequest("The form cannot be read.") from None
    return form


def shows_errors(show: Callable[..., str]) -> Callable:
    """Make a view answer an invalid field with the page that has the form: `show` is the view of that page.

    It gets `wrong`, the messages by the names of the fields.
    """

    def decorate(view: Callable) -> Callable:
        @wraps(view)
        def answer(**arguments: Any) -> Any:
            try:
                return view(**arguments)
            except ValidationError as error:
                messages = error.normalized_messages().items()
                wrong = {name: "; ".join(sentences({name: each})) for name, each in messages}
            except (Conflict, KeyName) as error:
                wrong = {getattr(error, "field", "name"): str(error)}
            return show(**arguments, wrong={name: _sentence(name, text) for name, text in wrong.items()}), 400

        return answer

    return decorate


def _sentence(name: str, text: str) -> str:
    """Return a message to show next to its field, without the field's name."""
    text = ITEM.sub(lambda match: f"{match[1]} {int(match[2]) + 1}", text.removeprefix(f"{name}: "))
    return f"{text[0].upper()}{text[1:]}."
