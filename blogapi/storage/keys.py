"""Store, find, replace and revoke API keys."""

import hashlib
import re
import secrets
from typing import NamedTuple

from blogapi.storage.engine import Compiled, Hits, Placeholder, Reader, Transaction
from blogapi.storage.errors import BadKeyName
from blogapi.storage.models import AUTHORS, DRAFTS_ONLY, FULL, PUBLISHED_ONLY, READ_ONLY, SCOPES, ApiKey, Idempotency

PREFIX = "blog_"
KEY_PATTERN = f"{PREFIX}[A-Za-z0-9_-]{{43}}"  # 256 bits in URL-safe base64
KEY_LENGTH = 48  # characters
MAX_LENGTH = 100  # of a name, in characters
WINDOW_SECONDS = 60  # length of a rate-limit window
READ_SCOPES = (FULL, READ_ONLY, DRAFTS_ONLY)  # scopes that allow operations which reveal unpublished posts
WRITE_SCOPES = (FULL, DRAFTS_ONLY)  # scopes that allow operations which write posts; see also `effects.check_permitted`
# Descriptions of the operations that each set of scopes allows
PERMISSIONS = {
    SCOPES: "read {posts} and their tags",
    READ_SCOPES: "read their history, the trash, images and metrics",
    WRITE_SCOPES: "create, change, trash and restore drafts, upload images, and propose changes to any post",
    (FULL,): "publish, change tags, delete for good, manage webhooks, and do everything else",
}


class KnownKey(NamedTuple):
    """A stored key. The secret itself is not stored."""

    name: str
    last_four: str
    created_at: str
    last_used_on: str | None
    scope: str
    digest: bytes
    hits: Hits | None = None  # set by `authenticate` if the engine counts requests


def may(scope: str) -> str:
    """Describe what a key with this scope may do."""
    allowed = "; ".join(words for scopes, words in PERMISSIONS.items() if scope in scopes)
    return allowed.format(posts="published posts" if scope == PUBLISHED_ONLY else "posts")


def new_key() -> str:
    return PREFIX + secrets.token_urlsafe(32)


def digest_of(text: str) -> bytes:
    """Return the SHA-256 of a string, such as a key. Keys are random, so a salt or a slow hash would not help."""
    return hashlib.sha256(text.encode()).digest()


def authenticate(reader: Reader, digest: bytes) -> KnownKey | None:
    """Return the key with this SHA-256, if any."""
    row = reader.row(reader.engine.key_query or SELECT_KEY, digest=digest)
    if row is None:
        return None
    stored, hits = row[: len(KEY_FIELDS)], row[len(KEY_FIELDS) :]
    return KnownKey._make((*stored, Hits._make(hits) if hits else None))


KEY_FIELDS = KnownKey._fields[:-1]  # all except `hits`
KEY_COLUMNS = [getattr(ApiKey, name) for name in KEY_FIELDS]
SELECT_KEY = Compiled(ApiKey.select(*KEY_COLUMNS).where(ApiKey.digest == Placeholder("digest")))


def record_use(tx: Transaction, digest: bytes) -> None:
    tx.execute(ApiKey.update(last_used_on=tx.now[:10]).where(ApiKey.digest == digest))


def listing(reader: Reader, limit: int | None = None, after: str = "") -> list[KnownKey]:
    """Return at most `limit` keys, sorted by name, starting after the name `after`."""
    query = ApiKey.select(*KEY_COLUMNS).where(ApiKey.name > after).order_by(ApiKey.name).limit(limit)
    return [KnownKey(*row) for row in reader.rows(query)]


def add(tx: Transaction, name: str, key: str, scope: str = FULL) -> None:
    """Store a key under a name. Raises BadKeyName if the name is invalid or taken."""
    check_free(tx, name)
    tx.execute(ApiKey.insert(name=name, digest=digest_of(key), last_four=key[-4:], created_at=tx.now, scope=scope))


def regenerate(tx: Transaction, name: str, key: str) -> None:
    """Replace the key with this name, and keep its scope. Raises BadKeyName if no key has this name."""
    check_known(tx, name)
    new = {"digest": digest_of(key), "last_four": key[-4:], "created_at": tx.now, "last_used_on": None}
    tx.execute(ApiKey.update(new).where(ApiKey.name == name))


def revoke(tx: Transaction, name: str) -> None:
    """Remove the key with this name, and its Idempotency-Keys. Raises BadKeyName if no key has this name.

    If the Idempotency-Keys were kept, a new key of the same name could receive responses to this key's requests.
    """
    check_known(tx, name)
    tx.execute(ApiKey.delete().where(ApiKey.name == name))
    tx.execute(Idempotency.delete().where(Idempotency.digest == digest_of(name)))


def check_free(reader: Reader, name: str) -> None:
    """Raise BadKeyName if the name is invalid or taken."""
    check_not_secret(name)
    if not name.strip() or not name.isprintable() or len(name) > MAX_LENGTH:
        raise BadKeyName(f"the name of a key must have 1 to {MAX_LENGTH} characters in one line, one of them visible")
    if name in AUTHORS:
        raise BadKeyName(f"{name!r} is reserved for changes that no key made; choose another name")
    if _is_known(reader, name):
        raise BadKeyName(f"a key called {name!r} already exists")


def check_known(reader: Reader, name: str) -> None:
    """Raise BadKeyName if no key has this name."""
    check_not_secret(name)
    if not _is_known(reader, name):
        raise BadKeyName(f"there is no key called {name!r}")


def check_not_secret(name: str) -> None:
    """Raise BadKeyName if the name contains an API key. The message does not repeat the key."""
    if re.search(KEY_PATTERN, name):
        raise BadKeyName("this is an API key, not the name of one; `blogapi keys list` shows the names")


def _is_known(reader: Reader, name: str) -> bool:
    return reader.row(ApiKey.select(ApiKey.name).where(ApiKey.name == name)) is not None
