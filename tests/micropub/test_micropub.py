"""Micropub: what writing programs send, and what they are answered."""

import re
import time
import tracemalloc

import pytest

from blogapi.forms import READ_BYTES
from blogapi.storage.models import Image, PostTag
from tests.api.fixtures import with_key
from tests.images.pictures import jpeg, png
from tests.service import add_key

URL = "http://127.0.0.1:8000"
PATH, MEDIA = "/micropub", "/micropub/media"


def error(answer, status, word):
    """The description of an error."""
    assert (answer.status_code, answer.json["error"]) == (status, word)
    assert sorted(answer.json) == ["error", "error_description"]
    return answer.json["error_description"]


def bad(answer):
    return error(answer, 400, "invalid_request")


@pytest.fixture
def create(client):
    """Create a post by a form, or by JSON; return the post, and the names that were ignored."""

    def create(data=None, **options):
        answer = client.post(PATH, data=data, **options)
        assert answer.status_code == 201, answer.json
        assert answer.headers["Location"] == answer.json["url"]
        path = answer.headers["Location"].removeprefix(URL)
        assert answer.json == {"url": URL + path, "ignored": answer.json["ignored"]}
        return client.get(path).json, answer.json["ignored"]

    return create


def entry(**properties):
    return {"type": ["h-entry"], "properties": properties}


def form(**parts):
    """A multipart form; a file is its name and bytes. Flask's client would leave files of large forms open."""
    lines = []
    for name, values in parts.items():
        for value in values if isinstance(values, list) else [values]:
            file, content = value if isinstance(value, tuple) else (None, value.encode())
            disposition = f'form-data; name="{name}"' + ("" if file is None else f'; filename="{file}"')
            lines.append(f"--b\r\nContent-Disposition: {disposition}\r\n\r\n".encode() + content + b"\r\n")
    return {"data": b"".join([*lines, b"--b--\r\n"]), "content_type": "multipart/form-data; boundary=b"}


# Creations. The numbers are those of the server tests of micropub.rocks.

SUNSET = "https://micropub.rocks/media/sunset.jpg"
ALT = {"value": SUNSET, "alt": "Photo of a [sunset]"}
PHOTOS = ["https://a.example/b c.jpg", "https://a.example/d(1).jpg"]
PARAGRAPHS = "A\n\n![](https://a.example/b%20c.jpg)\n\n![](https://a.example/d%281%29.jpg)\n"
HTML = "<p>This post has <b>bold</b> and <i>italic</i> text.</p>"
IA_WRITER = {"title": "A", "content": "B", "status": "draft"}
CHECKIN = {"type": ["h-card"], "properties": {"name": ["Los Gorditos"]}}


@pytest.mark.parametrize(
    ("number", "data", "expected", "ignored"),
    [
        (100, {"content": "A basic h-entry"}, {"title": "A basic h-entry", "content": "A basic h-entry"}, []),
        (101, {"content": "A", "category[]": ["micropub", "test"]}, {"tags": ["micropub", "test"]}, []),
        (104, {"content": "A", "photo": SUNSET}, {"content": f"A\n\n![]({SUNSET})\n"}, []),
        (105, {"content": "A", "mp-syndicate-to[]": ["https://a.example/"]}, {}, ["mp-syndicate-to"]),
        (107, {"content": "A", "category": "test"}, {"tags": ["test"]}, []),
        ("any script", {"content": "Käse & 日本 🧁 + %"}, {"content": "Käse & 日本 🧁 + %"}, []),
        ("any script", {"content": "A", "category[]": ["Küche"]}, {"tags": ["Küche"]}, []),
    ],
)
def test_a_form_creates_a_post(create, number, data, expected, ignored):
    post, names = create({"h": "entry"} | data)
    assert post.items() >= ({"status": "published"} | expected).items()
    assert names == ignored


