"""Markdown files from other programs: the slug, date, status and image of their posts."""

import pytest

from blogapi.wings.transfer.items import Failure, Note
from tests.blogs import read, write_files
from tests.cases import cases
from tests.timing import time_limit

# The slug


@cases(
    ("text", "name", "slug"),
    ("slug: b", "2020-01-02-a.md", "b"),
    ("slug: Große Pläne", "a.md", "grosse-plane"),
    ("slug: ''", "a.md", "a"),
    ("", "2020-01-02-Some_Title.md", "some-title"),
    ("", "2020-13-02-a.md", "2020-13-02-a"),
    ("", "2020-01-02.md", "2020-01-02"),
    ("", "a.b.markdown", "a-b"),
    ("", "A.MDX", "a"),
    ("", "€.md", "eur"),
    ("", "\u200b.md", "untitled"),
    ("", f"{'a' * 100}.md", "a" * 100),
    ("", f"{'ab-' * 40}c.md", "ab-" * 26 + "ab"),
    ("", "_posts/2020-1-2-trip.md", "trip"),
    ("", "2020-01-2-trip/index.md", "trip"),
    ("", "2020-01-02-trip/index.md", "trip"),
    ("", "posts/trip/index.md", "trip"),
    *((text, "a.md", "b") for text in ("slug: b\npermalink: /c/", "permalink: /2020/01/02/b.html", "path: x/b")),
    *((text, "a.md", "b") for text in ("permalink: /b/index.html", "permalink: false\nurl: /b", "postSlug: b")),
    ("url: https://a.example/x/B%20c/?q#f", "a.md", "b-c"),
    ("permalink: /2019/01/02/%C3%BCber-uns/", "a.md", "uber-uns"),
    ("url: https://a.example/", "a.md", "a"),
    *((f"permalink: {text}", "a.md", "a") for text in ("/", "pretty", "/:categories/:title.html", "[a, b]")),
    ("permalink: '/x/{{ page.fileSlug }}/'", "a.md", "a"),
)
def test_the_slug_comes_from_the_file_its_path_or_its_name(item, text, name, slug):
    assert item(f"title: A\n{text}", name).fields["slug"] == slug


@cases("text", ["---toml\ntitle = 'A'\n---\nB", '---json\n{"title": "A"}\n---\nB', "---yaml\ntitle: A\n---\nB"])
def test_front_matter_can_name_its_language(write, text):
    (item,) = read(write({"a.md": text}))
    assert (item.fields["title"], item.fields["content"]) == ("A", "B")


def test_a_slug_shared_within_a_folder_and_day_is_refused_for_the_later_file(write):
    times = {"a.md": "2020-01-01 02:00", "b.md": "2020-01-01 01:00"}
    top = write({name: f"---\nslug: x\ndate: {time}\n---\n" for name, time in times.items()})
    first, second = read(top)
    assert (first.source, first.fields["slug"]) == (f"{top}/b.md", "x")
    reason = f"{top}/b.md also has the slug x: give one of them another `slug`"
    assert second == Failure(f"{top}/a.md", 2, reason)


# The title


@cases(
    ("name", "title"),
    ("2020-01-02-my-first_post.md", "My first post"),
    ("iPhone and Wi-Fi.md", "iPhone and Wi-Fi"),
    ("über-brot.md", "Über brot"),
    ("a-trip/index.md", "A trip"),
    ("a\x1b.md", "A\ufffd"),
)
def test_a_file_without_a_title_or_a_text_gets_its_name_as_one(item, name, title):
    found = item("tags: [a]", name, content="![](a.png)")
    assert (found.fields["title"], "titles from names" in found.notes) == (title, True)


def test_a_file_without_a_title_gets_one_from_its_text(item):
    titles = {
        "Snow fell. More.": "Snow fell",
        "Words and *more* [words](a.md), so many of them that the sentence has no end in sight.": (
            "Words and more words, so many of them that the sentence has"
        ),
        "Text first.\n\n## Then a heading ##\n": "Then a heading",
        "```\n# code\n```\n\nText.": "Text",
        "Text.\n\nUnderlined\n==========\n": "Underlined",
        "<img src=a.png>\n\n> Quoted.": "Quoted",
        "今日はパンを焼いた。明日も。": "今日はパンを焼いた。",
    }
    for content, title in titles.items():
        found = item("tags: [a]", content=content)
        assert (found.fields["title"], found.notes.get("titles", "-")) == (title, None), content
    assert item("tags: [a]", content="- [ ] buy flour").fields["title"] == "A"
    assert item("tags: [a]", content="# Heading\n").fields["title"] == "Heading"
    assert item("tags: [a]", "_posts/2020-01-02-my-post.md", content="Text.").fields["title"] == "My post"  # Jekyll


