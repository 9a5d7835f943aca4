"""Peculiarities of other programs that an import understands, shortens or reports rather than refuses."""

import json

import pytest

from blogapi.markdown.html import markdown_of, safe_markdown_of
from tests.blogs import open_sources, read
from tests.cases import cases

# Status and dates


@cases(
    ("text", "status", "params"),
    ("status: publish\npublished: true", "published", None),
    ("status: Pending\npublished: false", "draft", None),
    ("status: private", "draft", None),
    ("status: future\ndate: 2027-01-01", "scheduled", None),
    ("status: publish\ndraft: true", "draft", {"status": "publish"}),
    ("status: draft\ndraft: false", "draft", None),
    ("status: archived\npublished: false", "archived", None),
    ("draft: 1\ndate: 2020-01-02", "draft", None),
    ("published: 1", "published", None),
    ("status: evergreen\ndate: 2020-01-02", "draft", {"status": "evergreen"}),
)
def test_status_words_of_other_programs_are_understood(item, text, status, params):
    fields = item(f"title: A\n{text}").fields
    assert (fields["status"], fields.get("params")) == (status, params)


def test_a_word_of_a_workflow_is_no_status_and_the_draft_is_named_but_a_push_refuses_it(item):
    assert item("title: A\nstatus: evergreen").notes == {"hidden": (3, "status: evergreen")}
    assert item("title: A\nstatus: evergreen", is_movable=True).fields["status"] == "evergreen"


def test_null_is_left_out(item):
    fields = item("title: A\ndate: null\ncover_image: ~\ntags: [null, b, '']\ncategory: null\nother: null").fields
    assert fields == {"title": "A", "slug": "a", "tags": ["b"], "content": "Words."}


def test_a_file_in_the_trash_is_left_out(write):
    with open_sources(write({"a.md": "---\nstatus: trash\n---\nA"}) / "a.md") as sources:
        assert (len(sources), sources.left_out) == (0, {"post (trash)": 1})


@cases(
    ("text", "published_at", "params"),
    ("date: 2020-01-18\npublishDate: 2020-01-19", "2020-01-19T00:00:00Z", {"date": "2020-01-18"}),
    ("pubDate: 2020-01-01\ndate: 2020-01-02", "2020-01-01T00:00:00Z", {"date": "2020-01-02"}),
    ("date: 2020-01-18\npublishDate: 2020-01-18T00:00:00Z", "2020-01-18T00:00:00Z", None),
)
def test_of_two_dates_the_publication_date_counts_and_the_other_is_kept(item, text, published_at, params):
    fields = item(text).fields
    assert (fields["published_at"], fields.get("params")) == (published_at, params)


@cases(
    ("text", "published_at"),
    ("date: 2020-01-02 23:00", "2020-01-03T04:00:00Z"),
    ("date: 2020-01-03 02:00:00 +0000", "2020-01-03T02:00:00Z"),
    ("", "2020-01-02T05:00:00Z"),
)
def test_times_and_addresses_are_in_the_zone_of_the_site(item, text, published_at):
    found = item(text, "_posts/2020-01-02-a.md", others={"_config.yml": "timezone: America/New_York"})
    assert (found.fields["published_at"], found.old_paths) == (published_at, ("/2020/01/02/a.html",))


# Shortening


def long_list(count):
    return ", ".join(f"v{number}" for number in range(count))


@cases(
    ("text", "notes", "fields"),
    (f"excerpt: {'word ' * 250}", {"long texts": 3}, {"excerpt": ("word " * 200).strip()}),
    (f"description: {'x' * 1001}", {"long texts": 3}, {"excerpt": "x" * 1000}),
    (f"tags: [{'x' * 65}, b]", {"many tags": 3}, {"tags": ["x" * 64, "b"]}),
    (f"tags: [{'x' * 65}, b, B]", {"many tags": 3}, {"tags": ["x" * 64, "b"]}),
    (f"tags: [{long_list(61)}]", {"many tags": 3}, {"tags": long_list(50).split(", ")}),
    ('a: "x\\x85y"\nb: {"\\x80c": [1]}', {"control characters": None}, {"params": {"a": "xy", "b": {"c": [1]}}}),
    (f"a: 1\n? {'b' * 65}\n: 2", {"large params": (4, f"`{'b' * 40}…`")}, {"params": {"a": 1}}),
    (f"a: 1\nb: {{c: 2, ? {'d' * 65} : 3}}", {"large params": (4, "`b`")}, {"params": {"a": 1, "b": {"c": 2}}}),
    (f"a: {'x' * 9000}\nb: {'y' * 30000}", {"large params": (4, "`b`")}, {"params": {"a": "x" * 9000}}),
    (f"a: [{long_list(600)}]\nb: 1", {"large params": (3, "`a`")}, {"params": {"b": 1}}),
    ("a: [[[[[[[[[1]]]]]]]]]\nb: .inf\nc: 1", {"large params": (3, "`a`, `b`")}, {"params": {"c": 1}}),
)
def test_values_that_are_too_long_are_shortened_and_reported_with_their_line(item, text, notes, fields):
    found = item(f"title: A\n{text}")
    assert {**found.notes} == notes
    assert fields.items() <= found.fields.items()


