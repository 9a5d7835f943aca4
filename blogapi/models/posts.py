"""The posts."""

import hashlib
import json
from datetime import timedelta
from functools import cache
from typing import Any

from marshmallow import ValidationError
from peewee import (
    SQL,
    AutoField,
    BlobField,
    Case,
    CompositeKey,
    DatabaseError,
    Expression,
    IntegerField,
    IntegrityError,
    Select,
    TextField,
    fn,
)

from blogapi.clock import earlier
from blogapi.db import database
from blogapi.fields import MAX_ID, STATUSES
from blogapi.fold import fold
from blogapi.models.base import BaseModel, given, text_of
from blogapi.models.slugs import free_slug
from blogapi.models.tags import PostTag, Tag
from blogapi.models.webhooks import Event

PAGE_BYTES = 4 * 1024 * 1024


class Post(BaseModel):
    """A post. `document` is its JSON as it is answered; slug and status are copies of what stands there.

    A scheduled post whose time has come is published, for every read, from that second on: the queries see to it.
    Each write first turns such posts over for good, so that they stay few.
    """

    id = AutoField()
    slug = TextField(unique=True)
    status = TextField()
    document = TextField()

    @classmethod
    def page(
        cls, now: str, limit: int, status: str | None = None, tag: str | None = None, before: int = MAX_ID
    ) -> tuple[list[bytes], int | None]:
        """Return the documents of the newest posts made before the post `before`, newest first.

        Also the id to go on from, or None where no post follows. A page ends after `limit` posts, or after the
        post that brings it past PAGE_BYTES. Costs O(limit): an index gives the order for each combination of filters.
        """
        parameters = {"now": now, "tag": tag, "before": before, "limit": limit + 1}
        documents: list[bytes] = []
        size = last = 0
        for post_id, document in database.rows(page_sql(status, bool(tag)), parameters):
            if len(documents) == limit or size > PAGE_BYTES:
                return documents, last
            documents.append(sound(document))
            size += len(document)
            last = post_id
        return documents, None

    @classmethod
    def find(cls, post_id: int, now: str) -> bytes:
        """Return the document of a post; raise DoesNotExist if there is none."""
        found = database.row(FIND, {"id": post_id, "now": now})
        if found is None:
            raise cls.DoesNotExist
        return sound(found[0])

    @classmethod
    def add(cls, fields: dict[str, Any], now: str) -> tuple[int, bytes]:
        """Make a post of validated fields, its tags by their folded names. To be called in a transaction.

        Returns its id and document. A slug that is left out is made from the title.
        Raises ValidationError if one that is given is taken.
        """
        cls.publish_due(now)
        post_id = database.row(LAST_ID)[0] + 1
        tags = fields["tags"]
        post = {
            "id": str(post_id),
            **fields,
            "tags": list(tags.values()),
            "slug": fields.get("slug") or free_slug(fields["title"]),
            "created_at": now,
        }
        if post["status"] == "published":
            post["published_at"] = now
        document = cls.store(INSERT, post)
        Tag.attach(post_id, post["status"], tags)
        Event.record(post, now, "post.created", *(["post.published"] if post["status"] == "published" else []))
        return post_id, document

    @classmethod
    def add_once(cls, fields: dict[str, Any], now: str, once: "Idempotency") -> tuple[int, bytes]:
        """Make a post as `add` does, unless the same request did so within a day: then return that post.

        To be called in a transaction. Raises ValidationError if the request was another one, or its post is gone.
        """
        Idempotency.forget(now)
        known = Idempotency.get_or_none(Idempotency.digest == once.digest, Idempotency.name == once.name)
        if known is None:
            once.post_id, document = cls.add(fields, now)
            once.save(force_insert=True)
            return once.post_id, document
        if known.request != once.request:
            raise ValidationError("was used for another body within the last 24 hours", "Idempotency-Key")
        try:
            return known.post_id, cls.find(known.post_id, now)
        except cls.DoesNotExist:
            raise ValidationError("the post it made has been deleted", "Idempotency-Key") from None

    @classmethod
    def change(cls, post_id: int, changes: dict[str, Any], now: str, if_match: Any) -> bytes:
        """Change a post by what RFC 7396 leaves of a request: None clears a field. To be called in a transaction.

        Returns its document. Raises DoesNotExist, ValidationError, or whatever `if_match` does with the old document.
        """
        cls.publish_due(now)
        document = cls.find(post_id, now)
        if_match(document)
        old = json.loads(document)
        tags = changes.get("tags", {fold(name): name for name in old["tags"]}) or {}
        new = old | changes | {"tags": list(tags.values()), "published_at": published_at(old, changes, now)}
        new = {name: value for name, value in new.items() if value is not None}
        document = cls.store(UPDATE, new)
        if (old["tags"], old["status"]) != (new["tags"], new["status"]):
            Tag.detach(post_id, old["status"], [fold(name) for name in old["tags"]])
            Tag.attach(post_id, new["status"], tags)
        if old["status"] == "scheduled":
            Schedule.delete_by_id(post_id)
        if new["status"] == "scheduled":
            Schedule.insert(post_id=post_id, published_at=new["published_at"]).execute()
        published = new["status"] == "published" != old["status"]
        Event.record(new, now, "post.updated", *(["post.published"] if published else []))
        return document

    @classmethod
    def remove(cls, post_id: int, now: str, if_match: Any) -> None:
        """Delete a post, and with it its tags; raise DoesNotExist if there is none. To be called in a transaction."""
        cls.publish_due(now)
        document = cls.find(post_id, now)
        if_match(document)
        post = json.loads(document)
        database.execute_sql(DELETE, {"id": post_id})
        Tag.detach(post_id, post["status"], [fold(name) for name in post["tags"]])
        if post["status"] == "scheduled":
            Schedule.delete_by_id(post_id)
        Event.record(post, now, "post.deleted")

    @classmethod
    def store(cls, statement: str, post: dict[str, Any]) -> bytes:
        """Insert or update the row of a post; return its document. Raises ValidationError if the slug is taken."""
        document = json.dumps(post, ensure_ascii=False, separators=(",", ":"))
        row = {"id": int(post["id"]), "slug": post["slug"], "status": post["status"], "document": document}
        try:
            database.execute_sql(statement, row)
        except IntegrityError as error:
            if "post.slug" not in str(error):
                raise
            raise ValidationError("already taken by another post", "slug") from error
        return document.encode()

    @classmethod
    def publish_due(cls, now: str) -> None:
        """Turn scheduled posts over whose time has come. To be called in a transaction."""
        for post_id, document in list(database.rows(DUE, {"now": now})):
            post = json.loads(sound(document))
            cls.store(UPDATE, post)
            for name in post["tags"]:
                database.execute_sql(PUBLISH_TAG, {"tag": fold(name), "post_id": post_id})
            database.execute_sql(UNSCHEDULE, {"post_id": post_id})
            Event.record(post, now, "post.published")


