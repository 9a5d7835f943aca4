"""GET /tags, PATCH and DELETE /tags/{name}."""

import random
from collections import Counter
from urllib.parse import quote, unquote_to_bytes, urlencode

import pytest

from blogapi.documents import STATUSES
from blogapi.posts import storage as posts
from blogapi.storage.models import PostTag
from blogapi.text import fold
from blogapi.wings.tags import storage as stored_tags
from tests.api.fixtures import LATER, answers, listed
from tests.cases import cases
from tests.conftest import NOON, message
from tests.invariants import sound_posts

NO_TAG = "no such tag; in a path, write # in its name as %23, ? as %3F, and / as %2F"


def tags(client, status=None, **query):
    """All tags, page by page."""
    query |= {"status": status} if status else {}
    pages = answers(client, f"/v1/tags?{urlencode(query)}")
    return [(tag["name"], tag["posts"]) for page in pages for tag in page.json]


def tags_of(client):
    return {post["id"]: post["tags"] for post in client.get("/v1/posts").json}


@pytest.fixture
def rename(client):
    def rename(old, new, **fields):
        return client.patch(f"/v1/tags/{quote(old, safe='')}", json={"name": new, **fields})

    return rename


@pytest.fixture
def some(post):
    post(tags=["Go", "Straße"])
    post(tags=["GO"], status="published")
    post(tags=["STRASSE", "zebra", "go"])


@cases(
    ("query", "pages"),
    ("limit=2", [["go", "STRASSE"], ["zebra"]]),
    ("limit=1&after=GO", [["STRASSE"], ["zebra"]]),
    ("limit=3", [["go", "STRASSE", "zebra"]]),
    ("after=zebra", [[]]),
    ("after=a", [["go", "STRASSE", "zebra"]]),
)
def test_following_links_visits_all_tags(client, query, pages, some):
    found = answers(client, f"/v1/tags?{query}")
    assert [[tag["name"] for tag in answer.json] for answer in found] == pages


def test_a_tag_made_of_the_highest_characters_is_listed(client, post):
    names = ["\U0010ffff" * 64, "\U0010ffffz", "a"]
    post(tags=names)
    assert tags(client) == [(name, 1) for name in sorted(names)]


@pytest.mark.in_process
def test_a_tag_can_be_read_by_its_name(client, post):
    post(tags=["Käse"], status="published")
    post(tags=["KÄSE", "b"])
    assert client.get("/v1/tags/käse").json == {"name": "KÄSE", "posts": 2}
    assert client.get("/v1/tags/käse?status=published").json == {"name": "Käse", "posts": 1}
    assert message(client.get("/v1/tags/b?status=published"), 404) == NO_TAG
    assert message(client.get("/v1/tags/none"), 404) == NO_TAG
    assert message(client.get("/v1/tags/b?status=x")).startswith("status: must be one of ")
    assert message(client.get("/v1/tags/b?limit=1")) == '"limit": unknown parameter; known: status'


def test_at_most_1000_tags_are_listed_at_once(client, database):
    row = {"status": "draft", "post_id": 1}
    rows = [row | {"tag": f"{number:04}", "name": f"{number:04}"} for number in range(1001)]
    database.write(lambda tx: tx.execute(PostTag.insert_many(rows)))
    for query in ("", "limit=5000", "status=draft"):
        answer = client.get(f"/v1/tags?{query}")
        assert [tag["name"] for tag in answer.json] == [f"{number:04}" for number in range(1000)]
        status = "&status=draft" if "status" in query else ""
        assert answer.headers["Link"] == f'</v1/tags?limit=1000{status}&after=0999>; rel="next"'


def test_a_tag_is_renamed_in_every_post(client, rename, some):
    answer = rename("gO", " Golang ")
    assert (answer.status_code, answer.json) == (200, {"name": "Golang", "posts": 3})
    assert tags_of(client) == {"3": ["STRASSE", "zebra", "Golang"], "2": ["Golang"], "1": ["Golang", "Straße"]}
    assert (listed(client, "tag=golang"), listed(client, "tag=go")) == (["3", "2", "1"], [])
    assert tags(client) == [("Golang", 3), ("STRASSE", 2), ("zebra", 1)]


