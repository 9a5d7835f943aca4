"""The samples: databases written by releases, and what they must contain after an upgrade or a copy."""

import gzip
import json
from contextlib import contextmanager
from functools import partial
from hashlib import sha256

from blogapi import create_app
from blogapi.config import Config
from blogapi.storage.models import DraftCopy, Idempotency, Webhook
from blogapi.storage.upgrades import VERSION
from blogapi.wings.history import undo
from tests.blogs import SAMPLES
from tests.databases import opened
from tests.invariants import sound_posts
from tests.make_sample import KEY

NOW = 1_796_000_000  # 2026-11-30, after all that is in the samples
# The releases of the samples, and the versions of their tables
RELEASES = {"1.0.0": 1, "1.1.1": 5, "1.2.0": 6}
RELEASES["1.2.1"] = 7  # It has rows in every table, posts and texts in every state, and a due post.
RELEASES["1.3.0"] = 11  # It has proposals, one of a post in the trash.
UNRELEASED = {"10": 10}  # Its table of unsaved text has proposals that wait, and an applied one.
# The summaries of what a client sees
SEEN = {
    "1.0.0": ("Post 1, Changed", "Post 1, Changed", "Travel 2", "", None),
    "1.1.1": (
        "Post 9, Autosaved, Post 7, Post 5, Post 4, Post 3, Post 1, Changed",
        "Post 9, Post 5, Post 4, Post 3, Post 1, Changed",
        *("Diary 1, Travel 6", "red.png", 30),
    ),
    "1.2.0": (
        *["Many, Hidden again, Given later, Imported, Twice, Dated draft, Dated, Published, Post 1"] * 2,
        *("Travel 1", "", 30),
    ),
    "1.2.1": (*["Saved here, Pictured, Due, Archived, Scheduled, Draft, Post 1"] * 2, *("Travel 2", "red.png", 30)),
    "1.3.0": ("Draft, Post 1", "Draft", "Rye 1, Travel 2", "", 30),
}
for path in SAMPLES.glob("blog-*.json"):  # made by tests/make_sample.py
    version = int(path.stem.removeprefix("blog-"))
    if version < VERSION:
        RELEASES[f"version {version}"] = version
        SEEN[f"version {version}"] = json.loads(path.read_bytes())
OLDER = "it was written by an older version of this program; to upgrade it, run blogapi init, or start the server"


def unpacked(version, folder):
    """Write the sample with this version of the tables; return its path."""
    path = folder / "old.db"
    path.write_bytes(gzip.decompress((SAMPLES / f"blog-{version}.db.gz").read_bytes()))
    return path


@contextmanager
def client_of(database):
    """Serve a database, which is upgraded first, to a client with the key of the samples."""
    app = create_app(Config(database=database), clock=lambda: NOW)
    client = app.test_client()
    client.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {KEY}"
    yield client
    app.extensions["blogapi"].database.close()


def upgrade(path):
    """Open a database, which upgrades it."""
    with opened(path):
        pass


def proposals_are_kept(path):
    """Assert that a database made from the sample of version 10 has its proposals, and knows what was applied."""
    with client_of(path) as client:
        waiting = client.get("/v1/proposals").json
        assert [(each["id"], each["by"], each["changes"]) for each in waiting] == [
            ("777299621214220732", "tests", {"excerpt": "Waiting, too"}),
            ("992469294287953809", "agent", {"content": "Waiting", "tags": []}),
        ]
        assert client.post("/v1/trash/3/restore").status_code == 200
        assert len(client.get("/v1/posts/3/proposals").json) == 1
        assert client.post("/v1/posts/2/proposals/992469294287953809/apply").json["content"] == "Waiting"
    with opened(path) as database:
        undone = undo.undo(database, "2026-11-20T12:11:00Z", "agent")
        done = {1: "changed back", 2: "changed back", 3: "withdrawn"}
        assert {each.post_id: each.action for each in undone} == done
        copies = database.rows(DraftCopy.select(DraftCopy.state, DraftCopy.title).order_by(DraftCopy.title))
        assert [*copies] == [("open", "New"), ("open", "Unsaved")]


# The webhooks in the samples: the end of the URL, the number of events, and the options
WEBHOOKS = {
    "1.1.1": [("", 7, '{"X-Token": "secret"}', 30, "event")],
    "1.2.0": [("", 1, "{}", 30, "event")],
    "1.2.1": [("", 7, '{"X-Token": "abc"}', 30, "event"), ("other", 1, "{}", 0, "event")],
    "1.3.0": [("", 7, "{}", 30, "event")],
}


