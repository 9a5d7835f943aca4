"""What the operations refer to: headers, errors and shapes."""

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
    "Link": ('Leads to the next page, as `<…>; rel="next"` (RFC 8288), where there is one.', {"type": "string"}),
    "ETag": ("The strong entity tag of what is answered: it changes with that.", {"type": "string"}),
    "Location": ("The path of what was created.", {"type": "string", "format": "uri-reference"}),
    "Retry-After": ("After how many seconds to try again.", {"type": "integer", "minimum": 1}),
    "WWW-Authenticate": ("The scheme of authentication.", {"type": "string", "const": "Bearer"}),
    "Allow": ("The methods that are allowed.", {"type": "string"}),
}
REQUEST_HEADERS: dict[str, Described] = {
    "If-Match": ("Change the post only if it still has this entity tag (RFC 9110).", {"type": "string"}),
    "If-None-Match": (
        "GET: answer 304 if this is still the entity tag. PUT: change nothing if the post has it, `*` any (RFC 9110).",
        {"type": "string"},
    ),
    "Idempotency-Key": (
        "1 to 255 visible ASCII characters. The same key and body again within 24 hours get the same post, and make "
        "nothing: retrying is safe.",
        {"type": "string", "pattern": "^[!-~]{1,255}$"},
    ),
}
# Errors that any operation may answer, by status, and those that only some do
ERRORS = {
    400: "Something in the request is not valid; the message names it, and what would be right.",
    401: "The key is missing or not in force.",
    403: "The key may not do this: it is read-only, or published-only.",
    404: "There is no such thing, or path.",
    405: "The method is not allowed for the path; `Allow` names those that are.",
    413: "The body has more than 4 MiB.",
    415: "`Content-Type` is not one that is taken.",
    429: "The key has no requests left in this minute; `Retry-After` says how many seconds to wait.",
    500: "An error on the server's side.",
    503: "The database is busy, or cannot be used; `Retry-After` says after how many seconds to try again.",
}
OWN_ERRORS = {  # with an example of their messages
    404: ("There is no such thing.", "no such post"),
    412: (
        "The post is not as `If-Match` or `If-None-Match` demands; nothing was changed.",
        "If-Match: the post has been changed since; get it again",
    ),
}
# Enumerations that recur, by name: their words, and what they are
SHAPES = {
    "Status": (
        STATUSES,
        "What a post is: `published`, `draft`, `scheduled` (it publishes itself at `published_at`) or `archived`.",
    ),
    "EventType": (EVENT_TYPES, "What happened: something to a post or a tag, or a `ping` that was asked for."),
}

# What receivers of webhooks are sent, by event
EVENTS = {
    "post.created": "A post was created.",
    "post.updated": "A post was changed.",
    "post.published": "A post was published: created as such, by a change, or because its time had come.",
    "post.deleted": "A post was deleted; this is what it was.",
    "tag.updated": "A tag was renamed in every post, or merged with another; this is what it is now.",
    "tag.deleted": "A tag was removed from every post.",
    "ping": "Somebody wants to see whether the receiver is there.",
}
EVENT_HEADERS: dict[str, Described] = {
    "webhook-id": ("The same over all attempts: by it, a receiver knows what it has seen.", {"type": "string"}),
    "webhook-timestamp": ("Unix time of the attempt, in seconds.", {"type": "string", "pattern": "^[0-9]+$"}),
    "webhook-signature": (
        "`v1,` and the base64 of the HMAC-SHA256 of webhook-id, webhook-timestamp and body, with dots between them.",
        {"type": "string", "pattern": "^v1,[A-Za-z0-9+/]{43}=$"},
    ),
}
