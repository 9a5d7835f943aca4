"""The index of the search: what it has after each change, and when a search runs in a thread."""

import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial

import pytest

from blogapi.clock import rfc3339
from blogapi.post import STATUSES
from blogapi.storage import posts, search
from blogapi.storage.errors import Unavailable
from blogapi.storage.lists import ListQuery
from blogapi.storage.models import Post
from blogapi.storage.search import index, sqlite
from tests.invariants import sound_posts


def test_a_post_is_found_as_it_is_and_not_as_it_was(client, found, post):
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


def test_a_post_that_was_refused_is_not_found(client, found, post):
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


def test_a_damaged_post_that_was_deleted_takes_no_place_on_a_page(client, found, post, database):
    for title in "abc":
        post(title=f"word {title}")
    database.write(lambda tx: tx.execute(Post.update(document="{").where(Post.id == 3)))
    assert client.delete("/v1/posts/3").status_code == 204
    assert found("word", limit="2") == "21"
    assert client.get("/v1/posts?q=word&limit=2").headers.get("Link") is None


@pytest.mark.sqlite
@pytest.mark.parametrize("status", [None, *STATUSES])
def test_no_search_scans_or_sorts(database, status):
    statement = database.engine.statement(sqlite.newest_query(status))
    values = dict.fromkeys(statement.names, 1) | {"words": '"a"'}
    steps = [row[3] for row in database.engine.connection.execute(f"EXPLAIN QUERY PLAN {statement.text}", values)]
    steps.remove("SCAN t2 VIRTUAL TABLE INDEX 192:M1<")  # 192 is in descending order of the ids
    steps.remove("USING ROWID SEARCH ON TABLE recent FOR IN-OPERATOR")
    assert {step.split()[0] for step in steps} <= {"SEARCH", "MERGE", "LEFT", "RIGHT", "LIST"}, steps


def test_a_search_takes_three_statements(client, statements):
    client.get("/v1/posts?q=fog")
    with statements() as collected:
        client.get("/v1/posts?q=fog")
    assert [each.split()[0] for each in collected if not each.startswith("--")] == ["SELECT"] * 3


QUICK = ["q=fog", "q=f*", "q=fog&status=published", "q=fog&sort=relevance", "q=fog lake sun"]
SLOW = ["q=fo*", 'q="fog lake"', "q=東京", "q=fog&status=draft", "q=fog&tag=a", "q=fog&sort=published_at"]


@pytest.mark.sqlite
@pytest.mark.parametrize("query", QUICK + SLOW)
def test_among_much_text_a_search_that_can_take_long_runs_in_a_thread(database, query):
    asked = ListQuery(10, **dict(each.split("=") for each in query.split("&")))
    assert search.is_quick(database, asked)
    much = {"id": 1, "slug": "a", "status": "draft", "document": "x" * search.QUICK_SEQUENCE_BYTES}
    database.write(lambda tx: tx.execute(Post.insert(much)))
    assert search.is_quick(database, asked) is (query in QUICK)
    assert search.page(database, asked).posts == []


def test_a_large_post_is_indexed_in_a_thread_and_found_like_any_other(client, found, post, in_thread):
    large = {"title": "Large", "content": f"fog {'ü ' * index.LARGE} lake", "slug": "large"}
    assert client.post("/v1/posts", json=large, headers={"Idempotency-Key": "a"}).status_code == 201
    assert client.post("/v1/posts", json=large, headers={"Idempotency-Key": "a"}).json["id"] == "1"
    post(title="Small", content="fog")
    assert (found("fog"), found("lake"), len(in_thread)) == ("21", "1", 1)
    assert client.patch("/v1/posts/1", json={"title": "Still large"}).status_code == 200
    assert client.patch("/v1/posts/1", json={"tags": ["sun"], "status": "draft"}).status_code == 200
    assert (found("still"), found("sun"), len(in_thread)) == ("1", "1", 2)
    assert client.patch("/v1/posts/1", json={"content": "sun", "tags": []}).status_code == 200
    assert (found("fog"), found("sun"), found("still"), len(in_thread)) == ("2", "1", "1", 3)
    assert client.put("/v1/posts/by-slug/large", json=large | {"title": "Back"}).status_code == 200
    assert client.delete("/v1/posts/1").status_code == 204
    assert (found("fog"), found("lake"), len(in_thread)) == ("2", "", 5)
    assert client.post("/v1/trash/1/restore").status_code == 200
    assert (found("fog"), len(in_thread)) == ("21", 6)


def test_a_large_post_is_published_in_a_thread(client, database, in_thread, add, found, clock):
    add(content=f"fog {'ü ' * index.LARGE}")
    client.patch("/v1/posts/1", json={"status": "scheduled", "published_at": rfc3339(clock.now + 10)})
    clock.now += 10
    assert (database.write(posts.publish_due), len(in_thread)) == ({1: True}, 2)
    assert found("fog", status="published") == "1"


