"""Micropub: requests that writing programs send to create posts."""

import re

import pytest

from blogapi.storage.models import Post
from blogapi.wings.images.storage import Image
from tests.api.fixtures import with_key
from tests.cases import cases
from tests.images.pictures import jpeg, png
from tests.micropub.conftest import PATH, PLANNED, URLENCODED, bad, entry, error, form

# Creations. The numbers are those of micropub.rocks's server tests.

SUNSET = "https://micropub.rocks/media/sunset.jpg"
ALT = {"value": SUNSET, "alt": "Photo of a [sunset]"}
PHOTOS = ["https://a.example/b c.jpg", "https://a.example/d(1)\\"]
PARAGRAPHS = "A\n\n![](https://a.example/b%20c.jpg)\n\n![](https://a.example/d%281%29\\\\)\n"
HTML = "<p>This post has <b>bold</b> and <i>italic</i> text.</p>"
ACTIVE = "<p>A<script>b</script><a href='javascript:d'>e</a></p><form>c</form>"
DROPPED = ["content.html: a", "content.html: form", "content.html: script"]
IA_WRITER = {"title": "A", "content": "B", "status": "draft"}
NEW_YEAR = "2026-12-31T22:00:00Z"  # in a zone two hours ahead
GROWING = "<p>" + "<blockquote>" * 99 + "<pre>" + "a\n" * 999
CHECKIN = {"type": ["h-card"], "properties": {"name": ["Los Gorditos"]}}


@cases(
    ("number", "data", "expected", "ignored"),
    (100, {"content": "A basic h-entry"}, {"title": "A basic h-entry", "content": "A basic h-entry"}, []),
    (101, {"content": "A", "category[]": ["micropub", "test"]}, {"tags": ["micropub", "test"]}, []),
    (104, {"content": "A", "photo": SUNSET}, {"content": f"A\n\n![]({SUNSET})\n"}, []),
    (105, {"content": "A", "mp-syndicate-to[]": ["https://a.example/"]}, {}, ["mp-syndicate-to"]),
    (107, {"content": "A", "category": "test"}, {"tags": ["test"]}, []),
    ("any script", {"content": "Käse & 日本 🧁 + %"}, {"content": "Käse & 日本 🧁 + %"}, []),
    ("any script", {"content": "A", "category[]": ["Küche"]}, {"tags": ["Küche"]}, []),
    ("HTML", {"content[html]": "<p><b>A</b></p>", "content": ""}, {"content": "**A**\n"}, []),
)
def test_a_form_creates_a_post(create, number, data, expected, ignored):
    post, names = create({"h": "entry"} | data)
    assert post.items() >= ({"status": "published"} | expected).items()
    assert names == ignored


@cases(
    ("number", "properties", "expected", "ignored"),
    (200, {"content": ["Micropub test"]}, {"content": "Micropub test"}, []),
    (201, {"content": ["A"], "category": ["test1", "test2"]}, {"tags": ["test1", "test2"]}, []),
    ("both names", {"content": "A", "category": ["a"], "category[]": "b"}, {"tags": ["a", "b"]}, []),
    (202, {"content": [{"html": HTML}]}, {"content": "This post has **bold** and *italic* text.\n"}, []),
    (203, {"content": ["A"], "photo": [SUNSET]}, {"content": f"A\n\n![]({SUNSET})\n"}, []),
    (204, {"content": ["A"], "checkin": [CHECKIN]}, {}, ["checkin"]),
    (205, {"content": ["A"], "photo": [ALT]}, {"content": f"A\n\n![Photo of a \\[sunset\\]]({SUNSET})\n"}, []),
    (206, {"content": ["A\n"], "photo": PHOTOS}, {"content": PARAGRAPHS}, []),
    ("active", {"content": [{"html": ACTIVE}]}, {"content": "Ae\n\nc\n"}, DROPPED),
    ("Obsidian", {"name": ["A"], "content": [{"html": "# B\n\n*C*"}]}, {"content": "# B\n\n*C*"}, []),
    ("iA Writer", {"name": "A", "content": "B", "post-status": "draft"}, IA_WRITER, []),
)
def test_json_creates_a_post(create, number, properties, expected, ignored):
    kind = "h-entry" if number == "iA Writer" else ["h-entry"]
    post, names = create(json={"type": kind, "properties": properties})
    assert post.items() >= expected.items()
    assert names == ignored


