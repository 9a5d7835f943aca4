"""Due posts: scheduled posts whose time has come are published before anybody reads them."""

import logging
from collections.abc import Callable
from contextlib import suppress

from blogapi.posts import storage as posts
from blogapi.storage.database import Database
from blogapi.storage.errors import Unavailable

log = logging.getLogger(__name__)


def publish_batch(database: Database, write: Callable | None = None) -> bool:
    """Publish a batch of due posts, and log them; return whether there were any. Raises Unavailable."""
    if not posts.has_due(database):
        return False
    for post_id, is_published in (write or database.write)(posts.publish_due).items():
        if is_published:
            log.info("post %s was published as scheduled", post_id)
        else:
            log.error("post %s is damaged, and cannot be published", post_id)
    return True


def publish_all(database: Database) -> None:
    """Publish all due posts, for a command; if the database cannot be written, they stay scheduled."""
    with suppress(Unavailable):
        while publish_batch(database):
            pass
