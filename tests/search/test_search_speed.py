"""How long a search takes, and that others do not wait for it."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from peewee import SQL

from blogapi.paging import ListQuery
from blogapi.search import index
from blogapi.search import storage as search
from blogapi.server.threads import SharedDatabase
from blogapi.storage.engine import Loop
from tests.cases import cases


@pytest.mark.sqlite  # PostgreSQL runs them in processes of its own.
@pytest.mark.in_process
@cases(
    "query",
    [
        *({"q": q} for q in ("fo*", "fog lake", '"fog lake"', "東京")),
        *({"q": "fog", "sort": sort} for sort in ("relevance", "published_at")),
        *({"q": "fog", "status": "draft"}, {"q": "fog", "tag": "a"}),
    ],
)
def test_others_are_served_during_a_search_that_may_take_long(client, meanwhile, query):
    assert (client.get("/v1/posts", query_string=query).json, meanwhile) == ([], [200])
    meanwhile.clear()


def test_many_slow_searches_of_one_client_do_not_keep_another_waiting(database):
    shared = SharedDatabase(database.engine)
    begun, ended = threading.Event(), threading.Event()
    with ThreadPoolExecutor(20) as pool:
        many = [
            pool.submit(shared.read_in_thread, "many", lambda reader: (begun.set(), ended.wait(20))) for _ in range(20)
        ]
        assert begun.wait(20)
        try:
            for _ in range(10):  # while the others begin to wait
                assert shared.read_in_thread("one", lambda reader: "read") == "read"
            assert not any(each.done() and not each.exception() for each in many)  # Some may have given up.
        finally:
            ended.set()


@pytest.mark.sqlite
def test_words_that_never_meet_are_not_sought_again_for_each_of_the_first_posts(database, add):
    for _ in range(search.FIRST_READ):
        add(title="Even", status="published")
    many = "WITH RECURSIVE n(n) AS (SELECT 1000 UNION ALL SELECT n + 1 FROM n WHERE n < 20000)"
    words = "iif(n % 2, 'even', 'odd')"
    insert = f"{many} INSERT INTO search (rowid, title, text) SELECT n, {words}, '' FROM n"
    database.write(lambda tx: tx.execute(SQL(insert)))

    def seconds(sort):
        begun = time.thread_time()
        query = ListQuery(20, status="published", q="even odd", sort=sort)
        assert search.read_page(database, query).items == []
        return time.thread_time() - begun

    assert min(seconds("published_at") for _ in range(3)) < 10 * min(seconds("created_at") for _ in range(3))


@pytest.mark.sqlite
@pytest.mark.parametrize("is_cooperative", [False, True])
def test_many_small_changes_leave_the_index_in_few_parts(database, add, is_cooperative):
    database.engine.loop = Loop()
    database.engine.loop.is_cooperative = is_cooperative  # In our server, the background merges.
    for _ in range(100):
        add(title="Fog")
    if is_cooperative:
        index.tidy(database)
    segments = "SELECT count(DISTINCT segid) FROM search_idx"
    assert database.row(SQL(segments))[0] < 20
