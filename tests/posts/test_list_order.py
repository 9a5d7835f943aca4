"""GET /v1/posts: by publication, by latest change, by relevance and within a period; entity tags."""

import random
from itertools import product
from urllib.parse import urlencode

import pytest

from blogapi.documents import STATUSES
from tests.api.fixtures import LATER, answers, in_pages, titles, walk, with_key
from tests.cases import cases
from tests.conftest import NOON, message
from tests.databases import execute

BY_DATE = "/v1/posts?sort=published_at"
OTHER_CONTENT = "UPDATE post SET document = replace(document, 'Words.', 'Other.') WHERE id = 1"


# Order


@cases(
    ("query", "found"),
    ("", "251498763"),
    ("&status=published", "519763"),
    ("&status=draft", "4"),
    ("&status=archived", "8"),
    ("&status=scheduled", "2"),
    ("&tag=t", "51973"),
    ("&tag=t&status=published", "51973"),
    *((f"&tag=t&status={status}", "") for status in ("draft", "archived", "scheduled")),
    ("&tag=unknown", ""),
    ("&before=2024-01-01T00:00:00Z_5", "1498763"),
    ("&before=2024-01-01T00:00:00Z_1", "498763"),
    ("&before=2020-01-01T00:00:00Z_7&tag=T", "3"),
    ("&before=2026-11-20T13:00:00Z_3&status=scheduled", "2"),
    ("&before=2026-11-20T13:00:00Z_3&status=published", "519763"),
)
def test_the_latest_and_then_the_later_created_come_first_and_the_links_visit_each_once(client, query, found, dated):
    assert titles(client, BY_DATE + query) == found
    for limit in (1, 2, 3, 5, 8, 9, 10):
        assert "".join(in_pages(client, BY_DATE + query, limit)) == found


def test_a_due_post_has_its_final_place(client, clock, change, post, dated):
    change(2, tags=["new"])
    post(title="X", status="published", tags=["new"], published_at="2026-11-20T11:00:00Z")
    post(title="Y", tags=["new"])
    change(11, status="scheduled", published_at=LATER)
    clock.now += 3599
    assert titles(client, BY_DATE + "&status=published&tag=new") == "X"
    assert titles(client, BY_DATE + "&status=scheduled&tag=new") == "Y2"
    clock.now += 1
    paths = [BY_DATE + query for query in ("", "&status=published", "&tag=new&status=published", "&status=scheduled")]
    due = [client.get(path).json[:3] for path in paths]
    assert [[post["title"] for post in page] for page in due] == [["Y", "2", "X"]] * 3 + [[]]
    assert {post["status"] for page in due for post in page} == {"published"}


@pytest.mark.usefixtures("dated")
def test_creating_publishing_and_deleting_posts_does_not_disturb_a_walk_through_the_pages(client, post, change, clock):
    path = "/v1/posts?limit=3&sort=published_at&before=2024-01-01T00%3A00%3A00Z_1"
    assert client.get(f"{BY_DATE}&limit=3").headers["Link"] == f'<{path}>; rel="next"'
    by_creation = client.get("/v1/posts?limit=2").headers["Link"]
    clock.now += 7200
    post(title="X", status="published")
    post(title="Y")
    change(11, status="published")
    for number in (1, 9, 7):
        client.delete(f"/v1/posts/{number}")
    assert walk(client, path) == [["4", "8", "6"], ["3"]]
    assert walk(client, by_creation.removeprefix("<").partition(">")[0]) == [["6", "5"], ["4", "3"], ["2"]]


@pytest.fixture
def years_2020_to_2023(post):
    for year in "2031":
        post(title=year, status="published", published_at=f"202{year}-01-01T00:00:00Z")


@cases(
    ("query", "years"),
    ("", "3210"),
    ("&published_after=2021-01-01", "321"),
    ("&published_before=2022-01-01", "10"),
    ("&published_after=2021-01-01&published_before=2023-01-01T00:00:00Z", "21"),
    ("&published_after=2021-01-01T01:00:00%2B0100", "321"),
    ("&published_after=2021-01-01T00:00:01Z", "32"),
    ("&published_after=2021-01-01T00:00:00.01Z", "32"),
    ("&published_before=2021-01-01T00:00:00.01Z", "10"),
)
def test_posts_in_a_date_range(client, query, years, years_2020_to_2023):
    assert titles(client, BY_DATE + query) == years
    assert walk(client, f"{BY_DATE}{query}&limit=1") == ([[year] for year in years] or [[]])


# Entity tags


@pytest.fixture
def etag(client):
    """The entity tag of a list, which must give 304 with the same headers and no body."""

    def etag(path="/v1/posts"):
        answer = client.get(path)
        tag = answer.headers["ETag"]
        again = client.get(path, headers={"If-None-Match": tag})
        assert (again.status_code, again.data) == (304, b"")
        for name in ("ETag", "Link", "X-RateLimit-Limit", "X-RateLimit-Reset"):
            assert again.headers.get(name) == answer.headers.get(name)
        assert int(again.headers["X-RateLimit-Remaining"]) < int(answer.headers["X-RateLimit-Remaining"])
        return tag

    return etag


