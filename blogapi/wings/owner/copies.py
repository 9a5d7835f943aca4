"""Unsaved drafts: the server stores what a writer types into a post's form. Only saving the form changes the post.

A draft is the unsaved text of a new or existing post, and consists of copies. Each open form writes one copy, and
increments the copy's `number` with each change. A form opens with the current copy; the history lists the others.

1. A laptop's form Qx7 writes "Rye" as text "Qx7 1" and "Rye bread" as "Qx7 2", its copy's text at numbers 1 and 2.
2. A phone's form Ab1 opens with this text, and writes "Ab1 1" with `previous` "Qx7 2": its copy is now the current one.
3. The laptop writes "Qx7 3" without knowing of "Ab1 1". Its copy is kept in CONFLICT, and its form gets a 409.

In `previous`, a form sends the id of the text that it was opened with or, followed by "replaced", of one that its
writer has chosen to replace. Each write compares `previous` with the current copy:

| request                                | no current text | current: its own or `previous` | current: another's text |
| -------------------------------------- | --------------- | ------------------------------ | ----------------------- |
| text with a number seen before         | no-op           | no-op                          | no-op                   |
| text                                   | becomes current | replaces it                    | is in CONFLICT: 409     |
| text omitting some of the current text | becomes current | the current text goes ASIDE    | is in CONFLICT: 409     |
| text that is a little shorter          | becomes current | the current text is LONGER     | is in CONFLICT: 409     |
| text chosen to replace another         | becomes current | the other goes ASIDE           | is in CONFLICT: 409     |
| text that the post already has         | SAVED           | SAVED replaces it              | is in CONFLICT: 409     |
| save                                   | SAVED           | SAVED replaces it              | SAVED; other: CONFLICT  |
| is there newer text?                   | if saved since  | no                             | yes: 409                |
| discard                                | no-op           | it is DISCARDED                | it is DISCARDED         |
| use instead of the current text        | becomes current | the other goes ASIDE           | no-op                   |
| undo a discard                         | becomes current | becomes current                | the other: CONFLICT     |

A draft's form leads to a copy in CONFLICT until the writer chooses a text: that becomes current, the other goes ASIDE.
The server deletes a copy only if it is old or exceeds the limits, or if a form that shows it has continued or saved it.

In the current copy, `seen` maps each form whose text it includes or replaces to that form's last number. With it, the
server recognizes late requests, and forms that can load the newer text because they add nothing to it. In a copy that
is ASIDE or LONGER, `seen` is the text that replaced it. A save empties it in the former, and deletes the latter.
"""

import json
import secrets
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple

from peewee import fn

from blogapi import documents
from blogapi.clock import earlier
from blogapi.documents import etag_of
from blogapi.posts import idempotency
from blogapi.posts import storage as posts
from blogapi.posts.storage import Check
from blogapi.storage.engine import Compiled, Placeholder, Reader, Transaction
from blogapi.storage.errors import DoesNotExist
from blogapi.storage.models import Author, DraftCopy
from blogapi.text import is_part_of, lacks_passage
from blogapi.wings.owner.fields import BEGINNING, Form, as_typed, base_of, differing, follow

OPEN, SAVED, DISCARDED = "open", "saved", "discarded"  # The text of a SAVED copy is in the post.
FORMER = ASIDE, CONFLICT = "aside", "conflict"
LONGER = "longer"  # the text that a form has shortened, by less than a passage so far
MAX_EARLIER = 2  # compare a text with at most this many texts in ASIDE, because other writes wait for the comparison
WITH_TEXT = (OPEN, *FORMER, DISCARDED)
UNTOUCHED, RIVAL = "untouched", "rival"  # the newer text includes the form's text, or does not
SAVED_PERIOD = timedelta(days=1)  # SAVED copies are kept this long to recognize late and repeated requests
MAX_COPIES, MAX_BYTES = 100, 64 * 1024 * 1024  # limits on the number and the total size of copies with text
MAX_ROWS, MAX_SEEN = 1000, 100  # limits on the number of all copies, and of forms in `seen`
COMPARING_SECONDS = 0.5  # time limit on comparing the copies, or versions, on a page
WRITTEN = [name for name, field in documents.FIELDS.items() if field.kind in ("line", "text")]
PRUNED = 100  # at most this many copies are deleted in one transaction