@pytest.mark.parametrize(
    ("number", "properties", "expected", "ignored"),
    [
        (200, {"content": ["Micropub test"]}, {"content": "Micropub test"}, []),
        (201, {"content": ["A"], "category": ["test1", "test2"]}, {"tags": ["test1", "test2"]}, []),
        (202, {"content": [{"html": HTML}]}, {"content": "This post has **bold** and *italic* text.\n"}, []),
        (203, {"content": ["A"], "photo": [SUNSET]}, {"content": f"A\n\n![]({SUNSET})\n"}, []),
        (204, {"content": ["A"], "checkin": [CHECKIN]}, {}, ["checkin"]),
        (205, {"content": ["A"], "photo": [ALT]}, {"content": f"A\n\n![Photo of a \\[sunset\\]]({SUNSET})\n"}, []),
        (206, {"content": ["A\n"], "photo": PHOTOS}, {"content": PARAGRAPHS}, []),
        ("Obsidian", {"name": ["A"], "content": [{"html": "# B\n\n*C*"}]}, {"content": "# B\n\n*C*"}, []),
        ("iA Writer", {"name": "A", "content": "B", "post-status": "draft"}, IA_WRITER, []),
    ],
)
def test_json_creates_a_post(create, number, properties, expected, ignored):
    kind = "h-entry" if number == "iA Writer" else ["h-entry"]
    post, names = create(json={"type": kind, "properties": properties})
    assert post.items() >= expected.items()
    assert names == ignored


def test_300_a_form_has_a_photo(create, client):
    post, _ = create(**form(h="entry", content="Nice sunset", photo=("sunset.jpg", jpeg())))
    (address,) = re.findall(r"!\[\]\(http://127\.0\.0\.1:8000(/images/[0-9a-f]{32}\.jpg)\)", post["content"])
    assert client.get(address).status_code == 200


def test_301_a_form_has_several_photos_with_alternative_texts(create):
    photos = {"photo[]": [("a.jpg", jpeg()), ("b.png", png())], "mp-photo-alt[]": ["B", "C"]}
    post, _ = create(**form(h="entry", content="A", **photos))
    assert re.fullmatch(r"A\n\n!\[B\]\(\S+\.jpg\)\n\n!\[C\]\(\S+\.png\)\n", post["content"])


def test_a_photo_alone_is_a_post(create, clock):
    post, _ = create(**form(photo=("a.jpg", jpeg())))
    assert (post["title"], post["content"][:4]) == ("2026-11-20", "![](")


def test_all_properties_become_fields(create):
    properties = {
        "name": ["A name"],
        "content": ["Words.\r\n"],
        "summary": ["Short"],
        "featured": ["https://a.example/b.jpg"],
        "category": ["a", "b", ""],
        "mp-slug": ["My Slug!"],
        "published": ["2020-01-02 03:04:05"],
        "visibility": ["public"],
    }
    post, ignored = create(json=entry(**properties))
    expected = {
        "title": "A name",
        "content": "Words.\r\n",
        "excerpt": "Short",
        "cover_image": "https://a.example/b.jpg",
        "tags": ["a", "b"],
        "slug": "my-slug",
        "published_at": "2020-01-02T03:04:05Z",
        "status": "published",
    }
    assert post.items() >= expected.items()
    assert ignored == []
    assert create(json=entry(content="B", **{"mp-slug": ["My Slug"]}))[0]["slug"] == "my-slug-2"


@pytest.mark.parametrize(
    ("content", "title"),
    [
        ("# Heading\n\nWords", "Heading"),
        ("\n\n> **Bold** and [a link](https://a.example/)\n", "Bold and a link"),
        ("1. `code` ![alt](b.png)", "code alt"),
        ("word " * 30, ("word " * 16).strip()),
        ("x" * 100, "x" * 80),
        ("Hello\tworld", "Hello world"),
        ("# " + "word " * 80, ("word " * 51).strip()),
        ("***\n", "2026-11-20"),
        ("- - -\n\nWords", "Words"),
    ],
)
def test_without_a_name_the_title_is_from_the_content(create, clock, content, title):
    assert create({"content": content})[0]["title"] == title


