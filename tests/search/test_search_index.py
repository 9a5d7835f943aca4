"""The search index: when it is updated, and when a search runs in a thread."""

import random
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from peewee import SQL

from blogapi.clock import rfc3339
from blogapi.posts import storage as posts
from blogapi.posts.lists import ListQuery
from blogapi.storage.errors import Unavailable
from blogapi.storage.models import Post
from blogapi.storage.setup import ENQUEUE_ALL
from blogapi.wings.search import index, words
from blogapi.wings.search import storage as search
from tests.conftest import message
from tests.invariants import sound_posts
from tests.storage.fixtures import locked


@pytest.fixture
def queued(database):
    """The posts whose words have changed since they were indexed."""
    return lambda: sorted({number for (number,) in database.rows(SQL("SELECT post_id FROM search_pending"))})


def test_a_search_finds_the_current_text_and_not_the_old_one(client, found, post):
    post(title="Alpha", content="one two", tags=["red"])
    post(title="Other", content="one")
    client.patch("/v1/posts/1", json={"content": "two three"})
    assert (found("one"), found("two"), found("three"), found("alpha"), found("red")) == ("2", "1", "1", "1", "1")
    client.patch("/v1/posts/1", json={"title": "Beta", "tags": ["green", "red"], "status": "published"})
    assert (found("alpha"), found("beta"), found("red"), found("green red")) == ("", "1", "1", "1")
    assert (found("two", status="draft"), found("two", status="published")) == ("", "1")
    client.put("/v1/posts/by-slug/alpha", json={"title": "Gamma", "content": "four", "excerpt": "Five"})
    assert (found("beta"), found("red"), found("two"), found("gamma four five")) == ("", "", "", "1")
    client.delete("/v1/posts/1")
    assert (found("gamma"), found("one")) == ("", "2")


def test_a_refused_post_is_not_found(client, found, post):
    post(slug="taken")
    assert client.post("/v1/posts", json={"title": "Words", "content": "x", "slug": "taken"}).status_code == 400
    assert found("x") == ""


def test_a_post_whose_time_has_come_is_found_as_published(client, found, post, clock, database, config):
    post(title="Early", status="published")
    post(title="Early and due", tags=["a"])
    post(title="Early and later", tags=["a"])
    later = ["2026-11-20T12:00:10Z", "2026-11-20T12:00:20Z"]
    for number, published_at in enumerate(later, 2):
        client.patch(f"/v1/posts/{number}", json={"status": "scheduled", "published_at": published_at})

    def ids(**query):
        return found("early", status="published", **query), found("early", status="scheduled", **query)

    assert (ids(), ids(tag="a")) == (("1", "32"), ("", "32"))
    clock.now += 10
    assert (ids(), ids(tag="a"), ids(before="3")) == (("21", "3"), ("2", "3"), ("21", ""))
    assert client.get("/v1/posts?q=due").json[0]["status"] == "published"
    database.write(posts.publish_due)
    assert (ids(), ids(tag="a")) == (("21", "3"), ("2", "3"))
    sound_posts(config.database)


def test_a_deleted_damaged_post_takes_no_place_on_a_page(client, found, post, database):
    for title in "abc":
        post(title=f"word {title}")
    database.write(lambda tx: tx.execute(Post.update(document="{").where(Post.id == 3)))
    assert client.delete("/v1/posts/3").status_code == 204
    assert found("word", limit="2") == "21"
    assert client.get("/v1/posts?q=word&limit=2").headers.get("Link") is None


# Queued posts


def test_a_write_queues_a_post_and_the_next_search_indexes_it(client, found, post, queued):
    post(title="Fog")
    post(title="Sun")
    client.patch("/v1/posts/1", json={"content": "Lake"})
    assert queued() == [1, 2]
    assert found("lake") == "1"
    assert queued() == []
    client.patch("/v1/posts/1", json={"slug": "other"})
    assert queued() == []
    client.delete("/v1/posts/1")
    assert (queued(), found("lake"), queued()) == ([1], "", [])


def test_a_search_among_published_posts_indexes_only_posts_that_are_or_were_published(client, found, post, queued):
    post(title="Hidden")
    post(title="Shown", status="published")
    assert (found("shown", status="published"), queued()) == ("2", [1])
    client.patch("/v1/posts/2", json={"status": "archived"})
    assert queued() == [1, 2]
    assert (found("shown", status="published"), queued()) == ("", [1])
    assert (found("shown", status="archived"), queued()) == ("2", [])


