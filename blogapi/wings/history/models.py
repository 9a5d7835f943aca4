"""The tables of the history as Peewee models."""

from peewee import CompositeKey, IntegerField, TextField

from blogapi.storage.models import BaseModel


class Revision(BaseModel):
    """A past version of a post, which a change or a deletion ended."""

    post_id = IntegerField()
    version = IntegerField()
    since = TextField()
    author = TextField()
    until = TextField()
    replaced_by = TextField()
    state = TextField()
    document = TextField()

    class Meta:
        primary_key = CompositeKey("post_id", "version")


class Retagging(BaseModel):
    """A post's tags before a tag was renamed, merged or deleted in every post."""

    post_id = IntegerField()
    version = IntegerField()
    number = IntegerField()
    changed_at = TextField()
    author = TextField()
    tags = TextField()

    class Meta:
        primary_key = CompositeKey("post_id", "version", "number")


class Purge(BaseModel):
    """A post that was deleted for good."""

    post_id = IntegerField(primary_key=True)
    purged_at = TextField()
