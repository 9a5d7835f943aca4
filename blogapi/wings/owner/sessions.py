"""The tokens of the owner's page: sessions, the links that open them, and links to shared previews."""

import secrets
from datetime import timedelta
from typing import NamedTuple

from peewee import fn

from blogapi import documents
from blogapi.clock import later
from blogapi.posts import storage as posts
from blogapi.storage.engine import Reader, Transaction
from blogapi.storage.errors import DoesNotExist, Rejected
from blogapi.storage.keys import PREFIX, digest_of
from blogapi.storage.models import DOCUMENT, Post, model

LINK, SESSION = "link", "session"
MAX_BROWSER = 200  # maximum length of a stored User-Agent (in characters)
# Names by a word in the User-Agent. The first match wins, because many User-Agents also contain words of later entries.
BROWSERS = {"Edg": "Edge", "OPR/": "Opera", "Firefox/": "Firefox", "FxiOS/": "Firefox", "CriOS/": "Chrome"}
BROWSERS |= {"Chrome/": "Chrome", "Safari/": "Safari", "curl/": "curl"}
SYSTEMS = {"Android": "Android", "iPhone": "iPhone", "iPad": "iPad", "Windows": "Windows", "Mac OS X": "Mac"}
SYSTEMS |= {"CrOS": "ChromeOS", "Linux": "Linux"}
MAX_SESSIONS = 100  # maximum number of sessions in the list
PERIODS = {LINK: timedelta(minutes=10), SESSION: timedelta(hours=12)}
STAY_DAYS = 30  # the `days` of a session whose opener chooses to stay signed in
PREVIEW_PERIOD = timedelta(days=7)
MAX_PREVIEWS = 100  # maximum number of links to previews, so that the HTML of the shared posts fits in memory

OwnerSession, PreviewLink = model("owner_session"), model("preview_link")


class KnownSession(NamedTuple):
    """A session, or a link that opens one. Only the digest of its token is stored."""

    digest: bytes
    ends_at: str
    days: int
    opened_at: str
    used_at: str
    browser: str


def add(tx: Transaction, kind: str, days: int = 0, browser: str = "") -> str:
    """Create a session, or a link that opens one; return its token.

    A session ends `days` after its last use or, if `days` is 0, twelve hours after it was opened.
    """
    tx.execute(OwnerSession.delete().where(OwnerSession.ends_at <= tx.now))
    token = f"{PREFIX}{kind}_{secrets.token_urlsafe(32)}"
    period = timedelta(days=days) if kind == SESSION and days else PERIODS[kind]
    times = {"ends_at": later(tx.now, period), "opened_at": tx.now, "used_at": tx.now}
    row = {"digest": digest_of(token), "kind": kind, "days": days, "browser": browser[:MAX_BROWSER]} | times
    tx.execute(OwnerSession.insert(row))
    return token


def check_link(reader: Reader, token: str) -> int:
    """Return the `days` of the session that a link opens. Raises DoesNotExist if the link is not valid."""
    link = find(reader, LINK, token)
    if link is None:
        raise DoesNotExist("link: it was used before, or is older than ten minutes")
    return link.days


def open_by_link(tx: Transaction, link: str, days: int, browser: str) -> str:
    """Open a session with a link, which can be used only once; return the session's token. Raises DoesNotExist."""
    check_link(tx, link)
    end(tx, digest_of(link))
    return add(tx, SESSION, days, browser)


def find(reader: Reader, kind: str, token: str) -> KnownSession | None:
    """Return the session or link with this token, if it is valid."""
    has_token = (OwnerSession.digest == digest_of(token)) & (OwnerSession.kind == kind)
    row = reader.row(_sessions.where(has_token, OwnerSession.ends_at > reader.now))
    return KnownSession._make(row) if row else None


def listing(reader: Reader) -> list[KnownSession]:
    """Return the valid sessions, most recently used first."""
    is_open = (OwnerSession.kind == SESSION) & (OwnerSession.ends_at > reader.now)
    query = _sessions.where(is_open).order_by(OwnerSession.used_at.desc(), OwnerSession.digest)
    return list(map(KnownSession._make, reader.rows(query.limit(MAX_SESSIONS))))


_sessions = OwnerSession.select(*(getattr(OwnerSession, name) for name in KnownSession._fields))


def use(tx: Transaction, session: KnownSession) -> None:
    """Record the use of a session, and extend the session if it was opened with `days`."""
    ends_at = later(tx.now, timedelta(days=session.days)) if session.days else session.ends_at
    used = OwnerSession.update(used_at=tx.now, ends_at=ends_at)
    tx.execute(used.where(OwnerSession.digest == session.digest))


def end(tx: Transaction, digest: bytes) -> None:
    """End a session, or revoke a link that opens one."""
    tx.execute(OwnerSession.delete().where(OwnerSession.digest == digest))


def end_all(tx: Transaction) -> None:
    tx.execute(OwnerSession.delete())


def share(tx: Transaction, post_id: int) -> str:
    """Create a link to a post's preview; return its token. Raises Rejected, or DoesNotExist if the post is missing."""
    posts.id_of(tx, post_id)
    tx.execute(PreviewLink.delete().where(PreviewLink.ends_at <= tx.now))
    if tx.one(PreviewLink.select(fn.COUNT(PreviewLink.digest)))[0] >= MAX_PREVIEWS:
        raise Rejected("share", f"there are {MAX_PREVIEWS} previews already; withdraw one, or wait until one expires")
    token = f"{PREFIX}preview_{secrets.token_urlsafe(16)}"
    times = {"created_at": tx.now, "ends_at": later(tx.now, PREVIEW_PERIOD)}
    tx.execute(PreviewLink.insert({"digest": digest_of(token), "post_id": post_id} | times))
    return token


def shared_post(reader: Reader, token: str) -> bytes:
    """Return the document of the post that a link shares. Raises DoesNotExist."""
    is_valid = (PreviewLink.digest == digest_of(token)) & (PreviewLink.ends_at > reader.now)
    query = Post.select(DOCUMENT).join(PreviewLink, on=Post.id == PreviewLink.post_id).where(is_valid)
    return documents.intact(*reader.get("preview: it has ended, or its URL is incomplete", query))


def previews(reader: Reader, post_id: int) -> list[tuple[bytes, str, str]]:
    """Return the digest, creation time and end time of each valid link to a post's preview, oldest first."""
    is_valid = (PreviewLink.post_id == post_id) & (PreviewLink.ends_at > reader.now)
    query = PreviewLink.select(PreviewLink.digest, PreviewLink.created_at, PreviewLink.ends_at).where(is_valid)
    return list(reader.rows(query.order_by(PreviewLink.created_at, PreviewLink.digest)))


def withdraw(tx: Transaction, post_id: int, digest: bytes) -> None:
    tx.execute(PreviewLink.delete().where(PreviewLink.post_id == post_id, PreviewLink.digest == digest))


def browser_name(user_agent: str) -> str:
    """Return the name of a browser and its system, such as "Firefox on Android", from its User-Agent."""
    names = [next((known[sign] for sign in known if sign in user_agent), "") for known in (BROWSERS, SYSTEMS)]
    return " on ".join(filter(None, names)) or user_agent[:60] or "An unknown browser"
