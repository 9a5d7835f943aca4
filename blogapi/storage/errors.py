"""The errors that storage functions raise."""

RETRY_SECONDS = 1  # by then, a busy database is probably free again


class DoesNotExist(Exception):
    """Nothing has this id or name."""

    def __init__(self, kind: str):
        super().__init__(f"no such {kind}")


class PostDoesNotExist(DoesNotExist):
    """No post has this id or slug."""

    def __init__(self) -> None:
        super().__init__("post")


class Rejected(Exception):
    """A field's value is valid but conflicts with stored data or with the current time."""

    def __init__(self, field: str, reason: str):
        super().__init__(f"{field}: {reason}")
        self.field = field


class SlugTaken(Rejected):
    """Another post has or had the slug."""

    def __init__(self, slug: str, post_id: int, present: str, field: str = "slug"):
        now = "" if slug == present else f": post {post_id} had it before, but is {present} now"
        super().__init__(field, f"{'' if field == 'slug' else f'{slug} is '}already taken by another post{now}")


class NotPermitted(Exception):
    """The key may only write drafts, and this is not one."""


class BadKeyName(ValueError):
    """A key's name is invalid, reserved, taken or unknown."""


class NeedsThread(Exception):
    """An operation is too slow for a shared transaction and must run in a thread."""


class NotUnique(Exception):
    """A row violates a unique constraint."""


class Unavailable(Exception):
    """The database cannot do this now.

    `retry_after` estimates when it will be able to, in seconds. Nothing has changed, unless `maybe_changed` is true:
    then a commit failed and may still have taken effect.
    """

    reason = ""  # shown to the client, if known

    def __init__(self, cause: object, retry_after: int | None = None, maybe_changed: bool = False):
        super().__init__(str(cause))
        self.retry_after = retry_after
        self.maybe_changed = maybe_changed


class Busy(Unavailable):
    """A lock or a connection did not become free in time."""

    def __init__(self) -> None:
        super().__init__("database is locked", RETRY_SECONDS)


class DiskFull(Unavailable):
    """The disk is full."""

    reason = "the disk is full"

    def __init__(self, cause: object = reason):
        super().__init__(cause, RETRY_SECONDS)


class Damaged(Unavailable):
    """A stored document is corrupt. SQLite has no checksums that would reveal this earlier."""

    def __init__(self) -> None:
        super().__init__("a post is damaged")
