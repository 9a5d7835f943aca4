"""Rules for every request: keys, the rate limit, the order of the checks, and the Error body."""

import hashlib
import logging
import re

import pytest

from blogapi.storage import keys
from blogapi.storage.models import DOCUMENT, ApiKey, Post
from tests.cases import cases
from tests.conftest import NOON, message, without_id
from tests.service import add_key

MISSING_KEY = "Authorization: missing; must be 'Bearer' and an API key"
OTHER_SCHEME = "Authorization: the scheme must be Bearer, followed by an API key"
EMPTY_KEY = "Authorization: the API key is empty; is the shell variable that holds it set?"
UNKNOWN_KEY = (
    "Authorization: the API key is unknown or revoked; `blogapi keys list` shows keys, "
    "and `keys regenerate NAME` replaces one"
)
TORN_KEY = "Authorization: the API key is unknown: a complete key is blog_ followed by 43 characters, without quotes"


def quota(answer):
    return [int(answer.headers[f"X-RateLimit-{name}"]) for name in ("Limit", "Remaining", "Reset")]


# Keys


@cases("method", ["GET", "HEAD", "POST", "DELETE", "PUT", "PATCH", "OPTIONS", "TRACE", "FOO"])
@cases("path", ["/v1/posts", "/v1/posts/1", "/v1", "/v1/", "/v1/nothing", "//v1/posts", "/V1/posts", "/x"])
@pytest.mark.in_process
def test_without_a_key_everything_is_401(stranger, method, path):
    answer = stranger.open(path, method=method)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert quota(answer) == [1_000_000, 1_000_000, NOON + 60]
    if method != "HEAD":
        assert answer.json == {"error": 401, "message": MISSING_KEY}


def test_every_route_needs_a_key_except_the_public_ones(app, stranger):
    routes = app.url_map.bind("localhost")
    public = set()
    for rule in app.url_map.iter_rules():
        path = re.sub("<[^>]+>", "1", rule.rule.replace("<image:image_id>", "0" * 32))
        for method in rule.methods:
            assert routes.match(path, method, return_rule=True)[0] == rule
            with stranger.open(path, method=method) as answer:
                if answer.status_code != (403 if rule.rule.startswith("/settings") else 401):
                    public.add(rule.rule)
    settings = {"/settings/open", "/settings/shared", *(f"/settings/owner.{kind}" for kind in ("css", "js", "svg"))}
    settings |= {f"/settings/{script}.js" for script in ("write", "editor", "form", "images", "tools")}
    others = {"/", "/openapi.json", "/xmlrpc.php", "/healthz", "/readyz", "/images/<path:name>"}
    others.add("/micropub")  # without a query
    docs = {
        "/docs",
        *(f"/docs/{name}" for name in ("", "docs.css", "docs.js", "swagger-ui.css", "swagger-ui-bundle.js")),
    }
    assert public == others | docs | settings


@pytest.mark.both_engines
@cases(
    ("header", "expected"),
    ("", MISSING_KEY),
    *((header, EMPTY_KEY) for header in ("Bearer", "Bearer ")),
    *((header, OTHER_SCHEME) for header in ("Basic {key}", "{key}")),
    *((f"Bearer {torn}", TORN_KEY) for torn in ("{key}x", '"{key}"', "ü" + "a" * 43)),
    ("Bearer {key},Bearer {key}", "Authorization: must contain one API key, and be sent once"),
    *((f"Bearer {key}", UNKNOWN_KEY) for key in ("{lower}", "blog_" + "a" * 43)),
)
def test_a_missing_malformed_or_unknown_key_is_401(stranger, key, header, expected):
    answer = stranger.get("/v1/posts", headers={"Authorization": header.format(key=key, lower=key.lower())})
    assert (answer.status_code, answer.json) == (401, {"error": 401, "message": expected})


@cases("header", ["Bearer {}", "bearer {}", "BEARER   {}"])
def test_the_scheme_is_case_insensitive(stranger, key, header):
    assert stranger.get("/v1/posts", headers={"Authorization": header.format(key)}).status_code == 200


def test_the_database_holds_the_digest_and_not_the_key(config, database, client, key):
    row = database.row(ApiKey.select(ApiKey.digest, ApiKey.last_four))
    assert row == (hashlib.sha256(key.encode()).digest(), key[-4:])
    database.close()
    for path in config.database.parent.iterdir():
        assert key[5:-4].encode() not in path.read_bytes()


