"""The description of the API (OpenAPI 3.1), made from the routes and the very schemas that validate."""

import json
import re
import sys
import unicodedata
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import version
from itertools import groupby
from typing import Any

from apispec import APISpec
from apispec.ext.marshmallow import MarshmallowPlugin
from flask import Flask
from marshmallow import Schema, fields

from blogapi.schemas import (
    POST_ID,
    WHITE_SPACE,
    Error,
    ListQuery,
    Moment,
    NewPost,
    Post,
    PostChange,
    PostId,
    Tag,
    TagAnswer,
    TagChange,
    Tags,
    Text,
    Whole,
)

DESCRIPTION = """\
Manage the posts of a blog. Every request under `/v1` needs `Authorization: Bearer <API_KEY>`; the command line makes
keys (`blogapi keys create NAME`).

Whatever goes wrong, the answer is an Error: the HTTP status, and a message that says what would be right. Unknown
fields, unknown parameters and repeated parameters are refused. Each key has a number of requests in each minute.
"""
EXAMPLE: dict[str, Any] = {
    "title": "Three days at the lake",
    "content": "**Friday.** Fog, and somewhere in it a lake.\n",
    "excerpt": "Fog, wind, and then the sun.",
    "tags": ["Travel", "Lake Constance"],
    "cover_image": "https://example.org/lake.jpg",
    "status": "published",
}
EXAMPLE_POST = {
    "id": "1",
    **EXAMPLE,
    "slug": "three-days-at-the-lake",
    "created_at": "2026-11-20T10:10:00Z",
    "published_at": "2026-11-20T10:10:00Z",
}
RATE_LIMIT = {
    "X-RateLimit-Limit": ("The requests that a key has in each minute.", {"type": "integer", "minimum": 1}),
    "X-RateLimit-Remaining": ("What is left of them in this minute.", {"type": "integer", "minimum": 0}),
    "X-RateLimit-Reset": ("Unix time, in seconds, at which the minute ends.", {"type": "integer"}),
}
HEADERS = {
    **RATE_LIMIT,
    "Link": ('Leads to the next page, as `<…>; rel="next"` (RFC 8288), where there is one.', {"type": "string"}),
    "ETag": ("The strong entity tag of the post: it changes with the post.", {"type": "string"}),
    "Location": ("The path of the new post.", {"type": "string", "format": "uri-reference"}),
    "Retry-After": ("After how many seconds to try again.", {"type": "integer", "minimum": 1}),
    "WWW-Authenticate": ("The scheme of authentication.", {"type": "string", "const": "Bearer"}),
    "Allow": ("The methods that are allowed.", {"type": "string"}),
}
ERRORS: dict[int, tuple[str, str, list[str]]] = {
    400: ("Something in the request is not valid; the message names it.", "title: missing", []),
    401: (
        "The key is missing or not in force.",
        "Authorization: must be 'Bearer' and an API key that is in force",
        ["WWW-Authenticate"],
    ),
    404: ("There is no such post, tag or path.", "no such post", []),
    412: (
        "The post is not the one that If-Match names; nothing was changed.",
        "If-Match: the post has been changed since; get it again",
        [],
    ),
    405: ("The method is not allowed for the path.", "the method is not allowed for this path", ["Allow"]),
    408: ("The body did not come in time.", "body: did not come in time", []),
    413: ("The body is too large.", "body: must be at most 4,194,304 bytes", []),
    415: ("The body is not said to be JSON.", "Content-Type: must be application/json", []),
    414: ("The request line is too long.", "the request line must have at most 8,190 bytes", []),
    417: ("The expectation is none that can be met.", "Expect: must be 100-continue", []),
    431: ("The header is too large.", "the header must have at most 100 fields of at most 8,190 bytes", []),
    500: ("An error on the server's side.", "an error on the server's side; its log says more", []),
    501: ("The transfer coding is not known.", "Transfer-Encoding: must be chunked or left out", []),
    429: ("The limit of the key is exceeded.", "rate limit exceeded: 100 requests a minute", ["Retry-After"]),
    503: ("The database cannot do this now; nothing was changed.", "the database is busy", []),
}
REQUEST_HEADERS = {
    "If-Match": ("Change the post only if it still has this entity tag (RFC 9110).", {"type": "string"}),
    "If-None-Match": ("Answer 304 if the post still has this entity tag (RFC 9110).", {"type": "string"}),
    "Idempotency-Key": (
        "The same key and body again within 24 hours get the same post, and make nothing: retrying is safe.",
        {"type": "string", "pattern": "^[\\x21-\\x7e]{1,255}$"},
    ),
}
PATHS = {
    "post_id": {"type": "string", "pattern": f"^{POST_ID}$"},
    "name": {"type": "string", "minLength": 1, "description": "The tag, percent-encoded; letter case does not matter."},
}
EXAMPLES = {"post_id": "1", "name": "travel"}
ALWAYS = [400, 401, 405, 414, 417, 429, 431, 500, 501, 503]
WITH_BODY = [408, 413, 415]


