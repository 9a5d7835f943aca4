"""Publish due posts before a request is handled. Commands need `due` alone, without Flask."""

from contextlib import suppress
from functools import partial

from blogapi.api.request import current_request
from blogapi.posts.due import publish_batch
from blogapi.storage.errors import Unavailable

WAIT_SECONDS = 0.05  # how long a request waits for another write before it publishes


def publish_before_request() -> None:
    """Publish what is due before handling a request with a key or a session, so that the response shows it.

    Once a second suffices, because times are whole seconds and a post can only be scheduled for a later one. A request
    publishes one batch, and background work the rest. Posts that cannot be written still appear as scheduled.
    """
    request = current_request()
    service = request.service
    second = int(service.clock())
    if service.due_second != second and (request.key or request.session):
        try:
            with suppress(Unavailable):
                publish_batch(service.database, partial(service.database.write_within, WAIT_SECONDS))
        finally:
            service.due_second = second
