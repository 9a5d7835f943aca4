"""GET /tags?status=…: only posts that currently have the status count, and determine the spelling."""

import random
from collections import Counter

import pytest

from blogapi.documents import STATUSES
from blogapi.posts import storage as posts
from blogapi.text import fold
from blogapi.wings.tags import storage as stored_tags
from tests.api.fixtures import LATER
from tests.cases import cases
from tests.conftest import NOON
from tests.invariants import sound_posts
from tests.tags.test_tags import tags

SOON = "2026-11-20T12:30:00Z"


@pytest.fixture
def schedule(change):
    """Schedule a post."""
    return lambda number, time=LATER: change(number, status="scheduled", published_at=time)


@pytest.fixture
def two(post, schedule):
    """A published post, and a newer scheduled one that spells their tag differently."""
    post(tags=["Go", "old"], status="published")
    post(tags=["GO", "new"])
    schedule(2)


@pytest.mark.usefixtures("two")
def test_a_scheduled_post_counts_as_published_once_it_is_due(client, database, config, clock):
    clock.now = NOON + 3599
    assert tags(client, "published") == [("Go", 1), ("old", 1)]
    assert tags(client, "scheduled") == [("GO", 1), ("new", 1)]
    clock.now = NOON + 3600
    for _ in range(2):
        assert tags(client, "published") == [("GO", 2), ("new", 1), ("old", 1)]
        assert tags(client, "scheduled") == []
        assert tags(client) == [("GO", 2), ("new", 1), ("old", 1)]
        database.write(posts.publish_due)  # must make no difference
        sound_posts(config.database)


@pytest.mark.usefixtures("two")
def test_a_damaged_due_post_is_not_published(client, damage, schedule, clock):
    schedule(1, SOON)
    damage("post", "document", None)
    assert tags(client, "scheduled") == [("GO", 2), ("new", 1), ("old", 1)]
    clock.now = NOON + 1800
    assert tags(client, "published") == []
    assert tags(client, "scheduled") == [("GO", 2), ("new", 1), ("old", 1)]


def expected(client, status):
    """The tags computed from the posts, newest first."""
    query = {"limit": 1000} | ({"status": status} if status else {})
    carried = [name for post in client.get("/v1/posts", query_string=query).json for name in post["tags"]]
    counts = Counter(map(fold, carried))
    names = {fold(name): name for name in reversed(carried)}
    return [(names[tag], counts[tag]) for tag in sorted(counts)]


def test_after_any_operation_the_tags_agree_with_the_posts(client, database, config, clock, scale):
    draw = random.Random(1)
    spellings = ["Go", "GO", "go", "Straße", "STRASSE", "é", "É", "x"]

    def some_tags():
        return draw.sample(spellings, draw.randrange(4))

    for step in range(120 + scale):
        number = draw.randint(1, step // 6 + 1)
        time = f"2026-11-20T12:{draw.randrange(60):02}:{draw.randrange(60):02}Z"
        operation = draw.randrange(10)
        if operation < 3:
            client.post("/v1/posts", json={"title": "A", "content": "B", "tags": some_tags()})
        elif operation < 5:
            client.patch(f"/v1/posts/{number}", json={"status": "scheduled", "published_at": time, "tags": some_tags()})
        elif operation < 7:
            client.patch(f"/v1/posts/{number}", json={"status": draw.choice(STATUSES)})
        elif operation == 7:
            client.delete(f"/v1/posts/{number}")
        elif operation == 8:
            old, new = draw.sample(spellings, 2)
            client.patch(f"/v1/tags/{old}", json={"name": new, "merge": draw.random() < 0.5})
        elif draw.random() < 0.3:
            database.write(posts.publish_due)
        clock.now += draw.randrange(30)
        for status in (None, *STATUSES):
            assert tags(client, status, limit=draw.randint(1, 5)) == expected(client, status), step
            for name, number in expected(client, status):
                assert stored_tags.find(database, fold(name), status) == (name, number)
        if step % 10 == 0:
            sound_posts(config.database)


@cases("status", [None, *STATUSES])
def test_a_page_of_tags_scans_no_table_and_reads_no_index_of_other_posts(plan, status):
    steps = [step.split(maxsplit=2)[2] for step in plan(stored_tags.tags_query(status)) if step.startswith("SEARCH")]
    spelled = "USING PRIMARY KEY (tag=? AND status=? AND post_id=?)"
    if status == "published":
        of_published = "USING COVERING INDEX post_tag_by_time (status=? AND tag>? AND tag<?)"
        assert steps == [of_published, spelled]
    else:
        assert steps == ["USING PRIMARY KEY (tag>? AND tag<?)", spelled]


def test_one_query_counts_and_spells_the_tags(database, post, schedule, statements):
    for status in ("published", "draft"):
        post(tags=["a", "b", "c"], status=status)
    schedule(2)
    for status in ("published", "scheduled"):
        with statements() as collected:
            assert stored_tags.page(database, 9, status=status).items == [("a", 1), ("b", 1), ("c", 1)]
        assert sum('"post_tag"' in statement for statement in collected) == 1
