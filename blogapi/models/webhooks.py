"""The webhooks: whom to tell of what happens to the posts, what there is to tell, and how the telling went."""

import json
import secrets
from base64 import b64encode
from datetime import timedelta
from typing import Any, NamedTuple

from marshmallow import ValidationError
from peewee import SQL, AutoField, BooleanField, CompositeKey, IntegerField, TextField, fn

from blogapi.clock import earlier
from blogapi.db import database
from blogapi.models.base import BaseModel, given, text_of

MAX_WEBHOOKS = 50
MAX_LISTED = 100  # deliveries
MAX_FINISHED = 1000  # deliveries of a webhook that are kept
KEPT = timedelta(days=30)  # finished deliveries
GONE = 410  # the status by which a receiver says that it wants no more


class Webhook(BaseModel):
    """An address that is told of events."""

    id = AutoField()
    url = TextField()
    events = TextField()
    active = BooleanField()
    secret = TextField()
    created_at = TextField()

    @classmethod
    def listing(cls) -> list["Webhook"]:
        """Return all webhooks, oldest first."""
        return list(cls.select().order_by(cls.id))

    @classmethod
    def add(cls, url: str, events: list[str], now: str) -> "Webhook":
        """Make a webhook with a new secret. To be called in a transaction.

        Raises ValidationError if there are MAX_WEBHOOKS already.
        """
        if cls.select().count() >= MAX_WEBHOOKS:
            raise ValidationError(f"there are {MAX_WEBHOOKS} already; delete one first", "webhooks")
        secret = "whsec_" + b64encode(secrets.token_bytes(32)).decode()
        return cls.create(url=url, events=json.dumps(events), active=True, secret=secret, created_at=now)

    @classmethod
    def change(cls, webhook_id: int, changes: dict[str, Any]) -> "Webhook":
        """Change some fields of a webhook; raise DoesNotExist if there is none. To be called in a transaction."""
        webhook = cls.get_by_id(webhook_id)
        for name, value in changes.items():
            setattr(webhook, name, json.dumps(value) if name == "events" else value)
        webhook.save()
        return webhook

    @classmethod
    def remove(cls, webhook_id: int) -> None:
        """Delete a webhook and its deliveries; raise DoesNotExist if there is none. To be called in a transaction."""
        cls.get_by_id(webhook_id).delete_instance()
        Event.forget([event_id for (event_id,) in database.rows(REMOVE, {"webhook_id": webhook_id})])

    @classmethod
    def ping(cls, webhook_id: int, now: str) -> dict[str, Any]:
        """Record a ping for a webhook, whatever its events; return the delivery. To be called in a transaction.

        Raises DoesNotExist if there is no such webhook, ValidationError if it is not active.
        """
        cls.get_by_id(webhook_id).must_be_active()
        event_id = Event.add("ping", {}, now)
        Delivery.insert(webhook_id=webhook_id, event_id=event_id, state="pending", next_attempt_at="").execute()
        return Delivery.find(webhook_id, event_id)

    @classmethod
    def due(cls, now: str) -> list[tuple[int, str, str]]:
        """Return id, url and secret of each active webhook that something is to be sent to."""
        return list(database.rows(DUE_WEBHOOKS, {"now": now}))

    def must_be_active(self) -> None:
        """Raise ValidationError unless the webhook is active: nothing would be sent."""
        if not self.active:
            raise ValidationError("is false, and nothing is sent; set it to true first", "active")

    def fields(self) -> dict[str, Any]:
        """Return the webhook as it is answered, without its secret."""
        return {
            "id": str(self.id),
            "url": self.url,
            "events": json.loads(self.events),
            "active": self.active,
            "created_at": self.created_at,
        }


