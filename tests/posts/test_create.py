"""POST /v1/posts: what a body and a post may contain, and how the post is stored."""

import json

import pytest

from blogapi.posts.schemas import PostInputSchema
from blogapi.storage.models import Post
from tests.api.fixtures import FIELDS_ARE, NEW_STATUS, NOW
from tests.cases import cases
from tests.conftest import message, without_id

TITLE = "title: must be one line without control characters, unpaired surrogates, U+FFFE or U+FFFF"
CONTENT = "content: must not contain control characters, unpaired surrogates, U+FFFE or U+FFFF"
SLUG = "slug: must be lower-case letters a-z, digits and single hyphens between them"
IMAGE = "cover_image: must be an absolute http or https URL without white space"


@pytest.fixture
def refused(client, count):
    """Try to create a post that must be refused; return the message."""

    def refused(**fields):
        answer = client.post("/v1/posts", json={"title": "A", "content": "B"} | fields)
        assert count(Post) == 0
        return message(answer)

    return refused


def test_title_and_content_are_enough_for_a_draft(client):
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
        "created_at": NOW,
        "updated_at": NOW,
    }


def test_every_field_is_kept(client):
    fields = {
        "title": "Käse & 東京 \U0001f9d1\u200d\U0001f4bb \U000e1000\u0378ﷺ",  # emoji and unknown characters
        "content": '\U000e1000\u0378 # Head\r\n\ttab  \n\u2028 "\\/</script> \U0001f600 \x7e\u00a0',
        "excerpt": "Short.",
        "slug": "kaese-1",
        "status": "published",
        "tags": ["Go", "東京"],
        "cover_image": "https://example.org/ä.png?x=1#y",
    }
    answer = client.post("/v1/posts", json=fields)
    times = dict.fromkeys(("created_at", "published_at", "updated_at"), NOW)
    assert answer.json == {"id": "1", **times, **fields}
    assert client.get("/v1/posts").json == [answer.json]


@cases(
    ("fields", "wrong"),
    ({"title": 1}, "title: must be a string"),
    ({"title": None}, "title: must not be null"),
    ({"title": " \u200b\u2060 "}, "title: must contain a visible character"),
    ({"title": " "}, "title: must have 1 to 255 characters"),
    *(({"title": title}, TITLE) for title in ("a\nb", "a\u2028b", "A\uffff", "\x1fA")),
    ({"title": "x" * 256}, "title: must have 1 to 255 characters"),
    ({"content": " \n\t"}, "content: must contain a visible character"),
    ({"content": "x" * 1_000_001}, "content: must have at most 1,000,000 characters"),
    ({"content": "\u200b" * 1_000}, "content: must contain a visible character"),
    *(({"content": f"a{character}"}, CONTENT) for character in "\0\x85\ud800\ufffe"),
    ({"tags": ["A\uffff"]}, f"tags[0]{TITLE.removeprefix('title')}"),
    ({"params": {"a": "\ufffe"}}, f"params.a{CONTENT.removeprefix('content')}"),
    ({"excerpt": "x" * 1_001}, "excerpt: must have at most 1,000 characters"),
    ({"content": None}, "content: must not be null"),
    ({"slug": "a" * 101}, "slug: must have at most 100 characters"),
    *(({"slug": slug}, SLUG) for slug in ("a\n", "-a", "a--b", "Ä")),
    *(({"status": status}, NEW_STATUS) for status in ("later", "", "archived")),
    ({"status": "scheduled", "published_at": "2099-01-01T00:00:00Z"}, NEW_STATUS),
    ({"status": ["draft"]}, "status: must be a string"),
    ({"tags": "a"}, "tags: must be an array of strings"),
    ({"tags": [None]}, "tags[0]: must not be null"),
    ({"tags": ["a"] * 51}, "tags: must have at most 50 tags"),
    ({"tags": ["a", 1]}, "tags[1]: must be a string"),
    ({"tags": [" "]}, "tags[0]: must have 1 to 64 characters"),
    ({"tags": ["x" * 65]}, "tags[0]: must have 1 to 64 characters"),
    *(
        ({"cover_image": url}, IMAGE)
        for url in ("ftp://a/b", "http:///b", "http://a b", "http://[::1", "//a/b", "http://a:65536/")
    ),
    ({"cover_image": "http://a/" + "x" * 2048}, "cover_image: must have at most 2,048 characters"),
    *(({name: "x"}, f'"{name}": unknown field; {FIELDS_ARE}') for name in ("titel", "", "_schema")),
    ({"\ud800": "x"}, f'"\N{REPLACEMENT CHARACTER}": unknown field; {FIELDS_ARE}'),
    ({"title": 1, "tags": [1]}, "title: must be a string; tags[0]: must be a string"),
)
def test_the_message_names_a_bad_field_and_what_would_be_right(refused, fields, wrong):
    assert refused(**fields) == wrong


