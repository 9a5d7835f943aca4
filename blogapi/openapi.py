"""The description of the API (OpenAPI 3.1), made from the routes and the very schemas that validate."""

import json
import re
import sys
import unicodedata
from functools import cache
from importlib.metadata import version
from itertools import groupby
from typing import Any

from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin
from flask import Flask
from marshmallow import fields

from blogapi.fields import EVENTS, ID, WHITE_SPACE, Events, Moment, PostId, Tag, Tags, Text, Whole
from blogapi.operations import (
    ALWAYS,
    DESCRIPTION,
    ERRORS,
    EXAMPLES,
    HEADERS,
    OPERATIONS,
    PATHS,
    RATE_LIMIT,
    REQUEST_HEADERS,
    SENT,
    SENT_HEADERS,
    SHAPES,
    WITH_BODY,
    Operation,
)


def describe(app: Flask) -> dict[str, Any]:
    """Return the description of the application's routes under /v1."""
    plugin = MarshmallowPlugin()
    spec = APISpec(
        "blogapi",
        version("blogapi"),
        "3.1.0",
        plugins=[plugin],
        info={"description": DESCRIPTION, "license": {"name": "MIT", "identifier": "MIT"}},
        servers=[{"url": "/", "description": "this server"}],
        security=[{"key": []}],
        tags=[{"name": "posts"}, {"name": "tags"}, {"name": "webhooks"}],
        webhooks={event: sent(event, says) for event, says in SENT.items()},
    )
    plugin.converter.add_attribute_function(rules_of)
    declare_components(spec)
    for rule in sorted(app.url_map.iter_rules(), key=lambda rule: rule.rule):
        endpoint = rule.endpoint.removeprefix("api.")
        if endpoint in OPERATIONS:
            method = min(rule.methods - {"HEAD", "OPTIONS"}).lower()
            summary = app.view_functions[rule.endpoint].__doc__.partition("\n")[0]
            path = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", rule.rule)
            spec.path(path, operations={method: operation(endpoint, path, method, summary)})
    return spec.to_dict()


def declare_components(spec: APISpec) -> None:
    """Declare what the operations refer to."""
    spec.components.security_scheme("key", {"type": "http", "scheme": "bearer", "description": "An API key."})
    for name, (description, schema) in HEADERS.items():
        spec.components.header(name, {"description": description, "schema": schema, "required": name in RATE_LIMIT})
    for name, (schema, example) in SHAPES.items():
        spec.components.schema(name, {"example": example}, schema=schema)
    for status, (description, message, headers) in ERRORS.items():
        spec.components.response(str(status), error_response(status, description, message, headers))


def operation(endpoint: str, path: str, method: str, summary: str) -> dict[str, Any]:
    """Return the OpenAPI operation of a view."""
    declared = OPERATIONS[endpoint]
    described = {
        "operationId": endpoint,
        "summary": summary,
        "description": f"```sh\n{curl(path, method, declared)}\n```",
        "tags": [path.split("/")[2]],
        "parameters": parameters_of(declared, path),
        "responses": responses_of(declared),
    }
    if declared.body:
        content = {content_type: {"schema": declared.body} for content_type in declared.types}
        described["requestBody"] = {"required": True, "content": content}
    return described


def sent(event: str, says: str) -> dict[str, Any]:
    """Return the OpenAPI path item of what receivers are sent on an event."""
    schema = "Ping" if event == "ping" else "PostEvent"
    return {
        "post": {
            "summary": says,
            "parameters": [
                {"in": "header", "name": name, "required": True, "description": description, "schema": schema_of}
                for name, (description, schema_of) in SENT_HEADERS.items()
            ],
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}},
            },
            "responses": {
                "2XX": {"description": "Delivered. Anything else, or nothing in time, and it is tried again."},
                "410": {"description": "No more is wanted: the webhook is turned off."},
            },
            "security": [],
            "tags": ["webhooks"],
        }
    }


