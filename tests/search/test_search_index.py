"""The search index: when it is updated, and that a search never finds too little."""

import json
import random

import pytest
from peewee import SQL

from blogapi.clock import rfc3339
from blogapi.documents import EXAMPLE
from blogapi.paging import ListQuery
from blogapi.posts import storage as posts
from blogapi.search import index
from blogapi.search import storage as search
from blogapi.storage.errors import Unavailable
from blogapi.storage.models import Author, Post
from blogapi.storage.setup import REBUILD
from blogapi.wings.tags import storage as tags
from tests.conftest import message
from tests.databases import execute
from tests.invariants import sound_posts
from tests.storage.fixtures import locked

FIELDS = {"title": "A", "content": "Words.", "tags": []}


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
    assert found("early", status="published", sort="relevance") == "21"
    assert client.get("/v1/posts?q=due").json[0]["status"] == "published"
    sound_posts(config.database)


def test_a_deleted_damaged_post_takes_no_place_on_a_page(client, found, post, database):
    for title in "abc":
        post(title=f"word {title}")
    database.write(lambda tx: tx.execute(Post.update(document="{").where(Post.id == 3)))
    assert client.delete("/v1/posts/3").status_code == 204
    assert found("word", limit="2") == "21"
    assert client.get("/v1/posts?q=word&limit=2").headers.get("Link") is None


# Tags


def test_a_renamed_tag_is_found_at_once(client, found, post):
    for title in ("Fog", "Lake", "Sun"):
        post(title=title, tags=["Grey sky", "day"], status="draft" if title == "Sun" else "published")
    assert client.patch("/v1/tags/grey%20sky", json={"name": "Blue sea"}).status_code == 200
    assert [found(q) for q in ("blue", "se*", '"blue sea"', "grey", "sky")] == ["321", "321", "321", "", ""]
    assert (found("fog", tag="blue sea"), found("fog", tag="grey sky"), found("fog blue")) == ("1", "", "1")
    assert client.patch("/v1/tags/blue%20sea", json={"name": "Day", "merge": True}).status_code == 200
    assert (found("day"), found("day", status="published")) == ("321", "21")
    assert (found("blue"), found("sun", tag="day")) == ("", "3")
    assert client.delete("/v1/tags/day").status_code == 204
    assert (found("day"), found("sun", tag="day"), found("sun")) == ("", "", "3")
    assert post(title="Rain", tags=["Grey sky"])["id"] == "4"
    assert (found("grey sky"), found("day")) == ("4", "")


def test_a_tag_does_not_count_as_a_word_of_the_title(client, found, post):
    post(title="Fog", tags=["Lake"])
    post(title="Lake")
    post(title="Sun", content="lake")
    assert [found("lake", sort=sort) for sort in ("created_at", "relevance")] == ["321", "231"]


def test_changing_the_status_writes_no_words_to_the_index(client, post, statements, found):
    post(title="Fog", tags=["a"])
    for status in ("published", "archived"):
        with statements() as collected:
            assert client.patch("/v1/posts/1", json={"status": status}).status_code == 200
        assert not any("INTO search" in each for each in collected)
        assert found("fog a", status=status) == "1"


@pytest.mark.both_engines
def test_a_search_finds_the_words_of_very_many_tags(database, found, add):
    for number in range(120):
        add(title="Fog", tags=[f"sun {number}-{each}" for each in range(50)])
    newest = "".join(str(number) for number in range(120, 0, -1))
    for sort in ("created_at", "relevance"):
        assert (found("su*", sort=sort, limit="200"), found("fog s*", sort=sort, limit="200")) == (newest, newest)
    assert (found('"sun 7 3"'), found("fog", tag="sun 7-3")) == ("8", "8")


@pytest.mark.parametrize("tag", ["it's 100% \\_\"", "😀" * 64, "ŉ" * 64, "a b", "¶61"])
def test_a_search_is_filtered_by_a_whole_tag(found, post, tag):
    post(title="Fog", tags=[tag, "b"])
    post(title="Fog", tags=[f"{tag[:-1]}c", "ab"])
    assert (found("fog", tag=tag), found("fog", tag=tag, sort="published_at"), found("fog", tag="a")) == ("1", "", "")
    assert found("fog", tag=tag, sort="relevance") == "1"


