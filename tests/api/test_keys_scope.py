"""Keys with fewer permissions: read-only and published-only keys."""

import itertools
import re

import pytest

from blogapi.documents import STATUSES
from tests.api.fixtures import LATER, with_key
from tests.cases import cases
from tests.conftest import message
from tests.images.pictures import gif

MAY = {
    "read-only": "this key is read-only: it may read posts and their tags; "
    "read their history, the trash, images and metrics",
    "published-only": "this key is published-only: it may read published posts and their tags",
}
POST_PATHS = {"/v1/posts", "/v1/posts/<id:post>", "/v1/posts/by-slug/<slug:post>"}
READABLE = POST_PATHS | {"/v1/tags", "/v1/tags/<tag:tag>", "/v1/key"}
HISTORY = re.compile("/revisions|/trash|/images|/proposals")  # paths that read-only keys may read
HINT = "are its `scopes` right? If so, add it to READABLE for all keys, or to HISTORY for read-only ones"
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "FOO"]


@pytest.fixture(params=list(MAY))
def scope(request):
    return request.param


@pytest.fixture
def reader(app, scope):
    """A client with a key that has fewer permissions."""
    return with_key(app, scope)


def said(answer):
    """A response without its rate-limit headers, because PostgreSQL counts by its own clock."""
    counts = "X-RateLimit-Remaining", "X-RateLimit-Reset"
    headers = [(name, value) for name, value in answer.headers if name not in counts]
    return answer.status_code, headers, answer.data


# What they may do


@pytest.mark.both_engines
@pytest.mark.in_process
def test_only_posts_and_tags_can_be_read_and_anything_else_is_403_or_404_for_published_only_keys(app, reader, scope):
    rules = [rule for rule in app.url_map.iter_rules() if rule.rule.startswith("/v1")]
    forbidden = {rule.rule for rule in rules if "GET" in rule.methods and not HISTORY.search(rule.rule)} - READABLE
    for path, method in itertools.product({rule.rule for rule in rules}, METHODS):
        answer = reader.open(re.sub("<[^>]+>", "1", path.replace("<image:image_id>", "0" * 32)), method=method)
        is_forbidden = method not in ("GET", "HEAD") or path in forbidden
        assert (answer.status_code == 403) is is_forbidden, f"{path}: {HINT}"
        if answer.status_code == 403 and method != "HEAD":
            assert answer.json == {"error": 403, "message": MAY[scope]}
        elif scope == "published-only" and HISTORY.search(path) and method != "HEAD":
            assert answer.json == {"error": 404, "message": "no such path"}


def test_every_key_may_read_its_own_name_and_scope(app, client):
    for scope in (*MAY, "drafts-only"):
        assert with_key(app, scope).get("/v1/key").json == {"name": scope, "scope": scope}
    assert client.get("/v1/key").json == {"name": "tests", "scope": "full"}


def test_a_new_view_is_forbidden_unless_it_declares_otherwise(own_app, scope):
    app = own_app()
    app.add_url_rule("/v1/posts/new", view_func=lambda: "all of it")
    reader = with_key(app, scope)
    assert message(reader.get("/v1/posts/new"), 403) == MAY[scope]


def test_reading_an_unknown_path_is_404_and_writing_there_403(reader, scope):
    assert message(reader.get("/v1/nothing"), 404) == "no such path"
    assert message(reader.get("/v1/posts/007"), 404) == "no such path"
    assert message(reader.post("/v1/nothing"), 403) == MAY[scope]
    assert message(reader.get("/docs/nothing"), 404) == "no such path"


