"""The database: set-up, upgrades, what is left alone, and writes."""

import json
import sqlite3
import threading
from pathlib import Path

import pytest
from peewee import DatabaseError, OperationalError

from blogapi import create_app, db
from blogapi.config import Config
from blogapi.db import SCHEMA, VERSION, Database, database
from blogapi.fold import fold
from blogapi.models import ApiKey, BaseModel, Delivery, Post, Tag, Webhook


def contents(path):
    connection = sqlite3.connect(path)
    try:
        return connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name").fetchall()
    finally:
        connection.close()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "blog.db"


@pytest.fixture
def opened(path):
    database.open(path)
    yield database
    database.close()


@pytest.fixture
def other(path):
    """Another program's connection to the database."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=0)
    yield connection
    connection.close()


# Set-up


@pytest.mark.parametrize("exists", [True, False])
def test_a_missing_or_empty_database_is_set_up(path, exists):
    if exists:
        path.touch()
    assert database.open(path) is True
    assert (database.application_id, database.user_version) == (db.APPLICATION_ID, VERSION)
    database.close()
    assert database.open(path) is False
    database.close()


def test_the_connection_is_durable(opened):
    pragmas = [opened.pragma(name) for name in ("journal_mode", "synchronous", "busy_timeout")]
    assert pragmas == ["wal", 2, 0]


@pytest.mark.parametrize("model", BaseModel.__subclasses__())
def test_the_models_mirror_the_schema(opened, model):
    columns = opened.get_columns(model._meta.table_name)
    assert [(column.name, column.null) for column in columns] == [
        (field.column_name, field.null) for field in model._meta.sorted_fields
    ]
    keys = opened.get_primary_keys(model._meta.table_name)
    assert keys == [field.column_name for field in model._meta.get_primary_keys()]


@pytest.mark.parametrize(
    "mark",
    [
        "CREATE TABLE theirs (a)",
        "PRAGMA application_id = 7",
        "PRAGMA user_version = 3",
        f"PRAGMA application_id = {db.APPLICATION_ID}",
    ],
)
def test_a_database_of_another_program_is_left_alone(path, mark):
    sqlite3.connect(path).execute(mark).connection.close()
    before = path.read_bytes()
    with pytest.raises(DatabaseError, match="it belongs to another program"):
        database.open(path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_left_alone(path):
    path.write_text("Dear diary," * 100)
    with pytest.raises(DatabaseError, match=f"cannot use the database {path}: file is not a database"):
        database.open(path)
    assert path.read_text() == "Dear diary," * 100


def test_a_folder_is_no_database(tmp_path):
    with pytest.raises(DatabaseError, match="Is a directory"):
        database.open(tmp_path)


def test_a_newer_database_is_refused(path):
    database.open(path)
    database.user_version = VERSION + 1
    database.close()
    with pytest.raises(DatabaseError, match=f"its version {VERSION + 1} is newer than this program's {VERSION}"):
        database.open(path)


def test_an_older_database_is_brought_up_to_date(path, monkeypatch):
    database.open(path)
    database.close()
    monkeypatch.setattr(db, "VERSION", VERSION + 2)
    monkeypatch.setitem(db.UPGRADES, VERSION, "CREATE TABLE one (a);\nCREATE TABLE two (b);")
    monkeypatch.setitem(db.UPGRADES, VERSION + 1, "DROP TABLE one;")
    assert database.open(path) is False
    assert database.user_version == VERSION + 2
    assert {row[1] for row in contents(path)} >= {"two", "post"}
    database.close()


def test_a_database_of_version_1_is_upgraded_and_keeps_everything(path):
    old = sqlite3.connect(path)
    old.executescript((Path(__file__).parent / "upgrades" / "1.sql").read_text())
    old.execute("INSERT INTO api_key VALUES (x'00', 'mine', 'abcd', '2026-11-20T12:00:00Z', NULL)")
    for number, tags in enumerate((["Go", "Straße"], ["STRASSE"], []), 1):
        document = json.dumps({"id": str(number), "tags": tags}, separators=(",", ":"))
        old.execute("INSERT INTO post VALUES (?, ?, 'draft', ?)", (number, f"slug-{number}", document))
        for tag in tags:
            old.execute("INSERT INTO post_tag VALUES (?, 'draft', ?)", (fold(tag), number))
    old.commit()
    old.close()
    assert database.open(path) is False
    assert Tag.listing() == [{"name": "Go", "posts": 1}, {"name": "STRASSE", "posts": 2}]
    assert [key.name for key in ApiKey.listing()] == ["mine"]
    assert [post.slug for post in Post.select()] == ["slug-1", "slug-2", "slug-3"]
    database.close()


@pytest.mark.parametrize("version", range(1, VERSION))
def test_an_upgraded_database_is_like_a_fresh_one_and_works(path, tmp_path, version):
    old = sqlite3.connect(path)
    old.executescript((Path(__file__).parent / "upgrades" / f"{version}.sql").read_text())
    old.close()
    create_app(Config(database=path))
    Webhook.add("http://a", ["post.created"], "2026-11-20T12:00:00Z")
    Post.add({"title": "A", "content": "B", "status": "draft", "tags": {}}, "2026-11-20T12:00:00Z")
    assert Delivery.select().count() == 1
    database.close()
    database.open(tmp_path / "fresh.db")
    database.close()
    assert contents(path) == contents(tmp_path / "fresh.db")


def test_an_upgrade_that_fails_changes_nothing(path, monkeypatch):
    database.open(path)
    database.close()
    before = contents(path)
    monkeypatch.setattr(db, "VERSION", VERSION + 1)
    monkeypatch.setitem(db.UPGRADES, VERSION, "CREATE TABLE one (a);\nCREATE TABLE post (b);")
    with pytest.raises(DatabaseError, match="already exists"):
        database.open(path)
    assert contents(path) == before


def test_the_schema_says_its_version():
    connection = sqlite3.connect(":memory:")
    connection.executescript(SCHEMA.read_text())
    assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
    assert connection.execute("PRAGMA application_id").fetchone() == (db.APPLICATION_ID,)
    connection.close()


# Writes


def add(slug):
    return lambda: Post.insert(slug=slug, status="draft", document="{}").execute()


def slugs():
    return [post.slug for post in Post.select().order_by(Post.id)]


def test_a_write_is_committed_and_returns_its_result(opened, other):
    assert opened.write(add("a")) == 1
    assert other.execute("SELECT slug FROM post").fetchall() == [("a",)]


def test_an_operation_that_raises_leaves_nothing(opened):
    def operation():
        add("a")()
        raise LookupError("no")

    with pytest.raises(LookupError):
        opened.write(operation)
    assert slugs() == []
    assert opened.write(add("b")) == 1


def test_writes_that_wait_share_a_commit_and_one_that_raises_disturbs_no_other(opened, path):
    """Writes of several threads wait behind a first one, which holds the lock; SQLite is used by one at a time."""
    opened.close()
    together = Database()
    together.connect_params["check_same_thread"] = False
    together.open(path)
    commits = []
    together.connection().set_trace_callback(lambda text: commits.append(text) if text == "COMMIT" else None)
    results = {}

    def insert(slug):
        together.execute_sql("INSERT INTO post (slug, status, document) VALUES (?, 'draft', '{}')", (slug,))
        if slug == "bad":
            raise LookupError(slug)
        return slug

    def write(slug):
        try:
            results[slug] = together.write(lambda: insert(slug))
        except LookupError as error:
            results[slug] = error

    other = sqlite3.connect(opened.database, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    threads = [threading.Thread(target=write, args=(slug,)) for slug in ("a", "bad", "b")]
    for thread in threads:
        thread.start()
    while len(together._writes) < 3:
        pass
    other.execute("COMMIT")
    for thread in threads:
        thread.join(5)
    together.connection().set_trace_callback(None)
    assert commits == ["COMMIT"]
    assert (results["a"], results["b"], type(results["bad"])) == ("a", "b", LookupError)
    assert sorted(row[0] for row in other.execute("SELECT slug FROM post")) == ["a", "b"]
    other.close()
    together.close()
    opened.connect()


def test_a_lock_that_lasts_ends_the_wait_in_time(opened, other, monkeypatch):
    monkeypatch.setattr(db, "BUSY_SECONDS", 0.05)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(OperationalError, match="locked") as caught:
        opened.write(add("a"))
    assert caught.value.retry_after == 1
    other.execute("ROLLBACK")
    opened.write(add("b"))
    assert slugs() == ["b"]


def test_a_file_that_is_moved_away_takes_no_writes_until_it_is_back(opened, path):
    opened.write(add("a"))
    path.rename(path.with_name("away.db"))
    with pytest.raises(OperationalError, match="not at its path"):
        opened.write(add("b"))
    with pytest.raises(OperationalError, match="not at its path"):
        opened.check()
    assert slugs() == ["a"]
    path.with_name("away.db").rename(path)
    opened.check()
    opened.write(add("c"))
    assert slugs() == ["a", "c"]


def test_another_file_in_its_place_takes_no_writes_ever(opened, path, caplog):
    path.rename(path.with_name("away.db"))
    path.write_bytes(b"")
    for _ in range(2):
        with pytest.raises(OperationalError, match="another file"):
            opened.write(add("a"))
    path.unlink()
    path.with_name("away.db").rename(path)
    with pytest.raises(OperationalError, match="another file"):
        opened.check()
    assert len(caplog.records) == 1


def test_a_full_disk_loses_the_write_and_nothing_else(opened):
    opened.write(add("a"))
    opened.pragma("max_page_count", opened.pragma("page_count"))
    with pytest.raises(OperationalError, match="full"):
        opened.write(lambda: [add(f"b{n}" + "x" * 999)() for n in range(99)])
    assert slugs() == ["a"]
    opened.pragma("max_page_count", 1_000_000)
    opened.write(add("c"))
    assert slugs() == ["a", "c"]


def test_a_connection_that_is_lost_is_made_anew(opened):
    opened.close()
    opened.write(add("a"))
    assert slugs() == ["a"]
    assert opened.pragma("synchronous") == 2