def parameters_of(declared: Operation, path: str) -> list[Any]:
    """Return the parameters of an operation in its path, header and query."""
    parameters: list[Any] = [
        {"in": "path", "name": name, "required": True, "schema": PATHS[name]} for name in re.findall(r"{(\w+)}", path)
    ]
    for name in declared.asks:
        description, schema = REQUEST_HEADERS[name]
        parameters.append({"in": "header", "name": name, "description": description, "schema": schema})
    if declared.query:
        parameters.append({"in": "query", "schema": declared.query})
    return parameters


def responses_of(declared: Operation) -> dict[str, Any]:
    """Return the responses of an operation by status."""
    answer: dict[str, Any] = {"description": declared.says, "headers": [*RATE_LIMIT, *declared.headers]}
    if declared.answer:
        schema = {"type": "array", "items": declared.answer} if declared.many else declared.answer
        answer["content"] = {"application/json": {"schema": schema}}
    answer["headers"] = {name: {"$ref": f"#/components/headers/{name}"} for name in answer["headers"]}
    errors = sorted([*ALWAYS, *declared.errors, *(WITH_BODY if declared.body else [])])
    responses: dict[str, Any] = {str(declared.status): answer, **{str(status): str(status) for status in errors}}
    if "If-None-Match" in declared.asks:
        responses["304"] = {"description": "The post still has the entity tag.", "headers": answer["headers"]}
    return dict(sorted(responses.items()))


def curl(path: str, method: str, declared: Operation) -> str:
    """Return a curl line that does the operation."""
    words = ["curl", f"http://127.0.0.1:8000{path.format_map(EXAMPLES)}", '-H "Authorization: Bearer $KEY"']
    if method not in ("get", "post"):
        words.insert(1, f"-X {method.upper()}")
    if declared.body:
        words += ["-H 'Content-Type: application/json'", f"-d '{json.dumps(declared.example)}'"]
    return " ".join(words)


def error_response(status: int, description: str, message: str, headers: list[str]) -> dict[str, Any]:
    """Return the OpenAPI response of an error."""
    return {
        "description": description,
        "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in [*RATE_LIMIT, *headers]},
        "content": {"application/json": {"schema": "Error", "example": {"error": status, "message": message}}},
    }


def rules_of(self: Any, field: fields.Field, **kwargs: Any) -> dict[str, Any]:
    """Tell apispec the rules of our own fields, which those keep for themselves."""
    if isinstance(field, Text):
        rules = {"maxLength": field.length.max}
        if field.length.min:
            rules["minLength"] = field.length.min
        return rules | {"pattern": pattern_of(field)}
    if isinstance(field, Tags):
        return {"maxItems": field.most}
    if isinstance(field, Events):
        return {"minItems": 1, "maxItems": len(EVENTS)}
    if isinstance(field, Moment):
        return {"format": "date-time"}
    if isinstance(field, Tag):
        return {"minLength": 1, "pattern": f"[^{WHITE_SPACE}]"}
    if isinstance(field, Whole):
        return {"type": "integer", "minimum": 1}
    if isinstance(field, PostId):
        return {"type": "string", "pattern": f"^{ID}$"}
    return {}


def pattern_of(field: Text) -> str:
    """Return a regular expression (ECMA 262, and Python's as well) for the characters that a field takes."""
    if field.pattern:
        return f"^{field.pattern.pattern}$" if field.required else f"^({field.pattern.pattern})?$"  # "" is left out
    controls = r"\u0000-\u001f\u2028\u2029" if field.one_line else r"\u0000-\u0008\u000b\u000c\u000e-\u001f"
    usable = rf"[^{controls}\u007f-\u009f]"
    return f"^{usable}*[^{invisible()}]{usable}*$" if field.visible else f"^{usable}*$"


@cache
def invisible() -> str:
    """Return the characters that nobody sees, as ranges for a regular expression."""
    codes = [
        code for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) in ("Zs", "Zl", "Zp", "Cc", "Cf")
    ]
    ranges = []
    for _, run in groupby(enumerate(codes), key=lambda pair: pair[1] - pair[0]):
        first, *_, last = [code for _, code in run] * 2
        ranges.append(f"{chr(first)}-{chr(last)}")
    return "".join(ranges)
