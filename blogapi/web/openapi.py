"""The description of the API (OpenAPI 3.1), from the routes and the declarations at their views."""

import re
from collections.abc import Callable, Iterable, Iterator
from inspect import getdoc
from typing import Any

from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin
from apispec.ext.marshmallow.openapi import OpenAPIConverter
from flask import Flask
from marshmallow import fields
from marshmallow.validate import Length
from werkzeug.routing import Rule

from blogapi.files.markdown import render
from blogapi.post import ID, LISTED, SLUG, STATUSES, PostSchema, StrictSchema, about
from blogapi.storage.models import EVENTS
from blogapi.web.operations import Operation
from blogapi.web.request import JSON, MARKDOWN
from blogapi.web.responses import MAX_MESSAGE
from blogapi.web.schemas import DELIVERY_ID, PAYLOADS

Described = tuple[str, dict[str, Any]]  # a description, and a JSON schema

RATE_LIMIT: dict[str, Described] = {
    "X-RateLimit-Limit": ("The requests that a key has in each minute.", {"type": "integer", "minimum": 1}),
    "X-RateLimit-Remaining": ("What is left of them in this minute.", {"type": "integer", "minimum": 0}),
    "X-RateLimit-Reset": ("Unix time, in seconds, at which the minute ends.", {"type": "integer"}),
}
HEADERS: dict[str, Described] = {
    **RATE_LIMIT,
    "Link": ('Leads to the next page, if there is one, as `<…>; rel="next"` (RFC 8288).', {"type": "string"}),
    "ETag": ("The strong entity tag of the answer.", {"type": "string"}),
    "Location": ("The path of what was created.", {"type": "string", "format": "uri-reference"}),
    "Retry-After": ("After how many seconds to try again.", {"type": "integer", "minimum": 1}),
    "WWW-Authenticate": ("The scheme of authentication.", {"type": "string", "const": "Bearer"}),
    "Allow": ("The methods that are allowed.", {"type": "string"}),
}
# By the name of the converter
PATH_PARAMETERS: dict[str, Described] = {
    "id": ("The id, as the service gave it.", {"type": "string", "pattern": f"^{ID}$"}),
    "slug": ("The slug: at most 100 characters.", {"type": "string", "pattern": f"^{SLUG}$", "maxLength": 100}),
    "tag": ("The name, percent-encoded; letter case does not matter.", {"type": "string", "minLength": 1}),
    "delivery_id": (
        "The id of the delivery, which is its `webhook-id`.",
        {"type": "string", "pattern": f"^{DELIVERY_ID}$"},
    ),
}
REQUEST_HEADERS: dict[str, Described] = {
    "If-Match": ("Change the post only if it still has this entity tag (RFC 9110).", {"type": "string"}),
    "If-None-Match": (
        "GET: answer 304 if this is still the entity tag. PUT: change nothing if the post has it; `*` is any.",
        {"type": "string"},
    ),
    "Idempotency-Key": (
        "1 to 255 visible ASCII characters. The same key and body again within 24 hours get the same post, and create "
        "nothing: retrying is safe.",
        {"type": "string", "pattern": "^[!-~]{1,255}$"},
    ),
}
# Errors that any operation may answer, by status, and those that only some do
ERRORS = {
    400: "Something in the request is invalid; the message names it, and what would be right.",
    401: "The key is missing, unknown or revoked.",
    403: "The key may not do this: it is read-only, or published-only.",
    404: "Nothing has this name, or this path.",
    405: "The method is not allowed for the path; `Allow` names those that are.",
    413: "The body has more than 4 MiB.",
    415: "The `Content-Type` is not supported; `Accept` or `Accept-Patch` names those that are.",
    429: "The key has no requests left in this minute; `Retry-After` says how many seconds to wait.",
    500: "An internal error; the log has the id in the message.",
    503: "The database is busy, or cannot be used; `Retry-After` says after how many seconds to try again.",
}
OWN_ERRORS = {  # with an example of their messages
    404: ("Nothing has this name.", "no such post"),
    412: (
        "The post does not match `If-Match` or `If-None-Match`; nothing was changed.",
        "If-Match: the post has been changed since; get it again",
    ),
}
# Enumerations that several schemas use, by name: their words, and a description
SHAPES = {
    "Status": (STATUSES, "The status of a post; a `scheduled` one is published at its `published_at`."),
    "EventType": (EVENTS, "The type of an event, which is about a post or a tag; a `ping` is sent on request."),
}

