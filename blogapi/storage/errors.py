"""Define the errors that storage functions raise."""

RETRY_SECONDS = 1  # a busy database is probably free again after this time


class DoesNotExist(Exception):
    """Nothing has this id or name."""

    def __init__(self, kind: str):
        super().__init__(f"no such {kind}")


class PostDoesNotExist(DoesNotExist):
    """No post has this id or slug."""

    def __init__(self) -> None:
        super().__init__("post")


class Rejected(Exception):
    """The value of a field is valid, but conflicts with stored data or with the current time."""

    def __init__(self, field: str, reason: str):
        super().__init__(f"{field}: {reason}")
        self.field = field


class SlugTaken(Rejected):
    """Another post has this slug now, or had it before."""

    def __init__(self, slug: str, post_id: int, present: str, field: str = "slug"):
        now = "" if slug == present else f": post {post_id} used to have this slug; its slug is now {present}"
        super().__init__(field, f"{'' if field == 'slug' else f'{slug} is '}already taken by another post{now}")


class NotPermitted(Exception):
    """The API key may only write drafts, and the post is not a draft."""


class BadKeyName(ValueError):
    """The name of an API key is invalid, reserved, taken or unknown."""


class NeedsThread(Exception):
    """An operation is too slow for a shared transaction and must run again in a thread (see `Database.write`)."""


class NotUnique(Exception):
    """A row violates a unique constraint."""


class Unavailable(Exception):
    """The database cannot carry out the operation now.

    `retry_after` estimates after how many seconds a retry may succeed; it is None if a retry is not expected to help.
    The database is unchanged, unless `maybe_changed` is true: in that case, a commit failed but may still have taken
    effect.
    """

    reason = ""  # shown to the client unless empty

    def __init__(self, cause: object, retry_after: int | None = None, maybe_changed: bool = False):
        super().__init__(str(cause))
        self.retry_after = retry_after
        self.maybe_changed = maybe_changed


class Busy(Unavailable):
    """A lock or a connection did not become free in time."""

    def __init__(self) -> None:
        super().__init__("database is locked", RETRY_SECONDS)


class DiskFull(Unavailable):
    reason = "the disk is full"

    def __init__(self, cause: object = reason):
        super().__init__(cause, RETRY_SECONDS)


class Damaged(Unavailable):
    """A stored document is corrupt. The damage is noticed only on reading, because SQLite has no checksums."""

    def __init__(self) -> None:
        super().__init__("a post is damaged")
