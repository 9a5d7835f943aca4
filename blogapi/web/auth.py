"""The decorator that demands an API key."""

import re
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any

from flask import g, request
from werkzeug.exceptions import Unauthorized

from blogapi.storage import keys
from blogapi.storage.errors import Unavailable
from blogapi.web.service import database

AUTHORIZATION = re.compile(r"bearer +(blog_[A-Za-z0-9_-]{43})", re.IGNORECASE)


def key_required(view: Callable) -> Callable:
    """Answer 401 in place of `view` unless the request carries a key that the database knows."""

    @wraps(view)
    def authenticated(*args: Any, **kwargs: Any) -> Any:
        environ, db = request.environ, database()
        match = AUTHORIZATION.fullmatch(environ.get("HTTP_AUTHORIZATION", ""))
        digest = keys.digest_of(match[1]) if match else None
        found = digest and keys.authenticate(db, digest)
        if found is None:
            raise Unauthorized(
                "Authorization: must be 'Bearer' and an API key that is in force", www_authenticate=["Bearer"]
            )
        key, g.hits = found
        g.api_key = digest
        environ["blogapi.key_name"] = key.name  # for the log
        environ["blogapi.scope"] = key.scope  # what the key may do
        if key.last_used_on != db.now[:10]:
            with suppress(Unavailable):
                db.write_at_once(keys.record_use, digest)
        return view(*args, **kwargs)

    return authenticated