def test_the_day_of_the_last_use_is_written_once_a_day(client, clock, database, statements):
    used = ApiKey.select(ApiKey.last_used_on)
    with statements() as collected:
        for _ in range(3):
            client.get("/v1/posts")
    assert sum(statement.startswith("UPDATE") for statement in collected) == 1
    assert database.row(used) == ("2026-11-20",)
    clock.now += 86_400
    client.get("/v1/posts")
    assert database.row(used) == ("2026-11-21",)


# The rate limit


@pytest.fixture
def limited(own_app):
    """Send a request with a key under a limit of 3."""
    app = own_app(rate_limit=3)

    def send(key, path="/v1/posts", method="GET"):
        return app.test_client().open(path, method=method, headers={"Authorization": f"Bearer {key}"})

    send.database = app.extensions["blogapi"].database
    return send


@pytest.mark.sqlite  # PostgreSQL counts by its own clock.
def test_requests_over_the_limit_are_429_until_the_next_window(limited, clock):
    key = add_key(limited.database, "a")
    clock.now = NOON + 20.7
    assert [quota(limited(key)) for _ in range(3)] == [[3, left, NOON + 60] for left in (2, 1, 0)]
    answer = limited(key)
    assert message(answer, 429) == "rate limit exceeded: 3 requests a minute; try again in 40 s"
    assert answer.headers["Retry-After"] == "40"
    assert quota(answer) == [3, 0, NOON + 60]
    clock.now = NOON + 59.999
    assert limited(key).headers["Retry-After"] == "1"
    clock.now = NOON + 60
    assert quota(limited(key)) == [3, 2, NOON + 120]


@pytest.mark.both_engines
def test_failed_requests_count_and_none_is_executed_over_the_limit(limited):
    key = add_key(limited.database, "a")
    answers = [limited(key, "/nothing"), limited(key, "/v1/posts", "PUT"), limited(key, "/v1/posts?x=1")]
    assert [(answer.status_code, quota(answer)[1]) for answer in answers] == [(404, 2), (405, 1), (400, 0)]
    for path, method in (("/v1/posts", "GET"), ("/v1/posts/1", "DELETE"), ("/nothing", "GET")):
        answer = limited(key, path, method)
        assert (answer.status_code, quota(answer)[1]) == (429, 0)
    answer = limited(add_key(limited.database, "b", "read-only"), "/v1/webhooks")
    assert (answer.status_code, quota(answer)[1]) == (403, 2)


@pytest.mark.both_engines
def test_each_key_has_its_own_count_and_a_regenerated_key_keeps_it(limited):
    one, other = (add_key(limited.database, name) for name in ("one", "other"))
    assert quota(limited(one))[1] == 2
    assert quota(limited("blog_" + "x" * 43))[1] == 3
    assert quota(limited(other))[1] == 2
    limited.database.write(keys.regenerate, "one", new := keys.new_key())
    assert quota(limited(new))[1] == 1


# Caches and shells


@cases("path", ["/v1/posts", "/v1/posts/1", "/v1/tags", "/v1/webhooks", "/v1/posts/2", "/v1/nothing"])
def test_an_answer_under_v1_is_private_and_ends_with_a_newline(client, post, path):
    post()
    answer, head = client.get(path), client.head(path)
    assert answer.headers["Cache-Control"] == head.headers["Cache-Control"] == "private, no-cache"
    assert (head.status_code, head.data) == (answer.status_code, b"")
    assert answer.data.endswith((b"}\n", b"]\n"))
    assert int(answer.headers["Content-Length"]) == int(head.headers["Content-Length"]) == len(answer.data)


@pytest.mark.both_engines
def test_the_entity_tag_of_a_post_is_that_of_its_stored_document(client, database):
    for method, path, body in (
        ("POST", "/v1/posts", {"title": "Käse", "content": "b"}),
        ("PATCH", "/v1/posts/1", {"title": "C"}),
    ):
        answer = client.open(path, method=method, json=body)
        (document,) = database.row(Post.select(DOCUMENT))
        read = client.get("/v1/posts/1")
        assert read.data == answer.data == document + b"\n"
        assert client.get("/v1/posts").data == b"[%b]\n" % document
        tag = f'"{hashlib.blake2b(document, digest_size=32).hexdigest()}"'
        assert tag == read.headers["ETag"] == answer.headers["ETag"] == client.head("/v1/posts/1").headers["ETag"]


