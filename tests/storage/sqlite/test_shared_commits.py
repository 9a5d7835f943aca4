"""Commits that writes share."""

import gc
import sqlite3
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial

import pytest

from blogapi.storage.database import Database, _end
from blogapi.storage.errors import Unavailable
from blogapi.storage.loop import Loop
from blogapi.storage.models import Post
from blogapi.storage.sqlite import SqliteTransaction
from tests.storage.sqlite.conftest import add


@pytest.fixture(autouse=True)
def unhurried(monkeypatch):
    """On a busy machine, a shared transaction could end before all have joined it."""
    monkeypatch.setattr("blogapi.storage.database.SHARED_SECONDS", 5)


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
    while len(database.commits.waiting) < len(operations):
        pass
    other.execute("COMMIT")
    for thread in threads:
        thread.join(5)
    database.engine.connection.set_trace_callback(None)
    return outcomes, len(commits)


def three():
    return {slug: lambda tx, slug=slug: add(tx, slug) for slug in "abc"}


def test_writes_that_wait_share_a_commit_and_one_that_raises_disturbs_no_other(database, other, slugs):
    outcomes, commits = write_together(database, other, three() | {"bad": fail})
    assert commits == 1
    assert type(outcomes["bad"]) is LookupError
    assert sorted(slugs()) == ["a", "b", "c"]


def fail(tx):
    raise LookupError("bad")


@pytest.mark.parametrize(
    ("end", "error"),
    [(fail, "bad"), (lambda tx: tx.execute(Post.update(status="no status")), "CHECK constraint failed")],
    ids=["operation", "statement"],
)
def test_one_that_fails_after_a_change_is_undone_and_the_others_get_commits_of_their_own(
    database, other, slugs, end, error
):
    def bad(tx):
        add(tx, "bad")
        end(tx)

    outcomes, commits = write_together(database, other, three() | {"bad": bad})
    assert commits == 3
    assert str(outcomes["bad"]).startswith(error)
    assert sorted(slugs()) == ["a", "b", "c"]
    database.write(add, "d")
    assert sorted(slugs()) == ["a", "b", "c", "d"]


def test_the_arguments_of_operations_that_raise_are_freed_without_the_garbage_collector(database, other):
    class Argument:
        """Something large."""

    def bad(tx, argument):
        raise LookupError

    def write():
        argument = Argument()
        references.append(weakref.ref(argument))
        with suppress(LookupError):
            database.write(bad, argument)

    references = []
    gc.disable()
    try:
        write()
        other.execute("BEGIN IMMEDIATE")
        threads = [threading.Thread(target=write) for _ in range(2)]
        for thread in threads:
            thread.start()
        while len(database.commits.waiting) < 2:
            pass
        other.execute("COMMIT")
        for thread in threads:
            thread.join(5)
        assert [reference() for reference in references] == [None] * 3
    finally:
        gc.enable()


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


def test_a_lock_that_lasts_ends_the_wait_in_time(database, other, slugs):
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


def test_writes_return_when_their_transaction_ends_though_another_follows_at_once(database):
    """Otherwise some would be overtaken again and again by those that arrive later."""
    begun, returned = threading.Event(), threading.Semaphore(0)
    following = []

    def wait_until_waiting(count):
        while len(database.commits.waiting) < count:
            pass

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


def test_a_write_that_arrives_while_others_are_told_of_a_failure_does_not_wait_forever(database, path, monkeypatch):
    """Only with threads: in the event loop, nothing arrives in between."""
    arrived = []

    def end(parts, error=None):
        _end(parts, error)
        if error and not arrived:
            arrived.append(pool.submit(database.write, add, "b"))
            while not database.commits.waiting:
                pass

    away = path.rename(path.with_name("away.db"))
    monkeypatch.setattr("blogapi.storage.database._end", end)
    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(Unavailable, match="not at its path"):
            database.write(add, "a")
        with pytest.raises(Unavailable, match="not at its path"):
            arrived[0].result(5)
    away.rename(path)


