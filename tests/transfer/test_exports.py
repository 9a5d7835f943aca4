"""WordPress and Ghost exports, and converting HTML to Markdown."""

import json
from contextlib import suppress

import pytest

from blogapi.config import zone_named
from blogapi.markdown.front_matter import MarkdownError
from blogapi.markdown.html import markdown_of, paragraphs
from blogapi.wings.transfer.items import Failure, Item
from tests.blogs import SAMPLES, read, slugs_in
from tests.cases import cases
from tests.timing import memory_limit, time_limit
from tests.transfer.conftest import WXR_HEAD

WORDPRESS = SAMPLES / "exports/wordpress.xml"
GHOST = SAMPLES / "exports/ghost.json"


def test_wordpress_posts_are_read():
    blocks, salt, draft, friends, tomorrow = read(WORDPRESS)
    content = (
        "Two things:\n\n**salt**  \nand 2 \\* 3 hours.\n\n"
        '[gallery ids="1,2"]\n\n<!--more-->\n\n> First\n>\n> Second\n\n```bash\necho "a"\n\necho b\n```\n'
    )
    fields = {"title": "Salt & time", "slug": "salt-time", "status": "published", "content": content}
    fields |= {"tags": ["salt", "Bread"], "excerpt": "Salt, mostly.", "params": {"author": "ann", "format": "aside"}}
    fields |= {"published_at": "2015-02-13T09:00:00Z", "cover_image": "https://crumbs.example/salt.jpg"}
    others = {"old_paths": ("/2015/02/13/salt-time/",), "notes": {"shortcodes": 0}}
    assert salt == Item(f"{WORDPRESS} (salt-time)", fields, "2015-02-13T09:00:00Z", **others)
    fields = {"title": "ブロック", "slug": "hurotuku", "status": "draft", "published_at": "2014-01-01T09:00:00Z"}
    image = "![Loaf](https://crumbs.example/a%20b.jpg)"
    fields |= {"content": f"A block  \nof two lines.\n\n```php\necho 1;\n```\n\n{image}\n\nA loaf\n"}
    assert blocks.fields == fields
    assert draft.fields == {"title": "A draft", "slug": "a-draft", "status": "draft", "content": "Soon.\n"}
    assert draft.created_at == "2016-03-04T05:06:07Z"
    assert friends.fields["status"] == "draft"
    assert (tomorrow.fields["status"], tomorrow.created_at) == ("scheduled", None)


def meta(name, value):
    value = f"<wp:meta_key>{name}</wp:meta_key><wp:meta_value><![CDATA[{value}]]></wp:meta_value>"
    return f"<wp:postmeta>{value}</wp:postmeta>"


def test_old_wordpress_slugs_become_old_addresses_and_former_slugs_newest_first(wordpress):
    old = [meta("_wp_old_slug", value) for value in ("first", "second", "%e3%83%96", "Not one", "a" * 101)]
    post = wordpress(elements="".join(old))
    assert post.fields["former_slugs"] == ["second", "first"]
    assert post.old_paths[:3] == ("/2020/a/", "/2020/first/", "/2020/second/")


@cases(
    ("dates", "when"),
    ("<wp:post_date>2020-07-02 08:00:00</wp:post_date>", "2020-07-01T23:00:00Z"),
    ("<wp:post_date_gmt>2020-07-02 01:00:00</wp:post_date_gmt>", "2020-07-02T01:00:00Z"),
    ("<pubDate>Thu, 02 Jul 2020 01:00:00 +0000</pubDate>", "2020-07-02T01:00:00Z"),
)
def test_local_wordpress_times_are_in_the_zone(write, dates, when):
    item = "<wp:post_name>a</wp:post_name><wp:post_type>post</wp:post_type><wp:status>draft</wp:status>"
    item += f"{dates}<wp:post_date_gmt>0000-00-00 00:00:00</wp:post_date_gmt>"
    file = write({"a.xml": f"{WXR_HEAD}<item>{item}</item></channel></rss>"}) / "a.xml"
    (post,) = read(file, zone=zone_named("Asia/Tokyo"))
    assert post.created_at == when


