"""Declare the input and output of views as operations, and convert the ids and tags in paths."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from marshmallow import Schema
from werkzeug.routing import BaseConverter

from blogapi.api.schemas import StrictSchema, parameters
from blogapi.documents import ID_PATTERN
from blogapi.storage.models import FULL, MAX_ID
from blogapi.text import CONTROL_OR_BREAK, WHITE_SPACE, fold

# Path converters


class IdConverter(BaseConverter):
    """Matches an id exactly as the service writes it."""

    regex = ID_PATTERN

    def to_python(self, value: str) -> int:
        return int(value) if int(value) <= MAX_ID else 0  # No row has the id 0.


class TagConverter(BaseConverter):
    """Matches a tag, which may contain slashes, and folds it."""

    regex = r"[\s\S]+"
    part_isolating = False

    def to_python(self, value: str) -> str:
        return "" if CONTROL_OR_BREAK.search(value) else fold(value.strip(WHITE_SPACE))  # No post has the tag "".


# `slug` and `delivery_id` match any string; the API description refers to their names.
CONVERTERS = {"id": IdConverter, "tag": TagConverter, "slug": BaseConverter, "delivery_id": BaseConverter}


# Declarations

JSON, MARKDOWN = "application/json", "text/markdown"
NO_QUERY = parameters()


@dataclass(frozen=True)
class ResponseSpec:
    """The response of an operation that succeeds."""

    status: int
    description: str
    schema: StrictSchema | dict[str, Any] | None = None
    headers: tuple[str, ...] = ()  # keys of components.headers in wings/docs/static/openapi.yaml
    content_types: tuple[str, ...] = (JSON,)


@dataclass(frozen=True)
class Operation:
    """The input and output of a view, for loading requests and for the API description."""

    method: str
    response: ResponseSpec
    creates: ResponseSpec | None = None  # the response if the request creates something
    query: Schema = NO_QUERY
    body: StrictSchema | None = None
    content_types: tuple[str, ...] = (JSON,)  # accepted for the body
    parse_file: Callable[..., dict[str, Any]] | None = None  # parses a Request whose body is not JSON
    request_headers: tuple[str, ...] = ()  # keys of components.parameters, besides If-None-Match
    scopes: tuple[str, ...] = (FULL,)  # keys with these scopes may use the operation