def test_renaming_a_tag_to_an_existing_one_requires_merge(client, rename, count, some):
    before = tags_of(client)
    wrong = 'name: another tag has this name; "merge": true merges the two'
    assert (message(rename("zebra", "go")), tags_of(client)) == (wrong, before)
    assert rename("zebra", "Go", merge=True).json == {"name": "Go", "posts": 3}
    assert tags_of(client) == {"3": ["STRASSE", "Go"], "2": ["GO"], "1": ["Go", "Straße"]}
    assert (tags(client), count(PostTag)) == ([("Go", 3), ("STRASSE", 2)], 5)


def test_a_tag_is_removed_from_every_post(client, some):
    answer = client.delete("/v1/tags/GO")
    assert (answer.status_code, answer.data) == (204, b"")
    assert tags_of(client) == {"3": ["STRASSE", "zebra"], "2": [], "1": ["Straße"]}
    assert tags(client) == [("STRASSE", 2), ("zebra", 1)]
    assert message(client.delete("/v1/tags/go"), 404) == NO_TAG
    assert client.delete("/v1/tags/").status_code == 404


@cases("name", ["%0A", "go%0A", "%0Ago", "go%0D%0A", "go%00", "go%E2%80%A8", "%20", "%1F", "no"])
def test_an_unknown_or_impossible_tag_is_404(client, name, some):
    before = tags(client)
    for method in ("PATCH", "DELETE"):
        answer = client.open(f"/v1/tags/{name}", method=method, json={"name": "x"})
        assert message(answer, 404) == NO_TAG
    assert tags(client) == before


@cases("name", ["a b", "a/b", "/a", "a/", "100%", "%2F", "😀", "東京", "a?b#c", ".", "a+b", 'a"b\\'])
def test_any_name_works_in_the_path(client, post, rename, name):
    post(tags=[name])
    assert rename(name, "other").json == {"name": "other", "posts": 1}
    assert rename("other", name).json == {"name": name, "posts": 1}
    assert client.delete(f"/v1/tags/{quote(name, safe='')}").status_code == 204
    assert tags(client) == []


@cases(
    ("body", "wrong"),
    ({}, "name: missing"),
    ({"name": None}, "name: must not be null"),
    ({"name": " "}, "name: must have 1 to 64 characters"),
    ({"name": "x" * 65}, "name: must have 1 to 64 characters"),
    ({"name": "x", "merge": "yes"}, "merge: must be true or false"),
    ({"name": "x", "posts": 1}, '"posts": unknown field; known: name, merge'),
)
def test_a_bad_body_is_refused(client, post, body, wrong):
    post(tags=["a"])
    assert message(client.patch("/v1/tags/a", json=body)) == wrong


@cases("path", ["caf%E9", "%FF", "%ED%A0%80"])
@pytest.mark.in_process
def test_a_path_that_is_not_utf_8_does_not_name_a_tag(client, post, path):
    post(tags=["caf\ufffd", "\ufffd", "\ufffd" * 3])
    path = unquote_to_bytes(f"/v1/tags/{path}").decode("latin-1")
    assert message(client.delete("/", environ_overrides={"PATH_INFO": path}), 404) == "no such path"
    assert len(tags(client)) == 3


# By status: only posts that currently have it count, and determine the spelling


@pytest.fixture
def schedule(change):
    """Schedule a post."""
    return lambda number, time=LATER: change(number, status="scheduled", published_at=time)


def test_a_damaged_due_post_is_not_published(client, post, damage, schedule, clock):
    post(tags=["Go", "old"], status="published")
    post(tags=["GO", "new"])
    schedule(2)
    schedule(1, "2026-11-20T12:30:00Z")
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
        for status in (None, *STATUSES) if step % 3 == 0 else ():
            assert tags(client, status, limit=draw.randint(1, 5)) == expected(client, status), step
            for name, number in expected(client, status):
                assert stored_tags.get(database, fold(name), status) == (name, number)
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
