"""What the operations refer to: headers, and the errors that they may answer."""

from typing import Any

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
        "The same key and body again within 24 hours get the same post, and make nothing: retrying is safe.",
        {"type": "string", "pattern": "^[\\x21-\\x7e]{1,255}$"},
    ),
}
# By status: a description, the message of an example, and headers besides those of the rate limit
ERRORS: dict[int, tuple[str, str, list[str]]] = {
    400: ("Something in the request is not valid; the message names it.", "title: missing", []),
    401: (
        "The key is missing or not in force.",
        "Authorization: must be 'Bearer' and an API key that is in force",
        ["WWW-Authenticate"],
    ),
    403: ("The key may not do this.", "this key is read-only: it may GET and HEAD posts and tags", []),
    404: ("There is no such thing, or path.", "no such post", []),
    405: ("The method is not allowed for the path.", "the method is not allowed for this path", ["Allow"]),
    408: ("The body did not come in time.", "body: did not come in time", []),
    412: (
        "The post is not as If-Match or If-None-Match demands; nothing was changed.",
        "If-Match: the post has been changed since; get it again",
        [],
    ),
    413: ("The body is too large.", "body: must be at most 4,194,304 bytes", []),
    414: ("The request line is too long.", "the request line must have at most 8,190 bytes", []),
    415: ("The body is not said to be of a type that is taken.", "Content-Type: must be application/json", []),
    417: ("The expectation is none that can be met.", "Expect: must be 100-continue", []),
    429: ("The limit of the key is exceeded.", "rate limit exceeded: 100 requests a minute", ["Retry-After"]),
    431: ("The header is too large.", "the header must have at most 100 fields of at most 8,190 bytes", []),
    500: ("An error on the server's side.", "an error on the server's side; its log says more", []),
    501: ("The transfer coding is not known.", "Transfer-Encoding: must be chunked or left out", []),
    503: ("The database cannot do this now.", "the database is busy; nothing was changed", []),
}
ALWAYS = (400, 401, 405, 414, 417, 429, 431, 500, 501, 503)  # the errors of any operation
WITH_BODY = (408, 413, 415)  # and of those with a body

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