@pytest.mark.sqlite
def test_a_quick_search_does_not_miss_a_post(found, add, monkeypatch):
    """A quick search reads few matches: some are drafts, which the list leaves out, and a page can be larger."""
    monkeypatch.setattr(search, "QUICK_READ", 3)
    for status in ("published", "published", "draft", "draft", "draft", "published"):
        add(title="Fog", status=status)
    assert found("fog", status="published", limit="2") == "62"
    assert found("fog", status="published", limit="2", before="6") == "21"
    assert found("fog", status="published", limit="1") == "6"
    assert (found("fog"), found("fog", limit="3"), found("fog", limit="2")) == ("654321", "654", "65")


# Large posts


def test_the_first_100000_characters_of_the_content_are_searched(found, post, database):
    post(title="Large", content=f"{'fog ' * 24_999}lake sun", excerpt="Excerpt", tags=["tag"])
    post(title="東京", content=f"{'東' * 99_999}京都")
    post(title="Many", content=f"{'㌖' * 100_000}", tags=["later"])  # NFKD turns each into six letters.
    post(title="Different", content=" ".join(map(chr, range(0x20000, 0x20000 + 50_000))))
    assert [found(q) for q in ("fog", "lake", "sun", "excerpt large tag")] == ["1", "1", "", "1"]
    assert (found("東京"), found("京都"), found("later"), found("キロメートル")) == ("2", "", "3", "3")
    assert [found(chr(0x20000 + number)) for number in (0, 7_000, 49_999)] == ["4", "4", ""]


def test_a_very_large_post_with_very_long_words_is_found(client, found, post):
    text = " ".join(f"жж{number}" for number in range(7_900))
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
    database.write(lambda tx: tx.execute(Post.update(document="{").where(Post.id == 1)))
    clock.now += 10
    assert found("fog", status="published") == "2"
    with locked(database):
        assert found("fog", status="published") == "2"  # Nothing is left to index.


@pytest.mark.sqlite
@pytest.mark.in_process
def test_the_words_of_a_large_post_are_found_in_a_thread_before_its_transaction(client, meanwhile, found):
    large = {"title": "Fog", "content": "lake " * 10_000}
    assert client.post("/v1/posts", json=large).status_code == 201
    assert client.patch("/v1/posts/1", json={"content": "sea " * 10_000}).status_code == 200
    assert (meanwhile, found("sea"), found("lake")) == ([200, 200], "1", "")
    entry = {"type": ["h-entry"], "properties": {"name": ["Hill"], "content": ["hill " * 10_000]}}
    assert client.post("/micropub", json=entry).status_code == 201
    assert (len(meanwhile), found("hill")) == (3, "2")


@pytest.mark.sqlite
def test_the_changes_of_a_transaction_write_one_segment_of_the_index(database, add):
    segments = SQL("SELECT count(DISTINCT segid) FROM search_idx")
    for _ in range(16):
        add()
    before = database.one(segments)[0]

    def write(tx):
        for number in (9, 3, 5):
            posts.change(tx, number, {"title": f"b {number}"}, Author(""))
        posts.add(tx, FIELDS | {"tags": ["new"]}, Author(""))
        posts.delete(tx, 4, Author(""))

    database.write(write)
    assert database.one(segments)[0] == before + 1