class Event(BaseModel):
    """Something that happened, written in the very transaction in which it did: the outbox."""

    id = AutoField()
    message_id = TextField()
    type = TextField()
    payload = TextField()
    created_at = TextField()

    @classmethod
    def record(cls, post: dict[str, Any], now: str, *types: str) -> None:
        """Record what happened to a post, in that order, for the webhooks that want it. To be called in a transaction.

        One look at an empty table is all that it costs where there are no webhooks.
        """
        wanted = {name for (name,) in database.rows(WANTED)}
        for name in types:
            if name in wanted:
                data = {field: value for field, value in post.items() if field != "content"}
                event_id = cls.add(name, {"post": data}, now)
                database.execute_sql(DELIVER, {"event_id": event_id, "type": name})

    @classmethod
    def add(cls, name: str, data: dict[str, Any], now: str) -> int:
        """Add an event; return its id. The payload is as Standard Webhooks have it."""
        payload = json.dumps({"type": name, "timestamp": now, "data": data}, ensure_ascii=False, separators=(",", ":"))
        row = {"message_id": f"msg_{secrets.token_urlsafe(16)}", "type": name, "payload": payload, "now": now}
        return database.execute_sql(ADD_EVENT, row).lastrowid

    @classmethod
    def forget(cls, event_ids: list[int]) -> None:
        """Delete those events that have no delivery any more. To be called in a transaction."""
        database.execute_many(FORGET, [{"event_id": event_id} for event_id in event_ids])


class Message(NamedTuple):
    """An event that is to be sent to a webhook."""

    event_id: int
    id: str
    payload: str
    attempts: int  # so far
    repeats: int


class Attempt(NamedTuple):
    """What came of sending an event to a webhook: the status of the answer, or an error."""

    webhook_id: int
    url: str
    event_id: int
    repeats: int  # when it began
    status: int | None
    error: str | None
    state: str
    next_attempt_at: str | None


class Delivery(BaseModel):
    """What became, or is to become, of an event at a webhook."""

    webhook_id = IntegerField()
    event_id = IntegerField()
    state = TextField()
    attempts = IntegerField(default=0)
    last_status = IntegerField(null=True)
    last_error = TextField(null=True)
    repeats = IntegerField(default=0)
    next_attempt_at = TextField(null=True)

    class Meta:
        primary_key = CompositeKey("webhook_id", "event_id")
        without_rowid = True

    @classmethod
    def listing(cls, webhook_id: int) -> list[dict[str, Any]]:
        """Return the newest deliveries of a webhook, newest first; raise DoesNotExist if there is no such webhook."""
        Webhook.get_by_id(webhook_id)
        rows = database.rows(LISTING, {"webhook_id": webhook_id, "limit": MAX_LISTED})
        return [answered(row) for row in rows]

    @classmethod
    def find(cls, webhook_id: int, event_id: int) -> dict[str, Any]:
        """Return a delivery that is there."""
        return answered(database.row(FIND, {"webhook_id": webhook_id, "event_id": event_id}))

    @classmethod
    def repeat(cls, webhook_id: int, message_id: str) -> dict[str, Any]:
        """Have an event sent again, whatever became of it so far; return the delivery. To be called in a transaction.

        Raises DoesNotExist if there is no such delivery, ValidationError if the webhook is not active.
        """
        Webhook.get_by_id(webhook_id).must_be_active()
        found = database.row(REPEAT, {"webhook_id": webhook_id, "message_id": message_id})
        if found is None:
            raise cls.DoesNotExist
        return cls.find(webhook_id, found[0])

    @classmethod
    def due(cls, webhook_id: int, now: str, limit: int) -> list[Message]:
        """Return what is to be sent to a webhook now: first attempts in the order of the events, then repeated ones."""
        parameters = {"webhook_id": webhook_id, "now": now, "limit": limit}
        return [Message(*row) for row in database.rows(DUE, parameters)]

    @classmethod
    def note(cls, attempts: list[Attempt]) -> None:
        """Write down what came of attempts; 410 turns a webhook off. To be called in a transaction."""
        database.execute_many(NOTE, [attempt._asdict() for attempt in attempts])
        gone = [attempt._asdict() for attempt in attempts if attempt.status == GONE]
        database.execute_many(TURN_OFF, gone)
        for webhook_id in {attempt.webhook_id for attempt in attempts}:
            cls.prune(webhook_id)

    @classmethod
    def prune(cls, webhook_id: int, old: str = "") -> None:
        """Delete the finished deliveries of a webhook but the newest MAX_FINISHED, and all of events up to `old`.

        To be called in a transaction.
        """
        parameters = {"webhook_id": webhook_id, "old": old, "last": MAX_FINISHED - 1}
        Event.forget([event_id for (event_id,) in database.rows(PRUNE, parameters)])

    @classmethod
    def prune_old(cls, now: str) -> None:
        """Delete the finished deliveries that are older than KEPT. To be called in a transaction."""
        for webhook in Webhook.select():
            cls.prune(webhook.id, earlier(now, KEPT))