class Schedule(BaseModel):
    """When a scheduled post is to be published."""

    post_id = IntegerField(primary_key=True)
    published_at = TextField()

    @classmethod
    def is_due(cls, now: str) -> bool:
        """Tell whether there are posts that Post.publish_due has to turn over."""
        return database.row(IS_DUE, {"now": now}) is not None


class Idempotency(BaseModel):
    """What a request with an Idempotency-Key has made."""

    digest = BlobField()
    name = TextField()
    request = BlobField()
    post_id = IntegerField()
    created_at = TextField()

    remembered = timedelta(hours=24)

    class Meta:
        primary_key = CompositeKey("digest", "name")
        without_rowid = True

    @classmethod
    def forget(cls, now: str) -> None:
        """Delete what needs to be remembered no longer. To be called in a transaction."""
        cls.delete().where(cls.created_at <= earlier(now, cls.remembered)).execute()


def published_at(old: dict[str, Any], changes: dict[str, Any], now: str) -> str | None:
    """Return the published_at that a post has after some changes; raise ValidationError if there can be none such.

    Times in RFC 3339 UTC, whole seconds, compare as text.
    """
    status = changes.get("status", old["status"])
    asked = changes.get("published_at")
    stored = old.get("published_at")
    earlier = stored if stored and stored <= now else None
    if status == "published":
        if asked and asked > now:
            raise ValidationError('must not be in the future; for that, set "status": "scheduled"', "published_at")
        return asked or (stored if old["status"] == "published" else earlier) or now
    if status == "scheduled":
        time = asked or stored
        if not time or time <= now:
            raise ValidationError("must be given, and in the future, for a scheduled post", "published_at")
        return time
    if asked:
        raise ValidationError("may be given only for a published or scheduled post", "published_at")
    return earlier


