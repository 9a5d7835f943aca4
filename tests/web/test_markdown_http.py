"""Markdown over HTTP: sent as a body, and asked for by Accept."""

import re

import pytest
from xxhash import xxh3_128_hexdigest

from blogapi.files.markdown import render
from blogapi.post import SCHEDULING
from blogapi.storage.models import Post
from tests.conftest import message

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
NOW = "2026-11-20T12:00:00Z"
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
ONLY = "Content-Type: must be application/json or text/markdown, and is {}; curl sends JSON with --json"


@pytest.fixture
def send(client):
    """Create a post from a Markdown file; return the answer."""

    def send(data=FILE, content_type="text/markdown", **headers):
        return client.post("/v1/posts", data=data, content_type=content_type, headers=headers)

    return send


@pytest.fixture
def get(client):
    """Get post 1 with an Accept; return the answer."""

    def get(accept="text/markdown", path="/v1/posts/1", method="GET", **headers):
        return client.open(path, method=method, headers={"Accept": accept} | headers)

    return get


# Sent


def test_a_post_is_created_from_a_markdown_file_and_answered_as_json(client, send):
    answer = send()
    assert (answer.status_code, answer.json, answer.headers["Location"]) == (201, MADE, "/v1/posts/1")
    assert answer.headers["Content-Type"] == "application/json"
    assert client.get("/v1/posts").json == [MADE]


@pytest.mark.parametrize(
    "content_type", ["text/markdown; charset=utf-8", "Text/Markdown;charset=UTF-8", 'text/markdown; charset="utf8"']
)
def test_a_charset_of_utf_8_is_fine(send, content_type):
    assert send(content_type=content_type).status_code == 201


@pytest.mark.parametrize(
    ("content_type", "encoding", "wrong"),
    [
        ("text/markdown; charset=latin-1", "", ONLY.format("text/markdown; charset=latin-1")),
        ("text/plain", "", ONLY.format("text/plain")),
        ("text/x-markdown", "", ONLY.format("text/x-markdown")),
        (None, "", ONLY.format("missing")),
        ("text/markdown", "gzip", "Content-Encoding: must be left out"),
    ],
)
def test_another_type_is_415_saying_which_header_to_send(send, count, content_type, encoding, wrong):
    assert message(send(content_type=content_type, Content_Encoding=encoding), 415) == wrong
    assert count(Post) == 0


def test_a_patch_is_json(client, send):
    send()
    answer = client.patch("/v1/posts/1", data=FILE, content_type="text/markdown")
    assert message(answer, 415).startswith(
        "Content-Type: must be application/json or application/merge-patch+json, and"
    )


def test_a_byte_order_mark_is_dropped(send):
    assert send(b"\xef\xbb\xbf" + FILE).json == MADE
    assert send(b"\xef\xbb\xbf# Title\n").json["content"] == "# Title\n"


@pytest.mark.parametrize(
    ("data", "wrong"),
    [
        (b"", "title: missing; content: must contain a visible character"),
        (b"Words.", "title: missing"),
        (b"---\ntitle: A\n---\n", "content: must contain a visible character"),
        (b"---\ntitle: A\n", "body: line 1: the front matter never ends: a line --- is missing after it"),
        (b"---\ntitle: A\nstatus: scheduled\n---\nB", f"status: must be one of published, draft; {SCHEDULING}"),
        (b"---\ntitle: A\nstatus: draft\npublished: true\n---\nB", "body: line 4: `published` and `status` say diff"),
        (b"---\ntitle: A\nlayout: post\n---\nB", "body: line 3: `layout` is unknown: put it into `params`, or add"),
        (
            b"---\ntitle: A\nupdated_at: 2020-01-01\n---\nB",
            "body: line 3: `updated_at` is unknown: put it into `params`,",
        ),
        (b"---\ntitle: A\ndate: soon\n---\nB", "body: line 3: `date` must be a date such as 2026-11-20, or a time"),
        (b"---\ntitle: A\ntags: [' \xe2\x80\x8b']\n---\nB", "tags[0]: must contain a visible character"),
        (b"---\ntitle: A\nimage: b.png\n---\nB", "cover_image: must be an absolute http or https URL without white"),
        (b"---\ntitle: &a A\n---\nB", "body: line 2: anchors and aliases (& and *) are not allowed"),
        (b"# A\n\xff", "body: line 2: must be UTF-8"),
        (b"# A\n\0", "content: must not contain control characters or unpaired surrogates"),
    ],
)
def test_a_bad_file_is_refused_saying_what_would_be_right(send, count, data, wrong):
    said = message(send(data))
    assert (said[: len(wrong)], count(Post)) == (wrong, 0)


