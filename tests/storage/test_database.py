"""Writes: transactions, shared commits, threads, and files that go away."""

import sqlite3
import subprocess
import sys
import threading

import pytest

from blogapi.loop import Loop
from blogapi.storage.engine import Database
from blogapi.storage.errors import Unavailable
from blogapi.storage.models import Post
from blogapi.storage.sqlite import Sqlite

EARLY, LATE = "2020-01-01T00:00:00Z", "2099-01-01T00:00:00Z"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "blog.db"


@pytest.fixture
def engine(path):
    engine = Sqlite(path)
    engine.open()
    yield engine
    engine.close()


@pytest.fixture
def database(engine):
    return Database(engine)


@pytest.fixture
def pragma(engine):
    return lambda text: engine.connection.execute(f"PRAGMA {text}").fetchone()[0]


@pytest.fixture
def other(engine, path):
    """Another program's connection to the database."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=0)
    yield connection
    connection.close()


# Writes


def add(tx, slug):
    return tx.insert(Post.insert(slug=slug, status="draft", document="{}"))


@pytest.fixture
def slugs(database):
    return lambda: [slug for (slug,) in database.rows(Post.select(Post.slug).order_by(Post.id))]


def test_a_write_is_committed_and_returns_its_result(database, other):
    assert database.write(add, "a") == 1
    assert other.execute("SELECT slug FROM post").fetchall() == [("a",)]


def test_an_operation_that_raises_leaves_nothing(database, slugs):
    def operation(tx):
        add(tx, "a")
        raise LookupError("no")

    with pytest.raises(LookupError):
        database.write(operation)
    assert slugs() == []
    assert database.write(add, "b") == 1


def test_a_write_is_dated_when_it_has_the_lock_and_not_when_it_was_asked_for(engine, other):
    now = 1000.0
    other.execute("BEGIN IMMEDIATE")
    database = Database(engine, lambda: now)
    written = []
    writer = threading.Thread(target=lambda: written.append(database.write(lambda tx: tx.now)))
    writer.start()
    now = 2000.0
    other.execute("COMMIT")
    writer.join()
    assert written == ["1970-01-01T00:33:20Z"]


def write_together(database, other, operations):
    """Let operations wait for the same transaction; return results or errors by name, and the number of commits."""
    commits, outcomes = [], {}

    def write(name, operation):
        try:
            outcomes[name] = database.write(operation)
        except Exception as error:
            outcomes[name] = error

    database.engine.connection.set_trace_callback(lambda text: commits.append(text) if text == "COMMIT" else None)
    other.execute("BEGIN IMMEDIATE")
    threads = [threading.Thread(target=write, args=item) for item in operations.items()]
    for thread in threads:
        thread.start()
    while len(database._group.waiting) < len(operations):
        pass
    other.execute("COMMIT")
    for thread in threads:
        thread.join(5)
    database.engine.connection.set_trace_callback(None)
    return outcomes, len(commits)


def test_writes_that_wait_share_a_commit_and_one_that_raises_disturbs_no_other(database, other, slugs):
    def bad(tx):
        add(tx, "bad")
        raise LookupError("bad")

    operations = {"a": lambda tx: add(tx, "a"), "bad": bad, "b": lambda tx: add(tx, "b")}
    outcomes, commits = write_together(database, other, operations)
    assert commits == 1
    assert type(outcomes["bad"]) is LookupError
    assert sorted(slugs()) == ["a", "b"]


def test_a_statement_that_fails_is_the_affair_of_its_own_operation(database, other, slugs):
    def bad(tx):
        add(tx, "bad")
        tx.execute(Post.update(status="no status"))

    operations = {"a": lambda tx: add(tx, "a"), "bad": bad, "b": lambda tx: add(tx, "b")}
    outcomes, commits = write_together(database, other, operations)
    assert commits == 1
    assert (type(outcomes["bad"]), str(outcomes["bad"])[:23]) == (Unavailable, "CHECK constraint failed")
    assert sorted(slugs()) == ["a", "b"]


def test_a_full_disk_is_the_affair_of_all_that_share_the_commit(database, engine, other, pragma, slugs):
    def fill(tx):
        for number in range(99):
            add(tx, f"{number}" + "x" * 999)

    pragma(f"max_page_count = {pragma('page_count')}")
    outcomes, commits = write_together(database, other, {"b": lambda tx: add(tx, "b"), "a": fill})
    assert commits == 0
    assert [str(error) for error in outcomes.values()] == ["database or disk is full"] * 2
    pragma("max_page_count = 1000000")
    database.write(add, "c")
    assert slugs() == ["c"]


def test_a_lock_that_lasts_ends_the_wait_in_time(database, other, slugs, monkeypatch):
    monkeypatch.setattr("blogapi.storage.engine.BUSY_SECONDS", 0.05)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable, match="locked") as caught:
        database.write(add, "a")
    assert caught.value.retry_after == 1
    other.execute("ROLLBACK")
    database.write(add, "b")
    assert slugs() == ["b"]


def test_a_writer_that_goes_away_leaves_the_queue(database, other, slugs, monkeypatch):
    class GoneAway(BaseException):
        """What a server raises in a request whose client has gone."""

    def interrupted(seconds):
        raise GoneAway

    other.execute("BEGIN IMMEDIATE")
    with monkeypatch.context() as context:
        context.setattr("blogapi.storage.engine.time.sleep", interrupted)
        with pytest.raises(GoneAway):
            database.write(add, "a")
    other.execute("ROLLBACK")
    database.write(add, "b")
    assert slugs() == ["b"]


def test_a_write_in_a_thread_leaves_others_reading_meanwhile(database, slugs):
    def operation(tx):
        add(tx, "a")
        return slugs()

    assert database.write_in_thread(operation) == []
    assert slugs() == ["a"]


def test_one_write_in_a_thread_runs_at_a_time_and_the_next_does_not_wait_for_ever(database, slugs, monkeypatch):
    started = []

    def run_in_thread(function, arguments):
        started.append(function)
        return function(*arguments)

    def operation(tx):
        add(tx, "a")
        with pytest.raises(Unavailable, match="locked"):
            database.write_in_thread(add, "b")
        assert len(started) == 1

    monkeypatch.setattr("blogapi.storage.engine.BUSY_SECONDS", 0.05)
    database.engine.loop = Loop()
    database.engine.loop.run_in_thread = run_in_thread
    database.write_in_thread(operation)
    database.write_in_thread(add, "c")
    assert (slugs(), len(started)) == (["a", "c"], 2)


def test_a_write_in_a_thread_leaves_the_connection_its_locks(database, path):
    """They go with the first descriptor of the file that is closed; another program that ends then takes the -wal."""
    database.write(add, "a")
    database.write_in_thread(add, "b")
    script = f"import sqlite3; sqlite3.connect({str(path)!r}).execute('SELECT 1 FROM post').connection.close()"
    subprocess.run([sys.executable, "-c", script], check=True)
    assert path.with_name("blog.db-wal").exists()


def test_a_write_in_a_thread_that_raises_leaves_nothing(database, slugs):
    def operation(tx):
        add(tx, "a")
        raise LookupError("no")

    with pytest.raises(LookupError):
        database.write_in_thread(operation)
    assert slugs() == []


def test_a_file_that_is_moved_away_takes_no_writes_until_it_is_back(database, path, slugs):
    database.write(add, "a")
    path.rename(path.with_name("away.db"))
    with pytest.raises(Unavailable, match="not at its path"):
        database.write(add, "b")
    with pytest.raises(Unavailable, match="not at its path"):
        database.check()
    assert slugs() == ["a"]
    path.with_name("away.db").rename(path)
    database.check()
    database.write(add, "c")
    assert slugs() == ["a", "c"]


def test_another_file_in_its_place_takes_no_writes_ever(database, path, caplog):
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


def test_a_full_disk_loses_the_write_and_nothing_else(database, pragma, slugs):
    database.write(add, "a")
    pragma(f"max_page_count = {pragma('page_count')}")
    with pytest.raises(Unavailable, match="full"):
        database.write(lambda tx: [add(tx, f"b{number}" + "x" * 999) for number in range(99)])
    assert slugs() == ["a"]
    pragma("max_page_count = 1000000")
    database.write(add, "c")
    assert slugs() == ["a", "c"]


def test_a_connection_that_is_lost_is_made_anew(database, engine, pragma, slugs):
    engine.close()
    database.write(add, "a")
    assert slugs() == ["a"]
    assert pragma("synchronous") == 2
