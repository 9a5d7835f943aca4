"""Micropub: queries for the configuration, the source of posts, and categories."""

import pytest

from blogapi.storage.models import PostTag
from tests.api.fixtures import with_key
from tests.cases import cases
from tests.images.pictures import jpeg
from tests.micropub.conftest import MEDIA, PATH, URL, bad, error, form, query


def test_600_601_the_configuration_has_a_media_endpoint_and_no_syndication_targets(client):
    answer = query(client, q="config").json
    assert (answer["media-endpoint"], answer["syndicate-to"]) == (f"{URL}/micropub/media", [])
    assert answer["q"] == ["config", "source", "syndicate-to", "category"]
    assert query(client, q="syndicate-to").json == {"syndicate-to": []}


def test_602_603_the_source_of_a_post_is_an_entry(client, post):
    url = f"{URL}/v1/posts/1"
    properties = {"name": ["A"], "content": ["B"], "summary": ["C"], "mp-slug": ["a"], "category": ["a", "b"]}
    properties |= {"published": [post()["published_at"]], "post-status": ["published"], "url": [url]}
    assert query(client, q="source", url=url).json == {"type": ["h-entry"], "properties": properties}
    asked = query(client, q="source", url=url, **{"properties[]": ["category", "name", "x"]}).json
    assert asked == {"properties": {"category": ["a", "b"], "name": ["A"]}}
    assert query(client, q="source", url=url, properties="content").json == {"properties": {"content": ["B"]}}


@pytest.mark.both_engines
def test_sources_come_in_pages(client, post):
    for number in range(3):
        client.post("/v1/posts", json={"title": str(number), "content": "A"})
    first = query(client, q="source", limit=3).json
    names = [each["properties"]["name"] for each in first["items"]]
    second = query(client, q="source", limit=3, after=first["paging"]["after"]).json
    assert (names, [each["properties"]["name"] for each in second["items"]]) == ([["2"], ["1"], ["0"]], [["A"]])
    assert "paging" not in second
    assert bad(query(client, q="source", limit="x")).startswith("limit: must be")
    assert bad(query(client, q="source", after="x")).startswith("after: must be")


@pytest.fixture
def five(client, post, clock):
    for title, status in (("1", "published"), ("2", "draft"), ("3", "draft"), ("4", "draft")):
        client.post("/v1/posts", json={"title": title, "content": "A", "status": status})
    client.patch("/v1/posts/4", json={"status": "scheduled", "published_at": "2026-11-20T12:01:00Z"})
    clock.now += 60  # It is due.


@pytest.mark.both_engines
@cases(
    ("asked", "names"),
    ({"limit": 2}, "43"),
    ({"limit": 2, "offset": 2}, "21"),
    ({"offset": 3}, "1A"),
    ({"offset": 0, "limit": 1}, "4"),
    ({"offset": 9}, ""),
    ({"after": "4", "offset": 1}, "1A"),
    ({"post-status": "draft"}, "42"),
    ({"post-status": "publish", "offset": 1}, "1A"),
    ({"post-status": "published", "offset": 2}, "A"),
    ({"post-status": "scheduled", "offset": 1}, ""),
)
def test_sources_can_be_selected_by_offset_and_status(client, asked, names, five):
    found = query(client, q="source", **asked).json["items"]
    assert "".join(each["properties"]["name"][0] for each in found) == names


@cases(
    ("asked", "wrong"),
    ("q=source&page=2", '"page": unknown parameter; known: '),
    ("q=source&offset=-1", "offset: must be a whole number from 0 to 10,000"),
    ("q=source&offset=10001", "offset: must be a whole number from 0 to 10,000"),
    ("q=source&offset=1&offset=2", "offset: given more than once"),
    ("q=source&post-status=x", "post-status: must be one of published, draft, scheduled, archived"),
    ("q=category&search=x", '"search": unknown parameter; known: '),
    ("q=config&limit=1", '"limit": unknown parameter; known: q'),
    ("q=syndicate-to&access_token=x", '"access_token": unknown parameter; known: q'),
    ("q=category&limit=0", "limit: must be a whole number from 1"),
    ("q=x", "q: must be one of config, source, syndicate-to, category"),
    ("", "q: must be one of config, source, syndicate-to, category"),
)
def test_an_unknown_query_or_parameter_is_refused(client, asked, wrong):
    assert bad(client.get(f"{PATH}?{asked}")).startswith(wrong)


