"""PostgreSQL: writes that share a transaction, and their failures."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg
import pytest
from peewee import SQL

from blogapi.storage import engine_for, posts, webhooks
from blogapi.storage.database import Database
from blogapi.storage.engine import Param, Prepared
from blogapi.storage.errors import Unavailable
from blogapi.storage.models import Post, PostTag
from blogapi.storage.search import index
from tests.postgresql import PROGRAMS

pytestmark = [pytest.mark.skipif(not PROGRAMS, reason="PostgreSQL's programs are not there"), pytest.mark.slow]


@pytest.fixture
def connection(url):
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


def test_a_statement_that_fails_is_the_affair_of_its_own_operation(url):
    engine = engine_for(url, 2)
    database = Database(engine)
    row = {"status": "draft", "document": "{}"}
    outcomes = {}

    def add(slug):
        def operation(tx):
            number = tx.insert(Post.insert(row | {"slug": slug}))
            tx.defer(PostTag.insert(tag=slug, status="draft", post_id=number, name=slug))
            return number

        try:
            outcomes[slug, len(outcomes)] = database.write(operation)
        except Exception as error:
            outcomes[slug, len(outcomes)] = type(error).__name__

    other = engine.begin(1)  # all wait for this one, and share the next transaction
    threads = [threading.Thread(target=add, args=[slug]) for slug in ("a", "a", "b", "b", "c")]
    for thread in threads:
        thread.start()
    while len(database.commits.waiting) < len(threads):
        pass
    other.commit()
    for thread in threads:
        thread.join(5)
    assert sorted(str(outcome) for outcome in outcomes.values()) == ["1", "2", "3", "NotUnique", "NotUnique"]
    found = list(database.rows(Post.select(Post.slug).order_by(Post.id)))
    assert sorted(found) == [("a",), ("b",), ("c",)]
    assert sorted(database.rows(PostTag.select(PostTag.tag))) == sorted(found)
    engine.close()


def write_together(database, operations):
    """Let operations wait for the same transaction; return results or errors in order."""
    other = database.engine.begin(1)
    with ThreadPoolExecutor(len(operations)) as pool:
        outcomes = []
        for operation in operations:
            outcomes.append(pool.submit(database.write, operation))
            while len(database.commits.waiting) < len(outcomes):
                pass
        other.commit()
        return [outcome.exception(5) or outcome.result() for outcome in outcomes]


def test_what_is_refused_before_a_change_does_not_end_the_transaction_of_others(url):
    large = {"title": "A", "content": "ä" * index.LARGE, "status": "draft", "tags": []}

    def add(tx):
        return posts.add(tx, large | {"content": "B"}, "first").id, tx.row(SQL("SELECT pg_current_xact_id()::text"))

    refused = [
        lambda tx: webhooks.change(tx, 1, {"active": 0}),
        lambda tx: posts.delete(tx, 9, "first"),
        lambda tx: posts.add(tx, large | {"slug": "b-c"}, "first").id,
        lambda tx: posts.add(tx, large, "first").id,
    ]
    with closing(engine_for(url, 2)) as engine:
        outcomes = write_together(Database(engine), [add, *refused, add])
        assert [str(each) for each in outcomes[1:3]] == ["no such webhook", "no such post"]
        assert sorted(map(str, outcomes[3:5])) == ["3", "4"]
        assert (outcomes[0][0], outcomes[5]) == (1, (2, outcomes[0][1]))


def no_memory(*_):
    raise MemoryError


def test_too_little_memory_for_a_statement_loses_none_that_is_acknowledged(url, monkeypatch):
    engine = engine_for(url, 2)
    database = Database(engine)
    outcomes = {}

    def add(tx):
        tx.defer(PostTag.insert(tag="a", status="draft", post_id=1, name="a"))

    def fail(tx):
        with monkeypatch.context() as context:
            context.setattr("blogapi.storage.engine.Statement.numbered", no_memory)
            tx.row(Post.select(Post.slug))

    def write(operation):
        try:
            outcomes[operation] = database.write(operation)
        except MemoryError:
            outcomes[operation] = "out of memory"

    other = engine.begin(1)
    threads = [threading.Thread(target=write, args=[operation]) for operation in (add, fail)]
    for count, thread in enumerate(threads, 1):
        thread.start()
        while len(database.commits.waiting) < count:
            pass
    other.commit()
    for thread in threads:
        thread.join(5)
    assert outcomes == {add: "out of memory", fail: "out of memory"}
    database.write(add)
    assert list(database.rows(PostTag.select(PostTag.tag))) == [("a",)]
    engine.close()


def test_too_little_memory_for_a_query_leaves_no_trace(url, monkeypatch):
    query = Prepared(Post.select(Post.slug))
    engine = engine_for(url, 1)
    with monkeypatch.context() as context:
        context.setattr("blogapi.storage.engine.Statement.numbered", no_memory)
        with pytest.raises(MemoryError):
            engine.row(query, {})
    assert engine.row(query, {}) is None
    engine.close()


def test_statements_stay_prepared_when_a_transaction_is_rolled_back(url):
    queries = [Prepared(Post.select(column).where(Post.id == Param("id"))) for column in (Post.slug, Post.status)]
    engine = engine_for(url, 1)
    for _ in range(2):
        tx = engine.begin(1)
        assert [tx.row(query, id=1) for query in queries] == [None, None]
        tx.recover(ValueError())
        tx = engine.begin(1)
        assert [tx.row(query, id=1) for query in reversed(queries)] == [None, None]
        tx.commit()
    engine.close()


def test_a_permanent_failure_at_the_beginning_does_not_look_like_a_passing_one(url, connection):
    connection.execute("DROP TABLE webhook")
    with closing(engine_for(url)) as engine, pytest.raises(Unavailable, match="does not exist") as caught:
        engine.begin(1)
    assert caught.value.retry_after is None
