"""Upgrading databases written by earlier releases."""

import gzip
import json
import multiprocessing
import os
import re
import signal
import sqlite3
from contextlib import closing, contextmanager
from hashlib import sha256
from itertools import count

import psycopg
import pytest

from blogapi import create_app
from blogapi.config import Config
from blogapi.engines import engine_for
from blogapi.storage import keys
from blogapi.storage.database import Database
from blogapi.storage.errors import Unavailable
from blogapi.storage.models import DraftCopy, Idempotency, Webhook
from blogapi.storage.setup import SqliteContents
from blogapi.storage.upgrades import VERSION
from blogapi.wings.copy import backup, copy
from blogapi.wings.history import undo
from tests import make_sample
from tests.blogs import SAMPLES
from tests.invariants import sound_posts
from tests.make_sample import KEY
from tests.postgresql.programs import PROGRAMS
from tests.service import add_key

NOW = 1_796_000_000  # 2026-11-30, after all that is in the samples
# The samples of releases, and the versions of their tables
RELEASES = {"1.0.0": ("blog-1.0.0.db.gz", 1), "1.1.1": ("blog-5.db.gz", 5), "1.2.0": ("blog-6.db.gz", 6)}
RELEASES["1.2.1"] = "blog-7.db.gz", 7  # It has rows in every table, posts and texts in every state, and a due post.
RELEASES["1.3.0"] = "blog-11.db.gz", 11  # It has proposals, one of a post in the trash.
DEVELOPMENT = {"10": ("blog-10.db.gz", 10)}  # Its table of unsaved text has proposals that wait, and an applied one.
OLDER = "an older program has written it; to upgrade it, run blogapi init, or start the server"


@pytest.fixture(params=RELEASES)
def release(request):
    return request.param


def unpacked(sample, folder):
    """Write the database of a sample; return its path."""
    path = folder / "old.db"
    path.write_bytes(gzip.decompress((SAMPLES / sample).read_bytes()))
    return path


@pytest.fixture
def old(release, tmp_path):
    """A database of a release."""
    return unpacked((RELEASES | DEVELOPMENT)[release][0], tmp_path)


@contextmanager
def client_of(database):
    """Serve a database, which is upgraded first, to a client with the key of the samples."""
    app = create_app(Config(database=database), clock=lambda: NOW)
    client = app.test_client()
    client.environ_base["HTTP_AUTHORIZATION"] = f"Bearer {KEY}"
    yield client
    app.extensions["blogapi"].database.close()


def query(path, sql):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()


def upgrade(path):
    """Open a database, which upgrades it."""
    engine = engine_for(path)
    engine.open()
    engine.close()


HOW = pytest.mark.parametrize("how", ["upgraded", "copied"])


def renewed(how, old, tmp_path):
    """Return an old database, which is upgraded when it is opened, or a copy of it."""
    if how == "upgraded":
        return old
    copy(engine_for(old), engine_for(tmp_path / "copy.db"))
    return tmp_path / "copy.db"


def definitions(path):
    """The definitions of all tables and indexes, without comments, which an upgrade does not change."""
    found = query(path, "SELECT type, name, sql FROM sqlite_master ORDER BY name")
    return [(kind, name, re.sub(r"\s+", "", re.sub("--.*", "", sql or ""))) for kind, name, sql in found]


def rows_of(path, table):
    """The rows of a table, without former slugs, some of which an upgrade drops."""
    return [re.sub(r',"former_slugs":\[.*?]', "", str(row)) for row in query(path, f"SELECT * FROM {table}")]


def answers(database):
    """What a client of the sample sees."""
    with client_of(database) as client:
        return make_sample.answers(client)


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
    "1.2.1": (
        *["Saved here, Pictured, Due, Archived, Scheduled, Draft, Post 1"] * 2,
        *("Travel 2", "red.png", 30),
    ),
    "1.3.0": ("Draft, Post 1", "Draft", "Rye 1, Travel 2", "", 30),
}
for path in SAMPLES.glob("blog-*.json"):  # made by tests/make_sample.py
    version = int(path.stem.removeprefix("blog-"))
    if version < VERSION:
        RELEASES[f"version {version}"] = f"{path.stem}.db.gz", version
        SEEN[f"version {version}"] = json.loads(path.read_bytes())


