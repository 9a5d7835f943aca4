"""Unsaved text from post forms. Each open form writes its own copy."""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from blogapi.clock import earlier
from blogapi.documents import MAX_TITLE, etag_of
from blogapi.posts import storage as posts
from blogapi.storage.engine import Reader, Transaction
from blogapi.storage.errors import DoesNotExist, Rejected
from blogapi.storage.models import Author, DraftCopy

OPEN, CONTINUED, ASIDE, SAVED, DISCARDED = "open", "continued", "aside", "saved", "discarded"
WITH_TEXT = (OPEN, ASIDE, DISCARDED)
TOMBSTONE_PERIOD = timedelta(days=1)  # how long a copy without text answers late and repeated requests
MAX_COPIES, MAX_BYTES = 100, 64 * 1024 * 1024  # limits for all copies with text
MAX_ROWS = 1000
PRUNED = 100  # copies deleted in one transaction


class Copy(NamedTuple):
    """A copy without its text."""

    id: str
    post_id: int | None
    state: str
    number: int
    etag: str  # ETag of the post when its form was opened or, after saving, of the saved version
    next: str = ""  # the copy that continues or replaces it
    saved_at: str = ""
    browser: str = ""
    title: str = ""

    @property
    def place(self) -> str:
        """The copy and its number: the value of `over` in a form that was opened with this copy."""
        return f"{self.id} {self.number}"

    @property
    def instead(self) -> str:
        """The value of `over` in a form whose writer has chosen to replace this copy, which then stays aside."""
        return f"{self.place} instead"


class Sent(NamedTuple):
    """A submitted form: its own copy, and the `place` of the copy with which it was opened."""

    copy_id: str
    number: int
    over: str
    base: str  # the hash of each field as sent
    text: str  # one hash of all fields and the pressed button


_copies = DraftCopy.select(*(getattr(DraftCopy, name) for name in Copy._fields))
_latest = DraftCopy.saved_at.desc(), DraftCopy.id


# Find


def find(reader: Reader, copy_id: str) -> Copy | None:
    """Return a copy."""
    found = reader.row(_copies.where(DraftCopy.id == copy_id)) if copy_id else None
    return Copy._make(found) if found else None


def text_of(reader: Reader, copy_id: str) -> dict[str, str]:
    """Return the fields of a copy as typed or, for a saved copy, `base` and `text` as in Sent."""
    return json.loads(reader.one(DraftCopy.select(DraftCopy.fields).where(DraftCopy.id == copy_id))[0])


def listing(reader: Reader, *states: str, post_id: int | None = None) -> list[Copy]:
    """Return the copies of a post, or of posts that do not exist yet, newest first."""
    is_its = DraftCopy.post_id == post_id if post_id else DraftCopy.post_id.is_null()
    query = _copies.where(is_its, DraftCopy.state.in_(states)).order_by(*_latest).limit(MAX_COPIES)
    return list(map(Copy._make, reader.rows(query)))


def newest(reader: Reader, post_id: int | None) -> Copy | None:
    """Return the copy with which a post's form opens, if any."""
    return next(iter(listing(reader, OPEN, post_id=post_id)), None) if post_id else None


def posts_with_copies(reader: Reader) -> set[int]:
    """Return the ids of posts with unsaved changes."""
    query = DraftCopy.select(DraftCopy.post_id).where(DraftCopy.state == OPEN, DraftCopy.post_id.is_null(False))
    return {post_id for (post_id,) in reader.rows(query)}


def last(reader: Reader, copy_id: str, *passed: str) -> Copy | None:
    """Follow `next` from a copy while its state is CONTINUED or in `passed`; return the last copy."""
    found, seen = find(reader, copy_id), {copy_id}
    while found and found.state in (CONTINUED, *passed) and found.next not in seen:
        seen.add(found.next)
        after = find(reader, found.next)
        if after is None:
            break
        found = after
    return found


# Write


def put(tx: Transaction, new: Copy, fields: Mapping[str, str], over: str) -> tuple[Copy | None, int | None]:
    """Store a copy if its number is higher than the stored one; the number 0 only looks for other copies.

    If another copy has continued the text, return it, and set this one aside until its form names the other as `over`.
    Also return the id of the post that was created from this text, if any.
    """
    mine = find(tx, new.id)
    rival = _rival(tx, mine, new.post_id, over)
    if new.number <= (mine.number if mine else 0):
        is_over = mine.state in (OPEN, SAVED) if mine else rival is None or over in (rival.place, rival.instead)
        other = None if is_over else mine if mine and mine.state == DISCARDED else rival
        return other, mine.post_id if mine and mine.state == SAVED else None
    other = rival if rival and rival.state == OPEN and over not in (rival.place, rival.instead) else None
    if mine and mine.state == SAVED:
        new = new._replace(etag=mine.etag, post_id=mine.post_id)
        fields = {**fields, "base": text_of(tx, mine.id)["base"]}
    elif new.post_id is None and rival and rival.post_id:
        new = new._replace(etag="", post_id=rival.post_id)  # Saving it shows both texts.
        fields = {**fields, "base": ""}
    if other:
        new = new._replace(state=ASIDE, next=other.id)
    else:
        _retire(tx, over, new.id)
    _write(tx, new, fields)
    _bound(tx, new.id)
    return other, new.post_id