@pytest.mark.parametrize(
    ("status", "published", "expected"),
    [
        (None, "2027-01-01", "scheduled"),
        ("published", "2027-01-01T00:00:00+02:00", "scheduled"),
        ("draft", "2020-01-01", "draft"),
        ("archived", None, "archived"),
        (None, None, "published"),
    ],
)
def test_the_status_follows_from_the_date(create, clock, status, published, expected):
    data = {"content": "A", "post-status": status, "published": published}
    post, _ = create({name: value for name, value in data.items() if value})
    assert post["status"] == expected


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({}, "content: must be given, or a photo"),
        ({"name": ["A"], "content": [""]}, "content: must be given, or a photo"),
        ({"content": ["A", "B"]}, "content: must have one value"),
        ({"content": [1]}, "content: must be text"),
        ({"content": [{"html": "<b>" * 500}]}, "content.html: its HTML is nested too deeply"),
        ({"content": [{"html": "<p>" + "a" * 100_000}]}, "content.html: must have at most 100,000 characters"),
        ({"content": [{"html": "<b>a</b>" * 2501}]}, "content.html: its HTML must have at most 2,500 elements"),
        (
            {"content": [{"html": "<table><td colspan=1000>" * 3}]},
            "content.html: its tables must have at most 2,500 col",
        ),
        (
            {"content": [{"html": "<p>" + "<blockquote>" * 99 + "<pre>" + "a\n" * 999}]},
            "content.html: its HTML is nested",
        ),
        ({"content": [{"html": "<table><tr>" + "<td colspan=99>" * 9}]}, "content.html: it must not become 4 times as"),
        ({"content": [{"html": "<p>a"}] * 2}, "content: must have one value"),
        ({"content": ["A"], "mp-slug": ["a" + "\u0301" * 2048]}, "mp-slug: must have at most 2,048 characters"),
        ({"content": ["A"], "category": ["a"] * 101}, "category: must have at most 100 values"),
        (
            {"content": ["A"], "photo": [{"value": "https://a.example/b", "alt": "[" * 2049}]},
            "photo.alt: must have at most 2,048 characters",
        ),
        ({"content": [{"html": 1}]}, "content.html: must be text"),
        ({"content": ["A"], "visibility": ["private"]}, "visibility: must be public"),
        ({"content": ["A"], "like-of": ["https://a.example/"]}, "like-of: is not kept by this service"),
        ({"content": ["A"], "post-status": ["x"]}, "post-status: must be one of published, draft, scheduled, archived"),
        ({"content": ["A"], "published": ["soon"]}, "published: must be a date"),
        ({"content": ["A"], "published": ["2027-01-01"], "post-status": ["draft"]}, "published: must not be in the"),
        ({"content": ["A"], "photo": ["b.jpg"]}, "photo: must be absolute http or https URLs"),
        ({"content": ["A"], "category": [["b"]]}, "category: must be text"),
        ({"content": ["A"], "featured": ["b"]}, "featured: must be"),
    ],
)
def test_properties_that_a_post_cannot_have_are_refused(client, count, properties, message):
    assert bad(client.post(PATH, json=entry(**properties))).startswith(message)


def test_another_type_is_refused(client):
    assert bad(client.post(PATH, data={"h": "event", "content": "A"})) == "h: must be entry, or left out"
    assert bad(client.post(PATH, json={"type": ["h-event"], "properties": {"content": ["A"]}}))


def test_a_post_that_is_refused_stores_no_photo(client, count):
    assert bad(client.post(PATH, **form(content="A", **{"post-status": "x"}, photo=("a.jpg", jpeg()))))
    assert count(Image) == 0
    many = [(f"{number}.jpg", jpeg()) for number in range(11)]
    assert bad(client.post(PATH, **form(photo=many))) == "body: must have at most 10 files"
    both = [("a.jpg", jpeg()), ("b.jpg", b"no image")]
    assert error(client.post(PATH, **form(photo=both)), 415, "invalid_request")
    assert count(Image) == 0