def test_opening_an_old_database_upgrades_it_and_loses_nothing(old, release, tmp_path):
    tables = [name for (name,) in query(old, "SELECT name FROM sqlite_master WHERE type = 'table'")]
    # A key has the day of its last use; what else changed has tests of its own.
    changed = ["schedule", "search", "recent", "session", "tag", "api_key", "sqlite_sequence", "former_slug"]
    changed += ["proposal", "draft_copy", "idempotency", "webhook"]
    changed += ["post", "event", "delivery"] if release == "1.2.1" else []  # The first request publishes its due post.
    before = {name: rows_of(old, name) for name in tables if not name.startswith(tuple(changed))}
    seen = answers(old)
    _, revision, trash, _, _, webhooks, _ = seen
    assert (revision["title"], trash[0]["post"]["title"]) == ("Post 0", "Post 2")
    assert make_sample.summary(seen) == [*SEEN[release]]
    assert webhooks[0]["url"] == "https://8.8.8.8/"
    assert {name: rows_of(old, name) for name in before} == before
    new = tmp_path / "new.db"
    upgrade(new)
    assert definitions(old) == definitions(new)
    assert query(old, "PRAGMA user_version") == [(VERSION,)]
    with closing(engine_for(old)) as engine:
        engine.open()
        add_key(Database(engine), "new", "drafts-only")
        assert {"tests", "new"} <= {key.name for key in keys.listing(Database(engine))}


@pytest.mark.parametrize("release", [name for name, (_, version) in RELEASES.items() if version < VERSION])
def test_a_command_that_may_not_upgrade_refuses_an_old_database(old, release):
    with pytest.raises(Unavailable, match=OLDER):
        engine_for(old).open(create=False)
    assert query(old, "PRAGMA user_version") == [(RELEASES[release][1],)]


def contents(path):
    """The version, the tables, and the rows of those that are not of the search."""
    schema = "SELECT user_version, type, name, sql FROM sqlite_master, pragma_user_version ORDER BY name"
    with closing(sqlite3.connect(path)) as connection:
        objects = connection.execute(schema).fetchall()
        tables = [name for _, kind, name, _ in objects if kind == "table" and not name.startswith("search")]
        return objects, [connection.execute(f"SELECT * FROM {name}").fetchall() for name in tables]


class Failing(sqlite3.Connection):
    """A connection that fails at its nth statement."""

    left = 0

    def execute(self, statement, *values):
        self.left -= 1
        if not self.left:
            self.fail()
        return super().execute(statement, *values)

    def fail(self):
        raise sqlite3.OperationalError("database or disk is full")


class Killed(Failing):
    """A connection whose process is killed at its nth statement."""

    def fail(self):
        os.kill(os.getpid(), signal.SIGKILL)


def upgrade_until(statement, path, factory=Failing):
    """Upgrade a database over a connection that fails at its nth statement."""
    with closing(sqlite3.connect(path, isolation_level=None, factory=factory)) as connection:
        connection.left = statement
        SqliteContents(connection).set_up(create=True)


@pytest.mark.parametrize("release", [*RELEASES, "10"])
def test_an_upgrade_that_fails_at_any_statement_changes_nothing(old):
    before = contents(old)
    for statement in count(1):
        try:
            upgrade_until(statement, old)
            break
        except sqlite3.OperationalError:
            assert contents(old) == before, statement
    assert statement > 10
    assert query(old, "PRAGMA user_version") == [(VERSION,)]


@pytest.mark.slow
def test_a_database_whose_upgrade_was_killed_is_the_old_one(old):
    before, context = contents(old), multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    for statement in count(5, 9):
        child = context.Process(target=upgrade_until, args=[statement, old, Killed])
        child.start(), child.join()
        if child.exitcode == 0:
            break
        assert (child.exitcode, contents(old)) == (-signal.SIGKILL, before), statement
    assert statement > 10
    assert query(old, "PRAGMA user_version") == [(VERSION,)]


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
    with closing(engine_for(path)) as engine:
        engine.open()
        undone = undo.undo(Database(engine), "2026-11-20T12:11:00Z", "agent")
        done = {1: "changed back", 2: "changed back", 3: "withdrawn"}
        assert {each.post_id: each.action for each in undone} == done
        copies = Database(engine).rows(DraftCopy.select(DraftCopy.state, DraftCopy.title).order_by(DraftCopy.title))
        assert [*copies] == [("open", "New"), ("open", "Unsaved")]


@pytest.mark.parametrize("release", ["10"])
def test_an_upgrade_moves_proposals_to_tables_of_their_own(old, tmp_path):
    upgrade(old)
    upgrade(tmp_path / "new.db")
    assert definitions(old) == definitions(tmp_path / "new.db")
    proposals_are_kept(old)


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
        with closing(engine_for(path)) as engine:
            engine.open()
            options = Webhook.headers, Webhook.after_seconds, Webhook.body
            rows = Database(engine).rows(Webhook.select(Webhook.url, Webhook.events, *options).order_by(Webhook.id))
            assert [(url.split("/")[3], len(json.loads(events)), *rest) for url, events, *rest in rows] == WEBHOOKS[
                release
            ]
        changed = client.patch(f"/v1/webhooks/{count}", json={"body": "dispatch", "headers": {"X-A": "b"}}).json
        assert (changed["body"], changed["header_names"]) == ("dispatch", ["X-A"])


