"""Former slugs: a post that was published keeps its old slugs, and no other post can take them."""

import pytest

from blogapi.storage.models import FormerSlug
from tests.api.fixtures import LATER, with_key
from tests.cases import cases
from tests.conftest import message
from tests.invariants import sound_posts

PUBLISHED = {"status": "published"}


@pytest.fixture
def renamed(client, post):
    """A published post whose slug was `a` and is now `b`."""
    post(slug="a", **PUBLISHED)
    answer = client.patch("/v1/posts/1", json={"slug": "b"})
    assert (answer.status_code, answer.json["former_slugs"]) == (200, ["a"])
    return answer.json


@pytest.fixture(autouse=True)
def sound(config, app):
    """Check that each test leaves a sound database."""
    yield
    sound_posts(config.database)


def by_slug(client, slug, method="GET", **more):
    return client.open(f"/v1/posts/by-slug/{slug}", method=method, **more)


# Kept automatically


PAST = {"published_at": "2020-01-01T00:00:00Z"}
TO_COME = {"status": "scheduled", "published_at": LATER}
DRAFT = {"status": "draft"}
# What happens to a draft with the slug `a`, and its former slugs once it is published
LIVES = {
    "published, renamed": ([PUBLISHED, {"slug": "b"}], ["a"]),
    "a draft, renamed": ([{"slug": "b"}], []),
    "a draft with a date, renamed": ([PAST, {"slug": "b"}], []),
    "archived with a date, renamed": ([{"status": "archived"} | PAST, {"slug": "b"}], []),
    "scheduled, renamed": ([TO_COME, {"slug": "b"}, DRAFT], []),
    "published and renamed at once": ([PUBLISHED | {"slug": "b"}], []),
    "a draft again and renamed at once": ([PUBLISHED, DRAFT | {"slug": "b"}], ["a"]),
    "a draft again, renamed twice": ([PUBLISHED, DRAFT, {"slug": "b"}, {"slug": "c"}], ["a"]),
    "archived, renamed": ([PUBLISHED, {"status": "archived"}, {"slug": "b"}], ["a"]),
    "scheduled again, renamed": ([PUBLISHED, TO_COME, {"slug": "b"}, DRAFT], ["a"]),
    "a draft twice": ([PUBLISHED, DRAFT, PUBLISHED, DRAFT, PUBLISHED, DRAFT, {"slug": "b"}], ["a"]),
    "taken back": ([PUBLISHED, {"slug": "b"}, {"slug": "a"}], ["b"]),
    "taken back by a draft": ([PUBLISHED, {"slug": "b"}, DRAFT | {"slug": "a"}, {"slug": "c"}], ["a", "b"]),
    "given up by a draft": ([PUBLISHED, {"slug": "b"}, DRAFT, {"former_slugs": None}, {"slug": "c"}], ["b"]),
    "written by the owner": ([{"former_slugs": ["x"]}, {"slug": "b"}], ["x"]),
}


def test_a_post_keeps_only_slugs_under_which_it_was_published(client, post, clock):
    for life, (changes, former) in LIVES.items():
        path = f"/v1/posts/{post(slug='a')['id']}"
        for change in [*changes, PUBLISHED | PAST]:
            answer = client.patch(path, json=change)
            assert answer.status_code == 200, (life, answer.json)
        assert answer.json.get("former_slugs", []) == former, life
        for slug in {"a", "b", "c"} - {answer.json["slug"]}:
            assert by_slug(client, slug).status_code == (200 if slug in former else 404), life
        client.delete(f"{path}?permanent=true")
        clock.now += 60  # for another hundred requests


def test_a_replaced_post_keeps_only_published_slugs(client, post):
    post(slug="a", **PAST)
    for slug, former in {"b": None, "c": None, "d": ["c"]}.items():
        body = {"title": "A", "content": "B", "slug": slug}
        assert client.put("/v1/posts/1", json=body).json.get("former_slugs") == former
        if slug == "c":
            client.patch("/v1/posts/1", json=PUBLISHED), client.patch("/v1/posts/1", json=DRAFT)


def test_a_draft_restored_from_the_trash_is_not_found_under_a_slug_that_only_it_had(client, post):
    post(slug="a", **PAST)
    client.patch("/v1/posts/1", json={"slug": "b"})
    client.delete("/v1/posts/1")
    client.post("/v1/trash/1/restore")
    assert "former_slugs" not in client.patch("/v1/posts/1", json=PUBLISHED | {"slug": "c"}).json
    assert [by_slug(client, slug).status_code for slug in "abc"] == [404, 404, 200]


