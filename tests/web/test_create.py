"""POST /posts: what a post may be, and what becomes of it."""

import json
import unicodedata

import pytest

from blogapi.post import SCHEDULING
from blogapi.storage.models import Post

THERE_ARE = "there are title, content, excerpt, slug, status, tags, published_at, cover_image, params"


def refused(client, count, fields):
    answer = client.post("/v1/posts", json={"title": "A title", "content": "Words."} | fields)
    assert (answer.status_code, count(Post)) == (400, 0)
    return answer.json


def test_the_least_there_must_be_makes_a_draft(client):
    answer = client.post("/v1/posts", json={"title": "  A title\n", "content": " Words.\n"})
    assert answer.status_code == 201
    assert answer.headers["Location"] == "/v1/posts/1"
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.json == {
        "id": "1",
        "title": "A title",
        "status": "draft",
        "slug": "a-title",
        "content": " Words.\n",
        "tags": [],
        "created_at": "2026-11-20T12:00:00Z",
        "updated_at": "2026-11-20T12:00:00Z",
    }


def test_every_field_is_kept(client):
    fields = {
        "title": "Käse & 東京",
        "content": "# Head\r\n\ttab  \n",
        "excerpt": "Short.",
        "slug": "kaese-1",
        "status": "published",
        "tags": ["Go", "東京"],
        "cover_image": "https://example.org/ä.png?x=1#y",
    }
    answer = client.post("/v1/posts", json=fields)
    times = dict.fromkeys(("created_at", "published_at", "updated_at"), "2026-11-20T12:00:00Z")
    assert answer.json == {"id": "1", **times, **fields}
    assert client.get("/v1/posts").json == [answer.json]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"title": 1}, "title: must be a string"),
        ({"title": None}, "title: must not be null"),
        ({"title": " \u200b\u2060 "}, "title: must contain a visible character"),
        ({"title": " "}, "title: must have 1 to 255 characters"),
        ({"title": "a\nb"}, "title: must be one line without control characters or unpaired surrogates"),
        ({"title": "a\u2028b"}, "title: must be one line without control characters or unpaired surrogates"),
        ({"title": "x" * 256}, "title: must have 1 to 255 characters"),
        ({"content": " \n\t"}, "content: must contain a visible character"),
        ({"content": "x" * 1_000_001}, "content: must have at most 1,000,000 characters"),
        ({"content": "\u200b" * 1_000}, "content: must contain a visible character"),
        ({"content": "a\0"}, "content: must not contain control characters or unpaired surrogates"),
        ({"content": "a\x85"}, "content: must not contain control characters or unpaired surrogates"),
        ({"content": "\ud800"}, "content: must not contain control characters or unpaired surrogates"),
        ({"excerpt": "x" * 1_001}, "excerpt: must have at most 1,000 characters"),
        ({"excerpt": None}, "excerpt: must not be null"),
        ({"slug": "a" * 101}, "slug: must have at most 100 characters"),
        ({"slug": "a\n"}, "slug: must be lower-case letters a-z, digits and single hyphens between them"),
        ({"slug": "-a"}, "slug: must be lower-case letters a-z, digits and single hyphens between them"),
        ({"slug": "a--b"}, "slug: must be lower-case letters a-z, digits and single hyphens between them"),
        ({"slug": "Ä"}, "slug: must be lower-case letters a-z, digits and single hyphens between them"),
        ({"status": "scheduled"}, f"status: must be one of published, draft; {SCHEDULING}"),
        ({"status": ""}, f"status: must be one of published, draft; {SCHEDULING}"),
        ({"status": ["draft"]}, "status: must be a string"),
        ({"tags": "a"}, "tags: must be an array of strings"),
        ({"tags": None}, "tags: must not be null"),
        ({"tags": ["a"] * 51}, "tags: must have at most 50 tags"),
        ({"tags": ["a", 1]}, "tags[1]: must be a string"),
        ({"tags": [" "]}, "tags[0]: must have 1 to 64 characters"),
        ({"tags": ["x" * 65]}, "tags[0]: must have 1 to 64 characters"),
        ({"cover_image": "ftp://a/b"}, "cover_image: must be an absolute http or https URL without white space"),
        ({"cover_image": "http:///b"}, "cover_image: must be an absolute http or https URL without white space"),
        ({"cover_image": "http://a b"}, "cover_image: must be an absolute http or https URL without white space"),
        ({"cover_image": "http://[::1"}, "cover_image: must be an absolute http or https URL without white space"),
        ({"cover_image": "//a/b"}, "cover_image: must be an absolute http or https URL without white space"),
        ({"cover_image": "http://a/" + "x" * 2048}, "cover_image: must have at most 2,048 characters"),
        ({"title": "\x1fA"}, "title: must be one line without control characters or unpaired surrogates"),
        ({"titel": "x"}, f'"titel": unknown field; {THERE_ARE}'),
        ({"": "x"}, f'"": unknown field; {THERE_ARE}'),
        ({"_schema": "x"}, f'"_schema": unknown field; {THERE_ARE}'),
        ({"\ud800": "x"}, f'"\N{REPLACEMENT CHARACTER}": unknown field; {THERE_ARE}'),
        ({"title": 1, "tags": [1]}, "title: must be a string; tags[0]: must be a string"),
    ],
)
def test_a_bad_field_is_named_with_what_would_be_right(client, count, fields, message):
    assert refused(client, count, fields) == {"error": 400, "message": message}


