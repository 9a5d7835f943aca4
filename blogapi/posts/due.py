"""Due posts: scheduled posts whose time has come are published before anybody reads them."""

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from blogapi.api.request import current_request
from blogapi.posts import storage as posts
from blogapi.storage.database import Database
from blogapi.storage.errors import Unavailable

WAIT_SECONDS = 0.05  # how long a request waits for another write before it publishes
log = logging.getLogger(__name__)


def publish_before_request() -> None:
    """Publish what is due before the request of a key or a session is handled, so that its answer shows it.

    Once a second is exact, because times are whole seconds and a post can only be scheduled for a later one. A request
    publishes one batch, and the background the rest. What cannot be written is shown as scheduled.
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


def publish_batch(database: Database, write: Callable | None = None) -> bool:
    """Publish a batch of due posts, and log them; return whether there were any. Raises Unavailable."""
    if not posts.has_due(database):
        return False
    for post_id, is_published in (write or database.write)(posts.publish_due).items():
        if is_published:
            log.info("post %s is published as scheduled", post_id)
        else:
            log.error("post %s is damaged, and cannot be published", post_id)
    return True


def publish_all(database: Database) -> None:
    """Publish all due posts, for a command; if the database cannot be written, they stay scheduled."""
    with suppress(Unavailable):
        while publish_batch(database):
            pass