def webhooks_are_kept(path, release):
    """Assert that a database made from the sample of a release has its webhooks, and that they can be changed."""
    with client_of(path) as client:
        count = len(client.get("/v1/webhooks").json)
        with opened(path) as database:
            options = Webhook.headers, Webhook.after_seconds, Webhook.body
            rows = database.rows(Webhook.select(Webhook.url, Webhook.events, *options).order_by(Webhook.id))
            webhooks = [(url.split("/")[3], len(json.loads(events)), *rest) for url, events, *rest in rows]
        assert webhooks == WEBHOOKS[release]
        changed = client.patch(f"/v1/webhooks/{count}", json={"body": "dispatch", "headers": {"X-A": "b"}}).json
        assert (changed["body"], changed["header_names"]) == ("dispatch", ["X-A"])


def what_waits_is_kept(path):
    """Assert that proposals, unsaved text and Idempotency-Keys of the sample of 1.3.0 refer to the same as before."""
    with client_of(path) as client:
        etags = [client.get(f"/v1/posts/{number}").headers["ETag"].strip('"') for number in (1, 3)]
        first, second = client.get("/v1/proposals").json
        assert {first["base"], second["base"]} == {etags[0]}
        assert client.patch("/v1/tags/rye", json={"name": "Bread"}).status_code == 200
        changes = {"content": "Waiting, with grüße", "tags": ["Bread", "New"], "params": {"tags": ["Rye"]}}
        waiting = [each["changes"] for each in client.get("/v1/proposals").json]
        assert waiting == [{"excerpt": "Waiting, too", "tags": []}, changes]
        same = client.post("/v1/posts/1/proposals", json=first["changes"])
        assert (same.status_code, same.json["id"]) == (200, first["id"])
        new = client.post("/v1/posts/1/proposals", json={"title": "New"}).json
        assert int(new["id"]) > 559097061351675825  # the highest one in the sample, of a post in the trash
        assert client.post(f"/v1/posts/1/proposals/{second['id']}/apply").json["content"] == changes["content"]
        assert client.post("/v1/trash/4/restore").status_code == 200
        assert client.get("/v1/posts/4/proposals").json[0]["changes"] == {"title": "Waiting in the trash"}
    with opened(path) as database:
        rows = database.rows
        assert {*rows(DraftCopy.select(DraftCopy.post_id, DraftCopy.etag))} == {(1, "0" * 32), (3, etags[1])}
        assert [*rows(Idempotency.select(Idempotency.digest))] == [(sha256(b"tests").digest(),)]


def unsaved_text_is_kept(path):
    """Assert that a database made from the sample of 1.2.1 has the unsaved text, with one current copy a draft."""
    with opened(path) as database:
        columns = DraftCopy.draft, DraftCopy.post_id, DraftCopy.state, DraftCopy.fields
        rows = {
            (draft, post_id, state, json.loads(fields)["content"])
            for draft, post_id, state, fields in database.rows(DraftCopy.select(*columns))
        }
    assert rows == {
        ("3", 3, "open", "one"),
        ("3", 3, "aside", "two"),
        ("aZA8JBJoMWhqnzpy49z4GnXbY_tZXMIrnQbQqKaTcdg", None, "open", "continued"),
        ("1", 1, "discarded", "thrown away"),
    }


def due_posts_are_published(path):
    """Assert that the first read of a database made from the sample of 1.2.1 publishes its due post."""
    with client_of(path) as client:
        found = client.get("/v1/posts?status=published").json
        assert [post["title"] for post in found] == ["Pictured", "Due", "Post 1"]
        assert [post["title"] for post in client.get("/v1/posts?status=scheduled").json] == ["Scheduled"]
    sound_posts(path)


# A release, a check of a database that was made from its sample, and the tables that this is about
KEPT = [
    ("10", proposals_are_kept, ["draft_copy"]),
    ("1.3.0", what_waits_is_kept, ["draft_copy", "proposal", "idempotency"]),
    ("1.2.1", due_posts_are_published, []),
    *((release, partial(webhooks_are_kept, release=release), ["webhook", "webhook_options"]) for release in WEBHOOKS),
]
