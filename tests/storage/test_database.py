"""The core's database without a server that shares commits: slow operations work, too."""

from contextlib import closing

import pytest
from peewee import SQL

from blogapi.engines import engine_for
from blogapi.paging import ListQuery
from blogapi.posts import storage as posts
from blogapi.storage.database import Database
from blogapi.storage.errors import DoesNotExist, Unavailable
from blogapi.storage.models import Author
from blogapi.wings.search import storage as search

LARGE = "fog " * 100_000


@pytest.fixture
def plain(config):
    engine = engine_for(config.database)
    engine.open()
    with closing(Database(engine)) as database:
        yield database


def test_operations_too_slow_for_shared_commits_work_without_them(plain):
    fields = {"title": "A", "content": LARGE, "status": "published", "tags": []}
    post_id = plain.write(posts.add, fields, Author("first")).id
    found = search.find(plain, ListQuery(limit=10, status="published", q="fog"), "client")
    assert len(found.items) == 1
    for title in "BCD":
        plain.write(posts.change, post_id, {"title": title}, Author("first"))
    plain.write(posts.delete, post_id, Author("first"), permanent=True)
    with pytest.raises(DoesNotExist):
        posts.find(plain, post_id)


@pytest.mark.usefixtures("impatient")
def test_a_slow_read_ends_in_time_without_threads(plain):
    numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000000)"
    with pytest.raises(Unavailable):
        plain.read_in_thread("client", lambda reader: reader.row(SQL(f"{numbers} SELECT count(*) FROM n")))