# The date and the status


@cases(
    ("text", "name", "published_at", "status"),
    ("date: 2020-01-02", "2019-01-02-a.md", "2020-01-02T00:00:00Z", "published"),
    ("permalink: /2018/01/02/a", "2019-01-02-a.md", "2019-01-02T00:00:00Z", "published"),
    ("permalink: /2018/01/02/a", "a.md", "2018-01-02T00:00:00Z", "published"),
    ("url: https://a.example/blog/2018/01/02/", "a.md", "2018-01-02T00:00:00Z", "published"),
    ("permalink: /2018/13/02/a", "a.md", None, None),
    ("", "2019-01-2-a/index.md", "2019-01-02T00:00:00Z", "published"),
    ("", "_posts/2019-1-2-a.md", "2019-01-02T00:00:00Z", "published"),
    ("", "2019-01-02.md", None, None),  # a daily note, which nobody means to publish
    ("", "a.md", None, None),
    ("date: 2020-01-02\ndraft: true", "a.md", "2020-01-02T00:00:00Z", "draft"),
    ("date: 2020-01-02\nstatus: archived", "a.md", "2020-01-02T00:00:00Z", "archived"),
    ("date: 2020-01-02", "x/_drafts/y/a.md", "2020-01-02T00:00:00Z", "draft"),
    ("", "drafts/a.md", None, "draft"),
    ("draft: false", "drafts/a.md", None, "published"),
    ("date: 2026-11-20T12:00:00Z", "a.md", "2026-11-20T12:00:00Z", "published"),
    ("date: 2026-11-20T12:00:01Z", "a.md", "2026-11-20T12:00:01Z", "scheduled"),
    ("date: 2027-01-01\ndraft: false", "a.md", "2027-01-01T00:00:00Z", "scheduled"),
    ("date: 2026-01-01\nstatus: scheduled", "a.md", "2026-01-01T00:00:00Z", "published"),
    ("date: 2027-01-01\ndraft: true", "a.md", None, "draft"),
    ("status: scheduled", "a.md", None, "scheduled"),
    ("Date: 2020-01-02\nDraft: true", "a.md", "2020-01-02T00:00:00Z", "draft"),
    ("date: 2023-01-29 18:30:22 2023 -0800", "a.md", "2023-01-30T02:30:22Z", "published"),  # Jekyll
    ("pubDatetime: 2022-09-23T15:22:00Z", "a.md", "2022-09-23T15:22:00Z", "published"),  # Astro themes
    ("published: true", "_posts/a.md", None, "published"),
    ("published: 2020-04-28", "a.md", "2020-04-28T00:00:00Z", "published"),
    ("published: 2020-04-28 10:00\ndraft: true", "a.md", "2020-04-28T10:00:00Z", "draft"),
    ("slug: 2019-01-02-a\nstatus: draft\nid: 1\ncreated_at: 2020-01-02", "2019-01-02-a.md", None, "draft"),
)
def test_the_date_and_the_status_are_derived_from_the_file(item, text, name, published_at, status):
    fields = item(f"title: A\n{text}", name).fields
    assert (fields.get("published_at"), fields.get("status")) == (published_at, status)


POST = "---\ntitle: A\n{}\n---\nA"
OF_UNKNOWN = {  # front matter, and its status without and with `publish`
    "date: 2020-01-02": (None, "published"),
    "date: 2027-01-02": (None, "scheduled"),
    "published: 2020-01-02": (None, "published"),
    "date: 2020-01-02\nstatus: published": ("published", "published"),
    "date: 2020-01-02\ndraft: false": ("published", "published"),
    "published_at: 2020-01-02\ncreated_at: 2020-01-02\nslug: a\nid: 1": (None, "published"),  # its status was removed
    "date: 2020-01-02\ndraft: true": ("draft", "draft"),
    "date: 2020-01-02\nunlisted: true": ("draft", "draft"),
    "tags: a": (None, None),
}
SITES = ("a/_config.yml", "a/hugo.toml", "a/_posts/b.md", "a/.eleventy.js", "a/quartz.config.ts")
NOTES = ("a/.obsidian/app.json", "a/logseq/config.edn")  # Most notes with a date are private.