def test_params_keep_shortened_values_in_full(item):
    title, excerpt = "title " * 60, "word " * 300
    fields = item(f"title: {title}\nexcerpt: {excerpt}\nlayout: x").fields
    assert fields["params"] == {"layout": "x", "title": title.strip(), "excerpt": excerpt.strip()}
    assert len(fields["title"]) <= 255


# Slugs and old addresses


@pytest.mark.parametrize(
    ("files", "slugs"),
    [
        ({"de/a.md": "", "en/a.md": ""}, ["de-a", "en-a"]),
        ({"x/2020/a.md": "", "y/2020/a.md": "", "b.md": ""}, ["b", "x-2020-a", "y-2020-a"]),
        ({"de/a/index.md": "", "en/a/index.md": ""}, ["de-a", "en-a"]),
        ({"a/index.de.md": "", "a/index.en.md": "", "index.md": ""}, ["a-de", "a-en", "blog"]),
        ({"x/de/a.md": "", "x/en/a.md": "", "de-a.md": ""}, ["blog-de-a", "en-a", "x-de-a"]),
        ({"de/posts/a.md": "", "en/src/a.md": ""}, ["de-a", "en-a"]),
        (
            {f"{name}/_posts/{day}-a.md": "" for name in ("de", "en") for day in ("2013-08-29", "2014-09-10")},
            ["2013-08-29-de-a", "2013-08-29-en-a", "2014-09-10-de-a", "2014-09-10-en-a"],
        ),
        ({"a.md": "path: 2020/01/02/x", "b.md": "path: 2020/01/01/x"}, ["2020-01-01-x", "2020-01-02-x"]),
        ({"hello/index.md": "slug: hello", "hello/index.fr.md": "slug: hello"}, ["fr-hello", "hello"]),
        ({"a.de.md": "slug: a", "a.en.md": "slug: a"}, ["de-a", "en-a"]),
        ({"x/a.md": "slug: a\nlang: pt-BR", "y/a.md": "slug: a"}, ["a", "pt-br-a"]),
        ({"x.md": 'path: "de/one"', "one.md": "title: One"}, ["de-one", "one"]),
        ({"x.md": "permalink: guide/guide/", "guide/index.md": "title: B"}, ["guide", "guide-guide"]),
    ],
)
def test_posts_with_the_same_slug_get_their_folder_date_language_or_path_in_front(tmp_path, write, files, slugs):
    write({f"blog/{name}": f"---\n{text}\n---\n# A" for name, text in files.items()})
    found = [item.fields["slug"] for item in read(tmp_path / "blog")]
    assert sorted(slug.removeprefix(f"{tmp_path.name}-".replace("_", "-")) for slug in found) == slugs


def test_an_old_address_leads_to_one_post_and_never_away_from_another(write):
    aliases = "aliases: [/old/, /b/]"
    top = write({"a.md": f"---\n{aliases}\ndate: 2020-01-01\n---\nA", "b.md": f"---\n{aliases}\n---\nB"})
    first, second = read(top)
    assert (first.old_paths, second.old_paths) == (("/old/",), ("/b/",))
    assert "shared URLs" in first.notes
    assert "shared URLs" in second.notes


# Images


IMAGES = [
    '![says "ok [done]"](a.png)',
    "![by [someone](https://a.example) here](a.png 'title')",
    "![two\nlines](<a.png>)",
    "![escaped \\] bracket](a.png)",
    "![a][b]\n\n[b]: a.png",
    "- a\n\n\t![a](a.png)",
    "> ![a](a.png)",
    "| a |\n|---|\n| ![b](a.png) |",
    "[![a](a.png)](https://a.example)",
    '<img alt="" src="a.png" srcset="a.png 1x,a.png 2x">',
    "<video poster=a.png></video>",
    "![a](a.png?b=1&amp;c=2)",
    "[^1]: ![a](a.png)\n\nA[^1]",
    '<div markdown="1">\n![a](a.png)\n</div>',
]
CODE = [
    "    ![a](a.png)",
    "`` a ` ![a](a.png) ``",
    "> ```\n> ![a](a.png)\n> ```",
    "- ~~~\n  <img src=a.png>\n  ~~~",
    "\\![a](a.png)",
    "<pre>\n![a](a.png)\n</pre>",
    "![a\n\nb](a.png)",
    "\\<img src=a.png>",
]


@cases("content", [*IMAGES, *(text.replace("\n", "\r\n") for text in IMAGES)])
def test_images_are_found_where_markdown_shows_them(item, content):
    made = item("title: A", content=content, site="https://a.example").fields["content"]
    assert made.count("https://a.example/a.png") == content.count("a.png")
    assert made.replace("https://a.example/a.png", "a.png") == content.replace("&amp;", "&")


