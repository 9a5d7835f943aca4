"""GET /v1/posts of a time of publication, and by relevance."""

import pytest

from tests.conftest import message

OF_PUBLICATION = "/v1/posts?sort=published_at&fields=slug"


def slugs(answer):
    return [post["slug"] for post in answer.json]


@pytest.fixture
def years(post):
    """Posts published at the beginning of four years, created in another order."""
    for year in (2022, 2020, 2023, 2021):
        post(title=str(year), status="published", published_at=f"{year}-01-01T00:00:00Z")


@pytest.mark.usefixtures("years")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["2023", "2022", "2021", "2020"]),
        ("&published_after=2021-01-01", ["2023", "2022", "2021"]),
        ("&published_before=2022-01-01", ["2021", "2020"]),
        ("&published_after=2021-01-01&published_before=2023-01-01T00:00:00Z", ["2022", "2021"]),
        ("&published_after=2021-01-01T01:00:00%2B01:00", ["2023", "2022", "2021"]),
        ("&published_after=2021-01-01T00:00:01Z", ["2023", "2022"]),
        ("&published_after=2023-01-02", []),
    ],
)
def test_posts_of_a_time(client, query, expected):
    assert slugs(client.get(OF_PUBLICATION + query)) == expected
    path, found = f"{OF_PUBLICATION}{query}&limit=1", []
    while path:
        answer = client.get(path)
        found += slugs(answer)
        path = answer.headers.get("Link", "").partition(">")[0][1:]
    assert found == expected


TIME = "must be a date, or a time in RFC 3339, such as 2026-11-20T10:10:00Z"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("published_after=2021-01-01", "published_after: needs sort=published_at"),
        ("sort=created_at&published_before=2021-01-01", "published_before: needs sort=published_at"),
        ("sort=published_at&published_after=", f"published_after: {TIME}"),
        ("sort=published_at&published_after=2021-02-30", f"published_after: {TIME}"),
        ("sort=published_at&published_before=2021", f"published_before: {TIME}"),
        ("sort=published_at&published_before=2021-01-01T00:00:00", f"published_before: {TIME}"),
        ("sort=relevance", "sort: relevance needs q"),
        ("sort=relevance&q=a&before=7", "before: must be the value that Link gave for sort=relevance"),
        ("sort=relevance&q=a&before=other_7", "before: must be the value that Link gave for sort=relevance"),
        ("sort=published_at&before=title_7", "before: must be the value that Link gave for sort=published_at"),
        ("before=title_7", "before: must be a post's id, a whole number from 1"),
    ],
)
def test_what_does_not_go_together_is_refused(client, query, expected):
    assert message(client.get(f"/v1/posts?{query}")) == expected


def test_by_relevance_titles_come_first_and_the_links_visit_each_post_once(client, post):
    for title, content in [("Hello", "x"), ("Other", "hello"), ("Hello again", "y"), ("None", "z"), ("Last", "hello")]:
        post(title=title, content=content)
    path, found = "/v1/posts?q=hello*&sort=relevance&limit=1&fields=slug", []
    while path:
        answer = client.get(path)
        found += slugs(answer)
        path = answer.headers.get("Link", "").partition(">")[0][1:]
    assert found == ["hello-again", "hello", "last", "other"]


@pytest.mark.in_process
def test_a_tag_alone_with_its_posts(client, post, stranger):
    post(tags=["Käse"], status="published")
    post(tags=["KÄSE", "b"])
    assert client.get("/v1/tags/käse").json == {"name": "KÄSE", "posts": 2}
    assert client.get("/v1/tags/käse?status=published").json == {"name": "Käse", "posts": 1}
    assert message(client.get("/v1/tags/b?status=published"), 404) == "no such tag"
    assert message(client.get("/v1/tags/none"), 404) == "no such tag"
    assert message(client.get("/v1/tags/b?status=x")).startswith("status: must be one of ")
    assert message(client.get("/v1/tags/b?limit=1")) == '"limit": unknown parameter; there is status'
    assert stranger.get("/v1/tags/b").status_code == 401
