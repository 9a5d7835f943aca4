"""Generate the API description (OpenAPI 3.1) from the routes and the declarations of their views."""

import json
import re
from collections.abc import Iterable, Iterator
from inspect import getdoc
from pathlib import Path
from typing import Any

import yaml
from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin
from apispec.ext.marshmallow.openapi import OpenAPIConverter
from flask import Flask
from marshmallow import fields
from werkzeug.routing import Rule

from blogapi.api.operations import MARKDOWN, Operation
from blogapi.api.schemas import Names, StrictSchema
from blogapi.documents import EXAMPLE_WITHOUT_CONTENT, SET_BY_SERVICE, STATUSES
from blogapi.markdown.files import render
from blogapi.storage.keys import may
from blogapi.storage.models import SCOPES
from blogapi.webhooks.storage import EVENTS

# The operations that an agent needs to write drafts and propose changes. More tools would confuse the agent.
AGENTS = {"list_posts", "get_post", "get_post_by_slug", "create_post", "change_post", "delete_post", "list_tags"}
AGENTS |= {"list_images", "propose_change"}
BASE = Path(__file__).parent / "static/openapi.yaml"
RATE_LIMIT = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
# Enumerations that several schemas use: name, values and description
SHAPES = {
    "Status": (STATUSES, "The status of a post. A `scheduled` post is published at its `published_at`."),
    "EventType": (EVENTS, "The type of an event about a post or a tag; a `ping` is sent on request."),
}
MARKDOWN_FILE = {"type": "string", "description": "A Markdown file, optionally with front matter."}
REFERENCE = re.compile(r'"#/components/schemas/(\w+)"')
PLACE = re.compile(r"<(\w+):(\w+)>")  # the converter and name of a path parameter


class SchemaConverter(OpenAPIConverter):
    """Adds descriptions and examples to schemas, and turns shared enumerations into separate schemas."""

    def schema2jsonschema(self, schema: StrictSchema) -> dict[str, Any]:
        return super().schema2jsonschema(schema) | {"description": getdoc(schema), "example": schema.example}

    def field2property(self, field: fields.Field) -> dict[str, Any]:
        described = super().field2property(field)
        default = described.pop("default", None)  # Code generators treat a property with a default as required.
        if "enum" not in described:
            return described
        words = [word for word in described["enum"] if word is not None]
        shape: dict[str, Any] = {"type": "string", "enum": words} | ({} if default is None else {"default": default})
        for name, (all_words, what) in SHAPES.items():
            if words == list(all_words):
                shape = {"$ref": f"#/components/schemas/{name}"}
                described.setdefault("description", what)
        nullable = {"anyOf": [shape, {"type": "null"}]} if field.allow_none else shape
        return nullable | {"description": described["description"]}


def describe(app: Flask, server: str = "") -> dict[str, Any]:
    """Return the OpenAPI description of an application. `server` is the beginning of its URLs."""
    plugin = MarshmallowPlugin()
    plugin.Converter = SchemaConverter
    base = yaml.safe_load(BASE.read_bytes())
    known = base.pop("x-parameters")
    base["components"]["schemas"]["PostEvent"]["example"]["data"]["post"] |= EXAMPLE_WITHOUT_CONTENT
    scopes = "\n".join(f"- {scope}: it may {may(scope)}." for scope in SCOPES)
    base["info"]["description"] = base["info"]["description"].replace("SCOPES", scopes)
    servers = [{"url": server or "/", "description": "this server"}]
    title, version = base["info"]["title"], base["info"]["version"]
    spec = APISpec(title, version, base["openapi"], plugins=[plugin], **base, servers=servers)
    assert plugin.converter is not None  # set by APISpec
    plugin.converter.add_parameter_attribute_function(parameter_attributes)
    for name, (words, description) in SHAPES.items():
        spec.components.schema(name, {"type": "string", "enum": list(words), "description": description})
    for rule in sorted(app.url_map.iter_rules(), key=lambda rule: rule.rule):
        view = app.view_functions[rule.endpoint]
        if hasattr(view, "operation"):
            operations = {view.operation.method.lower(): describe_operation(rule, view, known)}
            spec.path(PLACE.sub(r"{\2}", rule.rule), operations=operations)
    return with_open_responses(spec.to_dict())