def test_300_301_a_form_has_photos_with_alternative_texts_or_nothing_else(create, client, clock):
    post, _ = create(**form(h="entry", content="Nice sunset", photo=("sunset.jpg", jpeg())))
    (address,) = re.findall(r"!\[\]\(http://127\.0\.0\.1:8000(/images/[0-9a-f]{32}\.jpg)\)", post["content"])
    assert client.get(address).status_code == 200
    photos = {"photo[]": [("a.jpg", jpeg()), ("b.png", png())], "mp-photo-alt[]": ["B", "C"]}
    post, _ = create(**form(h="entry", content="A", **photos))
    assert re.fullmatch(r"A\n\n!\[B\]\(\S+\.jpg\)\n\n!\[C\]\(\S+\.png\)\n", post["content"])
    assert "![](" in create(**form(content="A", **{"photo[0]": ("a.jpg", jpeg())}))[0]["content"]  # as PHP names it
    assert create(**form(content="A", photo=("", b"")))[0]["content"] == "A"  # left empty
    post, _ = create(**form(photo=("a.jpg", jpeg())))
    assert (post["title"], post["content"][:4]) == ("2026-11-20", "![](")


def test_all_properties_become_fields(create):
    image = "https://a.example/b.jpg"
    properties = {"name": ["A name"], "content": ["Words.\r\n"], "summary": ["Short"], "featured": [image]}
    properties |= {"category": ["a", "b", ""], "mp-slug": ["My Slug!"], "visibility": ["public"]}
    post, ignored = create(json=entry(**properties, published=["2020-01-02 03:04:05"]))
    expected = {"title": "A name", "content": "Words.\r\n", "excerpt": "Short", "cover_image": image}
    expected |= {"tags": ["a", "b"], "slug": "my-slug", "status": "published"}
    assert post.items() >= (expected | {"published_at": "2020-01-02T03:04:05Z"}).items()
    assert ignored == []
    assert create(json=entry(content="B", **{"mp-slug": ["My Slug"]}))[0]["slug"] == "my-slug-2"


@cases(
    ("content", "title"),
    ("# Heading\n\nWords", "Heading"),
    ("\n\n> **Bold** and [a link](https://a.example/)\n", "Bold and a link"),
    ("1. `code` ![alt](b.png)", "code alt"),
    ("word " * 30, ("word " * 16).strip()),
    ("x" * 100, "x" * 80),
    ("Hello\tworld", "Hello world"),
    ("# " + "word " * 80, ("word " * 51).strip()),
    ("***\n", "2026-11-20"),
    ("- - -\n\nWords", "Words"),
)
def test_a_post_without_a_name_gets_its_title_from_the_content(create, clock, content, title):
    assert create({"content": content})[0]["title"] == title


@cases(
    ("properties", "message"),
    ({}, "content: is required unless there is a photo"),
    ({"name": ["A"], "content": [""]}, "content: is required unless there is a photo"),
    ({"content": ["A", "B"]}, "content: must have one value"),
    ({"content": [1]}, "content: must be text"),
    ({"content": [{"html": "<p>" + "a" * 100_000}]}, "content.html: must have at most 100,000 characters"),
    ({"content": [{"html": "".join(f"<b id={n}>" for n in range(400))}]}, "content.html: its HTML has too many"),
    ({"content": [{"html": GROWING}]}, "content.html: its Markdown must be at most 4 times as"),
    ({"content": [{"html": "<p>a"}] * 2}, "content: must have one value"),
    ({"content": ["A"], "mp-slug": ["a" + "\u0301" * 2048]}, "mp-slug: must have at most 2,048 characters"),
    ({"content": ["A"], "category": ["a"] * 101}, "category: must have at most 100 values"),
    ({"content": ["A"], "photo": [ALT | {"alt": "[" * 2049}]}, "photo.alt: must have at most 2,048 characters"),
    ({"content": [{"html": 1}]}, "content.html: must be text"),
    ({"content": ["A"], "visibility": ["private"]}, "visibility: must be public"),
    ({"content": ["A"], "like-of": ["https://a.example/"]}, "like-of: is not supported"),
    ({"content": ["A"], "post-status": ["x"]}, "post-status: must be one of published, draft, scheduled, archived"),
    ({"content": ["A"], "published": ["soon"]}, "published: must be a date"),
    ({"content": ["A"], "published": ["2027-01-01"], "post-status": ["archived"]}, f"published: {PLANNED}"),
    ({"content": ["A", {"html": "B"}]}, "content: must have one value"),
    ({"content": ["A"], "photo": ["b.jpg"]}, "photo: must be absolute http or https URLs"),
    ({"content": ["A"], "category": [["b"]]}, "category: must be text"),
    ({"content": ["A"], "featured": ["b"]}, "featured: must be"),
)
def test_impossible_properties_are_refused(client, count, properties, message):
    assert bad(client.post(PATH, json=entry(**properties))).startswith(message)
    assert count(Post) == 0


def test_another_type_is_refused(client):
    assert bad(client.post(PATH, data={"h": "event", "content": "A"})) == "h: must be entry, or left out"
    assert bad(client.post(PATH, json={"type": ["h-event"], "properties": {"content": ["A"]}}))


