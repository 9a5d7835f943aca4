"""Posts as Markdown files: what front matter may contain, and that reading a written file returns the same post."""

import yaml
from hypothesis import given
from hypothesis import strategies as st

from blogapi.markdown.files import ReadOptions, block, parse, read_block, render
from blogapi.markdown.programs import OURS
from tests.cases import cases
from tests.markdown.texts import FIELDS, NAMES, VALUES, front

POST = {
    "id": "12",
    "title": "Hello world",
    "status": "published",
    "slug": "hello-world",
    "content": "# Hello\n\nMy first post.\n",
    "excerpt": "What it is about",
    "tags": ["python", "Zwei Wörter"],
    "cover_image": "https://example.com/a.png",
    "published_at": "2026-11-20T10:10:00Z",
    "created_at": "2026-11-19T08:00:00Z",
    "updated_at": "2026-11-21T08:00:00Z",
}
WRITTEN = b"""\
---
title: Hello world
slug: hello-world
status: published
published_at: 2026-11-20T10:10:00Z
created_at: 2026-11-19T08:00:00Z
tags: [python, Zwei W\xc3\xb6rter]
excerpt: What it is about
cover_image: https://example.com/a.png
id: "12"
---

# Hello

My first post.
"""


def fields(text, mark="---"):
    """The fields from this front matter."""
    read = parse(front(text, mark=mark), ReadOptions(None, keeps_others=False)).fields
    return {name: read[name] for name in read if name != "content"}


# Writing


def test_a_post_is_written_as_a_person_would_without_fields_that_have_no_value():
    assert render(POST) == WRITTEN
    post = {"id": "a", "title": "A", "status": "draft", "slug": "a", "content": "B", "tags": [], "created_at": "2026"}
    assert render(post) == b"---\ntitle: A\nslug: a\nstatus: draft\ncreated_at: 2026\nid: a\n---\n\nB"


UNQUOTED = ["Don't", "C# and F#", "a, b [c] {d}", "Schöne Grüße", "日本語", "Hi 🌍"]
QUOTED = ["It's a day: really", "One # two", "ends:", "yes", "Null", "2024", "1e3", "0o17", ".inf", "2026-11-20"]
QUOTED += ["12:30:45", "~", "- a"]


@cases(
    ("title", "written"),
    *((title, title) for title in UNQUOTED),
    *((title, f'"{title}"') for title in QUOTED),
    ('"x"', '"\\"x\\""'),
    ("\ufeffa\u2028b\tc\r\n", '"\\ufeffa\\u2028b\\tc\\r\\n"'),
)
def test_text_is_quoted_only_if_yaml_could_read_it_as_something_else(title, written):
    assert render(POST | {"title": title}).decode().splitlines()[1:2] == [f"title: {written}"]


TIME = st.datetimes().map(lambda moment: moment.replace(microsecond=0).isoformat() + "Z")
SLUG = st.from_regex("[a-z0-9]+(-[a-z0-9]+)*", fullmatch=True)
STATUS = st.sampled_from(["draft", "archived"])
OTHERS = st.fixed_dictionaries({"status": STATUS}, optional={"slug": SLUG, "published_at": TIME, "created_at": TIME})
POSTS = st.builds(
    lambda some, others: {name: value for name, value in (some | others).items() if value}, FIELDS, OTHERS
)


@given(POSTS)
def test_a_written_post_reads_as_the_same_post_with_any_text_and_params(post):
    document = parse(render(post), ReadOptions(program=OURS))
    assert document.fields | {"created_at": document.created_at} == {"created_at": None} | post
    assert repr(document.fields.get("params")) == repr(post.get("params"))  # 1 is not True


@given(POSTS.filter(lambda post: "created_at" not in post and "published_at" not in post))
def test_pyyaml_reads_the_same_texts_and_params(post):
    written = render(post).decode()
    end = written.index("\n---\n\n")
    read = yaml.safe_load(written[4:end])
    assert read == {name: value for name, value in post.items() if name != "content"}
    assert repr(read.get("params")) == repr(post.get("params"))
    assert written[end + 6 :] == post["content"]


@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=4))
def test_params_written_on_their_own_read_as_the_same_params(params):
    assert repr(read_block(block(params))) == repr(params)  # 1 is not True


# Reading


