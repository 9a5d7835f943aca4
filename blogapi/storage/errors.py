"""What can go wrong with what is kept. Whoever calls a function of this package meets these errors and no others."""

RETRY_SECONDS = 1  # after which a database that is busy can be expected to be so no longer


class NotFound(Exception):
    """There is no such thing."""

    def __init__(self, kind: str):
        super().__init__(f"no such {kind}")


class Conflict(Exception):
    """The value of a field is valid by itself, but does not fit what is there."""

    field: str
    reason: str

    def __init__(self, reason: str | None = None):
        super().__init__(f"{self.field}: {reason or self.reason}")


class SlugTaken(Conflict):
    """Another post has the slug."""

    field, reason = "slug", "already taken by another post"


class TagExists(Conflict):
    """A tag cannot be renamed onto another without merging the two."""

    field, reason = "name", 'there is such a tag already; "merge": true puts the two together'


class PublicationTime(Conflict):
    """A post cannot be published at this time."""

    field = "published_at"


class IdempotencyKeyUsed(Conflict):
    """An Idempotency-Key was used for something else, or for what is gone."""

    field = "Idempotency-Key"


class TooManyWebhooks(Conflict):
    """There are as many webhooks as there can be."""

    field = "webhooks"


class WebhookInactive(Conflict):
    """Nothing is sent to a webhook that is turned off."""

    field, reason = "active", "is false, and nothing is sent; set it to true first"


class KeyName(ValueError):
    """An API key cannot be called so, or none is."""


class NeedsThread(Exception):
    """Too slow for a shared transaction; run it in a thread."""


class NotUnique(Exception):
    """A constraint of the database refuses a second row of this kind."""


class Unavailable(Exception):
    """The database cannot do this now.

    `retry_after` is in how many seconds it can be expected to, if at all. Nothing was changed, unless
    `maybe_changed`: then the end of a transaction failed, and what became of it is not known.
    """

    def __init__(self, cause: object, retry_after: int | None = None, maybe_changed: bool = False):
        super().__init__(str(cause))
        self.retry_after = retry_after
        self.maybe_changed = maybe_changed


class Busy(Unavailable):
    """Another program keeps the lock that writing takes."""

    def __init__(self) -> None:
        super().__init__("database is locked", RETRY_SECONDS)


class Damaged(Unavailable):
    """A document is none any more: SQLite has no checksums."""

    def __init__(self) -> None:
        super().__init__("a post is damaged")
