"""Markdown over HTTP: sent as a body, and requested with Accept."""

import pytest

from blogapi.config import zone_named
from blogapi.markdown.files import render
from blogapi.markdown.http import NO_BREAK
from blogapi.posts import publication
from blogapi.storage.models import Post
from tests.api.fixtures import NEW_STATUS, NOW
from tests.cases import cases
from tests.conftest import message
from tests.service import add_key

FILE = b"""\
---
title: Hello world
status: published
date: 2020-01-02
tags: [python, Zwei W\xc3\xb6rter]
description: What it is about
image: https://example.com/a.png
id: "99"
created_at: 2019-01-01T00:00:00Z
---

# Hello

My first post.\r
"""
MADE = {
    "id": "1",
    "title": "Hello world",
    "status": "published",
    "slug": "hello-world",
    "content": "# Hello\n\nMy first post.\r\n",
    "excerpt": "What it is about",
    "tags": ["python", "Zwei Wörter"],
    "cover_image": "https://example.com/a.png",
    "published_at": "2020-01-02T00:00:00Z",
    "created_at": NOW,
    "updated_at": NOW,
}
ABSOLUTE = "must be an absolute http or https URL without white space"
CONTROL = "must not contain control characters, unpaired surrogates, U+FFFE or U+FFFF"
ONE_LINE = "must be one line without control characters, unpaired surrogates, U+FFFE or U+FFFF"
FUTURE = f"published_at: {publication.FUTURE}"


@pytest.fixture
def send(client):
    """Create a post from a Markdown file; return the response."""

    def send(data=FILE, content_type="text/markdown", **headers):
        return client.post("/v1/posts", data=data, content_type=content_type, headers=headers)

    return send


@pytest.fixture
def get(client):
    """Get post 1 with an Accept header; return the response."""

    def get(accept="text/markdown", path="/v1/posts/1", method="GET", **headers):
        return client.open(path, method=method, headers={"Accept": accept} | headers)

    return get


# Sending


def test_a_post_is_created_from_a_markdown_file_and_answered_as_json(client, send):
    answer = send()
    assert (answer.status_code, answer.json, answer.headers["Location"]) == (201, MADE, "/v1/posts/1")
    assert answer.headers["Content-Type"] == "application/json"
    assert client.get("/v1/posts").json == [MADE]


@cases(
    ("data", "wrong"),
    ("", "title: missing; content: must contain a visible character"),
    ("Words.", "title: missing"),
    ("---\ntitle: A\n---\n", "content: must contain a visible character"),
    ("---\ntitle: A\nstatus: later\n---\nB", f"{NEW_STATUS} (line 3)"),
    ("---\ntitle: A\ndate: 2099-01-01\nstatus: published\n---\nB", f"{FUTURE} (line 3)"),
    ("---\ntitle: A\ntags: [' \u200b']\n---\nB", "tags[0]: must contain a visible character (line 3)"),
    ("---\ntitle: A\ntags: ['a\u2028b']\n---\nB", f"tags[0]: {ONE_LINE} (line 3)"),
    ("---\ntitle: A\nimage: b.png\n---\nB", f"cover_image: {ABSOLUTE} (line 3)"),
    (
        "---\ntitle: A\nstatus: Publish\nimage: /a.png\n---\n\nB",
        f"{NEW_STATUS} (line 3); cover_image: {ABSOLUTE} (line 4)",
    ),
    ("---\nslug: taken\ntitle: A\n---\nB", "slug: already taken by another post (line 2)"),
    ("---\ntitle: &a A\n---\nB", "body: line 2: anchors and aliases (& and *) are not allowed"),
    ("# A\n\0", f"content: {CONTROL} (line 2)"),
    ("# A\n\nB\n\nC\nD\0", f"content: {CONTROL} (line 6)"),
    ("---\ntitle: A\n---\n\nB\nC\fD", f"content: {CONTROL} (line 6)"),
    ("---\ntitle: A\n---\nB\r\nC\r\nD\f", f"content: {CONTROL} (line 6)"),
)
def test_a_bad_file_is_refused_with_the_line_and_what_would_be_right(client, send, count, data, wrong):
    client.put("/v1/posts/by-slug/taken", json={"title": "A", "content": "B"})
    assert (message(send(data)), count(Post)) == (wrong, 1)