def test_former_slugs_are_newest_first_and_beyond_20_the_oldest_is_dropped(client, post):
    post(slug="s0", **PUBLISHED)
    for number in range(1, 23):
        client.patch("/v1/posts/1", json={"slug": f"s{number}"})
    assert client.get("/v1/posts/1").json["former_slugs"] == [f"s{number}" for number in range(21, 1, -1)]
    assert [by_slug(client, slug).status_code for slug in ("s22", "s21", "s2", "s1", "s0")] == [200, 200, 200, 404, 404]
    assert post(slug="s1", **PUBLISHED)["slug"] == "s1"


def test_former_slugs_are_in_lists_files_revisions_and_webhooks(client, renamed, subscribe, recorded):
    subscribe()
    client.patch("/v1/posts/1", json={"title": "B"})
    assert client.get("/v1/posts?fields=former_slugs").json[0]["former_slugs"] == ["a"]
    assert "former_slugs: [a]\n" in client.get("/v1/posts/1", headers={"Accept": "text/markdown"}).text
    assert client.get("/v1/posts/1/revisions/2").json["former_slugs"] == ["a"]
    assert recorded()[-1][1]["data"]["post"]["former_slugs"] == ["a"]


# Reserved


def test_no_other_post_can_take_a_former_slug(client, post, renamed):
    taken = "already taken by another post: post 1 used to have this slug; its slug is now b"
    assert message(client.post("/v1/posts", json={"title": "A", "content": "B", "slug": "a"})) == f"slug: {taken}"
    assert (post(title="A")["slug"], post(title="B")["slug"]) == ("a-2", "b-2")
    assert message(client.patch("/v1/posts/2", json={"slug": "a"})) == f"slug: {taken}"
    for name, told in {"a": taken, "b": "already taken by another post"}.items():
        answer = client.patch("/v1/posts/2", json={"former_slugs": [name]})
        assert message(answer) == f"former_slugs: {name} is {told}"
    answer = client.post("/v1/posts", json={"title": "C", "content": "B", "former_slugs": ["x", "a"]})
    assert (message(answer), by_slug(client, "x").status_code) == (f"former_slugs: a is {taken}", 404)


# Finding posts


def test_get_patch_and_delete_find_the_post_by_a_former_slug(app, client, renamed):
    found = by_slug(client, "a")
    assert (found.json, found.headers["Content-Location"]) == (renamed, "/v1/posts/by-slug/b")
    assert found.headers["ETag"] == client.get("/v1/posts/1").headers["ETag"]
    file = by_slug(client, "a", headers={"Accept": "text/markdown"})
    assert (file.mimetype, file.headers["Content-Location"]) == ("text/markdown", "/v1/posts/by-slug/b")
    assert by_slug(client, "a", headers={"If-None-Match": found.headers["ETag"]}).status_code == 304
    assert "Content-Location" not in by_slug(client, "b").headers
    assert by_slug(client, "a/revisions").json == client.get("/v1/posts/1/revisions").json
    assert by_slug(with_key(app, "published-only"), "a").json == renamed
    assert by_slug(client, "a", "PATCH", json={"title": "B"}).json["title"] == "B"
    assert by_slug(client, "a", "DELETE").status_code == 204
    assert by_slug(client, "a").status_code == by_slug(client, "b").status_code == 404


def test_a_published_only_key_finds_only_published_posts(app, client, renamed):
    client.patch("/v1/posts/1", json={"status": "draft"})
    visitor = with_key(app, "published-only")
    assert message(by_slug(visitor, "a"), 404) == message(by_slug(visitor, "x"), 404) == "no such post"


def test_put_by_a_former_slug_is_refused_and_names_the_current_one(client, renamed):
    told = "slug: post 1 used to have this slug; its slug is now b"
    body = {"title": "A", "content": "B"}
    assert message(by_slug(client, "a", "PUT", json=body)) == told
    assert message(by_slug(client, "a", "PUT", json=body, headers={"If-None-Match": "*"})) == told
    assert message(by_slug(client, "a", "PUT", data="# A", content_type="text/markdown")) == told
    assert client.get("/v1/posts").json == [renamed]


# Setting former slugs