def answered(row: tuple) -> dict[str, Any]:
    """Return a row of ANSWER as it is answered: what is not there is left out."""
    names = ("id", "event", "created_at", "state", "attempts", "last_status", "last_error", "next_attempt_at")
    return {name: value for name, value in zip(names, row, strict=True) if value not in (None, "")}


ANSWER = Delivery.select(
    Event.message_id,
    Event.type,
    Event.created_at,
    Delivery.state,
    Delivery.attempts,
    Delivery.last_status,
    Delivery.last_error,
    Delivery.next_attempt_at,
).join(Event, on=Event.id == Delivery.event_id)
LISTING = text_of(
    ANSWER.where(Delivery.webhook_id == given("webhook_id")).order_by(Delivery.event_id.desc()).limit(given("limit"))
)
FIND = text_of(ANSWER.where(Delivery.webhook_id == given("webhook_id"), Delivery.event_id == given("event_id")))
PENDING = (Delivery.state == SQL("'pending'")) & (Delivery.next_attempt_at <= given("now"))
DUE_WEBHOOKS = text_of(
    Webhook.select(Webhook.id, Webhook.url, Webhook.secret).where(
        Webhook.active, fn.EXISTS(Delivery.select(SQL("1")).where(Delivery.webhook_id == Webhook.id, PENDING))
    )
)
DUE = text_of(
    Delivery.select(Event.id, Event.message_id, Event.payload, Delivery.attempts, Delivery.repeats)
    .join(Event, on=Event.id == Delivery.event_id)
    .where(Delivery.webhook_id == given("webhook_id"), PENDING)
    .order_by(Delivery.next_attempt_at, Delivery.event_id)
    .limit(given("limit"))
)
NOTE = """
UPDATE delivery
SET attempts = attempts + 1, last_status = :status, last_error = :error,
    state = iif(repeats = :repeats, :state, 'pending'),
    next_attempt_at = iif(repeats = :repeats, :next_attempt_at, '')
WHERE webhook_id = :webhook_id AND event_id = :event_id
"""
# Not where the webhook has another url by now, whose receiver has not said that it wants no more.
TURN_OFF = "UPDATE webhook SET active = 0 WHERE id = :webhook_id AND url = :url"
REPEAT = """
UPDATE delivery SET state = 'pending', next_attempt_at = '', repeats = repeats + 1
WHERE webhook_id = :webhook_id
AND event_id IN (
    SELECT id FROM delivery JOIN event ON id = event_id WHERE webhook_id = :webhook_id AND message_id = :message_id
)
RETURNING event_id
"""
WANTED = "SELECT DISTINCT value FROM webhook, json_each(events) WHERE active"
ADD_EVENT = """
INSERT INTO event (message_id, type, payload, created_at) VALUES (:message_id, :type, :payload, :now)
"""
DELIVER = """
INSERT INTO delivery (webhook_id, event_id, state, attempts, repeats, next_attempt_at)
SELECT webhook.id, :event_id, 'pending', 0, 0, '' FROM webhook, json_each(events) WHERE active AND value = :type
"""
REMOVE = "DELETE FROM delivery WHERE webhook_id = :webhook_id RETURNING event_id"
# Events are in the order of their times: the first that is not too old ends those that are. INDEXED BY: SQLite would
# take the primary key, and go through all that is pending.
PRUNE = """
DELETE FROM delivery INDEXED BY delivery_finished
WHERE webhook_id = :webhook_id AND state <> 'pending' AND event_id < max(
    ifnull((SELECT id FROM event WHERE created_at > :old ORDER BY id LIMIT 1), (SELECT max(id) + 1 FROM event)),
    ifnull((
        SELECT event_id FROM delivery INDEXED BY delivery_finished
        WHERE webhook_id = :webhook_id AND state <> 'pending'
        ORDER BY event_id DESC LIMIT 1 OFFSET :last
    ), 0)
)
RETURNING event_id
"""
# CROSS JOIN: of the few webhooks each is looked for, and not all deliveries gone through.
FORGET = """
DELETE FROM event WHERE id = :event_id AND NOT EXISTS (
    SELECT 1 FROM webhook CROSS JOIN delivery ON webhook_id = webhook.id AND event_id = :event_id
)
"""
