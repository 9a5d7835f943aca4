"""Publication: the date of a post, and scheduled posts.

Reads show a scheduled post as published as soon as it is due (`documents.as_of`). In the database it is published a
little later (`posts.publish_due`), or by the next change to the post.
"""

from datetime import timedelta
from typing import Any

from peewee import fn

from blogapi import documents
from blogapi.clock import later
from blogapi.storage.engine import Compiled, Placeholder, Reader, Transaction, placeholders
from blogapi.storage.errors import Rejected
from blogapi.storage.models import DOCUMENT, Post, Schedule

CLOCK_SKEW = timedelta(minutes=1)  # a client's clock may be ahead by this much
FUTURE = "must not be in the future unless the status is scheduled"


def publication_date(
    old: dict[str, Any], changes: dict[str, Any], now: str, allow_future_draft: bool = False
) -> str | None:
    """Return the published_at of a post after some changes. Raises Rejected if it is not allowed.

    With `allow_future_draft`, a draft may have a future date. Times in RFC 3339, in UTC and whole seconds, compare as
    text.
    """
    status = changes.get("status") or old["status"]
    given = changes.get("published_at")
    time = given if "published_at" in changes else old.get("published_at")  # RFC 7396: null clears it.
    if status == "scheduled":
        if not time or time <= now:
            raise Rejected("published_at", "must be given, and in the future, for a scheduled post")
        return time
    # A draft can have a future time, and so can any post after the clock was set back. Such a time stays as long as the
    # status does.
    is_kept = time == old.get("published_at") and status == old.get("status")
    if time and (time <= now or is_kept or (allow_future_draft and status == "draft")):
        return time
    if given and given > later(now, CLOCK_SKEW):
        raise Rejected("published_at", FUTURE)
    return now if given or status == "published" else None


def reschedule(tx: Transaction, post_id: int, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Store when a changed post will be published; {} means that there is no post."""
    before, after = (post["published_at"] if post.get("status") == "scheduled" else None for post in (old, new))
    if before != after and before:
        unschedule(tx, post_id)
    if before != after and after:
        tx.defer(SCHEDULE_POST, post_id=post_id, published_at=after)


def unschedule(tx: Transaction, post_id: int) -> None:
    """Remove a post from the schedule."""
    tx.defer(UNSCHEDULE_POST, post_id=post_id)


SCHEDULE_POST = Compiled(Schedule.insert(placeholders(Schedule)))
UNSCHEDULE_POST = Compiled(Schedule.delete().where(Schedule.post_id == Placeholder("post_id")))


def next_due(reader: Reader) -> int | None:
    """Return the id of a due post, if any."""
    found = reader.row(NEXT_DUE, now=reader.now)
    return found[0] if found else None


IS_DUE = Schedule.published_at <= Placeholder("now")
NEXT_DUE = Compiled(Schedule.select(Schedule.post_id).where(IS_DUE).order_by(Schedule.published_at).limit(1))
# Whether a query's post is due
POST_IS_DUE = fn.EXISTS(Schedule.select(Schedule.post_id).where(Schedule.post_id == Post.id, IS_DUE))


def latest_in_future(reader: Reader) -> str | None:
    """Return the latest time of a published post if it is later than now, which means that the clock is behind."""
    of_published = Post.status == "published"
    newest = reader.row(Post.select(DOCUMENT).where(of_published).order_by(Post.id.desc()).limit(1))
    if newest is None:
        return None
    times = [documents.load(newest[0])["created_at"]]
    for column in (Post.updated_at, Post.published_at):  # Each has an index.
        times += reader.one(Post.select(fn.MAX(column)).where(of_published))
    return max(times) if max(times) > reader.now else None
