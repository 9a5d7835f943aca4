"""Commits shared by several writes."""

import sqlite3
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import pytest

from blogapi.server.threads import SharedDatabase
from blogapi.storage.engine import Loop
from blogapi.storage.errors import Unavailable
from blogapi.storage.models import Post
from tests.service import eventually
from tests.storage.fixtures import locked, write_together
from tests.storage.sqlite.conftest import add


@pytest.fixture(autouse=True)
def unhurried(monkeypatch):
    """Gives shared transactions more time: on a busy machine, one could end before all writes have joined it."""
    monkeypatch.setattr("blogapi.server.threads.SHARED_SECONDS", 5)


@pytest.fixture
def commits(engine):
    """The commits of the connection."""
    commits = []
    engine.connection.set_trace_callback(lambda text: commits.append(text) if text == "COMMIT" else None)
    return commits


THREE = [partial(add, slug=slug) for slug in "abc"]


def fail(tx):
    raise LookupError("bad")


def test_waiting_writes_share_a_commit_and_one_that_raises_does_not_disturb_the_others(database, slugs, commits):
    *results, error = write_together(database, locked(database), *THREE, fail)
    assert (results, type(error), len(commits)) == ([1, 2, 3], LookupError, 1)
    assert slugs() == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("end", "error"),
    [(fail, "bad"), (lambda tx: tx.execute(Post.update(status="no status")), "CHECK constraint failed")],
    ids=["operation", "statement"],
)
def test_a_write_that_fails_after_a_change_is_undone_and_the_others_get_their_own_commits(
    database, slugs, commits, end, error
):
    def bad(tx):
        add(tx, "bad")
        end(tx)

    outcomes = write_together(database, locked(database), *THREE, bad)
    assert len(commits) == 3
    assert str(outcomes[3]).startswith(error)
    assert slugs() == ["a", "b", "c"]
    database.write(add, "d")
    assert slugs() == ["a", "b", "c", "d"]


def test_the_arguments_of_failing_operations_are_freed_immediately(database, uncollected):
    class Argument:
        """A large object."""

    def bad(tx, argument):
        raise LookupError

    def write():
        argument = Argument()
        references.append(weakref.ref(argument))
        with suppress(LookupError):
            database.write(bad, argument)

    references = []
    write()
    threads = [threading.Thread(target=write) for _ in range(2)]
    with locked(database):
        for thread in threads:
            thread.start()
        eventually(lambda: len(database.commits.waiting) == 2)
    for thread in threads:
        thread.join(20)
    assert [reference() for reference in references] == [None] * 3


def test_what_a_failed_operation_has_read_is_freed_before_the_next_one_of_its_transaction(database, uncollected):
    class Read:
        """A large object."""

    references = []

    def bad(tx):
        found = Read()
        references.append(weakref.ref(found))
        raise LookupError

    assert write_together(database, locked(database), bad, lambda tx: references[0]())[1] is None


def test_on_a_full_disk_all_writes_sharing_the_commit_fail(database, pragma, slugs, commits):
    def fill(tx):
        for number in range(99):
            add(tx, f"{number}" + "x" * 999)

    pragma(f"max_page_count = {pragma('page_count')}")
    outcomes = write_together(database, locked(database), partial(add, slug="b"), fill)
    assert commits == []
    assert [str(error) for error in outcomes] == ["database or disk is full"] * 2
    pragma("max_page_count = 1000000")
    database.write(add, "c")
    assert slugs() == ["c"]


def test_writes_return_when_their_transaction_ends_even_if_another_follows_immediately(database):
    """Otherwise, later writes would overtake some of these writes again and again."""
    begun, returned = threading.Event(), threading.Semaphore(0)
    following = []

    def wait_until_waiting(count):
        eventually(lambda: len(database.commits.waiting) >= count)

    def let_another_follow(tx):
        if not following:
            following.append(
                pool.submit(database.write, lambda tx: all(returned.acquire(timeout=10) for _ in range(8)))
            )
            wait_until_waiting(1)

    def write():
        database.write(let_another_follow)
        returned.release()

    with ThreadPoolExecutor(10) as pool:
        pool.submit(database.write, lambda tx: (begun.set(), wait_until_waiting(8)))
        begun.wait(20)
        for each in [pool.submit(write) for _ in range(8)]:
            each.result(60)
        assert following[0].result(90)


def fail_after_a_change(tx):
    add(tx, "bad")
    raise LookupError


@pytest.mark.parametrize("refused", [("ROLLBACK",), ("COMMIT", "ROLLBACK")], ids="-".join)
def test_nobody_waits_forever_if_the_rollback_fails(database, engine, refused):
    def authorize(action, argument, *_):
        is_refused = action == sqlite3.SQLITE_TRANSACTION and argument in refused
        return sqlite3.SQLITE_DENY if is_refused else sqlite3.SQLITE_OK

    engine.connection.set_authorizer(authorize)
    last = partial(add, slug="b") if "COMMIT" in refused else fail_after_a_change
    outcomes = write_together(database, locked(database), partial(add, slug="a"), last)
    assert [type(outcome) for outcome in outcomes] == [Unavailable] * 2


def test_if_the_connection_is_lost_during_an_operation_all_fail(database, engine):
    def bad(tx):
        add(tx, "bad")
        engine.close()  # as after a disk error, if reconnecting fails, too
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR
        raise Unavailable(error) from error

    outcomes = write_together(database, locked(database), bad, bad)
    assert [str(error) for error in outcomes] == ["disk I/O error"] * 2


def test_if_the_database_fails_it_is_tried_once_for_all_that_wait(database, engine):
    begun, refused = threading.Event(), []

    def authorize(action, argument, *_):
        if (action, argument) != (sqlite3.SQLITE_TRANSACTION, "BEGIN"):
            return sqlite3.SQLITE_OK
        refused.append(argument)
        return sqlite3.SQLITE_DENY

    def let_others_wait(tx):
        begun.set()
        eventually(lambda: len(database.commits.waiting) == 3)
        engine.connection.set_authorizer(authorize)

    with ThreadPoolExecutor(4) as pool:
        pool.submit(database.write, let_others_wait)
        assert begun.wait(20)
        outcomes = [pool.submit(database.write, operation) for operation in THREE]
    assert [type(outcome.exception()) for outcome in outcomes] == [Unavailable] * 3
    assert len(refused) == 1


def test_a_shared_transaction_ends_when_it_has_taken_too_long(database, slugs, commits, monkeypatch):
    monkeypatch.setattr("blogapi.server.threads.SHARED_SECONDS", 0)
    assert write_together(database, locked(database), *THREE) == [1, 2, 3]
    assert (slugs(), len(commits)) == (["a", "b", "c"], 3)


def test_requests_that_wait_for_their_turn_join_the_transaction(engine, monkeypatch, commits):
    class Arriving(Loop):
        def requests_wait(self):
            return len(database.commits.waiting) < 5

    monkeypatch.setattr("blogapi.server.threads.GATHER_SECONDS", 5)
    engine.loop = Arriving()
    database = SharedDatabase(engine)
    with ThreadPoolExecutor(5) as pool:
        assert sorted(pool.map(partial(database.write, add), "abcde")) == [1, 2, 3, 4, 5]
    assert len(commits) == 1


def test_requests_that_never_get_their_turn_are_not_waited_for(engine):
    engine.loop = Loop()
    engine.loop.requests_wait = lambda: True
    assert SharedDatabase(engine).write(add, "a") == 1