@cases("content", CODE)
def test_text_that_only_looks_like_an_image_stays(item, content):
    found = item("title: A", content=content, site="https://a.example")
    assert found.fields["content"] == content
    assert "relative images" not in found.notes


@cases(
    ("text", "content", "made"),
    ("image: /b.png", "![a](/c.png)", "![a](https://a.example/x/c.png)"),
    ("image: ../b.png", '<img src="c.png">\n`![a](b)`', '<img src="https://a.example/x/posts/c.png">\n`![a](b)`'),
    ("image: https://a.example/x/b.png", "[a]: ./c.png", "[a]: https://a.example/x/posts/c.png"),
)
def test_relative_images_become_absolute_below_a_base_url(item, text, content, made):
    fields = item(f"title: A\n{text}", "posts/a.md", content, site="https://a.example/x").fields
    assert (fields["content"], fields["cover_image"]) == (made, "https://a.example/x/b.png")


def test_a_cover_that_is_not_an_address_is_dropped_with_a_base_url(item):
    fields = item("image: 'x://['", site="https://a.example").fields
    assert ("cover_image" in fields, fields["params"]) == (False, {"image": "x://["})


# WordPress and Ghost


@cases(
    ("content", "markdown"),
    ('[code language="c++"]\nif a &lt; b:\n\n    x * y\n[/code]', "```c++\nif a < b:\n\n    x * y\n```\n"),
    ("a\n\n[sourcecode gutter='false' lang='css']a{}[/sourcecode]", "a\n\n```css\na{}\n```\n"),
    ("The [code] shortcode", "The [code] shortcode\n"),
    ('[caption caption="A boat"]<img src="https://b/c" />[/caption]', "![](https://b/c)\n\nA boat\n"),
    ("One.\n<!--more-->\nTwo.", "One.\n\n<!--more-->\n\nTwo.\n"),
    ("<script src='https://a.example/b.js'></script>", '<script src="https://a.example/b.js"></script>\n'),
    ('a\n\n[caption id="b"]<a href="/c"><img src="/d" /></a> A <em>e</em>[/caption]', "a\n\n[![](/d)](/c)\n\nA *e*\n"),
    ("So" + "\x0b" * 100_000 + "on.", "Soon.\n"),
    # Bare lines become paragraphs and line breaks
    ("a\nb\r\n\r\nc", "a  \nb\n\nc\n"),
    ("a\n<h2>b</h2>\nc", "a\n\n## b\n\nc\n"),
    ("<blockquote>a\n\nb</blockquote>", "> a\n>\n> b\n"),
    ("<ul>\n<li>a</li>\n<li>b</li>\n</ul>", "- a\n- b\n"),
    ("<pre>a\n\nb</pre>\nc", "```\na\n\nb\n```\n\nc\n"),
    ("<p>a\nb</p>", "a  \nb\n"),
)
def test_the_content_of_a_wordpress_post_becomes_markdown(wordpress, content, markdown):
    assert wordpress(content).fields["content"] == markdown


def test_reusable_wordpress_blocks_are_inserted_or_reported(wordpress):
    block = "<item><wp:post_type>wp_block</wp:post_type><wp:post_id>7</wp:post_id>"
    block += "<content:encoded><![CDATA[<!-- wp:paragraph --><p>Again</p>]]></content:encoded></item>"
    post = wordpress('<!-- wp:block {"ref":7} /--><!-- wp:block {"ref":8} /-->', more=block)
    assert (post.fields["content"], post.notes) == ("Again\n", {"blocks": None})


def test_a_ghost_covers_description_is_kept_and_html_cards_stay_html(read_file):
    html = "<p>a</p><!--kg-card-begin: html--><table>\n\n<tr><td>*b*</table><script>c</script><!--kg-card-end: html-->"
    posts = [{"id": "p", "title": "A", "slug": "a", "html": html}]
    meta = [{"post_id": "p", "feature_image_alt": "B", "feature_image_caption": "C"}]
    post = read_file("a.json", json.dumps({"data": {"posts": posts, "posts_meta": meta}}))
    assert post.fields["params"] == {"feature_image_alt": "B", "feature_image_caption": "C"}
    assert post.fields["content"] == "a\n\n<table> <tr><td>*b*</table><script>c</script>\n"
    assert {"HTML", "scripts"} <= post.notes.keys()


# HTML


def test_tags_that_html_reopens_in_each_paragraph_are_limited():
    with pytest.raises(Exception, match="too many elements"):
        markdown_of("".join(f"<b id={number}>" for number in range(2000)) + "<p>x" * 2000)


def test_scripts_and_forms_are_left_out_on_request_and_reported():
    html = "<p>a<script src=b></script></p><form>c<script>d</script></form><svg><script>e</script></svg>"
    assert safe_markdown_of(html) == ("a\n\nc\n", {"script", "form", "svg"})
