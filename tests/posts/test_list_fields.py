"""GET /v1/posts with selected fields."""

import random
from itertools import combinations

import pytest

from blogapi import documents, paging
from blogapi.documents import FIELDS
from blogapi.storage.models import Post
from tests.posts.test_list import walk

ALWAYS = ("id", "title", "status")


@pytest.fixture
def full(post):
    """Posts with all fields and with the fewest, full of text that could be mistaken for a field name."""
    tricky = '","content":"x","tags":["\\"'
    every = dict.fromkeys(("title", "content", "excerpt"), tricky) | {"cover_image": 'https://a/"tags":"'}
    post(status="published", tags=[tricky, '"created_at":"'], **every)
    post(content='"excerpt":"\\')
    post(excerpt="é\u2028\\", tags=[], content="\\")


@pytest.mark.usefixtures("full")
def test_any_selection_of_fields_returns_them_unchanged_and_in_order(client):
    whole = client.get("/v1/posts").json
    draw = random.Random(1)
    some = [[name for name in FIELDS if draw.random() < 0.5] or FIELDS for _ in range(50)]
    for names in (*combinations(FIELDS, 1), *combinations(FIELDS, 2), *some):
        expected = [{name: post[name] for name in FIELDS if name in {*names, *ALWAYS} & post.keys()} for post in whole]
        answer = client.get(f"/v1/posts?fields={','.join(reversed(names))}")
        assert answer.text == "[" + ",".join(map(documents.dump, expected)) + "]\n"


def test_damaged_posts_are_skipped_and_the_link_leads_on(client, post, database):
    for number in range(1, 6):
        post(title=str(number))
    for damaged in ("", "{}", '{"id":"1"}', "[]"):
        damage = Post.update(document=damaged).where(Post.id.in_([2, 3, 5]))
        database.write(lambda tx, damage=damage: tx.execute(damage))
        assert walk(client, "/v1/posts?fields=title&limit=2") == [["4"], ["1"]], damaged


def test_the_size_of_a_page_with_some_fields_counts_whole_posts(client, post, monkeypatch):
    monkeypatch.setattr(paging, "PAGE_BYTES", 1500)
    for number in range(6):
        post(title=str(number), content="x" * 1000)
    for query in ("", "?fields=title,content", "?fields=title"):
        assert walk(client, f"/v1/posts{query}") == [["5", "4"], ["3", "2"], ["1", "0"]]


def test_a_list_of_names_can_be_sent_as_generated_clients_do(client, post):
    post(title="1")
    post(title="2")
    for query in ("fields=tags&fields=slug", "fields[]=slug&fields[]=tags", "fields%5B0%5D=slug,tags"):
        answer = client.get(f"/v1/posts?limit=1&{query}")
        assert answer.json == client.get("/v1/posts?limit=1&fields=slug,tags").json
        assert [each["slug"] for each in client.get(answer.headers["Link"][1:].partition(">")[0]).json] == ["1"]