def _rival(reader: Reader, mine: Copy | None, post_id: int | None, over: str) -> Copy | None:
    """Return the copy that may have continued the text instead of this one."""
    if mine and mine.state == OPEN:
        return None
    found = last(reader, mine.next if mine else over.partition(" ")[0], ASIDE)
    return found if found and found.state == OPEN else newest(reader, post_id) or found


def _retire(tx: Transaction, over: str, next_id: str) -> None:
    """Mark a copy as replaced by the next one, unless it has changed since or already leads there."""
    old = find(tx, over.partition(" ")[0])
    if old and over in (old.place, old.instead) and old.state in WITH_TEXT and old.next != next_id:
        values = {"state": ASIDE} if over == old.instead else {"state": CONTINUED, "fields": "{}", "bytes": 0}
        tx.execute(DraftCopy.update(next=next_id, **values).where(DraftCopy.id == old.id))


def _write(tx: Transaction, copy: Copy, fields: Mapping[str, str]) -> None:
    """Write a copy with the current time."""
    text = json.dumps(fields, ensure_ascii=False)
    title = fields.get("title", "").replace("\0", "")[:MAX_TITLE]  # PostgreSQL cannot store U+0000.
    size = len(text.encode()) if copy.state in WITH_TEXT else 0
    tx.execute(DraftCopy.delete().where(DraftCopy.id == copy.id))
    tx.execute(DraftCopy.insert(copy._asdict() | {"saved_at": tx.now, "title": title, "bytes": size, "fields": text}))


def _bound(tx: Transaction, newest_id: str) -> None:
    """Delete the oldest copies if there are too many, or if they are too large together."""
    query = DraftCopy.select(DraftCopy.id, DraftCopy.bytes).order_by(DraftCopy.id != newest_id, *_latest)
    count = size = 0
    for row, (copy_id, its_bytes) in enumerate(list(tx.rows(query))):
        count, size = count + bool(its_bytes), size + its_bytes
        if row >= MAX_ROWS or (its_bytes and (count > MAX_COPIES or size > MAX_BYTES)):
            tx.execute(DraftCopy.delete().where(DraftCopy.id == copy_id))


def create(tx: Transaction, sent: Sent, fields: posts.Fields, author: Author) -> tuple[posts.StoredPost, bool]:
    """Create the post of a form, once; return it and whether it is new. Raises Rejected."""
    mine = find(tx, sent.copy_id) or last(tx, sent.over.partition(" ")[0], ASIDE)
    if mine and mine.post_id:
        try:
            return posts.find_to_change(tx, mine.post_id), False
        except DoesNotExist:
            raise Rejected("copy", "the post that it created was deleted") from None
    post = posts.add(tx, fields, author)
    _close(tx, sent, post.id, post.document)
    return post, True


def save(tx: Transaction, post_id: int, changes: Any, author: Author, check: posts.Check, sent: Sent) -> bytes:
    """Save a form to its post and retire its copy; sending it again is a no-op. Raises like `posts.change`."""
    mine = find(tx, sent.copy_id)
    if mine and mine.state == SAVED and text_of(tx, mine.id)["text"] == sent.text:
        return posts.find(tx, post_id)
    document = posts.change(tx, post_id, changes, author, check)
    _close(tx, sent, post_id, document)
    return document


def _close(tx: Transaction, sent: Sent, post_id: int, document: bytes) -> None:
    """Record that a form was saved, and as which version."""
    if sent.copy_id:
        _retire(tx, sent.over, sent.copy_id)
        saved = Copy(sent.copy_id, post_id, SAVED, sent.number, etag_of(document))
        _write(tx, saved, {"base": sent.base, "text": sent.text})


def mark(tx: Transaction, copy_id: str, state: str) -> Copy:
    """Discard a copy, or undo that. Raises DoesNotExist."""
    copy = last(tx, copy_id)
    if copy is None or copy.state not in WITH_TEXT:
        raise DoesNotExist("copy")
    tx.execute(DraftCopy.update(state=state).where(DraftCopy.id == copy.id))
    return copy


def prune(tx: Transaction, days: int) -> int:
    """Delete a batch of the copies saved more than `days` ago; return how many."""
    horizons = earlier(tx.now, timedelta(days=days)), earlier(tx.now, TOMBSTONE_PERIOD)
    is_old = (DraftCopy.saved_at <= horizons[0]) | ((DraftCopy.bytes == 0) & (DraftCopy.saved_at <= horizons[1]))
    old = [copy_id for (copy_id,) in tx.rows(DraftCopy.select(DraftCopy.id).where(is_old).limit(PRUNED))]
    return tx.execute(DraftCopy.delete().where(DraftCopy.id.in_(old))) if old else 0