@cases("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_403_comes_before_the_post_the_preconditions_and_the_body(reader, post, method):
    post(title="there", status="published", tags=["there"])
    answers = {
        repr(said(reader.open(f"/v1/{path}", method=method, data=body, headers=headers)))
        for path in ("posts", "posts/1", "posts/9", "posts/by-slug/there", "posts/by-slug/gone", "tags/there", "tags/9")
        for body in (b"", b"{", b'{"title": "A", "content": "B"}')
        for headers in ({}, {"If-Match": '"x"'}, {"If-None-Match": "*"}, {"Idempotency-Key": "a" * 300})
    }
    assert len(answers) == 1


def test_read_only_and_drafts_only_keys_read_all_that_a_full_one_can(app, client, post):
    readers = [with_key(app, scope) for scope in ("read-only", "drafts-only")]
    for status in ("published", "draft"):
        post(title=status, status=status, tags=["a", status])
    client.patch("/v1/posts/1", json={"title": "changed"})
    client.delete(f"/v1/posts/{post()['id']}")
    posts = ("posts", "posts?status=draft", "posts?limit=1", "posts/2", "posts/by-slug/draft")
    history = ("posts/1/revisions", "posts/by-slug/published/revisions", "posts/1/revisions/1", "trash", "trash/3")
    image = client.post("/v1/images", data=gif(), content_type="image/gif").json
    for path in (*posts, *history, "tags", "tags?limit=1", "images", f"images/{image['id']}"):
        assert all(said(reader.get(f"/v1/{path}")) == said(client.get(f"/v1/{path}")) for reader in readers), path


# Only published posts

HIDDEN = {"2": "draft", "4": "archived", "5": "scheduled", "8": "draft", "9": "draft"}
TIMES = {
    "5": {"status": "scheduled", "published_at": LATER},
    "6": {"status": "scheduled", "published_at": "2026-11-20T12:01:00Z"},
}
SPELLINGS = {"1": "Shared", "2": "SHARED", "4": "sharED", "5": "shared", "6": "SHared", "8": "shaRED", "9": "ShArEd"}


@pytest.fixture
def blogs(own_app, config, backend, tmp_path, clock, request):
    """Two blogs and their owners. Both have the same published posts; the first also has unpublished posts."""
    blogs = []
    other = request.getfixturevalue("url") if backend == "postgresql" else tmp_path / "other.db"
    for database in (config.database, other):
        app = own_app(database=database)
        owner = with_key(app)
        for number in "123456789":
            status = HIDDEN.get(number, "published")
            tags = [f"only {status}", SPELLINGS.get(number, "other"), f"Tag {number}"]
            fields = {"title": "Title", "content": f"Content {status} {number}", "status": status, "tags": tags}
            fields |= TIMES.get(number, {})
            assert owner.put(f"/v1/posts/by-slug/slug-{number}", json=fields).status_code == 201
        for number in HIDDEN if database == other else ():
            assert owner.delete(f"/v1/posts/{number}").status_code == 204
        blogs.append((app, owner))
    clock.now += 60
    return blogs


@pytest.fixture
def same(blogs):
    """Send a request to both blogs with a published-only key; return the response, which must be the same for both."""
    visitors, minutes = [with_key(app, "published-only") for app, _ in blogs], set()

    def same(method, path, **more):
        answer, expected = (visitor.open(path, method=method, **more) for visitor in visitors)
        minutes.update(each.headers["X-RateLimit-Reset"] for each in (answer, expected))
        if len(minutes) == 1:  # On PostgreSQL, the real clock counts, and a minute can begin between the two requests.
            assert answer.headers["X-RateLimit-Remaining"] == expected.headers["X-RateLimit-Remaining"]
        assert said(answer) == said(expected), (method, path, more)
        assert answer.status_code < 500, answer.text
        return answer

    return same


def test_there_are_only_published_posts(same, clock):
    clock.now -= 1  # Post 6 is published in the next second.
    assert [each["id"] for each in same("GET", "/v1/posts").json] == ["7", "3", "1"]
    assert {"name": "only published", "posts": 3} in same("GET", "/v1/tags").json
    for path in ("/v1/posts/6", "/v1/posts/by-slug/slug-6"):
        assert message(same("GET", path), 404) == "no such post"
    clock.now += 1
    assert [each["id"] for each in same("GET", "/v1/posts").json] == ["7", "6", "3", "1"]
    assert {each["status"] for each in same("GET", "/v1/posts").json} == {"published"}
    for path in ("/v1/posts/6", "/v1/posts/by-slug/slug-6"):
        published = {"id": "6", "status": "published", "published_at": "2026-11-20T12:01:00Z"}
        assert same("GET", path).json.items() >= published.items()
    assert same("GET", "/v1/tags").json == [
        {"name": "only published", "posts": 4},
        {"name": "other", "posts": 2},
        {"name": "SHared", "posts": 2},
        *({"name": f"Tag {number}", "posts": 1} for number in "1367"),
    ]


@pytest.mark.both_engines
def test_no_list_reveals_another_post(same):
    parameters = (
        ["", "limit=1", "limit=3", "limit=4"],
        ["", *(f"status={status}" for status in STATUSES)],
        ["", "tag=shared", "tag=only+draft", "tag=tag+6"],
        ["", *(f"before={number}" for number in (2, 5, 7, 8))],
        ["", "sort=published_at", "q=content", "q=only+draft", "fields=id,slug"],
    )
    for chosen in [*itertools.product(*parameters)][::7]:  # Each pair of values still occurs.
        same("GET", f"/v1/posts?{'&'.join(filter(None, chosen))}")


@pytest.mark.both_engines
def test_no_list_of_tags_reveals_another_post(same):
    limits, statuses = ["", "limit=1", "limit=3", "limit=7"], ["", *(f"status={each}" for each in (*STATUSES, "x"))]
    afters = ["", *(f"after={name}" for name in ("only", "only+draft", "only+published", "shared", "tag+5", "tag+7"))]
    for chosen in itertools.product(limits, statuses, afters):
        same("GET", f"/v1/tags?{'&'.join(filter(None, chosen))}")


def test_another_post_is_404_as_if_it_never_existed(same, blogs):
    owner = blogs[0][1]
    for number in HIDDEN:
        tag = owner.get(f"/v1/posts/{number}").headers["ETag"]
        markdown = owner.get(f"/v1/posts/{number}", headers={"Accept": "text/markdown"}).headers["ETag"]
        for headers in (
            {},
            {"Accept": "text/markdown"},
            *({name: value} for name in ("If-Match", "If-None-Match") for value in (tag, markdown, "*", '"x"')),
            {"Range": "bytes=0-9", "If-Range": tag, "If-Modified-Since": "Fri, 20 Nov 2026 12:00:00 GMT"},
        ):
            for path, never in ((f"posts/{number}", "posts/99"), (f"posts/by-slug/slug-{number}", "posts/by-slug/x")):
                answer = same("GET", f"/v1/{path}", headers=headers)
                assert message(answer, 404) == "no such post"
                assert said(answer) == said(same("GET", f"/v1/{never}", headers=headers))
                wrong = message(same("GET", f"/v1/{path}?x=1", headers=headers))
                assert wrong == '"x": unknown parameter; known: none'
                assert said(same("HEAD", f"/v1/{path}", headers=headers)) == said(same("HEAD", f"/v1/{never}"))


@cases("method", METHODS)
def test_no_other_method_or_path_reveals_another_post(same, method):
    for number in (*HIDDEN, "1", "99"):
        tag = f"tags/only%20{HIDDEN.get(number, 'published')}"
        posts = (f"posts/{number}", f"posts/by-slug/slug-{number}", "posts")
        for path in (*posts, tag, f"tags/tag%20{number}", "webhooks/1"):
            bodies = {}, {"title": "A", "content": "B", "slug": f"slug-{number}"}, {"name": "only draft"}
            for body in bodies if method in ("POST", "PUT", "PATCH") else bodies[:1]:
                answer = same(method, f"/v1/{path}", json=body, headers={"Idempotency-Key": "k", "If-Match": "*"})
                assert method in ("GET", "HEAD") or answer.status_code == 403


def test_another_post_is_not_even_read_so_a_damaged_one_is_404_too(app, post, statements, damage):
    visitor = with_key(app, "published-only")
    post(title="shy")
    visitor.get("/v1/posts/1")
    with statements() as collected:
        assert visitor.get("/v1/posts/1").status_code == 404
    assert [statement.split()[0] for statement in collected] == ["SELECT", "SELECT"]
    damage("post", "document", None)
    assert said(visitor.get("/v1/posts/1")) == said(visitor.get("/v1/posts/2"))
