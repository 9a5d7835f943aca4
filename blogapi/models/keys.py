"""The API keys."""

from contextlib import suppress

from peewee import BlobField, PeeweeException, TextField

from blogapi.db import database
from blogapi.models.base import BaseModel, given, text_of


class ApiKey(BaseModel):
    """A key that may use the API, known by its SHA-256 only."""

    digest = BlobField(primary_key=True)
    name = TextField(unique=True)
    last_four = TextField()
    created_at = TextField()
    last_used_on = TextField(null=True)

    class Meta:
        without_rowid = True

    @classmethod
    def find(cls, digest: bytes) -> tuple[bytes, str | None] | None:
        """Return the digest of the key and the day of its last use, or None."""
        return database.row(FIND, {"digest": digest})

    @classmethod
    def note_use(cls, digest: bytes, day: str) -> None:
        """Remember the day of the last use, where that can be had at once."""
        with suppress(PeeweeException):
            database.execute_sql(NOTE_USE, {"digest": digest, "day": day})

    @classmethod
    def listing(cls) -> list["ApiKey"]:
        """Return all keys by name."""
        return list(cls.select().order_by(cls.name))

    @classmethod
    def add(cls, name: str, digest: bytes, last_four: str, now: str) -> None:
        """Add a key; raise ValueError if the name is taken or no name. To be called in a transaction."""
        if not name.strip() or not name.isprintable() or len(name) > 100:
            raise ValueError("the name of a key must have 1 to 100 characters, in one line, one of them visible")
        if cls.select().where(cls.name == name).exists():
            raise ValueError(f"there is a key called {name!r} already")
        cls.insert(digest=digest, name=name, last_four=last_four, created_at=now).execute()

    @classmethod
    def remove(cls, name: str) -> None:
        """Remove a key; raise ValueError if there is none of this name. To be called in a transaction."""
        if not cls.delete().where(cls.name == name).execute():
            raise ValueError(f"there is no key called {name!r}")

    @classmethod
    def renew(cls, name: str, digest: bytes, last_four: str, now: str) -> None:
        """Put a new key in place of the one called `name`; raise ValueError if there is none.

        To be called in a transaction.
        """
        cls.remove(name)
        cls.add(name, digest, last_four, now)


FIND = text_of(ApiKey.select(ApiKey.digest, ApiKey.last_used_on).where(ApiKey.digest == given("digest")))
NOTE_USE = text_of(ApiKey.update({ApiKey.last_used_on: given("day")}).where(ApiKey.digest == given("digest")))
