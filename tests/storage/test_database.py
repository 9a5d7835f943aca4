"""The core's database without a server that shares commits, its queries on SQLite, and Peewee's own queries."""

import ast
from concurrent.futures import ThreadPoolExecutor
from itertools import chain
from pathlib import Path

import pytest
from peewee import SQL

import blogapi
from blogapi.copy import tables
from blogapi.documents import STATUSES
from blogapi.paging import ListQuery
from blogapi.posts import lists
from blogapi.posts import storage as posts
from blogapi.posts.slugs import SELECT_HOLDER
from blogapi.search import storage as search
from blogapi.storage import models
from blogapi.storage.errors import DoesNotExist, Unavailable
from blogapi.storage.models import ApiKey, Author, BaseModel, Post, PostTag
from blogapi.webhooks import sender
from blogapi.webhooks import storage as webhooks
from blogapi.webhooks.storage import Delivery
from tests.cases import cases
from tests.databases import opened

LARGE = "fog " * 100_000


@pytest.fixture
def plain(config):
    with opened(config.database) as database:
        yield database


def test_operations_too_slow_for_shared_commits_work_without_them(plain):
    fields = {"title": "A", "content": LARGE, "status": "published", "tags": []}
    post_id = plain.write(posts.add, fields, Author("first")).id
    found = search.page(plain, ListQuery(limit=10, status="published", q="fog"), "client")
    assert len(found.items) == 1
    for title in "BCD":
        plain.write(posts.change, post_id, {"title": title}, Author("first"))
    plain.write(posts.delete, post_id, Author("first"), permanent=True)
    with pytest.raises(DoesNotExist):
        posts.get(plain, post_id)


def test_a_slow_read_ends_in_time_without_threads(plain, impatient):
    numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000000)"
    with pytest.raises(Unavailable):
        plain.read_in_thread("client", lambda reader: reader.row(SQL(f"{numbers} SELECT count(*) FROM n")))


EACH = [None, *STATUSES]
DELIVERIES = webhooks.deliveries_query.where(Delivery.webhook_id == 1)
INDEXED = [posts.SELECT_ANY_DUE, posts.SELECT_NEXT_DUE, SELECT_HOLDER, DELIVERIES]
INDEXED += [
    query
    for queries in (posts.SELECT_DOCUMENT, posts.SELECT_PUBLISHED, posts.SELECT_TO_CHANGE)
    for query in queries.values()
]
INDEXED += [webhooks.DELETE_EVENT, sender.SELECT_FIRST, sender.SELECT_TIMED]
INDEXED += [
    lists.time_query("published_at", status, by_tag, of_second)
    for status in EACH
    for by_tag in (True, False)
    for of_second in (True, False)
]


@cases(
    ("query", "exceptions"),
    *((lists.created_query(status, by_tag), []) for status in EACH for by_tag in (0, 1)),
    *((search.rows_query("created_at", status, "", False), ["SCAN matches"]) for status in EACH),
    *((query, []) for query in INDEXED),
    (sender.SELECT_DUE, ["SCAN t1"]),  # reads the few webhooks
)
def test_no_query_scans_or_sorts(plan, query, exceptions):
    steps = [step for step in plan(query) if "VIRTUAL TABLE" not in step]  # the index of the words
    assert [step for step in steps if "SCAN" in step or "TEMP" in step] == exceptions


HELLO = {"title": "Hello", "content": "World", "status": "published", "tags": ["News"]}


def test_models_find_posts_that_the_service_stored_and_a_peewee_transaction_is_atomic(database):
    post_id = database.write(posts.add, HELLO, Author("first")).id
    post = Post.get_by_id(post_id)
    assert (post.slug, post.status) == ("hello", "published")
    assert [tag.name for tag in PostTag.select().where(PostTag.post_id == post_id)] == ["News"]
    assert Post.select().where(Post.slug == "nothing").first() is None
    with database.engine.peewee_db.atomic() as transaction:
        Post.update(slug="other").where(Post.id == post_id).execute()
        transaction.rollback()
    assert Post.get_by_id(post_id).slug == "hello"


def test_the_service_finds_posts_that_models_stored(database, client):
    ApiKey.update(name="renamed").execute()
    assert [key.name for key in ApiKey.select()] == ["renamed"]
    assert client.get("/v1/posts").status_code == 200


def test_a_column_of_another_type_is_refused(monkeypatch):
    monkeypatch.setitem(models.DEFINITIONS, "price", "    id INTEGER NOT NULL PRIMARY KEY,\n    euros REAL NOT NULL\n")
    with pytest.raises(ValueError, match="price has a line that is not a column:     euros REAL"):
        models.model("price")


@pytest.mark.sqlite
def test_threads_have_their_own_connections(database):
    """On a server with threads, requests read and write at the same time."""

    def work(number):
        outcomes = []
        for each in range(10):
            post = database.write(posts.add, HELLO | {"title": f"{number} {each}"}, Author("first"))
            outcomes.append((post.id, post.document in lists.page(database, ListQuery(100)).items))
        database.engine.close()  # this thread's connection
        return outcomes

    with ThreadPoolExecutor(4) as pool:
        assert sorted(chain.from_iterable(pool.map(work, range(4)))) == [(post_id, True) for post_id in range(1, 41)]


def names_in(source, models):
    """The attributes of models that a module uses, and the columns that it writes by name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in models:
            yield node.value.id, node.attr
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith((".insert", ".update")):
            model = ast.unparse(node.func).partition(".")[0]
            yield from ((model, keyword.arg) for keyword in node.keywords if keyword.arg and model in models)


def test_every_column_that_the_code_names_exists_and_a_copy_has_the_tables_of_all_models():
    """The models have no annotations, so mypy cannot find a misspelt column."""
    models = {model.__name__: model for model in BaseModel.__subclasses__()}
    files = Path(blogapi.__file__).parent.rglob("*.py")
    names = {name for file in files for name in names_in(file.read_text(), models)}
    assert {model for model, _ in names} >= models.keys()
    assert [(model, name) for model, name in names if not hasattr(models[model], name)] == []
    assert {model._meta.table_name for model in models.values()} == set(tables())