@pytest.mark.parametrize("release", WEBHOOKS)
def test_an_upgrade_keeps_webhooks_with_their_options(old, release):
    webhooks_are_kept(old, release)


def what_waits_is_kept(path):
    """Assert that proposals, unsaved text and Idempotency-Keys of the sample of 1.3.0 refer to the same as before."""
    with client_of(path) as client:
        etags = [client.get(f"/v1/posts/{number}").headers["ETag"].strip('"') for number in (1, 3)]
        first, second = client.get("/v1/proposals").json
        assert {first["base"], second["base"]} == {etags[0]}
        assert client.patch("/v1/tags/rye", json={"name": "Bread"}).status_code == 200
        changes = {"content": "Waiting, with grüße", "tags": ["Bread", "New"], "params": {"tags": ["Rye"]}}
        assert [each["changes"] for each in client.get("/v1/proposals").json] == [
            {"excerpt": "Waiting, too", "tags": []},
            changes,
        ]
        same = client.post("/v1/posts/1/proposals", json=first["changes"])
        assert (same.status_code, same.json["id"]) == (200, first["id"])
        new = client.post("/v1/posts/1/proposals", json={"title": "New"}).json
        assert int(new["id"]) > 559097061351675825  # the highest one in the sample, of a post in the trash
        assert client.post(f"/v1/posts/1/proposals/{second['id']}/apply").json["content"] == changes["content"]
        assert client.post("/v1/trash/4/restore").status_code == 200
        assert client.get("/v1/posts/4/proposals").json[0]["changes"] == {"title": "Waiting in the trash"}
    with closing(engine_for(path)) as engine:
        engine.open()
        rows = Database(engine).rows
        assert {*rows(DraftCopy.select(DraftCopy.post_id, DraftCopy.etag))} == {(1, "0" * 32), (3, etags[1])}
        assert [*rows(Idempotency.select(Idempotency.digest))] == [(sha256(b"tests").digest(),)]


@pytest.mark.parametrize("release", ["1.3.0"])
@HOW
def test_an_upgrade_to_1_3_1_keeps_what_waits(old, how, tmp_path):
    what_waits_is_kept(renewed(how, old, tmp_path))


def unsaved_text_is_kept(path):
    """Assert that a database made from the sample of 1.2.1 has the unsaved text, with one current copy a draft."""
    with closing(engine_for(path)) as engine:
        engine.open()
        columns = DraftCopy.draft, DraftCopy.post_id, DraftCopy.state, DraftCopy.fields
        rows = {
            (draft, post_id, state, json.loads(fields)["content"])
            for draft, post_id, state, fields in Database(engine).rows(DraftCopy.select(*columns))
        }
    assert rows == {
        ("3", 3, "open", "one"),
        ("3", 3, "aside", "two"),
        ("aZA8JBJoMWhqnzpy49z4GnXbY_tZXMIrnQbQqKaTcdg", None, "open", "continued"),
        ("1", 1, "discarded", "thrown away"),
    }


@pytest.mark.parametrize("release", ["1.2.1"])
@HOW
def test_an_upgrade_keeps_unsaved_text(old, how, tmp_path):
    with closing(sqlite3.connect(old)) as connection, connection:  # The other text of post 3 is open, too, but older.
        connection.execute("UPDATE draft_copy SET state = 'open', saved_at = '2026-11-26' WHERE state = 'aside'")
    unsaved_text_is_kept(renewed(how, old, tmp_path))


def test_an_old_database_can_be_backed_up_and_copied_without_an_upgrade(old, tmp_path):
    backup(engine_for(old), tmp_path / "backup.db")
    copy(engine_for(old), engine_for(tmp_path / "copy.db"))
    assert answers(tmp_path / "backup.db") == answers(tmp_path / "copy.db") == answers(old)


def due_posts_are_published(path):
    """Assert that the first read of a database made from the sample of 1.2.1 publishes its due post."""
    with client_of(path) as client:
        found = client.get("/v1/posts?status=published").json
        assert [post["title"] for post in found] == ["Pictured", "Due", "Post 1"]
        assert [post["title"] for post in client.get("/v1/posts?status=scheduled").json] == ["Scheduled"]
    sound_posts(path)


