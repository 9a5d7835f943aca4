"""What the description of the API says beyond what the routes, the views' docstrings and the schemas do."""

from dataclasses import dataclass, field
from typing import Any

from marshmallow import Schema

from blogapi.fields import DELIVERY_ID, ID
from blogapi.schemas import (
    CreatedWebhook,
    Delivery,
    Error,
    ListQuery,
    NewPost,
    NewWebhook,
    Ping,
    Post,
    PostChange,
    PostEvent,
    TagAnswer,
    TagChange,
    Webhook,
    WebhookChange,
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
EXAMPLE_WEBHOOK = {
    "id": "1",
    "url": "https://example.org/hook",
    "events": ["post.published"],
    "active": True,
    "created_at": "2026-11-20T10:10:00Z",
}
EXAMPLE_DELIVERY = {
    "id": "msg_p5jXN8AQM9LWM0D4loKWxJ",
    "event": "post.published",
    "created_at": "2026-11-20T10:10:00Z",
    "state": "pending",
    "attempts": 1,
    "last_status": 502,
    "next_attempt_at": "2026-11-20T10:10:06Z",
}
EXAMPLE_EVENT = {
    "type": "post.published",
    "timestamp": "2026-11-20T10:10:00Z",
    "data": {"post": {name: value for name, value in EXAMPLE_POST.items() if name != "content"}},
}
EXAMPLE_PING = {"type": "ping", "timestamp": "2026-11-20T10:10:00Z", "data": {}}
# The schemas that are described by a name, each with an example.
SHAPES: dict[str, tuple[Schema, dict[str, Any]]] = {
    "Error": (Error(), {"error": 400, "message": "title: missing"}),
    "NewPost": (NewPost(), EXAMPLE),
    "Post": (Post(), EXAMPLE_POST),
    "PostChange": (PostChange(partial=True), {"status": "archived"}),
    "Tag": (TagAnswer(), {"name": "Travel", "posts": 3}),
    "TagChange": (TagChange(), {"name": "Journeys"}),
    "NewWebhook": (NewWebhook(), {"url": EXAMPLE_WEBHOOK["url"], "events": EXAMPLE_WEBHOOK["events"]}),
    "Webhook": (Webhook(), EXAMPLE_WEBHOOK),
    "CreatedWebhook": (
        CreatedWebhook(),
        EXAMPLE_WEBHOOK | {"secret": "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD3J9hMvQ1yQo="},
    ),
    "WebhookChange": (WebhookChange(), {"active": False}),
    "Delivery": (Delivery(), EXAMPLE_DELIVERY),
    "PostWithoutContent": (Post(exclude=["content"]), EXAMPLE_EVENT["data"]["post"]),
    "PostEvent": (PostEvent(), EXAMPLE_EVENT),
    "Ping": (Ping(), EXAMPLE_PING),
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
    "Location": ("The path of what was created.", {"type": "string", "format": "uri-reference"}),
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
    404: ("There is no such thing, or path.", "no such post", []),
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
    503: ("The service cannot do this now; nothing was changed.", "the database is busy", []),
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
    "post_id": {"type": "string", "pattern": f"^{ID}$"},
    "webhook_id": {"type": "string", "pattern": f"^{ID}$"},
    "delivery_id": {"type": "string", "pattern": f"^{DELIVERY_ID}$"},
    "name": {"type": "string", "minLength": 1, "description": "The tag, percent-encoded; letter case does not matter."},
}
EXAMPLES = {"post_id": "1", "webhook_id": "1", "delivery_id": EXAMPLE_DELIVERY["id"], "name": "travel"}
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
    "list_webhooks": Operation(200, "The webhooks, oldest first.", Webhook(), many=True),
    "create_webhook": Operation(
        201,
        "The new webhook, with its secret.",
        CreatedWebhook(),
        body=NewWebhook(),
        example={"url": "https://example.org/hook", "events": ["post.published"]},
        headers=["Location"],
    ),
    "get_webhook": Operation(200, "The webhook.", Webhook(), errors=[404]),
    "change_webhook": Operation(
        200,
        "The webhook as it is now.",
        Webhook(),
        body=WebhookChange(),
        example={"active": False},
        types=["application/json", "application/merge-patch+json"],
        errors=[404],
    ),
    "delete_webhook": Operation(204, "The webhook is deleted.", errors=[404]),
    "ping_webhook": Operation(202, "The ping, which is about to be sent.", Delivery(), errors=[404]),
    "list_deliveries": Operation(200, "The deliveries, newest first.", Delivery(), many=True, errors=[404]),
    "redeliver": Operation(202, "The delivery, which is about to be attempted.", Delivery(), errors=[404]),
}
# What receivers are sent, by event.
SENT = {
    "post.created": "A post was created.",
    "post.updated": "A post was changed.",
    "post.published": "A post was published: created as such, by a change, or because its time had come.",
    "post.deleted": "A post was deleted; this is what it was.",
    "ping": "Somebody wants to see whether the receiver is there.",
}
SENT_HEADERS = {
    "webhook-id": ("The same over all attempts: by it, a receiver knows what it has seen.", {"type": "string"}),
    "webhook-timestamp": ("Unix time of the attempt, in seconds.", {"type": "string", "pattern": "^[0-9]+$"}),
    "webhook-signature": (
        "`v1,` and the base64 of the HMAC-SHA256 of webhook-id, webhook-timestamp and body, with dots between them.",
        {"type": "string", "pattern": "^v1,[A-Za-z0-9+/]{43}=$"},
    ),
}
