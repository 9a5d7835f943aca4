"""Orders of lists and searches other than by creation: by relevance, within a period, by latest change."""

import random
from functools import partial
from itertools import product

import pytest

from blogapi import documents
from blogapi.documents import STATUSES
from blogapi.paging import LATEST, Cursor, ListQuery
from blogapi.posts import lists
from blogapi.wings.search import storage as search
from tests.cases import cases
from tests.conftest import NOON

FIND = partial(search.find, client="tests")


def walk(page, database, **query):
    """Return the titles on all pages, which are full except the last."""
    titles, before = [], None
    while True:
        found = page(database, ListQuery(before=before, **query))
        titles += [documents.load(document)["title"] for document in found.items]
        if found.next is None:
            return titles
        assert len(found.items) == query["limit"]
        before = found.next


# By relevance


@pytest.fixture
def lakes(post):
    post(title="Fog over the lake", content="Wind")
    post(title="Wind", content="Fog", tags=["Lake"], status="published")
    post(title="Lake", content="Fog", status="published")
    post(title="The foggy lake", content="Sun", status="published")
    post(title="Fog, and the Lakes", content="Lake")


@cases("limit", [1, 2, 3, 10])
def test_posts_whose_title_has_all_words_come_first_and_both_groups_newest_first(database, limit, lakes):
    def found(q, **filters):
        return walk(FIND, database, q=q, sort="relevance", limit=limit, **filters)

    assert found("fog lake") == ["Fog over the lake", "Fog, and the Lakes", "Lake", "Wind"]
    assert found("fog* lake*") == ["Fog, and the Lakes", "The foggy lake", "Fog over the lake", "Lake", "Wind"]
    assert found('"the lake"') == ["Fog over the lake"]
    assert found("l*") == ["Fog, and the Lakes", "The foggy lake", "Lake", "Fog over the lake", "Wind"]
    assert found("fog lake", status="published") == ["Lake", "Wind"]
    assert found("fog", tag="lake") == ["Wind"]
    assert found("sun") == ["The foggy lake"]
    assert found("none") == []


# Within a period


def test_a_period_is_a_section_of_the_list_by_publication(client, post, clock, database):
    draw = random.Random(1)
    for number in range(1, 31):
        post(title=f"{number}", content=draw.choice(["Fog", "Sun"]), tags=draw.choice([["a"], []]))
        time = f"2026-11-20T12:{draw.randrange(3)}0:{draw.randrange(2)}0Z"
        client.patch(f"/v1/posts/{number}", json={"status": "scheduled", "published_at": time})
    clock.now = NOON + 1200
    for number in range(1, 25):
        client.patch(f"/v1/posts/{number}", json={"status": draw.choice(STATUSES)})
    periods = (("12:10:00", "12:20:00"), ("12:00:10", "12:00:10"), ("12:10:10", None), (None, "12:10:00"))
    for status, tag, q in product((None, *STATUSES), (None, "a"), (None, "fog")):
        filters = {name: value for name, value in (("status", status), ("tag", tag), ("q", q)) if value}
        posts = client.get("/v1/posts", query_string=filters | {"sort": "published_at"}).json
        for after, before in periods:
            first, end = f"2026-11-20T{after}Z" if after else "", f"2026-11-20T{before}Z" if before else LATEST
            query = filters | {"published_after": first, "published_before": end}
            expected = [each["title"] for each in posts if first <= each["published_at"] < end]
            found = walk(FIND if q else lists.page, database, sort="published_at", limit=2, **query)
            assert found == expected, query


def test_a_cursor_before_a_period_gives_nothing(database, post):
    post(status="published")
    earlier = Cursor("2026-11-19T12:00:00Z", 9)
    query = ListQuery(10, before=earlier, sort="published_at", published_after="2026-11-20")
    page = lists.page(database, query)
    assert page == ([], None)


# By latest change


@pytest.mark.parametrize("q", [None, "fog"])
def test_posts_are_listed_by_latest_change(client, post, clock, database, q):
    draw = random.Random(2)
    for number in range(20):
        post(title=f"{number}", content="Fog" if number % 3 else "Sun", tags=["a"])
        clock.now += draw.randrange(2)
    for _ in range(30):
        status = draw.choice(STATUSES)
        time = {"published_at": "2026-12-24T12:00:00Z"} if status == "scheduled" else {}
        client.patch(f"/v1/posts/{draw.randint(1, 20)}", json={"status": status} | time)
        clock.now += draw.randrange(2)
    client.patch("/v1/tags/a", json={"name": "A"})
    client.patch("/v1/posts/7", json={"excerpt": "changed"})
    every = sorted(client.get("/v1/posts").json, key=lambda each: (each["updated_at"], int(each["id"])), reverse=True)
    if q:
        every = [each for each in every if each["content"] == "Fog"]
    page = FIND if q else lists.page
    for status in (None, *STATUSES):
        expected = [each["title"] for each in every if status in (None, each["status"])]
        query = {"status": status} | ({"q": q} if q else {})
        for limit in (1, 3):
            assert walk(page, database, sort="updated_at", limit=limit, **query) == expected