def test_required_fields_are_named(client):
    answer = client.post("/v1/posts", json={})
    assert answer.json == {"error": 400, "message": "title: missing; content: missing"}


def test_a_message_never_grows_with_the_request(client, count):
    message = refused(client, count, {f"field{n}\n{'x' * 99}": 1 for n in range(90)})["message"]
    assert len(message) == 500
    assert message.isprintable()


def test_the_longest_of_everything_is_accepted(post):
    longest = {
        "title": "\U0001f600" * 255,
        "content": "x" * 1_000_000,
        "excerpt": "x" * 1_000,
        "slug": "a" * 100,
        "tags": [f"{n:064}" for n in range(50)],
        "cover_image": "http://a/" + "x" * 2039,
    }
    assert post(**longest).items() > longest.items()


@pytest.mark.parametrize("field", ["excerpt", "slug", "cover_image"])
def test_an_empty_optional_field_counts_as_left_out(post, field):
    assert post(**{field: ""}) == post(slug="a-title-2") | {"id": "1", "slug": "a-title"}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ([" Go ", "go", "GO"], ["Go"]),
        (["straße", "STRASSE"], ["straße"]),
        (["e\u0301", "\u00e9"], ["e\u0301"]),
        (["b", "a"], ["b", "a"]),
    ],
)
def test_a_repeated_tag_is_dropped_and_the_spelling_given_is_kept(post, given, kept):
    assert post(tags=given)["tags"] == kept


@pytest.mark.parametrize("character", ["\U0001f9d1\u200d\U0001f4bb", "\U000e1000", "\u0378", "ﷺ"])
def test_emoji_and_unknown_characters_are_text(post, character):
    assert post(title=character, content=character)["title"] == character
    assert unicodedata.category("\u0378") == "Cn"


# The slug


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("Hello, World!", "hello-world"),
        ("It's what’s new", "its-whats-new"),
        ("Ünïcödé straße", "unicode-strasse"),
        ("Привет, мир", "privet-mir"),
        ("你好", "ni-hao"),
        ("😀", "untitled"),
        ("!?", "untitled"),
        ("word " * 40, "-".join(["word"] * 16)),
        ("x" * 200, "x" * 80),
        ("a &amp; b", "a-amp-b"),
    ],
)
def test_a_slug_is_created_from_the_title(post, title, slug):
    assert post(title=title)["slug"] == slug


def test_a_taken_slug_gets_a_number(post):
    assert [post()["slug"] for _ in range(5)] == ["a-title", "a-title-2", "a-title-3", "a-title-4", "a-title-5"]


def test_a_slug_given_and_taken_is_refused(client, post):
    post(slug="mine")
    answer = client.post("/v1/posts", json={"title": "A", "content": "B", "slug": "mine"})
    assert answer.status_code == 400
    assert answer.json == {"error": 400, "message": "slug: already taken by another post"}
    assert len(client.get("/v1/posts").json) == 1


def test_numbers_that_are_taken_elsewhere_are_left_alone(post):
    post(slug="a-title")
    post(slug="a-title-3")
    assert [post()["slug"] for _ in range(3)] == ["a-title-2", "a-title-4", "a-title-5"]


