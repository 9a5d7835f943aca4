"""The sessions of the owner's page, and the links that open them."""

import secrets
from datetime import timedelta
from typing import NamedTuple

from blogapi.clock import later
from blogapi.storage.engine import Reader, Transaction
from blogapi.storage.errors import DoesNotExist
from blogapi.storage.keys import PREFIX, digest_of
from blogapi.storage.models import model

LINK, SESSION = "link", "session"
MAX_BROWSER = 200  # characters
MAX_SESSIONS = 100  # shown
PERIODS = {LINK: timedelta(minutes=10), SESSION: timedelta(hours=12)}


OwnerSession = model("owner_session")


class KnownSession(NamedTuple):
    """A session without its token, which is not stored."""

    digest: bytes
    ends_at: str
    days: int
    opened_at: str
    used_at: str
    browser: str


def add(tx: Transaction, kind: str, days: int = 0, browser: str = "") -> str:
    """Create a session, or a link that opens one; return its token. A session lasts `days` after each use."""
    tx.execute(OwnerSession.delete().where(OwnerSession.ends_at <= tx.now))
    token = f"{PREFIX}{kind}_{secrets.token_urlsafe(32)}"
    period = timedelta(days=days) if kind == SESSION and days else PERIODS[kind]
    times = {"ends_at": later(tx.now, period), "opened_at": tx.now, "used_at": tx.now}
    row = {"digest": digest_of(token), "kind": kind, "days": days, "browser": browser[:MAX_BROWSER]} | times
    tx.execute(OwnerSession.insert(row))
    return token


def check_link(reader: Reader, token: str) -> int:
    """Return how many days the session of a link will last. Raises DoesNotExist unless a link has this token."""
    found = find(reader, LINK, token)
    if found is None:
        raise DoesNotExist("link: it works once, for ten minutes; “blogapi login” prints another")
    return found.days


def open_by_link(tx: Transaction, link: str, browser: str = "") -> str:
    """Open a session with the token of a link, which works once; return the session's token. Raises DoesNotExist."""
    days = check_link(tx, link)
    end(tx, digest_of(link))
    return add(tx, SESSION, days, browser)


def find(reader: Reader, kind: str, token: str) -> KnownSession | None:
    """Return the session or link that has this token, if it is valid."""
    has_token = (OwnerSession.digest == digest_of(token)) & (OwnerSession.kind == kind)
    found = reader.row(_sessions.where(has_token, OwnerSession.ends_at > reader.now))
    return KnownSession._make(found) if found else None


def listing(reader: Reader) -> list[KnownSession]:
    """Return the valid sessions, most recently used first."""
    is_open = (OwnerSession.kind == SESSION) & (OwnerSession.ends_at > reader.now)
    query = _sessions.where(is_open).order_by(OwnerSession.used_at.desc(), OwnerSession.digest)
    return list(map(KnownSession._make, reader.rows(query.limit(MAX_SESSIONS))))


_sessions = OwnerSession.select(*(getattr(OwnerSession, name) for name in KnownSession._fields))


def use(tx: Transaction, session: KnownSession) -> None:
    """Record the use of a session. This extends a session that lasts for days."""
    ends_at = later(tx.now, timedelta(days=session.days)) if session.days else session.ends_at
    used = OwnerSession.update(used_at=tx.now, ends_at=ends_at)
    tx.execute(used.where(OwnerSession.digest == session.digest))


def end(tx: Transaction, digest: bytes) -> None:
    """End a session, or a link."""
    tx.execute(OwnerSession.delete().where(OwnerSession.digest == digest))


def end_all(tx: Transaction) -> None:
    """End all sessions and links."""
    tx.execute(OwnerSession.delete())
