"""GET /v1/posts: by relevance, and within a period."""

import random
from itertools import product
from urllib.parse import urlencode

import pytest

from blogapi.documents import STATUSES
from tests.api.fixtures import in_pages
from tests.cases import cases
from tests.conftest import NOON


def visited(client, limit, **query):
    """The titles on all pages; a filter that is None is left out."""
    filters = {name: value for name, value in query.items() if value is not None}
    return in_pages(client, f"/v1/posts?{urlencode(filters)}", limit)


# By relevance


@pytest.fixture
def lakes(post):
    post(title="Fog over the lake", content="Wind")
    post(title="Wind", content="Fog", tags=["Lake"], status="published")
    post(title="Lake", content="Fog", status="published")
    post(title="The foggy lake", content="Sun", status="published")
    post(title="Fog, and the Lakes", content="Lake")


@cases("limit", [1, 2, 3, 10])
def test_posts_whose_title_has_all_words_come_first_and_both_groups_newest_first(client, limit, lakes):
    def found(q, **filters):
        return visited(client, limit, q=q, sort="relevance", **filters)

    assert found("fog lake") == ["Fog over the lake", "Fog, and the Lakes", "Lake", "Wind"]
    assert found("fog* lake*") == ["Fog, and the Lakes", "The foggy lake", "Fog over the lake", "Lake", "Wind"]
    assert found('"the lake"') == ["Fog over the lake"]
    assert found("l*") == ["Fog, and the Lakes", "The foggy lake", "Lake", "Fog over the lake", "Wind"]
    assert found("fog lake", status="published") == ["Lake", "Wind"]
    assert found("fog", tag="lake") == ["Wind"]
    assert found("sun") == ["The foggy lake"]
    assert found("none") == []


# Within a period


def test_a_period_is_a_section_of_the_list_by_publication(client, post, clock):
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
        query = {"status": status, "tag": tag, "q": q, "sort": "published_at"}
        posts = client.get("/v1/posts", query_string=query).json
        for after, before in periods:
            after, before = (time and f"2026-11-20T{time}Z" for time in (after, before))
            expected = [post["title"] for post in posts if (after or "") <= post["published_at"] < (before or "9")]
            assert visited(client, 2, published_after=after, published_before=before, **query) == expected, query
