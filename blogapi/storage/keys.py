"""The API keys."""

import hashlib
import secrets
from collections.abc import Iterator
from typing import NamedTuple

from blogapi.storage.errors import KeyName
from blogapi.storage.models import FULL, ApiKey
from blogapi.storage.query import Param, Prepared
from blogapi.storage.transaction import Reader, Transaction

PREFIX = "blog_"
MAX_NAME_LENGTH = 100


class KnownKey(NamedTuple):
    """What is known of a key, which is stored nowhere itself."""

    name: str
    last_four: str
    created_at: str
    last_used_on: str | None
    scope: str


def new_key() -> str:
    """Make a key: the prefix and 256 random bits in URL-safe base64, 43 characters."""
    return PREFIX + secrets.token_urlsafe(32)


def digest_of(key: str) -> bytes:
    """Return the SHA-256 by which a key is known. Its randomness makes salt and slowness needless."""
    return hashlib.sha256(key.encode()).digest()


def find(reader: Reader, digest: bytes) -> KnownKey | None:
    """Return the key with this SHA-256, if it is in force."""
    found = reader.row(_key, digest=digest)
    return found and KnownKey._make(found)


_columns = (ApiKey.name, ApiKey.last_four, ApiKey.created_at, ApiKey.last_used_on, ApiKey.scope)
_key = Prepared(ApiKey.select(*_columns).where(ApiKey.digest == Param("digest")))


def record_use(tx: Transaction, digest: bytes) -> None:
    """Remember today as the day of the last use."""
    tx.execute(ApiKey.update(last_used_on=tx.now[:10]).where(ApiKey.digest == digest))


def listing(reader: Reader) -> Iterator[KnownKey]:
    """Yield all keys by name."""
    return map(KnownKey._make, reader.rows(ApiKey.select(*_columns).order_by(ApiKey.name)))


def page(reader: Reader, limit: int, after: str = "") -> list[tuple[bytes, KnownKey]]:
    """Return the keys whose names follow `after`, by these, each with its SHA-256; at most `limit`."""
    query = ApiKey.select(ApiKey.digest, *_columns).where(ApiKey.name > after).order_by(ApiKey.name).limit(limit)
    return [(digest, KnownKey._make(columns)) for digest, *columns in reader.rows(query)]


def add(tx: Transaction, name: str, key: str, scope: str = FULL) -> None:
    """Put a key in force; raise KeyName as `check_free` does."""
    check_free(tx, name)
    tx.execute(ApiKey.insert(name=name, digest=digest_of(key), last_four=key[-4:], created_at=tx.now, scope=scope))


def replace(tx: Transaction, name: str, key: str) -> None:
    """Put another key in place of the one called `name`, which may do the same; raise KeyName if there is none."""
    check_known(tx, name)
    new = {"digest": digest_of(key), "last_four": key[-4:], "created_at": tx.now, "last_used_on": None}
    tx.execute(ApiKey.update(new).where(ApiKey.name == name))


def remove(tx: Transaction, name: str) -> None:
    """Remove a key; raise KeyName if there is none of this name."""
    check_known(tx, name)
    tx.execute(ApiKey.delete().where(ApiKey.name == name))


def check_free(reader: Reader, name: str) -> None:
    """Raise KeyName if the name is taken or no name."""
    if not name.strip() or not name.isprintable() or len(name) > MAX_NAME_LENGTH:
        raise KeyName(
            f"the name of a key must have 1 to {MAX_NAME_LENGTH} characters, in one line, one of them visible"
        )
    if _is_known(reader, name):
        raise KeyName(f"there is a key called {name!r} already")


def check_known(reader: Reader, name: str) -> None:
    """Raise KeyName if there is no key of this name."""
    if not _is_known(reader, name):
        raise KeyName(f"there is no key called {name!r}")


def _is_known(reader: Reader, name: str) -> bool:
    return reader.row(ApiKey.select(ApiKey.name).where(ApiKey.name == name)) is not None