def test_values_for_wordpress_templates_go_to_params(wordpress):
    elements = "<dc:creator>ann</dc:creator><wp:is_sticky>1</wp:is_sticky>"
    elements += '<category domain="post_format" nicename="post-format-quote">Quote</category>'
    elements += meta("enclosure", "https://a.example/b.mp3\n9\naudio/mpeg")
    elements += meta("_hidden", "x") + meta("mood", "a") + meta("mood", "b")
    assert wordpress(elements=elements).fields["params"] == {
        "enclosure": "https://a.example/b.mp3\n9\naudio/mpeg",
        "mood": ["a", "b"],
        "author": "ann",
        "sticky": True,
        "format": "quote",
    }
    dropped = {"mood", "enclosure", "format", "sticky", "author"}
    assert "params" not in wordpress(elements=elements, drop=dropped).fields


def test_wordpress_footnotes_become_markdown_footnotes(wordpress):
    content = (
        '<!-- wp:paragraph --><p>One<sup data-fn="x-1" class="fn"><a href="#x-1" id="x-1-link">1</a></sup>, two'
        '<sup class="fn" data-fn="y"><a href="#y">2</a></sup>, none<sup data-fn="z">3</sup>.</p><!-- /wp:paragraph -->'
    )
    notes = json.dumps([{"id": "x-1", "content": "A <em>note</em>."}, {"id": "y", "content": "Another."}])
    made = "One[^1], two[^2], none<sup>3</sup>.\n\n[^1]: A *note*.\n\n[^2]: Another.\n"
    assert wordpress(content, meta("footnotes", notes)).fields["content"] == made
    assert "[^1]" not in wordpress(content, meta("footnotes", "[{")).fields["content"]


def test_ghost_posts_are_read():
    members, own, soon = read(GHOST)
    fields = {"title": "Coming soon", "slug": "coming-soon", "status": "published", "tags": ["Bread & butter", "News"]}
    fields |= {"published_at": "2023-11-15T10:00:00Z", "excerpt": "Soon, really", "params": {"visibility": "public"}}
    fields |= {"content": 'Hi [there](/about/).\n\n<iframe src="https://video.example/1"></iframe>\n'}
    fields |= {"cover_image": "https://static.example/pub.png"}
    assert soon == Item(f"{GHOST} (coming-soon)", fields, "2023-11-14T10:00:00Z", notes={"HTML": 0})
    fields = {"title": "Own picture", "slug": "own-picture", "status": "draft", "content": "*Kept* as it was"}
    fields |= {"params": {"visibility": "public", "cover_image": "/content/images/own.png"}}
    assert own == Item(f"{GHOST} (own-picture)", fields, "2022-11-14T10:00:00Z", notes={"covers": None})
    assert (members.fields["status"], members.notes) == ("draft", {"hidden": (None, "visibility: paid")})


@pytest.fixture
def ghost(write):
    """Read an export with these posts and other data."""
    return lambda *posts, **data: read(write({"a.json": json.dumps({"data": {"posts": posts} | data})}) / "a.json")


def test_values_for_ghost_templates_go_to_params(ghost):
    post = {"id": "p", "title": "A", "html": "b", "featured": 1, "visibility": "paid", "author_id": "u"}
    post |= {"canonical_url": "https://a.example/b", "meta_title": None}
    users = [{"id": "u", "name": "Ann"}, {"id": "v", "name": "Bo"}]
    meta = [{"id": "m", "post_id": "p", "meta_title": "C", "meta_description": "D"}]
    authors = [{"post_id": "p", "author_id": author, "sort_order": order} for order, author in enumerate("vu")]
    (item,) = ghost(post, users=users, posts_meta=meta, posts_authors=authors)
    assert item.fields["params"] == {
        "authors": ["Bo", "Ann"],
        "canonical_url": "https://a.example/b",
        "meta_title": "C",
        "meta_description": "D",
        "visibility": "paid",
        "featured": True,
    }