def test_the_background_work_indexes_each_second(post, queued, background, clock):
    background.turn()
    post(title="Fog")
    background.turn()
    assert queued() == [1]
    clock.now += 1
    background.turn()
    assert queued() == []


@pytest.mark.parametrize(("content", "at_a_time"), [("x", index.INDEXED_POSTS), ("x" * index.LARGE, 1)])
def test_posts_are_indexed_a_few_at_a_time(database, add, queued, monkeypatch, content, at_a_time):
    for _ in range(index.INDEXED_POSTS + 3):
        add(content=content)
    left = []
    monkeypatch.setattr(index.time, "sleep", lambda seconds: left.append(len(queued())))
    assert index.index_pending(database, seconds=60) == 0
    assert (left[0], left[-1]) == (index.INDEXED_POSTS + 3 - at_a_time, 0)


def test_a_search_that_cannot_index_all_queued_posts_in_time_is_503(client, add, found, monkeypatch):
    for _ in range(3):
        add(title="Fog")
    with monkeypatch.context() as patched:
        patched.setattr(index, "PENDING_POSTS", 2)
        answer = client.get("/v1/posts?q=fog")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert message(answer, 503).startswith("posts wait for the search index; nothing was changed")
    assert found("fog") == "321"


def test_an_index_that_takes_too_long_is_left_for_later(database, add, queued):
    for _ in range(3):
        add(title="Fog")
    assert (index.index_pending(database, seconds=-1), queued()) == (3, [1, 2, 3])
    assert (index.index_pending(database), queued()) == (0, [])


def test_a_search_does_not_wait_for_posts_queued_after_it_began(database, add, queued, monkeypatch):
    add(title="Fog")

    def write_alone(until, operation, *arguments):
        add(title="Fog")
        return type(database).write_alone(database, until, operation, *arguments)

    monkeypatch.setattr(database, "write_alone", write_alone)
    assert (index.index_pending(database), queued()) == (0, [2])


def test_two_searches_never_index_the_same_post(database, add, monkeypatch):
    of_post, found = words.of_post, []

    def slowly(post):
        found.append(post["title"])
        time.sleep(0.05)
        return of_post(post)

    monkeypatch.setattr(words, "of_post", slowly)
    add(title="Fog")

    def search(_):
        try:
            return index.index_pending(database)
        finally:
            database.engine.close()  # this thread's connection

    with ThreadPoolExecutor(4) as threads:
        assert [*threads.map(search, range(4))] == [0] * 4
    assert found == ["Fog"]


def test_if_the_database_cannot_be_written_a_search_never_finds_too_little(client, database, add, found, queued):
    add(title="Fog")
    assert found("fog") == "1"
    add(title="More fog", status="draft")
    with locked(database):
        assert found("fog", status="published") == ""  # It does not wait for drafts.
        begun = time.monotonic()
        answer = client.get("/v1/posts?q=fog")
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
        assert time.monotonic() < begun + 1.5 * index.INDEX_SECONDS
    assert (found("fog"), queued()) == ("21", [])
    with locked(database):
        assert found("fog") == "21"  # Nothing is queued, so nothing is written.


def test_while_a_tag_changes_in_many_posts_only_searches_for_it_wait(client, database, add, found, queued):
    for _ in range(3):
        add(title="Fog", tags=["Grey sky", "day"])
    index.index_pending(database)

    def waits(q, tag=None):
        return len(index._pending(database, ListQuery(9, q=q, tag=tag)))

    assert client.patch("/v1/tags/grey%20sky", json={"name": "Blue"}).status_code == 200
    assert (waits("fog"), waits("day"), waits("fog", "day"), waits("skyline")) == (0, 0, 0, 0)
    concerned = ("grey", None), ("sk*", None), ("fog blue", None), ("fog", "blue"), ("fog", "grey sky")
    assert [waits(*each) for each in concerned] == [3] * 5
    with locked(database):
        assert (found("fog"), client.get("/v1/posts?q=blue").status_code) == ("321", 503)
    assert (found("blue"), found("grey"), found("fog", tag="blue"), queued()) == ("321", "", "321", [])
    assert client.delete("/v1/tags/blue").status_code == 204
    assert (waits("fog"), waits("blue")) == (0, 3)
    assert (found("blue"), queued(), list(database.rows(SQL("SELECT * FROM search_retagged")))) == ("", [], [])


