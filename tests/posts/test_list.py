"""GET /v1/posts: order, filters, pages, selected fields."""

import random
from itertools import combinations

import pytest

from blogapi import documents
from blogapi.documents import FIELDS, STATUSES
from blogapi.paging import ListQuery
from blogapi.posts import lists
from blogapi.storage.models import Post
from tests.api.fixtures import titles, walk
from tests.cases import cases
from tests.conftest import message

UNKNOWN = f"unknown parameter; known: {', '.join(ListQuery._fields)}"
WHOLE = "must be a whole number from 1"
ID = "must be a post's id, a whole number from 1"
ONE_OF = "must be one of published, draft, scheduled, archived"
UTF_8 = "query: must be UTF-8, with or without percent-encoding"
SORT = "sort: must be one of created_at, published_at, updated_at, relevance"
TIME = "must be a date, or a time in RFC 3339, such as 2026-11-20T10:10:00Z; a + is %2B"
LINK = "before: must be the value that Link gave for sort"
NAMES = f"fields: must be names separated by commas, each once, from: {', '.join(FIELDS)}"


@pytest.fixture
def some(post):
    """Six posts titled with numbers: every second one is published, every third one tagged."""
    for number in range(1, 7):
        status = "published" if number % 2 == 0 else "draft"
        post(title=str(number), status=status, tags=["Fizz Buzz/ä"] if number % 3 == 0 else [])


@cases(
    ("query", "found"),
    ("", "654321"),
    ("&&", "654321"),
    ("sort=created_at", "654321"),
    ("status=published", "642"),
    ("status=draft", "531"),
    ("status=archived", ""),
    ("tag=fizz+BUZZ%2F%C3%84", "63"),
    ("tag=%20fizz%20buzz/a%CC%88", "63"),
    ("tag=unknown", ""),
    ("tag=" + "x" * 8000, ""),
    ("tag=fizz", ""),
    ("tag=%00%E2%80%8B", ""),
    ("status=draft&tag=Fizz%20Buzz/%C3%A4", "3"),
    ("before=4", "321"),
    ("before=1", ""),
    ("before=99", "654321"),
    ("before=9223372036854775807", "654321"),
    ("before=5&status=published", "42"),
    ("before=6&tag=Fizz%20Buzz/%C3%A4&status=draft", "3"),
)
def test_the_newest_come_first_filters_combine_and_the_links_visit_each_post_once(client, query, found, some):
    assert titles(client, f"/v1/posts?{query}") == found
    for limit in (1, 2, 3, 4, 6):
        pages = walk(client, f"/v1/posts?{query}&limit={limit}")
        expected = [found[start : start + limit] for start in range(0, len(found), limit)]
        assert ["".join(page) for page in pages] == (expected or [""])


NO_CURSORS = ["", "5", "_5", "title_7", "2024-01-01T00:00:00Z", "%D9%A2024-01-01T00:00:00Z_5"]
NO_CURSORS += ["2024-01-01T00:00:00Z_" + post for post in ("", "0", "05", "9223372036854775808", "5_5", "5%0A")]
NO_CURSORS += ["2024-02-30T00:00:00Z_5", "2024-01-01T24:00:00Z_5", "0000-01-01T00:00:00Z_5"]
NO_CURSORS += ["2024-01-01t00:00:00z_5", "2024-01-01T00:00:00.0Z_5", "2024-01-01T00:00:00%2B00:00_5"]