def test_a_date_publishes_a_file_only_if_its_program_is_known_or_the_user_says_so(tmp_path):
    for number, (text, statuses) in enumerate(OF_UNKNOWN.items()):
        top = write_files(tmp_path / str(number), {"a.md": POST.format(text)})
        items = [read(top, publish=publish)[0] for publish in (False, True)]
        assert tuple(item.fields.get("status") for item in items) == statuses, text
        assert [Note.NOT_PUBLISHED in item.notes for item in items] == [statuses[0] != statuses[1], False], text
    for number, site in enumerate(SITES, 100):
        post = site if site.endswith(".md") else "a/b.md"
        top = write_files(tmp_path / str(number), {site: "", post: POST.format("date: 2020-01-02")})
        assert read(top, publish=False)[0].fields["status"] == "published", site
    for number, notes in enumerate(NOTES, 200):
        files = {notes: "{}", "a/b.md": POST.format("date: 2020-01-02")}
        top = write_files(tmp_path / str(number), files)
        assert "status" not in read(top, publish=False)[0].fields, notes
        (item,) = read(write_files(top, {"hugo.toml": ""}), publish=False)
        assert (item.fields["status"], item.file.program.name) == ("published", "Hugo"), notes


@cases(
    ("text", "created_at"),
    ("created_at: 2019-01-02 03:04\ndate: 2020-01-02", "2019-01-02T03:04:00Z"),
    ("date: 2020-01-02", "2020-01-02T00:00:00Z"),
    ("date: 2027-01-02", None),
    ("created_at: 2027-01-02", None),
    ("created_at: 2027-01-02\ndate: 2020-01-02", "2020-01-02T00:00:00Z"),
    ("slug: a", None),
)
def test_the_creation_time_comes_from_the_file_or_else_from_the_publication(item, text, created_at):
    assert item(f"title: A\n{text}").created_at == created_at


def test_an_invalid_creation_time_is_refused(item):
    refused = item("title: A\ncreated_at: long ago")
    assert (refused.line, refused.reason[:28]) == (3, "`created_at` must be a date ")


@pytest.mark.parametrize(("given", "status"), [("drafts", "draft"), ("drafts/blog", None), ("drafts/blog/a.md", None)])
def test_a_folder_above_the_given_ones_does_not_make_drafts(write, given, status):
    top = write({"drafts/blog/a.md": "# A"})
    assert [item.fields.get("status") for item in read(top / given)] == [status]


@pytest.mark.parametrize(
    ("texts", "slugs"),
    [
        (["", "date: 2027-01-01", "created_at: 2021-01-01", "date: 2020-01-01"], "dcba"),
        ([f"created_at: 2021-01-01\nid: {number}" for number in ("10", "'9'", "x", "-1", "1" * 30)], "cdeba"),
    ],
    ids=["by date, then future ones, then undated ones", "of one second, by id"],
)
def test_posts_are_ordered(write, texts, slugs):
    top = write({f"{name}.md": f"---\n{text}\n---\n" for name, text in zip("abcde", texts, strict=False)})
    assert [item.fields["slug"] for item in read(top)] == [*slugs]


