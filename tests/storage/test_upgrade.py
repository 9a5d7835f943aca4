"""Upgrading databases written by earlier releases."""

import multiprocessing
import os
import re
import signal
import sqlite3
from contextlib import closing
from itertools import count

import psycopg
import pytest

from blogapi.copy import backup, copy
from blogapi.engines import engine_for
from blogapi.storage import keys
from blogapi.storage.errors import Unavailable
from blogapi.storage.setup import SqliteContents
from blogapi.storage.upgrades import VERSION
from tests import make_sample
from tests.databases import execute, opened
from tests.invariants import sound_posts
from tests.postgresql.programs import PROGRAMS
from tests.service import add_key
from tests.storage import releases
from tests.storage.releases import RELEASES, UNRELEASED, client_of, unpacked, upgrade


@pytest.fixture(params=RELEASES)
def release(request):
    return request.param


@pytest.fixture
def old(release, tmp_path):
    """A database of a release."""
    return unpacked((RELEASES | UNRELEASED)[release], tmp_path)


HOW = pytest.mark.parametrize("how", ["upgraded", "copied"])


def renewed(how, old, tmp_path):
    """Return an old database, which opening upgrades, or a copy of it."""
    if how == "upgraded":
        return old
    copy(engine_for(old), engine_for(tmp_path / "copy.db"))
    return tmp_path / "copy.db"


def definitions(path):
    """The definitions of all tables and indexes, without comments, which an upgrade does not change."""
    found = execute(path, "SELECT type, name, sql FROM sqlite_master ORDER BY name")
    return [(kind, name, re.sub(r"\s+", "", re.sub("--.*", "", sql or ""))) for kind, name, sql in found]


def rows_of(path, table):
    """The rows of a table, without former slugs, some of which an upgrade drops."""
    return [re.sub(r',"former_slugs":\[.*?]', "", str(row)) for row in execute(path, f"SELECT * FROM {table}")]


def answers(database):
    """What a client of the sample sees."""
    with client_of(database) as client:
        return make_sample.answers(client)


def test_opening_an_old_database_upgrades_it_and_loses_nothing(old, release, tmp_path):
    tables = [name for (name,) in execute(old, "SELECT name FROM sqlite_master WHERE type = 'table'")]
    # A key has the day of its last use; what else changed has tests of its own.
    changed = ["schedule", "search", "recent", "session", "tag", "api_key", "sqlite_sequence", "former_slug"]
    changed += ["proposal", "draft_copy", "idempotency", "webhook"]
    changed += ["post", "event", "delivery"] if release == "1.2.1" else []  # The first request publishes its due post.
    before = {name: rows_of(old, name) for name in tables if not name.startswith(tuple(changed))}
    seen = answers(old)
    _, revision, trash, _, _, webhooks, _ = seen
    assert (revision["title"], trash[0]["post"]["title"]) == ("Post 0", "Post 2")
    assert make_sample.summary(seen) == [*releases.SEEN[release]]
    assert webhooks[0]["url"] == "https://8.8.8.8/"
    assert {name: rows_of(old, name) for name in before} == before
    new = tmp_path / "new.db"
    upgrade(new)
    assert definitions(old) == definitions(new)
    assert execute(old, "PRAGMA user_version") == [(VERSION,)]
    with opened(old) as database:
        add_key(database, "new", "drafts-only")
        assert {"tests", "new"} <= {key.name for key in keys.listing(database)}


def test_a_command_that_may_not_upgrade_refuses_an_old_database(old, release):
    with pytest.raises(Unavailable, match=releases.OLDER):
        engine_for(old).open(create=False)
    assert execute(old, "PRAGMA user_version") == [(RELEASES[release],)]


def contents(path):
    """The version, the tables, and the rows of the tables that do not belong to the search."""
    schema = "SELECT user_version, type, name, sql FROM sqlite_master, pragma_user_version ORDER BY name"
    objects = execute(path, schema)
    tables = [name for _, kind, name, _ in objects if kind == "table" and not name.startswith("search")]
    return objects, [execute(path, f"SELECT * FROM {name}") for name in tables]


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


@pytest.mark.parametrize("release", [*RELEASES, *UNRELEASED])
def test_an_upgrade_that_fails_at_any_statement_changes_nothing(old, release, scale):
    before = old.read_bytes()
    # The upgrade from 1.0.0 has the statements of all others.
    for statement in count(1, 1 if scale > 1 else 3 if release == "1.0.0" else 7):
        try:
            upgrade_until(statement, old)
            break
        except sqlite3.OperationalError:
            assert old.read_bytes() == before, statement
    assert statement > 10
    assert execute(old, "PRAGMA user_version") == [(VERSION,)]


