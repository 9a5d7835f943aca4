"""Components of the description: headers, errors and enumerations."""

from typing import Any

from blogapi.post import STATUSES
from blogapi.storage.models import EVENTS as EVENT_TYPES

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
    "EventType": (EVENT_TYPES, "The type of an event, which is about a post or a tag; a `ping` is sent on request."),
}

# The events
EVENTS = {
    "post.created": "A post was created.",
    "post.updated": "A post was changed.",
    "post.published": "A post was published: created as such, changed, or due.",
    "post.deleted": "A post was deleted; this is its last state.",
    "tag.updated": "A tag was renamed in every post, or merged with another; this is its new state.",
    "tag.deleted": "A tag was removed from every post.",
    "ping": "A test of the receiver, sent on request.",
}
EVENT_HEADERS: dict[str, Described] = {
    "webhook-id": ("The same in all attempts, so that a receiver recognizes repeats.", {"type": "string"}),
    "webhook-timestamp": ("Unix time of the attempt, in seconds.", {"type": "string", "pattern": "^[0-9]+$"}),
    "webhook-signature": (
        "`v1,` and the base64 of the HMAC-SHA256 of webhook-id, webhook-timestamp and body, with dots between them.",
        {"type": "string", "pattern": "^v1,[A-Za-z0-9+/]{43}=$"},
    ),
}