def test_put_accepts_a_file_and_a_second_put_changes_nothing(client):
    def put(data=FILE):
        return client.put("/v1/posts/by-slug/hello-world", data=data, content_type="text/markdown")

    first, second = put(), put()
    assert (first.status_code, first.json, second.status_code, second.data) == (201, MADE, 200, first.data)
    assert second.headers["ETag"] == first.headers["ETag"]
    replaced = MADE | {"title": "Hello", "content": "# Hello", "tags": []}
    assert put(b"# Hello").json == {name: replaced[name] for name in replaced.keys() - {"excerpt", "cover_image"}}
    assert message(put(b"---\nslug: other\n---\n# Hello")) == "slug: must match the path, or be left out (line 2)"


# Requesting


def test_a_post_can_be_read_as_a_markdown_file_but_errors_and_lists_are_always_json(send, get):
    assert (message(get(), 404), get(path="/v1/posts").json) == ("no such post", [])
    send()
    answer = get()
    assert answer.data == render(MADE)
    assert answer.headers["Content-Type"] == "text/markdown; charset=utf-8"
    assert answer.headers["Content-Disposition"] == 'inline; filename="hello-world.md"'
    assert answer.headers["Vary"] == "Accept"
    tag = get(accept="application/json").headers["ETag"].strip('"')
    assert answer.headers["ETag"] == f'"{tag}-md"'
    assert "X-RateLimit-Limit" in answer.headers


MARKDOWN_IS_PREFERRED = [
    *("text/markdown", "Text/Markdown", "text/markdown; charset=utf-8", "text/*", "text/html, text/markdown"),
    *("application/json;q=0.5, text/markdown", "application/json;q=0, text/markdown;q=0.1"),
    *("text/markdown;q=0.9, application/json;q=0.8, */*;q=0.1", "application/json;q=0.1, */*"),
    *("text/markdown, */*", "text/markdown, */*;q=0.5"),  # A named type takes precedence over a wildcard.
    *("text/*;q=0.5, application/json;q=0.4", "application/*, text/markdown"),
]
JSON_IS_PREFERRED = [
    *("text/markdown, application/json", "application/json", 'application/json; charset="UTF-8", text/markdown'),
    *("text/markdown; variant=GFM", "text/markdown;q=0.5, application/json", "text/markdown;q=0"),
    *(
        "text/markdown;q=0, text/*",
        "text/markdown;q=0.2, text/*, application/json;q=0.5",
        "*/*",
        "text/html, */*;q=0.8",
    ),
    *("text/html", "", "text/markdown;q=x", "text/", ",,;q"),
]


@cases("accept", MARKDOWN_IS_PREFERRED + JSON_IS_PREFERRED)
def test_markdown_is_sent_if_it_is_preferred_to_json(send, get, accept):
    send()
    answer, markdown = get(accept), accept in MARKDOWN_IS_PREFERRED
    assert answer.status_code == 200
    assert answer.mimetype == ("text/markdown" if markdown else "application/json")
    assert ("Content-Disposition" in answer.headers) == markdown
    assert answer.headers["Vary"] == "Accept"


def test_each_representation_has_its_own_etag_and_304(send, get):
    send()
    markdown, json = get().headers["ETag"], get("*/*").headers["ETag"]
    assert markdown != json
    for accept, mine, other in (("text/markdown", markdown, json), ("*/*", json, markdown)):
        for known in (mine, f"W/{mine}", f'"x", {mine}', "*", other, '"x"', ""):
            answer, is_known = get(accept, If_None_Match=known), mine in known or known == "*"
            assert (answer.status_code, answer.data == b"") == (304 if is_known else 200, is_known), known
            assert (answer.headers["ETag"], answer.headers["Vary"]) == (mine, "Accept")
            assert "X-RateLimit-Limit" in answer.headers
        assert get(accept, method="HEAD", If_None_Match=mine).status_code == 304