@pytest.mark.parametrize("character", ["x ", "ü", "東", "㌖", "\U00020000"])
def test_the_time_that_it_takes_to_index_a_text_decides_whether_it_is_large(add, in_thread, character):
    def seconds(length):
        begun = time.process_time()
        index.all_words({"title": "A", "content": character * length, "status": "draft", "tags": []})
        return time.process_time() - begun

    length = index.LARGE // (4 * len(character.encode()) - 3 * len(character))
    for count in (length - 9, length + 9):
        add(content=character * count, tags=[])
    assert len(in_thread) == 1
    assert min(seconds(length) for _ in range(3)) < 0.025


@pytest.mark.parametrize("q", ["a b c d", '"a a a a"', "ab* cd* ef* gh*"])
def test_a_search_for_many_words_runs_in_a_thread_however_few_posts_there_are(database, q):
    assert not search.is_quick(database, ListQuery(10, q=q))


def test_a_search_runs_in_a_thread_while_posts_are_due(database, client, post, clock):
    post(title="Fog")
    client.patch("/v1/posts/1", json={"status": "scheduled", "published_at": rfc3339(clock.now + 10)})
    query = ListQuery(10, "published", q="fog")
    assert search.is_quick(database, query)
    clock.now += 10
    assert not search.is_quick(database, query)
    database.write(posts.publish_due)
    assert search.is_quick(database, query)


@pytest.mark.sqlite
def test_a_search_in_a_thread_reads_as_of_one_moment(database, add):
    """Else words that move from those that wait to the index would be found twice, or not at all."""
    add(title="Fog")

    def found(reader):
        return len(search.page(reader, ListQuery(10, q="fog")).posts)

    def look(reader):
        yield found(reader)
        for operation in (partial(search.settle, database), partial(add, title="Fog")):
            with ThreadPoolExecutor(1) as pool:
                pool.submit(operation).result(10)
            yield found(reader)

    assert database.read_in_thread("client", lambda reader: list(look(reader))) == [1, 1, 1]
    assert found(database) == 2


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


@pytest.mark.sqlite
@pytest.mark.parametrize("by_title", [None, True, False])
def test_a_search_among_published_posts_looks_for_words_of_published_posts_only(by_title):
    sequences = index.sequences_of('fog "lake sun" a* b*')
    expression = sqlite.expression(index.Terms(sequences, "published", "tag", by_title))
    quoted = expression.split('"')[1::2]
    assert len(quoted) >= 5
    assert all(word.startswith(index.PUBLISHED) for words in quoted for word in words.split())


@pytest.mark.sqlite
def test_the_index_has_nothing_of_a_hidden_post_among_the_words_of_published_ones(client, database, post):
    post(title="Secret", tags=["Hidden"])
    client.patch("/v1/posts/1", json={"status": "published"})
    client.patch("/v1/posts/1", json={"status": "archived"})
    for q in ("secret", "hidden", "s*", "words"):
        words = sqlite.expression(index.Terms(index.sequences_of(q), "published", None))
        assert database.row(sqlite.SOME_IDS, words=words, limit=1) is None


# The index


def test_an_index_of_another_unicode_version_is_rebuilt(config, database, client, found, post):
    post(title="Fog")
    database.close()
    with closing(sqlite3.connect(config.database, isolation_level=None)) as other:
        other.execute("UPDATE search_made SET unicode = '1.0'")
        other.execute("INSERT INTO search (rowid, words) VALUES (1, 'left')")
    with pytest.raises(Unavailable, match="blogapi init"):
        database.engine.open(create=False)
    assert database.engine.open() is False
    assert (found("fog"), found("left")) == ("1", "")


def test_a_damaged_post_with_more_words_than_were_indexed_can_be_deleted(client, post, found, database):
    made = post(title="One")
    document = posts.documents.dump(made | {"content": "many " * 100})
    database.write(lambda tx: tx.execute(Post.update(document=document).where(Post.id == 1)))
    assert client.delete("/v1/posts/1").status_code == 204
    assert post(title="Two")["id"] == found("two")


@pytest.mark.sqlite
def test_only_the_part_that_changes_is_written(database, client, post, statements):
    post(title="Fog", tags=["a"])
    search.settle(database)

    def written(**changes):
        with statements() as collected:
            client.patch("/v1/posts/1", json=changes)
        return [each.split()[2] for each in collected if each.split()[0] in ("INSERT", "DELETE")]

    assert "recent" not in written(slug="other")
    assert written(status="archived").count("search") == 2
    assert "recent" in written(content="Sun")
