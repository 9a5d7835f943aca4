"""Admit a request to the posts. Commands publish due posts without this module, because it needs Flask."""

from blogapi.api.access import key_required, rate_limited
from blogapi.api.request import Request
from blogapi.posts.due import publish_for_request
from blogapi.storage.keys import KnownKey


@key_required
@rate_limited
def admit(request: Request, key: KnownKey) -> None:
    """Check the key of a request, count the request against the key's limit, and publish due posts."""
    publish_for_request(request.service)