def test_the_title_is_that_of_the_heading(send):
    assert send(b"\n# A *title* #\n\nWords.").json["title"] == "A *title*"


@pytest.mark.in_process
def test_a_file_of_more_than_4_mib_is_413(send):
    assert message(send(b"# A\n".ljust(4 * 2**20 + 1)), 413) == "body: must be at most 4,194,304 bytes"


def test_an_idempotency_key_holds_for_a_file(client, send):
    answers = [send(Idempotency_Key="k") for _ in range(2)]
    assert [answer.json for answer in answers] == [MADE, MADE]
    assert message(send(b"# Other", Idempotency_Key="k")).startswith("Idempotency-Key: was used for another body")
    assert client.get("/v1/posts").json == [MADE]


def test_put_takes_a_file_and_a_second_time_changes_nothing(client):
    def put(data=FILE):
        return client.put("/v1/posts/by-slug/hello-world", data=data, content_type="text/markdown")

    first, second = put(), put()
    assert (first.status_code, first.json, second.status_code, second.data) == (201, MADE, 200, first.data)
    assert second.headers["ETag"] == first.headers["ETag"]
    assert put(b"# Hello").json == {
        **{name: MADE[name] for name in MADE if name not in ("excerpt", "cover_image")},
        "title": "Hello",
        "content": "# Hello",
        "tags": [],
    }
    wrong = "slug: must match the path, or be left out (line 2)"
    assert message(put(b"---\nslug: other\n---\n# Hello")) == wrong


def test_put_schedules_by_a_file(client):
    data = b"---\ntitle: A\nstatus: scheduled\ndate: 2030-01-01\n---\nB"
    answer = client.put("/v1/posts/by-slug/a", data=data, content_type="text/markdown")
    assert (answer.json["status"], answer.json["published_at"]) == ("scheduled", "2030-01-01T00:00:00Z")


# Asked for


def test_a_post_is_given_as_a_markdown_file(send, get):
    send()
    answer = get()
    assert answer.data == render(MADE)
    assert answer.headers["Content-Type"] == "text/markdown; charset=utf-8"
    assert answer.headers["Content-Disposition"] == 'inline; filename="hello-world.md"'
    assert answer.headers["Vary"] == "Accept"
    assert answer.headers["ETag"] == f'"{xxh3_128_hexdigest(answer.data)}"'
    assert "X-RateLimit-Limit" in answer.headers


def test_it_is_given_by_its_slug_and_to_head_as_well(send, get):
    send()
    assert get(path="/v1/posts/by-slug/hello-world").data == get().data
    head = get(method="HEAD")
    names = ("Content-Type", "Content-Length", "Content-Disposition", "Vary", "ETag")
    assert {name: head.headers[name] for name in names} == {name: get().headers[name] for name in names}
    assert head.data == b""


@pytest.mark.parametrize(
    ("accept", "markdown"),
    [
        ("text/markdown", True),
        ("Text/Markdown", True),
        ("text/markdown; charset=utf-8", True),
        ("text/*", True),
        ("text/html, text/markdown", True),
        ("application/json;q=0.5, text/markdown", True),
        ("application/json;q=0, text/markdown;q=0.1", True),
        ("text/markdown;q=0.9, application/json;q=0.8, */*;q=0.1", True),
        ("application/json;q=0.1, */*", True),
        ("text/markdown, */*", True),  # what is named goes before what is not
        ("text/markdown, */*;q=0.5", True),
        ("text/*;q=0.5, application/json;q=0.4", True),
        ("text/markdown, application/json", False),
        ("application/json", False),
        ("application/*, text/markdown", True),
        ('application/json; charset="UTF-8", text/markdown', False),
        ("text/markdown; variant=GFM", False),
        ("text/markdown;q=0.5, application/json", False),
        ("text/markdown;q=0", False),
        ("text/markdown;q=0, text/*", False),
        ("text/markdown;q=0.2, text/*, application/json;q=0.5", False),
        ("*/*", False),
        ("text/html, */*;q=0.8", False),
        ("text/html", False),
        ("", False),
        ("text/markdown;q=x", False),
        ("text/", False),
        (",,;q", False),
    ],
)
def test_markdown_is_sent_if_it_is_preferred_to_json(send, get, accept, markdown):
    send()
    answer = get(accept)
    assert answer.status_code == 200
    assert answer.mimetype == ("text/markdown" if markdown else "application/json")
    assert ("Content-Disposition" in answer.headers) == markdown
    assert answer.headers["Vary"] == "Accept"