def interrupted(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize("is_at_commit", [True, False])
def test_the_others_are_told_whether_an_interrupted_transaction_may_be_written(
    database, other, monkeypatch, is_at_commit
):
    if is_at_commit:
        monkeypatch.setattr(SqliteTransaction, "commit", interrupted)
    other.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(2) as pool:
        outcomes = []
        for operation in (partial(add, slug="a"), partial(add, slug="b") if is_at_commit else interrupted):
            outcomes.append(pool.submit(database.write, operation))
            while len(database.commits.waiting) < len(outcomes):
                pass
        other.execute("COMMIT")
        leader, follower = [outcome.exception(5) for outcome in outcomes]
    assert (type(leader), type(follower)) == (KeyboardInterrupt, Unavailable)
    assert follower.maybe_changed is is_at_commit


@pytest.mark.parametrize("is_at_commit", [True, False])
def test_nobody_waits_forever_if_the_rollback_fails(database, engine, other, monkeypatch, is_at_commit):
    def fail(tx, error=None):
        if error:
            engine.recover(error)
        raise MemoryError

    def bad(tx):
        add(tx, "bad")
        raise LookupError

    monkeypatch.setattr(SqliteTransaction, "recover", fail)
    if is_at_commit:
        monkeypatch.setattr(SqliteTransaction, "commit", fail)
    last = partial(add, slug="b") if is_at_commit else bad
    outcomes, _ = write_together(database, other, {"a": lambda tx: add(tx, "a"), "b": last})
    assert outcomes.keys() == {"a", "b"}


def test_a_connection_that_is_lost_during_an_operation_is_the_affair_of_all(database, engine, other):
    def bad(tx):
        add(tx, "bad")
        engine.close()  # as after an error of the disk, if connecting again fails, too
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR
        raise Unavailable(error) from error

    outcomes = write_together(database, other, {"bad": bad, "worse": bad})[0]
    assert [str(error) for error in outcomes.values()] == ["disk I/O error"] * 2


def test_a_writer_that_goes_away_while_its_operation_runs_does_not_lead_when_that_would_run_again(
    database, other, slugs, monkeypatch
):
    def bad(tx):
        with monkeypatch.context() as context:
            context.setattr(database.commits, "_gather", interrupted)
            gone.called.set()
            assert type(outcomes[1].exception(5)) is KeyboardInterrupt
        add(tx, "bad")
        raise LookupError

    other.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(3) as pool:
        outcomes = []
        for operation in (partial(add, slug="a"), partial(add, slug="gone"), bad):
            outcomes.append(pool.submit(database.write, operation))
            while len(database.commits.waiting) < len(outcomes):
                pass
        gone = database.commits.waiting[1]
        other.execute("COMMIT")
        assert type(outcomes[2].exception(5)) is LookupError
    database.write(add, "b")
    assert slugs() == ["a", "b"]


def test_a_shared_transaction_ends_when_it_has_taken_long(database, other, slugs, monkeypatch):
    monkeypatch.setattr("blogapi.storage.database.SHARED_SECONDS", 0)
    outcomes, commits = write_together(database, other, three())
    assert (sorted(outcomes.values()), sorted(slugs()), commits) == ([1, 2, 3], ["a", "b", "c"], 3)


def test_requests_that_wait_for_their_turn_join_the_transaction(engine, monkeypatch):
    class Arriving(Loop):
        def requests_wait(self):
            return len(database.commits.waiting) < 5

    monkeypatch.setattr("blogapi.storage.database.GATHER_SECONDS", 5)
    engine.loop = Arriving()
    database = Database(engine)
    commits = []
    engine.connection.set_trace_callback(lambda text: commits.append(text) if text == "COMMIT" else None)
    with ThreadPoolExecutor(5) as pool:
        assert sorted(pool.map(partial(database.write, add), "abcde")) == [1, 2, 3, 4, 5]
    assert len(commits) == 1


def test_requests_that_never_get_their_turn_are_not_waited_for(engine):
    engine.loop = Loop()
    engine.loop.requests_wait = lambda: True
    assert Database(engine).write(add, "a") == 1