@dataclass(frozen=True)
class Operation:
    """What a view takes and answers, beyond what its route and docstring say."""

    status: int
    says: str
    answer: Schema | None = None
    many: bool = False
    query: Schema | None = None
    body: Schema | None = None
    example: dict[str, Any] = field(default_factory=dict)  # of the body
    types: list[str] = field(default_factory=lambda: ["application/json"])  # of the body
    asks: list[str] = field(default_factory=list)  # request headers
    headers: list[str] = field(default_factory=list)
    errors: list[int] = field(default_factory=list)


OPERATIONS = {
    "list_posts": Operation(200, "The posts, newest first.", Post(), many=True, query=ListQuery(), headers=["Link"]),
    "create_post": Operation(
        201,
        "The new post.",
        Post(),
        body=NewPost(),
        example={name: EXAMPLE[name] for name in ("title", "content", "status")},
        asks=["Idempotency-Key"],
        headers=["Location", "ETag"],
    ),
    "get_post": Operation(200, "The post.", Post(), asks=["If-None-Match"], headers=["ETag"], errors=[404]),
    "change_post": Operation(
        200,
        "The post as it is now.",
        Post(),
        body=PostChange(partial=True),
        example={"status": "archived"},
        types=["application/json", "application/merge-patch+json"],
        asks=["If-Match"],
        headers=["ETag"],
        errors=[404, 412],
    ),
    "delete_post": Operation(204, "The post is deleted.", asks=["If-Match"], errors=[404, 412]),
    "list_tags": Operation(200, "The tags, by name.", TagAnswer(), many=True),
    "change_tag": Operation(
        200, "The tag as it is now.", TagAnswer(), body=TagChange(), example={"name": "Journeys"}, errors=[404]
    ),
    "delete_tag": Operation(204, "No post carries the tag any more.", errors=[404]),
}


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
        tags=[{"name": "posts"}, {"name": "tags"}],
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
    spec.components.schema("Error", schema=Error)
    spec.components.schema("NewPost", {"example": EXAMPLE}, schema=NewPost)
    spec.components.schema("Post", {"example": EXAMPLE_POST}, schema=Post)
    spec.components.schema("PostChange", {"example": {"status": "archived"}}, schema=PostChange(partial=True))
    spec.components.schema("Tag", {"example": {"name": "Travel", "posts": 3}}, schema=TagAnswer)
    spec.components.schema("TagChange", {"example": {"name": "Journeys"}}, schema=TagChange)
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
    if isinstance(field, Moment):
        return {"format": "date-time"}
    if isinstance(field, Tag):
        return {"minLength": 1, "pattern": f"[^{WHITE_SPACE}]"}
    if isinstance(field, Whole):
        return {"type": "integer", "minimum": 1}
    if isinstance(field, PostId):
        return {"type": "string", "pattern": f"^{POST_ID}$"}
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