def test_each_representation_has_an_etag_of_its_own_and_304_for_it(send, get):
    send()
    markdown, json = get().headers["ETag"], get("*/*").headers["ETag"]
    assert markdown != json
    for accept, mine, other in (("text/markdown", markdown, json), ("*/*", json, markdown)):
        answer = get(accept, If_None_Match=mine)
        assert (answer.status_code, answer.data, answer.headers["ETag"]) == (304, b"", mine)
        assert answer.headers["Vary"] == "Accept"
        assert get(accept, If_None_Match=f"W/{mine}").status_code == 304
        assert get(accept, method="HEAD", If_None_Match=mine).status_code == 304
        assert get(accept, If_None_Match=other).status_code == 200


@pytest.mark.parametrize("path", ["1", "by-slug/hello-world"])
@pytest.mark.parametrize("method", ["PATCH", "PUT", "DELETE"])
@pytest.mark.parametrize("accept", ["text/markdown", "application/json"])
def test_if_match_holds_with_the_etag_of_either(client, send, get, method, accept, path):
    send()
    tag = get(accept).headers["ETag"]
    path = "/v1/posts/by-slug/hello-world" if method == "PUT" else f"/v1/posts/{path}"
    body = {"title": "New", "content": "N"} if method != "DELETE" else None
    for wanted, status in (
        ('"x"', 412),
        (f"W/{tag}", 412),
        (f'"x", {tag}', 204 if method == "DELETE" else 200),
        (tag, 404 if method == "DELETE" else 412),
    ):
        assert client.open(path, method=method, json=body, headers={"If-Match": wanted}).status_code == status


def test_errors_and_lists_are_always_json(client, get):
    assert message(get(), 404) == "no such post"
    assert get(path="/v1/posts").json == []


def test_the_file_that_was_got_is_taken_back(client, send, get):
    tag = send().headers["ETag"]
    answer = client.put("/v1/posts/by-slug/hello-world", data=get().data, content_type="text/markdown")
    assert (answer.status_code, answer.headers["ETag"]) == (200, tag)
    again = client.post("/v1/posts", data=get().data.replace(b"slug: hello-world\n", b""), content_type="text/markdown")
    assert again.json == MADE | {"id": "2", "slug": "hello-world-2"}


def test_a_wrong_value_is_named_with_its_line(client):
    text = b"---\ntitle: A\nstatus: Publish\nimage: /a.png\n---\n\nB"
    answer = client.post("/v1/posts", data=text, content_type="text/markdown")
    assert message(answer) == (
        f"status: must be one of published, draft; {SCHEDULING} (line 3); "
        "cover_image: must be an absolute http or https URL without white space (line 4)"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("title: A\ntags: ['a\u2028b']", "tags\\[0\\]: must be one line .* \\(line 3\\)"),
        ("slug: taken\ntitle: A", "slug: already taken by another post \\(line 2\\)"),
        ("title: A\nstatus: published\ndate: 2099-01-01", "published_at: must not be in the future.* \\(line 4\\)"),
    ],
)
def test_every_error_in_a_field_is_named_with_its_line(client, text, expected):
    client.post("/v1/posts", json={"title": "A", "content": "B", "slug": "taken"})
    answer = client.post("/v1/posts", data=f"---\n{text}\n---\n\nB", content_type="text/markdown")
    assert re.fullmatch(expected, message(answer))


def test_a_control_character_in_the_content_is_named_with_its_line(client):
    for text in ("---\ntitle: A\n---\n\nB\nC\fD", "---\ntitle: A\n---\nB\r\nC\r\nD\f", "# A\n\nB\n\nC\nD\0"):
        answer = client.post("/v1/posts", data=text, content_type="text/markdown")
        assert message(answer) == "content: must not contain control characters or unpaired surrogates (line 6)"
