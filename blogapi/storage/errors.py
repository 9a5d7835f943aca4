"""The errors that the functions of the storage raise."""

RETRY_SECONDS = 1  # until a busy database is probably free


class NotFound(Exception):
    """Nothing of this kind has the id or name."""

    def __init__(self, kind: str):
        super().__init__(f"no such {kind}")
        self.kind = kind


class PostNotFound(NotFound):
    """No post has the id or slug."""

    def __init__(self) -> None:
        super().__init__("post")


class Rejected(Exception):
    """A valid value of a field does not fit what is stored, or the time."""

    def __init__(self, field: str, reason: str):
        super().__init__(f"{field}: {reason}")
        self.field = field


class SlugTaken(Rejected):
    """Another post has the slug, or had it."""

    def __init__(self, slug: str, post_id: int, present: str, field: str = "slug"):
        now = "" if slug == present else f": {post_id} had it before, and is {present} now"
        super().__init__(field, f"{'' if field == 'slug' else f'{slug} is '}already taken by another post{now}")


class NotPermitted(Exception):
    """The key may write drafts only, and this is none."""


class InvalidKeyName(ValueError):
    """Invalid or unknown key name."""


class NeedsThread(Exception):
    """Too slow for a shared transaction; run it in a thread."""


class NotUnique(Exception):
    """A unique constraint refuses a row."""


class Unavailable(Exception):
    """The database cannot do this now.

    `retry_after` says in how many seconds it probably can. Nothing was changed, unless `maybe_changed`: then a commit
    failed, and its result is unknown.
    """

    reason = ""  # for the client, if it is known

    def __init__(self, cause: object, retry_after: int | None = None, maybe_changed: bool = False):
        super().__init__(str(cause))
        self.retry_after = retry_after
        self.maybe_changed = maybe_changed


class Busy(Unavailable):
    """A lock or a connection did not become free in time."""

    def __init__(self) -> None:
        super().__init__("database is locked", RETRY_SECONDS)


class DiskFull(Unavailable):
    """The disk has no room for a change."""

    reason = "the disk is full"

    def __init__(self, cause: object = reason):
        super().__init__(cause, RETRY_SECONDS)


class Damaged(Unavailable):
    """A document cannot be read: SQLite has no checksums."""

    def __init__(self) -> None:
        super().__init__("a post is damaged")