def test_a_ghost_0_export_is_read(tmp_path, ghost):
    row = {"id": 1, "title": "A", "slug": "a", "markdown": "*B*", "html": None, "image": "//c.example/d.png", "page": 0}
    times = {"status": "published", "created_at": 1405000000000, "published_at": 1405005000000}
    never = {"created_at": 10**30, "published_at": 10**300}
    posts = [row | times, row | never | {"id": 2, "slug": "b"}, {"page": 1}]
    tags = {"tags": [{"id": 3, "name": "C"}], "posts_tags": [{"post_id": 1, "tag_id": 3}]}
    dated, undated = ghost(*posts, **tags)
    fields = {"title": "A", "slug": "a", "status": "published", "tags": ["C"], "content": "*B*"}
    fields |= {"published_at": "2014-07-10T15:10:00Z", "params": {"cover_image": "//c.example/d.png"}}
    assert dated == Item(f"{tmp_path}/a.json (a)", fields, "2014-07-10T13:46:40Z", notes={"covers": None})
    assert (undated.fields["slug"], undated.created_at) == ("b", None)


@cases(
    ("name", "data", "reason"),
    ("a.xml", '<?xml version="1.0"?>\n<rss>\n<channel', "3: not valid XML: unclosed token"),
    ("a.xml", "", "1: not valid XML: no element found"),
    ("a.xml", '<!DOCTYPE rss [<!ENTITY a "b">]><rss>&a;</rss>', " must not have a document type definition"),
    ("a.xml", '<!DOCTYPE rss SYSTEM "file:///etc/passwd"><rss/>', " must not have a document type definition"),
    ("a.xml", '<?xml version="1.0" encoding="x"?><rss/>', " its encoding is not supported: convert it to UTF-8"),
    ("a.xml", '<?xml version="1.0" encoding="gbk"?><rss/>', " its encoding is not supported: convert it to UTF-8"),
    ("a.xml", "<item/>", " not an export from WordPress"),
    ("a.xml", "<rss xmlns:wp='http://wordpress.org/export/1.2/'><channel/></rss>", " not an export from WordPress"),
    *(("a.json", data, " not valid JSON") for data in ("{", "[" * 100_000, b"\xff")),
    *(("a.json", data, " not an export from Ghost") for data in ("[1]", "{}", '{"db": []}')),
    ("a.json", '{"db": [{"data": {"posts": [1]}}]}', " not an export from Ghost"),
    *((name, data, " not an export from Substack") for name, data in (("a.csv", "a,b\n1,2\n"), ("posts.csv", "\0"))),
    ("a.html", "<p>A", " not read, because this is text that `pandoc -t gfm` converts to Markdown"),
)
def test_a_file_that_is_not_an_export_is_refused(write, name, data, reason):
    path = write({name: data}) / name
    assert [str(item) for item in read(path)] == [f"{path}:{reason}"]


NO_HTML = "without HTML: publish it in Ghost, or export it with HTML"


@cases(
    ("row", "reason"),
    *(({name: 5}, f"`{name}` must be text") for name in ("title", "markdown", "html")),
    ({"title": ["A"]}, "`title` must be text"),
    ({"slug": 5, "html": "a"}, "`slug` must be text"),
    ({"html": "a", "id": 9}, "`tags` must be text"),
    ({"slug": "", "html": "<b>" * 500 + "a"}, "its Markdown must be at most 4 times as long as its HTML"),
    ({"mobiledoc": "[]"}, "its fields are missing or invalid"),
    ({"mobiledoc": "{"}, "its fields are missing or invalid"),
    ({"created_at": {"a": 1}}, "its fields are missing or invalid"),
    ({"lexical": '{"root":{"children":[{"text":"a"}]}}'}, f"its content is `lexical` {NO_HTML}"),
    ({"mobiledoc": '{"cards":[],"sections":[[1,"p",[[0,[],0,"a"]]]]}'}, f"its content is `mobiledoc` {NO_HTML}"),
)
def test_an_unreadable_post_does_not_stop_the_others(tmp_path, ghost, row, reason):
    bad, good = {"id": 7, "slug": "bad", "title": "Bad"} | row, {"id": 8, "title": "Good", "html": "b"}
    tags = {"tags": [{"id": 1, "name": 5}], "posts_tags": [{"tag_id": 1, "post_id": 9}]}
    found = {type(item): item for item in ghost(bad, good, **tags)}
    assert found[Failure].reason == reason
    assert found[Failure].source == f"{tmp_path}/a.json ({row.get('slug') or 'bad'})"
    assert found[Item].fields == {"title": "Good", "slug": "good", "status": "draft", "content": "b\n"}


