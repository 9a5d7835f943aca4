"""The errors that the functions of the storage raise."""

RETRY_SECONDS = 1  # until a busy database is probably free


class NotFound(Exception):
    """It does not exist."""

    def __init__(self, kind: str):
        super().__init__(f"no such {kind}")


class Conflict(Exception):
    """A valid value conflicts with what is stored."""

    field: str
    reason: str

    def __init__(self, reason: str | None = None):
        super().__init__(f"{self.field}: {reason or self.reason}")


class SlugTaken(Conflict):
    """Another post has the slug."""

    field, reason = "slug", "already taken by another post"


class TagExists(Conflict):
    """A tag cannot be renamed onto another without merging the two."""

    field, reason = "name", 'another tag has this name; "merge": true merges the two'


class PublicationTime(Conflict):
    """A post cannot be published at this time."""

    field = "published_at"


class IdempotencyKeyUsed(Conflict):
    """An Idempotency-Key, or a form, was used for another request, or what it created is deleted."""

    field = "Idempotency-Key"


class TooManyWebhooks(Conflict):
    """No more webhooks are allowed."""

    field = "webhooks"


class WebhookInactive(Conflict):
    """A webhook that is off is sent nothing."""

    field, reason = "active", "is false, and nothing is sent; set it to true first"


class KeyName(ValueError):
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

    def __init__(self, cause: object, retry_after: int | None = None, maybe_changed: bool = False):
        super().__init__(str(cause))
        self.retry_after = retry_after
        self.maybe_changed = maybe_changed


class Busy(Unavailable):
    """Another program holds the lock of the writer."""

    def __init__(self) -> None:
        super().__init__("database is locked", RETRY_SECONDS)


class Damaged(Unavailable):
    """A document cannot be read: SQLite has no checksums."""

    def __init__(self) -> None:
        super().__init__("a post is damaged")