# Updates, deletions


@pytest.fixture
def post(client, clock):
    fields = {"title": "A", "content": "B", "tags": ["a", "b"], "excerpt": "C", "status": "published"}
    client.post("/v1/posts", json=fields)
    clock.now += 1

    def get():
        return client.get("/v1/posts/1").json

    return get


def change(client, **body):
    return client.post(PATH, json={"action": "update", "url": f"{URL}/v1/posts/1"} | body)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"replace": {"content": ["New"]}}, {"content": "New"}),  # 400
        ({"replace": {"content": [{"html": "<p><b>New</b></p>"}]}}, {"content": "**New**\n"}),
        ({"add": {"category": ["c"]}}, {"tags": ["a", "b", "c"]}),  # 401
        ({"delete": {"category": ["a"]}}, {"tags": ["b"]}),  # 403
        ({"delete": {"category": ["B", 5]}}, {"tags": ["a"]}),
        ({"delete": ["category"]}, {"tags": []}),  # 404
        ({"delete": ["summary"]}, {"excerpt": None}),
        ({"delete": {"summary": ["other"]}}, {}),
        (
            {"replace": {"name": ["N"], "category": ["x"]}, "add": {"category": ["y"]}},
            {"title": "N", "tags": ["x", "y"]},
        ),
        ({"replace": {"published": ["2027-01-01"]}}, {"status": "scheduled"}),
        ({"replace": {"post-status": ["draft"]}}, {"status": "draft"}),
        ({"add": {"featured": ["https://a.example/b.jpg"]}}, {"cover_image": "https://a.example/b.jpg"}),  # 402
        ({"add": {"photo": ["https://a.example/b.jpg"]}}, {"content": "B\n\n![](https://a.example/b.jpg)\n"}),
        ({"replace": {"unknown": ["x"]}}, {}),
    ],
)
def test_an_update_changes_what_it_names(client, post, body, expected):
    before = post()
    answer = change(client, **body)
    assert (answer.status_code, answer.data) == (204, b"")
    assert {name: post().get(name) for name in expected} == expected
    kept = {"title", "content", "tags", "excerpt", "slug", "created_at"} - expected.keys()
    assert {name: post()[name] for name in kept} == {name: before[name] for name in kept}
    assert len(client.get("/v1/posts/1/revisions").json) == bool(expected)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"replace": {"content": "New"}}, "replace, add, delete: must have a list of values for each property"),  # 405
        ({"delete": {"category": "ab"}}, "replace, add, delete: must have a list of values for each property"),
        ({"delete": [["category"]]}, "replace, add, delete: must be objects of properties"),
        ({"replace": "x"}, "replace, add, delete: must be objects of properties"),
        ({"delete": ["content"]}, "content: cannot be deleted"),
        ({"delete": {"photo": ["https://a.example/b.jpg"]}}, "photo: cannot be deleted"),
        ({"replace": {"photo": ["https://a.example/b.jpg"]}}, "photo: can only be added: the content shows the photos"),
        ({"replace": {"name": ["x" * 256]}}, "name: must have 1 to 255 characters"),
        ({"replace": {"category": ["x" * 65]}}, "category[0]: must have 1 to 64 characters"),
        ({"replace": {"published": ["2099-01-01"], "post-status": ["draft"]}}, "published: must not be in the future"),
        ({"replace": {"content": [{"html": "<b>" * 500}]}}, "content.html: its HTML is nested too deeply"),
        ({"delete": ["name"]}, "name: cannot be deleted"),
        ({"delete": {"category": ["a"] * 101}}, "category: must have at most 100 values"),
        ({"add": {"name": ["x"]}}, "name: has a value already; replace it"),
        ({"replace": {"rsvp": ["yes"]}}, "rsvp: is not kept"),
        ({"add": {"visibility": ["private"]}}, "visibility: must be public"),
        ({"url": "https://a.example/"}, "url: must be the address of a post"),
        ({"url": f"{URL}/v1/posts/9", "delete": ["summary"]}, "no such post"),
    ],
)
def test_an_update_that_is_refused_changes_nothing(client, post, body, message):
    before = post()
    assert bad(change(client, **body)).startswith(message)
    assert post() == before


