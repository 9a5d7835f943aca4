"""Transactions: their results and errors, and reads and writes in threads."""

import sqlite3
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
from peewee import SQL

from blogapi.server.threads import SharedDatabase
from blogapi.storage.database import BUSY_SECONDS
from blogapi.storage.engine import Loop
from blogapi.storage.errors import NeedsThread, Unavailable
from tests.service import eventually
from tests.storage.fixtures import locked
from tests.storage.sqlite.conftest import add


@pytest.mark.parametrize("method", ["write", "write_in_thread"])
def test_an_operation_that_raises_changes_nothing(database, slugs, method):
    def operation(tx):
        add(tx, "a")
        raise LookupError("no")

    with pytest.raises(LookupError):
        getattr(database, method)(operation)
    assert slugs() == []
    assert database.write(add, "b") == 1


def test_a_write_is_dated_when_it_gets_the_lock_and_not_when_it_was_requested(engine):
    now = 1000.0
    database = SharedDatabase(engine, lambda: now)
    with ThreadPoolExecutor(1) as pool:
        with locked(database):
            written = pool.submit(database.write, lambda tx: tx.now)
            eventually(lambda: database.commits.waiting)
            now = 2000.0
        assert written.result(20) == "1970-01-01T00:33:20Z"


def test_running_out_of_memory_is_a_temporary_failure(database, engine, slugs):
    def fail():
        raise MemoryError

    engine.connection.create_function("fail", 0, fail)
    for use in (database.row, lambda query: database.write(lambda tx: tx.execute(query))):
        with pytest.raises(Unavailable, match="out of memory") as caught:
            use(SQL("SELECT fail()"))
        assert caught.value.retry_after == 1
    database.write(add, "a")
    assert slugs() == ["a"]


def test_others_can_read_during_a_write_in_a_thread(database, slugs):
    def operation(tx):
        add(tx, "a")
        return slugs()

    assert database.write_in_thread(operation) == []
    assert slugs() == ["a"]


def test_only_one_write_in_a_thread_runs_at_a_time_and_the_next_does_not_wait_forever(database, slugs, impatient):
    def operation(tx):
        add(tx, "a")
        with pytest.raises(Unavailable, match="locked"):
            database.write_in_thread(add, "b")

    database.write_in_thread(operation)
    database.write_in_thread(add, "c")
    assert slugs() == ["a", "c"]


@pytest.mark.slow
def test_a_write_in_a_thread_does_not_release_the_connections_locks(database, path):
    """Closing any descriptor of the file would release them; another program that ends would then remove the -wal."""
    database.write(add, "a")
    database.write_in_thread(add, "b")
    script = f"import sqlite3; sqlite3.connect({str(path)!r}).execute('SELECT 1 FROM post').connection.close()"
    subprocess.run([sys.executable, "-c", script], check=True)
    assert path.with_name("blog.db-wal").exists()


def test_the_arguments_of_a_write_that_continues_in_a_thread_are_freed_immediately(database, uncollected):
    class Large:
        """A post of 1 MB."""

    def operation(tx, large):
        if not tx.may_be_slow:
            raise NeedsThread
        return 1

    large = Large()
    reference = weakref.ref(large)
    assert database.write(operation, large) == 1
    del large
    assert reference() is None


def test_a_write_in_a_thread_does_not_wait_for_readers_to_shrink_the_wal(database, other, slugs):
    other.execute("BEGIN")
    other.execute("SELECT * FROM post").fetchall()
    begun = time.monotonic()
    for slug in "abc":
        database.write_in_thread(add, slug)
    assert time.monotonic() - begun < 2 * BUSY_SECONDS  # Each of the three would wait for BUSY_SECONDS.
    assert slugs() == ["a", "b", "c"]


def test_a_write_in_a_thread_leaves_no_large_wal(database, path, monkeypatch):
    monkeypatch.setattr("blogapi.storage.sqlite.MAX_WAL", 1000)
    database.write_in_thread(add, "a" * 10_000)
    assert path.with_name("blog.db-wal").stat().st_size == 0


def test_writes_waiting_for_one_in_a_thread_come_before_the_next_one_in_a_thread(database, slugs, monkeypatch):
    def slow(tx):
        add(tx, "a")
        writer.start()
        eventually(lambda: database.commits.waiting)
        time.sleep(0.4)  # how long it takes

    monkeypatch.setattr("blogapi.storage.database.LOCK_POLL_SECONDS", 0.1)
    writer = threading.Thread(target=database.write, args=(add, "b"))
    database.write_in_thread(slow)
    database.write_in_thread(add, "c")
    writer.join()
    assert slugs() == ["a", "b", "c"]


def read_forever(reader):
    return reader.row(SQL("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"))


def test_a_read_in_a_thread_ends_in_time(database, slugs, impatient):
    with pytest.raises(Unavailable, match="interrupted") as caught:
        database.read_in_thread("client", read_forever)
    assert caught.value.retry_after == 1
    assert database.read_in_thread("client", lambda reader: slugs()) == []


def test_a_read_in_a_thread_ends_with_its_request(database, monkeypatch):
    class GoneAway(BaseException):
        """The exception that a server raises in a request if the client has disconnected."""

    class Leaving(Loop):
        def run_in_thread(self, function, *, in_background=False):
            self.outcome = pool.submit(function)
            raise GoneAway

    monkeypatch.setattr("blogapi.server.threads.BUSY_SECONDS", 40)  # Its time does not end first.
    database.engine.loop = Leaving()
    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(GoneAway):
            database.read_in_thread("client", read_forever)
        assert str(database.engine.loop.outcome.exception(20)) == "interrupted"


def read_during(database, *clients):
    """Read for the last client while each of the others still reads."""
    client, *others = clients
    return database.read_in_thread(client, lambda reader: read_during(database, *others) if others else "read")


def test_clients_with_long_reads_do_not_keep_another_waiting(database):
    assert read_during(database, *"abcd", "other") == "read"


def test_slow_work_of_one_client_delays_only_its_own_requests(database, impatient):
    def work_during(*clients):
        client, *others = clients
        return database.compute_in_thread(client, lambda: work_during(*others) if others else "done")

    assert work_during("a", "other") == "done"
    with pytest.raises(Unavailable):
        work_during("same", "same")


def test_clients_with_slow_work_are_forgotten_after_it(database):
    for number in range(100):
        database.compute_in_thread(f"computing {number}", lambda: "done")
        database.read_in_thread(f"reading {number}", lambda reader: "read")
    assert not database._turns


@pytest.mark.parametrize("clients", [("same", "same"), tuple("abcdef")])
def test_a_read_in_a_thread_does_not_wait_forever_for_others(database, clients, impatient):
    with pytest.raises(Unavailable, match="locked") as caught:
        read_during(database, *clients)
    assert caught.value.retry_after == 1


@pytest.mark.parametrize("refused", ["BEGIN", "ROLLBACK"])
def test_a_read_that_cannot_begin_or_finish_is_unavailable(engine, refused):
    def authorize(action, argument, *_):
        return sqlite3.SQLITE_DENY if (action, argument) == (sqlite3.SQLITE_TRANSACTION, refused) else sqlite3.SQLITE_OK

    engine.connection.set_authorizer(authorize)
    with pytest.raises(Unavailable, match="not authorized"), engine.limited(lambda: True):
        pass
    engine.connection.set_authorizer(None)