class Copy(NamedTuple):
    """A copy without its fields."""

    id: str  # the id of the form that writes it
    number: int
    draft: str  # the id of the post or, for a new one, an id chosen by the page
    post_id: int | None = None
    state: str = OPEN
    etag: str = ""  # the post's entity tag when the form was opened or last saved
    seen: str = "{}"  # JSON: the last number of each form
    saved_at: str = ""
    browser: str = ""
    title: str = ""

    @property
    def text_id(self) -> str:
        return f"{self.id} {self.number}"

    def includes(self, text_id: str) -> bool:
        """Return whether this copy includes or replaces a text. A form without text has the id ""."""
        form, number, *_ = (text_id or " 0").split(" ")
        return int(number) <= json.loads(self.seen).get(form, 0)


class Sent(NamedTuple):
    """The content of a form."""

    copy: Copy
    fields: Mapping[str, str]  # as typed; when saving, the hash of each field in `base` and of all fields in `text`
    previous: str = ""  # the id of the text that the form was opened with, or replaces
    replaces: bool = False  # whether the writer has chosen to replace the previous text


_copies = DraftCopy.select(*(getattr(DraftCopy, name) for name in Copy._fields))
_latest = DraftCopy.saved_at.desc(), DraftCopy.id
_is_current = (DraftCopy.draft == Placeholder("draft")) & DraftCopy.state.not_in((*FORMER, LONGER))
SELECT = Compiled(_copies.where(DraftCopy.id == Placeholder("id")))
SELECT_CURRENT = Compiled(_copies.where(_is_current).order_by(DraftCopy.state == DISCARDED, *_latest).limit(1))


def find(reader: Reader, text_id: str, *states: str) -> Copy | None:
    """Return the copy of a form, given its id or a text id, if the copy has one of `states` (by default, any)."""
    row = reader.row(SELECT, id=text_id.partition(" ")[0])
    copy = Copy._make(row) if row else None
    return copy if copy and (not states or copy.state in states) else None


def with_text(reader: Reader, copy_id: str) -> Copy:
    """Return a copy, given its id or a text id. Raises DoesNotExist if there is none or its fields are not stored."""
    query = _copies.where(DraftCopy.id == copy_id.partition(" ")[0], DraftCopy.state.in_(WITH_TEXT))
    return Copy._make(reader.get("copy", query))


def text_of(reader: Reader, copy_id: str) -> dict[str, str]:
    """Return the fields of a copy as `Sent` describes them."""
    return json.loads(reader.one(DraftCopy.select(DraftCopy.fields).where(DraftCopy.id == copy_id))[0])


def post_of(reader: Reader, draft: str) -> int | None:
    """Return the id of a draft's post, or None if no form has created it yet."""
    created = None if draft.isdecimal() else idempotency.find(reader, key_of(draft))
    return int(draft) if draft.isdecimal() else created and created.post_id


def key_of(draft: str) -> idempotency.IdempotencyKey:
    """Return the key that lets a draft create only one post. Its space prevents a clash with keys that clients send."""
    return idempotency.IdempotencyKey(b"", f"draft {draft}", b"")


def current(reader: Reader, draft: str) -> Copy | None:
    """Return the current copy of a draft, or else the last discarded one."""
    row = reader.row(SELECT_CURRENT, draft=str(post_of(reader, draft) or draft))
    return Copy._make(row) if row else None


def newer(reader: Reader, sent: Sent) -> str:
    """Return UNTOUCHED if newer text in a draft includes the form's text, RIVAL if not, or "" if no text is newer."""
    copy, now = sent.copy, current(reader, sent.copy.draft)
    if now is None or (now.state != DISCARDED and (now.id == copy.id or sent.previous == now.text_id)):
        return ""
    text_id = copy.text_id if copy.number else sent.previous
    if now.includes(text_id):
        return UNTOUCHED if text_id or now.state != DISCARDED else ""
    return RIVAL if now.state == OPEN else ""


