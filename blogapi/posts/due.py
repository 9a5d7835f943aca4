"""Publish due posts (scheduled posts whose time has come) before anybody reads them."""

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from blogapi.api.service import Service
from blogapi.posts import storage as posts
from blogapi.storage.database import Database
from blogapi.storage.errors import Unavailable

WAIT_SECONDS = 0.05  # how long a request waits for another write before it publishes
log = logging.getLogger(__name__)


def publish_batch(database: Database, write: Callable | None = None) -> bool:
    """Publish a batch of due posts, and log them; return whether there were any. Raises Unavailable."""
    if database.row(posts.SELECT_ANY_DUE, now=database.now) is None:
        return False
    for post_id, is_published in (write or database.write)(posts.publish_due).items():
        if is_published:
            log.info("post %s was published as scheduled", post_id)
        else:
            log.error("post %s is damaged, and cannot be published", post_id)
    return True


def publish_all(database: Database) -> None:
    """Publish all due posts, for a command. If the database cannot be written to, the posts stay scheduled."""
    with suppress(Unavailable):
        while publish_batch(database):
            pass


def publish_for_request(service: Service) -> None:
    """Publish due posts before a request with a key or a session, even a GET, so that the response shows the result.

    One request per second is enough, because times are whole seconds, and a post cannot be scheduled for the current
    second. That request publishes one batch of posts, and the background thread publishes the others. If the database
    cannot be written to, the posts still appear as scheduled.
    """
    second = int(service.clock())
    if service.due_second != second:
        try:
            with suppress(Unavailable):
                publish_batch(service.database, partial(service.database.write_within, WAIT_SECONDS))
        finally:
            service.due_second = second
