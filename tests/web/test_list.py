"""GET /posts: order, filters, pages."""

import json

import pytest

from blogapi.post import STATUSES
from blogapi.storage import lists
from blogapi.storage.models import Post

UNKNOWN = "unknown parameter; there are limit, status, tag, before, sort, published_after, published_before, fields, q"
WHOLE = "must be a whole number from 1"
ID = "must be a post's id, a whole number from 1"
ONE_OF = "must be one of published, draft, scheduled, archived"


def titles(client, query=""):
    answer = client.get(f"/v1/posts{query}")
    assert answer.status_code == 200, answer.text
    return [post["title"] for post in answer.json]


def walk(client, path):
    """Follow the links from `path`; return the titles of each page."""
    pages = []
    while path:
        answer = client.get(path)
        pages.append([post["title"] for post in answer.json])
        link = answer.headers.get("Link", "")
        path = link.removeprefix("<").removesuffix('>; rel="next"')
    return pages


@pytest.fixture
def some(post):
    """Six posts: numbers as titles, every second published, every third tagged."""
    for number in range(1, 7):
        status = "published" if number % 2 == 0 else "draft"
        post(title=str(number), status=status, tags=["Fizz Buzz/ä"] if number % 3 == 0 else [])


def test_no_posts_are_an_empty_array(client):
    answer = client.get("/v1/posts")
    assert (answer.json, answer.headers.get("Link")) == ([], None)


@pytest.mark.usefixtures("some")
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", "654321"),
        ("?limit=2", "65"),
        ("?limit=6", "654321"),
        ("?limit=" + "9" * 5000, "654321"),
        ("?status=published", "642"),
        ("?status=draft", "531"),
        ("?status=archived", ""),
        ("?tag=fizz+BUZZ%2F%C3%84", "63"),
        ("?tag=%20fizz%20buzz/a%CC%88", "63"),
        ("?tag=unknown", ""),
        ("?tag=fizz", ""),
        ("?tag=%00%E2%80%8B", ""),
        ("?status=draft&tag=Fizz%20Buzz/%C3%A4", "3"),
        ("?before=4", "321"),
        ("?before=1", ""),
        ("?before=99", "654321"),
        ("?before=9223372036854775807", "654321"),
        ("?before=5&status=published&limit=1", "4"),
        ("?before=6&tag=Fizz%20Buzz/%C3%A4&status=draft", "3"),
        ("?&&limit=2&", "65"),
    ],
)
def test_the_newest_come_first_and_filters_combine(client, query, found):
    assert "".join(titles(client, query)) == found


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("limit=0", f"limit: {WHOLE}"),
        ("limit=", f"limit: {WHOLE}"),
        ("limit", f"limit: {WHOLE}"),
        ("limit=01", f"limit: {WHOLE}"),
        ("limit=%2B1", f"limit: {WHOLE}"),
        ("limit=-1", f"limit: {WHOLE}"),
        ("limit=1.0", f"limit: {WHOLE}"),
        ("limit=1_0", f"limit: {WHOLE}"),
        ("limit=%D9%A3", f"limit: {WHOLE}"),
        ("limit=%201", f"limit: {WHOLE}"),
        ("limit=1%0A", f"limit: {WHOLE}"),
        ("status=", f"status: {ONE_OF}"),
        ("status=Draft", f"status: {ONE_OF}"),
        ("tag=", "tag: must not be empty"),
        ("tag=%20", "tag: must not be empty"),
        ("before=", f"before: {ID}"),
        ("before=0", f"before: {ID}"),
        ("before=007", f"before: {ID}"),
        ("before=9223372036854775808", f"before: {ID}"),
        ("before=" + "1" * 30, f"before: {ID}"),
        ("stauts=draft", f'"stauts": {UNKNOWN}'),
        ("limit=1&limit=1", "limit: given more than once"),
        ("limit=1&limi%74=2", "limit: given more than once"),
        ("tag=%FF", "query: must be UTF-8, with or without percent-encoding"),
        ("tag=%ED%A0%80", "query: must be UTF-8, with or without percent-encoding"),
        ("%0Aa%00=1", f'"\N{REPLACEMENT CHARACTER}a\N{REPLACEMENT CHARACTER}": {UNKNOWN}'),
    ],
)
def test_a_bad_parameter_is_named(client, query, message):
    answer = client.get(f"/v1/posts?{query}")
    assert answer.status_code == 400
    assert answer.json == {"error": 400, "message": message}


def test_an_unknown_tag_of_any_length_finds_nothing(client):
    assert titles(client, "?tag=" + "x" * 8000) == []