@pytest.mark.parametrize(
    "happens",
    [
        lambda client, clock, path: client.post("/v1/posts", json={"title": "New", "content": "x", "tags": ["A"]}),
        lambda client, clock, path: client.patch("/v1/posts/1", json={"content": "Other."}),
        lambda client, clock, path: client.patch("/v1/posts/1", json={"status": "archived"}),
        lambda client, clock, path: client.put("/v1/posts/by-slug/one", json={"title": "1", "content": "y"}),
        lambda client, clock, path: client.delete("/v1/posts/1"),
        lambda client, clock, path: client.delete("/v1/posts/3"),
        lambda client, clock, path: client.patch("/v1/tags/a", json={"name": "B"}),
        lambda client, clock, path: client.patch("/v1/tags/a", json={"name": "a"}),
        lambda client, clock, path: client.delete("/v1/tags/a"),
        lambda client, clock, path: setattr(clock, "now", clock.now + 3600),
        lambda client, clock, path: execute(path, OTHER_CONTENT),  # on another connection
    ],
    ids=["post", "content", "status", "put", "delete", "delete 3", "rename", "respell", "untag", "hour", "other"],
)
def test_every_change_of_a_list_changes_its_tag(client, post, change, clock, config, etag, happens):
    for number in "123":
        post(title=number, tags=["A"], slug={"1": "one"}.get(number, number), published_at="2020-01-01T00:00:00Z")
    change(3, status="scheduled", published_at=LATER)
    paths = [f"/v1/posts{query}" for query in ("", "?sort=published_at", "?tag=a", "?fields=content,tags,status")]
    before = [(client.get(path).data, etag(path)) for path in paths]
    happens(client, clock, config.database)
    for path, (body, tag) in zip(paths, before, strict=True):
        is_same = client.get(path).data == body  # A new draft does not appear in lists by publication.
        assert (etag(path) == tag) is is_same, path


def test_the_tag_differs_with_the_fields_and_the_page_and_changes_if_only_the_link_changes(client, post, etag):
    for _ in range(3):
        post()
    paths = ["", "?limit=1", "?limit=2", "?fields=id", "?fields=id,title,slug", "?before=3", "?before=1"]
    assert len({etag(f"/v1/posts{path}") for path in paths}) == len(paths)
    before = etag("/v1/posts?limit=2"), client.get("/v1/posts?limit=2").data
    client.delete("/v1/posts/1")
    assert client.get("/v1/posts?limit=2").data == before[1]
    assert etag("/v1/posts?limit=2") != before[0]


def test_the_tag_stays_if_nothing_in_the_list_changes(client, post, change, etag, clock, database):
    post(tags=["a"], status="published")
    post(tags=["b"])
    change(2, status="scheduled", published_at=LATER)
    paths = ["/v1/posts?tag=a", "/v1/posts?sort=published_at&status=published", "/v1/posts?before=2"]
    before = list(map(etag, paths))
    post(tags=["b"])
    change(3, title="Other")
    change(1, title=client.get("/v1/posts/1").json["title"])
    client.patch("/v1/tags/b", json={"name": "c"})
    clock.now += 60
    client.delete("/v1/posts/3")
    assert list(map(etag, paths)) == before


# By latest change, and what was deleted since


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


@cases(
    ("query", "found"),
    ("sort=updated_at", "187965432"),
    ("sort=updated_at&status=published", "1953"),
    ("sort=updated_at&status=draft", "642"),
    ("sort=updated_at&status=scheduled", "7"),
    ("sort=updated_at&status=archived", "8"),
    ("updated_after=2026-11-20T12:00:04Z", "1"),
    ("updated_after=2026-11-20T13:00:04.9%2B01:00", "1"),
    ("updated_after=2026-11-20T12:00:03Z", "187"),
    ("updated_after=2026-11-20T12:00:03Z&sort=updated_at", "187"),
    ("updated_after=2026-11-20T12:00:02Z&status=draft", ""),
    ("updated_after=2026-11-20", "187965432"),
    ("updated_after=2026-11-20T12:00:05Z", ""),
)
def test_the_last_change_comes_first_and_updated_after_includes_its_second(client, query, found, changed):
    assert titles(client, f"/v1/posts?{query}") == found
    for limit in range(1, 10):
        assert "".join(in_pages(client, f"/v1/posts?{query}", limit)) == found


def test_a_retagging_is_a_change_too(client, change, clock, changed):
    for number in (3, 4, 7, 8):
        change(number, tags=["a"])
    clock.now += 1
    change(2, excerpt="New")
    clock.now += 1
    client.patch("/v1/tags/a", json={"name": "b"})
    assert titles(client, "/v1/posts?sort=updated_at") == "874321965"
    assert titles(client, "/v1/posts?sort=updated_at&status=draft") == "426"


def test_a_due_post_changed_when_it_became_due(client, app, clock, changed):
    clock.now += 3600
    assert titles(client, "/v1/posts?sort=updated_at&limit=2") == "71"
    assert titles(client, f"/v1/posts?updated_after={LATER}") == "7"
    assert titles(client, f"/v1/posts?updated_after={LATER}&status=published") == "7"
    assert titles(client, "/v1/posts?sort=updated_at&status=scheduled") == ""
    assert titles(with_key(app, "published-only"), f"/v1/posts?updated_after={LATER}") == "7"


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
    assert (found("fog", tag="lake"), found("sun")) == (["Wind"], ["The foggy lake"])
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