EVENT_HEADERS: dict[str, Described] = {
    "webhook-id": ("The same in all attempts, so that a receiver recognizes repeats.", {"type": "string"}),
    "webhook-timestamp": ("Unix time of the attempt, in seconds.", {"type": "string", "pattern": "^[0-9]+$"}),
    "webhook-signature": (
        "`v1,` and the base64 of the HMAC-SHA256 of webhook-id, webhook-timestamp and body, with dots between them.",
        {"type": "string", "pattern": "^v1,[A-Za-z0-9+/]{43}=$"},
    ),
}


API_VERSION = "1.0.0"  # of the contract under /v1, not of the program
INTRODUCTION = """\
Manage the posts of a blog. Every request under `/v1` needs `Authorization: Bearer <API_KEY>`. The command line creates
keys (`blogapi keys create NAME`); each has a number of requests in each minute. A key created with `--read-only` may
GET and HEAD posts and tags; anything else is 403. A key created with `--published-only` is also read-only and sees
published posts only: any other post is 404.

Everything under `/v1` stays. New versions only add to it: operations, fields, parameters, events and error statuses; so
ignore fields and events that you do not know. A breaking change would be a `/v2`, announced twelve months ahead by the
headers `Deprecation` and `Sunset`.

The body of every error is an Error. Unknown fields, unknown parameters and repeated parameters are refused.
Any operation may answer these errors, and others that HTTP defines:

| status | when |
| --- | --- |
"""
TAGS = {
    "posts": "Posts, each named by its id or by its slug.",
    "tags": "The tags of all posts. A tag exists while a post carries it; letter case does not matter.",
    "trash": "Deleted posts, which can be restored.",
    "webhooks": "Addresses that receive events (Standard Webhooks), and the deliveries to them.",
    "events": "The events that webhooks receive.",
}
MARKDOWN_FILE = {"type": "string", "description": "A Markdown file, perhaps with front matter."}
PLACE = re.compile(r"<(\w+):(\w+)>")  # a converter, and the name of a parameter


class ErrorSchema(StrictSchema):
    """The body of every error."""

    example = {"error": 400, "message": "title: missing"}
    error = fields.Integer(required=True, strict=True, **about("The HTTP status."))
    message = fields.String(
        required=True,
        validate=Length(max=MAX_MESSAGE),
        **about("What is wrong, and what would be right: for a person, at most 500 characters."),
    )


class Converter(OpenAPIConverter):
    """apispec's converter, with descriptions and examples of schemas, and names for shared enumerations."""

    def schema2jsonschema(self, schema: StrictSchema) -> dict[str, Any]:
        own = {"description": type(schema).__doc__, "example": schema.example}
        if isinstance(schema, PostSchema) and "content" in schema.fields:
            own["required"] = list(LISTED)  # A list can have only some fields.
        return super().schema2jsonschema(schema) | own

    def field2property(self, field: fields.Field) -> dict[str, Any]:
        described = super().field2property(field)
        described.pop("default", None)  # With it, generators require the field; the description says it.
        for name, (words, what) in SHAPES.items():
            if described.get("enum") == list(words):
                return {"$ref": f"#/components/schemas/{name}", "description": described.get("description", what)}
        return described


class Plugin(MarshmallowPlugin):
    Converter = Converter


