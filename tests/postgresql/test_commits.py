"""PostgreSQL: writes that share a transaction, and their failures."""

from functools import partial

import pytest
from peewee import SQL

from blogapi.posts import storage as posts
from blogapi.storage.engine import Compiled, Placeholder
from blogapi.storage.errors import NotUnique, Rejected, Unavailable
from blogapi.storage.models import Author, Post, PostTag
from blogapi.webhooks import storage as webhooks
from tests.storage.fixtures import locked, write_together

pytestmark = pytest.mark.slow


def test_a_failing_statement_fails_only_its_own_operation(postgresql):
    def add(tx, slug):
        number = tx.insert(Post.insert(slug=slug, status="draft", document="{}"))
        tx.defer(PostTag.insert(tag=slug, status="draft", post_id=number, name=slug))
        return number

    outcomes = write_together(postgresql, locked(postgresql), *(partial(add, slug=slug) for slug in "aabbc"))
    results = [outcome if type(outcome) is int else type(outcome) for outcome in outcomes]
    assert results == [1, NotUnique, 2, NotUnique, 3]
    for column in (Post.slug, PostTag.tag):
        assert sorted(postgresql.rows(column.model.select(column))) == [("a",), ("b",), ("c",)]


def test_an_operation_refused_before_a_change_does_not_end_the_shared_transaction(postgresql):
    fields = {"title": "A", "content": "B", "status": "draft", "tags": []}

    def add(tx):
        return posts.add(tx, fields, Author("first")).id, tx.row(SQL("SELECT pg_current_xact_id()::text"))

    refused = [
        lambda tx: webhooks.change(tx, 1, {"active": 0}),
        lambda tx: posts.delete(tx, 9, Author("first")),
        lambda tx: posts.add(tx, fields | {"status": "scheduled"}, Author("first")).id,
    ]
    outcomes = write_together(postgresql, locked(postgresql), add, *refused, add)
    assert [str(outcome) for outcome in outcomes[1:3]] == ["no such webhook", "no such post"]
    assert type(outcomes[3]) is Rejected
    assert (outcomes[0][0], outcomes[4]) == (1, (2, outcomes[0][1]))


def no_memory(*_):
    raise MemoryError


def test_running_out_of_memory_in_a_shared_transaction_fails_all_of_it(postgresql, monkeypatch):
    def add(tx):
        tx.defer(PostTag.insert(tag="a", status="draft", post_id=1, name="a"))

    def fail(tx):
        with monkeypatch.context() as context:
            context.setattr("blogapi.postgresql.connections.numbered", no_memory)
            tx.row(Post.select(Post.slug))

    outcomes = write_together(postgresql, locked(postgresql), add, fail)
    assert [type(outcome) for outcome in outcomes] == [MemoryError, MemoryError]
    postgresql.write(add)
    assert list(postgresql.rows(PostTag.select(PostTag.tag))) == [("a",)]


def test_running_out_of_memory_in_a_query_leaves_no_trace(postgresql, monkeypatch):
    query = Compiled(Post.select(Post.slug))
    with monkeypatch.context() as context:
        context.setattr("blogapi.postgresql.connections.numbered", no_memory)
        with pytest.raises(MemoryError):
            postgresql.row(query)
    assert postgresql.row(query) is None


def test_statements_stay_prepared_when_a_transaction_is_rolled_back(postgresql):
    queries = [Compiled(Post.select(column).where(Post.id == Placeholder("id"))) for column in (Post.slug, Post.status)]
    for _ in range(2):
        tx = postgresql.engine.begin(1)
        assert [tx.row(query, id=1) for query in queries] == [None, None]
        tx.recover(ValueError())
        tx = postgresql.engine.begin(1)
        assert [tx.row(query, id=1) for query in reversed(queries)] == [None, None]
        tx.commit()


def test_a_permanent_failure_of_begin_does_not_look_temporary(postgresql, connection):
    connection.execute("DROP TABLE webhook")
    with pytest.raises(Unavailable, match="does not exist") as caught:
        postgresql.engine.begin(1)
    assert caught.value.retry_after is None