def test_requesting_the_description_again_gives_304(stranger):
    answer = stranger.get("/openapi.json")
    assert answer.headers["Cache-Control"] == "no-cache"
    assert answer.data.endswith(b"}\n")
    again = stranger.get("/openapi.json", headers={"If-None-Match": answer.headers["ETag"]})
    assert (again.status_code, again.data, again.headers["ETag"]) == (304, b"", answer.headers["ETag"])


@cases("wanted", ["bytes=0-1", "bytes=0-1,3-4", "bytes=9999999-", "x"])
def test_a_range_is_ignored(stranger, client, post, wanted):
    post()
    for sender, path in ((stranger, "/docs"), (client, "/v1/posts/1")):
        answer = sender.get(path, headers={"Range": wanted})
        assert answer.status_code == 200
        assert len(answer.data) == int(answer.headers["Content-Length"]) > 100


# Errors


@cases(
    ("path", "meant"),
    ("/posts", "/v1/posts"),
    ("/v1/post", "/v1/posts"),
    ("/v1/posts/", "/v1/posts"),
    ("/v1/Tag/a/b", "/v1/tags/a/b"),
    ("/post/7", "/v1/posts/7"),
    ("/v1/posts/7/", "/v1/posts/7"),
    ("/v1/image", "/v1/images"),
    ("/api/v1/posts", "/v1/posts"),
    ("/v2/posts", "/v1/posts"),
    ("/API/v1/tag/a", "/v1/tags/a"),
    ("/v1/keys", "/v1/key"),
    *((path, None) for path in ("/v1/nothing", "/v1/hello", "/v1/pots/x/y", "/v1", "/v1/", "/v1/web", "/v1/trash/a/b")),
    ("/" + "posts" * 1000, None),
)
def test_an_unknown_path_is_404_and_an_almost_right_one_suggests_the_right_one(client, path, meant):
    assert message(client.get(path), 404) == (f"no such path; did you mean {meant}?" if meant else "no such path")


@cases("method", ["PUT", "PATCH", "OPTIONS", "TRACE", "FOO", "DELETE"])
@pytest.mark.in_process
def test_a_wrong_method_is_405_with_allow(client, method):
    answer = client.open("/v1/posts", method=method)
    assert message(answer, 405) == "this path allows GET, HEAD, POST"
    assert set(answer.headers["Allow"].split(", ")) == {"GET", "HEAD", "POST"}


@cases("method", ["GET", "PUT", "PATCH", "DELETE"])
@cases(
    ("post", "told"),
    ("hello-you", "a post is at /v1/posts/by-slug/hello-you"),
    ("Hello", "a post is at /v1/posts/by-slug/hello"),
    *((post, "no such path") for post in ("Héllo", "007", "a/b")),
    ("hello-you.md", "a post is at /v1/posts/by-slug/hello-you"),
)
def test_a_slug_or_a_file_name_in_place_of_an_id_is_404_and_points_to_the_post(client, method, post, told):
    assert message(client.open(f"/v1/posts/{post}", method=method), 404).endswith(told)


def test_the_key_comes_first_then_the_path_then_the_body(client, stranger):
    assert stranger.post("/v1/posts", data=b"{").status_code == 401
    assert client.post("/v1/nothing?x=1", data=b"{").status_code == 404
    for path in ("/v1/posts/1", "/v1/tags/a"):
        assert client.patch(path, data=b"{").status_code == 404
    assert client.put("/v1/posts?x=1", data=b"{").status_code == 405
    assert client.post("/v1/posts?x=1", data=b"{").json["message"] == '"x": unknown parameter; known: unknown'


def test_a_crash_is_500_and_reveals_nothing(app, client, caplog, monkeypatch):
    monkeypatch.setitem(app.view_functions, "api.posts.list_posts", lambda: 1 / 0)
    with caplog.at_level(logging.ERROR):
        answer = client.get("/v1/posts")
    assert without_id(message(answer, 500)) == "internal error; see the log for details"
    assert "ZeroDivisionError" in caplog.text
    assert answer.json["message"] in caplog.text
    assert quota(answer)[0] == 1_000_000


def test_healthz_needs_no_key_and_is_not_counted(stranger):
    answer = stranger.get("/healthz")
    assert (answer.status_code, answer.data) == (200, b'{"status":"ok"}\n')
    assert answer.headers["Cache-Control"] == "no-store"
    assert stranger.get("/healthz?probe=1").status_code == 200
    assert set(stranger.post("/healthz").headers["Allow"].split(", ")) == {"GET", "HEAD"}