def test_categories_come_in_pages_and_can_be_filtered(client, post):
    client.post("/v1/posts", json={"title": "A", "content": "A", "tags": ["C", "Ca"]})
    first = {"categories": ["a", "b"], "paging": {"after": "b"}}
    assert query(client, q="category", limit=2).json == first
    for next_page in ({"after": "b"}, {"offset": 2}):
        assert query(client, q="category", limit=2, **next_page).json == {"categories": ["C", "Ca"]}
    assert query(client, q="category", filter="C", limit=1, offset=1).json == {"categories": ["Ca"]}
    client.patch("/v1/posts/2", json={"tags": ["Abc", "Käse"]})
    assert query(client, q="category").json == {"categories": ["a", "Abc", "b", "Käse"]}
    assert query(client, q="category", filter="B").json == {"categories": ["Abc", "b"]}


def test_categories_are_filtered_on_all_pages(client, post, database):
    row = {"status": "draft", "post_id": 1}
    rows = [row | {"tag": f"{number:04}", "name": f"{number:04}"} for number in range(1100)]
    database.write(lambda tx: tx.execute(PostTag.insert_many(rows)))
    found = ["0109", *map(str, range(1090, 1100))]
    assert query(client, q="category", filter="109").json == {"categories": found}


def test_commands_to_servers_are_ignored_in_each_query(client, post):
    post()
    for asked in ("config", "syndicate-to", "category", "source", f"source&url={URL}/v1/posts/1"):
        plain = client.get(f"{PATH}?q={asked}")
        for command in ("mp-destination=https://a.example", "mp-destination[]=a&mp-destination[]=b", "mp-x"):
            answer = client.get(f"{PATH}?{command}&q={asked}")
            assert (answer.status_code, answer.json) == (200, plain.json), (asked, command)


def test_an_empty_parameter_counts_as_left_out(client, post):
    post()
    client.post(MEDIA, **form(file=("a.jpg", jpeg())))
    empty = "limit=&after=&offset=&post-status&url=&properties[]=&filter="
    for path in (f"{PATH}?q=source", f"{PATH}?q=category", f"{MEDIA}?q=source"):
        assert client.get(f"{path}&{empty}").json == client.get(path).json


def test_the_media_endpoint_lists_images_newest_first(client, clock):
    assert client.get(f"{MEDIA}?q=last").json == {}
    assert client.get(f"{MEDIA}?q=source").json == {"items": []}
    items = []
    for size in range(1, 4):
        clock.now += 1
        url = client.post(MEDIA, **form(file=("a.jpg", jpeg(size)))).json["url"]
        items.insert(0, {"url": url, "published": f"2026-11-20T12:00:0{size}Z"})
    assert client.get(f"{MEDIA}?q=last&mp-destination=a").json == {"url": items[0]["url"]}
    assert client.get(f"{MEDIA}?q=source").json == {"items": items}
    first = client.get(f"{MEDIA}?q=source&limit=2").json
    assert first["items"] == items[:2]
    assert client.get(f"{MEDIA}?q=source&limit=2&after={first['paging']['after']}").json == {"items": items[2:]}
    assert client.get(f"{MEDIA}?q=source&limit=1&offset=2").json["items"] == items[2:]
    assert client.get(f"{MEDIA}?q=source&offset=9").json == {"items": []}


def test_the_media_endpoint_answers_only_keys_that_may_see_images(app, client, stranger):
    assert error(stranger.get(f"{MEDIA}?q=source"), 401, "unauthorized")
    for scope, status in (("read-only", 200), ("drafts-only", 200), ("published-only", 401)):
        reader = with_key(app, scope)
        for asked in ("source", "last"):
            assert reader.get(f"{MEDIA}?q={asked}").status_code == status, scope
    assert bad(client.get(MEDIA)) == "q: must be source or last"
    assert bad(client.get(f"{MEDIA}?q=config")) == "q: must be source or last"
    for wrong in ("limit=0", "offset=10001", "after=1", f"after={'0' * 32}", "page=2", "url=x"):
        assert bad(client.get(f"{MEDIA}?q=source&{wrong}")), wrong
