"""Determine a post's publication date and status at the current time, and the post that results from a PUT."""

from datetime import timedelta
from typing import Any

from peewee import fn

from blogapi import documents
from blogapi.clock import later
from blogapi.posts import slugs
from blogapi.storage.engine import Reader
from blogapi.storage.errors import Rejected
from blogapi.storage.models import Post

CLOCK_SKEW = timedelta(minutes=1)  # a client's clock may be ahead by this much
FUTURE = "must not be in the future unless the status is scheduled, which a PATCH or a PUT can set"


def publication_date(
    old: dict[str, Any], changes: dict[str, Any], now: str, allow_future_draft: bool = False
) -> str | None:
    """Return the published_at of a post after some changes. Raises Rejected if that time is not allowed.

    With `allow_future_draft`, a draft may have a future date. Times are compared as text, which is correct for RFC 3339
    times in UTC and whole seconds.
    """
    status = changes.get("status") or old["status"]
    date = changes.get("published_at")
    time = date if "published_at" in changes else old.get("published_at")  # None clears the date.
    if status == "scheduled":
        if not time or time <= now:
            raise Rejected("published_at", "must be given, and in the future, for a scheduled post")
        return time
    # A draft can have a future time, as can any post after the clock was set back. Such a post keeps its time as long
    # as it keeps its status.
    is_kept = time == old.get("published_at") and status == old.get("status")
    if time and (time <= now or is_kept or (allow_future_draft and status == "draft")):
        return time
    if date and date > later(now, CLOCK_SKEW):
        raise Rejected("published_at", FUTURE)
    return now if date or status == "published" else None


def status_meant(status: str, date: str | None, now: str) -> str:
    """Return the status that a file or a writing program means: a published post with a future date is scheduled."""
    return "scheduled" if status == "published" and (date or "") > now else status


def unscheduled(post: dict[str, Any], now: str, *, is_published: bool) -> dict[str, Any]:
    """If the time of a scheduled post has passed, make the post a draft or, with `is_published`, publish it."""
    if post["status"] != "scheduled" or post.get("published_at", "") > now:  # A service may send no date.
        return post
    return post | ({"status": "published"} if is_published else {"status": "draft", "published_at": None})


def as_put(old: dict[str, Any], fields: dict[str, Any], now: str, was_public: bool = False) -> dict[str, Any]:
    """Return the post that results from a PUT of these fields. Raises Rejected.

    If a file still says `scheduled` after its post was published on time, the post stays published. `was_public` is
    passed to `slugs.with_former`.
    """
    was_scheduled = fields.get("status") == "scheduled" and old["status"] == "published"
    if was_scheduled and fields.get("published_at") == old["published_at"]:
        fields = fields | {"status": "published"}
    kept = {name: old[name] for name in documents.STAYING if name in old}
    new = kept | fields | {"published_at": publication_date(old, fields, now)}
    return documents.in_order(slugs.with_former(old, new, was_public))


def latest_in_future(reader: Reader) -> str | None:
    """Return the latest time of any published post if that time is in the future: the clock is then behind."""
    columns = Post.updated_at, Post.published_at  # each has an index
    times = [reader.one(Post.select(fn.MAX(column)).where(Post.status == "published"))[0] for column in columns]
    latest = max(time or "" for time in times)
    return latest if latest > reader.now else None