def lacks(fields: Mapping[str, str], old: Mapping[str, str]) -> bool:
    """Return whether a passage of an older text is missing from a form."""
    return any(map(lacks_passage, *_written(fields, old)))


def _written(*forms: Mapping[str, str]) -> list[list[str]]:
    return [[fields.get(name, "") for name in WRITTEN] for fields in forms]


def removed(reader: Reader, sent: Sent) -> str:
    """Return the id of the last text that a form has replaced since its last save, if the form lacks part of it."""
    form, draft = sent.copy.id, str(post_of(reader, sent.copy.draft) or sent.copy.draft)
    replaced = {json.loads(copy.seen).get(form, 0): copy.id for copy in listing(reader, ASIDE, draft=draft)}
    number = max(replaced, default=0)
    return replaced[number] if number and lacks(sent.fields, text_of(reader, replaced[number])) else ""


def listing(reader: Reader, *states: str, draft: str | None = None) -> list[Copy]:
    """Return the copies in these states, of one draft or of all, newest first."""
    query = _copies.where(DraftCopy.state.in_(states), DraftCopy.bytes > 0).order_by(*_latest).limit(MAX_COPIES)
    return list(map(Copy._make, reader.rows(query.where(DraftCopy.draft == draft) if draft is not None else query)))


def changes_of(reader: Reader, draft: str, form: Form, states: Iterable[str]) -> dict[Copy, dict[str, str]]:
    """Return the fields that each copy of a draft would change in a form, without details after COMPARING_SECONDS."""
    until, changes = time.monotonic() + COMPARING_SECONDS, dict[Copy, dict[str, str]]()
    for copy in listing(reader, *states, draft=draft):
        changes[copy] = {"content": ""}
        if time.monotonic() < until:
            typed = {**form, **text_of(reader, copy.id)}
            follow(typed, form)
            changes[copy] = differing(form, typed)
    return changes


def put(tx: Transaction, sent: Sent) -> None:
    """Store a form's text according to the table above. If the post already has the text, its state is SAVED."""
    posts.check_size(tx, max(sent.fields.values(), key=len))
    new, fields = sent.copy, {**sent.fields}
    now, mine, post_id = current(tx, new.draft), find(tx, new.id), post_of(tx, new.draft)
    if new.number <= (mine.number if mine else 0) or (now and now.includes(new.text_id)):
        return
    if now and now.id == new.id and now.state == SAVED:  # This text was typed while the form was being saved.
        new, fields["base"] = new._replace(etag=now.etag), text_of(tx, now.id)["base"]
    new = new._replace(draft=str(post_id or new.draft), post_id=post_id)
    if now and now.state == OPEN and now.id != new.id and sent.previous != now.text_id:
        new = new._replace(state=CONFLICT)
    _write(tx, sent._replace(copy=new, fields=fields), now)
    _bound(tx, new.id)