def test_an_update_by_a_form_is_refused(client, post):
    answer = client.post(PATH, data={"action": "update", "url": f"{URL}/v1/posts/1"})
    assert bad(answer) == "body: an update must be JSON"


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize("path", ["/v1/posts/1", "/v1/posts/by-slug/a/?x#y"])
def test_a_post_is_deleted_and_comes_back(client, post, as_json, path):
    before = post()
    for action, status in (("delete", 404), ("undelete", 200)):  # 500 to 503
        body = {"action": action, "url": URL + path}
        answer = client.post(PATH, **({"json": body} if as_json else {"data": body}))
        assert answer.status_code == 204
        assert client.get("/v1/posts/1").status_code == status
    assert post() == before | {"updated_at": post()["updated_at"]}
    assert bad(client.post(PATH, data={"action": "undelete", "url": URL + path})) == "no such post in the trash"
    assert bad(client.post(PATH, data={"action": "publish", "url": URL + path})).startswith("action: must be one of")


# Queries


def query(client, **parameters):
    return client.get(PATH, query_string=parameters)


def test_600_601_the_configuration_has_a_media_endpoint_and_no_targets_of_syndication(client):
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


def test_categories_can_be_filtered(client, post):
    client.post("/v1/posts", json={"title": "A", "content": "A", "tags": ["Abc", "Käse"]})
    assert query(client, q="category").json == {"categories": ["a", "Abc", "b", "Käse"]}
    assert query(client, q="category", filter="B").json == {"categories": ["Abc", "b"]}


def test_categories_are_filtered_in_all_pages(client, post, database):
    row = {"status": "draft", "post_id": 1}
    rows = [row | {"tag": f"{number:04}", "name": f"{number:04}"} for number in range(1100)]
    database.write(lambda tx: tx.execute(PostTag.insert_many(rows)))
    found = ["0109", *map(str, range(1090, 1100))]
    assert query(client, q="category", filter="109").json == {"categories": found}


def test_another_query_is_refused(client):
    assert bad(query(client, q="x")) == "q: must be one of config, source, syndicate-to, category"
    assert bad(client.get(PATH))


# The media endpoint


def test_700_an_image_is_uploaded(client):
    answer = client.post(MEDIA, **form(file=("sunset.jpg", jpeg())))
    assert answer.status_code == 201
    assert client.get(answer.headers["Location"].removeprefix(URL)).mimetype == "image/jpeg"
    again = client.post(MEDIA, **form(other=("sunset.jpg", jpeg())))
    assert (again.status_code, again.headers["Location"]) == (201, answer.headers["Location"])


def test_701_702_other_files_are_refused(client, count):
    assert error(client.post(MEDIA, **form(file=("a.jpg", b"x"))), 415, "invalid_request").startswith("file: must be")
    assert bad(client.post(MEDIA, **form(file="x"))).startswith("file: missing")
    assert error(client.post(MEDIA, json={}), 415, "invalid_request")
    assert count(Image) == 0


# Keys


@pytest.fixture
def new_key(database):
    return lambda scope="full": add_key(database, scope, scope)


def test_800_801_the_key_is_in_the_header_or_in_the_form(stranger, new_key, client):
    token = new_key()
    bearer = {"Authorization": f"Bearer {token}"}
    remaining = 1_000_000
    for options in (
        {"data": {"content": "A"}, "headers": bearer},
        {"data": {"content": "A", "access_token": token}},
        {"data": {"content": "A", "access_token": token}, "headers": bearer},
        {"data": f"content=A&access%5Ftoken=%{ord('b'):x}{token[1:]}", "content_type": URLENCODED},
        form(content="A", access_token=token),
        form(access_token=token, photo=("a.jpg", jpeg())),
    ):
        answer = stranger.post(PATH, **options)
        remaining -= 1
        assert (answer.status_code, answer.headers["X-RateLimit-Remaining"]) == (201, str(remaining))
    error(stranger.post(PATH, data={"content": "A", "access_token": token + "x" * 200}), 401, "unauthorized")
    both = {"data": {"content": "A", "access_token": new_key("read-only")}, "headers": bearer}
    assert bad(stranger.post(PATH, **both)) == "access_token: must be the key in Authorization, or be left out"