def describe(app: Flask, prefix: str = "") -> dict[str, Any]:
    """Return the description of the application's operations; their addresses begin with `prefix`."""
    plugin = Plugin(schema_name_resolver=lambda schema: type(schema).__name__.removesuffix("Schema"))
    spec = APISpec(
        "blogapi",
        API_VERSION,
        "3.1.0",
        plugins=[plugin],
        info={
            "description": INTRODUCTION + "".join(f"| {status} | {error} |\n" for status, error in ERRORS.items()),
            "contact": {"name": "the owner of this server"},
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        servers=[{"url": prefix or "/", "description": "this server"}],
        security=[{"key": []}],
        tags=[{"name": name, "description": description} for name, description in TAGS.items()],
    )
    declare_components(spec)
    for rule in sorted(app.url_map.iter_rules(), key=lambda rule: rule.rule):
        view = app.view_functions[rule.endpoint]
        if hasattr(view, "operation"):
            path = PLACE.sub(r"{\2}", rule.rule)
            spec.path(path, operations={view.operation.method.lower(): describe_operation(rule, view)})
    spec.options["webhooks"] = {
        name: describe_event(name, description, plugin.converter.resolve_nested_schema(schema))
        for name, (description, schema) in PAYLOADS.items()
    }
    return spec.to_dict()


def declare_components(spec: APISpec) -> None:
    """Declare the components that the operations refer to."""
    spec.components.security_scheme("key", {"type": "http", "scheme": "bearer", "description": "An API key."})
    for name, (description, schema) in HEADERS.items():
        spec.components.header(name, {"description": description, "schema": schema, "required": name in RATE_LIMIT})
    for name, (words, description) in SHAPES.items():
        spec.components.schema(name, {"type": "string", "enum": list(words), "description": description})
    any_headers = refer_to([*RATE_LIMIT, "WWW-Authenticate", "Allow", "Retry-After"])
    any_error = {"description": "An error; the introduction has a list of them.", "headers": any_headers}
    spec.components.response("Error", any_error | {"content": {JSON: {"schema": ErrorSchema()}}})
    for status, (description, message) in OWN_ERRORS.items():
        content = {JSON: {"schema": ErrorSchema(), "example": {"error": status, "message": message}}}
        response = {"description": description, "headers": refer_to(RATE_LIMIT), "content": content}
        spec.components.response(str(status), response)


def refer_to(headers: Iterable[str]) -> dict[str, Any]:
    """Return references to headers."""
    return {name: {"$ref": f"#/components/headers/{name}"} for name in headers}


def describe_operation(rule: Rule, view: Callable) -> dict[str, Any]:
    """Return the OpenAPI operation of a view."""
    operation: Operation = view.operation
    described = {
        "operationId": rule.endpoint.rpartition(".")[2],
        "summary": getdoc(view).partition("\n")[0],
        "description": getdoc(view),  # The description repeats the summary: some programs show nothing else.
        "tags": [rule.rule.split("/")[2]],
        "parameters": list(parameters(rule, operation)),
        "responses": responses(rule, operation),
    }
    if operation.body:
        # For two kinds of JSON, openapi-python-client writes code that fails unless there is an optional parameter.
        content_types = operation.content_types if operation.request_headers else operation.content_types[:1]
        described["requestBody"] = {"required": True, "content": media_types(content_types, operation.body)}
    return described


def media_types(content_types: Iterable[str], schema: StrictSchema) -> dict[str, Any]:
    """Return the OpenAPI media types of a body: JSON by its schema, Markdown as text."""
    types: dict[str, Any] = {each: {"schema": schema} for each in content_types}
    if MARKDOWN in types:
        types[MARKDOWN] = {"schema": MARKDOWN_FILE, "example": render(schema.example).decode()}
    return types


def parameters(rule: Rule, operation: Operation) -> Iterator[dict[str, Any]]:
    """Yield the parameters of an operation in its path, header and query."""
    for converter, name in PLACE.findall(rule.rule):
        yield parameter("path", name, PATH_PARAMETERS[converter], required=True)
    for name in (*operation.request_headers, *(["If-None-Match"] if has_validator(operation) else [])):
        yield parameter("header", name, REQUEST_HEADERS[name])
    yield {"in": "query", "schema": operation.query}


def parameter(place: str, name: str, described: Described, **more: Any) -> dict[str, Any]:
    """Return an OpenAPI parameter."""
    description, schema = described
    return {"in": place, "name": name, "description": description, "schema": schema} | more


def has_validator(operation: Operation) -> bool:
    """Return whether an operation answers 304 if a client has the answer already."""
    return operation.method == "GET" and "ETag" in operation.answer.headers


def responses(rule: Rule, operation: Operation) -> dict[str, Any]:
    """Return the responses of an operation by status."""
    found: dict[str, Any] = {"4XX": "Error", "5XX": "Error"}
    if rule.arguments:
        found["404"] = "404"
    if "If-Match" in operation.request_headers:
        found["412"] = "412"
    for answer in filter(None, (operation.answer, operation.creates)):
        success: dict[str, Any] = {
            "description": answer.description,
            "headers": refer_to([*RATE_LIMIT, *answer.headers]),
        }
        if answer.schema:
            success["content"] = media_types(answer.content_types, answer.schema)
        found[str(answer.status)] = success
    if has_validator(operation):
        headers = refer_to([*RATE_LIMIT, *operation.answer.headers])
        found["304"] = {"description": "This is still the entity tag.", "headers": headers}
    return dict(sorted(found.items()))


def describe_event(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return the OpenAPI path item of an event."""
    return {
        "post": {
            "operationId": f"{name.replace('.', '_')}_event",
            "summary": description,
            "description": description,
            "parameters": [parameter("header", name, header, required=True) for name, header in EVENT_HEADERS.items()],
            "requestBody": {"required": True, "content": {JSON: {"schema": schema}}},
            "responses": {
                "2XX": {"description": "Delivered. After any other answer, or none in time, it is sent again."},
                "410": {"description": "The webhook is turned off."},
            },
            "security": [],
            "tags": ["events"],
        }
    }
