"""The words of posts that wait before they are written to the index of the search."""

import random

import pytest
from peewee import fn

from blogapi.storage import search
from blogapi.storage.lists import ListQuery
from blogapi.storage.models import Recent
from tests.invariants import sound_posts


@pytest.fixture
def waiting(count, database):
    return lambda: database.row(Recent.select(fn.COUNT(Recent.c.post_id)))[0]


@pytest.mark.sqlite
def test_words_wait_until_they_are_many(add, found, waiting, config):
    for number in range(1, 264):
        add(title=f"fog {number}", content="-", tags=[])
        assert waiting() == number
    assert found("fog", limit=1) == "263"
    add(title="fog 264", content="-", tags=[])
    assert waiting() == 0
    assert found("fog", limit=1) == "264"
    sound_posts(config.database)


@pytest.mark.sqlite
def test_a_text_without_words_has_none(post, config):
    post(content=".", status="published")
    sound_posts(config.database)


@pytest.mark.sqlite
def test_words_wait_for_two_seconds(post, waiting, sender, clock):
    sender.turn()
    post(title="Fog")
    clock.now += 1
    sender.turn()
    assert waiting() == 1
    clock.now += 1
    sender.turn()
    assert waiting() == 0


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("method", "path", "ids"), [("POST", "/v1/posts", ("42", "321")), ("PATCH", "/v1/posts/3", ("32", "21"))]
)
def test_the_words_of_a_long_text_do_not_wait(client, config, found, post, waiting, method, path, ids):
    for number in range(3):
        post(title=f"Small {number}")
    client.patch("/v1/posts/2", json={"content": "fog"})
    assert waiting() == 3
    client.open(path, method=method, json={"title": "Large", "content": "fog " * 70_000})
    assert waiting() == 0
    assert (found("fog"), found("small")) == ids
    sound_posts(config.database)


@pytest.mark.sqlite
@pytest.mark.parametrize("seed", range(3))
def test_a_search_finds_the_same_whether_words_wait_or_not(client, clock, database, found, seed):
    draw = random.Random(seed)
    words, statuses = ["fog", "lake", "sun", "東京"], ["published", "draft", "archived"]
    for step in range(60):
        content = " ".join(draw.choices(words, k=2))
        fields = {"title": draw.choice(words), "content": content, "tags": draw.choices(words)}
        operation, number = draw.randrange(6), draw.randint(1, step // 2 + 1)
        if operation < 3:
            client.post("/v1/posts", json=fields)
        elif operation == 3:
            client.patch(f"/v1/posts/{number}", json=dict([draw.choice([*fields.items()])]))
        elif operation == 4:
            client.patch(f"/v1/posts/{number}", json={"status": draw.choice(statuses)})
        else:
            client.delete(f"/v1/posts/{number}")
        clock.now += draw.randrange(2)
        if draw.random() < 0.1:
            search.settle(database)
    queries = [
        {"q": q, "sort": sort} | filters
        for q in ("fog", "l*", '"fog lake"', "東", "sun lake", "s*")
        for sort in ("created_at", "published_at", "updated_at", "relevance")
        for filters in ({}, {"status": "published"}, {"status": "draft"}, {"tag": "fog"})
    ]
    before = [search.page(database, ListQuery(5, **query)) for query in queries]
    search.settle(database)
    assert [search.page(database, ListQuery(5, **query)) for query in queries] == before
    assert any(page.before for page in before)