def test_the_last_change_of_a_transaction_is_the_one_that_is_found(database, found, add):
    def change(tx, number, **fields):
        posts.change(tx, number, fields, Author(""))

    def write(tx):
        for title in ("Fog", "Lake", "Sun", "Sea"):
            posts.add(tx, FIELDS | {"title": title, "tags": ["grey"]}, Author(""))
        change(tx, 1, status="published")
        change(tx, 2, status="published")
        change(tx, 2, status="draft", title="Rain")
        posts.delete(tx, 3, Author(""))
        tags.rename(tx, "grey", "Blue", False, Author(""))
        change(tx, 4, tags=["Green"])

    database.write(write)
    assert [found(q) for q in ("fog", "rain", "blue", "green")] == ["1", "2", "21", "4"]
    assert [found(q) for q in ("lake", "sun", "grey")] == ["", "", ""]
    assert (found("words", status="published"), found("words", status="draft")) == ("1", "42")


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
    queries = [
        {"q": q, "sort": sort} | filters
        for q in ("fog", "l*", '"fog lake"', "東", "sun lake", "s*")
        for sort in ("created_at", "published_at", "relevance")
        for filters in ({}, {"status": "published"}, {"status": "draft"}, {"tag": "fog"})
    ]
    before = [search.page(database, ListQuery(5, **query), "tests") for query in queries]
    sound_posts(config.database)
    database.write(lambda tx: tx.execute(SQL(REBUILD)))
    list(index.rebuild(database))
    assert [search.page(database, ListQuery(5, **query), "tests") for query in queries] == before
    assert any(page.next for page in before)


# The index as a whole


@pytest.fixture
def outdated(database, add):
    """Make the index lack three posts, the oldest of which is large, as after an upgrade; return what indexes them."""
    for content in ("fog " * index.words.LARGE, "fog", "fog and lake"):
        add(title="A", content=content)
    database.write(lambda tx: [index.delete(tx, number) for number in (1, 2, 3)])
    database.write(lambda tx: tx.execute(SQL(REBUILD)))
    return index.rebuild(database)


def test_an_index_is_built_again_newest_post_first(client, found, outdated, stranger, monkeypatch):
    monkeypatch.setattr(index, "INDEXING_SECONDS", 0)
    answer = client.get("/v1/posts?q=fog")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    expected = "the search index is being rebuilt, and the search would miss old posts;"
    assert message(answer, 503).startswith(expected)
    assert (next(outdated), stranger.get("/healthz").json) == (3, {"status": "ok", "indexed_percent": 0})
    assert client.get("/v1/posts?q=lake").status_code == 503  # Perhaps an older post has the word.
    assert next(outdated) == 2
    assert (found("fog", limit="1"), stranger.get("/healthz").json["indexed_percent"]) == ("3", 34)
    for query in ("limit=2", "limit=1&sort=relevance"):
        assert client.get(f"/v1/posts?q=fog&{query}").status_code == 503
    assert [*outdated] == [1]
    assert (found("fog"), found("lake"), found("fog", sort="relevance")) == ("321", "3", "321")
    assert stranger.get("/healthz").json == {"status": "ok"}


def test_posts_that_change_while_the_index_is_built_again_are_indexed_once(client, found, post, outdated, config):
    assert client.delete("/v1/posts/3").status_code == 204
    assert client.patch("/v1/posts/2", json={"content": "sun", "status": "published"}).status_code == 200
    post(title="New", content="fog")
    assert [*outdated] == [2, 1]
    assert (found("fog"), found("sun"), found("lake")) == ("41", "2", "")
    sound_posts(config.database)


@pytest.mark.usefixtures("outdated")
@pytest.mark.parametrize("damaged", ["{", json.dumps(EXAMPLE | {"content": 5})], ids=["no JSON", "no text"])
def test_the_background_builds_the_index_again_even_if_a_post_is_damaged(database, found, background, damaged):
    database.write(lambda tx: tx.execute(Post.update(document=damaged).where(Post.id == 2)))
    background.turn()
    assert (index.rebuild_position(database), found("fog")) == (0, "31")


def test_an_index_of_another_unicode_version_is_rebuilt(config, database, client, found, post):
    post(title="Fog")
    database.close()
    execute(config.database, "UPDATE search_made SET unicode = '1.0'")
    execute(config.database, "UPDATE search SET text = 'left'")
    with pytest.raises(Unavailable, match="blogapi init"):
        database.engine.open(create=False)
    assert database.engine.open() is False
    list(index.rebuild(database))
    assert (found("fog"), found("left")) == ("1", "")