def test_former_slugs_can_be_set_and_cleared(client, post):
    assert post(slug="a", former_slugs=["b", "a", "c", "b"])["former_slugs"] == ["b", "c"]
    assert client.patch("/v1/posts/1", json={"former_slugs": ["d", "c"]}).json["former_slugs"] == ["d", "c"]
    assert by_slug(client, "b").status_code == 404
    for nothing in (None, []):
        assert "former_slugs" not in client.patch("/v1/posts/1", json={"former_slugs": nothing}).json
        assert "former_slugs" not in post(former_slugs=nothing)
        client.patch("/v1/posts/1", json={"former_slugs": ["d"]})
    assert client.patch("/v1/posts/1", json={"slug": "d"}).json.get("former_slugs") is None


def test_the_slug_that_is_replaced_can_be_given_as_a_former_one(client):
    for number, status in enumerate(("draft", "archived", "published"), 1):
        path = f"/v1/posts/{number}"
        by_slug(client, "a", "PUT", json={"title": "A", "content": "B", "status": status})
        for change in ({"slug": "b", "former_slugs": ["a"]}, {"slug": "c", "former_slugs": ["a", "b"]}):
            assert client.patch(path, json=change).status_code == 200
            assert client.post("/v1/posts", json={"title": "A", "content": "B", "slug": "a"}).status_code == 400, status
            assert by_slug(client, "a").json["id"] == str(number)
        client.delete(path)


def test_a_put_keeps_them_unless_it_sets_them(client, renamed):
    body = {"title": "A", "content": "B"}
    assert by_slug(client, "b", "PUT", json=body).json["former_slugs"] == ["a"]
    assert by_slug(client, "b", "PUT", json=body | {"former_slugs": ["x", "a"]}).json["former_slugs"] == ["x", "a"]
    file = "---\nformer_slugs: {}\n---\n# A"
    put = {"content_type": "text/markdown"}
    assert by_slug(client, "b", "PUT", data=file.format("y, x"), **put).json["former_slugs"] == ["y", "x"]
    assert "former_slugs" not in by_slug(client, "b", "PUT", data=file.format("[]"), **put).json


@cases(
    ("value", "told"),
    ("a", "former_slugs: must be an array of strings"),
    ([["a"]], "former_slugs[0]: must be a string"),
    *(([slug], "former_slugs[0]: must have 1 to 100 characters") for slug in ("", "a" * 101)),
    *(([slug], "former_slugs[0]: must be lower-case letters a-z, digits and single hyphens") for slug in ("A", "a-")),
    ([None], "former_slugs[0]: must not be null"),
    *((slugs, "former_slugs: must have at most 20 slugs") for slugs in ([*map(str, range(21))], ["s"] * 3_000)),
)
def test_anything_but_a_list_of_slugs_is_refused(client, post, value, told):
    post()
    body = {"title": "A", "content": "B", "former_slugs": value}
    for answer in (client.post("/v1/posts", json=body), client.patch("/v1/posts/1", json={"former_slugs": value})):
        assert message(answer).startswith(told)


# The history


def test_a_post_in_the_trash_gives_them_up_and_gets_back_those_that_are_free(client, post, renamed, count):
    client.patch("/v1/posts/1", json={"former_slugs": ["a", "x"]})
    client.delete("/v1/posts/1")
    assert count(FormerSlug) == 0
    assert (post(slug="x")["slug"], post(slug="b")["slug"]) == ("x", "b")
    restored = client.post("/v1/trash/1/restore").json
    assert (restored["slug"], restored["former_slugs"]) == ("b-2", ["a"])
    client.delete("/v1/posts/1?permanent=true")
    assert count(FormerSlug) == 0


def test_restoring_a_revision_leaves_them_alone(client, renamed):
    assert client.post("/v1/posts/1/revisions/1/restore").json["former_slugs"] == ["a"]
    client.patch("/v1/posts/1", json={"title": "B", "former_slugs": []})
    assert "former_slugs" not in client.post("/v1/posts/1/revisions/2/restore").json


def test_a_scheduled_post_keeps_them_when_it_is_published(client, post, clock):
    post(slug="a", former_slugs=["b"])
    client.patch("/v1/posts/1", json={"status": "scheduled", "published_at": LATER})
    clock.now += 7200
    assert client.patch("/v1/posts/1", json={"slug": "c"}).json["former_slugs"] == ["a", "b"]