def sound(document: bytes | None) -> bytes:
    """Return a document; raise DatabaseError for NULL in the NOT NULL column: SQLite has no checksums."""
    if document is None:
        raise DatabaseError("a post is damaged")
    return document


def etag(document: bytes) -> str:
    """Return the strong entity tag of a post without its quotes (RFC 9110, section 8.8.3): a hash of its document."""
    return hashlib.sha256(document).hexdigest()[:32]


def document_now() -> Expression:
    """Return the document as it is to be answered: published, where it was scheduled and its time has come."""
    time = fn.json_extract(Post.document, SQL("'$.published_at'"))
    due = (Post.status == SQL("'scheduled'")) & (time <= given("now"))
    published = fn.json_set(Post.document, SQL("'$.status'"), SQL("'published'"))
    return Case(None, [(due, published)], Post.document).cast("BLOB")


@cache
def page_sql(status: str | None, by_tag: bool) -> str:
    """Return the text of the list query; its parameters are now, tag, before and limit.

    The lists of several statuses are merged: for a tag all four, for `published` those that are due by their schedule.
    """
    if by_tag:
        lists = [tagged(each) for each in ([status] if status else STATUSES)]
    elif status:
        lists = [
            Post.select(Post.id, document_now()).where(Post.status == SQL(f"'{status}'"), Post.id < given("before"))
        ]
    else:
        lists = [Post.select(Post.id, document_now()).where(Post.id < given("before"))]
    if status == "scheduled":
        lists = [
            each.join(Schedule, on=Schedule.post_id == Post.id).where(Schedule.published_at > given("now"))
            for each in lists
        ]
    if status == "published":
        lists.append(due(by_tag))
    query = lists[0]
    for each in lists[1:]:
        query = query + each
    return text_of(query.order_by(SQL("1").desc()).limit(given("limit")))


def tagged(status: str) -> Select:
    """Return the query for the posts with a tag and a status."""
    return (
        PostTag.select(PostTag.post_id, document_now())
        .join(Post, on=Post.id == PostTag.post_id)
        .where(PostTag.tag == given("tag"), PostTag.status == SQL(f"'{status}'"), PostTag.post_id < given("before"))
    )


def due(by_tag: bool) -> Select:
    """Return the query for the posts, mostly none, that are published by their schedule and not yet turned over."""
    post_id = Schedule.post_id + SQL("0")  # not the primary key, for SQLite: it is the time that finds the few
    query = (
        Schedule.select(post_id, document_now())
        .join(Post, on=Post.id == Schedule.post_id)
        .where(Schedule.published_at <= given("now"), post_id < given("before"))
    )
    if by_tag:
        key = (PostTag.tag == given("tag")) & (PostTag.status == SQL("'scheduled'")) & (PostTag.post_id == Post.id)
        query = query.join(PostTag, on=key)
    return query


ROW = {Post.slug: given("slug"), Post.status: given("status"), Post.document: given("document")}
INSERT = text_of(Post.insert({Post.id: given("id"), **ROW}))
UPDATE = text_of(Post.update(ROW).where(Post.id == given("id")))
DELETE = text_of(Post.delete().where(Post.id == given("id")))
FIND = text_of(Post.select(document_now()).where(Post.id == given("id")))
DUE = text_of(
    Schedule.select(Schedule.post_id, document_now())
    .join(Post, on=Post.id == Schedule.post_id)
    .where(Schedule.published_at <= given("now"))
)
IS_DUE = text_of(Schedule.select(SQL("1")).where(Schedule.published_at <= given("now")).limit(SQL("1")))
PUBLISH_TAG = text_of(
    PostTag.update({PostTag.status: SQL("'published'")}).where(
        PostTag.tag == given("tag"), PostTag.status == SQL("'scheduled'"), PostTag.post_id == given("post_id")
    )
)
UNSCHEDULE = text_of(Schedule.delete().where(Schedule.post_id == given("post_id")))
LAST_ID = "SELECT ifnull(max(seq), 0) FROM sqlite_sequence WHERE name = 'post'"