@pytest.mark.parametrize(
    "options",
    [
        {"data": {"content": "A"}},
        {"data": {"content": "A", "access_token": "x"}},
        {"json": {"properties": {"content": ["A"]}, "access_token": "x"}},
        {"data": {"content": "A"}, "headers": {"Authorization": "Bearer x"}},
        form(content="A"),
        form(photo=("a.jpg", jpeg()), access_token="x"),
    ],
)
def test_802_without_a_key_nothing_is_done(stranger, client, options, count):
    answer = stranger.post(PATH, **options)
    error(answer, 401, "unauthorized")
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert (client.get("/v1/posts").json, count(Image)) == ([], 0)


def test_a_key_in_the_query_is_not_accepted(stranger, new_key):
    error(stranger.get(PATH, query_string={"q": "config", "access_token": new_key()}), 401, "unauthorized")


def test_803_804_what_a_key_may_do_depends_on_its_scope(stranger, new_key, client, post):
    client.post("/v1/posts", json={"title": "Draft", "content": "A", "tags": ["secret"]})
    for scope, posts, tags in (("read-only", 2, ["a", "b", "secret"]), ("published-only", 1, ["a", "b"])):
        headers = {"Authorization": f"Bearer {new_key(scope)}"}
        answer = stranger.post(PATH, data={"content": "A"}, headers=headers)
        assert error(answer, 401, "insufficient_scope").startswith(f"this key is {scope}")
        assert error(stranger.post(MEDIA, **form(file=("a.jpg", jpeg())), headers=headers), 401, "insufficient_scope")
        assert len(stranger.get(f"{PATH}?q=source", headers=headers).json["items"]) == posts
        assert stranger.get(f"{PATH}?q=category", headers=headers).json == {"categories": tags}
        draft = stranger.get(f"{PATH}?q=source&url={URL}/v1/posts/2", headers=headers)
        assert draft.status_code == (200 if scope == "read-only" else 400)


def test_the_limit_of_the_key_holds(own_app):
    client = with_key(own_app(rate_limit=2))
    assert [client.get(f"{PATH}?q=config").status_code for _ in range(2)] == [200, 200]
    answer = client.post(PATH, data={"content": "A"})
    error(answer, 429, "too_many_requests")
    assert "Retry-After" in answer.headers


@pytest.mark.parametrize("path", [PATH, MEDIA])
def test_other_methods_are_405(client, stranger, path):
    for method in ("PUT", "PATCH", "DELETE"):
        error(client.open(path, method=method), 405, "invalid_request")
        error(stranger.open(path, method=method), 401, "unauthorized")


def test_without_a_key_there_is_a_page_by_which_programs_find_the_endpoint(stranger):
    answer = stranger.get(PATH)
    assert (answer.status_code, answer.mimetype) == (200, "text/html")
    assert answer.headers["Link"] == f'<{URL}/micropub>; rel="micropub"'
    assert f'<link rel="micropub" href="{URL}/micropub">' in answer.text
    assert stranger.head(PATH).headers["Link"] == answer.headers["Link"]


# Bounds


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"data": "content=" + "a" * 1_100_000, "content_type": "application/x-www-form-urlencoded"}, 413),
        (form(content="a" * 1_100_000), 413),
        ({"data": "&".join("a=b" for _ in range(300)), "content_type": "application/x-www-form-urlencoded"}, 400),
        (form(a=["b"] * 300), 400),
        ({"data": "x", "content_type": "multipart/form-data; boundary=b"}, 400),
        ({"data": "x", "content_type": "text/plain"}, 415),
    ],
)
@pytest.mark.in_process
def test_a_strangers_body_is_bounded(stranger, options, status):
    assert error(stranger.post(PATH, **options), status, "invalid_request")


