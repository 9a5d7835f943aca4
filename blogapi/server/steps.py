"""The steps of background work: what each wing does periodically."""

import logging
import time
from collections.abc import Callable

from blogapi.posts import history, idempotency, publication
from blogapi.posts import storage as posts
from blogapi.server.background import Background
from blogapi.wings.images import storage as images
from blogapi.wings.owner import copies as owner_copies
from blogapi.wings.proposals import storage as proposals
from blogapi.wings.search import index, labels
from blogapi.wings.webhooks import storage as webhooks

MINUTE, HOUR = 60, 3600  # seconds
TIDY_SECONDS = 0.2  # interval of merges of the search index
STEADY_SECONDS = HOUR  # the clock must have been steady for this long before anything expires

log = logging.getLogger(__name__)


def publish(work: Background) -> None:
    """Publish due posts in batches, so that other clients can write in between."""
    while publication.next_due(work.database) is not None:
        for post_id, published in work.database.write(posts.publish_due).items():
            if published:
                log.info("post %s is published as scheduled", post_id)
            else:
                log.error("post %s is damaged, and cannot be published", post_id)
        if work.is_over():
            break
        time.sleep(0)


def prune(work: Background) -> None:
    """Delete the expired rows of each wing."""
    for each in webhooks.listing(work.database):
        if dropped := work.repeat(webhooks.drop, each.id):
            log.warning("webhook %s has too many pending deliveries: the oldest %s are dropped", each.id, dropped)
        work.repeat(webhooks.prune, each.id)
    work.database.write(idempotency.forget_old)
    label = 0
    while label := work.database.write(labels.prune, label):
        time.sleep(0)
    work.repeat(images.prune)
    work.repeat(history.clear)
    work.repeat(proposals.clear)
    is_steady = work.watch.steady_seconds() >= STEADY_SECONDS
    if is_steady or not work.config.keep_days:
        work.repeat(history.prune, work.config.keep_days)
    if not is_steady:
        return
    work.repeat(owner_copies.prune, max(1, work.config.keep_days))
    work.repeat(proposals.prune, work.config.keep_days)


def reserve(work: Background) -> None:
    """Keep disk space for deletions."""
    work.database.engine.reserve()


def deliver(work: Background) -> None:
    """Send webhooks."""
    work.sender.deliver()


def tidy_index(work: Background) -> None:
    """Index the posts that an upgrade has left to be indexed, and merge what writes have left in the search index."""
    for _ in index.rebuild(work.database):
        if work.is_over():
            break
    index.tidy(work.database)


# Each step with its interval in seconds
STEPS: dict[Callable[[Background], None], float] = {
    reserve: MINUTE,
    publish: 0,
    prune: MINUTE,
    deliver: 0,
    tidy_index: TIDY_SECONDS,
}
