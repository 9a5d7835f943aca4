"""GET /v1/posts by latest change, and what was deleted since."""

import pytest

from tests.api.fixtures import LATER, answers, with_key
from tests.conftest import message
from tests.posts.test_list import walk

BY_CHANGE = "/v1/posts?sort=updated_at"


@pytest.fixture
def changed(post, change, clock):
    """Nine posts in four statuses, three a second. The first is changed last; the seventh is due in an hour."""
    for number in range(1, 10):
        post(title=str(number), status="published" if number % 2 else "draft")
        clock.now += number % 3 == 0
    change(7, status="scheduled", published_at=LATER)
    change(8, status="archived")
    clock.now += 1
    change(1, excerpt="New")


def found(client, query):
    answer = client.get(f"/v1/posts?{query}")
    assert answer.status_code == 200, answer.text
    return "".join(post["title"] for post in answer.json)


@pytest.mark.usefixtures("changed")
def test_the_last_change_comes_first_and_updated_after_includes_its_second(client):
    cases = {
        "sort=updated_at": "187965432",
        "sort=updated_at&status=published": "1953",
        "sort=updated_at&status=scheduled": "7",
        "sort=updated_at&status=archived": "8",
        "updated_after=2026-11-20T12:00:04Z": "1",
        "updated_after=2026-11-20T13:00:04.9%2B01:00": "1",
        "updated_after=2026-11-20T12:00:03Z": "187",
        "updated_after=2026-11-20T12:00:03Z&sort=updated_at": "187",
        "updated_after=2026-11-20T12:00:02Z&status=draft": "",
        "updated_after=2026-11-20": "187965432",
        "updated_after=2026-11-20T12:00:05Z": "",
    }
    assert {query: found(client, query) for query in cases} == cases


@pytest.mark.usefixtures("changed")
def test_the_links_visit_each_post_once_also_while_posts_become_due(client, clock):
    for seconds in (0, 3600):
        clock.now += seconds
        for filters in ("", "&status=published", "&status=scheduled", "&updated_after=2026-11-20T12:00:01Z"):
            in_order = "".join(map("".join, walk(client, f"{BY_CHANGE}{filters}")))
            for limit in range(1, 10):
                pages = walk(client, f"{BY_CHANGE}{filters}&limit={limit}")
                assert "".join(map("".join, pages)) == in_order, (seconds, filters, limit)


@pytest.mark.usefixtures("changed")
def test_a_due_post_changed_when_it_became_due(client, app, clock):
    clock.now += 3600
    assert found(client, "sort=updated_at&limit=2") == "71"
    assert found(client, f"updated_after={LATER}") == "7"
    assert found(client, f"updated_after={LATER}&status=published") == "7"
    assert found(client, "sort=updated_at&status=scheduled") == ""
    assert found(with_key(app, "published-only"), f"updated_after={LATER}") == "7"


def test_the_trash_lists_what_was_deleted_since(client, post, clock):
    for number in range(1, 5):
        post(title=str(number))
        client.delete(f"/v1/posts/{number}")
        clock.now += 1
    since = "/v1/trash?deleted_after=2026-11-20T12:00:01Z"
    assert [entry["post"]["title"] for entry in client.get(since).json] == ["4", "3", "2"]
    assert [len(answer.json) for answer in answers(client, f"{since}&limit=2")] == [2, 1]
    assert client.get("/v1/trash?deleted_after=2026-11-21").json == []
    assert message(client.get("/v1/trash?deleted_after=soon")).startswith("deleted_after: must be a date")