@cases(
    "text",
    [
        "<a href=x>" + "<p>b</p>" * 12_000,
        "<a href=x><p>" * 7_600,
        "<pre>" * 25_000,
        "<p " * 40_000,
        "<pre></pre" * 12_000,
        "<![" * 40_000,
        "a" + " " * 40_000 + "b",
        "<ol>" + "<li>a</li>" * 10_000,
        "<table><tr>" + "<td colspan=1000>a" * 40_000,
        "<blockquote>" * 399 + "a<br>" * 20_000,
    ],
)
def test_hostile_html_is_read_quickly(text):
    with time_limit(3), suppress(MarkdownError):
        markdown_of(paragraphs(text))


def test_a_title_is_plain_text_without_elements_and_references(wordpress):
    title = f"1 < 2 &amp; <b class='x'>A</b>&#{'1' * 5000};&#33;"
    assert wordpress(title=f"<![CDATA[{title}]]>").fields["title"] == "1 < 2 & A!"


def test_a_post_without_a_title_gets_its_slug_as_one_and_is_reported_with_its_id(write, ghost):
    items = ghost({"id": "5f", "slug": "my-day", "html": "<hr>"}, {"id": 7, "title": None, "html": "<hr>"})
    top = write({"b.xml": WORDPRESS.read_text().replace("<title><![CDATA[A draft]]></title>", "")})
    found = {item.source: (item.fields["slug"], item.fields["title"]) for item in [*items, *read(top / "b.xml")]}
    assert found[f"{top}/a.json (my-day, id 5f)"] == ("my-day", "My day")
    assert found[f"{top}/a.json (post-7, id 7)"] == ("post-7", "Post 7")
    assert found[f"{top}/b.xml (post-15, id 15)"] == ("post-15", "Soon")
    assert all("titles from names" in item.notes for item in items)


@pytest.mark.slow
def test_a_large_wordpress_export_takes_little_memory(tmp_path):
    items = "".join(
        f"<item><title>A</title><content:encoded>{'word ' * 10_000}</content:encoded><wp:post_name>a-{number}"
        "</wp:post_name><wp:status>publish</wp:status><wp:post_type>post</wp:post_type></item>"
        for number in range(100)
    )
    (tmp_path / "a.xml").write_text(f"{WXR_HEAD}{items}</channel></rss>")
    with memory_limit(len(items) / 2):
        assert len(slugs_in(tmp_path / "a.xml")) == 100