@cases(
    ("text", "cover_image", "notes", "params"),
    ("image: HTTPS://a.example/b.png", "HTTPS://a.example/b.png", {}, None),
    ("image: /b.png", None, {"covers": 3}, {"image": "/b.png"}),
    ("cover_image: /b.png", None, {"covers": 3}, {"cover_image": "/b.png"}),
    ("image: https://a.example/b c.png", None, {"covers": 3}, {"image": "https://a.example/b c.png"}),
    ("image: [https://a.example/b, c]", "https://a.example/b", {}, {"image": ["https://a.example/b", "c"]}),
    ("cover: [{src: 'https://a.example/b'}]", "https://a.example/b", {}, None),
    ("image: []", None, {}, None),
    ("image: true", None, {}, {"image": True}),
    ("excerpt: A\ndescription: B", None, {}, {"description": "B"}),
    ("image: https://a.example/b\ncover: c.png", "https://a.example/b", {}, {"cover": "c.png"}),
    ("date: 2027-01-01\ndraft: true", None, {"future dates": 3}, None),
    ("image: b.png\nlayout: c", None, {"covers": 3}, {"layout": "c", "image": "b.png"}),
    ("heroImage: b.png", None, {"covers": 3}, {"heroImage": "b.png"}),
    ("heroImage: https://a.example/b", "https://a.example/b", {}, {"heroImage": "https://a.example/b"}),
    ("heroImage: a.png\nimage: https://b", "https://b", {}, {"heroImage": "a.png"}),
    ("cover: {image: HTTP://a, alt: B}", "HTTP://a", {}, {"cover": {"image": "HTTP://a", "alt": "B"}}),
    ("cover: {image: '', alt: B}", None, {}, {"cover": {"image": "", "alt": "B"}}),
    ("taxonomies: {authors: [a], TAGS: [b]}", None, {}, {"taxonomies": {"authors": ["a"]}}),
    ("taxonomies: [a]", None, {}, {"taxonomies": ["a"]}),
    ("pubDatetime: 2022-09-23\nmodDatetime: 2023-01-01", None, {}, {"modDatetime": "2023-01-01"}),
)
def test_names_without_a_field_are_kept(item, text, cover_image, notes, params):
    read_item = item(f"title: A\n{text}")
    found = read_item.fields.get("cover_image"), read_item.notes, read_item.fields.get("params")
    assert found == (cover_image, notes, params)


def test_a_post_without_text_gets_its_link_or_list_as_text(item):
    texts = {
        "external: https://example.org/a": "<https://example.org/a>",
        "books: [{name: X, url: 'https://x.example/'}, Y]": "* X <https://x.example/>\n* Y",
        "description: Few words": "Few words",
        "image: https://example.org/a.png": "![](https://example.org/a.png)",
        "canonical_url: https://example.org/\naliases: [/a/]\nlayout: post": "",
    }
    for line, text in texts.items():
        found = item(f"title: A\n{line}", content="")
        assert (found.fields["content"], Note.NO_TEXT in found.notes) == (text, bool(text)), line


@cases("blank", ["\n", "\r\n \t\n\n", " "])
@cases(("marks", "sign"), [("---", ":"), ("+++", "=")])
def test_front_matter_may_follow_white_space(write, blank, marks, sign):
    (item,) = read(write({"a.md": f"{blank}{marks}\ntitle{sign} 'A'\nnot_ours{sign} 1\n{marks}\nWords."}))
    lines = blank.count("\n")
    assert (item.fields["title"], item.fields["content"]) == ("A", "Words.")
    assert (item.file.line_of("not_ours"), item.file.content_line) == (3 + lines, 5 + lines)


# Content that the author should check


@cases(
    ("content", "notes"),
    ("![a](b.png)", [("relative images", 5)]),
    ("\n<img alt='' src='/b.png'>", [("relative images", 6), ("HTML", 6)]),
    ("![a]\n\n[a]: b.jpg 'B'", [("relative images", 7)]),
    ("![a](https://a.example/b.png) ![](//b.example/c) ![](data:,)", []),
    ("{{< figure src=x >}}", [("shortcodes", 5)]),
    ("a\n\n{% include x %}", [("shortcodes", 7)]),
    ("[gallery ids='1'] [caption]", [("shortcodes", 5)]),
    ("a\n\nimport Chart from '../Chart.astro';", [("shortcodes", 7)]),
    ("[[Note]] [a](b.md)", [("wiki links", 5), ("links to files", 5)]),
    ("a\n[a](b.pdf)", [("links to files", 6)]),
    ("[![a](https://b.example/b.png)](../c.JPG 'd')", [("links to files", 5)]),
    ("[a](/b.pdf) [a](https://c/d.pdf) [a](//c/d.pdf) [a](#e.pdf) [a](f/) [a](g.html)", []),
    ("a<br>b <https://a.example/> 1 < 2", [("HTML", 5)]),
    ("\\</script> \\<b>", []),
    ("```\n![a](b.png) {{ c }} <br>\n```\n`[[d]]`", []),
    ("~~~\n<br>", []),
)
def test_content_that_works_only_on_one_site_is_reported_with_its_line(item, content, notes):
    assert list(item("title: A", content=content).notes.items()) == notes


@cases("content", ["`" * 200_000, "~" * 200_000, "![" * 100_000, "[a](b" * 50_000, "`a" * 100_000, "<img " * 50_000])
def test_hostile_content_is_read_quickly(item, content):
    with time_limit(2):
        item("title: A", content=content)