@pytest.mark.usefixtures("some")
@pytest.mark.parametrize(
    ("path", "pages"),
    [
        ("/v1/posts?limit=4", ["6543", "21"]),
        ("/v1/posts?limit=3", ["654", "321"]),
        ("/v1/posts?limit=1&status=draft", ["5", "3", "1"]),
        ("/v1/posts?limit=1&tag=Fizz%20Buzz/%C3%A4", ["6", "3"]),
        ("/v1/posts?before=6&limit=2&status=published", ["42"]),
        ("/v1/posts?limit=9", ["654321"]),
    ],
)
def test_the_links_visit_each_post_once(client, path, pages):
    assert ["".join(page) for page in walk(client, path)] == pages


@pytest.mark.usefixtures("some")
def test_the_link_has_the_same_filters_and_never_the_host(client):
    answer = client.get("/v1/posts?tag=Fizz%20Buzz/%C3%A4&limit=1", headers={"Host": "evil.example"})
    assert answer.headers["Link"] == '</v1/posts?limit=1&tag=fizz%20buzz%2F%C3%A4&before=6>; rel="next"'


@pytest.mark.usefixtures("some")
def test_posts_created_and_deleted_meanwhile_disturb_no_walk(client, post):
    first = client.get("/v1/posts?limit=2")
    post(title="7")
    client.delete("/v1/posts/5")
    client.delete("/v1/posts/4")
    path = first.headers["Link"].removeprefix("<").partition(">")[0]
    assert walk(client, path) == [["3", "2"], ["1"]]


def test_the_default_limit_is_100_and_the_highest_1000(client, database):
    rows = [{"slug": f"s{number}", "status": "draft", "document": "{}"} for number in range(1001)]
    database.write(lambda tx: tx.execute(Post.insert_many(rows)))
    assert len(client.get("/v1/posts").json) == 100
    answer = client.get("/v1/posts?limit=1001")
    assert len(answer.json) == 1000
    assert answer.headers["Link"] == '</v1/posts?limit=1000&before=2>; rel="next"'


def test_a_page_ends_after_the_post_that_brings_it_past_4_mib(client, post):
    for number in range(6):
        post(title=str(number), content="x" * 1_000_000)
    assert walk(client, "/v1/posts") == [["5", "4", "3", "2", "1"], ["0"]]


def test_head_is_get_without_the_body(client, post):
    post()
    answer = client.head("/v1/posts")
    assert (answer.status_code, answer.data) == (200, b"")
    assert answer.headers["Content-Length"] == str(len(client.get("/v1/posts").data))


@pytest.mark.parametrize("status", [None, *STATUSES])
@pytest.mark.parametrize("by_tag", [True, False])
@pytest.mark.parametrize("of_second", [True, False])
def test_no_list_by_publication_scans_or_sorts(plan, status, by_tag, of_second):
    steps = plan(lists.time_query("published_at", status, by_tag, of_second))
    assert {step.split()[0] for step in steps} <= {"SEARCH", "MERGE", "LEFT", "RIGHT"}, steps
    found = "tag=? AND status=?" if by_tag else "status=?"
    time = "=? AND " if of_second else ("<?)", ">? AND published_at<?)")  # the latter if it is in the future
    for step in steps:
        if step.startswith("SEARCH") and not step.endswith("PRIMARY KEY (rowid=?)"):
            assert step.partition(f"_published ({found} AND published_at")[2].startswith(time), steps


@pytest.mark.parametrize("status", [None, *STATUSES])
@pytest.mark.parametrize("by_tag", [True, False])
def test_no_list_scans_or_sorts(plan, status, by_tag):
    steps = plan(lists.created_query(status, by_tag))
    if status == "published":  # The ids of the few that are due and not yet published are sorted.
        assert steps.count("USE TEMP B-TREE FOR ORDER BY") == 1
        steps.remove("USE TEMP B-TREE FOR ORDER BY")
    assert {step.split()[0] for step in steps} <= {"SEARCH", "MERGE", "LEFT", "RIGHT", "LIST"}, steps


@pytest.mark.usefixtures("some")
def test_a_list_takes_two_statements(client, statements):
    client.get("/v1/posts")
    with statements() as collected:
        client.get("/v1/posts?limit=20&tag=a")
    assert [statement.split()[0] for statement in collected] == ["SELECT", "SELECT"]


def test_content_is_kept_byte_for_byte(client, post):
    content = '\u2028 "\\/\t\r\n</script> \U0001f600 \x7e\u00a0'
    post(content=content)
    assert json.loads(client.get("/v1/posts").data)[0]["content"] == content
