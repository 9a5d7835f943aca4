"""Writes: their transactions, results and errors."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from peewee import SQL

from blogapi.server.threads import SharedDatabase
from blogapi.storage.errors import Unavailable
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
