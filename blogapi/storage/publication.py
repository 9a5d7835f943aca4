"""When a post is published."""

from typing import Any

from blogapi.storage.errors import PublicationTime


def published_at(old: dict[str, Any], changes: dict[str, Any], now: str) -> str | None:
    """Return the published_at that a post has after some changes; raise PublicationTime if there can be none such.

    Times in RFC 3339 UTC, whole seconds, compare as text.
    """
    status = changes.get("status") or old["status"]
    given, stored = changes.get("published_at"), old.get("published_at")
    if status == "scheduled":
        time = given or stored
        if not time or time <= now:
            raise PublicationTime("must be given, and in the future, for a scheduled post")
        return time
    if given and given > now:
        raise PublicationTime('must not be in the future; for that, change the post to "status": "scheduled"')
    if given:
        return given
    # The clock may have been set back since a post was published.
    kept = stored if stored and (stored <= now or old["status"] == status == "published") else None
    return kept or (now if status == "published" else None)
