"""Build Peewee models from schema.sql: those of the core's tables, and those that several wings share."""

import re
from typing import Any, NamedTuple

from peewee import AutoField, BlobField, CompositeKey, IntegerField, Model, TextField

from blogapi.storage.engine import AsBytes, Compiled
from blogapi.storage.setup import SCHEMA

FULL, READ_ONLY, PUBLISHED_ONLY, DRAFTS_ONLY = "full", "read-only", "published-only", "drafts-only"
SCOPES = (FULL, READ_ONLY, PUBLISHED_ONLY, DRAFTS_ONLY)
# The authors of changes that are made without a key. Only version 1.1 wrote "autosave".
OWNER_NAME = "settings"  # the former name of the owner's page
AUTHORS = (OWNER_NAME, "autosave", "import", "rebase", "undo")
MAX_ID = 2**63 - 1


class Author(NamedTuple):
    """The author of a change, as recorded in the history."""

    name: str  # the name of a key, or one of AUTHORS
    drafts_only: bool = False  # whether the author is a key that may only write drafts


OWNER = Author(OWNER_NAME)


class BaseModel(Model):
    class Meta:
        legacy_table_names = False


DEFINITIONS = dict(re.findall(r"^CREATE TABLE (\w+) \(\n(.*?)^\)", SCHEMA, re.MULTILINE | re.DOTALL))
COLUMN = re.compile(r"    (\w+) (TEXT|INTEGER|BLOB)\b( NOT NULL)?( PRIMARY KEY)?( UNIQUE)?")
KEY = re.compile(r"    PRIMARY KEY \((.+)\)")  # a primary key of several columns
FIELD_TYPES = {"TEXT": TextField, "INTEGER": IntegerField, "BLOB": BlobField}


def model(table: str) -> Any:
    """Build the Peewee model of a table from its definition in schema.sql, where each column has its own line.

    A line consists of the name, the type (TEXT, INTEGER or BLOB), and then NOT NULL, PRIMARY KEY and UNIQUE in that
    order, where they apply.
    """
    attributes: dict[str, Any] = {}
    for line in DEFINITIONS[table].splitlines():
        if keys := KEY.match(line):
            attributes["Meta"] = type("Meta", (), {"primary_key": CompositeKey(*keys[1].split(", "))})
            continue
        column = COLUMN.match(line)
        if column is None:
            raise ValueError(f"schema.sql: the table {table} has a line that is not a column: {line}")
        name, kind, required, key, unique = column.groups()
        field = AutoField if (name, kind) == ("id", "INTEGER") else FIELD_TYPES[kind]
        attributes[name] = field(null=not required, primary_key=bool(key), unique=bool(unique))
    return type(table.title().replace("_", ""), (BaseModel,), attributes)


ApiKey = model("api_key")
Backup = model("backup")
Idempotency = model("idempotency")
DraftCopy = model("draft_copy")
Proposal = model("proposal")
AppliedProposal = model("applied_proposal")
Post = model("post")
FormerSlug = model("former_slug")
PostTag = model("post_tag")
Revision = model("revision")
Retagging = model("retagging")
Purge = model("purge")
Webhook = model("webhook")

DOCUMENT = AsBytes(Post.document)
# Every change to a post reads these rows, so PostgreSQL fetches them in the same round trip as the lock.
SELECT_WEBHOOKS = Compiled(Webhook.select(Webhook.id, Webhook.events, Webhook.after_seconds).where(Webhook.active == 1))
