"""The description of the API (OpenAPI 3.1), from the routes and the declarations at their views."""

import re
from collections.abc import Callable, Iterable, Iterator
from inspect import getdoc
from typing import Any

from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin
from apispec.ext.marshmallow.openapi import OpenAPIConverter
from flask import Flask
from marshmallow import Schema, fields
from werkzeug.routing import Rule

from blogapi.files.markdown import render
from blogapi.post import LISTED, PostSchema, StrictSchema
from blogapi.web.blueprint import CONVERTERS
from blogapi.web.openapi.components import (
    ERRORS,
    EVENT_HEADERS,
    EVENTS,
    HEADERS,
    OWN_ERRORS,
    RATE_LIMIT,
    REQUEST_HEADERS,
    SHAPES,
    Described,
)
from blogapi.web.openapi.operation import Operation
from blogapi.web.request import JSON, MARKDOWN
from blogapi.web.schemas.fields import ErrorSchema
from blogapi.web.schemas.webhooks import EVENT_SCHEMAS

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
MARKDOWN_FILE = {
    "schema": {"type": "string", "description": "A Markdown file, perhaps with front matter."},
    "example": render(PostSchema.example).decode(),
}
PLACE = re.compile(r"<(\w+):(\w+)>")  # a converter, and the name of a parameter


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
            "description": INTRODUCTION + table(ERRORS),
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
        name: describe_event(name, description, plugin.converter.resolve_nested_schema(EVENT_SCHEMAS[name]))
        for name, description in EVENTS.items()
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


def table(rows: dict[int, str]) -> str:
    """Return the rows of a Markdown table."""
    return "".join(f"| {status} | {description} |\n" for status, description in rows.items())


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
        "responses": responses(operation),
    }
    if operation.body:
        # For two kinds of JSON, openapi-python-client writes code that fails unless there is an optional parameter.
        content_types = operation.content_types if operation.request_headers else operation.content_types[:1]
        described["requestBody"] = {"required": True, "content": media_types(content_types, operation.body)}
    return described


def media_types(content_types: Iterable[str], schema: Schema) -> dict[str, Any]:
    """Return the OpenAPI media types of a body: JSON by its schema, Markdown as text."""
    return {each: MARKDOWN_FILE if each == MARKDOWN else {"schema": schema} for each in content_types}


def parameters(rule: Rule, operation: Operation) -> Iterator[dict[str, Any]]:
    """Yield the parameters of an operation in its path, header and query."""
    for converter, name in PLACE.findall(rule.rule):
        yield parameter("path", name, CONVERTERS[converter].described, required=True)
    for name in operation.request_headers:
        yield parameter("header", name, REQUEST_HEADERS[name])
    yield {"in": "query", "schema": operation.query}


def parameter(place: str, name: str, described: Described, **more: Any) -> dict[str, Any]:
    """Return an OpenAPI parameter."""
    description, schema = described
    return {"in": place, "name": name, "description": description, "schema": schema} | more


def responses(operation: Operation) -> dict[str, Any]:
    """Return the responses of an operation by status."""
    found: dict[str, Any] = {str(status): str(status) for status in operation.errors}
    found |= {"4XX": "Error", "5XX": "Error"}
    for answer in filter(None, (operation.answer, operation.creates)):
        success: dict[str, Any] = {
            "description": answer.description,
            "headers": refer_to([*RATE_LIMIT, *answer.headers]),
        }
        if answer.schema:
            success["content"] = media_types(answer.content_types, answer.schema)
        found[str(answer.status)] = success
    if operation.method == "GET" and "If-None-Match" in operation.request_headers:
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
