"""The API keys: how they are made and kept, and the decorator that demands one."""

import hashlib
import re
import secrets
from collections.abc import Callable
from functools import wraps
from typing import Any

from flask import g, request
from werkzeug.exceptions import Unauthorized

from blogapi.clock import now, rfc3339
from blogapi.models import ApiKey

PREFIX = "blog_"
AUTHORIZATION = re.compile(r"bearer +(blog_[A-Za-z0-9_-]{43})", re.IGNORECASE)


def new_key() -> str:
    """Make a key: the prefix and 256 random bits in URL-safe base64, 43 characters."""
    return PREFIX + secrets.token_urlsafe(32)


def digest_of(key: str) -> bytes:
    """Return the SHA-256 by which a key is known. Its randomness makes salt and slowness needless."""
    return hashlib.sha256(key.encode()).digest()


def key_required(view: Callable) -> Callable:
    """Answer 401 in place of `view` unless the request carries a key that the database knows."""

    @wraps(view)
    def authenticated(*args: Any, **kwargs: Any) -> Any:
        match = AUTHORIZATION.fullmatch(request.environ.get("HTTP_AUTHORIZATION", ""))
        key = ApiKey.find(digest_of(match[1])) if match else None
        if key is None:
            raise Unauthorized(
                "Authorization: must be 'Bearer' and an API key that is in force", www_authenticate=["Bearer"]
            )
        g.api_key, last_used_on = key
        today = rfc3339(now())[:10]
        if last_used_on != today:
            ApiKey.note_use(g.api_key, today)
        return view(*args, **kwargs)

    return authenticated
