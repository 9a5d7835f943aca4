"""The file, the disk and the connection of a running database."""

import shutil
from contextlib import closing

import pytest

from blogapi.storage.database import Database
from blogapi.storage.errors import Unavailable
from blogapi.storage.reserve import Reserve
from blogapi.storage.sqlite import MIN_FREE_BYTES, Sqlite
from tests.storage.sqlite.conftest import add


def test_a_replaced_database_file_gets_no_more_writes(database, path, caplog):
    path.rename(path.with_name("away.db"))
    path.write_bytes(b"")
    for _ in range(2):
        with pytest.raises(Unavailable, match="another file"):
            database.write(add, "a")
    path.unlink()
    path.with_name("away.db").rename(path)
    with pytest.raises(Unavailable, match="another file"):
        database.check()
    assert len(caplog.records) == 1


def test_the_reserve_is_free_only_while_something_is_deleted(small_disk):
    def taken():
        return before - shutil.disk_usage(small_disk).free

    before = shutil.disk_usage(small_disk).free
    space = Reserve(small_disk)
    with space.released(room=0):  # Nothing is kept yet.
        pass
    assert taken() == 0
    space.keep(room=0)
    kept = taken()
    assert kept > 0
    with space.released(room=0):
        assert taken() == 0
    assert taken() == kept
    space.close()
    assert taken() == 0


def test_a_lost_connection_is_replaced_by_one_that_is_durable(database, engine, pragma, slugs):
    engine.close()
    database.write(add, "a")
    assert slugs() == ["a"]
    assert [pragma(name) for name in ("journal_mode", "synchronous", "busy_timeout")] == ["wal", 2, 0]


def test_the_disk_behind_a_link_must_have_space(path, small_disk):
    path.symlink_to(small_disk / "blog.db")
    with closing(Sqlite(path)) as engine:
        engine.open()
        database = Database(engine)
        database.check()
        (small_disk / "ballast").write_bytes(b"x" * (shutil.disk_usage(small_disk).free - MIN_FREE_BYTES + 4096))
        with pytest.raises(Unavailable, match="the disk is full"):
            database.check()


def test_after_a_write_on_a_full_disk_the_check_tries_another(database, engine):
    engine.connection.execute("PRAGMA max_page_count = 1")
    with pytest.raises(Unavailable, match="full"):
        database.write(add, "a" * 1_000_000)
    engine.connection.execute("PRAGMA query_only = ON")
    with pytest.raises(Unavailable, match="readonly"):
        database.check()
    engine.connection.execute("PRAGMA query_only = OFF")
    database.check()


def test_a_deleted_wal_is_logged_as_saved_only_when_it_is(database, path, other, caplog):
    database.write(add, "a")
    other.execute("BEGIN")
    other.execute("SELECT * FROM post").fetchall()
    path.with_name("blog.db-wal").unlink()
    with pytest.raises(Unavailable, match="while another program was using it"):
        database.check()
    assert caplog.messages == []
    other.close()
    database.check()
    assert caplog.messages == ["the -wal file of the database was deleted; its contents were written into the database"]