@pytest.mark.parametrize("method", ["PATCH", "PUT", "DELETE"])
@pytest.mark.parametrize("accept", ["text/markdown", "application/json"])
def test_if_match_accepts_the_etag_of_either(client, send, get, method, accept):
    send()
    tag = get(accept).headers["ETag"]
    path = "/v1/posts/by-slug/hello-world" if method == "PUT" else "/v1/posts/1"
    done, gone = (204, 404) if method == "DELETE" else (200, 412)
    for wanted, status in (('"x"', 412), (f"W/{tag}", 412), (f'"x", {tag}', done), (tag, gone)):
        answer = client.open(path, method=method, json={"title": "New", "content": "N"}, headers={"If-Match": wanted})
        assert answer.status_code == status


@cases(
    ("data", "agent", "is_refused"),
    ("---title: A---B", "curl/8.5.0", True),
    ("+++title = 'A'+++B", "other/1", True),
    ("# On the trainFog, all the way.", "curl/8.5.0", True),
    ("\ufeff # On the trainFog, all the way.", "curl/8.5.0", True),
    ("# On the trainFog, all the way.", None, True),
    ("# On the train\n", "curl/8.5.0", False),
    ("# On the train\r\n", "curl/8.5.0", False),
    ("# On the train", "other/1", False),
)
def test_a_file_whose_line_breaks_curl_has_removed_is_400(client, data, agent, is_refused):
    options = {"content_type": "text/markdown", "environ_overrides": {"HTTP_USER_AGENT": agent} if agent else {}}
    if not agent:
        client.environ_base.pop("HTTP_USER_AGENT", None)
    answer = client.post("/v1/posts", data=data.encode(), **options)
    assert (answer.status_code == 400) is is_refused, answer.text
    if is_refused:
        assert message(answer) == NO_BREAK


def test_times_in_front_matter_without_an_offset_are_in_the_zone_of_the_service(own_app):
    apps = {name: own_app(timezone=zone_named(name)) for name in ("Asia/Tokyo", "Europe/Berlin")}
    key = {"Authorization": f"Bearer {add_key(apps['Asia/Tokyo'].extensions['blogapi'].database, 'tests')}"}
    for number, (date, expected) in enumerate(
        [
            ("2020-01-02 08:00", {"Asia/Tokyo": "2020-01-01T23:00:00Z", "Europe/Berlin": "2020-01-02T07:00:00Z"}),
            ("2020-01-02", {"Asia/Tokyo": "2020-01-01T15:00:00Z", "Europe/Berlin": "2020-01-01T23:00:00Z"}),
            ("2020-01-02T08:00:00Z", dict.fromkeys(apps, "2020-01-02T08:00:00Z")),
        ]
    ):
        data = f"---\ndate: {date}\nstatus: published\n---\n# A"
        for name, app in apps.items():  # The cache contains the same file once for each zone.
            path = f"/v1/posts/by-slug/{name.partition('/')[2].lower()}-{number}"
            put = app.test_client().put(path, data=data, content_type="text/markdown", headers=key)
            assert (put.status_code, put.json["published_at"]) == (201, expected[name])


@pytest.mark.in_process
def test_the_example_of_a_file_can_be_sent_again_and_to_any_slug(client, stranger):
    paths = stranger.get("/openapi.json").json["paths"]
    for method, path in [("post", "/v1/posts")] * 2 + [("put", "/v1/posts/by-slug/a"), ("put", "/v1/posts/by-slug/b")]:
        template = path if method == "post" else "/v1/posts/by-slug/{post}"
        example = paths[template][method]["requestBody"]["content"]["text/markdown"]["example"]
        assert client.open(path, method=method, data=example, content_type="text/markdown").status_code == 201
