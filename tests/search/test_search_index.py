"""The search index: when it is updated, and that a search never finds too little."""

import random
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from peewee import SQL

from blogapi.clock import rfc3339
from blogapi.posts import storage as posts
from blogapi.posts.lists import ListQuery
from blogapi.storage.database import BUSY_SECONDS
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


def test_a_search_among_published_posts_indexes_only_posts_that_are_or_were_published(client, found, post, queued):
    post(title="Hidden")
    post(title="Shown", status="published")
    assert (found("shown", status="published"), queued()) == ("2", [1])
    client.patch("/v1/posts/2", json={"status": "archived"})
    assert queued() == [1, 2]
    assert (found("shown", status="published"), queued()) == ("", [1])
    assert (found("shown", status="archived"), queued()) == ("2", [])


def test_a_second_after_a_write_a_search_need_not_index_it(database, post, found, background, clock):
    background.turn()
    post(title="Fog")
    clock.now += 1
    background.turn()
    with locked(database):
        assert found("fog") == "1"


@pytest.mark.parametrize(("content", "transactions"), [("x", 2), ("x" * index.LARGE, index.INDEXED_POSTS + 3)])
def test_others_can_write_after_every_few_posts_that_are_indexed(database, add, statements, content, transactions):
    for _ in range(index.INDEXED_POSTS + 3):
        add(content=content)
    with statements() as collected:
        assert index.index_pending(database, seconds=60) == 0
    assert collected.count("COMMIT") == transactions


def test_a_search_that_cannot_index_all_queued_posts_in_time_is_503(client, add, found, monkeypatch):
    for _ in range(3):
        add(title="Fog")
    with monkeypatch.context() as patched:
        patched.setattr(index, "PENDING_POSTS", 2)
        answer = client.get("/v1/posts?q=fog")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert message(answer, 503).startswith("posts wait for the search index; nothing was changed")
    assert found("fog") == "321"


def test_posts_that_cannot_be_indexed_in_time_are_left_for_later(database, add, found):
    for _ in range(3):
        add(title="Fog")
    assert index.index_pending(database, seconds=-1) == 3
    assert found("fog") == "321"


def test_a_search_does_not_wait_for_posts_queued_after_it_began(database, add, monkeypatch):
    add(title="Fog")

    def write_alone(until, operation, *arguments):
        add(title="Fog")
        return type(database).write_alone(database, until, operation, *arguments)

    monkeypatch.setattr(database, "write_alone", write_alone)
    assert index.index_pending(database) == 0


def test_searches_at_the_same_time_all_find_a_post_that_was_not_indexed_yet(database, add, found):
    add(title="Fog")

    def find(number):
        try:
            return len(search.find(database, ListQuery(9, q="fog"), number).items)
        finally:
            database.engine.close()  # this thread's connection

    with ThreadPoolExecutor(4) as threads:
        assert [*threads.map(find, range(4))] == [1] * 4
    assert found("fog") == "1"


def test_if_the_database_cannot_be_written_a_search_never_finds_too_little(client, database, add, found):
    add(title="Fog")
    assert found("fog") == "1"
    add(title="More fog", status="draft")
    with locked(database):
        assert found("fog", status="published") == ""  # It does not wait for drafts.
        begun = time.monotonic()
        answer = client.get("/v1/posts?q=fog")
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
        assert time.monotonic() < begun + BUSY_SECONDS  # for which a write would wait
    assert found("fog") == "21"
    with locked(database):
        assert found("fog") == "21"  # Nothing is queued, so nothing is written.


def test_while_a_tag_changes_in_many_posts_only_searches_for_it_wait(client, database, add, found, monkeypatch):
    every = "".join(str(number) for number in range(18, 0, -1))
    for _ in range(18):
        add(title="Fog", tags=["Grey sky", "day"])
    index.index_pending(database)

    def status(q, tag=None):
        """The status of a search that can index only some of the posts in time."""
        with monkeypatch.context() as patched:
            patched.setattr(index, "PENDING_POSTS", 3)
            return client.get("/v1/posts", query_string={"q": q} | ({"tag": tag} if tag else {})).status_code

    assert client.patch("/v1/tags/grey%20sky", json={"name": "Blue"}).status_code == 200
    assert [status(*each) for each in (("fog",), ("day",), ("fog", "day"), ("skyline",))] == [200] * 4
    concerned = ("grey",), ("sk*",), ("fog blue",), ("fog", "blue"), ("fog", "grey sky")
    assert [status(*each) for each in concerned] == [503] * 5
    assert (found("blue"), found("grey"), found("fog", tag="blue")) == (every, "", every)
    assert client.delete("/v1/tags/blue").status_code == 204
    assert (status("fog"), status("blue")) == (200, 503)
    assert (found("blue"), status("blue")) == ("", 200)


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
def test_a_post_that_changes_during_indexing_is_indexed_in_its_new_version(database, add, found, monkeypatch, change):
    of_post, others = words.of_post, []

    def slowly(post):
        if not others:
            others.append(add(title="Small"))
            database.write(posts.change, 1, change, "tests")
        return of_post(post)

    monkeypatch.setattr(words, "of_post", slowly)
    add(title="Large", content="fog " * (index.LARGE // 2), tags=["a"])
    assert index.index_pending(database, seconds=60) == 0
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


def test_a_post_that_is_due_is_indexed_once_even_if_it_is_damaged(client, database, found, post, clock):
    for title in ("Fog", "Fog and lake"):
        post(title=title)
    for number in (1, 2):
        published_at = rfc3339(clock.now + 10)
        client.patch(f"/v1/posts/{number}", json={"status": "scheduled", "published_at": published_at})
    index.index_pending(database)
    database.write(lambda tx: tx.execute(Post.update(document="{").where(Post.id == 1)))
    clock.now += 10
    assert (found("fog", status="published"), found("fog", status="scheduled")) == ("2", "")
    with locked(database):
        assert found("fog", status="published") == "2"  # Nothing is left to index.


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
