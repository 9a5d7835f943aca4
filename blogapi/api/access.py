"""Guard every request: require an API key, count the request against the key's limit, and check the key's scope."""

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import wraps
from typing import Any, TypeVar
from urllib.parse import unquote

from flask import Blueprint, Flask, current_app
from werkzeug.exceptions import Forbidden, MethodNotAllowed, NotFound, TooManyRequests, Unauthorized

from blogapi.api.request import READ_METHODS, Request, current_request
from blogapi.storage import keys
from blogapi.storage.errors import Unavailable
from blogapi.storage.keys import KnownKey
from blogapi.storage.models import DRAFTS_ONLY, FULL, PUBLISHED_ONLY, READ_ONLY

# The path of a request target, which may be an absolute URL, up to its first percent-encoded slash
BEFORE_ENCODED_SLASH = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*+://[^/?]*+)?+([^?]*?)%2[Ff]")
BEARER: Any = ["Bearer"]  # a list, because WWWAuthenticate would add a space to a challenge without parameters
AUTHORIZATION = re.compile(f"bearer +({keys.KEY_PATTERN})", re.IGNORECASE)

View = TypeVar("View", bound=Callable)
STRANGER = "stranger"  # takes the place of a scope if a view needs neither a key nor a session


class SelfGuarded(Blueprint):
    """A blueprint whose views require a session instead of a key, or accept a key in the body."""


def for_scopes(*scopes: str) -> Callable[[View], View]:
    """Declare the scopes that may use a view outside the API's operations. By default, only full keys may."""

    def declare(view: View) -> View:
        vars(view)["scopes"] = scopes
        return view

    return declare


for_strangers = for_scopes(STRANGER)


def is_for_strangers(view: Callable) -> bool:
    """Return whether a view needs neither a key nor a session."""
    return STRANGER in getattr(view, "scopes", ())


def views_for_other_methods(app: Flask, request: Request) -> list[Callable]:
    """If the request's method is wrong, return the views for the other methods at its path."""
    error, routes = request.routing_exception, app.url_map.bind("localhost")
    methods = error.valid_methods or () if isinstance(error, MethodNotAllowed) else ()
    return [app.view_functions[routes.match(request.path, method)[0]] for method in methods]


def protect(app: Flask, admit: Callable[[Request], None]) -> None:
    """Guard every request, even for unknown paths, so that new views are protected by default.

    `admit` refuses requests without a valid key or beyond its limit. It may write, because it publishes due posts.
    """
    self_guarded = tuple(f"{name}." for name, blueprint in app.blueprints.items() if isinstance(blueprint, SelfGuarded))

    @app.before_request
    def guard() -> None:
        request = current_request()
        request.info.endpoint = endpoint = request.endpoint
        if endpoint and endpoint.startswith(self_guarded):
            return
        # If the method is wrong, the views at the path decide, so that strangers get 405 rather than 401.
        views = [app.view_functions[endpoint]] if endpoint else views_for_other_methods(app, request)
        if not any(map(is_for_strangers, views)):
            admit(request)
            check_scope(request)
            check_path(request)


def key_required(check: Callable[[Request, KnownKey], None]) -> Callable[[Request], None]:
    """Make a guard that runs `check` with the request's key. Raises Unauthorized without a valid key."""

    @wraps(check)
    def authenticated(request: Request) -> None:
        database, header = request.service.database, request.environ.get("HTTP_AUTHORIZATION", "")
        match = AUTHORIZATION.fullmatch(header)
        digest = keys.digest_of(match[1]) if match else b""
        request.key = key = keys.authenticate(database, digest) if match else None
        if key is None:
            raise Unauthorized(f"Authorization: {why_refused(header)}", www_authenticate=BEARER)
        request.info.key_name, request.info.credential = key.name, header[-keys.KEY_LENGTH :]
        if key.last_used_on != database.now[:10]:
            with suppress(Unavailable):
                database.write_within(0, keys.record_use, digest)
        check(request, key)

    return authenticated


def why_refused(authorization: str) -> str:
    scheme, _, key = authorization.partition(" ")
    if not scheme:
        return "missing; must be 'Bearer' and an API key"
    if scheme.lower() != "bearer":
        return "the scheme must be Bearer, followed by an API key"
    if "," in key:
        return "must contain one API key, and be sent once"
    if not key.strip():
        return "the API key is empty; is the shell variable that holds it set?"
    if not re.fullmatch(keys.KEY_PATTERN, key.strip()):
        return "the API key is unknown: a complete key is blog_ followed by 43 characters, without quotes"
    return "the API key is unknown or revoked; `blogapi keys list` shows keys, and `keys regenerate NAME` replaces one"


def rate_limited(check: Callable[[Request, KnownKey], None]) -> Callable[[Request, KnownKey], None]:
    """Make a guard that counts the request against its key's limit, then runs `check`. Raises TooManyRequests."""

    @wraps(check)
    def limited(request: Request, key: KnownKey) -> None:
        request.quota = quota = request.service.limiter.count(key.name, key.hits)
        if quota.exceeded:
            raise TooManyRequests(
                f"rate limit exceeded: {quota.limit} requests a minute; try again in {quota.retry_after} s",
                retry_after=quota.retry_after,
            )
        check(request, key)

    return limited


def check_path(request: Request) -> None:
    """Raise NotFound for a path that the router would misread: one that is not UTF-8 or has an encoded slash."""
    try:
        request.environ["PATH_INFO"].encode("latin-1").decode()
    except UnicodeDecodeError:
        raise NotFound from None
    start = BEFORE_ENCODED_SLASH.match(request.environ.get("RAW_URI", ""))
    if start and request.url_rule:
        path = request.service.config.without_prefix(unquote(start[1]))
        before_tag, has_tag, _ = request.url_rule.rule.partition("<tag:")
        if not (has_tag and f"/{path.lstrip('/')}".startswith(before_tag)):  # Tags may contain slashes.
            raise NotFound


def check_scope(request: Request) -> None:
    """Raise Forbidden unless the operation permits the scope of the request's key.

    Read-only and published-only keys may only use GET and HEAD, even for unknown paths. All other requests for unknown
    paths pass this check, and the router answers them.
    """
    assert request.key
    scope = request.key.scope
    if scope == FULL:
        return
    view = current_app.view_functions.get(request.endpoint or "")
    operation = getattr(view, "operation", None)
    if request.method in READ_METHODS or scope == DRAFTS_ONLY:
        if scope in getattr(view, "scopes", ()):
            return
        is_for_readers = operation and READ_ONLY in operation.scopes
        if scope == PUBLISHED_ONLY and (is_for_readers or isinstance(request.routing_exception, MethodNotAllowed)):
            raise NotFound  # as for an unknown path, so that the response does not reveal whether a history exists
        if not request.endpoint:
            return
    raise Forbidden(why_forbidden(scope))


def why_forbidden(scope: str) -> str:
    """Return a message that says what a key with this scope may do."""
    return f"this key is {scope}: it may {keys.may(scope)}"


def scoped_query(request: Request) -> Mapping[str, Any] | None:
    """Return the query of a list, restricted to the posts that the key may see, or None if it may not see any.

    The link to the next page keeps the unrestricted query, because it is built from `request.query`.
    """
    query = request.query
    if not request.published_only:
        return query
    return {**query, "status": "published"} if query.get("status", "published") == "published" else None
