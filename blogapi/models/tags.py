"""The tags: which posts carry them, how many, and how they are spelt."""

import json
from collections.abc import Callable, Iterable
from functools import partial

from marshmallow import ValidationError
from peewee import EXCLUDED, SQL, Case, CompositeKey, IntegerField, TextField, fn

from blogapi.db import database
from blogapi.fields import STATUSES
from blogapi.fold import fold
from blogapi.models.base import BaseModel, given, text_of

DECODER = json.JSONDecoder()
MARK = '"tags":'  # Quotes inside a string are escaped in JSON, so that this is nowhere but before the tags.


class PostTag(BaseModel):
    """A tag of a post, with the post's status beside it, so that the key answers for both together."""

    tag = TextField()
    status = TextField()
    post_id = IntegerField()

    class Meta:
        primary_key = CompositeKey("tag", "status", "post_id")
        without_rowid = True


class Tag(BaseModel):
    """A tag that some post carries. Kept with every change of a post: to count the posts would take seconds."""

    tag = TextField(primary_key=True)
    name = TextField()
    newest = IntegerField()
    posts = IntegerField()

    class Meta:
        without_rowid = True

    @classmethod
    def listing(cls) -> list[dict]:
        """Return name and number of posts of every tag, by folded name."""
        return [{"name": name, "posts": posts} for name, posts in database.rows(LIST)]

    @classmethod
    def attach(cls, post_id: int, status: str, tags: dict[str, str]) -> None:
        """Give a post its tags, spellings by folded names. To be called in a transaction."""
        rows = [{"tag": tag, "name": name, "status": status, "post_id": post_id} for tag, name in tags.items()]
        database.execute_many(ATTACH, rows)
        database.execute_many(COUNT_UP, rows)

    @classmethod
    def detach(cls, post_id: int, status: str, tags: Iterable[str]) -> None:
        """Take tags, folded, from a post. To be called in a transaction, when the post has its new document."""
        for tag in tags:
            parameters = {"tag": tag, "status": status, "post_id": post_id}
            database.execute_sql(DETACH, parameters)
            counted = database.row(COUNT_DOWN, parameters)  # None where a newer Unicode folds the name in another way
            if counted == (post_id,):
                cls.refresh(tag)

    @classmethod
    def refresh(cls, tag: str) -> None:
        """Take the spelling of a tag from the newest post that carries it; forget the tag where none does."""
        found = database.row(NEWEST, {"tag": tag})
        if found is None:
            cls.delete().where(cls.tag == tag).execute()
            return
        newest, document = found
        name = next((name for name in json.loads(document)["tags"] if fold(name) == tag), tag)
        cls.update(name=name, newest=newest).where(cls.tag == tag).execute()

    @classmethod
    def rename(cls, old: str, name: str, merge: bool) -> dict:
        """Rename a tag, folded, in every post that carries it; return the tag. To be called in a transaction.

        Raises DoesNotExist if no post carries it, ValidationError if another tag has the name and `merge` is false.
        """
        cls.get_by_id(old)
        new = fold(name)
        if new != old and not merge and cls.get_or_none(cls.tag == new):
            raise ValidationError('there is such a tag already; "merge": true puts the two together', "name")
        cls.rewrite(old, partial(renamed, old, name))
        if new != old:
            database.execute_sql("UPDATE OR IGNORE post_tag SET tag = ? WHERE tag = ?", (new, old))
            PostTag.delete().where(PostTag.tag == old).execute()
            cls.delete().where(cls.tag == old).execute()
            posts = PostTag.select().where(PostTag.tag == new).count()
            cls.replace(tag=new, name=name, newest=0, posts=posts).execute()
        cls.refresh(new)
        tag = cls.get_by_id(new)
        return {"name": tag.name, "posts": tag.posts}

    @classmethod
    def remove(cls, tag: str) -> None:
        """Take a tag, folded, from every post; raise DoesNotExist if none carries it. To be called in a transaction."""
        cls.get_by_id(tag)
        cls.rewrite(tag, partial(without, tag))
        PostTag.delete().where(PostTag.tag == tag).execute()
        cls.delete().where(cls.tag == tag).execute()

    @classmethod
    def rewrite(cls, tag: str, change: Callable[[list[str]], list[str]]) -> None:
        """Change the tags in the documents of all posts with a tag, in one statement: that takes 20 µs for each."""

        def rewritten(document: str) -> str:
            start = document.index(MARK) + len(MARK)
            names, end = DECODER.raw_decode(document, start)
            text = json.dumps(change(names), ensure_ascii=False, separators=(",", ":"))
            return document[:start] + text + document[end:]

        database.connection().create_function("rewritten", 1, rewritten)
        database.execute_sql(
            "UPDATE post SET document = rewritten(document) WHERE id IN (SELECT post_id FROM post_tag WHERE tag = ?)",
            (tag,),
        )


def renamed(old: str, name: str, names: list[str]) -> list[str]:
    """Return `names` with the tag `old` called `name`; a later repeat is dropped."""
    tags: dict[str, str] = {}
    for each in names:
        spelling = name if fold(each) == old else each
        tags.setdefault(fold(spelling), spelling)
    return list(tags.values())


def without(tag: str, names: list[str]) -> list[str]:
    """Return `names` without the tag."""
    return [name for name in names if fold(name) != tag]


# The greatest of four ends of the key, and the document of that post
NEWEST = f"""
SELECT id, document FROM post WHERE id = (SELECT max(post_id) FROM ({
    " UNION ALL ".join(
        f"SELECT max(post_id) AS post_id FROM post_tag WHERE tag = :tag AND status = '{status}'" for status in STATUSES
    )
}))
"""
LIST = text_of(Tag.select(Tag.name, Tag.posts).order_by(Tag.tag))
ATTACH = text_of(
    PostTag.insert({PostTag.tag: given("tag"), PostTag.status: given("status"), PostTag.post_id: given("post_id")})
)
COUNT_UP = text_of(
    Tag.insert(
        {Tag.tag: given("tag"), Tag.name: given("name"), Tag.newest: given("post_id"), Tag.posts: SQL("1")}
    ).on_conflict(
        conflict_target=[Tag.tag],
        update={
            Tag.name: Case(None, [(EXCLUDED.newest >= Tag.newest, EXCLUDED.name)], Tag.name),
            Tag.newest: fn.max(EXCLUDED.newest, Tag.newest),
            Tag.posts: Tag.posts + SQL("1"),
        },
    )
)
DETACH = text_of(
    PostTag.delete().where(
        PostTag.tag == given("tag"), PostTag.status == given("status"), PostTag.post_id == given("post_id")
    )
)
COUNT_DOWN = text_of(Tag.update({Tag.posts: Tag.posts - SQL("1")}).where(Tag.tag == given("tag")).returning(Tag.newest))