def test_the_look_ups_for_a_slug_grow_with_the_logarithm(post, database, statements):
    slugs = ["a-title", *(f"a-title-{number}" for number in range(2, 1001))]
    rows = [{"slug": slug, "status": "draft", "document": "{}"} for slug in slugs]
    database.write(lambda tx: tx.execute(Post.insert_many(rows)))
    with statements() as collected:
        assert post()["slug"] == "a-title-1001"
    assert 2 < sum('"slug" =' in statement for statement in collected) <= 2 * 10 + 2


# The body


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "body: must be JSON: Expecting value at line 1 column 1"),
        (b"[]", "body: must be a JSON object"),
        (b'"title"', "body: must be a JSON object"),
        (b"null", "body: must be a JSON object"),
        (b"{", "body: must be JSON: Expecting property name enclosed in double quotes at line 1 column 2"),
        (b'{"title": NaN}', "body: must be JSON, which does not allow NaN"),
        (b'{"title": -Infinity}', "body: must be JSON, which does not allow -Infinity"),
        (b'{"title": "a", "title": "b"}', 'body: must not have "title" twice in an object'),
        (b'{"tags": [{"a": 1, "a": 2}]}', 'body: must not have "a" twice in an object'),
        (b"[" * 9_000, "body: must not be nested so deeply"),
        (b'{"a":' * 4_000, "body: must not be nested so deeply"),
        (b"[" * 30_000, "body: must have at most 10,000 values"),
        (b'{"tags": [' + b"[]," * 10_000 + b'""]}', "body: must have at most 10,000 values"),
        (b'{"a": "x", ' + b"1," * 10_000, "body: must have at most 10,000 values"),
        (b'"a,' * 30_000, "body: must have at most 10,000 values"),
        (b"9" * 5_000, "body: must have numbers of at most 4,300 digits"),
        ("{}".encode("utf-16"), "body: must be UTF-8"),
        (b'{"title": "\xff"}', "body: must be UTF-8"),
        (b"\xef\xbb\xbf{}", "body: must not begin with a byte order mark"),
        (json.dumps({f"field{n}": n for n in range(101)}).encode(), "body: must have at most 100 fields"),
    ],
)
def test_json_is_strict(client, body, message):
    answer = client.post("/v1/posts", data=body, content_type="application/json")
    assert answer.status_code == 400
    assert answer.json == {"error": 400, "message": message}


@pytest.mark.parametrize("content", ["[{," * 20_000, '"' * 20_000, '\\",[' * 9_000])
def test_what_looks_like_many_values_is_one_text(post, content):
    assert post(content=content)["content"] == content


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "application/json"}, 201),
        ({"Content-Type": "Application/JSON; charset=UTF-8"}, 201),
        ({"Content-Type": 'application/json;charset="utf-8"'}, 201),
        ({"Content-Type": "application/json; charset=utf8", "Content-Encoding": "identity"}, 201),
        ({"Content-Type": "application/json; charset=latin-1"}, 415),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({}, 415),
        ({"Content-Type": "application/json", "Content-Encoding": "gzip"}, 415),
    ],
)
def test_only_json_is_taken(client, headers, status):
    body = json.dumps({"title": "A", "content": "B"})
    answer = client.post("/v1/posts", data=body, headers=headers)
    assert answer.status_code == status
    if status == 415:
        header = (
            "Content-Encoding: must be left out"
            if len(headers) == 2
            else "Content-Type: must be application/json or text/markdown, "
            f"and is {headers.get('Content-Type', 'missing')}; curl sends JSON with --json"
        )
        assert answer.json == {"error": 415, "message": header}


@pytest.mark.in_process
def test_a_body_of_4_mib_is_read_and_one_byte_more_is_413(client):
    body = json.dumps({"title": "A", "content": "B"})
    assert client.post("/v1/posts", data=body.ljust(4 * 2**20), content_type="application/json").status_code == 201
    answer = client.post("/v1/posts", data=body.ljust(4 * 2**20 + 1), content_type="application/json")
    assert answer.status_code == 413
    assert answer.json == {"error": 413, "message": "body: must be at most 4,194,304 bytes"}