@cases(
    ("query", "wrong"),
    *((f"limit={limit}", f"limit: {WHOLE}") for limit in ["0", "01", "-1", "1.0", "1_0"]),
    *((f"limit={limit}", f"limit: {WHOLE}") for limit in ["%2B1", "%D9%A3", "%201", "1%0A"]),
    ("limit=", f"limit: {WHOLE}"),
    ("limit", f"limit: {WHOLE}"),
    ("status=", f"status: {ONE_OF}"),
    ("status=Draft", f"status: {ONE_OF}"),
    ("tag=", "tag: must not be empty"),
    ("tag=%20", "tag: must not be empty"),
    *((f"before={before}", f"before: {ID}") for before in ("", "0", "007", "9223372036854775808", "1" * 30)),
    ("stauts=draft", f'"stauts": {UNKNOWN}'),
    ("limit=1&limit=1", "limit: given more than once"),
    ("limit=1&limi%74=2", "limit: given more than once"),
    ("limit[]=1", f'"limit[]": {UNKNOWN}'),
    ("fields[x]=slug", f'"fields[x]": {UNKNOWN}'),
    *((f"fields=slug&{more}", NAMES) for more in ("fields[]=slug", "fields=")),
    ("tag=%FF", UTF_8),
    ("tag=%ED%A0%80", UTF_8),
    ("%0Aa%00=1", f'"\N{REPLACEMENT CHARACTER}a\N{REPLACEMENT CHARACTER}": {UNKNOWN}'),
    ("sort=", SORT),
    ("sort=title", SORT),
    ("before=2024-01-01T00:00:00Z_5", f"before: {ID}"),
    ("before=title_7", f"before: {ID}"),
    ("sort=created_at&before=2024-01-01T00:00:00Z_5", f"before: {ID}"),
    *((f"sort=published_at&before={cursor}", f"{LINK}=published_at") for cursor in NO_CURSORS),
    ("sort=relevance", "sort: relevance needs q"),
    ("sort=relevance&q=a&before=7", f"{LINK}=relevance"),
    ("sort=relevance&q=a&before=other_7", f"{LINK}=relevance"),
    ("published_after=2021-01-01", "published_after: needs sort=published_at"),
    ("sort=created_at&published_before=2021-01-01", "published_before: needs sort=published_at"),
    ("sort=published_at&published_after=", f"published_after: {TIME}"),
    ("sort=published_at&published_after=2021-02-30", f"published_after: {TIME}"),
    ("sort=published_at&published_after=9999-12-31T23:59:59.5Z", f"published_after: {TIME}"),
    ("sort=published_at&published_before=2021", f"published_before: {TIME}"),
    ("sort=published_at&published_before=2021-01-01T00:00:00", f"published_before: {TIME}"),
    ("updated_after=2026-11-20&sort=published_at", "updated_after: needs sort=updated_at"),
    ("updated_after=2026-11-20&tag=a", "tag: cannot be combined with sort=updated_at or updated_after"),
    ("sort=updated_at&q=a", "q: cannot be combined with sort=updated_at or updated_after"),
    ("sort=updated_at&published_after=2026-11-20", "published_after: needs sort=published_at"),
    ("sort=updated_at&before=7", f"{LINK}=updated_at"),
    ("updated_after=2026-11-20&before=7", f"{LINK}=updated_at"),
    ("updated_after=now", f"updated_after: {TIME}"),
    *((f"fields={fields}", NAMES) for fields in ["", ",", "id,", "id,id", "id,%20title", "id,tags,id"]),
    *((f"fields={fields}", NAMES) for fields in ["Id", "name", "id;title"]),
)
def test_a_bad_parameter_is_named(client, query, wrong):
    assert message(client.get(f"/v1/posts?{query}")) == wrong


def test_the_link_has_the_same_filters_and_never_the_host(client, some):
    answer = client.get("/v1/posts?tag=Fizz%20Buzz/%C3%A4&limit=1", headers={"Host": "evil.example"})
    assert answer.headers["Link"] == '</v1/posts?limit=1&tag=fizz%20buzz%2F%C3%A4&before=6>; rel="next"'


def test_the_default_limit_is_100_and_the_highest_1000(client, database):
    rows = [{"slug": f"s{number}", "status": "draft", "document": "{}"} for number in range(1001)]
    database.write(lambda tx: tx.execute(Post.insert_many(rows)))
    assert len(client.get("/v1/posts").json) == 100
    for more in ("1001", "9" * 5000):
        answer = client.get(f"/v1/posts?limit={more}")
        assert len(answer.json) == 1000
        assert answer.headers["Link"] == '</v1/posts?limit=1000&before=2>; rel="next"'