def test_required_fields_are_named_and_null_counts_as_left_out_for_each_optional_field(client):
    required = {"title": "A", "content": "B"}
    nothing = dict.fromkeys(PostInputSchema().fields.keys() - required.keys())
    for method, path in (("POST", "/v1/posts"), ("PUT", "/v1/posts/by-slug/b"), ("PUT", "/v1/posts/1")):
        answer = client.open(path, method=method, json=required | nothing)
        assert answer.status_code < 300, answer.text
        assert answer.json.keys() == {"id", "title", "content", "status", "slug", "tags", "created_at", "updated_at"}
        assert message(client.open(path, method=method, json={})) == "title: missing; content: missing"
        for name in required:
            answer = client.open(path, method=method, json=required | {name: None})
            assert message(answer) == f"{name}: must not be null"


def test_null_in_a_change_clears_what_can_be_cleared_and_leaves_the_rest(client):
    full = {"excerpt": "E", "cover_image": "https://a/b", "tags": ["a"], "params": {"a": 1}, "former_slugs": ["old"]}
    stays = {"slug": "s", "status": "archived", "published_at": "2026-01-01T00:00:00Z"}
    client.put("/v1/posts/by-slug/s", json={"title": "A", "content": "B"} | full | stays)
    after = client.patch("/v1/posts/1", json=dict.fromkeys([*full, *stays])).json
    assert (full.keys() & after.keys(), after["tags"], stays.items() <= after.items()) == ({"tags"}, [], True)
    assert client.put("/v1/posts/1", json={"title": "A", "content": "B"} | dict.fromkeys([*full, *stays])).json == after
    for name in ("title", "content"):
        assert message(client.patch("/v1/posts/1", json={name: None})) == f"{name}: must not be null"


def test_a_message_never_grows_with_the_request(refused):
    wrong = refused(**{f"field{n}\n{'x' * 99}": 1 for n in range(90)})
    assert (len(wrong), wrong.isprintable()) == (500, True)


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


def test_an_empty_optional_field_counts_as_left_out_and_clears_the_field_of_a_post(post, client):
    """PHP writes an empty object as an array."""
    without, full = post(), {"excerpt": "E", "cover_image": "https://a/b"}
    nothing = {"excerpt": ""}, {"cover_image": ""}, {"slug": ""}, {"params": {}}, {"params": []}
    for number, empty in enumerate(nothing, 2):
        assert post(**empty) == without | {"id": str(number), "slug": f"a-title-{number}"}
        assert client.patch("/v1/posts/1", json=full).json == without | full
        assert client.patch("/v1/posts/1", json=dict.fromkeys(full, "") | empty).json == without


@cases(
    ("given", "kept"),
    ([" Go ", "go", "GO"], ["Go"]),
    (["straße", "STRASSE"], ["straße"]),
    (["e\u0301", "\u00e9"], ["e\u0301"]),
    (["b", "a"], ["b", "a"]),
)
def test_a_repeated_tag_is_dropped_and_the_spelling_given_is_kept(post, given, kept):
    assert post(tags=given)["tags"] == kept


# The slug


@cases(
    ("title", "slug"),
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
    ("&#66; é &#x43;", "66-e-x43"),
)
def test_a_slug_is_created_from_the_title(client, post, title, slug):
    created = post(title=title)
    assert created["slug"] == slug
    client.delete(f"/v1/posts/{created['id']}")


def test_a_taken_slug_gets_the_next_free_number_after_logarithmically_many_look_ups(post, database, statements):
    post(slug="a-title-3")
    assert [post()["slug"] for _ in range(4)] == ["a-title", "a-title-2", "a-title-4", "a-title-5"]
    rows = [{"slug": f"a-title-{number}", "status": "draft", "document": "{}"} for number in range(6, 1001)]
    database.write(lambda tx: tx.execute(Post.insert_many(rows)))
    with statements() as collected:
        assert post()["slug"] == "a-title-1001"
    assert 2 < sum('"slug" =' in statement for statement in collected) <= 2 * 10 + 2


# The body

DEEP = [b"[" * count + b"]" * count for count in (101, 9_999)]
DEEP += [b'{"a":' * 4_000 + b"1" + b"}" * 4_000, b"[" * 30_000]
MANY = [b'{"tags": [' + b"[]," * 10_000 + b'""]}', b'{"a": "x", ' + b"1," * 10_000, b'"a,' * 30_000]