def _write(tx: Transaction, sent: Sent, now: Copy | None) -> None:
    """Write a copy. Put away the text that it continues, and set aside a text that it replaces."""
    copy, seen = sent.copy, json.loads(now.seen) if now else {}
    replaced_by = json.dumps({copy.id: copy.number})
    for former in {find(tx, copy.id), None if sent.replaces else find(tx, sent.previous)}:
        if former and (former.id == copy.id or (former.text_id == sent.previous and former.draft == copy.draft)):
            _put_away(tx, former, sent)
    if now and copy.state != CONFLICT and now.id != copy.id and now.state != DISCARDED:
        is_chosen = sent.previous == now.text_id  # If the writer has not chosen a version yet, the other form must ask.
        tx.execute(DraftCopy.delete().where(DraftCopy.id == now.id, DraftCopy.state == SAVED))
        kept = DraftCopy.update(state=ASIDE if is_chosen else CONFLICT, seen=replaced_by)
        tx.execute(kept.where(DraftCopy.id == now.id))
        if now.state == OPEN and not is_chosen:
            seen.pop(now.id, None)
    seen = {} if copy.state == CONFLICT else dict([*seen.items()][-MAX_SEEN:]) | {copy.id: copy.number}
    fields = sent.fields if copy.state in WITH_TEXT else {name: sent.fields.get(name, "") for name in ("base", "text")}
    text = json.dumps(fields, ensure_ascii=False)
    typed = "".join(value for name, value in sent.fields.items() if name not in ("base", "caret"))
    row = copy._asdict() | {"saved_at": tx.now, "seen": json.dumps(seen), "fields": text}
    title = sent.fields.get("title", "").strip() or "\n" + sent.fields.get("content", "").strip()[:BEGINNING]
    row["title"] = title.replace("\0", "")[: documents.MAX_TITLE]  # PostgreSQL cannot store U+0000.
    row["bytes"] = len(text.encode()) if copy.state in WITH_TEXT and (copy.post_id or typed.strip()) else 0
    tx.execute(DraftCopy.insert(row))


def _put_away(tx: Transaction, former: Copy, sent: Sent) -> None:
    """Delete a text that a form has continued, but set it aside if the form lacks a passage of it.

    The passage may be removed a few words at a time: the first text stays LONGER until it is set aside, or the form is
    as long again. A text that is only a part of the post, or of an earlier text, is not set aside.
    """
    form, former_text = sent.copy.id, text_of(tx, former.id)
    kept, others = {former: former_text}, []
    with suppress(DoesNotExist):
        others.append(as_typed(documents.load(posts.get(tx, former.post_id or 0))))
    for copy in [*listing(tx, LONGER, draft=former.draft), *listing(tx, ASIDE, draft=former.draft)[:MAX_EARLIER]]:
        if {*json.loads(copy.seen)} & {former.id, form}:
            others.append(text := text_of(tx, copy.id))
            kept |= {copy: text} if copy.state == LONGER else {}
    is_part = any(all(map(is_part_of, *_written(former_text, other))) for other in others)
    if is_part or (len(kept) > 1 and not lacks(sent.fields, former_text)):
        tx.execute(DraftCopy.delete().where(DraftCopy.id == former.id))
        del kept[former]
    for copy, text in kept.items():
        size, length = (sum(map(len, texts)) for texts in _written(text, sent.fields))
        state = ASIDE if lacks(sent.fields, text) else LONGER if length < size else ""
        if state != copy.state or form not in json.loads(copy.seen):
            put_away = {"id": secrets.token_urlsafe(16), "state": state, "seen": json.dumps({form: sent.copy.number})}
            tx.execute((DraftCopy.update(put_away) if state else DraftCopy.delete()).where(DraftCopy.id == copy.id))


def _bound(tx: Transaction, newest_id: str) -> None:
    """Delete copies beyond the limits: the oldest, but first those of the drafts with the most copies."""
    rank = fn.ROW_NUMBER().over(partition_by=[DraftCopy.draft], order_by=_latest)
    query = DraftCopy.select(DraftCopy.id, DraftCopy.bytes).order_by(DraftCopy.id != newest_id, rank, *_latest)
    count = size = 0
    for row, (copy_id, its_bytes) in enumerate(list(tx.rows(query))):
        count, size = count + bool(its_bytes), size + its_bytes
        if row >= MAX_ROWS or (its_bytes and (count > MAX_COPIES or size > MAX_BYTES)):
            tx.execute(DraftCopy.delete().where(DraftCopy.id == copy_id))


def create(tx: Transaction, sent: Sent, fields: posts.Fields, author: Author) -> posts.StoredPost:
    """Create a draft's post unless it exists. Raises Rejected."""
    draft, add = sent.copy.draft, partial(posts.add, allow_future_draft=True)
    post = idempotency.add_once(tx, fields, author, key_of(draft), add) if draft else add(tx, fields, author)
    if post.outcome == "created":
        tx.execute(DraftCopy.update(draft=str(post.id), post_id=post.id).where(DraftCopy.draft == draft))
        _close(tx, sent, post.id, post.document)
    return post