@pytest.mark.slow
def test_a_database_whose_upgrade_was_killed_is_the_old_one(old, scale):
    before, context = contents(old), multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    for statement in count(5, 20 if scale == 1 else 5):
        child = context.Process(target=upgrade_until, args=[statement, old, Killed])
        child.start(), child.join()
        if child.exitcode == 0:
            break
        assert (child.exitcode, contents(old)) == (-signal.SIGKILL, before), statement
    assert statement > 10
    assert execute(old, "PRAGMA user_version") == [(VERSION,)]


@pytest.mark.parametrize(("release", "check"), [(release, check) for release, check, _ in releases.KEPT])
def test_an_upgrade_or_a_copy_keeps_webhooks_and_pending_work_and_publishes_due_posts(old, release, check, tmp_path):
    if release in RELEASES:
        check(renewed("copied", old, tmp_path))
    check(old)


@pytest.mark.parametrize("release", ["1.2.1"])
@HOW
def test_an_upgrade_keeps_unsaved_text(old, how, tmp_path):
    # The other text of post 3 is open, too, but older.
    execute(old, "UPDATE draft_copy SET state = 'open', saved_at = '2026-11-26' WHERE state = 'aside'")
    releases.unsaved_text_is_kept(renewed(how, old, tmp_path))


def test_an_old_database_can_be_backed_up_and_copied_without_an_upgrade(old, tmp_path):
    backup(engine_for(old), tmp_path / "backup.db")
    copy(engine_for(old), engine_for(tmp_path / "copy.db"))
    assert answers(tmp_path / "backup.db") == answers(tmp_path / "copy.db") == answers(old)


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


@pytest.mark.parametrize("release", ["1.2.0"])
@HOW
def test_an_upgrade_drops_former_slugs_that_were_never_public(old, how, tmp_path, caplog):
    assert former_slugs(renewed(how, old, tmp_path)) == (FORMER, [404, 404, 404], ["was-public"])
    assert [message.partition(": no known")[0] for message in caplog.messages] == [
        "post 3: dropped its former slug layoffs, which others may have seen",
        "post 5: dropped its former slug hidden, which others may have seen",
        "post 9: dropped its former slug trash-secret, which others may have seen",
        "post 11: dropped its former slug many-0, which others may have seen",
    ]


@pytest.mark.slow
@pytest.mark.skipif(not PROGRAMS, reason="PostgreSQL's programs are not there")
@pytest.mark.parametrize("release", ["1.2.0"])
def test_a_copy_to_postgresql_drops_them_too(old, url):
    with psycopg.connect(url) as connection:
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    copy(engine_for(old), engine_for(url))
    assert former_slugs(url) == (FORMER, [404, 404, 404], ["was-public"])


def test_the_sample_of_the_next_release_fills_all_tables_but_a_few(tmp_path):
    make_sample.fill(tmp_path / "blog.db")
    missing = make_sample.empty_tables(tmp_path / "blog.db") - make_sample.EMPTY
    assert not missing, "add a request that fills them to REQUESTS in tests/make_sample.py"


def test_an_upgrade_counts_images_and_unfinished_uploads(tmp_path):
    paths = [unpacked(2, tmp_path), tmp_path / "copy.db"]
    copy(engine_for(paths[0]), engine_for(paths[1]))
    upgrade(paths[0])
    for path in paths:
        ((upload, size),) = execute(path, "SELECT upload, bytes FROM image")
        (unfinished,) = execute(path, f"SELECT DISTINCT upload FROM image_part WHERE upload <> '{upload}'")
        assert execute(path, "SELECT bytes FROM image_total") == [(size,)]
        assert execute(path, "SELECT name FROM upload") == [unfinished]


def test_an_upgrade_keeps_the_ids_of_deleted_posts(tmp_path):
    paths = [unpacked(4, tmp_path), tmp_path / "copy.db"]  # Its third post was deleted for good.
    copy(engine_for(paths[0]), engine_for(paths[1]))
    for path in paths:
        with client_of(path) as client:
            assert [post["title"] for post in client.get("/v1/posts?q=words").json] == ["Changed"]
            assert client.post("/v1/posts", json={"title": "New", "content": "B"}).json["id"] == "4"
        sound_posts(path)


@pytest.mark.parametrize("release", ["1.1.1"])
def test_a_file_that_lacks_a_table_of_its_version_is_refused(old):
    execute(old, "DROP TABLE image_total")
    before = contents(old)
    with pytest.raises(Unavailable, match="its version is 5, but it has no table image_total"):
        engine_for(old).open()
    assert contents(old) == before