@cases(
    ("text", "expected"),
    ("title: yes", {"title": "yes"}),
    ("title: 0x1F # sixteen and fifteen", {"title": "0x1F"}),
    ("title: ~", {"title": "~"}),
    ("title: '---'", {"title": "---"}),
    ("title: >-\n  one\n  two", {"title": "one two"}),
    ("{title: A, slug: b}", {"title": "A", "slug": "b"}),
    ("tags: [a, 2, yes]", {"tags": ["a", "2", "yes"]}),
    ("tags:\n- a\n- b c", {"tags": ["a", "b c"]}),
    ("tags: a b, c ,, d", {"tags": ["a b", "c", "d"]}),
    ("tags: []", {}),
    ("tags:\n- \n- a", {"tags": ["a"]}),
    ("category: b\ncategories: [c, d]\ntags: a", {"tags": ["a", "c", "d", "b"]}),
    ("published_at: 2026-11-20 10:10", {"published_at": "2026-11-20T10:10:00Z"}),
    ("publishDate: 2015-02-13 10:00:00 +0100", {"published_at": "2015-02-13T09:00:00Z"}),
    ("pubDate: 2015-02-13T10:00:00.000Z", {"published_at": "2015-02-13T10:00:00Z"}),
    ("date: 2001-12-14 21:59:43.10 -5", {"published_at": "2001-12-15T02:59:43Z"}),
    ("date: 2013/7/3 9:05:00", {"published_at": "2013-07-03T09:05:00Z"}),
    ("date: May 4, 2019, 0:00:01 EST", {"published_at": "2019-05-04T05:00:01Z"}),
    ("date: 'Sat, 4 May 2019 10:00:00 -02:30'", {"published_at": "2019-05-04T12:30:00Z"}),
    ("date: 2026-11-20\npubDate: 2026-11-20T01:00+01:00", {"published_at": "2026-11-20T00:00:00Z"}),
    ("published: no", {"status": "draft"}),
    ("published: true\ndraft: false\nstatus: published", {"status": "published"}),
    ("description: S\nsummary: S\nexcerpt:", {"excerpt": "S"}),
    ("image: https://a.example/b", {"cover_image": "https://a.example/b"}),
    ("cover: {url: https://a.example/b, alt: B}", {"cover_image": "https://a.example/b"}),
    ("featured_image:\n  src: /b.png", {"cover_image": "/b.png"}),
    ("feature_image: ''\nslug:\ndate:\ndraft:", {}),
    ("id: 7\ncreated_at: never", {}),
    ("# nothing", {}),
)
def test_yaml_gives_fields(text, expected):
    assert fields(text) == expected


@cases(
    ("text", "expected"),
    ('title = "A"\ntags = ["a", "b"]', {"title": "A", "tags": ["a", "b"]}),
    ("title = 1_000", {"title": "1_000"}),
    ("title = 0x10 # sixteen", {"title": "0x10"}),
    ("title = 1979-05-27 07:32:00.50", {"title": "1979-05-27 07:32:00.50"}),
    ('title = \'a = 1\'\nslug = "b\\" = 2"', {"title": "a = 1", "slug": 'b" = 2'}),
    ('title = """\n[1, 2]\n= 3"""', {"title": "[1, 2]\n= 3"}),
    ("title = '''it's = 4'''", {"title": "it's = 4"}),
    ("tags = [ 2024, # [1,\n  1e3, 'x', \"y\" ,\n]", {"tags": ["2024", "1e3", "x", "y"]}),
    ("tags = [2024]\r\ntitle = 7", {"tags": ["2024"], "title": "7"}),
    ("date = 2015-02-13T10:00:00+01:00", {"published_at": "2015-02-13T09:00:00Z"}),
    ("draft = false", {"status": "published"}),
    ("date = 2015-02-13 10:00:00", {"published_at": "2015-02-13T10:00:00Z"}),
    ("cover = { src = 'a', width = 10 }", {"cover_image": "a"}),
    ("cover.url = 1\ncover.width = 2", {"cover_image": "1"}),
    ("[cover]\nurl = 1.50", {"cover_image": "1.50"}),
)
def test_toml_gives_fields_as_they_are_written(text, expected):
    assert fields(text, mark="+++") == expected