def test_the_first_100000_characters_of_the_content_are_searched(found, post, database):
    post(title="Large", content=f"{'fog ' * 24_999}lake sun", excerpt="Excerpt", tags=["tag"])
    post(title="東京", content=f"{'東' * 99_999}京都")
    post(title="Many", content=f"{'㌖' * 100_000}", tags=["later"])  # NFKD turns each into six letters.
    post(title="Different", content=" ".join(map(chr, range(0x20000, 0x20000 + 50_000))))
    assert index.index_pending(database, seconds=60) == 0
    assert [found(q) for q in ("fog", "lake", "sun", "excerpt large tag")] == ["1", "1", "", "1"]
    assert (found("東京"), found("京都"), found("later"), found("キロメートル")) == ("2", "", "3", "3")
    assert [found(chr(0x20000 + number)) for number in (0, 19_000, 49_999)] == ["4", "4", ""]


@pytest.mark.parametrize("change", [{"title": "Larger"}, {"status": "published"}, {"tags": ["b"]}])
def test_a_post_that_changes_during_indexing_is_indexed_in_its_new_version(
    database, add, found, queued, monkeypatch, change
):
    of_post, others = words.of_post, []

    def slowly(post):
        if not others:
            others.append(add(title="Small"))
            database.write(posts.change, 1, change, "tests")
        return of_post(post)

    monkeypatch.setattr(words, "of_post", slowly)
    add(title="Large", content="fog " * (index.LARGE // 2), tags=["a"])
    assert (index.index_pending(database, seconds=60), queued()) == (0, [2])
    assert found("large") == ("" if "title" in change else "1")
    assert found("a", status="published") == ("1" if "status" in change else "")
    assert found("b") == ("1" if "tags" in change else "")


def test_a_very_large_post_with_very_long_words_is_found(client, found, post):
    text = " ".join(f"жж{number}" for number in range(10_000))
    post(title="Large fog", content=f"{text} {'x' * 5000} {'hPa' * 2000} lake sun", status="published", tags=["a"])
    post(title="Small", content="lake sun")
    assert (found("㍱" * 200), found("㍱" * 100)) == ("1", "")  # NFKD turns each into three letters.
    assert (found("lake"), found('"lake sun"'), found("жж7531 lake"), found('"жж7531 lake"')) == ("21", "21", "1", "")
    assert [found("lake", status=status) for status in ("published", "draft")] == ["1", "2"]
    assert (found("жж753*", tag="a"), found("lake", tag="a")) == ("1", "1")
    assert (found("x" * 200), found("xxx*"), found("lake", sort="relevance")) == ("", "1", "21")


def test_a_post_that_is_due_is_indexed_once_even_if_it_is_damaged(client, database, found, post, clock, queued):
    for title in ("Fog", "Fog and lake"):
        post(title=title)
    for number in (1, 2):
        published_at = rfc3339(clock.now + 10)
        client.patch(f"/v1/posts/{number}", json={"status": "scheduled", "published_at": published_at})
    index.index_pending(database)
    database.write(lambda tx: tx.execute(Post.update(document="{").where(Post.id == 1)))
    clock.now += 10
    assert database.row(index.PENDING, published=True, now=database.now, limit=1)
    assert (found("fog", status="published"), found("fog", status="scheduled")) == ("2", "")
    assert not database.row(index.PENDING, published=True, now=database.now, limit=1)


@pytest.mark.sqlite
def test_many_small_changes_leave_the_index_in_few_parts(database, add):
    for _ in range(100):
        add(title="Fog")
        index.index_pending(database)
    segments = "SELECT count(DISTINCT segid) FROM search_others_idx"
    assert database.row(SQL(segments))[0] < 20


@pytest.mark.parametrize("seed", range(3))
def test_a_search_finds_the_same_however_the_index_was_built(client, clock, database, config, seed):
    draw = random.Random(seed)
    words, statuses = ["fog", "lake", "sun", "東京"], ["published", "draft", "archived"]
    for step in range(60):
        content = " ".join(draw.choices(words, k=2))
        fields = {"title": draw.choice(words), "content": content, "tags": draw.choices(words)}
        operation, number = draw.randrange(7), draw.randint(1, step // 2 + 1)
        if operation < 3:
            client.post("/v1/posts", json=fields)
        elif operation == 3:
            client.patch(f"/v1/posts/{number}", json=dict([draw.choice([*fields.items()])]))
        elif operation == 4:
            client.patch(f"/v1/posts/{number}", json={"status": draw.choice(statuses)})
        elif operation == 5:
            client.delete(f"/v1/posts/{number}")
        else:
            client.patch(f"/v1/tags/{draw.choice(words)}", json={"name": draw.choice(words), "merge": True})
        clock.now += draw.randrange(2)
        if draw.random() < 0.3:
            index.index_pending(database, draw.choice([None, ListQuery(1, q="fog", status="published")]))
    queries = [
        {"q": q, "sort": sort} | filters
        for q in ("fog", "l*", '"fog lake"', "東", "sun lake", "s*")
        for sort in ("created_at", "published_at", "updated_at", "relevance")
        for filters in ({}, {"status": "published"}, {"status": "draft"}, {"tag": "fog"})
    ]
    before = [search.find(database, ListQuery(5, **query), "tests") for query in queries]
    sound_posts(config.database)
    database.write(lambda tx: tx.execute(SQL(ENQUEUE_ALL)))
    index.index_pending(database)
    assert [search.page(database, ListQuery(5, **query)) for query in queries] == before
    assert any(page.next for page in before)


# How long a search takes


@pytest.mark.sqlite
def test_a_post_is_removed_from_the_index_by_its_key(plan):
    key = "only_tags=? AND published=? AND post_id=?"
    assert plan(index.FORGET) == [f"SEARCH search_pending USING PRIMARY KEY ({key})"]


def test_a_search_takes_three_statements(client, statements):
    client.get("/v1/posts?q=lake")
    with statements() as collected:
        client.get("/v1/posts?q=fog")
    assert [each.split()[0] for each in collected if not each.startswith("--")] == ["SELECT"] * 3


def test_searches_for_other_words_run_the_same_query(database):
    queries = ("fog", '"fog lake" sun*', "a b c", "東京")
    for q in queries:
        search.find(database, ListQuery(10, q=q), "tests")
    before = search.rows_query.cache_info().currsize
    for q in queries:
        search.find(database, ListQuery(10, q=f"{q} {q}x*"), "tests")
    assert search.rows_query.cache_info().currsize == before


QUICK = ["q=fog", "q=f*", "q=fog&status=published"]
SLOW = [
    "q=fog&sort=relevance",
    "q=fo*",
    "q=fog lake",
    'q="fog lake"',
    "q=東京",
    "q=fog&status=draft",
    "q=fog&tag=a",
    "q=fog&sort=published_at",
]


@pytest.mark.sqlite
@pytest.mark.in_process
@pytest.mark.parametrize("query", QUICK + SLOW)
def test_a_potentially_long_search_runs_in_a_thread(database, in_thread, query):
    asked = ListQuery(10, **dict(each.split("=") for each in query.split("&")))
    assert search.find(database, asked, "tests").items == []
    assert len(in_thread) == (query in SLOW)


def test_many_searches_of_one_client_do_not_keep_another_waiting(database):
    begun, ended = threading.Event(), threading.Event()
    with ThreadPoolExecutor(20) as pool:
        many = [
            pool.submit(database.read_in_thread, "many", lambda reader: (begun.set(), ended.wait(10)))
            for _ in range(20)
        ]
        assert begun.wait(10)
        try:
            for _ in range(10):  # while the others begin to wait
                assert database.read_in_thread("one", lambda reader: "read") == "read"
            assert not any(each.done() for each in many)
        finally:
            ended.set()


# The index as a whole


def test_an_index_of_another_unicode_version_is_rebuilt(config, database, client, found, post):
    post(title="Fog")
    database.close()
    with closing(sqlite3.connect(config.database, isolation_level=None)) as other:
        other.execute("UPDATE search_made SET unicode = '1.0'")
        other.execute("UPDATE search_others SET text = 'left'")
    with pytest.raises(Unavailable, match="blogapi init"):
        database.engine.open(create=False)
    assert database.engine.open() is False
    assert (found("fog"), found("left")) == ("1", "")


@pytest.mark.sqlite
def test_words_that_never_meet_are_not_sought_again_for_each_of_the_first_posts(database, add):
    for _ in range(search.FIRST_READ):
        add(title="Even", status="published")
    assert index.index_pending(database, seconds=60) == 0
    many = "WITH RECURSIVE n(n) AS (SELECT 1000 UNION ALL SELECT n + 1 FROM n WHERE n < 20000)"
    words = "iif(n % 2, 'even', 'odd')"
    insert = f"{many} INSERT INTO search_published (rowid, title, text, labels) SELECT n, {words}, '', '' FROM n"
    database.write(lambda tx: tx.execute(SQL(insert)))

    def seconds(sort):
        begun = time.thread_time()
        assert search.page(database, ListQuery(20, status="published", q="even odd", sort=sort)).items == []
        return time.thread_time() - begun

    assert min(seconds("published_at") for _ in range(3)) < 10 * min(seconds("created_at") for _ in range(3))