def test_a_refused_post_stores_no_photo(client, count):
    assert bad(client.post(PATH, **form(content="A", **{"post-status": "x"}, photo=("a.jpg", jpeg()))))
    assert count(Image) == 0
    many = [(f"{number}.jpg", jpeg()) for number in range(11)]
    assert bad(client.post(PATH, **form(photo=many))) == "body: must have at most 10 files"
    both = [("a.jpg", jpeg()), ("b.jpg", b"no image")]
    assert error(client.post(PATH, **form(photo=both)), 415, "invalid_request")
    assert count(Image) == 0


@cases(
    ("body", "expected"),
    ("post-status=publish", {"status": "published"}),  # test_status_in_every_way.py has all other words.
    ("post-status=publish&published=2027-01-01T00:00%2B02:00", {"status": "scheduled", "published_at": NEW_YEAR}),
    ("summary=Käse&name=K%C3%A4se", {"excerpt": "Käse", "title": "Käse"}),
    ("category[0]=a&category[1]=b", {"tags": ["a", "b"]}),
    ("category%5B1%5D=b&category[]=c&category=", {"tags": ["b", "c"]}),
    ("in-reply-to=&like-of[]=&content[html]=&summary=&mp-slug=&post-status=&visibility=", {"status": "published"}),
    (
        "photo[0][value]=https://a.example/b&photo[0][alt]=One&photo[1][value]=https://a.example/c",
        {"content": "A\n\n![One](https://a.example/b)\n\n![](https://a.example/c)\n"},
    ),
    (
        "photo[]=https://a.example/b&photo[]=https://a.example/c&mp-photo-alt[]=&mp-photo-alt[]=Two",
        {"content": "A\n\n![](https://a.example/b)\n\n![Two](https://a.example/c)\n"},
    ),
)
def test_forms_are_read_as_php_and_javascript_write_them(create, body, expected):
    post, ignored = create(f"content=A&{body}", content_type=URLENCODED)
    assert post.items() >= expected.items()
    assert ignored == []


def test_empty_values_in_json_count_as_left_out(create):
    empty = {"in-reply-to": [""], "like-of": [], "bookmark-of": [None], "name": [{"value": ""}], "category[0]": ["a"]}
    post, ignored = create(json=entry(content=["A"], **empty))
    assert (post["title"], post["tags"], ignored) == ("A", ["a"], [])


def test_a_draft_keeps_a_future_date(client, create, clock):
    post, _ = create({"content": "A", "post-status": "draft", "published": "2027-01-01"})
    planned = {"status": "draft", "published_at": "2027-01-01T00:00:00Z"}
    assert post.items() >= planned.items()
    assert client.patch("/v1/posts/1", json={"title": "B"}).json.items() >= planned.items()
    got = client.get("/v1/posts/1").json
    assert client.put("/v1/posts/by-slug/a", json=got).json == got
    clock.now += 1
    assert client.patch("/v1/posts/1", json={"status": "scheduled"}).json["published_at"] == planned["published_at"]
    assert "published_at" not in client.patch("/v1/posts/1", json={"status": "draft"}).json


# Repeated creations


@pytest.mark.parametrize(
    "sent",
    [
        {"data": {"content": "A", "category[]": ["b", "c"]}},
        {"json": entry(content=["A"], unknown=[{"x": "\ud800"}])},
        form(content="A", photo=("a.jpg", jpeg())),
    ],
)
def test_repeating_a_creation_within_ten_minutes_makes_no_second_post(client, clock, count, sent):
    first = client.post(PATH, **sent)
    if isinstance(sent.get("data"), bytes):  # The boundary differs each time.
        sent = {"data": sent["data"].replace(b"--b", b"--c"), "content_type": "multipart/form-data; boundary=c"}
    clock.now += 599
    again = client.post(PATH, **sent)
    assert (again.status_code, again.headers["Location"], again.json) == (201, first.headers["Location"], first.json)
    assert count(Post) == 1
    clock.now += 2
    third = client.post(PATH, **sent)
    assert (third.status_code, count(Post)) == (201, 2)
    assert client.post(PATH, **sent).json == third.json


def test_a_repeat_creates_a_post_if_the_first_was_deleted_or_the_key_differs(client, app, count):
    first = client.post(PATH, data={"content": "A"})
    client.delete("/v1/posts/1")
    second = client.post(PATH, data={"content": "A"})
    assert (second.status_code, client.post(PATH, data={"content": "A"}).json) == (201, second.json)
    assert second.json != first.json
    assert with_key(app).post(PATH, data={"content": "A"}).status_code == 201
    assert count(Post) == 2


def test_an_idempotency_key_lasts_a_day_and_overrides_the_content(client, clock, count):
    def post(key, content="A"):
        return client.post(PATH, data={"content": content}, headers={"Idempotency-Key": key})

    first = post("a")
    clock.now += 80_000
    assert post("a").json == first.json
    assert bad(post("a", "B")) == "Idempotency-Key: was used for another request within the last 24 hours"
    assert post("b").status_code == 201
    assert bad(post("x" * 256)) == "Idempotency-Key: must have 1 to 255 visible ASCII characters"
    assert count(Post) == 2
