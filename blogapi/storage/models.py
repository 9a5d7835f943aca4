"""The tables of the core as Peewee models; schema.sql defines them. Each wing has models of its own."""

from peewee import AutoField, BlobField, CompositeKey, IntegerField, Model, TextField

from blogapi.storage.engine import AsBytes

SCOPES = FULL, READ_ONLY, PUBLISHED_ONLY = "full", "read-only", "published-only"  # of keys
AUTOSAVE = "autosave"  # of a draft on the owner's page, while it is written
AUTHORS = ("settings", AUTOSAVE, "import", "rebase", "undo")  # in the history, for changes without a key
MAX_ID = 2**63 - 1


class BaseModel(Model):
    class Meta:
        legacy_table_names = False


class ApiKey(BaseModel):
    """A key of the API, by its SHA-256."""

    digest = BlobField(primary_key=True)
    name = TextField(unique=True)
    last_four = TextField()
    created_at = TextField()
    last_used_on = TextField(null=True)
    scope = TextField()


class Post(BaseModel):
    """A post. `document` is its JSON as it is answered; the columns before `version` are copies from it."""

    id = AutoField()
    slug = TextField(unique=True)
    status = TextField()
    published_at = TextField(null=True)
    updated_at = TextField()
    version = IntegerField()
    since = TextField()
    author = TextField()
    document = TextField()


DOCUMENT = AsBytes(Post.document)


class PostTag(BaseModel):
    """A tag of a post, with copies of the post's status and time, so that one index covers them."""

    tag = TextField()
    status = TextField()
    post_id = IntegerField()
    published_at = TextField(null=True)
    name = TextField()

    class Meta:
        primary_key = CompositeKey("tag", "status", "post_id")


class Schedule(BaseModel):
    """The time at which a scheduled post will be published."""

    post_id = IntegerField(primary_key=True)
    published_at = TextField()
