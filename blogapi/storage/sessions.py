"""The sessions of the owner's page, and the links that open them."""

import secrets
from datetime import timedelta

from blogapi.clock import later
from blogapi.storage.engine import Reader, Transaction
from blogapi.storage.errors import NotFound
from blogapi.storage.keys import digest_of
from blogapi.storage.models import Session
from blogapi.storage.query import Param, Prepared

LINK, SESSION = "link", "session"
PERIODS = {LINK: timedelta(minutes=10), SESSION: timedelta(hours=12)}
PREFIX = "blog_"  # by which the log knows what to mask


def add_link(tx: Transaction) -> str:
    """Make a link; return its token."""
    return _add(tx, LINK)


def check_link(reader: Reader, token: str) -> None:
    """Raise NotFound if there is no link with this token, or no more."""
    if not is_in_force(reader, LINK, token):
        raise NotFound("link: it works once, for ten minutes; “blogapi settings” prints another")


def open_session(tx: Transaction, link: str) -> str:
    """Make a session by the token of a link, which is used up; return its own. Raises NotFound as `check_link` does."""
    check_link(tx, link)
    end(tx, link)
    return _add(tx, SESSION)


def is_in_force(reader: Reader, kind: str, token: str) -> bool:
    """Return whether there is a link or a session with this token."""
    return reader.row(_in_force, digest=digest_of(token), kind=kind, now=reader.now) is not None


_in_force = Prepared(
    Session.select(Session.kind).where(
        Session.digest == Param("digest"), Session.kind == Param("kind"), Session.ends_at > Param("now")
    )
)


def end(tx: Transaction, token: str) -> None:
    """End a session, or a link."""
    tx.execute(Session.delete().where(Session.digest == digest_of(token)))


def end_all(tx: Transaction) -> None:
    """End all sessions and links."""
    tx.execute(Session.delete())


def _add(tx: Transaction, kind: str) -> str:
    tx.execute(Session.delete().where(Session.ends_at <= tx.now))
    token = f"{PREFIX}{kind}_{secrets.token_urlsafe(32)}"
    tx.execute(Session.insert(digest=digest_of(token), kind=kind, ends_at=later(tx.now, PERIODS[kind])))
    return token