@cases(
    ("html", "markdown"),
    ("<p>a</p><p>b<br>c</p>", "a\n\nb  \nc\n"),
    ("<h1>a</h1><h3>b <em>c</em></h3>", "# a\n\n### b *c*\n"),
    ("a &amp; b &lt;div&gt; &amp;lt; `c` *d* _e_ f_g", "a & b \\<div> \\&lt; \\`c\\` \\*d\\* \\_e\\_ f_g\n"),
    ("<p># a</p><p>1. b</p><p>- c</p><p>+ d</p><p>> e</p><p>--- f</p><p>2) g</p><p>3.4</p>",
     "\\# a\n\n1\\. b\n\n\\- c\n\n\\+ d\n\n\\> e\n\n\\--- f\n\n2\\) g\n\n3.4\n"),
    ("<p><b>a</b> - b</p>", "**a** - b\n"),
    ("[l](m) ![x](y) ~~s~~ ~t", "\\[l\\](m) !\\[x\\](y) \\~\\~s\\~\\~ \\~t\n"),
    ('<a href="/x">t]x[ [b]</a>', "[t\\]x\\[ [b]](/x)\n"),
    ('<img alt="a]b" src="/x">', "![a\\]b](/x)\n"),
    ('<table><tr><th><a href="/x">a|</a></th><th>c|d</th></tr></table>', "| [a\\|](/x) | c\\|d |\n| --- | --- |\n"),
    ("C:\\new \\*", "C:\\new \\\\\\*\n"),
    ("[my_code a=\"*b*\"]*c*[/my_code]", "[my_code a=\"*b*\"]\\*c\\*[/my_code]\n"),
    ('<a href="/a b(c)">d</a><img src="/e f.png" alt="g">', "[d](/a%20b%28c%29)![g](/e%20f.png)\n"),
    ('<a href="/a\t\\">b</a><img src="/c\\" alt="d\n\ne">', "[b](/a%09\\\\)![d e](/c\\\\)\n"),
    ('<a href="/a" title="b\n\n&quot;c\\">d</a>', '[d](/a "b \\"c\\\\")\n'),
    ("<pre>a\n\n  b_*</pre>", "```\na\n\n  b_*\n```\n"),
    ('<pre class="language-js">```</pre>', "````js\n```\n````\n"),
    ('<pre><code class="x lang-c++">a</code></pre>', "```c++\na\n```\n"),
    ("<code>a_*</code>", "`a_*`\n"),
    ("<table><tr><th>a</th></tr><tr><td>b</td></tr></table>", "| a |\n| --- |\n| b |\n"),
    ('a<iframe\nsrc="b"></iframe>c', 'a\n\n<iframe src="b"></iframe>\n\nc\n'),
    ('<figure><img src="a"><figcaption>b</figcaption></figure>', "![](a)\n\nb\n"),
    ("a<script>b</script><style>c</style><!-- d -->", "a\n"),
    ("<p>a \t  b</p><pre>c  d</pre>", "a b\n\n```\nc  d\n```\n"),
    ("picture.jpg", "picture.jpg\n"),
    ('<div style="color:red; background-image:url(&quot;a b.png&quot;)"><p>c</p></div>', "![](a%20b.png)\n\nc\n"),
    ('<figure style="background-image:url(a.png)"><img src="a.png" alt="b"></figure>', "![b](a.png)\n"),
    ('<a href="b"><div><p>c</p><p>d</p></div><div><img src="e"></div></a>', "[c d ![](e)](b)\n"),
    ("<p>10<sup>9</sup> H<sub>2</sub>O <mark>a <b>b</b></mark></p>",
     "10<sup>9</sup> H<sub>2</sub>O <mark>a **b**</mark>\n"),
    ('<abbr title="a &quot;b&quot;">c</abbr><sup></sup>', '<abbr title="a &quot;b&quot;">c</abbr>\n'),
    ("<details open><summary>a <b>b</b></summary><p><b>c</b></p></details>d",
     "<details open>\n\n<summary>a <b>b</b></summary>\n\n**c**\n\n</details>\n\nd\n"),
    ("<pre>a<sup>b</sup></pre>", "```\nab\n```\n"),
    ("", ""),
    ("<a name=q><h2>x</h2>y</a>", "## x\n\ny\n"),
    # What Markdown cannot express stays HTML
    ("<p><b>Note:</b>a <b>「b」</b>です <b>c</b><b>d</b></p>",
     "<strong>Note:</strong>a <strong>「b」</strong>です <strong>c</strong><strong>d</strong>\n"),
    ("<p>Write __init__ in __all__.</p>", "Write \\_\\_init\\_\\_ in \\_\\_all\\_\\_.\n"),
    ("<ul><li>a<ul><li>b</ul><li>c</ul><p>d<p>e", "- a\n  - b\n- c\n\nd\n\ne\n"),
    ("<table><tr><th>a<tr><td>b<br>c<tr><td><code>d|e</code></table>", "| a |\n| --- |\n| b<br>c |\n| `d\\|e` |\n"),
    ('<table><tr><td><img src="/a"></td></tr></table>', "| ![](/a) |\n| --- |\n"),
    ("<table><tr><td rowspan=2>a<td>b<tr><td>c</table>",
     '<table><tbody><tr><td rowspan="2">a</td><td>b</td></tr><tr><td>c</td></tr></tbody></table>\n'),
    ('<a href="/a"><h2>b</h2><p>c</p>d</a>', "## [b](/a)\n\n[c](/a)\n\n[d](/a)\n"),
    ('<pre>a <a href="/b">c</a>\nd</pre>', '<pre>a <a href="/b">c</a>&#10;d</pre>\n'),
    ('a<sup><a href="#n">1</a></sup><ol><li id="n"><p>b</p></li></ol>',
     'a<sup>[1](#n)</sup>\n\n1. <a id="n"></a>b\n'),
    ('<pre data-lang="rust">a</pre>', "```rust\na\n```\n"),
    ("<form><input name=a></form>", '<form><input name="a"></form>\n'),
    ("<h2>a<br>b</h2><center>c</center>d", "## a<br>b\n\nc\n\nd\n"),
)  # fmt: skip
def test_html_becomes_markdown_with_the_same_meaning(html, markdown):
    assert markdown_of(html) == markdown