def test_a_long_post_is_sent_as_a_form_with_a_key(create):
    assert len(create(**form(content="ж" * 900_000))[0]["content"]) == 900_000
    assert len(create({"content": "ж" * 600_000})[0]["content"]) == 600_000


URLENCODED = "application/x-www-form-urlencoded"


@pytest.mark.parametrize("body", ["content=Käse", "content=K%C3%A4se"])
def test_a_form_has_its_text_in_utf_8_encoded_or_not(create, body):
    assert create(body.encode(), content_type=URLENCODED)[0]["content"] == "Käse"


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"content=caf\xe9", URLENCODED),
        (b"content=caf%E9", URLENCODED),
        (
            b'--b\r\nContent-Disposition: form-data; name="content"\r\n\r\n\xe9\r\n--b--',
            "multipart/form-data; boundary=b",
        ),
    ],
)
def test_text_that_is_not_utf_8_is_refused(client, body, content_type):
    assert bad(client.post(PATH, data=body, content_type=content_type)) == "body: must be UTF-8"


@pytest.mark.sqlite
def test_a_form_takes_little_memory_while_it_is_read(client):
    body = b"content=" + b"%D0%B6" * 150_000
    tracemalloc.start()
    try:
        assert client.post(PATH, data=body, content_type=URLENCODED).status_code == 201
        assert tracemalloc.get_traced_memory()[1] < 16 * len(body)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("rest", range(-3, 7))
def test_a_form_is_read_wherever_its_pieces_end(create, rest):
    length = READ_BYTES + rest - len(form(content="")["data"])
    assert len(create(**form(content="a" * length))[0]["content"]) == length


def test_a_field_for_a_file_may_be_left_empty(create):
    assert create(**form(content="A", photo=("", b"")))[0]["content"] == "A"


@pytest.mark.parametrize("body", ["[", "[]", '{"type": 1}', '{"properties": []}', '{"a": 1, "a": 2}', "[" * 100_000])
def test_json_that_is_no_message_is_refused(client, body):
    assert bad(client.post(PATH, data=body, content_type="application/json"))


@pytest.mark.parametrize("content", ["[" * 900_000, "***\n" * 200_000, "*" * 900_000, "![a](" * 180_000])
def test_the_title_of_a_hostile_content_is_found_quickly(create, content):
    began = time.process_time()
    create(json=entry(content=content + "x"))
    assert time.process_time() - began < 2


# BLOGAPI_POST_URL


def test_addresses_are_those_of_the_site(own_app):
    client = with_key(own_app(post_url="https://blog.example.org/posts/{slug}/"))
    answer = client.post(PATH, data={"name": "Hello", "content": "A"})
    url = "https://blog.example.org/posts/hello/"
    assert (answer.headers["Location"], answer.json["url"]) == (url, url)
    for same in (url, f"{url}?x=y#z", url.rstrip("/"), "http://127.0.0.1:8000/v1/posts/1"):
        assert client.get(PATH, query_string={"q": "source", "url": same}).json["properties"]["url"] == [url]
    moved = client.post(PATH, json={"action": "update", "url": url, "replace": {"mp-slug": ["Bye"]}})
    assert (moved.status_code, moved.headers["Location"]) == (201, "https://blog.example.org/posts/bye/")
    assert client.post(PATH, data={"action": "delete", "url": moved.headers["Location"]}).status_code == 204
    client.post("/v1/posts", json={"title": "Other", "content": "A", "slug": "bye"})
    restored = client.post(PATH, data={"action": "undelete", "url": moved.headers["Location"]})
    assert (restored.status_code, restored.json["url"]) == (201, "https://blog.example.org/posts/bye-2/")