@pytest.mark.parametrize("release", ["1.2.1"])
def test_the_first_read_after_an_upgrade_publishes_what_is_due(old, tmp_path):
    copy(engine_for(old), engine_for(tmp_path / "copy.db"))
    upgrade(old)
    assert query(old, "SELECT count(*) FROM post WHERE status = 'scheduled'") == [(2,)]
    for path in (old, tmp_path / "copy.db"):
        due_posts_are_published(path)


# The former slugs of the posts in the sample of 1.2.0 after the upgrade, and the slug of a post in the trash
FORMER = {
    2: ["published-old"],  # It was published under it.
    3: None,  # "layoffs", a slug of the draft, which had a date
    4: None,  # "secret-plan", likewise; it is still a draft
    5: ["first"],  # not "hidden", between two publications
    6: ["old-address"],  # It was imported with it.
    7: ["given", "given-later"],  # Somebody wrote the second one.
    8: None,  # It is a draft, and was published as "was-public".
    9: None,  # "trash-secret"; it is in the trash
    11: None,  # "many-0": its oldest versions are gone, so nobody knows.
}


def former_slugs(path):
    """The former slugs of each post, the rows of the table, and the changes of a draft that was published."""
    with client_of(path) as client:
        client.post("/v1/trash/9/restore")
        found = {number: client.get(f"/v1/posts/{number}").json.get("former_slugs") for number in FORMER}
        gone = [client.get(f"/v1/posts/by-slug/{slug}").status_code for slug in ("layoffs", "hidden", "trash-secret")]
        for number in range(1, 5):
            assert "former_slugs" not in client.get(f"/v1/posts/3/revisions/{number}").json
        renamed = client.patch("/v1/posts/8", json={"slug": "new"}).json["former_slugs"]
    sound_posts(path)
    return found, gone, renamed


TOLD = [
    "post 3: dropped its former slug layoffs, which others may have seen",
    "post 5: dropped its former slug hidden, which others may have seen",
    "post 9: dropped its former slug trash-secret, which others may have seen",
    "post 11: dropped its former slug many-0, which others may have seen",
]


@pytest.mark.parametrize("release", ["1.2.0"])
@HOW
def test_an_upgrade_drops_former_slugs_that_were_never_public(old, how, tmp_path, caplog):
    assert former_slugs(renewed(how, old, tmp_path)) == (FORMER, [404, 404, 404], ["was-public"])
    assert [message.partition(": no known")[0] for message in caplog.messages] == TOLD


@pytest.mark.slow
@pytest.mark.skipif(not PROGRAMS, reason="PostgreSQL's programs are not there")
@pytest.mark.parametrize("release", ["1.2.0"])
def test_a_copy_to_postgresql_drops_them_too(old, url):
    with psycopg.connect(url) as connection:
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    copy(engine_for(old), engine_for(url))
    assert former_slugs(url) == (FORMER, [404, 404, 404], ["was-public"])


def test_a_sample_of_the_next_release_has_rows_in_all_tables_but_some(tmp_path):
    make_sample.fill(tmp_path / "blog.db")
    missing = make_sample.empty_tables(tmp_path / "blog.db") - make_sample.EMPTY
    assert not missing, "add a request that fills them to REQUESTS in tests/make_sample.py"


def test_an_upgrade_counts_images_and_unfinished_uploads(tmp_path):
    paths = [unpacked("blog-2.db.gz", tmp_path), tmp_path / "copy.db"]
    copy(engine_for(paths[0]), engine_for(paths[1]))
    upgrade(paths[0])
    for path in paths:
        ((upload, size),) = query(path, "SELECT upload, bytes FROM image")
        (unfinished,) = query(path, f"SELECT DISTINCT upload FROM image_part WHERE upload <> '{upload}'")
        assert query(path, "SELECT bytes FROM image_total") == [(size,)]
        assert query(path, "SELECT name FROM upload") == [unfinished]


def test_an_upgrade_keeps_the_ids_of_deleted_posts(tmp_path):
    paths = [unpacked("blog-4.db.gz", tmp_path), tmp_path / "copy.db"]  # Its third post was deleted for good.
    copy(engine_for(paths[0]), engine_for(paths[1]))
    for path in paths:
        with client_of(path) as client:
            assert [post["title"] for post in client.get("/v1/posts?q=words").json] == ["Changed"]
            assert client.post("/v1/posts", json={"title": "New", "content": "B"}).json["id"] == "4"
        sound_posts(path)


@pytest.mark.parametrize("release", ["1.1.1"])
def test_a_file_that_lacks_a_table_of_its_version_is_refused(old):
    with closing(sqlite3.connect(old)) as connection:
        connection.execute("DROP TABLE image_total")
    before = contents(old)
    with pytest.raises(Unavailable, match="its version is 5, but it has no table image_total"):
        engine_for(old).open()
    assert contents(old) == before