def with_open_responses(described: dict[str, Any]) -> dict[str, Any]:
    """Allow unknown fields in response bodies, to which new versions add fields, but not in request bodies.

    Posts in request bodies may contain the fields that the service sets. A client can then send back a post that it has
    received.
    """
    operations = [operation for path in described["paths"].values() for operation in path.values()]
    bodies = {*REFERENCE.findall(json.dumps([operation.get("requestBody") for operation in operations]))}
    schemas = described["components"]["schemas"]
    ignored = {name: schemas["Post"]["properties"][name] | {"readOnly": True} for name in SET_BY_SERVICE}
    for name, schema in schemas.items():
        if name not in bodies:
            schema.pop("additionalProperties", None)
        elif name.startswith(("NewPost", "Post")):
            schema["properties"] |= ignored
    return described


def parameter_attributes(converter: OpenAPIConverter, field: fields.Field, ret: dict[str, Any]) -> dict[str, Any]:
    """Return further attributes of a parameter: its example and, for a list of names, its style."""
    example = ret["schema"].pop("example", None)
    names = {"style": "form", "explode": False} if isinstance(field, Names) else {}
    return names | ({} if example is None else {"example": example})


def describe_operation(rule: Rule, view: Any, known: dict[str, Any]) -> dict[str, Any]:
    """Return the OpenAPI operation of a view. `known` describes the parameters in paths and headers."""
    operation: Operation = view.operation
    text, name = getdoc(view) or "", rule.endpoint.rpartition(".")[2]
    described = {
        "operationId": name,
        "summary": text.partition("\n")[0],
        # The description repeats the summary, because some programs show only the description.
        "description": f"{text}\n\nKeys: {', '.join(operation.scopes)}.",
        "tags": [rule.rule.split("/")[2], *(["agents"] if name in AGENTS else [])],
        "parameters": list(describe_parameters(rule, operation, known)),
        "responses": describe_responses(rule, operation),
    }
    if operation.body:
        # openapi-python-client generates broken code for two JSON types unless the operation has an optional parameter.
        content_types = operation.content_types if operation.request_headers else operation.content_types[:1]
        described["requestBody"] = {"required": True, "content": media_types(content_types, operation.body)}
    return described


def media_types(content_types: Iterable[str], schema: StrictSchema | dict[str, Any]) -> dict[str, Any]:
    """Return the OpenAPI media types of a body. Markdown is a string; the other types have the given schema."""
    types: dict[str, Any] = {name: {"schema": schema} for name in content_types}
    if MARKDOWN in types and isinstance(schema, StrictSchema):
        types[MARKDOWN] = {"schema": MARKDOWN_FILE, "example": render(schema.example).decode()}
    return types


def describe_parameters(rule: Rule, operation: Operation, known: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the parameters of an operation in its path, headers and query."""
    for converter, name in PLACE.findall(rule.rule):
        yield {"in": "path", "name": name} | known[converter] | {"required": True}
    for name in (*operation.request_headers, *(["If-None-Match"] if has_validator(operation) else [])):
        yield {"in": "header", "name": name} | known[name]
    yield {"in": "query", "schema": operation.query}


def has_validator(operation: Operation) -> bool:
    """Return whether an operation may return 304 Not Modified."""
    return operation.method == "GET" and "ETag" in operation.response.headers


def describe_responses(rule: Rule, operation: Operation) -> dict[str, Any]:
    """Return the responses of an operation by status."""
    errors = ("400", "401", *(["404"] if rule.arguments else []), "429", "default")
    responses: dict[str, Any] = dict.fromkeys(errors, "Error")  # all share one response, to keep the description short
    for response in filter(None, (operation.response, operation.creates)):
        responses[str(response.status)] = describe_response(response.description, response.headers)
        if response.schema:
            responses[str(response.status)]["content"] = media_types(response.content_types, response.schema)
    if has_validator(operation):
        unchanged = "Not modified: the ETag is still the same."
        responses["304"] = describe_response(unchanged, operation.response.headers)
    return dict(sorted(responses.items()))


def describe_response(description: str, headers: Iterable[str]) -> dict[str, Any]:
    """Return an OpenAPI response with these headers and the rate limit headers."""
    references = {name: {"$ref": f"#/components/headers/{name}"} for name in (*RATE_LIMIT, *headers)}
    return {"description": description, "headers": references}