@cases(
    ("data", "content"),
    (b"---\ntitle: A\n---\n\nB", "B"),
    (b"---\ntitle: A\n---\nB", "B"),
    (b"---\ntitle: A\n...\nB", "B"),
    (b"---\ntitle: A\n---\n\n\nB", "\nB"),
    (b"---\r\ntitle: A\r\n---\r\n\r\nB\r\nC\r\n", "B\r\nC\r\n"),
    (b"---  \ntitle: A\n--- \t\n\n---\n---\n", "---\n---\n"),
    (b"---\ntitle: A\n---\n\rB\nC", "\rB\nC"),
    (b"---\ntitle: A\n---", ""),
    (b"---\n---\nB", "B"),
    (b"\xef\xbb\xbf---\ntitle: A\n---\n\n\xef\xbb\xbfB", "\ufeffB"),
    (b"\xef\xbb\xbfB", "B"),
    (b"+++\ntitle = 'A'\n+++\n\nB", "B"),
    (b"----\n", "----\n"),
    *((text.encode(), text) for text in ("--- a\n", "", "{% include a %}\nText", "{{< a >}}", '{"a"}', "{a: b}")),
)
def test_everything_after_the_front_matter_is_content_byte_for_byte(data, content):
    assert parse(data).fields["content"] == content


def test_in_a_request_front_matter_must_come_first():
    data = b"\n---\ntitle: A\n---\n"
    assert parse(data, ReadOptions(None, keeps_others=False)).fields == {"content": data.decode()}


@cases(
    ("content", "title"),
    ("# Hello\n\nB", "Hello"),
    ("\n\u200b\n   # Hello *you* ##  \r\nB", "Hello *you*"),
    ("#\tC# \n", "C#"),
    ("# Hello#", "Hello#"),
    ("# # \n", None),
    ("B\n# Hello", None),
    ("<!-- a -->\n# Hello", None),
    ("## Hello\n# Hello", None),
    ("#Hello", None),
    ("    # Hello", None),
    ("#\n# Hello", None),
    ("# ##\nB", None),
    ("", None),
)
def test_without_a_title_the_heading_at_the_start_of_the_content_becomes_the_title(content, title):
    expected = {"content": content} | ({"title": title} if title else {})
    assert parse(content.encode()).fields == expected
    assert parse(front("status: draft", content)).fields == expected | {"status": "draft"}
    assert parse(front("title: A", content)).fields == {"title": "A", "content": content}


def test_unknown_names_in_yaml_are_returned_with_their_lines():
    document = parse(front("layout: post\ntitle: A\nextra:\n  a: [1, {b: c}]\nempty:\ncontent: X"))
    assert document.others == {"layout": "post", "extra": {"a": ["1", {"b": "c"}]}, "empty": "", "content": "X"}
    assert document.lines == {"layout": 2, "title": 3, "extra": 4, "empty": 6, "content": 7}
    params = {"layout": "post", "extra": {"a": [1, {"b": "c"}]}, "content": "X"}
    assert document.fields == {"title": "A", "content": "Words.", "params": params}


def test_unknown_names_in_toml_are_returned_with_their_lines():
    document = parse(front("title = 'A'\nweight = 1\n\n[extra]\na = [1, {b = 2.50}]\n[[more]]\n", mark="+++"))
    assert document.others == {"weight": "1", "extra": {"a": ["1", {"b": "2.50"}]}, "more": [{}]}
    assert [document.lines[name] for name in ("title", "weight", "extra", "more")] == [2, 3, 5, 7]


@cases("name", ["heroImage", "pubDatetime", "postSlug", "date", "description", "Title", "tag", "lastmod", "permalink"])
def test_a_flat_file_keeps_names_with_a_meaning_at_the_top_level_under_params(name):
    post = {"title": "A", "slug": "a", "status": "draft", "content": "B", "tags": [], "params": {name: "x", "own": "y"}}
    post |= {"id": "1", "created_at": "2020-01-02T03:04:05Z"}
    fields = parse(render(post, flat=True)).fields
    assert (fields["params"], fields.get("cover_image"), fields["slug"]) == ({"own": "y", name: "x"}, None, "a")


# Front matter that is a JSON object without delimiters, as in Hugo

JSON = '{\n\t"title": "A \\"b\\" {",\r\n  "date": "2020-01-02",\n  "draft": false, "tags": ["x"], "url": "a\\/b",\n' + (
    '  "weight": 10, "ratio": 1.5, "on": true, "none": null, "emoji": "\\ud83d\\ude00"\n}\n\nText {of} it.\n'
)


def test_a_json_object_is_front_matter():
    file = parse(JSON.encode())
    assert file.fields == {
        "title": 'A "b" {',
        "published_at": "2020-01-02T00:00:00Z",
        "status": "published",
        "tags": ["x"],
        "params": {"url": "a/b", "weight": 10, "ratio": 1.5, "on": True, "emoji": "\U0001f600"},
        "content": "Text {of} it.\n",
    }
    assert [file.line_of(name) for name in ("title", "published_at", "weight")] == [2, 3, 5]
    assert file.content_line == 8
