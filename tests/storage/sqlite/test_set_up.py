"""Setting up a database file, and files that blogapi leaves alone."""

import os
import sqlite3
import sys
import threading
from contextlib import closing
from functools import partial

import pytest

from blogapi.storage.database import Database
from blogapi.storage.errors import Unavailable
from blogapi.storage.setup import APPLICATION_ID
from blogapi.storage.sqlite import Sqlite
from blogapi.storage.upgrades import VERSION
from tests.databases import execute


def set_up(path):
    """Open a database once; return whether it was set up."""
    engine = Sqlite(path)
    created = engine.open()
    engine.close()
    return created


@pytest.mark.parametrize("exists", [True, False])
def test_a_missing_or_empty_database_is_set_up(path, exists):
    if exists:
        path.touch()
    assert set_up(path) is True
    assert execute(path, "SELECT * FROM pragma_application_id, pragma_user_version") == [(APPLICATION_ID, VERSION)]
    assert set_up(path) is False


def test_connecting_waits_for_a_program_that_closes_the_database_in_exclusive_mode(engine, path):
    engine.close()
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("PRAGMA locking_mode = EXCLUSIVE")
    other.execute("BEGIN IMMEDIATE")
    closes = threading.Timer(0.1, other.close)
    closes.start()
    with closing(engine.another(0)) as connected:
        Database(connected).check()
    closes.join()


@pytest.mark.parametrize(
    "mark",
    [
        "CREATE TABLE theirs (a)",
        "PRAGMA application_id = 7",
        "PRAGMA user_version = 3",
        f"PRAGMA application_id = {APPLICATION_ID}",
    ],
)
def test_a_database_of_another_program_is_left_alone(path, mark):
    execute(path, mark)
    before = path.read_bytes()
    with pytest.raises(Unavailable, match="it belongs to another program"):
        set_up(path)
    assert path.read_bytes() == before


def test_a_file_that_is_not_a_database_is_left_alone(path):
    path.write_text("Dear diary," * 100)
    with pytest.raises(Unavailable, match=f"cannot use the database {path}: file is not a database"):
        set_up(path)
    assert path.read_text() == "Dear diary," * 100


def test_a_sqlite_without_fts5_is_reported_and_leaves_no_file(path, monkeypatch):
    class WithoutFts5(sqlite3.Connection):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.set_authorizer(lambda action, _, name, *rest: sqlite3.SQLITE_DENY if name == "fts5_source_id" else 0)

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=WithoutFts5))
    with pytest.raises(Unavailable, match=f"lacks FTS5, which the search needs; {os.path.realpath(sys.executable)} "):
        set_up(path)
    assert not path.exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            f"PRAGMA user_version = {VERSION + 2}",
            f"its version {VERSION + 2} is newer than this program's {VERSION}; "
            "upgrade the program, or restore the backup from before the upgrade",
        ),
        (f"PRAGMA user_version = {VERSION + 1}", f"its version {VERSION + 1} is newer"),
        ("PRAGMA user_version = 4; ALTER TABLE post_tag DROP COLUMN name", "export its posts with the old program"),
        ("ALTER TABLE post_tag RENAME name TO spelling", "export its posts with the old program, and import them with"),
    ],
    ids=["newer", "next", "older", "unreleased"],
)
def test_a_database_of_another_version_is_refused_and_left_alone(path, change, message):
    set_up(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(change)
    schema = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY name"
    before = execute(path, schema)
    with pytest.raises(Unavailable, match=message):
        set_up(path)
    assert execute(path, schema) == before