@cases(
    ("body", "wrong"),
    (b"", "body: must be JSON: Expecting value at line 1 column 1, at its end"),
    *((body, "body: must be a JSON object") for body in (b"[]", b'"title"', b"null", b"[" * 100 + b"]" * 100)),
    (b"{", "body: must be JSON: Expecting property name enclosed in double quotes at line 1 column 2, at its end"),
    (b'{"a": "', 'body: must be JSON: Unterminated string starting at line 1 column 7, where it has "'),
    (b'{"title": NaN}', "body: must be JSON, which does not allow NaN"),
    (b'{"title": -Infinity}', "body: must be JSON, which does not allow -Infinity"),
    (b'{"title": "a", "title": "b"}', 'body: must not have "title" twice in an object'),
    (b'{"tags": [{"a": 1, "a": 2}]}', 'body: must not have "a" twice in an object'),
    *((body, "body: must not be nested more than 100 levels deep") for body in DEEP),
    *((body, "body: must have at most 10,000 values") for body in MANY),
    *((body, "body: must have numbers of at most 100 digits") for body in (b"9" * 101, b"[-1." + b"9" * 98 + b"]")),
    (b"[" + b"9" * 100 + b", 0." + b"1" * 98 + b"]", "body: must be a JSON object"),
    ("{}".encode("utf-16"), "body: must be UTF-8"),
    (b'{"title": "\xff"}', "body: must be UTF-8"),
    (b"\xef\xbb\xbf{}", "body: must not begin with a byte order mark"),
    (json.dumps({f"field{n}": n for n in range(101)}).encode(), "body: must have at most 100 fields"),
)
def test_json_is_strict(client, body, wrong):
    assert message(client.post("/v1/posts", data=body, content_type="application/json")) == wrong


@cases(
    ("content_type", "encoding"),
    ("application/json", ""),
    ("Application/JSON; charset=UTF-8", ""),
    ('application/json;charset="utf-8"', ""),
    ("application/json; charset=utf8", "identity"),
    ("text/markdown; charset=utf-8", ""),
    ("Text/Markdown;charset=UTF-8", ""),
    ('text/markdown; charset="utf8"', ""),
)
def test_json_and_markdown_in_utf_8_are_accepted(client, content_type, encoding):
    body = '{"title": "A", "content": "B"}' if "json" in content_type.lower() else "# A"
    headers = {"Content-Type": content_type, "Content-Encoding": encoding}
    assert client.post("/v1/posts", data=body, headers=headers).status_code == 201


@cases(
    ("method", "content_type", "taken"),
    ("POST", "application/json; charset=latin-1", "text/markdown"),
    ("POST", "text/markdown; charset=latin-1", "text/markdown"),
    ("POST", "text/plain", "text/markdown"),
    ("POST", "text/x-markdown", "text/markdown"),
    ("POST", "application/x-www-form-urlencoded", "text/markdown"),
    ("POST", "application/merge-patch+json", "text/markdown"),
    ("POST", None, "text/markdown"),
    ("PATCH", "application/json-patch+json", "application/merge-patch+json"),
    ("PATCH", "text/markdown", "application/merge-patch+json"),
)
def test_another_type_is_415_and_says_which_header_to_send(client, put, method, content_type, taken):
    before = put().json
    path = "/v1/posts/by-slug/a" if method == "PATCH" else "/v1/posts"
    answer = client.open(path, method=method, data='{"title": "A", "content": "B"}', content_type=content_type)
    types = f"must be application/json or {taken}, but is {content_type or 'missing'}"
    hint = "; curl sends JSON with --json"
    if taken == "text/markdown":
        hint += ", and a Markdown file with -H 'Content-Type: text/markdown' --data-binary @FILE"
    assert message(answer, 415) == f"Content-Type: {types}{hint}"
    assert client.get("/v1/posts").json == [before]


@pytest.mark.parametrize("content_type", ["application/json", "text/markdown"])
def test_an_encoded_body_is_415(client, content_type):
    answer = client.post("/v1/posts", data=b"", headers={"Content-Type": content_type, "Content-Encoding": "gzip"})
    assert message(answer, 415) == "Content-Encoding: must be left out"


@pytest.mark.in_process
def test_a_body_of_4_mib_is_read_and_one_byte_more_is_413(client):
    body = '{"title": "A", "content": "B"}'
    assert client.post("/v1/posts", data=body.ljust(4 * 2**20), content_type="application/json").status_code == 201
    of_json = '; in JSON, "\\u00e9" takes six of them, and "é" two'
    for content_type, hint in (("application/json", of_json), ("text/markdown", "")):
        answer = client.post("/v1/posts", data=body.ljust(4 * 2**20 + 1), content_type=content_type)
        assert message(answer, 413) == f"body: must be at most 4,194,304 bytes{hint}"


@pytest.mark.sqlite
@pytest.mark.in_process  # Another server has a connection per thread.
def test_a_full_disk_is_503_and_says_so(client, database):
    pragma = database.engine.connection.execute
    ((pages,),) = pragma("PRAGMA page_count")
    pragma(f"PRAGMA max_page_count = {pages}")
    answer = client.post("/v1/posts", json={"title": "A", "content": "B" * 60_000})
    assert without_id(message(answer, 503)) == "the disk is full; nothing was changed"
    assert answer.headers["Retry-After"] == "1"
    pragma("PRAGMA max_page_count = 1000000")
    assert client.post("/v1/posts", json={"title": "A", "content": "B" * 60_000}).status_code == 201