@cases("status", [None, *STATUSES])
@cases("by_tag", [True, False])
@cases("of_second", [True, False])
def test_a_list_by_publication_uses_its_indexes_by_time(plan, status, by_tag, of_second):
    steps = plan(lists.time_query("published_at", status, by_tag, of_second))
    found = "_by_time (status=? AND tag=?" if by_tag else "_published (status=?"
    time = "=? AND " if of_second else ("<?)", ">? AND published_at<?)")  # the latter if it is in the future
    for step in steps:
        if step.startswith("SEARCH") and not step.endswith("PRIMARY KEY (rowid=?)"):
            assert step.partition(f"{found} AND published_at")[2].startswith(time), steps


@pytest.mark.parametrize(("of_second", "compared"), [(True, "=? AND id<?)"), (False, ">? AND")])
def test_a_list_by_change_uses_indexes_by_time(plan, of_second, compared):
    for status in (None, *STATUSES):
        steps = plan(lists.time_query("updated_at", status, False, of_second))
        assert {step.split()[0] for step in steps} <= {"SEARCH", "MERGE", "LEFT", "RIGHT"}, steps
        for step in [step for step in steps if step.startswith("SEARCH")]:
            _, _, used = step.partition(" (status=? AND ")
            assert used.startswith((f"updated_at{compared}", f"published_at{compared}")), (status, steps)


@cases(("path", "count"), [("/v1/posts/1", 2), ("/v1/posts?limit=20&tag=a", 2), ("/v1/posts?q=fog", 3)])
def test_a_read_takes_two_statements_and_a_search_three(client, statements, path, count, some):
    client.get("/v1/posts?q=lake")
    with statements() as collected:
        client.get(path)
    assert [each.split()[0] for each in collected if not each.startswith("--")] == ["SELECT"] * count


# Selected fields


def test_any_selection_of_fields_returns_them_unchanged_and_in_order(client, post):
    # all fields or the fewest, and text that could be mistaken for a field name
    tricky = '","content":"x","tags":["\\"'
    every = dict.fromkeys(("title", "content", "excerpt"), tricky) | {"cover_image": 'https://a/"tags":"'}
    post(status="published", tags=[tricky, '"created_at":"'], **every)
    post(content='"excerpt":"\\')
    post(excerpt="é\u2028\\", tags=[], content="\\")
    whole = client.get("/v1/posts").json
    always = ("id", "title", "status")
    draw = random.Random(1)
    some = [[name for name in FIELDS if draw.random() < 0.5] or FIELDS for _ in range(50)]
    for names in (*combinations(FIELDS, 1), *combinations(FIELDS, 2), *some):
        expected = [{name: post[name] for name in FIELDS if name in {*names, *always} & post.keys()} for post in whole]
        answer = client.get(f"/v1/posts?fields={','.join(reversed(names))}")
        assert answer.text == "[" + ",".join(map(documents.dump, expected)) + "]\n"


def test_damaged_posts_are_skipped_and_the_link_leads_on(client, post, database):
    for number in range(1, 6):
        post(title=str(number))
    for damaged in ("", "{}", '{"id":"1"}', "[]"):
        damage = Post.update(document=damaged).where(Post.id.in_([2, 3, 5]))
        database.write(lambda tx, damage=damage: tx.execute(damage))
        assert walk(client, "/v1/posts?fields=title&limit=2") == [["4"], ["1"]], damaged


def test_a_page_ends_after_the_post_that_brings_it_past_4_mib_whichever_fields_it_shows(client, post):
    for number in range(6):
        post(title=str(number), content="x" * 1_000_000)
    for query in ("", "?fields=title,content", "?fields=title"):
        assert walk(client, f"/v1/posts{query}") == [["5", "4", "3", "2", "1"], ["0"]]


def test_a_list_of_names_can_be_sent_as_generated_clients_do(client, post):
    post(title="1")
    post(title="2")
    for query in ("fields=tags&fields=slug", "fields[]=slug&fields[]=tags", "fields%5B0%5D=slug,tags"):
        answer = client.get(f"/v1/posts?limit=1&{query}")
        assert answer.json == client.get("/v1/posts?limit=1&fields=slug,tags").json
        assert [each["slug"] for each in client.get(answer.headers["Link"][1:].partition(">")[0]).json] == ["1"]