def save(tx: Transaction, post_id: int, changes: Any, author: Author, check: Check, sent: Sent) -> posts.StoredPost:
    """Save a form to its post. A repeated request is a no-op. Raises the same exceptions as `posts.change`."""
    if find(tx, sent.copy.id, SAVED) and text_of(tx, sent.copy.id)["text"] == sent.fields["text"]:
        return posts.get_to_change(tx, post_id)
    post = posts.change(tx, post_id, changes, author, check, allow_future_draft=True)
    _close(tx, sent, post_id, post.document)
    return post


def _close(tx: Transaction, sent: Sent, post_id: int, document: bytes) -> None:
    """Record that the form's text is in the post."""
    saved = sent.copy._replace(draft=str(post_id), post_id=post_id, state=SAVED, etag=etag_of(document))
    mine = find(tx, saved.id)
    base = f"{base_of(as_typed(documents.load(document)))} {sent.fields['base']}"  # plus older values the form shows
    if mine and mine.number > saved.number:  # The writer has typed more in the meantime.
        text = json.dumps(text_of(tx, mine.id) | {"base": base}, ensure_ascii=False)
        tx.execute(DraftCopy.update(etag=saved.etag, fields=text).where(DraftCopy.id == mine.id))
    elif saved.id:
        _write(tx, sent._replace(copy=saved, fields={**sent.fields, "base": base}), current(tx, saved.draft))
        tx.execute(DraftCopy.delete().where(DraftCopy.draft == saved.draft, DraftCopy.state == LONGER))
    tx.execute(DraftCopy.update(seen="{}").where(DraftCopy.draft == saved.draft, DraftCopy.state == ASIDE))


def discard(tx: Transaction, copy_id: str) -> Copy:
    """Discard a copy. Raises DoesNotExist."""
    copy = with_text(tx, copy_id)
    tx.execute(DraftCopy.update(state=DISCARDED).where(DraftCopy.id == copy.id))
    return copy


def use(tx: Transaction, copy_id: str, other: str = "", etag: str = "") -> Copy:
    """Make a copy the current one, unless a text other than `other` is; return the current copy. Raises DoesNotExist.

    The writer has seen how the copy differs from `other`, or from the version of the post with this `etag`.
    """
    copy, replaced = with_text(tx, copy_id), find(tx, other)
    now = current(tx, copy.draft)
    if other and now and now.state == OPEN and now.id != copy.id and now.text_id != other:
        return now
    if copy.state != OPEN:
        fields, shown = text_of(tx, copy.id), replaced.etag if replaced else etag
        if shown and copy.post_id and shown == etag_of(document := posts.get(tx, copy.post_id)):
            follow(fields, post := as_typed(documents.load(document)))
            copy, fields["base"] = copy._replace(etag=shown), base_of(post)
        _write(tx, Sent(copy._replace(state=OPEN), fields, other, replaces=True), now)
    if replaced and replaced.text_id == other:
        seen = json.loads(with_text(tx, copy_id).seen) | {replaced.id: replaced.number}
        tx.execute(DraftCopy.update(seen=json.dumps(seen)).where(DraftCopy.id == copy.id))
        tx.execute(DraftCopy.update(state=ASIDE).where(DraftCopy.id == replaced.id, DraftCopy.state == CONFLICT))
    return copy


def prune(tx: Transaction, days: int) -> int:
    """Delete a batch of copies older than `days`, and of old SAVED copies; return how many were deleted."""
    horizons = earlier(tx.now, timedelta(days=days)), earlier(tx.now, SAVED_PERIOD)
    is_old = (DraftCopy.saved_at <= horizons[0]) | ((DraftCopy.bytes == 0) & (DraftCopy.saved_at <= horizons[1]))
    old = [copy_id for (copy_id,) in tx.rows(DraftCopy.select(DraftCopy.id).where(is_old).limit(PRUNED))]
    return tx.execute(DraftCopy.delete().where(DraftCopy.id.in_(old))) if old else 0
