"""The tables of schema.sql as Peewee models, and every query."""

import json
from contextlib import suppress
from functools import cache
from typing import Any

from marshmallow import ValidationError
from peewee import (
    AutoField,
    BlobField,
    CompositeKey,
    DatabaseError,
    ForeignKeyField,
    IntegrityError,
    Model,
    PeeweeException,
    Query,
    TextField,
)
from slugify import slugify

from blogapi.db import database

# Titles are not HTML, and "it's" is one word.
SLUG = {
    "algorithm": "modern",
    "backend": "text-unidecode",
    "max_length": 80,
    "word_boundary": True,
    "save_order": True,
    "entities": False,
    "decimal": False,
    "hexadecimal": False,
    "replacements": [("'", "")],
}
MAX_ID = 2**63 - 1
PAGE_BYTES = 4 * 1024 * 1024


def text_of(query: Query) -> str:
    """Return the SQL of `query`, to be run with parameters in the order of its literals.

    Building a query takes Peewee about 95 µs, most of what a small request takes; its text can be kept.
    """
    return query.sql()[0]


class BaseModel(Model):
    class Meta:
        database = database
        legacy_table_names = False


class ApiKey(BaseModel):
    """A key that may use the API, known by its SHA-256 only."""

    digest = BlobField(primary_key=True)
    name = TextField(unique=True)
    last_four = TextField()
    created_at = TextField()
    last_used_on = TextField(null=True)

    class Meta:
        without_rowid = True
        strict_tables = True

    @classmethod
    def find(cls, digest: bytes) -> tuple[bytes, str | None] | None:
        """Return the digest of the key and the day of its last use, or None."""
        return database.row(FIND_KEY, (digest,))

    @classmethod
    def note_use(cls, digest: bytes, day: str) -> None:
        """Remember the day of the last use, where that can be had at once."""
        with suppress(PeeweeException):
            database.execute_sql(NOTE_USE, (day, digest))

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


class Post(BaseModel):
    """A post. `document` is its JSON as it is answered; slug and status are copies of what stands there."""

    id = AutoField()
    slug = TextField(unique=True)
    status = TextField()
    document = TextField()

    class Meta:
        strict_tables = True

    @classmethod
    def page(
        cls, limit: int, status: str | None = None, tag: str | None = None, before: int = MAX_ID
    ) -> tuple[list[bytes], int | None]:
        """Return the documents of the newest posts made before the post `before`, newest first.

        Also the id to go on from, or None where no post follows. A page ends after `limit` posts, or after the
        post that brings it past PAGE_BYTES. Costs O(limit): an index gives the order for each combination of filters.
        """
        filters = [value for value in (tag, status) if value is not None]
        documents: list[bytes] = []
        size = last = 0
        for post_id, document in database.rows(page_sql(bool(status), bool(tag)), (*filters, before, limit + 1)):
            if len(documents) == limit or size > PAGE_BYTES:
                return documents, last
            if document is None:
                raise DatabaseError("a post is damaged")  # SQLite has no checksums: NULL in a NOT NULL column
            documents.append(document)
            size += len(document)
            last = post_id
        return documents, None

    @classmethod
    def add(cls, fields: dict[str, Any], now: str) -> tuple[int, bytes]:
        """Make a post of validated fields, its tags by their folded names. To be called in a transaction.

        Returns its id and document. A slug that is left out is made from the title.
        Raises ValidationError if one that is given is taken.
        """
        post_id = database.row(LAST_ID)[0] + 1
        slug = fields.get("slug") or free_slug(fields["title"])
        tags = fields["tags"]
        post = {"id": str(post_id), **fields, "tags": list(tags.values()), "slug": slug, "created_at": now}
        if post["status"] == "published":
            post["published_at"] = now
        document = json.dumps(post, ensure_ascii=False, separators=(",", ":"))
        try:
            database.execute_sql(INSERT_POST, (post_id, slug, post["status"], document))
        except IntegrityError as error:
            if "post.slug" not in str(error):
                raise
            raise ValidationError("already taken by another post", "slug") from error
        for tag in tags:
            database.execute_sql(INSERT_TAG, (tag, post_id, post["status"]))
        return post_id, document.encode()

    @classmethod
    def remove(cls, post_id: int) -> None:
        """Delete a post, and with it its tags; raise DoesNotExist if there is none. To be called in a transaction."""
        if not database.execute_sql(DELETE_POST, (post_id,)).rowcount:
            raise cls.DoesNotExist


class PostTag(BaseModel):
    """A tag of a post, with the post's status beside it, so that an index answers for both together."""

    tag = TextField()
    post = ForeignKeyField(Post, on_delete="CASCADE")
    status = TextField()

    class Meta:
        primary_key = CompositeKey("tag", "post")
        without_rowid = True
        strict_tables = True


def free_slug(title: str) -> str:
    """Make a slug from `title` that no post has, in O(log n) look-ups for n posts with the same.

    Doubling finds a number that is free, halving then one that is free while the one below is taken.
    """
    slug = slugify(title, **SLUG) or "untitled"
    if not slug_taken(slug):
        return slug
    taken, free = 1, 2
    while slug_taken(f"{slug}-{free}"):
        taken, free = free, free * 2
    while free - taken > 1:
        middle = (taken + free) // 2
        if slug_taken(f"{slug}-{middle}"):
            taken = middle
        else:
            free = middle
    return f"{slug}-{free}"


def slug_taken(slug: str) -> bool:
    return database.row(FIND_SLUG, (slug,)) is not None


@cache
def page_sql(by_status: bool, by_tag: bool) -> str:
    """Return the text of the list query; its parameters are tag, status, id and limit, as far as they apply."""
    post_id = PostTag.post if by_tag else Post.id
    status = PostTag.status if by_tag else Post.status
    query = Post.select(Post.id, Post.document.cast("BLOB")).order_by(post_id.desc()).limit(1)
    if by_tag:
        query = query.join(PostTag).where(PostTag.tag == "")
    if by_status:
        query = query.where(status == "")
    return text_of(query.where(post_id < 0))


FIND_KEY = text_of(ApiKey.select(ApiKey.digest, ApiKey.last_used_on).where(ApiKey.digest == b""))
NOTE_USE = text_of(ApiKey.update(last_used_on="").where(ApiKey.digest == b""))
FIND_SLUG = text_of(Post.select(Post.id).where(Post.slug == ""))
INSERT_POST = text_of(Post.insert(id=0, slug="", status="", document=""))
INSERT_TAG = text_of(PostTag.insert(tag="", post=0, status=""))
DELETE_POST = text_of(Post.delete().where(Post.id == 0))
LAST_ID = "SELECT ifnull(max(seq), 0) FROM sqlite_sequence WHERE name = 'post'"
